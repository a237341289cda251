//! Import: files come in whole or not at all, with the state they state, and past no policy.
#![expect(clippy::unwrap_used, reason = "a test stops at a surprise")]

use std::fs;
use std::path::{Path, PathBuf};

use grainstore::cal::Query;
use grainstore::format::BeliefBuilder;
use grainstore::format::container::Compression;
use grainstore::{
    EpochMs, Exporting, Grain, Importing, OpenOptions, Session, SessionOptions, Store,
};
use tempfile::TempDir;

fn store(dir: &Path, name: &str) -> Store {
    Store::open(dir.join(name), &OpenOptions::new().create(true)).unwrap()
}

fn operator(store: &Store) -> Session {
    store.session(SessionOptions::default())
}

fn belief(created_at: i64, object: &str) -> Grain {
    BeliefBuilder::new(EpochMs::new(created_at), "alice", "likes", object, 0.9).build().unwrap()
}

fn export(session: &Session, file: &Path) -> Vec<u8> {
    let how = Exporting { compression: Compression::None, ..Exporting::default() };
    session.export(file, &Query::default(), &how).unwrap();
    fs::read(file).unwrap()
}

#[test]
fn what_is_exported_comes_into_an_empty_store_as_it_was() {
    let dir = TempDir::new().unwrap();
    let from = store(dir.path(), "from");
    let session = operator(&from);
    let old = session.put(belief(1000, "tea")).unwrap().address();
    let new = session.supersede(&old, belief(2000, "coffee"), None).unwrap();
    session.contradict(&new, "no", None).unwrap();
    let other = session.put(belief(3000, "milk")).unwrap().address();
    session.hold(&other, "court").unwrap();
    let file = dir.path().join("all.mg");
    let bytes = export(&session, &file);

    let to = store(dir.path(), "to");
    let there = operator(&to);
    let imported = there.import([&file], &Importing::default()).unwrap();
    assert_eq!((imported.added, imported.duplicate, imported.refused), (3, 0, 0));
    assert_eq!(imported.conflict_count, 0, "{:?}", imported.conflicts);
    assert!(export(&there, &dir.path().join("again.mg")) == bytes);
    let verified = to.verify(true).unwrap();
    assert!(verified.ok, "{:?}", verified.problems);
    let again = there.import([&file], &Importing::default()).unwrap();
    assert_eq!((again.added, again.duplicate, again.refused), (0, 3, 0));
    assert_eq!(again.conflict_count, 0, "{:?}", again.conflicts);
    assert!(to.verify(true).unwrap().ok);
    let entries = to.stats().unwrap().audit_entries;
    assert_eq!(entries, 3, "genesis and two imports");
}
