//! Statuses are listed as they are set.

use grainstore_format::EpochMs;
use redb::ReadableDatabase;

use super::*;
use crate::posting::{Order, Sequence, Tie, TimeRange};
use crate::shape::{Scope, Shape};
use crate::test_kit::{Note, Store, code};
use VerificationStatus::{Contested, Retracted, Unverified, Verified};

/// A store with grains 1 in `a` and 2 in `b`, folded.
fn store_of_two() -> Store {
    let mut store = Store::new();
    store.push(1, &Note::about("alice", "a", 1).facts()).unwrap();
    store.push(2, &Note::about("alice", "b", 2).facts()).unwrap();
    store.fold().unwrap();
    store
}

fn posting(sequence: u64) -> Posting {
    let time = EpochMs::new(i64::try_from(sequence).unwrap());
    Posting { time, tie: Tie::FIRST, sequence: Sequence::new(sequence) }
}

fn set(
    store: &mut Store,
    (namespace, sequence): (&str, u64),
    from: VerificationStatus,
    to: VerificationStatus,
) -> bool {
    let txn = store.db.begin_write().unwrap();
    let known = set_status(&txn, namespace.into(), from, to, posting(sequence)).unwrap();
    txn.commit().unwrap();
    store.tables = crate::Tables::open(store.db.begin_read().unwrap());
    known
}

fn listed(store: &Store, scope: &Scope<'_>, status: VerificationStatus) -> Vec<u64> {
    let shape = Shape::Status(status);
    let scan = store.reader().scan(scope, &shape, TimeRange::default(), Order::Newest).unwrap();
    scan.map(|posting| posting.unwrap().sequence.get()).collect()
}

#[test]
fn a_grain_is_listed_under_the_status_it_was_given_last() {
    let mut store = store_of_two();
    let (all, a) = (Scope::All, Scope::Exact("a".into()));
    assert!(set(&mut store, ("a", 1), Unverified, Contested));
    assert!(set(&mut store, ("b", 2), Unverified, Contested));
    assert_eq!(listed(&store, &all, Contested), [2, 1]);
    assert_eq!(listed(&store, &a, Contested), [1]);
    assert!(set(&mut store, ("a", 1), Contested, Verified));
    let rows = store.dump();
    assert!(set(&mut store, ("a", 1), Contested, Verified));
    assert_eq!(store.dump(), rows, "moving again changes nothing");
    assert_eq!(listed(&store, &all, Contested), [2]);
    assert_eq!(listed(&store, &a, Verified), [1]);
    assert!(set(&mut store, ("a", 1), Verified, Unverified));
    for status in VerificationStatus::ALL {
        assert_eq!(listed(&store, &a, status), [0; 0], "{status:?}");
    }
    assert_eq!(listed(&store, &all, Retracted), [0; 0]);
}

#[test]
fn a_namespace_that_is_not_folded_is_not_known() {
    let mut store = store_of_two();
    store.push(3, &Note::about("alice", "c", 3).facts()).unwrap();
    assert!(!set(&mut store, ("c", 3), Unverified, Contested));
    store.fold().unwrap();
    assert!(set(&mut store, ("c", 3), Unverified, Contested));
    assert_eq!(listed(&store, &Scope::Subtree("c"), Contested), [3]);
}

#[test]
fn a_sequence_the_index_has_no_room_for_is_refused() {
    let store = store_of_two();
    let txn = store.db.begin_write().unwrap();
    let moved = set_status(&txn, "a".into(), Unverified, Verified, posting(1 << 32));
    assert_eq!(code(moved), "ERR_INTEGRITY");
}
