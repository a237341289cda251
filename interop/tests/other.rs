//! A file that is given to the wrong reader is told by what it is, with what reads it.

#![expect(
    clippy::unwrap_used,
    reason = "a helper of tests, which the allowance for tests does not reach"
)]

use std::path::{Path, PathBuf};

use grainstore::prelude::*;
use grainstore_interop::archive::{ArchiveWriter, Limits};
use grainstore_interop::migrate::{self, Format, MigrateOptions};
use grainstore_interop::saga::{Container, Document};
use grainstore_interop::{Error, Monitor, alf};

const MEM0: &str =
    r#"{"results": [{"id": "1", "memory": "tea", "created_at": "2026-01-01T00:00:00Z"}]}"#;
const ALF: &str = r#"{"alf_version": "1.0.0", "created_at": "2026-01-01T00:00:00Z", "agent": {"id": "a"}, "layers": {}}"#;
const DELTA: &str = r#"{"alf_version": "1.0.0", "created_at": "2026-01-01T00:00:00Z", "agent": {"id": "a"}, "changes": {}}"#;
const SAGA: &str = r#"{"sagaVersion": "1.0", "documentId": "saga_a1", "layers": {}}"#;

struct Place {
    dir: tempfile::TempDir,
    session: Session,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = OpenOptions::new().create(true);
        let store = Store::open(dir.path().join("store"), &options).unwrap();
        let session = store.session(SessionOptions::default());
        let place = Self { dir, session };
        let markdown = [("raw/system/MEMORY.md", "Ann likes tea.")];
        place.zip("agent.alf", &[&[("manifest.json", ALF)], &markdown[..]].concat());
        place.zip("changes.alf-delta", &[&[("manifest.json", DELTA)], &markdown[..]].concat());
        place.zip(
            "aria.saga",
            &[("META", "{}"), ("agent.saga.json", SAGA), ("notes/system/a.md", "x")],
        );
        std::fs::create_dir_all(place.path("folder/below")).unwrap();
        std::fs::write(place.path("folder/below/a.txt"), "x").unwrap();
        for (name, text) in [
            ("mem.json", MEM0),
            ("aria.json", SAGA),
            ("pack.json", r#"{"schema_version": "1", "root_hash": "0", "steps": []}"#),
        ] {
            std::fs::write(place.path(name), text).unwrap();
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn zip(&self, name: &str, files: &[(&str, &str)]) {
        let mut writer = ArchiveWriter::create(self.path(name)).unwrap();
        for (name, text) in files {
            writer.add(name, text.as_bytes()).unwrap();
        }
        writer.finish().unwrap();
    }

    /// What a reader says of files: their names, words of the message, and of the hint.
    fn check(&self, read: impl Fn(&Path) -> Error, cases: &[(&str, &str, &str)]) {
        for (name, words, hint) in cases {
            let refused = read(&self.path(name));
            assert_eq!(refused.code(), "ERR_SCHEMA", "{name}: {refused}");
            assert!(refused.to_string().contains(words), "{name}: {refused}");
            assert!(refused.hint().contains(hint), "{name}: {refused}: {}", refused.hint());
        }
    }
}

#[test]
fn a_migration_refuses_what_other_commands_read() {
    let place = Place::new();
    let run = |format: Format, path: &Path| {
        let (options, monitor) = (MigrateOptions::default(), Monitor::default());
        migrate::run(&place.session, format, path, &options, &monitor)
    };
    let cases = [
        ("agent.alf", "an ALF archive", "alf import"),
        ("changes.alf-delta", "an ALF delta", "alf apply"),
        ("aria.saga", "a SAGA container", "saga import"),
        ("aria.json", "a SAGA document", "saga import"),
        ("pack.json", "an Evidence Pack", "ages verify"),
        ("store", "the directory of a store", "--store"),
    ];
    for format in Format::ALL.iter().filter(|format| **format != Format::Jsonl) {
        place.check(|path| run(*format, path).unwrap_err(), &cases);
    }
    place.check(|path| run(Format::Jsonl, path).unwrap_err(), &cases[5..]);
    assert_eq!(place.session.store().stats().unwrap().grains, 0);
}

#[test]
fn a_folder_without_a_file_of_a_format_is_refused() {
    let place = Place::new();
    for format in Format::ALL {
        let (options, monitor) = (MigrateOptions::default(), Monitor::default());
        let refused =
            migrate::run(&place.session, *format, &place.path("folder"), &options, &monitor);
        let refused = refused.unwrap_err();
        assert_eq!(refused.code(), "ERR_SCHEMA", "{format}");
        assert!(refused.to_string().contains("no file ."), "{format}: {refused}");
    }
}

#[test]
fn alf_tells_an_archive_a_delta_and_other_files_apart() {
    let place = Place::new();
    let options = alf::ImportOptions::default();
    let import =
        |path: &Path| alf::import(&place.session, path, &options, &Monitor::default()).unwrap_err();
    let apply = |path: &Path| {
        alf::apply_delta(&place.session, path, &options, &Monitor::default()).unwrap_err()
    };
    let others = [
        ("mem.json", "whose format is `mem0`", "migrate"),
        ("aria.saga", "a SAGA container", "saga import"),
        ("aria.json", "a SAGA document", "saga import"),
        ("folder", "it is a folder", "file"),
        ("store", "the directory of a store", "--store"),
    ];
    place.check(import, &[("changes.alf-delta", "an ALF delta", "alf apply")]);
    place.check(apply, &[("agent.alf", "an ALF archive", "alf import")]);
    place.check(import, &others);
    place.check(apply, &others);
    let found = alf::validate(place.path("mem.json"), Limits::default(), &Monitor::default());
    assert!(found.unwrap().errors[0].message.contains("`mem0`"));
    let folder = alf::validate(place.path("folder"), Limits::default(), &Monitor::default());
    let folder = folder.unwrap_err();
    assert!(folder.to_string().contains("folder") && !folder.hint().contains("disk"), "{folder}");
}

#[test]
fn saga_tells_other_files_by_what_they_are() {
    let place = Place::new();
    let others = [
        ("mem.json", "whose format is `mem0`", "migrate"),
        ("folder", "it is a folder", "file"),
        ("store", "the directory of a store", "--store"),
    ];
    place.check(|path| Document::read(path).unwrap_err(), &others);
    place.check(
        |path| Document::read(path).unwrap_err(),
        &[("agent.alf", "an ALF archive", "alf import")],
    );
    place.check(|path| Container::open(path, Limits::default()).unwrap_err(), &others);
    let document = Container::open(place.path("aria.json"), Limits::default()).unwrap_err();
    assert!(document.hint().contains("`document`"), "{document}");
    // What a container holds is told as before.
    let container = Document::read(place.path("aria.saga")).unwrap_err();
    assert!(container.hint().contains("unzip -p"), "{container}");
    let archive = Container::open(place.path("agent.alf"), Limits::default()).unwrap_err();
    assert!(archive.hint().contains("alf import"), "{archive}");
}
