//! Refusals that no policy decides and that are attempts all the same: each is in the audit log, by
//! the name of its rule, and leaves nothing else.

use std::sync::Arc;

use grainstore::embed::{Embedding, Metric};
use grainstore::format::{ContentAddress, Grain, sign};
use grainstore::{
    AuditEntry, EpochMs, EraseOptions, ManualClock, MasterKey, Offer, OpenOptions, Power,
    RuleResult, SameFact, Session, SessionOptions, Store,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::case::{key, proof_of};

const BOT: &str = "did:web:bot";

fn store() -> (TempDir, Store) {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path(), &OpenOptions::new().create(true)).unwrap();
    (dir, store)
}

/// A belief with these fields beside what it needs, or in its place.
fn belief(fields: &Value) -> Grain {
    let mut grain = json!({
        "type": "belief", "subject": "s", "relation": "r", "object": "o", "confidence": 1.0,
        "created_at": 1000,
    });
    for (name, value) in fields.as_object().unwrap() {
        grain[name] = value.clone();
    }
    Grain::from_json(&grain.to_string()).unwrap()
}

fn address(grain: &Grain) -> ContentAddress {
    grain.encode(Default::default()).unwrap().address()
}

/// The entries a call leaves.
fn entries(session: &Session, call: impl FnOnce()) -> Vec<AuditEntry> {
    let (before, _) = session.audit_head().unwrap();
    call();
    session.audit(before.checked_sub(1), 100).unwrap()
}

fn expect_one(told: &[AuditEntry], operation: &str, rule: &str, subjects: &[ContentAddress]) {
    assert_eq!(told.len(), 1, "{told:?}");
    let entry = &told[0];
    assert_eq!((entry.operation.as_str(), entry.decision.as_str()), (operation, "refused"));
    assert_eq!(entry.rules, [rule]);
    assert_eq!(entry.subjects, subjects);
    assert!(entry.why().is_some());
}

#[test]
fn a_disguised_supersession_of_what_is_protected_is_recorded() {
    let lock = json!({ "mode": "locked" });
    let shield = json!({ "mode": "locked", "scope": "subtree" });
    for (what, policy, above, held, is_recorded) in [
        ("its own lock", Some(lock), None, false, true),
        ("an inherited lock", None, Some(shield), false, true),
        ("a hold", None, None, true, true),
        ("nothing", None, None, false, false),
        ("open", Some(json!({ "mode": "open" })), None, false, false),
    ] {
        let (_dir, store) = store();
        let session = store.session(SessionOptions::default());
        let above = above.map(|policy| {
            let above = belief(&json!({ "subject": "above", "invalidation_policy": policy }));
            session.put(above).unwrap().address().to_string()
        });
        let mut old = json!({ "derived_from": above.into_iter().collect::<Vec<_>>() });
        if let Some(policy) = policy {
            old["invalidation_policy"] = policy;
        }
        let old = session.put(belief(&old)).unwrap().address();
        if held {
            session.hold(&old, "case 7").unwrap();
        }
        let other = session.put(belief(&json!({ "subject": "t" }))).unwrap().address();
        let parents = [old.to_string(), other.to_string()];
        let plain = belief(&json!({ "object": "new", "derived_from": parents }));
        let reasoned = belief(&json!({
            "object": "new", "derived_from": parents, "supersession_justification": "because",
        }));
        let refused = |outcome: Result<(), grainstore::Error>| {
            assert_eq!(outcome.map_err(|e| e.code()), Err("ERR_SUPERSEDE_REQUIRED"), "{what}");
        };
        for new in [plain, reasoned] {
            let told = entries(&session, || refused(session.put(new.clone()).map(drop)));
            if is_recorded {
                expect_one(&told, "supersede", "disguised_supersession", &[old, address(&new)]);
            } else {
                assert_eq!(told, [], "{what}");
            }
        }
        // Another parent is the one it says that it replaces.
        let sibling = session.put(belief(&json!({ "object": "sibling" }))).unwrap().address();
        let parents = [sibling.to_string(), old.to_string()];
        let new = belief(&json!({ "object": "new", "derived_from": parents }));
        let told = entries(&session, || {
            refused(session.supersede(&sibling, new.clone(), None).map(drop));
        });
        if is_recorded {
            expect_one(&told, "supersede", "disguised_supersession", &[old, address(&new)]);
        } else {
            assert_eq!(told, [], "{what}");
        }
    }
}

#[test]
fn a_new_grant_that_is_put_in_the_place_of_a_consent_is_recorded() {
    let (_dir, store) = store();
    let session = store.session(SessionOptions::default());
    let consent = |fields: Value| {
        let mut grain = json!({
            "type": "consent", "subject_did": "did:web:a", "grantee_did": "did:web:b",
            "scope": ["store"], "is_withdrawal": false, "created_at": 1000,
        });
        for (name, value) in fields.as_object().unwrap() {
            grain[name] = value.clone();
        }
        Grain::from_json(&grain.to_string()).unwrap()
    };
    let old = session.put(consent(json!({}))).unwrap().address();
    let new = consent(json!({ "prior_consent": old.to_string() }));
    let told = entries(&session, || {
        let refused = session.put(new.clone()).map_err(|error| error.code());
        assert_eq!(refused, Err("ERR_SUPERSEDE_REQUIRED"));
    });
    expect_one(&told, "supersede", "disguised_supersession", &[old, address(&new)]);
}

#[test]
fn an_agent_that_declares_its_owner_is_recorded() {
    let (_dir, store) = store();
    let operator = store.session(SessionOptions::default());
    let actor = Some(BOT.to_owned());
    let bot = store.session(SessionOptions { actor, ..SessionOptions::default() });
    let owned = |fields: Value| {
        let mut all = json!({
            "subject": BOT, "relation": "mg:owned_by", "namespace": "agent:identity",
        });
        all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        belief(&all)
    };
    let by_itself = owned(json!({ "author_did": BOT }));
    let anonymous = owned(json!({}));
    let code = |error: grainstore::Error| (error.code(), error.batch_index());
    for (session, grain) in [(&operator, by_itself.clone()), (&bot, anonymous.clone())] {
        let told = entries(session, || {
            assert_eq!(session.put(grain.clone()).map_err(code), Err(("ERR_POLICY", None)));
        });
        expect_one(&told, "put", "own_ownership", &[address(&grain)]);
    }
    // An equal one would be counted.
    let another = owned(json!({ "object": "another" }));
    let told = entries(&bot, || {
        let batch = bot.put_batch([belief(&json!({})), another.clone()]);
        assert_eq!(batch.map_err(code), Err(("ERR_POLICY", Some(1))));
    });
    expect_one(&told, "put", "own_ownership", &[address(&another)]);
    assert!(!operator.exists(&address(&belief(&json!({})))).unwrap());
    let old = owned(json!({ "author_did": "did:web:owner" }));
    let old = operator.put(old).unwrap().address();
    let new =
        owned(json!({ "object": "me", "author_did": BOT, "derived_from": [old.to_string()] }));
    let trial = bot.try_supersede(&old, new.clone(), None).unwrap();
    assert_eq!(trial.refusal.map(|error| error.code()), Some("ERR_POLICY"));
    let told = entries(&bot, || {
        assert_eq!(bot.supersede(&old, new.clone(), None).map_err(code), Err(("ERR_POLICY", None)));
    });
    expect_one(&told, "supersede", "own_ownership", &[old, address(&new)]);
    assert!(operator.get(&old).unwrap().state.is_current());
}

/// A forged signature: of one grain around another.
fn forged(subject: &str, seed: u8) -> (Vec<u8>, String) {
    let blob = |subject: &str| {
        let grain = belief(&json!({ "subject": subject }));
        grain.encode(Default::default()).unwrap().into_bytes()
    };
    let signed = sign(&blob(subject), &key(seed), None).unwrap().into_bytes();
    let mut bytes = signed;
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    (bytes, key(seed).did().to_string())
}

#[test]
fn a_forged_signature_is_recorded_with_the_key_it_claims_on_every_way_in() {
    let (_dir, store) = store();
    let session = store.session(SessionOptions::default());
    let target = session.put(belief(&json!({ "subject": "target" }))).unwrap().address();
    let (bytes, did) = forged("one", 3);
    let offer = || Offer::Signed(bytes.clone());
    let vector = || vec![Embedding::new("m", Metric::Cosine, vec![1.0]).unwrap()];
    let put = entries(&session, || drop(session.put(offer()).unwrap_err()));
    assert_eq!((put.len(), put[0].kid.as_deref()), (1, Some(did.as_str())));
    assert_eq!((put[0].operation.as_str(), put[0].decision.as_str()), ("put", "refused"));
    assert_eq!(put[0].rules, ["invalid_signature"]);
    assert!(put[0].why().is_some());
    let over = entries(&session, || {
        assert_eq!(session.supersede(&target, offer(), None).unwrap_err().code(), "ERR_SIGNATURE");
    });
    assert_eq!((over.len(), over[0].operation.as_str()), (1, "supersede"));
    assert_eq!(over[0].subjects.first(), Some(&target));
    // The same put again, by whatever way, is counted.
    let more = entries(&session, || {
        for _ in 0..5 {
            session.put(offer()).unwrap_err();
            session.put_batch([offer()]).unwrap_err();
            session.put(offer().with_vectors(vector())).unwrap_err();
            session.submit(offer(), SameFact::Add).wait().unwrap_err();
        }
        session.try_supersede(&target, offer(), None).unwrap_err();
        store.flush().unwrap();
    });
    assert_eq!(more.iter().map(|entry| entry.count).collect::<Vec<_>>(), [Some(20)]);
    assert_eq!(more[0].kid.as_deref(), Some(did.as_str()));
    assert!(store.verify(true).unwrap().ok);
}

#[test]
fn equal_refusals_of_a_policy_are_one_entry_and_a_count_that_outlives_closing() {
    let (dir, store) = store();
    let session = store.session(SessionOptions::default());
    let lock = belief(&json!({ "invalidation_policy": { "mode": "locked" } }));
    let target = session.put(lock).unwrap().address();
    let told = entries(&session, || {
        for version in 0..50 {
            let new = belief(&json!({ "created_at": 2000 }));
            let reason = format!("reason {version}");
            session.supersede(&target, new, None).unwrap_err();
            session.contradict(&target, &reason, None).unwrap_err();
        }
    });
    let told: Vec<_> = told.iter().map(|entry| (entry.operation.as_str(), entry.count)).collect();
    assert_eq!(told, [("supersede", None), ("contradict", None)]);
    drop(session);
    store.close().unwrap();
    let store = Store::open(dir.path(), &OpenOptions::new()).unwrap();
    let session = store.session(SessionOptions::default());
    let counts: Vec<_> =
        session.audit(None, 100).unwrap().into_iter().filter_map(|entry| entry.count).collect();
    assert_eq!(counts, [49, 49]);
    assert!(store.verify(true).unwrap().ok);
}

/// What is refused, its operation, and how.
type Refusal<'a> = (&'a str, &'a str, &'a dyn Fn() -> Option<grainstore::Error>);

#[test]
fn no_kind_of_refusal_grows_the_log_by_its_number() {
    const TIMES: usize = 1000;
    let (_dir, store) = store();
    let operator = store.session(SessionOptions::default());
    let team = store.session(SessionOptions {
        namespace: Some("team".to_owned()),
        actor: Some(BOT.to_owned()),
        ..SessionOptions::default()
    });
    let named =
        |subject: &str| json!({ "subject": subject, "namespace": "team", "user_id": "ann" });
    let put = |fields: Value| operator.put(belief(&fields)).unwrap().address();
    let mut locked = named("locked");
    locked["invalidation_policy"] = json!({ "mode": "delegated", "authorized": ["did:web:x"] });
    let (locked, held) = (put(locked), put(named("held")));
    operator.hold(&held, "case 7").unwrap();
    let (forged, did) = forged("one", 3);
    let stranger = proof_of("contradict", &held, 4);
    let how = EraseOptions::new();
    let valid = proof_of("contradict", &locked, 5);
    let kinds: [Refusal<'_>; 10] = [
        ("valid", "contradict", &|| team.contradict(&locked, "mine", Some(&valid)).err()),
        ("signature", "put", &|| team.put(Offer::Signed(forged.clone())).err()),
        ("another namespace", "put", &|| team.put(belief(&json!({ "namespace": "b" }))).err()),
        ("policy", "supersede", &|| team.supersede(&locked, belief(&named("locked")), None).err()),
        ("proof", "contradict", &|| team.contradict(&locked, "why", Some(&stranger)).err()),
        ("lift", "lift_hold", &|| team.lift_hold(&held, "mine", None).err()),
        ("power", "compact", &|| team.check_power(Power::Compact).err()),
        ("others", "erase", &|| team.erase(&held, "mine", &how).err()),
        ("held", "erase", &|| operator.erase(&held, "asked", &how).err()),
        ("held user", "erase_user", &|| operator.erase_user("ann", "asked", &how).err()),
    ];
    for (kind, operation, refused) in kinds {
        let told = entries(&operator, || {
            for time in 0..TIMES {
                assert!(refused().is_some(), "{kind} {time}");
            }
        });
        // A slow machine may take more than a minute.
        assert!((1..20).contains(&told.len()), "{kind}: {}", told.len());
        let first = &told[0];
        assert_eq!((&*first.operation, &*first.decision), (operation, "refused"), "{kind}");
        let error = refused().unwrap();
        assert_eq!(first.code.as_deref(), Some(error.code()), "{kind}");
        assert_eq!(first.results.len(), first.rules.len(), "{kind}");
        let (last, others) = first.results.split_last().unwrap();
        assert_eq!(
            (*last, others.contains(&RuleResult::Fail)),
            (RuleResult::Fail, false),
            "{kind}"
        );
        if kind == "signature" {
            assert_eq!(first.kid.as_deref(), Some(&*did));
        } else if let "proof" | "valid" = kind {
            let signer = key(if kind == "valid" { 5 } else { 4 }).did().to_string();
            assert_eq!(first.kid.as_deref(), Some(&*signer), "{kind}");
        }
    }
    store.flush().unwrap();
    let counts = operator.audit(None, 1000).unwrap();
    let refusals = 1 + TIMES as u64;
    let all: u64 = counts
        .iter()
        .filter(|entry| entry.decision == "refused")
        .map(|entry| entry.count.unwrap_or(1))
        .sum();
    assert_eq!(all, 10 * refusals);
    assert!(store.verify(true).unwrap().ok);
}

#[test]
fn what_lies_outside_a_session_is_refused_and_recorded() {
    let (_dir, store) = store();
    let team = store.session(SessionOptions {
        namespace: Some("team".to_owned()),
        ..SessionOptions::default()
    });
    let operator = store.session(SessionOptions::default());
    let other = belief(&json!({ "namespace": "elsewhere" }));
    let told = entries(&operator, || {
        assert_eq!(team.put(other.clone()).unwrap_err().code(), "ERR_ACCESS");
    });
    assert_eq!((told.len(), &told[0].rules[..]), (1, &["outside_session".to_owned()][..]));
}

#[test]
fn a_hold_is_lifted_in_no_session_that_is_limited() {
    for named in [None, Some("did:web:ops")] {
        let dir = TempDir::new().unwrap();
        let options = OpenOptions::new().create(true);
        let options = named.into_iter().fold(options, OpenOptions::operator);
        let store = Store::open(dir.path(), &options).unwrap();
        let operator = store.session(SessionOptions::default());
        let grain = belief(&json!({ "namespace": "team", "user_id": "ann" }));
        let address = operator.put(grain).unwrap().address();
        operator.hold(&address, "case 7").unwrap();
        for (namespace, user) in
            [(Some("team"), None), (None, Some("ann")), (Some("team"), Some("ann"))]
        {
            for actor in [None, named] {
                let session = store.session(SessionOptions {
                    namespace: namespace.map(str::to_owned),
                    user_id: user.map(str::to_owned),
                    actor: actor.map(str::to_owned),
                    ..SessionOptions::default()
                });
                let code = session.lift_hold(&address, "mine", None).unwrap_err().code();
                assert_eq!(code, "ERR_ACCESS", "{namespace:?} {user:?} {actor:?}");
                assert!(operator.get(&address).unwrap().state.held);
            }
        }
        operator.lift_hold(&address, "settled", None).unwrap();
    }
}

#[test]
fn equal_refusals_are_folded_across_openings() {
    let begun = 2_000_000_000_000;
    let (cose, _) = forged("s", 7);
    for encrypted in [false, true] {
        let dir = TempDir::new().unwrap();
        let clock = Arc::new(ManualClock::following());
        let open = |at: i64| {
            clock.set(EpochMs::new(begun + at));
            let options = OpenOptions::new().create(true).clock(Arc::<ManualClock>::clone(&clock));
            let key = || MasterKey::new([5; 32]);
            let options = if encrypted { options.key(key()) } else { options };
            Store::open(dir.path(), &options).unwrap()
        };
        let attempt = |at: i64, actor: &str| {
            let store = open(at);
            let actor = Some(actor.to_owned());
            let session = store.session(SessionOptions { actor, ..SessionOptions::default() });
            let refused = session.put(Offer::Signed(cose.clone()));
            assert_eq!(refused.unwrap_err().code(), "ERR_SIGNATURE");
            drop(session);
            store.close().unwrap();
        };
        let told = |at: i64| {
            let store = open(at);
            assert!(store.verify(true).unwrap().ok);
            let all = store.session(SessionOptions::default()).audit(None, 1000).unwrap();
            let refused = all.into_iter().filter(|entry| entry.decision == "refused");
            refused.map(|entry| entry.count).collect::<Vec<_>>()
        };
        for time in 0..6 {
            attempt(1000 * time, "did:web:a");
            attempt(1000 * time, "did:web:b");
        }
        // Of each actor the first, and one count.
        assert_eq!(told(6000), [None, None, Some(1), Some(1)], "encrypted: {encrypted}");
        // The further ones are not lost: they are counted once the minute is over.
        attempt(60_000, "did:web:a");
        let all = [None, None, Some(1), Some(1), None, Some(4), Some(4)];
        assert_eq!(told(60_001), all, "encrypted: {encrypted}");
        for time in 0..3 {
            attempt(61_000 + 1000 * time, "did:web:a");
        }
        drop(told(200_000));
        let told = told(200_001);
        assert_eq!(told[7..], [Some(3)], "encrypted: {encrypted}");
        assert_eq!(told.iter().map(|count| count.unwrap_or(1)).sum::<u64>(), 16);
    }
}

#[test]
fn an_envelope_that_cannot_be_read_is_recorded_as_a_signature_that_is_missing() {
    let (cose, _) = forged("s", 7);
    for bytes in [cose[..cose.len() - 70].to_vec(), b"garbage".to_vec()] {
        let (_dir, store) = store();
        let session = store.session(SessionOptions::default());
        let target = session.put(belief(&json!({ "subject": "old" }))).unwrap().address();
        let told = entries(&session, || {
            let refused = session.put(Offer::Signed(bytes.clone())).unwrap_err();
            assert_eq!(refused.code(), "ERR_CORRUPT");
        });
        expect_one(&told, "put", "invalid_signature", &[]);
        let told = entries(&session, || {
            session.supersede(&target, Offer::Signed(bytes.clone()), None).unwrap_err();
        });
        expect_one(&told, "supersede", "invalid_signature", &[target]);
        // What is offered without a signature has none that could be missing.
        let told = entries(&session, || drop(session.put(Offer::Blob(bytes.clone())).unwrap_err()));
        assert_eq!(told, []);
    }
}
