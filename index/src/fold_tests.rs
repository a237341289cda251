//! What folding leaves in the tables, byte for byte, and what it refuses.

use grainstore_format::GrainType;

use super::*;
use crate::test_kit::{Note, Store, code};
use crate::{StagedDictionary, Tables, Word};

fn rich_note() -> Note {
    Note {
        relation: Some("prefers".to_owned()),
        session: Some("s".to_owned()),
        tags: vec!["t".to_owned()],
        grain_type: GrainType::Event,
        ..Note::about("alice", "a", 1)
    }
}

#[test]
fn one_grain_leaves_exactly_these_rows() {
    const WHEN: &str = "7ffffffffffffffefffffffffffffffe";
    let mut store = Store::new();
    store.push(1, &rich_note().facts()).unwrap();
    store.fold().unwrap();
    let expected = [
        // stamp: layout 1; watermark: sequence 1 and its address
        "index.meta 7374616d70 = 00000001".to_owned(),
        format!("index.meta 77617465726d61726b = {0}{0}{1}", "0000000000000001", "ad".repeat(24)),
        "index.terms 010061 = 0000000000000000".to_owned(),
        "index.terms 0200616c696365 = 0000000000000001".to_owned(),
        "index.terms 030070726566657273 = 0000000000000002".to_owned(),
        "index.terms 040073 = 0000000000000003".to_owned(),
        "index.terms 050074 = 0000000000000004".to_owned(),
        "index.ids 0000000000000000 = 010061".to_owned(),
        "index.ids 0000000000000001 = 0200616c696365".to_owned(),
        "index.ids 0000000000000002 = 030070726566657273".to_owned(),
        "index.ids 0000000000000003 = 040073".to_owned(),
        "index.ids 0000000000000004 = 050074".to_owned(),
        format!("index.by_namespace 0000000000000000{WHEN} = "),
        format!("index.by_type 000000000000000002{WHEN} = "),
        format!("index.by_subject 00000000000000000000000000000001{WHEN} = "),
        format!("index.by_relation 000000000000000000000000000000010000000000000002{WHEN} = "),
        format!("index.by_session 00000000000000000000000000000003{WHEN} = "),
        format!("index.by_tag 00000000000000000000000000000004{WHEN} = "),
    ];
    assert_eq!(store.dump(), expected);
}

#[test]
fn folding_again_changes_nothing() {
    let mut store = Store::new();
    store.push(1, &rich_note().facts()).unwrap();
    let first = store.tail.clone();
    store.push(2, &Note::about("bob", "b", 2).facts()).unwrap();
    store.fold_and_keep().unwrap();
    let rows = store.dump();
    store.fold().unwrap();
    assert_eq!(store.dump(), rows);
    // a shorter version of the same tail does not move the watermark back
    store.tail = first;
    store.fold().unwrap();
    assert_eq!(store.dump(), rows);
}

#[test]
fn an_empty_tail_leaves_the_watermark() {
    let mut store = Store::new();
    let txn = store.db.begin_write().unwrap();
    assert_eq!(fold(&txn, &store.tail).unwrap(), None);
    txn.abort().unwrap();
    store.push(7, &rich_note().facts()).unwrap();
    store.fold().unwrap();
    let txn = store.db.begin_write().unwrap();
    assert_eq!(fold(&txn, &store.tail).unwrap(), store.tail.watermark());
}

#[test]
fn tables_that_were_never_set_up_are_refused() {
    let store = Store::new();
    let txn = store.db.begin_write().unwrap();
    stamp::drop_all(&txn).unwrap();
    assert_eq!(code(fold(&txn, &store.tail)), "ERR_INTEGRITY");
}

#[test]
fn a_tail_that_skips_grains_is_refused() {
    let mut store = Store::new();
    store.push(1, &rich_note().facts()).unwrap();
    store.tail = store.tail.folded();
    store.push(2, &rich_note().facts()).unwrap();
    assert_eq!(code(store.fold()), "ERR_INTEGRITY");
}

#[test]
fn a_tail_of_other_tables_is_refused() {
    let mut other = Store::new();
    other.push(1, &Note::about("bob", "a", 0).facts()).unwrap();
    other.push(2, &Note::about("alice", "a", 0).facts()).unwrap();
    other.fold().unwrap();
    let mut store = Store::new();
    store.push(1, &Note::about("alice", "a", 0).facts()).unwrap();
    other.tail = store.tail;
    assert_eq!(code(other.fold()), "ERR_INTEGRITY");
}

#[test]
fn one_transaction_folds_what_many_do() {
    let notes: Vec<Note> =
        (0_u8..10).map(|n| Note::about(&format!("s{}", n % 4), "a", n.into())).collect();
    let mut many = Store::new();
    for (sequence, note) in (1..).zip(&notes) {
        many.push(sequence, &note.facts()).unwrap();
        many.fold().unwrap();
    }
    let mut one = Store::new();
    one.fold_staged(&notes, 3);
    assert_eq!(one.dump(), many.dump());
}

#[test]
fn an_aborted_fold_leaves_no_trace() {
    let mut store = Store::new();
    store.push(1, &rich_note().facts()).unwrap();
    let before = store.dump();
    let txn = store.db.begin_write().unwrap();
    fold(&txn, &store.tail).unwrap();
    let staged = StagedDictionary::open(&txn).unwrap();
    let tag = crate::Term::new(crate::TermKind::Tag, Word::Plain("t"));
    assert!(crate::DictionaryRead::id(&staged, &tag).unwrap().is_some());
    drop(staged);
    txn.abort().unwrap();
    assert_eq!(store.dump(), before);
    let tables = Tables::open(&redb::ReadableDatabase::begin_read(&store.db).unwrap()).unwrap();
    assert_eq!(crate::DictionaryRead::id(&tables, &tag).unwrap(), None);
}
