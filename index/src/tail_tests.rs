//! Tests of the tail: counts, refusals and snapshots.

use super::*;
use crate::field::Field;
use crate::term::TermValue;
use crate::test_kit::{Note, Store, address, code};

/// The number of postings in the active part.
fn postings(tail: &Tail) -> usize {
    tail.active.postings.sorted().len()
}

#[test]
fn sequences_must_ascend_over_folds_too() {
    let mut store = Store::new();
    let note = Note::about("alice", "a", 0);
    store.push(5, &note.facts()).unwrap();
    for refused in [5, 4, 0] {
        assert_eq!(code(store.push(refused, &note.facts())), "ERR_INTEGRITY");
    }
    store.freeze();
    assert_eq!(code(store.push(5, &note.facts())), "ERR_INTEGRITY");
    store.fold().unwrap();
    assert_eq!(code(store.push(5, &note.facts())), "ERR_INTEGRITY");
    store.push(9, &note.facts()).unwrap();
    let mark = Watermark { sequence: Sequence::new(9), address: address(9) };
    assert_eq!(store.tail.watermark(), Some(mark));
}

#[test]
fn a_sequence_the_index_has_no_room_for_is_refused() {
    let mut store = Store::new();
    let note = Note::about("alice", "a", 0);
    assert_eq!(code(store.push(1 << 32, &note.facts())), "ERR_INTEGRITY");
    assert_eq!((store.tail.grains(), store.tail.watermark()), (0, None));
    store.push((1 << 32) - 1, &note.facts()).unwrap();
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
    store.freeze();
    assert!(!store.tail.is_full());
    assert_eq!(store.tail.grains(), Tail::MAX_GRAINS);
}

#[test]
fn a_tail_is_full_by_bytes() {
    let mut store = Store::new();
    let long = |digit: &str| digit.repeat(4 << 20);
    let note = Note { relation: Some(long("1")), ..Note::about(&long("2"), "a", 0) };
    store.push(1, &note.facts()).unwrap();
    assert!(store.tail.is_full(), "{}", store.tail.approx_bytes());
    store.fold().unwrap();
    assert_eq!(store.tail.approx_bytes(), 0);
}

#[test]
fn ordinary_grains_fill_a_tail_by_number() {
    let mut store = Store::new();
    for sequence in 1..=4_096 {
        let mut note = Note::about(&format!("subject of some length {sequence}"), "a", 0);
        note.relation = Some(format!("relation {}", sequence % 50));
        note.tags = (0..8).map(|tag| format!("tag {tag} {sequence}")).collect();
        store.push(sequence, &note.facts()).unwrap();
    }
    assert!(store.tail.approx_bytes() < Tail::MAX_BYTES, "{}", store.tail.approx_bytes());
}

#[test]
fn a_repeated_value_is_one_posting() {
    let mut store = Store::new();
    let mut note = Note::about("alice", "a", 0);
    note.tags = vec!["ui".to_owned(), "ui".to_owned()];
    store.push(1, &note.facts()).unwrap();
    assert_eq!(postings(&store.tail), 6, "namespace and subject twice, type, tag");
}

#[test]
fn ten_thousand_tags_are_ten_thousand_postings() {
    let mut store = Store::new();
    let mut note = Note::about("alice", "a", 0);
    note.tags = (0..10_000).map(|tag| format!("tag{tag}")).collect();
    store.push(1, &note.facts()).unwrap();
    assert_eq!(postings(&store.tail), 10_005);
    store.fold().unwrap();
    let reader = store.reader();
    let shape = crate::IndexLookup::Value(Field::Tag, "tag9999".into());
    let times = crate::TimeRange::default();
    assert_eq!(reader.count_up_to(&crate::Scope::All, &shape, times, 9).unwrap(), 1);
}

#[test]
fn a_part_is_frozen_once() {
    let mut store = Store::new();
    store.tail.freeze().unwrap();
    assert!(store.tail.frozen().is_none(), "nothing to freeze");
    store.push(1, &Note::about("alice", "a", 0).facts()).unwrap();
    store.tail.freeze().unwrap();
    store.tail.freeze().unwrap();
    let frozen = store.tail.frozen().unwrap();
    assert_eq!((frozen.grains(), frozen.watermark()), (1, store.tail.watermark()));
    store.push(2, &Note::about("bob", "a", 0).facts()).unwrap();
    assert_eq!(code(store.tail.freeze()), "ERR_INTEGRITY");
    assert_eq!(store.tail.grains(), 2);
    store.tail.drop_frozen();
    assert_eq!(store.tail.grains(), 1);
}

#[test]
fn ids_go_on_over_parts() {
    let mut store = Store::new();
    for (sequence, (subject, frozen)) in
        (1..).zip([("a", true), ("b", false), ("a", false), ("c", false)])
    {
        store.push(sequence, &Note::about(subject, "n", 0).facts()).unwrap();
        if frozen {
            store.freeze();
        }
    }
    let id = |subject| {
        let key =
            layout::term_key(&Term { kind: TermKind::Subject, value: TermValue::Plain(subject) });
        store.tail.parts().find_map(|part| part.terms.get(key.as_slice())).map(|term| term.id)
    };
    assert_eq!(["a", "b", "c"].map(id), [1, 2, 3].map(|number| Some(TermId::new(number))));
}

#[test]
fn a_clone_does_not_see_what_comes_later() {
    let mut store = Store::new();
    store.push(1, &Note::about("alice", "a", 0).facts()).unwrap();
    let before = store.tail.clone();
    let (count, terms) = (postings(&before), before.active.terms.len());
    store.push(2, &Note::about("bob", "b", 0).facts()).unwrap();
    assert_eq!((postings(&before), before.active.terms.len()), (count, terms));
    assert_eq!((before.grains(), store.tail.grains()), (1, 2));
}

#[test]
fn tails_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Tail>();
    shared::<FrozenTail>();
    shared::<Tables>();
}

#[test]
fn a_place_without_a_grain_is_found_by_its_address_alone() {
    let mut store = Store::new();
    let note = Note::about("alice", "a", 0);
    store.push(1, &note.facts()).unwrap();
    store.tail.push_address(Sequence::new(2), address(2)).unwrap();
    store.push(3, &note.facts()).unwrap();
    assert_eq!(code(store.tail.push_address(Sequence::new(3), address(3))), "ERR_INTEGRITY");
    for folded in [false, true] {
        if folded {
            store.fold().unwrap();
        }
        let place = store.reader().sequence_of(&address(2)).unwrap();
        assert_eq!(place, Some(Sequence::new(2)), "folded: {folded}");
        assert_eq!(store.tail.watermark().map(|mark| mark.sequence), Some(Sequence::new(3)));
        let all = crate::IndexLookup::All;
        let (scope, times) = (crate::Scope::All, crate::TimeRange::default());
        let reader = store.reader();
        let found = reader.scan(&scope, &all, times, crate::TimeOrder::Oldest).unwrap();
        let found: Vec<u64> = found.map(|posting| posting.unwrap().sequence.get()).collect();
        assert_eq!(found.len(), 2);
        assert!(!found.contains(&2));
    }
}
