//! A history by an index that lies.

use grainstore_index::{Facts, Tail};
use tempfile::TempDir;

use super::*;
use crate::format::BeliefBuilder;
use crate::indexed::Indexed;
use crate::keys::AddressKey;
use crate::{OpenOptions, SessionOptions, Store};

/// Puts a belief into a namespace.
fn put(store: &Store, namespace: &str, subject: &str, relation: &str) -> ContentAddress {
    let session = store.session(SessionOptions::default());
    let grain = BeliefBuilder::new(EpochMs::new(1000), subject, relation, "tea", 1.0);
    session.put(grain.namespace(namespace).build().unwrap()).unwrap().address()
}

/// The view, indexed as if all of its grains said what this one says.
fn all_alike(view: &View, as_this: &ContentAddress) -> View {
    let model = view.row(as_this).unwrap().unwrap().blob;
    let tables = std::sync::Arc::clone(&view.indexed().tables);
    let mut tail = Tail::after(&tables).unwrap();
    for row in view.log_after(None).unwrap() {
        let (sequence, blob) = row.unwrap();
        let address = ContentAddress::of(&blob);
        let key = *AddressKey::plain(&address).as_bytes();
        let push =
            |grain: &GrainRef<'_>| Ok(tail.push(&tables, sequence, key, &Facts::of(grain))?);
        with_fields(&model, push).unwrap();
    }
    view.with_index(Indexed { tables, tail })
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
    let shape = Shape::subject_relation("alice".into(), "likes".into());
    let scope = Scope::Exact("mine".into());
    let proposed = view.index().scan(&scope, &shape, TimeRange::default(), Order::Newest);
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
