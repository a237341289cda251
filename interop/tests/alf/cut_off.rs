//! Imports that are killed at any moment, and what comes after them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use grainstore::cal::Query;
use grainstore::prelude::*;
use grainstore::{EpochMs, RowRange};
use grainstore_interop::Monitor;
use grainstore_interop::alf::{
    self, DeltaOptions, ExportOptions, ImportOptions, PurgeOptions, PurgeReason, PurgeScope,
};
use grainstore_interop::archive::{ArchiveWriter, Limits};
use serde_json::json;

use crate::camera::Camera;
use crate::kit::{AGENT, Made, NOW, PERSON, Read, id, read, record, with};
use crate::purge::secretive;

const DAY: i64 = 86_400_000;

/// A store whose imports are watched, and room for archives.
pub(crate) struct Watched {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) camera: Arc<Camera>,
    pub(crate) session: Session,
}

impl Watched {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (at, copies) = (dir.path().join("store"), dir.path().join("copies"));
        let camera = Camera::of(&at, &copies, NOW);
        let options = OpenOptions::new().create(true).clock(Arc::clone(&camera) as _);
        let session = Store::open(&at, &options).unwrap().session(SessionOptions::default());
        Self { dir, camera, session }
    }

    /// The stores that an import leaves if it is killed.
    pub(crate) fn cut_off(&self, path: &Path) -> Vec<PathBuf> {
        let copies = self.camera.during(|| import(&self.session, path));
        assert!(copies.len() >= 3, "{}", copies.len());
        copies
    }
}

pub(crate) fn reopened(copy: &Path) -> Session {
    Camera::open(copy, NOW + DAY)
}

pub(crate) fn import(session: &Session, path: &Path) -> alf::ImportReport {
    let report = alf::import(session, path, &ImportOptions::default(), &Monitor::default());
    let report = report.unwrap();
    assert_eq!(report.errors, []);
    report
}

pub(crate) fn export(session: &Session, path: &Path) -> Read {
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

/// What a purge tells, but for its id and times.
fn told(path: &Path) -> serde_json::Value {
    let text = std::fs::read_to_string(path).unwrap();
    let mut last: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    for name in ["purge_id", "requested_at", "completed_at"] {
        assert!(last.as_object_mut().unwrap().remove(name).is_some());
    }
    last
}

#[test]
fn the_record_of_a_purge_that_was_cut_off_tells_of_all_that_it_took() {
    let scopes = [
        PurgeScope::Records(vec![id(2), id(1)]),
        PurgeScope::User(PERSON.into()),
        PurgeScope::Agent,
    ];
    for scope in scopes {
        let watched = Watched::new();
        import(&watched.session, &secretive().write(watched.dir.path(), "a.alf"));
        let mut asked = PurgeOptions::new(PurgeReason::GdprArticle17, PERSON);
        let purge = |session: &Session, asked: &PurgeOptions| {
            alf::purge(session, &scope, asked, &Monitor::default()).unwrap()
        };
        let whole = watched.dir.path().join("whole.jsonl");
        asked.audit_file = Some(whole.clone());
        let copies = watched.camera.during(|| purge(&watched.session, &asked));
        assert!(told(&whole)["records_removed"].as_u64().unwrap() > 0);
        let mut seen = 0;
        for copy in copies {
            let session = reopened(&copy);
            let audit = copy.with_extension("jsonl");
            // Once nothing is kept of the purge any more, its record is written.
            let range = RowRange::BytesAfter(None);
            let begun = session.rows("alf", 3, &range, 10).unwrap().rows.len();
            if begun == 0 && seen > 0 {
                continue;
            }
            seen += begun;
            // A line that a crash broke off.
            std::fs::write(&audit, "{\"purge_id\": \"01").unwrap();
            asked.audit_file = Some(audit.clone());
            purge(&session, &asked);
            assert_eq!(told(&audit), told(&whole), "{copy:?}");
            assert_eq!(std::fs::read_to_string(&audit).unwrap().lines().count(), 2);
            assert_eq!(session.store().verify(true).unwrap().problems, []);
        }
        assert!(seen > 3);
    }
}

#[test]
fn the_record_of_a_purge_of_a_file_is_not_lost_behind_its_last_step() {
    let dir = tempfile::tempdir().unwrap();
    let path = secretive().write(dir.path(), "a.alf");
    let audit = dir.path().join("audit.jsonl");
    let mut asked = PurgeOptions::new(PurgeReason::GdprArticle17, PERSON);
    asked.audit_file = Some(audit.clone());
    let purge = |numbers: &[u32], to: &Path, asked: &PurgeOptions| {
        let progress = |_, _| {
            // While the new file is written, something takes the place of the audit file.
            if asked.audit_file.as_ref() == Some(&audit) && audit.is_file() && numbers == [2] {
                std::fs::remove_file(&audit).unwrap();
                std::fs::create_dir(&audit).unwrap();
            }
        };
        let ids: Vec<_> = numbers.iter().map(|number| id(*number)).collect();
        let monitor = Monitor { progress: Some(&progress), ..Monitor::default() };
        alf::purge_archive(&path, to, &ids, EpochMs::new(NOW), asked, Limits::default(), &monitor)
    };
    let mut whole = asked.clone();
    whole.audit_file = Some(dir.path().join("whole.jsonl"));
    purge(&[2], &dir.path().join("other.alf"), &whole).unwrap();
    assert!(purge(&[2], &path, &asked).is_err(), "the record cannot be written");
    assert!(!read(&path).records.contains_key(&id(2)));
    std::fs::remove_dir(&audit).unwrap();
    // Another purge writes it down first; the same one only writes it down.
    for (numbers, lines) in [(vec![1], 2), (vec![2], 1)] {
        let copy = dir.path().join("copy.alf");
        std::fs::copy(&path, &copy).unwrap();
        let kept = std::fs::read(dir.path().join("audit.jsonl.begun")).unwrap();
        let silent = Monitor::default();
        let ids: Vec<_> = numbers.iter().map(|number| id(*number)).collect();
        let now = EpochMs::new(NOW);
        let done = alf::purge_archive(&path, &path, &ids, now, &asked, Limits::default(), &silent)
            .unwrap();
        assert_eq!(done.records_removed, 1);
        let text = std::fs::read_to_string(&audit).unwrap();
        assert_eq!(text.lines().count(), lines);
        let first = dir.path().join("first.jsonl");
        std::fs::write(&first, text.lines().next().unwrap()).unwrap();
        assert_eq!(told(&first), told(&dir.path().join("whole.jsonl")));
        assert!(!dir.path().join("audit.jsonl.begun").exists());
        std::fs::rename(&copy, &path).unwrap();
        std::fs::write(dir.path().join("audit.jsonl.begun"), kept).unwrap();
        std::fs::remove_file(&audit).unwrap();
    }
}

#[test]
fn a_purge_that_was_cut_off_leaves_the_other_lines_of_a_sealed_partition_as_they_are() {
    let watched = Watched::new();
    // The bytes are not those that would be written here.
    let lines = (1..4).map(|number| {
        let text = record(number, "2026-01-02T00:00:00Z").to_string();
        text.replace(",\"", ", \"") + "\n"
    });
    let lines: Vec<String> = lines.collect();
    let manifest = json!({
        "alf_version": "1.0.0", "created_at": "2026-08-01T00:00:00Z",
        "agent": {"id": AGENT, "name": "Ada", "source_runtime": "openclaw"},
        "sync": {"last_sequence": 7},
        "layers": {"memory": {"record_count": 3, "index_file": "memory/index.json", "partitions": [
            {"file": "memory/partitions/2026-Q1.jsonl", "from": "2026-01-01", "to": "2026-03-31",
             "record_count": 3, "sealed": true}]}},
    });
    let path = watched.dir.path().join("a.alf");
    let mut writer = ArchiveWriter::create(&path).unwrap();
    writer.add("manifest.json", manifest.to_string().as_bytes()).unwrap();
    writer.add("memory/partitions/2026-Q1.jsonl", lines.concat().as_bytes()).unwrap();
    writer.finish().unwrap();
    import(&watched.session, &path);
    let asked = PurgeOptions::new(PurgeReason::GdprArticle17, PERSON);
    let scope = PurgeScope::Records(vec![id(2)]);
    let purge = |session: &Session| {
        alf::purge(session, &scope, &asked, &Monitor::default()).unwrap();
    };
    let left = format!("{}{}", lines[0], lines[2]);
    let copies = watched.camera.during(|| purge(&watched.session));
    assert!(copies.len() > 4);
    for copy in copies {
        let session = reopened(&copy);
        purge(&session);
        let out = export(&session, &watched.dir.path().join("out.alf"));
        let kept = &out.partitions["memory/partitions/2026-Q1.jsonl"];
        assert_eq!(String::from_utf8_lossy(kept), left, "{copy:?}");
    }
}
