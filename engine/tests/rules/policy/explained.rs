//! What is said of a stored grain, compared with what happens to it: in every mode and scope, and whether the
//! policy is its own, that of an older version, or that of an ancestor.

use std::sync::Arc;

use grainstore::format::cose::{proof, sign, sign_detached};
use grainstore::format::{ContentAddress, EpochMs, Grain};
use grainstore::{
    ManualClock, Offer, OpenOptions, PolicyExplanation, Session, SessionOptions, Store,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::case::key;

/// The time of the test, in epoch seconds.
const NOW_S: i64 = 1_000_000;

/// Where the policy is.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Place {
    Own,
    Older,
    Ancestor,
}

/// What a caller brings, in ascending order, by what the explanation calls it.
const WAYS: [&str; 4] = ["anyone", "anyone_with_justification", "one_authorized_signer", "quorum"];

fn store(accepts: bool) -> (TempDir, Store, Session) {
    let dir = TempDir::new().unwrap();
    let clock = Arc::new(ManualClock::following());
    clock.set(EpochMs::new(NOW_S * 1000));
    let options =
        OpenOptions::new().create(true).clock(clock).locked_accepts_authorized_signature(accepts);
    let store = Store::open(dir.path(), &options).unwrap();
    let session = store.session(SessionOptions::default());
    (dir, store, session)
}

fn policies() -> Vec<Value> {
    let (one, two) = (key(1).did().to_string(), key(2).did().to_string());
    let timed = |until: i64, fallback: &str| {
        json!({ "mode": "timed", "locked_until": until, "fallback_mode": fallback,
                "authorized": [one], "threshold": 1 })
    };
    vec![
        json!({ "mode": "open" }),
        json!({ "mode": "consent_cascade" }),
        json!({ "mode": "soft_locked" }),
        json!({ "mode": "locked", "authorized": [one] }),
        json!({ "mode": "quorum", "threshold": 2, "authorized": [one, two] }),
        json!({ "mode": "quorum", "authorized": [one, two] }),
        json!({ "mode": "delegated", "authorized": [two, one] }),
        json!({ "mode": "delegated" }),
        json!({ "mode": "hold" }),
        json!({ "mode": "ajar" }),
        json!({ "mode": 7 }),
        timed(NOW_S + 1, "open"),
        timed(NOW_S, "open"),
        timed(NOW_S, "soft_locked"),
        timed(NOW_S, "delegated"),
        timed(NOW_S, "quorum"),
        timed(NOW_S, "hold"),
    ]
}

fn grain(fields: &Value) -> Grain {
    Grain::from_json(&fields.to_string()).unwrap()
}

fn belief(subject: &str, parents: &[ContentAddress]) -> Value {
    let parents: Vec<_> = parents.iter().map(ToString::to_string).collect();
    json!({ "type": "belief", "subject": subject, "relation": "r", "object": "o", "confidence": 1,
            "created_at": 1000, "derived_from": parents })
}

fn goal(state: &str, parents: &[ContentAddress]) -> Value {
    let parents: Vec<_> = parents.iter().map(ToString::to_string).collect();
    json!({ "type": "goal", "description": "ship it", "goal_state": state, "created_at": 1000,
            "allowed_transitions": ["suspended"], "derived_from": parents })
}

fn put(session: &Session, fields: &Value) -> ContentAddress {
    session.put(grain(fields)).unwrap().address()
}

/// Stores a grain under a policy in that place: the grain in question, and that which has the policy.
fn stored(session: &Session, place: Place, policy: &Value) -> (ContentAddress, ContentAddress) {
    let under = |mut fields: Value| {
        fields["invalidation_policy"] = policy.clone();
        fields
    };
    match place {
        Place::Own => {
            let own = put(session, &under(belief("s", &[])));
            (own, own)
        }
        Place::Ancestor => {
            let source = put(session, &under(belief("source", &[])));
            let between = put(session, &belief("between", &[source]));
            (put(session, &belief("s", &[between])), source)
        }
        Place::Older => {
            let old = put(session, &under(goal("active", &[])));
            let holds = session.get(&old).unwrap().state.held;
            if holds {
                session.lift_hold(&old, "for now", None).unwrap();
            }
            let new = goal("suspended", &[old]);
            let new = session.supersede(&old, grain(&new), None).unwrap();
            if holds {
                session.hold(&old, "again").unwrap();
            }
            (new, old)
        }
    }
}

/// A successor that brings what the way takes.
fn successor(old: &ContentAddress, place: Place, way: &str) -> Offer {
    let mut new = match place {
        Place::Older => {
            let mut new = goal("suspended", &[*old]);
            new["description"] = json!("ship it later");
            new
        }
        Place::Own | Place::Ancestor => belief("s", &[*old]),
    };
    new["created_at"] = json!(2000);
    if way != "anyone" {
        new["supersession_justification"] = json!("it is so");
    }
    let plain = grain(&new);
    let blob = plain.encode(Default::default()).unwrap();
    match way {
        "one_authorized_signer" => sign(blob.bytes(), &key(1), None).unwrap().into(),
        "quorum" => {
            let message = proof::supersede_message(old, blob.bytes());
            let auth = [1, 2].map(|seed| sign_detached(&message, &key(seed)).unwrap());
            let mut fields = plain.into_fields();
            let auth = auth.into_iter().map(grainstore::format::Value::Bytes).collect();
            fields.insert("supersession_auth".to_owned(), grainstore::format::Value::Array(auth));
            Grain::from_fields(fields).unwrap().into()
        }
        _ => plain.into(),
    }
}

/// Returns the first way that succeeds, and whom the refusal of the first way names.
fn decided(
    session: &Session,
    old: &ContentAddress,
    place: Place,
) -> (&'static str, Option<String>) {
    let refusal = |way| {
        let trial = session.try_supersede(old, successor(old, place, way), None).unwrap();
        trial.refusal.map(|error| error.to_string())
    };
    let way = WAYS.into_iter().find(|way| refusal(way).is_none()).unwrap_or("nobody");
    (way, refusal("anyone"))
}

fn told(session: &Session, address: &ContentAddress) -> PolicyExplanation {
    session.policy(&session.inspect(address).unwrap()).unwrap()
}

#[test]
fn what_is_said_of_a_stored_grain_is_what_happens_to_it() {
    let mut outcomes = std::collections::BTreeSet::new();
    let (mut bound, mut free) = (0, 0);
    for accepts in [false, true] {
        for mut policy in policies() {
            for scope in ["grain", "lineage", "subtree", "odd"] {
                policy["scope"] = json!(scope);
                for place in [Place::Own, Place::Older, Place::Ancestor] {
                    let what = format!("{policy} of {place:?}, signatures open locks: {accepts}");
                    let (_dir, _store, session) = store(accepts);
                    let (address, by) = stored(&session, place, &policy);
                    let (way, refusal) = decided(&session, &address, place);
                    let told = told(&session, &address);
                    assert_eq!(told.open_to, way, "{what}: {refusal:?}, {told:?}");
                    outcomes.insert(way);
                    let names: Vec<_> = told.protected_by.iter().map(|one| one.address).collect();
                    let other = refusal.filter(|_| place != Place::Own);
                    let is_over = policy["locked_until"] == json!(NOW_S);
                    match other {
                        Some(refusal) => {
                            assert!(refusal.contains(&by.to_string()), "{what}: {refusal}");
                            assert_eq!(names, [Some(by)], "{what}: {told:?}");
                            let one = &told.protected_by[0];
                            let link =
                                if place == Place::Older { "older_version" } else { "ancestor" };
                            assert_eq!((one.link, one.scope == scope), (link, scope != "odd"));
                            let demands = told.demands.join("\n");
                            assert!(demands.contains(&by.to_string()), "{what}: {demands}");
                            assert!(!demands.starts_with("anyone may"), "{demands}");
                            bound += 1;
                        }
                        None if is_over => {}
                        None => {
                            assert_eq!(names, [], "{what}: {told:?}");
                            free += usize::from(place != Place::Own);
                        }
                    }
                    // What is said is not of the preview alone.
                    if way != "nobody" {
                        session.supersede(&address, successor(&address, place, way), None).unwrap();
                    }
                }
            }
        }
    }
    assert_eq!(outcomes.len(), WAYS.len() + 1, "{outcomes:?}");
    assert!(bound > 80 && free > 40, "{bound} bound, {free} free");
}

#[test]
fn several_policies_are_told_together_and_what_is_outside_the_session_is_not_named() {
    let (_dir, store, session) = store(false);
    let (one, two) = (key(1).did().to_string(), key(2).did().to_string());
    let source = |subject: &str, namespace: &str, policy: Value| {
        let mut fields = belief(subject, &[]);
        fields["namespace"] = json!(namespace);
        fields["invalidation_policy"] = policy;
        put(&session, &fields)
    };
    let delegated = json!({ "mode": "delegated", "scope": "subtree", "authorized": [one, two] });
    let quorum = json!({ "mode": "quorum", "scope": "subtree", "threshold": 1,
                         "authorized": [two] });
    let first = source("first", "ours", delegated);
    let second = source("second", "theirs", quorum);
    let mut fields = belief("s", &[first, second]);
    fields["namespace"] = json!("ours");
    fields["invalidation_policy"] = json!({ "mode": "delegated", "authorized": [two] });
    let address = put(&session, &fields);
    let ours = store.session(SessionOptions {
        namespace: Some("ours".to_owned()),
        ..SessionOptions::default()
    });
    let policy = told(&ours, &address);
    assert_eq!(policy.open_to, "quorum");
    let mut named: Vec<_> = policy.protected_by.iter().map(|one| one.address).collect();
    named.sort();
    assert_eq!(named, [None, Some(first)], "{policy:?}");
    assert!(!format!("{policy:?}").contains(&second.to_string()), "{policy:?}");
    let hidden = policy.protected_by.iter().find(|one| one.address.is_none()).unwrap();
    assert_eq!((hidden.mode, hidden.authorized.len()), ("quorum", 0), "{hidden:?}");
    assert!(policy.demands.join("\n").contains("outside this session"), "{policy:?}");
    assert_eq!(told(&session, &address).protected_by.len(), 2);
}

#[test]
fn a_grain_of_too_many_ancestors_is_said_to_be_open_to_nobody() {
    let (_dir, _store, session) = store(false);
    let locks = (0..65).map(|at| {
        let mut fields = belief(&format!("l{at}"), &[]);
        fields["invalidation_policy"] = json!({ "mode": "soft_locked", "scope": "subtree" });
        grain(&fields)
    });
    let locks = session.put_batch(locks).unwrap();
    let locks: Vec<_> = locks.iter().map(grainstore::PutOutcome::address).collect();
    let address = put(&session, &belief("s", &locks));
    let (way, _) = decided(&session, &address, Place::Own);
    let policy = told(&session, &address);
    assert_eq!((way, policy.open_to), ("nobody", "nobody"));
    assert!(policy.demands.join("\n").contains("too many ancestors"), "{policy:?}");
}

#[test]
fn a_newer_version_that_binds_the_chain_is_named_for_the_older_ones() {
    let (_dir, _store, session) = store(false);
    let old = put(&session, &belief("s", &[]));
    let mut fields = belief("s", &[old]);
    fields["created_at"] = json!(2000);
    fields["invalidation_policy"] = json!({ "mode": "locked", "scope": "lineage" });
    let new = session.supersede(&old, grain(&fields), None).unwrap();
    let policy = told(&session, &old);
    let named: Vec<_> = policy.protected_by.iter().map(|one| (one.address, one.link)).collect();
    assert_eq!(named, [(Some(new), "newer_version")], "{policy:?}");
    assert_eq!(policy.open_to, "nobody");
    assert_eq!(
        session.contradict(&old, "wrong", None).map_err(|error| error.code()),
        Err("ERR_INVALIDATION_DENIED")
    );
}
