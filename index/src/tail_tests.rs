//! What a tail counts, refuses and keeps apart.

use super::*;
use crate::test_kit::{Note, Store, address, code};

#[test]
fn sequences_must_ascend_over_folds_too() {
    let mut store = Store::new();
    let note = Note::about("alice", "a", 0);
    store.push(5, &note.facts()).unwrap();
    for refused in [5, 4, 0] {
        assert_eq!(code(store.push(refused, &note.facts())), "ERR_INTEGRITY");
    }
    store.fold().unwrap();
    assert_eq!(code(store.push(5, &note.facts())), "ERR_INTEGRITY");
    store.push(9, &note.facts()).unwrap();
    let mark = Watermark { sequence: Sequence::new(9), address: address(9) };
    assert_eq!(store.tail.watermark(), Some(mark));
}

#[test]
fn a_tail_is_full_by_grains() {
    let mut store = Store::new();
    for sequence in 1..=4_096 {
        assert!(!store.tail.is_full(), "{sequence}");
        store.push(sequence, &Note::about("alice", "a", 0).facts()).unwrap();
    }
    assert!(store.tail.is_full());
    assert_eq!(store.tail.grains(), Tail::MAX_GRAINS);
    assert!(!store.tail.folded().is_full());
}

#[test]
fn a_tail_is_full_by_bytes() {
    let mut store = Store::new();
    let mut note = Note::about("alice", "a", 0);
    note.tags = (0..2).map(|n| n.to_string().repeat(4 << 20)).collect();
    store.push(1, &note.facts()).unwrap();
    assert!(store.tail.is_full(), "{}", store.tail.approx_bytes());
    assert_eq!(store.tail.folded().approx_bytes(), 0);
}

#[test]
fn a_repeated_tag_is_one_posting() {
    let mut store = Store::new();
    let mut note = Note::about("alice", "a", 0);
    note.tags = vec!["ui".to_owned(), "ui".to_owned()];
    store.push(1, &note.facts()).unwrap();
    assert_eq!(store.tail.postings().len(), 4, "namespace, type, subject, tag");
}

#[test]
fn a_clone_does_not_see_what_comes_later() {
    let mut store = Store::new();
    store.push(1, &Note::about("alice", "a", 0).facts()).unwrap();
    let (postings, terms) = (store.tail.postings().len(), store.tail.terms().len());
    let before = store.tail.clone();
    store.push(2, &Note::about("bob", "b", 0).facts()).unwrap();
    assert_eq!((before.postings().len(), before.terms().len()), (postings, terms));
    assert_eq!((before.grains(), store.tail.grains()), (1, 2));
}

#[test]
fn tails_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Tail>();
    shared::<Tables>();
}
