//! `grain bench`: every figure is there, nothing is left behind, and what it cannot do it says.

use std::fs;

use serde_json::{Value, json};

use crate::kit::{Place, Run};

const ROWS: [&str; 7] = ["put", "batch", "get", "s16", "search", "assemble", "open"];
/// Kinds of work that a table with indexes does as well.
#[cfg(feature = "sqlite")]
const OF_BOTH: [&str; 6] = ["put", "batch", "get", "s16", "search", "open"];
/// Those that write.
const WRITES: [&str; 2] = ["put", "batch"];

/// Runs it in the directory of the test, which holds nothing else.
fn bench(place: &Place, more: &[&str]) -> Run {
    place.grain(&[&["bench", "--grains", "1000", "--dir", "."], more].concat())
}

#[track_caller]
fn check_nothing_is_left(place: &Place) {
    let left: Vec<_> = fs::read_dir(place.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[track_caller]
fn check_figure(name: &str, figure: &Value) {
    let number = |key: &str| figure[key].as_f64().unwrap_or_else(|| panic!("{name}: {figure}"));
    assert!(number("calls") > 0.0, "{name}: {figure}");
    assert!(number("p50") > 0.0 && number("p50") <= number("p95"), "{name}: {figure}");
    assert!(number("p95") <= number("p99"), "{name}: {figure}");
    assert_eq!(figure["unit"], "us", "{name}");
    assert_eq!(figure["per_second"].is_number(), WRITES.contains(&name), "{name}: {figure}");
}

#[test]
fn the_json_has_every_row_and_nothing_is_left_behind() {
    let place = Place::empty();
    let run = bench(&place, &["--json"]).done();
    check_nothing_is_left(&place);
    assert_eq!(run.err, "");
    let told = run.json();
    assert_eq!((&told["grains"], &told["version"]), (&json!(1000), &json!("0.1.0")));
    assert!(told["machine"]["cores"].as_u64().unwrap() > 0);
    assert_eq!(told["machine"]["os"], std::env::consts::OS);
    assert_eq!(told["memory"]["peak_bytes"].is_u64(), cfg!(target_os = "linux"));
    let rows = told["rows"].as_array().unwrap();
    let names: Vec<_> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ROWS);
    for row in rows {
        check_figure(row["name"].as_str().unwrap(), &row["grainstore"]);
    }
    for room in told["disk"].as_array().unwrap() {
        assert!(room["grainstore"].as_f64().unwrap() > 100.0, "{room}");
    }
    check_peer(&told);
}

/// Beside the store stands SQLite, in all rows but the one it has no answer for.
#[cfg(feature = "sqlite")]
fn check_peer(told: &Value) {
    assert!(told["sqlite"].as_str().unwrap().starts_with("3."));
    for row in told["rows"].as_array().unwrap() {
        let name = row["name"].as_str().unwrap();
        if !OF_BOTH.contains(&name) {
            assert!(row["sqlite"].is_null() && row["ratio"].is_null(), "{row}");
            continue;
        }
        check_figure(name, &row["sqlite"]);
        let medians = ["grainstore", "sqlite"].map(|peer| row[peer]["p50"].as_f64().unwrap());
        let ratio = row["ratio"].as_f64().unwrap();
        assert!((ratio - medians[0] / medians[1]).abs() < 0.001, "{row}");
        assert_eq!(row["rate_ratio"].is_number(), WRITES.contains(&name), "{row}");
    }
    for room in told["disk"].as_array().unwrap() {
        assert!(room["sqlite"].is_number() && room["ratio"].is_number(), "{room}");
    }
}

/// Nothing stands beside the store.
#[cfg(not(feature = "sqlite"))]
fn check_peer(told: &Value) {
    let text = told.to_string();
    assert!(!text.contains("sqlite") && !text.contains("ratio"), "{text}");
}

#[test]
fn people_get_a_table_and_how_to_have_sqlite_beside_it() {
    let place = Place::empty();
    let run = bench(&place, &[]).done();
    check_nothing_is_left(&place);
    // No progress but on a terminal.
    assert_eq!(run.err, "");
    for expected in ["p50", "calls", "get by address", "disk, compacted, bytes a grain"] {
        assert!(run.text().contains(expected), "{expected}: {}", run.text());
    }
    let told = run.text().contains("cargo install --path cli --features sqlite");
    assert_eq!(told, !cfg!(feature = "sqlite"));
    assert_eq!(run.text().contains("ratio"), cfg!(feature = "sqlite"));
}

#[test]
fn what_it_cannot_measure_is_refused() {
    let place = Place::empty();
    for grains in ["0", "999", "10000001", "-1", "many", ""] {
        let run = place.grain(&["bench", "--json", &format!("--grains={grains}")]);
        assert_eq!((run.code, run.error_code().as_str()), (2, "ERR_SCHEMA"), "{grains:?}");
        assert!(run.err.contains("--grains") && run.out.is_empty(), "{}", run.err);
    }
    check_nothing_is_left(&place);
    fs::write(place.path().join("file"), "").unwrap();
    for dir in ["none", "file"] {
        let run = place.grain(&["bench", "--dir", dir]);
        assert_eq!((run.code, run.error_code().as_str()), (1, "ERR_IO"), "{dir}");
        assert!(run.err.contains(dir) && run.err.contains("--dir DIR"), "{}", run.err);
    }
}

#[test]
#[cfg(unix)]
fn what_is_interrupted_leaves_nothing_behind() {
    for signal in ["-INT", "-TERM"] {
        let place = Place::empty();
        let child = place.start(&["bench", "--grains", "1000000", "--dir", "."]);
        let id = child.id().to_string();
        while fs::read_dir(place.path()).unwrap().next().is_none() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let kill = std::process::Command::new("kill").args([signal, &id]).status().unwrap();
        assert!(kill.success());
        let run = child.wait_with_output().unwrap();
        let told = String::from_utf8(run.stderr).unwrap();
        assert_eq!(run.status.code(), Some(1), "{told}");
        assert!(told.starts_with("error: CAL-E082: stopped before the end"), "{told}");
        assert!(run.stdout.is_empty());
        check_nothing_is_left(&place);
    }
}

/// On a disk that is full, then on one that takes no writes: small ones in namespaces of the test's own.
#[test]
#[cfg(target_os = "linux")]
fn a_disk_without_room_or_without_writes_is_told_and_nothing_is_left_on_it() {
    const STORY: &str = r#"
mount -t tmpfs -o size=6m tmpfs disk || exit 77
for n in full fixed; do
    said=$("$1" bench --grains 20000 --dir disk --json 2>&1); echo "$n $? $(ls disk | wc -l) $said"
    mount -o remount,ro "$PWD/disk"
done
"#;
    let place = Place::empty();
    fs::create_dir(place.path().join("disk")).unwrap();
    let run = std::process::Command::new("unshare")
        .args(["-rm", "sh", "-c", STORY, "sh", env!("CARGO_BIN_EXE_grain")])
        .current_dir(place.path())
        .output();
    let Ok(run) = run else { return eprintln!("skipped: there is no unshare") };
    let text = String::from_utf8(run.stdout).unwrap();
    if !text.starts_with("full ") {
        return eprintln!("skipped: no tmpfs here: {}", String::from_utf8_lossy(&run.stderr));
    }
    let lines: Vec<_> = text.lines().collect();
    let [full, fixed] = lines.as_slice() else { panic!("{text}") };
    assert!(full.starts_with("full 1 0 ") && fixed.starts_with("fixed 1 0 "), "{text}");
    for line in lines {
        assert!(line.contains("ERR_IO") && line.contains("--dir DIR"), "{line}");
    }
}
