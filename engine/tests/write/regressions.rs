//! Faults that were found once, each held by a test that names what must be so.
#![expect(clippy::unwrap_used, reason = "a test stops at a surprise")]

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};

use grainstore::format::{BeliefBuilder, ContentAddress, EpochMs, Grain, Map, Value};
use grainstore::{ManualClock, OpenOptions, PutOutcome, SameFact, Session, SessionOptions, Store};
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

fn store() -> (TempDir, Store) {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path(), &OpenOptions::new().create(true)).unwrap();
    (dir, store)
}

/// A belief about a subject, with parents and a policy in JSON.
fn derived(subject: &str, parents: &[ContentAddress], policy: Option<&str>) -> Grain {
    let parents: Vec<_> = parents.iter().map(|parent| format!("\"{parent}\"")).collect();
    let policy = policy.map(|p| format!(r#", "invalidation_policy": {p}"#)).unwrap_or_default();
    let json = format!(
        r#"{{"type": "belief", "subject": "{subject}", "relation": "r", "object": "o",
            "confidence": 1, "created_at": 1000, "derived_from": [{}]{policy}}}"#,
        parents.join(", ")
    );
    Grain::from_json(&json).unwrap()
}

#[test]
fn a_lock_beyond_sixteen_hops_is_not_masked_by_a_weaker_one() {
    const LOCKED: &str = r#"{"mode": "locked", "scope": "subtree"}"#;
    const SOFT: &str = r#"{"mode": "soft_locked", "scope": "subtree"}"#;
    let (_dir, store) = store();
    let session = store.session(SessionOptions::default());
    let put = |grain| session.put(grain).unwrap().address();
    let lock = put(derived("lock", &[], Some(LOCKED)));
    let soft_above = put(derived("soft above", &[lock], Some(SOFT)));
    let soft = put(derived("soft", &[], Some(SOFT)));
    for first in [vec![soft_above], vec![soft, lock], vec![lock, soft]] {
        let name = format!("{first:?}");
        let mut last = put(derived(&format!("0 {name}"), &first, None));
        for hop in 1..20 {
            last = put(derived(&format!("{hop} {name}"), &[last], None));
        }
        let next = derived(&format!("19 {name}"), &[], None);
        let refused = session.supersede(&last, next, Some("because"));
        assert_eq!(refused.map_err(|e| e.code()), Err("ERR_INVALIDATION_DENIED"), "{name}");
    }
}

#[test]
fn protection_is_noted_when_a_stored_grain_becomes_a_successor() {
    let (_dir, store) = store();
    let session = store.session(SessionOptions::default());
    let put = |grain| session.put(grain).unwrap().address();
    let soft = put(derived("a", &[], Some(r#"{"mode": "soft_locked"}"#)));
    let plain = put(derived("x", &[], None));
    let both = derived("m", &[plain, soft], None);
    let mut blob = both.clone().into_fields();
    blob.insert("supersession_justification".to_owned(), "because".into());
    let both = Grain::from_fields(blob).unwrap();
    let merged = session.supersede(&plain, both.clone(), None).unwrap();
    assert_eq!(session.supersede(&soft, both, None).unwrap(), merged);
    let mut last = merged;
    for version in 0..20 {
        let next = derived("m", &[], None).into_fields();
        let next = Grain::from_fields(Map::from_iter(
            next.into_iter().chain([("created_at".to_owned(), Value::from(2000 + version))]),
        ));
        let next = next.unwrap();
        let refused = session.supersede(&last, next.clone(), None);
        assert_eq!(refused.map_err(|e| e.code()), Err("ERR_INVALIDATION_DENIED"), "{version}");
        last = session.supersede(&last, next, Some("because")).unwrap();
    }
}

#[test]
fn a_retry_of_put_fact_supersede_changes_nothing() {
    let (_dir, store) = store();
    let session = store.session(SessionOptions::default());
    let fact = |at| BeliefBuilder::new(EpochMs::new(at), "alice", "prefers", "tea", 1.0).build();
    session.put(fact(1000).unwrap()).unwrap();
    let replaced = session.put_fact(fact(2000).unwrap(), SameFact::Supersede).unwrap();
    let again = session.put_fact(fact(2000).unwrap(), SameFact::Supersede).unwrap();
    assert_eq!(again, PutOutcome::Duplicate(replaced.address()));
    assert_eq!(store.stats().unwrap().grains, 2);
}

#[test]
fn a_fact_is_known_again_by_its_object_whether_text_or_map() {
    let (_dir, store) = store();
    let session = store.session(SessionOptions::default());
    let fact = |object: &str, at: u32| {
        let grain = format!(
            r#"{{"type":"belief","subject":"a","relation":"r","object":{object},
            "confidence":1.0,"created_at":{at}}}"#
        );
        Grain::from_json(&grain).unwrap()
    };
    let objects = [r#""x""#, r#""y""#, r#"{"x":1,"y":[0.5]}"#, r#"{"x":2,"y":[0.5]}"#];
    let first = objects.map(|object| session.put(fact(object, 1000)).unwrap().address());
    for (object, stored) in objects.iter().zip(first) {
        let kept = session.put_fact(fact(object, 2000), SameFact::Keep).unwrap();
        assert_eq!(kept.address(), stored, "{object}");
    }
    assert_eq!(store.stats().unwrap().grains, 4);
    store.close().unwrap();
}

#[test]
fn a_ready_blob_is_kept_byte_for_byte_or_refused() {
    let (_dir, store) = store();
    let session = store.session(SessionOptions::default());
    let fact = |at| BeliefBuilder::new(EpochMs::new(at), "alice", "prefers", "tea", 1.0).build();
    session.put(fact(1000).unwrap()).unwrap();
    let blob = fact(2000).unwrap().encode(Default::default()).unwrap();
    let put = session.put_fact(blob, SameFact::Supersede);
    assert_eq!(put.map_err(|error| error.code()), Err("ERR_SCHEMA"));
}

#[test]
fn a_grain_that_is_not_current_supersedes_nothing() {
    let (_dir, store) = store();
    let session = store.session(SessionOptions::default());
    let first = session.put(derived("a", &[], None)).unwrap().address();
    let second = derived("b", &[first], None);
    let stored = session.put(second.clone()).unwrap().address();
    session.supersede(&stored, derived("b", &[], None), None).unwrap();
    let refused = session.supersede(&first, second, None);
    assert_eq!(refused.map_err(|error| error.code()), Err("ERR_CONFLICT"));
}

#[test]
fn nothing_ends_before_it_began_when_the_clock_runs_back() {
    let dir = TempDir::new().unwrap();
    let clock = Arc::new(ManualClock::following());
    clock.set(EpochMs::new(500));
    let options = OpenOptions::new().create(true).clock(clock);
    let session = Store::open(dir.path(), &options).unwrap().session(SessionOptions::default());
    let old = session.put(derived("a", &[], None)).unwrap().address();
    let new = derived("a", &[], Some(r#"{"mode": "open"}"#));
    session.supersede(&old, new, None).unwrap();
    assert_eq!(session.get(&old).unwrap().state.system_valid_to, Some(EpochMs::new(1000)));
}

#[test]
fn a_session_reads_no_audit_entry_of_another_namespace() {
    let (_dir, store) = store();
    let within = |namespace: &str| {
        let namespace = Some(namespace.to_owned());
        store.session(SessionOptions { namespace, ..SessionOptions::default() })
    };
    let fact = |object: &str| {
        BeliefBuilder::new(EpochMs::new(1000), "bob", "earns", object, 1.0).namespace("acme")
    };
    let acme = within("acme");
    let old = acme.put(fact("little").build().unwrap()).unwrap().address();
    acme.supersede(&old, fact("much").build().unwrap(), Some("a secret reason")).unwrap();
    assert!(within("zeta").audit(None, 100).unwrap().is_empty());
    let seen = acme.audit(None, 100).unwrap();
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[1].reason.as_deref(), Some("a secret reason"));
    assert_eq!(store.session(SessionOptions::default()).audit(None, 100).unwrap().len(), 3);
}

#[test]
fn a_store_that_cannot_be_looked_at_is_not_replaced() {
    let dir = TempDir::new().unwrap();
    let away = dir.path().join("away.redb");
    std::os::unix::fs::symlink(&away, dir.path().join("grains.redb")).unwrap();
    let opened = Store::open(dir.path(), &OpenOptions::new().create(true));
    assert_eq!(opened.map_err(|error| error.code()).err(), Some("ERR_IO"));
    assert!(dir.path().join("grains.redb").is_symlink());
}

#[test]
fn the_last_handle_may_go_while_the_writer_answers() {
    let (dir, store) = store();
    let session = store.session(SessionOptions::default());
    // The task owns the last handle, and is dropped by the writer's own wake-up.
    let waker = Arc::new(DropOnWake(Mutex::new(None)));
    let fact = |at| BeliefBuilder::new(EpochMs::new(at), "alice", "prefers", "tea", 1.0).build();
    let mut first = session.submit(fact(1).unwrap(), SameFact::Add).into_future();
    let second = session.submit(fact(2).unwrap(), SameFact::Add);
    let task = Waker::from(Arc::clone(&waker));
    let polled = Pin::new(&mut first).poll(&mut Context::from_waker(&task));
    *waker.0.lock().unwrap() = Some((session, store));
    if polled.is_ready() {
        waker.0.lock().unwrap().take();
    }
    assert!(second.wait().is_ok());
    drop(waker.0.lock().unwrap().take());
    let again = Store::open(dir.path(), &OpenOptions::new()).unwrap();
    assert_eq!(again.stats().unwrap().grains, 2);
}

/// A waker that drops what it holds, as an executor drops a finished task.
struct DropOnWake(Mutex<Option<(Session, Store)>>);

impl Wake for DropOnWake {
    fn wake(self: Arc<Self>) {
        drop(self.0.lock().unwrap().take());
    }
}

#[test]
fn a_consent_is_withdrawn_between_its_parties_whatever_its_policy() {
    let (_dir, store) = store();
    let session = store.session(SessionOptions::default());
    let consent = |from: &str, extra: &str| {
        Grain::from_json(&format!(
            r#"{{"type": "consent", "subject_did": "{from}", "grantee_did": "did:web:b",
                "scope": ["store"], "created_at": 1000{extra}}}"#
        ))
        .unwrap()
    };
    let locked = r#", "is_withdrawal": false, "invalidation_policy": {"mode": "locked"}"#;
    let grant = session.put(consent("did:web:a", locked)).unwrap().address();
    let belief = session.put(derived("a", &[], None)).unwrap().address();
    let withdraw = |from: &str, prior: &ContentAddress| {
        let extra = format!(r#", "is_withdrawal": true, "prior_consent": "{prior}""#);
        session.put(consent(from, &extra)).map_err(|error| error.code())
    };
    assert_eq!(withdraw("did:web:c", &grant), Err("ERR_INVALIDATION_DENIED"));
    assert_eq!(withdraw("did:web:a", &belief), Err("ERR_SCHEMA"));
    assert!(withdraw("did:web:a", &ContentAddress::of(b"unknown")).is_ok());
    assert!(session.get(&grant).unwrap().state.is_current());
    let withdrawal = withdraw("did:web:a", &grant).unwrap().address();
    assert_eq!(session.get(&grant).unwrap().state.superseded_by, Some(withdrawal));
    assert_eq!(withdraw("did:web:a", &grant), Ok(PutOutcome::Duplicate(withdrawal)));
    for version in [&grant, &withdrawal] {
        let chain = session.history(version).unwrap();
        assert_eq!(chain.iter().map(|v| v.address).collect::<Vec<_>>(), [withdrawal, grant]);
    }
    let again = format!(r#", "is_withdrawal": false, "prior_consent": "{withdrawal}""#);
    let renewed = session.put(consent("did:web:a", &again)).map_err(|error| error.code());
    assert_eq!(renewed, Err("ERR_SUPERSEDE_REQUIRED"));
}

#[test]
fn a_parent_named_ten_thousand_times_is_read_once() {
    let (_dir, store) = store();
    let session = store.session(SessionOptions::default());
    let big = BeliefBuilder::new(EpochMs::new(1), "big", "is", "x".repeat(1_000_000), 1.0);
    let parent = session.put(big.build().unwrap()).unwrap().address();
    // Read as often as it is named, this would take the writer through 10 GB.
    let grain = derived("a", &vec![parent; 10_000], None);
    assert!(session.put(grain).is_ok());
}

#[test]
fn a_refusal_names_no_grain_outside_the_session() {
    let (_dir, store) = store();
    let operator = store.session(SessionOptions::default());
    let locked = r#"{"mode": "locked", "scope": "subtree"}"#;
    let lock = derived("secret", &[], Some(locked)).into_fields();
    let lock = lock.into_iter().chain([("namespace".to_owned(), Value::from("hr"))]).collect();
    let lock = operator.put(Grain::from_fields(lock).unwrap()).unwrap().address();
    let namespace = Some("shared".to_owned());
    let shared = store.session(SessionOptions { namespace, ..SessionOptions::default() });
    let open = shared.put(derived("open", &[lock], None)).unwrap().address();
    let refused = shared.supersede(&open, derived("open", &[], None), None).unwrap_err();
    assert_eq!(refused.code(), "ERR_INVALIDATION_DENIED");
    assert!(!refused.to_string().contains(&lock.to_string()), "{refused}");
}

#[test]
fn a_namespace_is_the_same_in_every_unicode_form() {
    let (_dir, store) = store();
    let namespace = Some("cafe\u{301}".to_owned());
    let session = store.session(SessionOptions { namespace, ..SessionOptions::default() });
    let belief = BeliefBuilder::new(EpochMs::new(1), "a", "b", "c", 1.0).namespace("cafe\u{301}");
    assert!(session.put(belief.build().unwrap()).is_ok());
}

#[test]
fn many_large_grains_are_a_limit_not_a_memory() {
    let (_dir, store) = store();
    let session = store.session(SessionOptions::default());
    for at in 0..68 {
        let text = "x".repeat(1_000_000);
        let grain = BeliefBuilder::new(EpochMs::new(at), "big", "is", text, 1.0).build();
        session.put(grain.unwrap()).unwrap();
    }
    let recalled =
        session.ask("RECALL beliefs | LIMIT 70").map_err(|error| error.code().to_owned());
    assert_eq!(recalled.err().as_deref(), Some("CAL-E030"));
    assert!(session.ask("RECALL beliefs | LIMIT 5").is_ok());
}

#[test]
fn whoever_closes_a_store_finds_it_closed_when_that_returns() {
    for _ in 0..8 {
        let dir = TempDir::new().unwrap();
        let store = Store::open(dir.path(), &OpenOptions::new().create(true)).unwrap();
        let session = store.session(SessionOptions::default());
        let grains = (0..500).map(|at| {
            let subject = format!("s{at}");
            let built = BeliefBuilder::new(EpochMs::new(at), subject, "prefers", "tea", 1.0);
            built.build().unwrap()
        });
        session.put_batch(grains.collect::<Vec<_>>()).unwrap();
        let (begin, reopening) = (std::sync::Barrier::new(4), Mutex::new(()));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    begin.wait();
                    store.close().unwrap();
                    // One at a time, or they would find each other's.
                    let _one = reopening.lock().unwrap();
                    let now = OpenOptions::new().wait(std::time::Duration::ZERO);
                    Store::open(dir.path(), &now).unwrap().close().unwrap();
                });
            }
        });
    }
}
