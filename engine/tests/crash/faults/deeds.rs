//! What is tried on a disk that fails.

use std::fs;

use grainstore::cal::Query;
use grainstore::{
    EraseOptions, ExportOptions, ImportOptions, MasterKey, OpenOptions, SessionOptions, Store,
};

use super::world::{Attempt, files_in};

pub(crate) struct Deed {
    pub(crate) name: &'static str,
    pub(crate) is_encrypted: bool,
    /// Done while the disk fails; the store is closed behind it.
    pub(crate) act: fn(&mut Attempt, &Store),
    /// What must be so beside the store.
    pub(crate) examine: fn(&Attempt),
}

pub(crate) const DEEDS: [Deed; 11] = [
    of("put and flush", false, flush, nothing),
    of("put and flush, encrypted", true, flush, nothing),
    of("erase and scrub", false, erase, nothing),
    of("erase and scrub, encrypted", true, erase, nothing),
    of("compact", false, compact, nothing),
    of("compact, encrypted", true, compact, nothing),
    of("backup", false, backup, backup_is_whole_or_can_be_made),
    of("backup, encrypted", true, backup, backup_is_whole_or_can_be_made),
    of("rotate the master key", true, rotate, nothing),
    of("rotate the key of a user", true, rotate_user, nothing),
    of("export", false, export, export_is_whole_or_not_there),
];

const fn of(
    name: &'static str,
    is_encrypted: bool,
    act: fn(&mut Attempt, &Store),
    examine: fn(&Attempt),
) -> Deed {
    Deed { name, is_encrypted, act, examine }
}

fn nothing(_: &Attempt) {}

fn flush(attempt: &mut Attempt, store: &Store) {
    attempt.put_one(store);
    attempt.is_done(store.flush());
}

fn erase(attempt: &mut Attempt, store: &Store) {
    let operator = store.session(SessionOptions::default());
    let erased = operator.erase_user("ann", "ann asked", &EraseOptions::new().now(true));
    // One that failed is in doubt.
    let failure = erased.as_ref().ok().and_then(|erased| erased.scrub_failure.as_ref());
    let code = failure.map(grainstore::Error::code);
    assert!(matches!(code, None | Some("ERR_IO")), "{}: {code:?}", attempt.what());
    attempt.is_erased = attempt.is_done(erased).then_some(true);
}

fn compact(attempt: &mut Attempt, store: &Store) {
    attempt.is_done(store.compact());
    attempt.put_one(store);
}

fn backup(attempt: &mut Attempt, store: &Store) {
    let done = attempt.is_done(store.backup(attempt.dir.join("backup")));
    fs::write(attempt.dir.join("done"), if done { "yes" } else { "no" }).unwrap_or_default();
}

/// A backup that failed is not in the way of the next.
fn backup_is_whole_or_can_be_made(attempt: &Attempt) {
    let to = attempt.dir.join("backup");
    let what = attempt.what();
    if fs::read_to_string(attempt.dir.join("done")).is_ok_and(|done| done == "yes") {
        assert!(to.join("grains.redb").exists(), "{what}");
    } else if !to.join("grains.redb").exists() {
        let store = attempt.open(attempt.key);
        store.backup(&to).unwrap_or_else(|error| panic!("{what}: {error}"));
        store.close().unwrap();
    }
    let store = attempt.open_at(&to, attempt.key);
    attempt.check_backup(&store);
    store.close().unwrap();
}

fn rotate(attempt: &mut Attempt, store: &Store) {
    let rotated = store.rotate_key(MasterKey::new([2; 32]));
    attempt.is_done(rotated);
    // One that failed is in doubt: one of the two keys opens it.
    attempt.find_key = true;
}

fn rotate_user(attempt: &mut Attempt, store: &Store) {
    attempt.is_done(store.rotate_user_key("ann"));
    attempt.put_one(store);
}

fn export(attempt: &mut Attempt, store: &Store) {
    let operator = store.session(SessionOptions::default());
    let to = attempt.dir.join("out");
    if fs::create_dir(&to).is_err() {
        return;
    }
    let exported = operator.export(to.join("out.mg"), &Query::default(), &ExportOptions::default());
    attempt.is_done(exported);
}

fn export_is_whole_or_not_there(attempt: &Attempt) {
    let to = attempt.dir.join("out");
    if !to.exists() {
        return;
    }
    let what = attempt.what();
    let files = files_in(&to);
    let names = files.iter().all(|file| file.ends_with("out.mg"));
    assert!(names, "{what}: {files:?}");
    for file in files {
        let other = attempt.dir.join("other");
        let store = Store::open(&other, &OpenOptions::new().create(true)).unwrap();
        let operator = store.session(SessionOptions::default());
        let imported = operator.import([file], &ImportOptions::default());
        let imported = imported.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(imported.added >= 30, "{what}: {imported:?}");
        store.close().unwrap();
    }
}
