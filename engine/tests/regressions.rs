//! Faults that were found once, each held by a test that names what must be so.

use grainstore::format::{BeliefBuilder, EpochMs, Grain, Value};
use grainstore::{OpenOptions, SessionOptions, Store};
use tempfile::TempDir;

#[test]
fn a_lock_on_an_earlier_version_holds_though_the_new_grain_names_that_version_too() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path(), &OpenOptions::new().create(true)).unwrap();
    let session = store.session(SessionOptions::default());
    let first = Grain::from_json(
        r#"{"type": "belief", "subject": "alice", "relation": "prefers", "object": "tea",
            "confidence": 1, "created_at": 1000,
            "invalidation_policy": {"mode": "soft_locked"}}"#,
    );
    let first = session.put(first.unwrap()).unwrap().address();
    let belief =
        |object: &str| BeliefBuilder::new(EpochMs::new(2000), "alice", "prefers", object, 1.0);
    let second = belief("coffee").build().unwrap();
    let second = session.supersede(&first, second, Some("it changed")).unwrap();
    // A digest may derive from several versions; a reason has to be given all the same.
    let parents = [second, first].map(|address| Value::from(address.to_string()));
    let digest = belief("hot drinks").derived_from(parents.to_vec()).consolidation_level(1);
    let refused = session.supersede(&second, digest.build().unwrap(), None);
    assert_eq!(refused.map_err(|error| error.code()), Err("ERR_INVALIDATION_DENIED"));
    assert!(session.get(&second).unwrap().state.is_current());
}

#[test]
fn the_empty_namespace_is_the_shared_one_in_every_call() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path(), &OpenOptions::new().create(true)).unwrap();
    let shared = SessionOptions { namespace: Some("shared".into()), ..SessionOptions::default() };
    let session = store.session(shared);
    let belief = BeliefBuilder::new(EpochMs::new(1000), "alice", "prefers", "tea", 1.0);
    let address = session.put(belief.build().unwrap()).unwrap().address();
    for namespace in [None, Some(""), Some("shared")] {
        let found = session.history_of("alice", "prefers", namespace, None).unwrap();
        assert_eq!(found.len(), 1, "{namespace:?}");
        assert_eq!(found[0].address, address);
    }
}
