//! Lookups with a point of their own; `model_tests` compares all of them with a naive model.

use grainstore_format::{EpochMs, GrainType};

use super::*;
use crate::test_kit::{Note, Store};
use crate::{Facts, Posting, Sequence, Word};

fn sequences(store: &Store, scope: &Scope<'_>, shape: &Shape<'_>) -> Vec<u64> {
    let scan = store.reader().scan(scope, shape, TimeRange::default(), Order::Newest).unwrap();
    scan.map(|posting| posting.unwrap().sequence.get()).collect()
}

#[test]
fn the_latest_comes_first_by_time_then_by_sequence() {
    let mut store = Store::new();
    for (sequence, time) in [(1, 50), (2, 10), (3, 50), (4, 20)] {
        store.push(sequence, &Note::about("alice", "a", time).facts()).unwrap();
        if sequence == 2 {
            store.fold().unwrap();
        }
    }
    let subject = Shape::Subject("alice".into());
    assert_eq!(sequences(&store, &Scope::All, &subject), [3, 1, 4, 2]);
}

#[test]
fn tokens_are_found_by_tokens_only() {
    let mut store = Store::new();
    let facts = Facts {
        namespace: Word::Token([1; 32]),
        grain_type: GrainType::Belief,
        subject: Some(Word::Token([2; 32])),
        relation: Some(Word::Token([3; 32])),
        session: Some(Word::Token([4; 32])),
        tags: vec![Word::Token([5; 32])],
        time: EpochMs::new(1),
    };
    store.push(1, &facts).unwrap();
    let check = |store: &Store| {
        let scope = Scope::Exact(Word::Token([1; 32]));
        let (subject, relation) = (Word::Token([2; 32]), Word::Token([3; 32]));
        for shape in [
            Shape::All,
            Shape::Subject(subject),
            Shape::SubjectRelation(subject, relation),
            Shape::Session(Word::Token([4; 32])),
            Shape::Tag(Word::Token([5; 32])),
        ] {
            assert_eq!(sequences(store, &scope, &shape), [1], "{shape:?}");
            assert_eq!(sequences(store, &Scope::All, &shape), [1], "{shape:?}");
            let plain = Scope::Exact("shared".into());
            assert_eq!(sequences(store, &plain, &shape), [0; 0], "{shape:?}");
        }
        // the bytes of a token are not the bytes of a text
        let text = "\u{2}".repeat(32);
        assert_eq!(sequences(store, &scope, &Shape::Subject(Word::Plain(&text))), [0; 0]);
        assert_eq!(store.reader().subjects(&scope, "", 9).unwrap(), [""; 0]);
    };
    check(&store);
    store.fold().unwrap();
    check(&store);
}

#[test]
fn subjects_are_completed_within_their_scope() {
    let mut store = Store::new();
    let long = "al".repeat(200);
    let notes = [("alice", "a"), ("alina", "a:b"), ("bob", "a"), ("alf", "c"), (&long, "a")];
    for (sequence, (subject, namespace)) in (1..).zip(notes) {
        store.push(sequence, &Note::about(subject, namespace, 0).facts()).unwrap();
        if sequence == 2 {
            store.fold().unwrap();
        }
    }
    let a = Scope::Exact("a".into());
    for (scope, start, limit, expected) in [
        (a, "al", 9, vec!["alice"]),
        (a, "", 9, vec!["alice", "bob"]),
        (a, "alices", 9, vec![]),
        (Scope::Subtree("a"), "al", 9, vec!["alice", "alina"]),
        (Scope::All, "al", 9, vec!["alf", "alice", "alina"]),
        (Scope::All, "al", 2, vec!["alf", "alice"]),
        (Scope::All, "al", 0, vec![]),
    ] {
        let found = store.reader().subjects(&scope, start, limit).unwrap();
        assert_eq!(found, expected, "{scope:?} {start:?} {limit}");
    }
}

#[test]
fn a_scan_outlives_the_reader_and_keeps_its_snapshot() {
    let mut store = Store::new();
    store.push(1, &Note::about("alice", "a", 0).facts()).unwrap();
    store.fold().unwrap();
    let (tables, tail) = (&store.tables, store.tail.clone());
    let mut scan = {
        let reader = Reader::new(tables, &tail);
        let all = TimeRange::default();
        reader.scan(&Scope::All, &Shape::All, all, Order::Oldest).unwrap()
    };
    let txn = store.db.begin_write().unwrap();
    crate::reset(&txn).unwrap();
    txn.commit().unwrap();
    let posting = Posting { time: EpochMs::new(0), sequence: Sequence::new(1) };
    assert_eq!(scan.next().unwrap().unwrap(), posting);
    assert!(scan.next().is_none());
}
