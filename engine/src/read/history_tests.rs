//! Tests of a history read through a wrong index.

use grainstore_format::Value;
use grainstore_index::{IndexedFields, Tail};
use tempfile::TempDir;

use super::*;
use crate::disk::layout::AddressKey;
use crate::format::BeliefBuilder;
use crate::state::index_snapshot::IndexSnapshot;
use crate::state::truth::LogRow;
use crate::{Grain, OpenOptions, SessionOptions, Store};

/// Puts a belief into a namespace.
fn put(store: &Store, namespace: &str, subject: &str, relation: &str) -> ContentAddress {
    let session = store.session(SessionOptions::default());
    let grain = BeliefBuilder::new(EpochMs::new(1000), subject, relation, "tea", 1.0);
    session.put(grain.namespace(namespace).build().unwrap()).unwrap().address()
}

/// The view with an index in which every grain has the terms of this one.
fn all_alike(view: &View, as_this: &ContentAddress) -> View {
    let model = view.row(as_this).unwrap().unwrap().blob;
    let tables = std::sync::Arc::clone(&view.indexed().tables);
    let mut tail = Tail::after(&tables).unwrap();
    for row in view.log_after(None).unwrap() {
        let (sequence, LogRow::Blob(blob)) = row.unwrap() else { continue };
        let address = ContentAddress::of(&blob);
        let key = *AddressKey::plain(&address).as_bytes();
        let push = |grain: &GrainRef<'_>| {
            Ok(tail.push(&tables, sequence, key, &IndexedFields::from_grain(grain))?)
        };
        with_fields(&model, push).unwrap();
    }
    view.with_index(IndexSnapshot { tables, tail, history: view.truth().audit_head().unwrap() })
}

#[test]
fn an_index_that_lies_shows_no_grain_of_another_namespace_or_of_another_fact() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path(), &OpenOptions::new().create(true)).unwrap();
    put(&store, "theirs", "alice", "likes");
    put(&store, "mine:too", "alice", "likes");
    put(&store, "mine", "bob", "likes");
    put(&store, "mine", "alice", "hates");
    let own = put(&store, "mine", "alice", "likes");
    let options = SessionOptions { namespace: Some("mine".to_owned()), ..Default::default() };
    let session = store.session(options);
    let view = all_alike(&session.view().unwrap(), &own);
    let shape = IndexLookup::subject_relation("alice".into(), "likes".into());
    let scope = Scope::Exact("mine".into());
    let proposed = view.index().scan(&scope, &shape, TimeRange::default(), TimeOrder::Newest);
    assert_eq!(proposed.unwrap().count(), 5, "the index proposes them all");
    for as_of in [None, Some(EpochMs::new(i64::MAX - 1))] {
        let told = |namespace| {
            let found = session.history_in(&view, ("alice", "likes"), namespace, as_of).unwrap();
            found.into_iter().map(|stored| stored.address).collect::<Vec<_>>()
        };
        assert_eq!(told(Some("mine")), [own], "{as_of:?}");
        assert_eq!(told(None).len(), 2, "the namespaces below are the session's: {as_of:?}");
    }
}

#[test]
fn a_history_whose_time_is_over_is_given_up() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path(), &OpenOptions::new().create(true)).unwrap();
    let old = put(&store, "mine", "alice", "likes");
    let session = store.session(SessionOptions::default());
    let new = BeliefBuilder::new(EpochMs::new(2000), "alice", "likes", "coffee", 1.0);
    let new = new.namespace("mine").build().unwrap();
    session.supersede(&old, new, None).unwrap();
    let view = session.view().unwrap();
    let over = HistoryDeadline(CancelHandle::default().with_deadline(Duration::ZERO));
    let found = |address| session.lookup(&view, &address).unwrap().unwrap();
    let head = session.head(&view, found(old), &over).map(drop);
    let sequence = view.sequence_of(&old).unwrap().unwrap();
    let newest = session.newest_first(&view, vec![sequence], &over).map(drop);
    let back = session.head(&view, found(old), &HistoryDeadline::start()).unwrap();
    let back = session.versions_back_from(&view, &back.address, 10, (&over, &all)).map(drop);
    let stopped = CancelHandle::default();
    stopped.cancel();
    let counted = session.count_versions_in(&view, &old, &stopped, &all).map(drop);
    for given_up in [head, newest, back, counted] {
        assert_eq!(given_up.map_err(|error| error.code()), Err("ERR_TIMEOUT"));
    }
}

#[test]
fn one_grain_that_superseded_very_much_is_answered_as_far_as_it_is_asked_for() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path(), &OpenOptions::new().create(true)).unwrap();
    let session = store.session(SessionOptions::default());
    // Together more than a history may hold.
    let large = "x".repeat(1_000_000);
    let mut old = Vec::new();
    for n in 0..68 {
        let subject = format!("one {n}");
        let grain =
            BeliefBuilder::new(EpochMs::new(1000 + n), subject, "likes", large.as_str(), 1.0);
        old.push(session.put(grain.build().unwrap()).unwrap().address());
    }
    let digest = BeliefBuilder::new(EpochMs::new(2000), "all", "likes", "tea", 1.0);
    let mut fields = digest.build().unwrap().into_fields();
    let parents = old.iter().map(|parent| Value::from(parent.to_string())).collect();
    fields.insert("derived_from".to_owned(), Value::Array(parents));
    let digest = Grain::from_fields(fields).unwrap();
    for parent in &old {
        session.supersede(parent, digest.clone(), None).unwrap();
    }
    let head = session.get(&old[0]).unwrap().state.superseded_by.unwrap();
    let view = session.view().unwrap();
    let some = session.older_versions(&head, 4).unwrap();
    assert_eq!((some.items.len(), some.more), (4, true));
    let all = session.older_versions(&head, 69).map(drop).map_err(|error| error.code());
    assert_eq!(all, Err("ERR_LIMIT"));
    let count = session.count_versions_in(&view, &old[3], &CancelHandle::default(), &super::all);
    assert_eq!(count.unwrap(), 69, "whatever they hold");
    let one = session.older_versions(&old[0], 4).unwrap();
    assert_eq!((one.items.len(), one.more), (1, false));
}
