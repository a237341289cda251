//! A disk that is full, and one that is mounted to be read: on a small tmpfs in namespaces of the test's own.

use std::process::Command;

use serde_json::Value;

use crate::kit::Place;

/// What it runs: a store on a disk that is full, then has room again, then takes no writes. Each line that the
/// command prints comes behind the name of its step, its code behind that.
const STORY: &str = r#"
grain=$1
mount -t tmpfs -o size=8m tmpfs disk || exit 77
step() { name=$1; shift; said=$("$grain" --store disk/s --json "$@" 2>&1); printf '%s %s ' "$name" $?; echo "$said" | tr '\n' ' '; echo; }
belief() { printf '{"type":"belief","subject":"ann","relation":"likes","object":"%s","confidence":0.9,"created_at":1768471200000}' "$1"; }
step init init
belief tea | step tea put
head -c 16m /dev/zero > disk/filler 2>/dev/null
large=$(head -c 600000 /dev/zero | tr '\0' x)
for n in 1 2 3; do belief "$n$large" | step "full$n" put; done
step full_read cal 'RECALL beliefs | COUNT'
step full_read_only --read-only cal 'RECALL beliefs | COUNT'
step full_verify --read-only verify --full
rm disk/filler
step room_verify verify --full
step room_read cal 'RECALL beliefs | COUNT'
belief rice | step rice put
step room_verify2 verify --full
mount -o remount,ro "$PWD/disk"
belief wine | step fixed_put put
step fixed_read cal 'RECALL beliefs | COUNT'
step fixed_read_only --read-only cal 'RECALL beliefs | COUNT'
step fixed_verify --read-only verify --full
"#;

fn counted(said: &str) -> u64 {
    // An error may come behind it.
    let mut told = serde_json::Deserializer::from_str(said).into_iter::<Value>();
    let answer = told.next().unwrap().unwrap();
    answer["count"].as_u64().unwrap()
}

#[test]
fn nothing_is_lost_on_a_full_disk_and_everything_stays_readable() {
    let place = Place::empty();
    std::fs::create_dir(place.path().join("disk")).unwrap();
    let run = Command::new("unshare")
        .args(["-rm", "sh", "-c", STORY, "sh", env!("CARGO_BIN_EXE_grain")])
        .current_dir(place.path())
        .output();
    let Ok(run) = run else { return eprintln!("skipped: there is no unshare") };
    let text = String::from_utf8(run.stdout).unwrap();
    if !text.starts_with("init ") {
        return eprintln!("skipped: no tmpfs here: {}", String::from_utf8_lossy(&run.stderr));
    }
    let mut lines = text.lines().map(|line| {
        let mut parts = line.splitn(3, ' ');
        let mut part = || parts.next().unwrap().to_owned();
        (part(), part(), part())
    });
    let mut step = |name: &str, code: &str| {
        let (told, found, said) = lines.next().unwrap();
        assert_eq!((&*told, &*found), (name, code), "{said}");
        said
    };
    step("init", "0");
    step("tea", "0");
    for name in ["full1", "full2", "full3"] {
        let said = step(name, "1");
        assert!(said.contains("ERR_IO") && said.contains("No space left"), "{said}");
    }
    // It answers, and tells that no disk took the note of the read.
    let said = step("full_read", "1");
    assert_eq!(counted(&said), 1);
    assert!(said.contains("ERR_IO") && said.contains("No space left"), "{said}");
    assert_eq!(counted(&step("full_read_only", "0")), 1);
    step("full_verify", "0");
    step("room_verify", "0");
    assert_eq!(counted(&step("room_read", "0")), 1);
    let rice: Value = serde_json::from_str(&step("rice", "0")).unwrap();
    assert_eq!(rice["duplicate"], false);
    step("room_verify2", "0");
    for name in ["fixed_put", "fixed_read"] {
        let said = step(name, "1");
        assert!(said.contains("ERR_IO") && said.contains("--read-only"), "{said}");
    }
    assert_eq!(counted(&step("fixed_read_only", "0")), 2);
    step("fixed_verify", "0");
}
