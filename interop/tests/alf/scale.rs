//! An agent that remembers 50,000 things: `GRAINSTORE_ALF=full cargo test --release -p grainstore-interop --test alf
//! scale -- --nocapture` prints what each step took. Without it, 2,000.

use std::io::Read;
use std::time::Instant;

use grainstore_interop::Monitor;
use grainstore_interop::alf::{self, DeltaOptions, ExportOptions, ImportOptions};
use grainstore_interop::archive::{Archive, ArchiveWriter, Limits};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::kit::*;

/// The memory of this process, in MiB: now and at its most.
fn memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let of = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or_default() / 1024
    };
    format!("{} MiB, at most {} MiB", of("VmRSS:"), of("VmHWM:"))
}

/// Seconds of the processors that this process had.
fn processor() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(11).take(2);
    ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// The memory that the next most is counted from.
fn forget_the_most() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// Records over two years; one in ten supersedes the one before, one in a hundred is deleted.
fn remembered(count: u32) -> Made {
    let quarters =
        ["2024-Q4", "2025-Q1", "2025-Q2", "2025-Q3", "2025-Q4", "2026-Q1", "2026-Q2", "2026-Q3"];
    let months =
        ["2024-10", "2025-01", "2025-04", "2025-07", "2025-10", "2026-01", "2026-04", "2026-07"];
    let each = count / 8;
    let kinds = ["semantic", "episodic", "procedural", "preference", "summary"];
    let mut made = Made::of(Vec::new());
    let mut described = Vec::new();
    for place in 0..8_u32 {
        let mut lines = String::new();
        for number in place * each..(place + 1) * each {
            let at = number % each;
            let (day, second) = (at * 28 / each + 1, at % 86_400);
            let time = format!(
                "{}-{day:02}T{:02}:{:02}:{:02}Z",
                months[place as usize],
                second / 3600,
                second / 60 % 60,
                second % 60
            );
            let words = format!(
                "On day {number} the user of project {} said that thing {} is like {}",
                number % 97,
                number * 7 % 1013,
                number * 31 % 5003
            );
            let mut record = with(
                record(number, &time),
                json!({
                    "content": words, "memory_type": kinds[(number / 20 % 5) as usize], "category": "daily",
                    "confidence": f64::from(number % 100) / 100.0, "tags": [format!("t{}", number % 50)],
                    "entities": [{"name": format!("project {}", number % 97), "type": "project"}],
                    "related_records": [{"id": id(number / 2), "relation": "elaborates_on"}],
                }),
            );
            if number % 10 == 9 {
                record["supersedes"] = json!(id(number - 1));
            }
            if number % 100 == 50 {
                record["status"] = json!("deleted");
            }
            lines.push_str(&record.to_string());
            lines.push('\n');
        }
        let label = quarters[place as usize];
        let file = format!("memory/partitions/{label}.jsonl");
        let (from, to) = days(label);
        described.push(json!({"file": file, "from": from, "to": (place < 7).then_some(to), "record_count": each, "sealed": place < 7}));
        made = made.file(&file, lines.as_bytes());
    }
    made.manifest["layers"]["memory"] = json!({
        "record_count": each * 8, "index_file": "memory/index.json", "partitions": described,
    });
    made
}

#[test]
fn a_large_memory_moves_in_steps_of_bounded_memory() {
    let count: u32 = if std::env::var_os("GRAINSTORE_ALF").is_some() { 50_000 } else { 2_000 };
    let [one, other] = [World::new(), World::new()];
    let path = remembered(count).write_raw(one.dir.path(), "in.alf");
    let bytes = std::fs::metadata(&path).unwrap().len();
    println!("{count} records, {} KiB; {}", bytes >> 10, memory());
    let timed = |what: &str, work: &mut dyn FnMut()| {
        forget_the_most();
        let (begin, before) = (Instant::now(), processor());
        work();
        let used = processor() - before;
        println!(
            "{what}: {:.2} s, {used:.2} s of processors; {}",
            begin.elapsed().as_secs_f64(),
            memory()
        );
    };
    let monitor = Monitor::default();
    timed("validate", &mut || {
        assert!(alf::validate(&path, Default::default(), &monitor).unwrap().valid);
    });
    timed("import", &mut || {
        let report = one.import(&path);
        assert_eq!(report.records.created, u64::from(count));
    });
    timed("import again", &mut || {
        assert_eq!(one.import(&path).records.unchanged, u64::from(count));
    });
    let out = one.dir.path().join("out.alf");
    timed("export", &mut || {
        alf::export(&one.session, &out, &ExportOptions::default(), &monitor).unwrap();
    });
    timed("export again", &mut || {
        alf::export(&one.session, &out, &ExportOptions::default(), &monitor).unwrap();
    });
    println!("{} KiB", std::fs::metadata(&out).unwrap().len() >> 10);
    timed("import elsewhere", &mut || drop(other.import(&out)));
    let mut more = Made::of(vec![(
        "2026-Q3",
        (0..count / 10).map(|at| record(1_000_000 + at, "2026-08-01T00:00:00Z")).collect(),
    )]);
    more.manifest["sync"] = json!({"last_sequence": 8});
    one.import_made(&more);
    let delta = one.dir.path().join("a.alf-delta");
    timed("delta of a tenth", &mut || {
        let options = DeltaOptions { since: 7, ..DeltaOptions::default() };
        alf::export_delta(&one.session, &delta, &options, &monitor).unwrap();
    });
    timed("apply", &mut || {
        let report = alf::apply_delta(&other.session, &delta, &ImportOptions::default(), &monitor);
        assert_eq!(report.unwrap().import.records.created, u64::from(count / 10));
    });
    timed("verify", &mut || other.verify());
}

/// Bytes that do not pack.
struct Noise {
    left: u64,
    state: u64,
}

impl Read for Noise {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(into.len());
        for byte in &mut into[..most] {
            self.state ^= self.state << 13;
            self.state ^= self.state >> 7;
            self.state ^= self.state << 17;
            *byte = self.state.to_le_bytes()[3];
        }
        self.left -= most as u64;
        Ok(most)
    }
}

#[test]
fn a_large_file_moves_in_pieces() {
    let size: u64 = if std::env::var_os("GRAINSTORE_ALF").is_some() { 512 << 20 } else { 9 << 20 };
    let world = World::new();
    let path = world.dir.path().join("in.alf");
    let mut writer = ArchiveWriter::create(&path).unwrap();
    let mut made = Made::of(Vec::new());
    made.manifest["raw_sources"] = json!(["openclaw"]);
    writer.add("manifest.json", made.manifest.to_string().as_bytes()).unwrap();
    let name = "raw/openclaw/large.bin";
    writer.add(name, Noise { left: size, state: 7 }).unwrap();
    writer.finish().unwrap();
    println!("a file of {} MiB; {}", size >> 20, memory());
    forget_the_most();
    world.import(&path);
    println!("imported; {}", memory());
    forget_the_most();
    let out = world.dir.path().join("out.alf");
    alf::export(&world.session, &out, &ExportOptions::default(), &Monitor::default()).unwrap();
    println!("exported; {}", memory());
    let [one, other] = [path, out].map(|path| {
        let archive = Archive::open(path, Limits::default()).unwrap();
        let mut hash = Sha256::new();
        let mut reader = archive.reader(archive.entry(name).unwrap()).unwrap();
        let mut piece = vec![0; 1 << 16];
        loop {
            let read = reader.read(&mut piece).unwrap();
            if read == 0 {
                return hash.finalize();
            }
            hash.update(&piece[..read]);
        }
    });
    assert_eq!(one, other);
}

#[test]
fn the_names_of_many_files_come_and_go() {
    let world = World::new();
    let mut made = Made::of(vec![("2026-Q3", vec![record(1, "2026-07-02T00:00:00Z")])]);
    for number in 0..6_000 {
        made = made.file(&format!("raw/openclaw/{}-{number:04}.md", "name".repeat(50)), b"");
    }
    world.import_made(&made);
    let (out, report) = world.export();
    assert_eq!((out.files.len(), report.files), (6_000, 6_000));
    let other = World::new();
    other.import(&world.dir.path().join("out.alf"));
    assert_eq!(other.export().0.files, out.files);
    let delta = world.dir.path().join("a.alf-delta");
    let since = DeltaOptions::default();
    let monitor = Monitor::default();
    alf::export_delta(&world.session, &delta, &since, &monitor).unwrap();
    let third = World::new();
    third.import_made(&Made::of(vec![("2026-Q3", vec![record(1, "2026-07-02T00:00:00Z")])]));
    let options = ImportOptions { peer: "another".to_owned(), ..ImportOptions::default() };
    alf::apply_delta(&third.session, &delta, &options, &monitor).unwrap();
    assert_eq!(third.export().0.files, out.files);
}
