//! An index that does not belong to the truth beside it is never believed.

#![expect(clippy::unwrap_used, reason = "a test may stop at a surprise")]

use std::fs;

use grainstore::cal::{Predicate, Query};
use grainstore::format::{BeliefBuilder, EpochMs, Grain};
use grainstore::{OpenOptions, PageOptions, Session, SessionOptions, Store};
use tempfile::TempDir;

fn belief(subject: &str) -> Grain {
    BeliefBuilder::new(EpochMs::new(1000), subject, "is", "here", 1.0).build().unwrap()
}

fn open(dir: &TempDir, name: &str) -> (Store, Session) {
    let store = Store::open(dir.path().join(name), &OpenOptions::new().create(true)).unwrap();
    let session = store.session(SessionOptions::default());
    (store, session)
}

/// Histories that part and meet again: the last grain of both is the same, at the same place.
#[test]
fn an_index_of_another_history_that_ends_alike_is_built_again() {
    let dir = tempfile::tempdir().unwrap();
    let (store, session) = open(&dir, "ours");
    session.put(belief("common")).unwrap();
    store.backup(dir.path().join("theirs")).unwrap();
    let ours = session.put(belief("ours")).unwrap().address();
    session.put(belief("last")).unwrap();
    store.close().unwrap();
    let (store, session) = open(&dir, "theirs");
    let theirs = session.put(belief("theirs")).unwrap().address();
    session.put(belief("last")).unwrap();
    store.close().unwrap();

    let index = |name: &str| dir.path().join(name).join("index.redb");
    fs::copy(index("theirs"), index("ours")).unwrap();
    let (store, session) = open(&dir, "ours");
    assert!(session.exists(&ours).unwrap());
    assert!(!session.exists(&theirs).unwrap());
    assert!(session.put(belief("ours")).unwrap().is_duplicate());
    let asked = |subject: &str| {
        let query = Query::default().when(Predicate::text_is("subject", subject).unwrap());
        session.query(&query, &PageOptions::first(9)).unwrap().results.len()
    };
    assert_eq!(["ours", "theirs", "last"].map(asked), [1, 0, 1]);
    assert!(store.verify(true).unwrap().ok);
}

/// What is damaged in the truth is no fault of the index.
#[test]
fn a_damaged_last_grain_does_not_cost_the_index() {
    let dir = tempfile::tempdir().unwrap();
    let (store, session) = open(&dir, "store");
    let first = session.put(belief("first")).unwrap().address();
    let last = session.put(belief("lastmarker")).unwrap().address();
    store.close().unwrap();
    let truth = dir.path().join("store").join("grains.redb");
    let mut bytes = fs::read(&truth).unwrap();
    let marker = b"lastmarker";
    let places: Vec<usize> = bytes
        .windows(marker.len())
        .enumerate()
        .filter_map(|(at, window)| (window == marker).then_some(at))
        .collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at] ^= 1;
    }
    fs::write(&truth, bytes).unwrap();
    let (_store, session) = open(&dir, "store");
    assert!(session.get(&first).is_ok());
    assert_eq!(session.get(&last).map_err(|error| error.code()).err(), Some("ERR_INTEGRITY"));
}
