//! Imports that are killed at any moment, and what comes after them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use grainstore::cal::Query;
use grainstore::prelude::*;
use grainstore_interop::Monitor;
use grainstore_interop::alf::{self, DeltaOptions, ExportOptions, ImportOptions};
use grainstore_interop::archive::ArchiveWriter;
use serde_json::json;

use crate::camera::Camera;
use crate::kit::{AGENT, Made, NOW, Read, read, record, with};

const DAY: i64 = 86_400_000;

/// A store whose imports are watched, and room for archives.
struct Watched {
    dir: tempfile::TempDir,
    camera: Arc<Camera>,
    session: Session,
}

impl Watched {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (at, copies) = (dir.path().join("store"), dir.path().join("copies"));
        let camera = Camera::of(&at, &copies, NOW);
        let options = OpenOptions::new().create(true).clock(Arc::clone(&camera) as _);
        let session = Store::open(&at, &options).unwrap().session(SessionOptions::default());
        Self { dir, camera, session }
    }

    /// The stores that an import leaves if it is killed.
    fn cut_off(&self, path: &Path) -> Vec<PathBuf> {
        let copies = self.camera.during(|| import(&self.session, path));
        assert!(copies.len() >= 3, "{}", copies.len());
        copies
    }
}

fn reopened(copy: &Path) -> Session {
    Camera::open(copy, NOW + DAY)
}

fn import(session: &Session, path: &Path) -> alf::ImportReport {
    let report = alf::import(session, path, &ImportOptions::default(), &Monitor::default());
    let report = report.unwrap();
    assert_eq!(report.errors, []);
    report
}

fn export(session: &Session, path: &Path) -> Read {
    alf::export(session, path, &ExportOptions::default(), &Monitor::default()).unwrap();
    read(path)
}

#[test]
fn the_bytes_of_a_sealed_partition_are_kept_by_the_import_that_completes_one() {
    let watched = Watched::new();
    let old = with(record(1, "2026-01-02T00:00:00Z"), json!({"tags": ["a"]}));
    // The bytes are not those that would be written here.
    let line = old.to_string().replace(",\"", ", \"") + "\n";
    let manifest = json!({
        "alf_version": "1.0.0", "created_at": "2026-08-01T00:00:00Z",
        "agent": {"id": AGENT, "name": "Ada", "source_runtime": "openclaw"},
        "sync": {"last_sequence": 7},
        "layers": {"memory": {"record_count": 1, "index_file": "memory/index.json", "partitions": [
            {"file": "memory/partitions/2026-Q1.jsonl", "from": "2026-01-01", "to": "2026-03-31",
             "record_count": 1, "sealed": true}]}},
    });
    let path = watched.dir.path().join("a.alf");
    let mut writer = ArchiveWriter::create(&path).unwrap();
    writer.add("manifest.json", manifest.to_string().as_bytes()).unwrap();
    writer.add("memory/partitions/2026-Q1.jsonl", line.as_bytes()).unwrap();
    writer.finish().unwrap();
    for copy in watched.cut_off(&path) {
        let session = reopened(&copy);
        import(&session, &path);
        let out = export(&session, &watched.dir.path().join("out.alf"));
        let kept = &out.partitions["memory/partitions/2026-Q1.jsonl"];
        assert_eq!(String::from_utf8_lossy(kept), line);
    }
}

#[test]
fn large_records_do_not_wait_for_each_other() {
    let watched = Watched::new();
    let large = |number: u32| {
        let numbers = (0..300_000_u32).map(|at| at.wrapping_mul(2_654_435_761 + number));
        let numbers: Vec<_> = numbers.map(|number| number.to_string()).collect();
        with(record(number, "2026-07-02T00:00:00Z"), json!({"content": numbers.join(" ")}))
    };
    let path = Made::of(vec![("2026-Q3", (1..4).map(large).collect())]);
    let path = path.write(watched.dir.path(), "a.alf");
    let mut counts = Vec::new();
    for copy in watched.cut_off(&path) {
        let session = reopened(&copy);
        let page = session.query(&Query::default(), &PageOptions::first(100)).unwrap();
        counts.push(page.results.iter().filter(|one| is_memory(&one.grain)).count());
    }
    counts.dedup();
    assert_eq!(counts, [0, 1, 2, 3], "each is written before the next one is held");
}

fn is_memory(grain: &Grain) -> bool {
    grain.text("relation") == Some("mg:knows")
}

#[test]
fn no_archive_is_out_before_the_audit_log_tells_of_it() {
    let watched = Watched::new();
    let path = Made::of(vec![("2026-Q3", vec![record(1, "2026-07-02T00:00:00Z")])]);
    import(&watched.session, &path.write(watched.dir.path(), "a.alf"));
    let told = || {
        let entries = watched.session.audit(None, 1000).unwrap().into_iter();
        entries.filter(|entry| entry.operation == "export_archive").count()
    };
    let out = watched.dir.path().join("out");
    // While it is written, something else takes the name, so that the archive cannot have it.
    let progress = |_, _| {
        let mut files = std::fs::read_dir(watched.dir.path()).unwrap();
        if files.any(|file| file.unwrap().file_name().to_string_lossy().ends_with(".part")) {
            std::fs::create_dir_all(out.join("folder")).unwrap();
        }
    };
    let in_the_way = || Monitor { progress: Some(&progress), ..Monitor::default() };
    let session = &watched.session;
    assert!(alf::export(session, &out, &ExportOptions::default(), &in_the_way()).is_err());
    assert_eq!(told(), 1);
    std::fs::remove_dir_all(&out).unwrap();
    let since = DeltaOptions { since: 1, ..DeltaOptions::default() };
    assert!(alf::export_delta(session, &out, &since, &in_the_way()).is_err());
    assert_eq!(told(), 2);
    std::fs::remove_dir_all(&out).unwrap();
    assert_eq!(std::fs::read_dir(watched.dir.path()).unwrap().count(), 2, "a.alf and the store");
}
