//! Migrations that are killed at any moment, and what comes after them: the same call, an erasure, a newer dump.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use grainstore::cal::{Query, Visibility};
use grainstore::prelude::*;
use grainstore::{ContentAddress, EraseOptions};
use grainstore_interop::Monitor;
use grainstore_interop::migrate::{self, Format, MigrateOptions, MigrateReport, Undated};

use crate::camera::Camera;
use crate::kit::{Kit, Told};

const START: i64 = 1_786_788_000_000;
const DAY: i64 = 86_400_000;

/// A store whose migrations are watched.
struct Watched {
    kit: Kit,
    camera: Arc<Camera>,
}

impl Watched {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let camera = Camera::of(&dir.path().join("store"), &dir.path().join("copies"), START);
        let kit = Kit::within(dir, OpenOptions::new().clock(Arc::clone(&camera) as _));
        Self { kit, camera }
    }

    /// The stores that a migration leaves if it is killed.
    fn cut_off(&self, path: &Path) -> Vec<PathBuf> {
        let copies = self.camera.during(|| self.kit.run(Format::Mem0, path));
        assert!(copies.len() >= 3, "{}", copies.len());
        copies
    }
}

/// A dump of three memories.
fn dump(word: &str, dates: &str) -> String {
    let one =
        |id: u32| format!(r#"{{"id": "m{id}", "memory": "{word} {id}", "user_id": "ann"{dates}}}"#);
    format!(r#"{{"results": [{}, {}, {}]}}"#, one(1), one(2), one(3))
}

const FIRST: &str = r#", "created_at": "2026-01-02T09:00:00Z""#;
const SECOND: &str =
    r#", "created_at": "2026-01-02T09:00:00Z", "updated_at": "2026-02-02T09:00:00Z""#;
const THIRD: &str =
    r#", "created_at": "2026-01-02T09:00:00Z", "updated_at": "2026-03-02T09:00:00Z""#;

/// Runs a day later.
fn run(session: &Session, path: &Path, options: &MigrateOptions) -> MigrateReport {
    migrate::run(session, Format::Mem0, path, options, &Monitor::default()).unwrap()
}

fn reopened(copy: &Path) -> Session {
    Camera::open(copy, START + DAY)
}

/// The grains of a store, those that ended included.
fn grains(session: &Session, seeing: Visibility) -> Vec<(ContentAddress, String)> {
    let query = Query::default().seeing(seeing);
    let found = session.query(&query, &PageOptions::first(1000)).unwrap().results.into_iter();
    let mut found: Vec<_> = found
        .map(|one| (one.content_address, one.grain.text("object").unwrap_or_default().to_owned()))
        .collect();
    found.sort_by(|left, right| left.1.cmp(&right.1));
    found
}

fn texts(session: &Session) -> Vec<String> {
    grains(session, Visibility::default()).into_iter().map(|(_, text)| text).collect()
}

fn of(word: &str) -> [String; 3] {
    [1, 2, 3].map(|at| format!("{word} {at}"))
}

fn erase(session: &Session, address: &ContentAddress) {
    session.erase(address, "she asked", &EraseOptions::new()).unwrap();
}

#[test]
fn what_is_erased_after_a_cut_off_run_stays_erased() {
    let watched = Watched::new();
    let path = watched.kit.file("a.json", dump("tea", FIRST));
    for copy in watched.cut_off(&path) {
        let session = reopened(&copy);
        let stored = grains(&session, Visibility::default());
        for (address, _) in stored.iter().take(2) {
            erase(&session, address);
        }
        let mut options = MigrateOptions::default();
        let report = run(&session, &path, &options);
        let left = 3 - stored.len().min(2);
        assert_eq!((texts(&session).len(), report.left_out), (left, 3 - left as u64));
        options.return_erased = true;
        run(&session, &path, &options);
        assert_eq!(texts(&session), of("tea"));
        assert_eq!(session.store().verify(true).unwrap().problems, []);
    }
}

#[test]
fn a_newer_dump_after_a_cut_off_run_takes_the_place_of_what_that_wrote() {
    let watched = Watched::new();
    let path = watched.kit.file("a.json", dump("tea", FIRST));
    let newer = watched.kit.file("b.json", dump("coffee", SECOND));
    for copy in watched.cut_off(&path) {
        let session = reopened(&copy);
        run(&session, &newer, &MigrateOptions::default());
        assert_eq!(texts(&session), of("coffee"));
        let again = run(&session, &newer, &MigrateOptions::default());
        assert_eq!(again.unchanged, 3);
    }
}

#[test]
fn a_cut_off_change_blocks_no_later_dump() {
    let watched = Watched::new();
    watched.kit.run(Format::Mem0, &watched.kit.file("a.json", dump("tea", FIRST)));
    let path = watched.kit.file("b.json", dump("coffee", SECOND));
    let newest = watched.kit.file("c.json", dump("milk", THIRD));
    for copy in watched.cut_off(&path) {
        let session = reopened(&copy);
        let report = run(&session, &path, &MigrateOptions::default());
        assert_eq!((report.reasons(), texts(&session)), (Vec::new(), of("coffee").to_vec()));
        let report = run(&session, &newest, &MigrateOptions::default());
        assert_eq!((report.reasons(), report.changed), (Vec::new(), 3));
        assert_eq!(texts(&session), of("milk"));
        let report = run(&session, &path, &MigrateOptions::default());
        assert_eq!(report.left_out, 3, "it is older");
        assert_eq!(grains(&session, Visibility::EVERYTHING).len(), 9);
    }
    // Another one at once.
    let watched = Watched::new();
    watched.kit.run(Format::Mem0, &watched.kit.file("a.json", dump("tea", FIRST)));
    for copy in watched.cut_off(&path) {
        let session = reopened(&copy);
        let report = run(&session, &newest, &MigrateOptions::default());
        assert_eq!((report.reasons(), texts(&session)), (Vec::new(), of("milk").to_vec()));
    }
}

#[test]
fn a_second_cut_loses_nothing_of_the_first() {
    let watched = Watched::new();
    let path = watched.kit.file("a.json", dump("tea", FIRST));
    let newer = watched.kit.file("b.json", dump("coffee", SECOND));
    for copy in watched.cut_off(&path) {
        let copies = copy.with_extension("copies");
        let camera = Camera::of(&copy, &copies, START + DAY);
        let store = Store::open(&copy, &OpenOptions::new().clock(Arc::clone(&camera) as _));
        let session = store.unwrap().session(SessionOptions::default());
        for second in camera.during(|| run(&session, &newer, &MigrateOptions::default())) {
            let session = reopened(&second);
            run(&session, &newer, &MigrateOptions::default());
            assert_eq!(texts(&session), of("coffee"));
        }
    }
}

#[test]
fn undated_records_of_a_cut_off_run_are_there_once() {
    let mut watched = Watched::new();
    watched.kit.options.undated = Undated::ImportTime;
    let path = watched.kit.file("a.json", dump("tea", ""));
    for copy in watched.cut_off(&path) {
        let session = reopened(&copy);
        let report = run(&session, &path, &watched.kit.options);
        assert_eq!((report.added + report.unchanged, texts(&session)), (3, of("tea").to_vec()));
    }
}

#[test]
fn erased_records_that_a_cut_off_run_brings_back_are_there_once() {
    let mut watched = Watched::new();
    let path = watched.kit.file("a.json", dump("tea", FIRST));
    watched.kit.run(Format::Mem0, &path);
    for (address, _) in grains(&watched.kit.session, Visibility::default()) {
        erase(&watched.kit.session, &address);
    }
    watched.kit.options.return_erased = true;
    for copy in watched.cut_off(&path) {
        let session = reopened(&copy);
        let came = texts(&session).len();
        let report = run(&session, &path, &MigrateOptions::default());
        assert_eq!(
            (report.added, report.left_out),
            (0, 3 - came as u64),
            "what did not come is erased"
        );
        assert_eq!(run(&session, &path, &watched.kit.options).added, 3 - came as u64);
        assert_eq!(texts(&session), of("tea"));
    }
}

#[test]
fn a_history_that_is_cut_off_goes_on_and_ends() {
    let rows = [
        r#"{"id": "h1", "memory_id": "m1", "new_memory": "tea", "event": "ADD", "created_at": "2025-01-05T00:00:00Z"}"#,
        r#"{"id": "h2", "memory_id": "m1", "old_memory": "tea", "new_memory": "green tea", "event": "UPDATE", "created_at": "2025-01-05T00:00:00Z", "updated_at": "2025-06-01T00:00:00Z"}"#,
        r#"{"id": "h3", "memory_id": "m1", "old_memory": "green tea", "new_memory": "white tea", "event": "UPDATE", "created_at": "2025-01-05T00:00:00Z", "updated_at": "2025-06-02T00:00:00Z"}"#,
        r#"{"id": "h4", "memory_id": "m1", "old_memory": "white tea", "event": "DELETE", "created_at": "2025-01-05T00:00:00Z", "updated_at": "2025-07-01T00:00:00Z"}"#,
    ];
    let mut watched = Watched::new();
    let kit = &mut watched.kit;
    kit.options.user = Some("ann".into());
    let longer = MigrateOptions {
        user: Some("ann".into()),
        beside: Some(kit.file("longer.jsonl", rows.join("\n"))),
        ..MigrateOptions::default()
    };
    kit.options.beside = Some(kit.file("long.jsonl", rows[..3].join("\n")));
    let path = kit.file("a.json", r#"{"results": []}"#);
    for copy in watched.cut_off(&path) {
        let session = reopened(&copy);
        let report = run(&session, &path, &watched.kit.options);
        assert_eq!(report.reasons(), [""; 0]);
        assert_eq!(texts(&session), ["white tea"]);
        let report = run(&session, &path, &longer);
        assert_eq!((report.ended, texts(&session)), (1, Vec::new()));
        assert_eq!(grains(&session, Visibility::EVERYTHING).len(), 3);
    }
    let watched = Watched::new();
    let path = watched.kit.file("a.json", r#"{"results": []}"#);
    let copies = watched.camera.during(|| run(&watched.kit.session, &path, &longer));
    for copy in copies {
        let session = reopened(&copy);
        let report = run(&session, &path, &longer);
        assert_eq!((report.reasons(), texts(&session)), (Vec::new(), Vec::new()));
        assert_eq!(grains(&session, Visibility::EVERYTHING).len(), 3);
        assert_eq!(run(&session, &path, &longer).unchanged, 1);
    }
}
