//! Tests of folding: the resulting tables byte for byte, and refusals.

use grainstore_format::GrainType;

use super::*;
use crate::tail::Tail;
use crate::test_kit::{Note, NoteObject, Store, code};

fn rich_note() -> Note {
    Note {
        relation: Some("prefers".to_owned()),
        object: Some(NoteObject::Text("tea".to_owned())),
        session: Some("s".to_owned()),
        tags: vec!["t".to_owned()],
        grain_type: GrainType::Event,
        ..Note::about("alice", "a", 1)
    }
}

/// Folds the frozen part of a tail into a store.
fn fold_into(store: &Store, tail: &Tail) -> Result<Option<Watermark>> {
    let txn = store.db.begin_write().unwrap();
    let mark = fold(&txn, &tail.frozen().unwrap(), None, &[])?;
    txn.commit().unwrap();
    Ok(mark)
}

#[test]
fn one_grain_leaves_exactly_these_rows() {
    const WHEN: &str = concat!("7ffffffffffffffe", "ffff", "fffffffe");
    const NS: &str = "00000001";
    const ID: &str = "0000000001";
    const TEA: &str = "5612836cda3d22b3";
    const TEA_START: &str = "5612836c";
    let mut store = Store::new();
    store.push(1, &rich_note().facts()).unwrap();
    store.fold().unwrap();
    let expected = [
        // layout 6; sequence 1 and its address
        "index.meta history = ".to_owned(),
        format!("index.meta next_ids = {}", "0000000000000002".repeat(3)),
        "index.meta stamp = 00000006".to_owned(),
        format!(
            "index.meta watermark = {}{}{}",
            "0000000000000001",
            "fffffffffffffffe",
            "ad".repeat(24)
        ),
        format!("index.all 00000000{WHEN} = "),
        format!("index.all {NS}{WHEN} = "),
        format!("index.type {NS}02{WHEN} = "),
        format!("index.s 00000000{ID}{WHEN} = "),
        format!("index.s {NS}{ID}{WHEN} = "),
        format!("index.p {NS}{ID}{WHEN} = "),
        format!("index.o {NS}{TEA}{WHEN} = "),
        format!("index.sp 00000000{ID}{ID}{WHEN} = "),
        format!("index.sp {NS}{ID}{ID}{WHEN} = "),
        format!("index.so {NS}{ID}{TEA_START}{WHEN} = "),
        format!("index.po {NS}{ID}{TEA_START}{WHEN} = "),
        format!("index.spo {NS}{ID}{ID}{TEA_START}{WHEN} = "),
        format!("index.value {NS}01a06347069e3b92f3{WHEN} = "),
        format!("index.value {NS}03c8f1010d5cdcb8d8{WHEN} = "),
        format!("index.terms 010061 = {ID}"),
        format!("index.terms 0200616c696365 = {ID}"),
        format!("index.terms 030070726566657273 = {ID}"),
        format!("index.terms 0303{ID} = 030070726566657273"),
        format!("index.address fffffffffffffffe{}00000001 = ", "ad".repeat(24)),
    ];
    assert_eq!(store.dump(), expected);
}

#[test]
fn folding_again_changes_nothing() {
    let mut store = Store::new();
    store.push(1, &rich_note().facts()).unwrap();
    let mut shorter = store.tail.clone();
    shorter.freeze().unwrap();
    store.push(2, &Note::about("bob", "b", 2).facts()).unwrap();
    store.freeze();
    store.fold_frozen().unwrap();
    let rows = store.dump();
    store.fold_frozen().unwrap();
    assert_eq!(store.dump(), rows);
    // a shorter version of the same tail does not move the watermark back
    assert_eq!(fold_into(&store, &shorter).unwrap(), store.tail.watermark());
    assert_eq!(store.dump(), rows);
}

#[test]
fn a_part_is_folded_while_the_next_one_grows() {
    let mut store = Store::new();
    store.push(1, &rich_note().facts()).unwrap();
    store.freeze();
    store.push(2, &Note::about("bob", "b", 2).facts()).unwrap();
    store.push(3, &rich_note().facts()).unwrap();
    store.fold_frozen().unwrap();
    store.reopen();
    store.tail.drop_frozen();
    store.push(4, &Note::about("bob", "a", 2).facts()).unwrap();
    assert_eq!(store.tail.grains(), 3);
    store.fold().unwrap();
    let mut at_once = Store::new();
    for (sequence, note) in (1..).zip([
        rich_note(),
        Note::about("bob", "b", 2),
        rich_note(),
        Note::about("bob", "a", 2),
    ]) {
        at_once.push(sequence, &note.facts()).unwrap();
    }
    at_once.fold().unwrap();
    assert_eq!(store.dump(), at_once.dump());
}

#[test]
fn tables_that_were_never_set_up_are_refused() {
    let mut store = Store::new();
    store.push(1, &rich_note().facts()).unwrap();
    store.freeze();
    let txn = store.db.begin_write().unwrap();
    crate::stamp::drop_all(&txn).unwrap();
    assert_eq!(code(fold(&txn, &store.tail.frozen().unwrap(), None, &[])), "ERR_INTEGRITY");
}

#[test]
fn a_part_that_skips_grains_is_refused() {
    let mut store = Store::new();
    store.push(1, &rich_note().facts()).unwrap();
    store.freeze();
    store.tail.drop_frozen();
    store.push(2, &rich_note().facts()).unwrap();
    store.freeze();
    assert_eq!(code(store.fold_frozen()), "ERR_INTEGRITY");
}

#[test]
fn a_tail_of_other_tables_leaves_them_as_they_are_or_is_refused() {
    let mut other = Store::new();
    other.push(1, &Note::about("bob", "a", 0).facts()).unwrap();
    other.push(2, &Note::about("alice", "a", 0).facts()).unwrap();
    other.fold().unwrap();
    let mut store = Store::new();
    store.push(1, &Note::about("alice", "a", 0).facts()).unwrap();
    store.freeze();
    let before = other.dump();
    assert_eq!(fold_into(&other, &store.tail).unwrap(), other.tail.watermark());
    assert_eq!(other.dump(), before, "they go further than the tail");
    for sequence in 2..=3 {
        store.push(sequence, &Note::about("bob", "a", 0).facts()).unwrap();
    }
    store.tail.drop_frozen();
    store.freeze();
    assert_eq!(code(fold_into(&other, &store.tail)), "ERR_INTEGRITY");
}

#[test]
fn an_aborted_fold_leaves_no_trace() {
    let mut store = Store::new();
    store.push(1, &rich_note().facts()).unwrap();
    store.freeze();
    let before = store.dump();
    let txn = store.db.begin_write().unwrap();
    fold(&txn, &store.tail.frozen().unwrap(), None, &[]).unwrap();
    txn.abort().unwrap();
    assert_eq!(store.dump(), before);
    store.fold().unwrap();
    assert_ne!(store.dump(), before);
}

#[test]
fn long_terms_are_kept_whole_once() {
    let long = "x".repeat(1 << 20);
    let note = |time| Note { relation: Some(long.clone()), ..Note::about(&long, &long, time) };
    let mut store = Store::new();
    store.push(1, &note(1).facts()).unwrap();
    store.fold().unwrap();
    store.push(2, &note(2).facts()).unwrap();
    store.fold().unwrap();
    let long_rows = store.dump().iter().filter(|row| row.len() > 1 << 20).count();
    assert_eq!(long_rows, 3, "namespace, subject and relation");
}
