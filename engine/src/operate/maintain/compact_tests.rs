//! Compaction step by step: the files a crash leaves after each step, and readers of the old file.

use std::fs;
use std::path::Path;

use redb::ReadableDatabase;
use tempfile::TempDir;

use crate::base::error::Result;
use crate::disk::database::{DatabaseFile, DatabaseHandle, DatabaseOptions};
use crate::disk::directory;
use crate::format::{BeliefBuilder, EpochMs};
use crate::operate::maintain::copy::{Fingerprint, fingerprint};
use crate::{OpenOptions, SessionOptions, Store};

const CACHE_BYTES: usize = 1 << 20;

fn filled(dir: &Path) -> Store {
    let store = Store::open(dir, &OpenOptions::new().create(true)).unwrap();
    let session = store.session(SessionOptions::default());
    for number in 0..40 {
        let object = number.to_string();
        let grain =
            BeliefBuilder::new(EpochMs::new(number), "alice", "counts", object.as_str(), 1.0);
        session.put(grain.build().unwrap()).unwrap();
    }
    store
}

fn source(dir: &Path) -> DatabaseHandle {
    let opening = DatabaseOptions::new(CACHE_BYTES);
    let file = directory::truth_path(dir);
    let db = opening.builder().open(&file).unwrap();
    DatabaseHandle::from_file(db, DatabaseFile::from_canonical(file, &opening).unwrap())
}

/// Opens and verifies a store on a copy of these files, and returns its contents.
fn after_a_crash(dir: &Path) -> Fingerprint {
    let crashed = TempDir::new().unwrap();
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), crashed.path().join(entry.file_name())).unwrap();
    }
    let store = Store::open(crashed.path(), &OpenOptions::new()).unwrap();
    let verified = store.verify(true).unwrap();
    assert_eq!(verified.problems, []);
    assert_eq!(directory::leftovers(crashed.path()).unwrap(), Vec::<std::path::PathBuf>::new());
    let view = store.inner().view().unwrap();
    fingerprint(view.transaction()).unwrap()
}

#[test]
fn a_crash_after_any_step_leaves_one_whole_store() {
    let dir = TempDir::new().unwrap();
    filled(dir.path()).close().unwrap();
    let mut source = source(dir.path());
    let whole = fingerprint(&source.begin_read().unwrap()).unwrap();
    assert_eq!(after_a_crash(dir.path()), whole, "before");
    source.make_copy().unwrap();
    assert_eq!(after_a_crash(dir.path()), whole, "copied");
    let copy = directory::truth_path(dir.path()).with_extension("redb.new");
    let bytes = fs::read(&copy).unwrap();
    for share in 0..8 {
        // An incomplete copy, truncated at some point.
        fs::write(&copy, &bytes[..bytes.len() * share / 8]).unwrap();
        assert_eq!(after_a_crash(dir.path()), whole, "{share} eighths copied");
    }
    fs::write(&copy, &bytes).unwrap();
    source.rename_copy().unwrap();
    assert_eq!(after_a_crash(dir.path()), whole, "renamed");
    source.switch_to_copy().unwrap();
    assert_eq!(after_a_crash(dir.path()), whole, "taken");
    drop(source);
    assert_eq!(after_a_crash(dir.path()), whole, "closed");
}

#[test]
fn a_copy_that_cannot_take_over_ends_nothing_but_itself() {
    let dir = TempDir::new().unwrap();
    filled(dir.path()).close().unwrap();
    let mut source = source(dir.path());
    for step in [DatabaseHandle::rename_copy, DatabaseHandle::switch_to_copy] {
        let refused: Result<()> = step(&mut source);
        assert_eq!(refused.map_err(|error| error.code()), Err("ERR_IO"), "there is no copy yet");
    }
    source.make_copy().unwrap();
    fs::remove_file(source.database_file().unwrap().copy_path()).unwrap();
    assert_eq!(source.rename_copy().map_err(|error| error.code()), Err("ERR_IO"));
    assert_eq!(
        source.switch_to_copy().map_err(|error| error.code()),
        Err("ERR_IO"),
        "it is given up"
    );
    drop(source);
    after_a_crash(dir.path());
}

#[test]
fn a_file_that_is_to_be_overwritten_and_is_read_from_lets_no_other_take_its_place() {
    let dir = TempDir::new().unwrap();
    filled(dir.path()).close().unwrap();
    let mut source = source(dir.path());
    let exchange = |source: &mut DatabaseHandle| {
        source.shred_next_replaced();
        source.make_copy()?;
        source.rename_copy()?;
        source.switch_to_copy()
    };
    let read = source.lease(source.begin_read().unwrap());
    let whole = fingerprint(&read).unwrap();
    exchange(&mut source).unwrap();
    source.close_unread();
    assert_eq!(exchange(&mut source).map_err(|error| error.code()), Err("ERR_BUSY"));
    assert_eq!(fingerprint(&read).unwrap(), whole);
    drop(read);
    source.close_unread();
    exchange(&mut source).unwrap();
    source.close_unread();
    assert!(!source.has_replaced());
    drop(source);
    assert_eq!(after_a_crash(dir.path()), whole);
}

#[test]
fn a_view_taken_before_a_compaction_reads_on_after_it() {
    let dir = TempDir::new().unwrap();
    let store = filled(dir.path());
    let before = store.inner().view().unwrap();
    let whole = fingerprint(before.transaction()).unwrap();
    for _ in 0..3 {
        store.compact().unwrap();
        let between = store.inner().view().unwrap();
        store.reindex().unwrap();
        assert_eq!(fingerprint(between.transaction()).unwrap(), whole);
    }
    assert_eq!(fingerprint(before.transaction()).unwrap(), whole);
    let found = before.addresses_with_prefix(&[], None, 100).unwrap();
    assert_eq!(found.len(), 40);
    for address in found {
        assert!(before.row(&address).unwrap().is_some());
    }
    drop(before);
    assert!(store.verify(true).unwrap().ok);
}

/// Number of open files without a name that were in this directory.
#[cfg(target_os = "linux")]
fn open_without_a_name(dir: &Path) -> usize {
    let open = fs::read_dir("/proc/self/fd").unwrap();
    let files = open.filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
    files
        .filter(|file| file.starts_with(dir) && file.to_str().unwrap().ends_with("(deleted)"))
        .count()
}

#[cfg(target_os = "linux")]
#[test]
fn a_compaction_and_a_reindex_give_the_disk_back() {
    let dir = TempDir::new().unwrap();
    let store = filled(dir.path());
    store.compact().unwrap();
    assert_eq!(open_without_a_name(dir.path()), 0, "compacted");
    store.reindex().unwrap();
    assert_eq!(open_without_a_name(dir.path()), 0, "built again");
}

#[cfg(target_os = "linux")]
#[test]
fn the_disk_comes_back_when_the_last_reader_of_the_old_files_has_ended() {
    let dir = TempDir::new().unwrap();
    let store = filled(dir.path());
    let before = store.inner().view().unwrap();
    store.compact().unwrap();
    assert_eq!(open_without_a_name(dir.path()), 2);
    drop(before);
    // Without any request: the fold worker notices by itself.
    while open_without_a_name(dir.path()) > 0 {
        std::thread::yield_now();
    }
}

#[test]
fn every_table_of_a_store_can_be_copied() {
    let dir = TempDir::new().unwrap();
    filled(dir.path()).close().unwrap();
    for file in [directory::truth_path(dir.path()), directory::index_path(dir.path())] {
        let db = redb::Database::open(&file).unwrap();
        let txn = db.begin_read().unwrap();
        for name in super::copy::table_names(&txn).unwrap() {
            assert!(super::any_table::open_table(&txn, &name).unwrap().is_some(), "{name}");
        }
    }
}

#[test]
fn a_table_of_other_types_is_refused_and_not_left_behind() {
    let dir = TempDir::new().unwrap();
    let opening = DatabaseOptions::new(CACHE_BYTES);
    let db = opening.builder().create(dir.path().join("other.redb")).unwrap();
    let txn = db.begin_write().unwrap();
    txn.open_table(redb::TableDefinition::<i16, f64>::new("odd")).unwrap();
    txn.commit().unwrap();
    let file = dir.path().join("copy.redb");
    let copied = super::copy::copy_to(&file, &db.begin_read().unwrap(), &opening);
    assert_eq!(copied.map_err(|error| error.code()).err(), Some("ERR_STORE_VERSION"));
    assert!(!file.exists());
}
