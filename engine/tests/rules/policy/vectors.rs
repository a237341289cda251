//! What is protected keeps its place in search (ruling 56): who gives vectors to a stored grain, by every
//! way there is, and what the audit log says of it.

use grainstore::embed::{Embedding, Metric};
use grainstore::format::Grain;
use grainstore::{Offer, OpenOptions, Session, SessionOptions, Store};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::case::key;

fn grain(policy: &Value) -> Grain {
    let mut grain = json!({
        "type": "belief", "subject": "s", "relation": "r", "object": "o", "confidence": 1.0,
        "created_at": 1000, "namespace": "team",
    });
    if !policy.is_null() {
        grain["invalidation_policy"] = policy.clone();
    }
    Grain::from_json(&grain.to_string()).unwrap()
}

fn vector(first: f32) -> Vec<Embedding> {
    vec![Embedding::new("m", Metric::Cosine, vec![first, 1.0]).unwrap()]
}

fn embeds(session: &Session) -> Vec<(String, Vec<String>)> {
    let told = session.audit(None, 1000).unwrap();
    let told = told.into_iter().filter(|entry| entry.operation == "embed");
    told.map(|entry| (entry.decision, entry.rules)).collect()
}

#[test]
fn vectors_of_what_is_protected_are_for_the_operator_and_whoever_may_replace_it() {
    let did = key(1).did().to_string();
    let policies = [
        (Value::Null, false),
        (json!({ "mode": "open" }), false),
        (json!({ "mode": "consent_cascade" }), false),
        (json!({ "mode": "timed", "locked_until": 1, "fallback_mode": "open" }), false),
        (json!({ "mode": "soft_locked" }), true),
        (json!({ "mode": "locked" }), true),
        (json!({ "mode": "quorum", "threshold": 1, "authorized": [did] }), true),
        (json!({ "mode": "delegated", "authorized": [did] }), true),
        (json!({ "mode": "timed", "locked_until": 4_000_000_000_u64 }), true),
        (json!({ "mode": "timed", "locked_until": 1, "fallback_mode": "hold" }), true),
        (json!({ "mode": "hold" }), true),
        (json!({ "mode": "ajar" }), true),
        (json!({ "mode": 7 }), true),
    ];
    for (policy, protects) in policies {
        for is_held in [false, true] {
            let dir = TempDir::new().unwrap();
            let options = OpenOptions::new().create(true).operator("did:web:ops");
            let store = Store::open(dir.path(), &options).unwrap();
            let operator = store.session(SessionOptions::default());
            let agent = |namespace: Option<&str>, user: Option<&str>, actor: Option<&str>| {
                store.session(SessionOptions {
                    namespace: namespace.map(str::to_owned),
                    user_id: user.map(str::to_owned),
                    actor: actor.map(str::to_owned),
                    ..SessionOptions::default()
                })
            };
            let offer = |first| Offer::Grain(grain(&policy)).with_vectors(vector(first));
            let address = operator.put(offer(0.0)).unwrap().address();
            if is_held {
                operator.hold(&address, "case 7").unwrap();
            }
            let what = format!("{policy}, held: {is_held}");
            let refused = protects || is_held;
            for session in [
                agent(Some("team"), None, None),
                agent(None, Some("mallory"), None),
                agent(None, None, Some("did:web:agent")),
                agent(Some("team"), None, Some("did:web:ops")),
            ] {
                let told = embeds(&operator).len();
                // What is there already is nothing.
                session.embed(&address, vector(0.0)).unwrap();
                assert!(session.put(offer(0.0)).unwrap().is_duplicate(), "{what}");
                assert_eq!(embeds(&operator).len(), told, "{what}");
                let by_embed = session.embed(&address, vector(2.0)).map_err(|e| e.code());
                let by_put = session.put(offer(3.0)).map(drop).map_err(|e| e.code());
                let by_batch = session.put_batch([offer(4.0)]).map(drop).map_err(|e| e.code());
                let wanted = if refused { Err("ERR_INVALIDATION_DENIED") } else { Ok(()) };
                assert_eq!([by_embed, by_put, by_batch], [wanted; 3], "{what}");
                if !refused {
                    operator.embed(&address, vector(0.0)).unwrap();
                }
            }
            let told = embeds(&operator);
            if refused {
                assert!(told.iter().all(|(decision, _)| decision == "refused"), "{what}");
                let rules = told.iter().map(|(_, rules)| rules.last().unwrap());
                assert!(rules.into_iter().all(|rule| rule == "vectors_protected"), "{what}");
                // The three of each actor are equal, and there are three actors.
                assert_eq!(told.len(), 3, "{what}");
            } else {
                assert_eq!(told.len(), 4 * 4, "{what}: {told:?}");
            }
            operator.embed(&address, vector(5.0)).unwrap();
            assert_eq!(embeds(&operator).last().unwrap().0, "done", "{what}");
            assert!(store.verify(true).unwrap().ok, "{what}");
        }
    }
}
