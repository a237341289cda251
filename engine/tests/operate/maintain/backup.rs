//! A backup is a whole store of one moment, made while writers go on.

use std::fs;

use grainstore::{OpenOptions, Store};
use tempfile::TempDir;

use crate::maintain::kit::{answers, belief, filled, names, open, operator};

fn code<T>(result: grainstore::Result<T>) -> &'static str {
    result.map_or_else(|error| error.code(), |_| "OK")
}

#[test]
fn a_backup_opens_and_answers_as_its_store() {
    let (_dir, store) = filled(200);
    let to = TempDir::new().unwrap();
    let to = to.path().join("a/b/copy.grains");
    let backup = store.backup(&to).unwrap();
    let stats = store.stats().unwrap();
    assert_eq!((backup.grains, backup.audit_entries), (stats.grains, stats.audit_entries));
    assert_eq!(backup.bytes, fs::metadata(to.join("grains.redb")).unwrap().len());
    assert_eq!(names(&to), ["LOCK", "grains.redb"].map(String::from).into());
    let copy = open(&to);
    assert!(!copy.was_created());
    assert_eq!(answers(&copy), answers(&store));
    assert!(copy.verify(true).unwrap().ok);
}

#[test]
fn a_backup_is_of_one_moment_though_writers_go_on() {
    let (_dir, store) = filled(20);
    let to = TempDir::new().unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for number in 0..300 {
                let grain = belief("new", &format!("{number}"), number).build().unwrap();
                operator(&store).put(grain).unwrap();
            }
        });
        for round in 0..5 {
            let to = to.path().join(round.to_string());
            let before = news(&store);
            let backup = store.backup(&to).unwrap();
            let copy = open(&to);
            assert_eq!(copy.stats().unwrap().grains, backup.grains);
            assert!((before..=news(&store)).contains(&news(&copy)));
            assert!(copy.verify(true).unwrap().ok);
        }
        writer.join().unwrap();
    });
    assert_eq!(news(&store), 300);
}

fn news(store: &Store) -> usize {
    operator(store).history_of("new", "prefers", None, None).unwrap().len()
}

#[test]
fn a_directory_with_something_in_it_is_left_alone() {
    let (dir, store) = filled(5);
    let taken = TempDir::new().unwrap();
    fs::write(taken.path().join("mine"), "text").unwrap();
    assert_eq!(code(store.backup(taken.path())), "ERR_CONFLICT");
    assert_eq!(names(taken.path()), ["mine".to_owned()].into());
    let before = names(dir.path());
    assert_eq!(code(store.backup(dir.path())), "ERR_CONFLICT");
    assert_eq!(names(dir.path()), before);
    assert_eq!(code(store.backup(taken.path().join("mine"))), "ERR_IO");
    assert_eq!(code(store.backup("")), "ERR_NOT_FOUND");
    let empty = TempDir::new().unwrap();
    store.backup(empty.path()).unwrap();
    assert_eq!(code(store.backup(empty.path())), "ERR_CONFLICT");
}

#[test]
fn a_backup_that_fails_leaves_nothing() {
    let (_dir, store) = filled(5);
    let to = TempDir::new().unwrap();
    // A name beyond what a file system takes.
    let long = to.path().join("a").join("x".repeat(400));
    assert_eq!(code(store.backup(&long)), "ERR_IO");
    assert_eq!(names(to.path()).len(), 0);
    store.close().unwrap();
    assert_eq!(code(store.backup(to.path().join("closed"))), "ERR_IO");
    assert_eq!(names(to.path()).len(), 0);
}

#[test]
fn a_backup_into_a_store_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::open(&path, &OpenOptions::new().create(true)).unwrap();
    for name in ["grains.redb.new", "index.redb.new", "below/deeper"] {
        let refused = store.backup(path.join(name)).map_err(|error| error.code());
        assert_eq!(refused.err(), Some("ERR_CONFLICT"), "{name}");
        assert!(!path.join(name).exists(), "{name}");
    }
    store.compact().unwrap();
}

#[test]
fn what_a_backup_that_was_cut_short_left_does_not_keep_the_next_one_from_its_directory() {
    let (_dir, store) = filled(30);
    let to = TempDir::new().unwrap();
    fs::write(to.path().join("LOCK"), "").unwrap();
    fs::write(to.path().join("grains.redb.new"), "half a database").unwrap();
    fs::create_dir(to.path().join("reads")).unwrap();
    fs::write(to.path().join("reads").join("half"), "a read log").unwrap();
    store.backup(to.path()).unwrap();
    let names_of = names(to.path());
    assert!(names_of.contains("grains.redb") && !names_of.contains("grains.redb.new"));
    assert!(!to.path().join("reads").join("half").exists());
    assert_eq!(answers(&open(to.path())), answers(&store));
    // A read log without an unfinished truth may be all that is left of a store.
    let kept = TempDir::new().unwrap();
    fs::create_dir(kept.path().join("reads")).unwrap();
    assert_eq!(code(store.backup(kept.path())), "ERR_CONFLICT");
    // Somebody is at work there.
    let busy = TempDir::new().unwrap();
    fs::write(busy.path().join("grains.redb.new"), "theirs").unwrap();
    let lock = fs::File::create(busy.path().join("LOCK")).unwrap();
    lock.try_lock().unwrap();
    assert_eq!(code(store.backup(busy.path())), "ERR_BUSY");
    assert_eq!(fs::read(busy.path().join("grains.redb.new")).unwrap(), b"theirs");
}
