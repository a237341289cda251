//! Tests of checks against an audit log that says too little.

use grainstore_cal::Tier;
use grainstore_format::{BeliefBuilder, ContentAddress};
use tempfile::TempDir;

use super::*;
use crate::handle::options::OpenOptions;

/// A store where CAL added a grain and superseded it.
fn written(dir: &TempDir) -> Store {
    let store = Store::open(dir.path(), &OpenOptions::new().create(true)).unwrap();
    let session = store.session(SessionOptions::default());
    let run = |query: &str| {
        let options = ExecuteOptions { tier: Tier::Evolve, ..ExecuteOptions::at(session.now()) };
        let answer = session.ask_with(query.as_bytes(), &options).unwrap();
        serde_json::to_value(&answer).unwrap()["content_address"].as_str().unwrap().to_owned()
    };
    let old = run(r#"ADD belief SET subject = "b" SET relation = "r" SET object = "o" REASON "w""#);
    run(&format!(r#"SUPERSEDE sha256:{old} SET object = "new" REASON "he changed""#));
    store
}

/// Returns `true` if a check holds after the last entry of this operation was changed.
fn holds(
    store: &Store,
    check: fn(&SelfCheckContext) -> SelfCheckOutcome,
    operation: &str,
    change: impl FnOnce(&mut AuditEntry),
) -> bool {
    let session = store.session(SessionOptions::default());
    let mut entries = session.audit(None, 100).unwrap();
    change(entries.iter_mut().rfind(|entry| entry.operation == operation).unwrap());
    check(&SelfCheckContext { view: session.view().unwrap(), session, entries }).unwrap().is_ok()
}

#[test]
fn an_entry_that_does_not_say_what_was_written_and_why_fails() {
    let dir = TempDir::new().unwrap();
    let store = written(&dir);
    let check = log::tier1_audit;
    assert!(holds(&store, check, "put", |_| {}));
    assert!(!holds(&store, check, "put", |entry| entry.reason = None));
    assert!(!holds(&store, check, "supersede", |entry| entry.subjects.clear()));
    assert!(!holds(&store, check, "supersede", |entry| {
        entry.call.as_mut().unwrap().statement = Some("recall".to_owned());
    }));
}

#[test]
fn a_successor_that_does_not_name_what_it_replaced_fails() {
    let dir = TempDir::new().unwrap();
    let store = written(&dir);
    let check = log::provenance_tracking;
    assert!(holds(&store, check, "supersede", |_| {}));
    let another = ContentAddress::from_bytes([7; 32]);
    assert!(!holds(&store, check, "supersede", |entry| entry.subjects[0] = another));
}

#[test]
fn a_grain_by_cal_that_does_not_say_who_inferred_it_fails() {
    let dir = TempDir::new().unwrap();
    let store = written(&dir);
    let session = store.session(SessionOptions::default());
    let grain = BeliefBuilder::new(session.now(), "alice", "likes", "tea", 1.0).build().unwrap();
    let unmarked = session.put(grain).unwrap().address();
    let of_cal = |entry: &mut AuditEntry| entry.subjects = vec![unmarked];
    let call = session.audit(None, 100).unwrap().into_iter().find_map(|entry| entry.call);
    let by_cal = |entry: &mut AuditEntry| entry.call.clone_from(&call);
    assert!(!holds(&store, log::ai_marking, "put", |entry| {
        of_cal(entry);
        by_cal(entry);
    }));
    assert!(holds(&store, log::ai_marking, "put", |_| {}));
}
