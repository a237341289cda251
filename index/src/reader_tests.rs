//! Tests of single lookups; `model_tests` compares all lookups with a naive model.

use grainstore_format::{EpochMs, GrainType};

use super::*;
use crate::test_kit::{Note, NoteObject, Store, tie};
use crate::{Field, IndexedFields, Object};

fn sequences(store: &Store, scope: &Scope<'_>, shape: &IndexLookup<'_>) -> Vec<u64> {
    let scan = store.reader().scan(scope, shape, TimeRange::default(), TimeOrder::Newest).unwrap();
    scan.map(|posting| posting.unwrap().sequence.get()).collect()
}

#[test]
fn the_latest_comes_first_by_time_then_by_address() {
    let mut store = Store::new();
    for (sequence, time) in [(1, 50), (2, 10), (3, 50), (4, 20)] {
        store.push(sequence, &Note::about("alice", "a", time).facts()).unwrap();
        if sequence == 2 {
            store.fold().unwrap();
        }
    }
    let subject = IndexLookup::subject("alice".into());
    assert_eq!(sequences(&store, &Scope::All, &subject), [3, 1, 4, 2]);
}

#[test]
fn tokens_are_found_by_tokens_only() {
    let mut store = Store::new();
    let time = EpochMs::new(1);
    let mut facts = IndexedFields::new(TermValue::Token([1; 32]), GrainType::Belief, time);
    facts.subject = Some(TermValue::Token([2; 32]));
    facts.relation = Some(TermValue::Token([3; 32]));
    facts.set_object(Object::Text(TermValue::Token([4; 32])));
    facts.add(Field::Session, TermValue::Token([5; 32]));
    store.push(1, &facts).unwrap();
    let check = |store: &Store| {
        let scope = Scope::Exact(TermValue::Token([1; 32]));
        let (subject, relation) = (TermValue::Token([2; 32]), TermValue::Token([3; 32]));
        let object = Some(Object::Text(TermValue::Token([4; 32])));
        for shape in [
            IndexLookup::All,
            IndexLookup::subject(subject),
            IndexLookup::subject_relation(subject, relation),
            IndexLookup::Triple { subject: None, relation: None, object },
            IndexLookup::Value(Field::Session, TermValue::Token([5; 32])),
        ] {
            assert_eq!(sequences(store, &scope, &shape), [1], "{shape:?}");
            assert_eq!(sequences(store, &Scope::All, &shape), [1], "{shape:?}");
            let plain = Scope::Exact("shared".into());
            assert_eq!(sequences(store, &plain, &shape), [0; 0], "{shape:?}");
        }
        let names = store.reader().namespaces(&Scope::All, 9).unwrap();
        assert_eq!(names, [OwnedTermValue::Token([1; 32])]);
        let relations = store.reader().relations_of(&scope, subject, 9).unwrap();
        assert_eq!(relations[0].relation, OwnedTermValue::Token([3; 32]));
        // the bytes of a token are not the bytes of a text
        let text = "\u{2}".repeat(32);
        assert_eq!(
            sequences(store, &scope, &IndexLookup::subject(TermValue::Plain(&text))),
            [0; 0]
        );
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
fn namespaces_are_listed_by_scope() {
    let mut store = Store::new();
    let long = format!("a:{}", "x".repeat(300));
    for (sequence, namespace) in (1..).zip(["b", "a:b", "a", "ab", &long]) {
        store.push(sequence, &Note::about("s", namespace, 0).facts()).unwrap();
        if sequence == 2 {
            store.fold().unwrap();
        }
    }
    for _ in 0..2 {
        for (scope, limit, expected) in [
            (Scope::All, 9, vec!["a", "a:b", "ab", "b", &long]),
            (Scope::All, 2, vec!["a", "a:b"]),
            (Scope::Subtree("a"), 9, vec!["a", "a:b", &long]),
            (Scope::Exact("ab".into()), 9, vec!["ab"]),
            (Scope::Exact("nowhere".into()), 9, vec![]),
        ] {
            let names = store.reader().namespaces(&scope, limit).unwrap();
            let expected: Vec<OwnedTermValue> =
                expected.into_iter().map(|name| OwnedTermValue::Plain(name.to_owned())).collect();
            assert_eq!(names, expected, "{scope:?} {limit}");
        }
        store.fold().unwrap();
    }
}

#[test]
fn relations_of_a_subject_come_each_once_with_their_newest() {
    let mut store = Store::new();
    let long = "r".repeat(300);
    let notes = [
        ("alice", "a", "likes", 5),
        ("alice", "a", &long, 1),
        ("bob", "a", "hates", 9),
        ("alice", "a:b", "knows", 2),
        ("alice", "a", "likes", 7),
        ("alice", "b", "likes", 8),
        ("alice", "a", "knows", 3),
    ];
    for (sequence, (subject, namespace, relation, time)) in (1..).zip(notes) {
        let note =
            Note { relation: Some(relation.to_owned()), ..Note::about(subject, namespace, time) };
        store.push(sequence, &note.facts()).unwrap();
        match sequence {
            2 => store.fold().unwrap(),
            4 => store.freeze(),
            _ => {}
        }
    }
    let relation = |name: &str, time, sequence| {
        let newest = Posting {
            time: EpochMs::new(time),
            tie: tie(sequence),
            sequence: Sequence::new(sequence),
        };
        RelationSummary { relation: OwnedTermValue::Plain(name.to_owned()), newest }
    };
    let (likes, first, knows) =
        (relation("likes", 8, 6), relation(&long, 1, 2), relation("knows", 3, 7));
    for _ in 0..2 {
        for (scope, limit, expected) in [
            (Scope::All, 9, vec![likes.clone(), first.clone(), knows.clone()]),
            (Scope::All, 2, vec![likes.clone(), first.clone()]),
            (Scope::All, 0, vec![]),
            (Scope::Exact("b".into()), 9, vec![likes.clone()]),
            (Scope::Subtree("a"), 9, vec![relation("likes", 7, 5), first.clone(), knows.clone()]),
        ] {
            let found = store.reader().relations_of(&scope, "alice".into(), limit).unwrap();
            assert_eq!(found, expected, "{scope:?} {limit}");
        }
        let nobody = store.reader().relations_of(&Scope::All, "nobody".into(), 9).unwrap();
        assert_eq!(nobody, []);
        store.fold().unwrap();
    }
}

#[test]
fn a_map_object_equals_no_text() {
    let mut store = Store::new();
    let hash = [7; 32];
    let map = Note { object: Some(NoteObject::Map(hash)), ..Note::about("s", "a", 0) };
    store.push(1, &map.facts()).unwrap();
    let text = String::from_utf8(hash.to_vec()).unwrap();
    for (object, expected) in
        [(Object::Map(hash), vec![1]), (Object::Text(TermValue::Plain(&text)), vec![])]
    {
        let shape = IndexLookup::Triple { subject: None, relation: None, object: Some(object) };
        assert_eq!(sequences(&store, &Scope::All, &shape), expected, "{object:?}");
    }
}

#[test]
fn an_intersection_reads_little_more_than_its_shortest_list() {
    let mut store = Store::new();
    for sequence in 1..=3_000 {
        let mut note = Note::about("alice", "a", 0);
        if sequence % 1_000 == 0 {
            note.tags = vec!["rare".to_owned()];
        }
        store.push(sequence, &note.facts()).unwrap();
    }
    store.fold().unwrap();
    let shapes =
        [IndexLookup::Value(Field::Tag, "rare".into()), IndexLookup::subject("alice".into())];
    let (all, order) = (TimeRange::default(), TimeOrder::Newest);
    let mut common = store.reader().intersect(&Scope::All, &shapes, all, order).unwrap();
    let found: Vec<u64> = (&mut common).map(|posting| posting.unwrap().sequence.get()).collect();
    assert_eq!(found, [3_000, 2_000, 1_000]);
    assert!(common.scanned() <= 6, "{}", common.scanned());
}

#[test]
fn the_figures_of_a_view_are_its_rows() {
    let mut store = Store::new();
    store.push(1, &Note::about("alice", "a", 0).facts()).unwrap();
    store.fold().unwrap();
    store.push(2, &Note::about("bob", "a", 0).facts()).unwrap();
    let stats = store.reader().stats().unwrap();
    let figures = |table| {
        let found = stats.tables.iter().find(|stats| stats.table == table).unwrap();
        (found.rows, found.row_bytes)
    };
    assert_eq!(figures("index.s"), (1, Some(23)), "of one namespace");
    assert_eq!(figures("index.p"), (0, Some(0)));
    assert_eq!(figures("index.address"), (1, Some(36)));
    assert_eq!(figures("index.terms"), (2, None));
    assert_eq!((stats.tail_grains, stats.tail_bytes), (1, store.tail.approx_bytes()));
}

#[test]
fn a_scan_outlives_the_reader_and_keeps_its_snapshot() {
    let mut store = Store::new();
    store.push(1, &Note::about("alice", "a", 0).facts()).unwrap();
    store.fold().unwrap();
    let (tables, tail) = (&store.tables, store.tail.clone());
    let mut scan = {
        let reader = IndexReader::new(tables, &tail);
        let all = TimeRange::default();
        reader.scan(&Scope::All, &IndexLookup::All, all, TimeOrder::Oldest).unwrap()
    };
    let txn = store.db.begin_write().unwrap();
    crate::reset(&txn, None, [0; 16]).unwrap();
    txn.commit().unwrap();
    let posting = Posting { time: EpochMs::new(0), tie: tie(1), sequence: Sequence::new(1) };
    assert_eq!(scan.next().unwrap().unwrap(), posting);
    assert!(scan.next().is_none());
    // a list that was not read yet is still that of the snapshot
    assert_eq!(tables.rows("index.s").unwrap().count(), 2);
}
