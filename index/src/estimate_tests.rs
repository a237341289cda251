//! Tests of estimates: exact for short ranges, near for long ones.

use super::*;
use crate::lookup::Scope;
use crate::test_kit::{Note, Store};

fn size(store: &Store, scope: &Scope<'_>, shape: &IndexLookup<'_>) -> PostingEstimate {
    store
        .reader()
        .estimate_postings(&ScopeNamespaces::of(*scope), shape, TimeRange::default())
        .unwrap()
}

#[test]
fn few_postings_are_counted() {
    let mut store = Store::new();
    for sequence in 1..=40 {
        let subject = if sequence % 2 == 0 { "even" } else { "odd" };
        store.push(sequence, &Note::about(subject, "a", 0).facts()).unwrap();
        match sequence {
            10 => store.fold().unwrap(),
            20 => store.freeze(),
            _ => {}
        }
    }
    let a = Scope::Exact("a".into());
    for (scope, subject, postings) in [
        (a, "even", 20),
        (Scope::All, "odd", 20),
        (a, "nobody", 0),
        (Scope::Subtree("b"), "odd", 0),
    ] {
        let found = size(&store, &scope, &IndexLookup::subject(subject.into()));
        assert_eq!(found, PostingEstimate { postings, exact: true }, "{scope:?} {subject}");
    }
}

#[test]
fn many_postings_are_judged_by_the_sample() {
    let mut store = Store::new();
    let many = 20_000;
    for sequence in 1..=many {
        let subject = if sequence % 5 == 0 { "fifth" } else { "other" };
        let time = i64::try_from(sequence).unwrap();
        store.push(sequence, &Note::about(subject, "a", time).facts()).unwrap();
        if store.tail.is_full() {
            store.fold().unwrap();
        }
    }
    store.fold().unwrap();
    let near = |found: PostingEstimate, expected: u64| {
        let within = expected * 2 / 5;
        assert!(!found.exact && found.postings.abs_diff(expected) < within, "{found:?} {expected}");
    };
    near(size(&store, &Scope::All, &IndexLookup::All), many);
    near(size(&store, &Scope::Exact("a".into()), &IndexLookup::subject("fifth".into())), many / 5);
    near(size(&store, &Scope::All, &IndexLookup::subject("other".into())), many * 4 / 5);
    let half = TimeRange { from: None, to: Some(grainstore_format::EpochMs::new(10_000)) };
    near(
        store
            .reader()
            .estimate_postings(&ScopeNamespaces::of(Scope::All), &IndexLookup::All, half)
            .unwrap(),
        many / 2,
    );
}

#[test]
fn many_namespaces_are_judged_by_some() {
    let mut store = Store::new();
    for sequence in 1..=1_000 {
        let namespace = format!("n{}", sequence % 200);
        let note = Note { relation: Some("r".to_owned()), ..Note::about("s", &namespace, 0) };
        store.push(sequence, &note.facts()).unwrap();
    }
    store.fold().unwrap();
    let relation = IndexLookup::Triple { subject: None, relation: Some("r".into()), object: None };
    assert_eq!(
        size(&store, &Scope::All, &relation),
        PostingEstimate { postings: 1_000, exact: false }
    );
}
