//! Refusals that no policy decides and that are attempts all the same: each is in the audit log, by
//! the name of its rule, and leaves nothing else.

use grainstore::format::{ContentAddress, Grain};
use grainstore::{AuditEntry, OpenOptions, Session, SessionOptions, Store};
use serde_json::{Value, json};
use tempfile::TempDir;

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
    let told = entries(&bot, || {
        let batch = bot.put_batch([belief(&json!({})), anonymous.clone()]);
        assert_eq!(batch.map_err(code), Err(("ERR_POLICY", Some(1))));
    });
    expect_one(&told, "put", "own_ownership", &[address(&anonymous)]);
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
