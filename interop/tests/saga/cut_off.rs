//! Imports that are killed at any moment: what they leave, and what comes after them.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use grainstore::prelude::*;
use grainstore::{Clock, EpochMs, EraseOptions};
use grainstore_interop::archive::Limits;
use grainstore_interop::saga::{
    Container, Document, ExportOptions, ExportType, ImportOptions, Signer, erase_agent,
    export_container, import_container, import_document, stored_document,
};
use serde_json::json;

use crate::camera::Camera;
use crate::export::{Setup, plain, read};
use crate::store::take;
use crate::support::*;

/// A clock that looks for a file with these bytes in the directory for temporary files.
#[derive(Debug)]
struct Watch(Vec<u8>, AtomicBool);

impl Clock for Watch {
    fn now(&self) -> EpochMs {
        let files = std::fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten();
        let files = files.filter(|file| {
            let is_small = file.metadata().is_ok_and(|it| it.is_file() && it.len() < 1 << 20);
            is_small && file.file_name().to_string_lossy().starts_with(".tmp")
        });
        let mut files = files.filter_map(|file| std::fs::read(file.path()).ok());
        if files.any(|bytes| bytes == self.0) {
            self.1.store(true, Ordering::SeqCst);
        }
        NOW
    }
}

#[test]
fn a_long_term_memory_lies_under_no_name_while_it_is_taken_in() {
    let setup = Setup::new();
    let tea = "a tea that no other test has";
    let grain = BeliefBuilder::new(setup.session.now(), "alice", "prefers", tea, 0.9);
    setup.session.put(grain.build().unwrap()).unwrap();
    let options = ExportOptions { grains: Some(Query::default()), ..plain(ExportType::Backup) };
    let path: PathBuf = setup.path("out.saga");
    export_container(&setup.session, &path, &options, &evm()).unwrap();
    let container = Container::open(&path, Limits::default()).unwrap();
    let watch = Arc::new(Watch(read(&container, "memory/longterm.bin"), AtomicBool::new(false)));
    let open = OpenOptions::new().create(true).clock(Arc::clone(&watch) as _);
    let store = Store::open(setup.path("other"), &open).unwrap();
    let other = store.session(SessionOptions::default());
    let report = import_container(&other, &path, &ImportOptions::default()).unwrap();
    assert!(report.grains.is_some());
    assert!(!watch.1.load(Ordering::SeqCst), "it lay in the directory for temporary files");
}

/// The document of the agent, whose tasks say this.
fn said(word: &str, at: &str) -> Document {
    let mut layers = full_layers();
    for task in layers["taskHistory"]["recentTasks"].as_array_mut().unwrap() {
        task["summary"] = json!(format!("{word} was bought"));
    }
    let mut value = envelope("full", layers);
    value["exportedAt"] = json!(at);
    signed(value, &evm())
}

/// A store whose imports are watched.
fn watched(dir: &tempfile::TempDir) -> (Session, Arc<Camera>) {
    let at = dir.path().join("store");
    let camera = Camera::of(&at, &dir.path().join("copies"), NOW.get());
    let options = OpenOptions::new().create(true).clock(Arc::clone(&camera) as _);
    (Store::open(&at, &options).unwrap().session(SessionOptions::default()), camera)
}

/// The texts of what is current.
fn current(session: &Session) -> Vec<String> {
    let found = session.query(&Query::default(), &PageOptions::first(1000)).unwrap().results;
    let mut found: Vec<_> = found
        .iter()
        .map(|one| serde_json::to_string(&one.grain.fields()).unwrap())
        .map(|text| text.chars().filter(|letter| !letter.is_ascii_digit()).collect())
        .collect();
    found.sort_unstable();
    found
}

#[test]
fn a_newer_document_after_a_cut_off_import_takes_the_place_of_what_that_wrote() {
    let dir = tempfile::tempdir().unwrap();
    let (session, camera) = watched(&dir);
    let (first, second) =
        (said("tea", "2026-03-20T09:00:00Z"), said("coffee", "2026-03-20T09:30:00Z"));
    let copies = camera.during(|| take(&session, &first));
    assert!(copies.len() >= 3);
    for copy in copies {
        let session = Camera::open(&copy, NOW.get());
        take(&session, &second);
        let texts = current(&session).join("\n");
        assert!(texts.contains("coffee was bought"));
        assert!(!texts.contains("tea was bought"), "{copy:?}");
        let again = take(&session, &second).items;
        assert_eq!((again.added, again.replaced), (0, 0));
        assert!(stored_document(&session, evm().wallet()).unwrap().unwrap() == second);
    }
}

#[test]
fn an_erasure_of_the_agent_finds_what_a_cut_off_import_wrote() {
    let dir = tempfile::tempdir().unwrap();
    let (session, camera) = watched(&dir);
    let first = said("tea", "2026-03-20T09:00:00Z");
    let mut copies = camera.during(|| take(&session, &first));
    let second = said("coffee", "2026-03-20T09:30:00Z");
    copies.extend(camera.during(|| take(&session, &second)));
    for copy in copies {
        let session = Camera::open(&copy, NOW.get());
        erase_agent(&session, evm().wallet(), "the agent asked", None).unwrap();
        assert_eq!(session.store().stats().unwrap().grains, 0, "{copy:?}");
        assert_eq!(session.store().verify(true).unwrap().problems, []);
    }
}

#[test]
fn an_item_that_a_cut_off_import_wrote_and_that_was_erased_stays_erased() {
    let dir = tempfile::tempdir().unwrap();
    let (session, camera) = watched(&dir);
    let copies = camera.during(|| take(&session, &said("tea", "2026-03-20T09:00:00Z")));
    let second = said("coffee", "2026-03-20T09:30:00Z");
    let mut erased = 0;
    for copy in copies {
        let session = Camera::open(&copy, NOW.get());
        let found = session.query(&Query::default(), &PageOptions::first(1000)).unwrap().results;
        let task = found.iter().find(|one| {
            serde_json::to_string(&one.grain.fields()).unwrap().contains("tea was bought")
        });
        let Some(task) = task else { continue };
        session.erase(&task.content_address, "a test", &EraseOptions::new()).unwrap();
        let refused = import_document(&session, &second, &ImportOptions::default());
        assert_eq!(refused.unwrap_err().code(), "ERR_ERASED", "{copy:?}");
        erased += 1;
    }
    assert!(erased >= 2);
}
