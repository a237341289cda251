//! Sessions as a host uses them: put, get, supersede, history, namespaces, reopening.
#![expect(clippy::unwrap_used, reason = "a test stops at a surprise")]

use grainstore::format::{BeliefBuilder, ContentAddress, EpochMs, Grain};
use grainstore::limits::{MAX_AUDIT_ENTRIES, MAX_REASON_BYTES, MAX_REASONS_BYTES};
use grainstore::{
    OpenOptions, PutOutcome, SameFact, Session, SessionOptions, Store, VerificationStatus,
};
use tempfile::TempDir;

fn store() -> (TempDir, Store) {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path(), &OpenOptions::new().create(true)).unwrap();
    (dir, store)
}

fn operator(store: &Store) -> Session {
    store.session(SessionOptions::default())
}

fn within(store: &Store, namespace: &str) -> Session {
    store.session(SessionOptions {
        namespace: Some(namespace.to_owned()),
        ..SessionOptions::default()
    })
}

fn belief(subject: &str, object: &str, at: i64) -> BeliefBuilder {
    BeliefBuilder::new(EpochMs::new(at), subject, "prefers", object, 0.9)
}

fn code<T>(result: grainstore::Result<T>) -> &'static str {
    result.map_or_else(|error| error.code(), |_| "OK")
}

#[test]
fn what_was_put_is_got_back_byte_for_byte_after_reopening() {
    let (dir, store) = store();
    let grain = belief("alice", "tea", 1000).build().unwrap();
    let blob = grain.encode(Default::default()).unwrap();
    let put = operator(&store).put(grain).unwrap();
    assert_eq!(put, PutOutcome::Added(blob.address()));
    store.close().unwrap();
    let store = Store::open(dir.path(), &OpenOptions::new()).unwrap();
    let stored = operator(&store).get(&blob.address()).unwrap();
    assert_eq!(stored.blob, blob.bytes());
    assert!(stored.state.is_current());
}

#[test]
fn the_same_bytes_again_are_a_no_op_that_says_so() {
    let (_dir, store) = store();
    let session = operator(&store);
    let grain = belief("alice", "tea", 1000).build().unwrap();
    let first = session.put(grain.clone()).unwrap();
    let entries = session.audit(None, 10).unwrap().len();
    assert_eq!(session.put(grain).unwrap(), PutOutcome::Duplicate(first.address()));
    assert_eq!(session.audit(None, 10).unwrap().len(), entries);
    assert_eq!(store.stats().unwrap().grains, 1);
}

#[test]
fn a_batch_is_stored_whole_or_not_at_all() {
    let (_dir, store) = store();
    let session = operator(&store);
    let good = belief("alice", "tea", 1000).build().unwrap();
    let bad = belief("alice", "tea", 2000).supersession_justification("no").build().unwrap();
    assert_eq!(code(session.put_batch([good.clone(), bad])), "ERR_SUPERSEDE_REQUIRED");
    assert_eq!(store.stats().unwrap().grains, 0);
    let puts = session.put_batch([good.clone(), good]).unwrap();
    assert!(matches!(puts.as_slice(), [PutOutcome::Added(a), PutOutcome::Duplicate(b)] if a == b));
}

#[test]
fn a_batch_whose_child_comes_before_its_parent_is_decided_as_in_the_other_order() {
    let (_dir, store) = store();
    let session = operator(&store);
    let old = belief("alice", "tea", 1000).build().unwrap();
    let parent = old.encode(Default::default()).unwrap().address();
    let next = belief("alice", "coffee", 2000).derived_from(vec![parent.to_string().into()]);
    let next = next.build().unwrap();
    for (batch, refused) in [([old.clone(), next.clone()], 1), ([next, old], 0)] {
        let error = session.put_batch(batch).unwrap_err();
        assert_eq!((error.code(), error.batch_index()), ("ERR_SUPERSEDE_REQUIRED", Some(refused)));
    }
    assert_eq!(store.stats().unwrap().grains, 0);
}

#[test]
fn superseding_moves_the_head_and_keeps_the_history() {
    let (_dir, store) = store();
    let session = operator(&store);
    let first = session.put(belief("alice", "tea", 1000).build().unwrap()).unwrap().address();
    let second = belief("alice", "coffee", 2000).build().unwrap();
    let second = session.supersede(&first, second, None).unwrap();
    let third = belief("alice", "water", 1500).build().unwrap();
    let third_address = session.supersede(&second, third.clone(), None).unwrap();

    let state = session.get(&first).unwrap().state;
    assert_eq!(state.superseded_by, Some(second));
    assert!(state.system_valid_to.is_some());
    let chain = |address: &ContentAddress| -> Vec<_> {
        session.history(address).unwrap().iter().map(|version| version.address).collect()
    };
    for address in [&first, &second, &third_address] {
        assert_eq!(chain(address), [third_address, second, first]);
    }
    let of: Vec<_> = session.history_of("alice", "prefers", None, None).unwrap();
    assert_eq!(of.len(), 3);
    assert_eq!(session.supersede(&second, third, None).unwrap(), third_address, "a no-op");
    let other = belief("alice", "juice", 3000).build().unwrap();
    assert_eq!(code(session.supersede(&first, other, None)), "ERR_CONFLICT");
}

#[test]
fn invalidation_policies_are_enforced_and_refusals_recorded() {
    let (_dir, store) = store();
    let session = operator(&store);
    let rows = [
        (r#"{"mode": "open"}"#, None, "OK"),
        (r#"{"mode": "soft_locked"}"#, None, "ERR_INVALIDATION_DENIED"),
        (r#"{"mode": "soft_locked"}"#, Some("it moved"), "OK"),
        (r#"{"mode": "locked"}"#, Some("it moved"), "ERR_INVALIDATION_DENIED"),
        (r#"{"mode": "hold"}"#, Some("it moved"), "ERR_INVALIDATION_DENIED"),
        (r#"{"mode": "quorum", "threshold": 1}"#, Some("x"), "ERR_INVALIDATION_DENIED"),
        (r#"{"mode": "delegated"}"#, Some("x"), "ERR_INVALIDATION_DENIED"),
        (r#"{"mode": "unheard-of"}"#, Some("x"), "ERR_INVALIDATION_DENIED"),
    ];
    for (n, (policy, justification, expected)) in rows.into_iter().enumerate() {
        let grain = Grain::from_json(&format!(
            r#"{{"type": "belief", "subject": "rule {n}", "relation": "is", "object": "old",
                "confidence": 1, "created_at": 1000, "invalidation_policy": {policy}}}"#
        ));
        let old = session.put(grain.unwrap()).unwrap().address();
        let new = BeliefBuilder::new(EpochMs::new(2000), format!("rule {n}"), "is", "new", 1.0);
        let result = session.supersede(&old, new.build().unwrap(), justification);
        let last = session.audit(None, 1000).unwrap().pop().unwrap();
        match &result {
            Ok(new) => {
                let state = session.get(new).unwrap().state;
                assert_eq!(state.needs_review, policy.contains("soft"), "{policy}");
                assert_eq!(last.decision, "done");
            }
            Err(_) => {
                assert!(session.get(&old).unwrap().state.is_current(), "{policy}");
                assert_eq!(
                    (last.operation.as_str(), last.decision.as_str()),
                    ("supersede", "refused")
                );
            }
        }
        assert_eq!(code(result), expected, "{policy}");
    }
}

#[test]
fn a_put_cannot_supersede_in_disguise() {
    let (_dir, store) = store();
    let session = operator(&store);
    let old = session.put(belief("alice", "tea", 1000).build().unwrap()).unwrap().address();
    let parent = || vec![grainstore::format::Value::from(old.to_string())];
    let disguised = belief("alice", "coffee", 2000).derived_from(parent()).build().unwrap();
    assert_eq!(code(session.put(disguised)), "ERR_SUPERSEDE_REQUIRED");
    let other_subject = belief("bob", "coffee", 2000).derived_from(parent()).build().unwrap();
    assert_eq!(code(session.put(other_subject)), "OK");
    // A level alone brings nothing together: it takes two parents that are here.
    let other = session.put(belief("bob", "rice", 1000).build().unwrap()).unwrap().address();
    let of = |address: &str| vec![old.to_string().into(), address.to_owned().into()];
    for (parents, told) in [
        (parent(), "ERR_SUPERSEDE_REQUIRED"),
        (of(&old.to_string()), "ERR_SUPERSEDE_REQUIRED"),
        (of(&"0".repeat(64)), "ERR_SUPERSEDE_REQUIRED"),
        (of(&other.to_string()), "OK"),
    ] {
        let digest = belief("alice", "hot drinks", 2000).derived_from(parents);
        let digest = digest.consolidation_level(1).build().unwrap();
        assert_eq!(code(session.put(digest)), told);
    }
}

#[test]
fn the_caller_chooses_what_the_same_fact_does() {
    let (_dir, store) = store();
    let session = operator(&store);
    let first = session.put(belief("alice", "tea", 1000).build().unwrap()).unwrap().address();
    let again = |at| belief("alice", "tea", at).build().unwrap();
    assert_eq!(session.put_fact(again(2000), SameFact::Keep).unwrap(), PutOutcome::Kept(first));
    let replaced = session.put_fact(again(3000), SameFact::Supersede).unwrap();
    let PutOutcome::Replaced { old, new } = replaced else { panic!("{replaced:?}") };
    assert_eq!(old, first);
    assert_eq!(session.get(&first).unwrap().state.superseded_by, Some(new));
    assert!(matches!(session.put_fact(again(4000), SameFact::Add).unwrap(), PutOutcome::Added(_)));
}

#[test]
fn a_session_sees_and_writes_its_namespace_and_below() {
    let (_dir, store) = store();
    let everything = operator(&store);
    let put = |namespace: &str| {
        let grain = belief("alice", namespace, 1000).namespace(namespace).build().unwrap();
        everything.put(grain).unwrap().address()
    };
    let (acme, bot, other, shared) = (put("acme"), put("acme:bot"), put("acme2"), put(""));
    let session = within(&store, "acme");
    let seen = |address| session.exists(address).unwrap();
    assert_eq!([seen(&acme), seen(&bot), seen(&other), seen(&shared)], [true, true, false, false]);
    assert_eq!(code(session.get(&other)), "ERR_NOT_FOUND");
    assert!(within(&store, "shared").exists(&shared).unwrap());
    let outside = belief("alice", "x", 1000).namespace("acme2").build().unwrap();
    assert_eq!(code(session.put(outside.clone())), "ERR_ACCESS");
    assert_eq!(code(session.supersede(&acme, outside, None)), "ERR_ACCESS");
    let inside = belief("alice", "x", 1000).namespace("acme").build().unwrap();
    assert_eq!(code(session.supersede(&other, inside, None)), "ERR_NOT_FOUND");
}

#[test]
fn a_second_handle_is_told_that_the_store_is_busy() {
    let (dir, store) = store();
    let impatient = OpenOptions::new().wait(std::time::Duration::ZERO);
    assert_eq!(code(Store::open(dir.path(), &impatient)), "ERR_BUSY");
    store.close().unwrap();
    assert_eq!(code(Store::open(dir.path(), &impatient)), "OK");
}

#[test]
fn a_directory_that_is_no_store_is_refused() {
    let dir = TempDir::new().unwrap();
    assert_eq!(code(Store::open(dir.path(), &OpenOptions::new())), "ERR_NOT_FOUND");
    drop(redb::Database::create(dir.path().join("grains.redb")).unwrap());
    assert_eq!(code(Store::open(dir.path(), &OpenOptions::new())), "ERR_STORE_VERSION");
}

#[test]
fn a_closed_store_refuses_politely() {
    let (_dir, store) = store();
    let session = operator(&store);
    store.close().unwrap();
    store.close().unwrap();
    assert_eq!(code(session.put(belief("alice", "tea", 1000).build().unwrap())), "ERR_IO");
    assert_eq!(code(session.get(&ContentAddress::of(b""))), "ERR_IO");
    assert_eq!(code(store.flush()), "ERR_IO");
}

#[test]
fn a_third_party_that_withdraws_a_consent_is_looked_at_unless_it_is_the_named_operator() {
    let (subject, third) = ("did:web:subject", "did:web:third");
    for (operator, actor, review) in [
        (None, None, false),
        (None, Some(subject), false),
        (None, Some(third), true),
        (Some(third), Some(third), false),
        (Some("did:web:other"), Some(third), true),
        (Some("did:web:other"), None, false),
    ] {
        let dir = TempDir::new().unwrap();
        let options = OpenOptions::new().create(true);
        let options = operator.into_iter().fold(options, OpenOptions::operator);
        let store = Store::open(dir.path(), &options).unwrap();
        let actor = actor.map(str::to_owned);
        let session = store.session(SessionOptions { actor, ..SessionOptions::default() });
        let consent = |more: &str| {
            let json = format!(
                r#"{{"type": "consent", "subject_did": "{subject}", "grantee_did": "did:web:grantee",
                     "scope": ["recall"], "created_at": 1{more}}}"#
            );
            session.put(Grain::from_json(&json).unwrap()).unwrap().address()
        };
        let grant = consent(r#", "is_withdrawal": false"#);
        let withdrawal =
            consent(&format!(r#", "is_withdrawal": true, "prior_consent": "{grant}""#));
        assert_eq!(session.get(&grant).unwrap().state.superseded_by, Some(withdrawal));
        let state = session.get(&withdrawal).unwrap().state;
        assert_eq!(state.needs_review, review, "{operator:?}, {:?}", session.options().actor);
    }
}

#[test]
fn a_reason_beyond_its_bound_is_refused_and_leaves_no_trace() {
    let (_dir, store) = store();
    let session = operator(&store);
    let put = |object| session.put(belief("alice", object, 1).build().unwrap()).unwrap().address();
    let (grain, old) = (put("tea"), put("milk"));
    let next = || belief("alice", "water", 2).build().unwrap();
    let entries = store.stats().unwrap().audit_entries;
    let long = "x".repeat(MAX_REASON_BYTES + 1);
    for refused in [
        session.hold(&grain, &long),
        session.lift_hold(&grain, &long, None),
        session.contradict(&grain, &long, None),
        session.set_verification(&grain, VerificationStatus::Contested, &long, None),
        session.supersede(&old, next(), Some(&long)).map(drop),
        session.try_supersede(&old, next(), Some(&long)).map(drop),
    ] {
        assert_eq!(code(refused), "ERR_TOO_LARGE");
    }
    assert_eq!(store.stats().unwrap().audit_entries, entries);
    let most = long.get(1..).unwrap();
    session.hold(&grain, most).unwrap();
    session.supersede(&old, next(), Some(most)).unwrap();
    let reasons: Vec<_> = session.audit(Some(entries - 1), 10).unwrap();
    assert!(reasons.iter().all(|entry| entry.reason.as_deref() == Some(most)), "{reasons:?}");
    assert_eq!(reasons.len(), 2);
}

/// Refused supersessions by the hundred, each with as long a justification as there can be.
#[test]
fn a_page_of_the_audit_log_ends_behind_so_many_bytes_of_reasons() {
    let (_dir, store) = store();
    let session = operator(&store);
    let locked = r#"{"type": "belief", "subject": "s", "relation": "r", "object": "o", "confidence": 1,
        "created_at": 0, "invalidation_policy": {"mode": "locked"}}"#;
    let locked = session.put(Grain::from_json(locked).unwrap()).unwrap().address();
    let why = "x".repeat(MAX_REASON_BYTES);
    let attempts = MAX_REASONS_BYTES / MAX_REASON_BYTES + 10;
    for _ in 0..attempts {
        session.hold(&locked, &why).unwrap();
    }
    let first = session.audit(None, MAX_AUDIT_ENTRIES).unwrap();
    // Genesis and the put have no reason.
    assert_eq!(first.len(), 2 + MAX_REASONS_BYTES / MAX_REASON_BYTES);
    let rest = session.audit(first.last().map(|entry| entry.sequence), MAX_AUDIT_ENTRIES).unwrap();
    assert_eq!(rest.len(), 10);
    assert_eq!(rest.last().map(|entry| entry.sequence + 1), Some(2 + attempts as u64));
}
