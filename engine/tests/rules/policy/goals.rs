//! Transitions that a goal allows: they take it from nobody and hide it from nobody.

use grainstore::format::cose::{proof, sign_detached};
use grainstore::format::{Encoding, SigningKey, Value, sign};
use grainstore::{
    Clock, ContentAddress, Grain, Offer, OpenOptions, Session, SessionOptions, Store, SystemClock,
};
use serde_json::{Value as Json, json};
use tempfile::TempDir;

const DENIED: Result<(), &str> = Err("ERR_INVALIDATION_DENIED");

fn key() -> SigningKey {
    SigningKey::ed25519_from_seed(&[7; 32])
}

/// A store with a named operator.
struct World {
    _dir: TempDir,
    store: Store,
}

impl World {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let options = OpenOptions::new().create(true).operator("did:web:ops");
        let store = Store::open(dir.path(), &options).unwrap();
        Self { _dir: dir, store }
    }

    fn operator(&self) -> Session {
        self.store.session(SessionOptions::default())
    }

    fn actor(&self, actor: &str) -> Session {
        let actor = Some(actor.to_owned());
        self.store.session(SessionOptions { actor, ..SessionOptions::default() })
    }
}

/// A goal under this policy, that may be suspended and taken up again.
fn goal(policy: &Json, fields: &Json) -> Grain {
    let mut goal = json!({
        "type": "goal", "description": "keep it safe", "goal_state": "active", "created_at": 1000,
        "allowed_transitions": ["suspended", "active"], "author_did": "did:web:ops",
        "invalidation_policy": policy,
    });
    goal.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    Grain::from_json(&goal.to_string()).unwrap()
}

fn quorum() -> Json {
    json!({ "mode": "quorum", "scope": "lineage", "threshold": 1, "authorized": [key().did()] })
}

fn locked() -> Json {
    json!({ "mode": "locked", "scope": "lineage" })
}

fn encoded(grain: &Grain) -> Vec<u8> {
    grain.encode(Encoding::MessagePack).unwrap().into_bytes()
}

fn told<T>(outcome: grainstore::Result<T>) -> Result<(), &'static str> {
    outcome.map(drop).map_err(|error| error.code())
}

/// What a holder of the key says of a goal, with the proof of it.
fn agreed(old: &ContentAddress, policy: &Json) -> Grain {
    let more = json!({ "goal_state": "failed", "description": "another", "created_at": 5000,
                       "derived_from": [old.to_string()] });
    let new = goal(policy, &more);
    let auth = sign_detached(&proof::supersede_message(old, &encoded(&new)), &key()).unwrap();
    let mut fields = new.into_fields();
    fields.insert("supersession_auth".to_owned(), Value::Array(vec![Value::Bytes(auth)]));
    Grain::from_fields(fields).unwrap()
}

#[test]
fn no_transition_names_an_author_that_did_not_make_it() {
    let world = World::new();
    let first = world.operator().put(goal(&quorum(), &json!({}))).unwrap().address();
    let agent = world.actor("did:web:agent");
    let suspended = |author: Json| {
        let more = json!({ "goal_state": "suspended", "created_at": 2000, "author_did": author });
        goal(&quorum(), &more)
    };
    for author in [json!(key().did()), json!("did:web:other")] {
        assert_eq!(told(agent.supersede(&first, suspended(author), None)), DENIED);
    }
    let second = agent.supersede(&first, suspended(json!("did:web:agent#key")), None).unwrap();
    let owned = agreed(&second, &quorum());
    assert_eq!(told(world.operator().supersede(&second, owned, None)), Ok(()));
    // Who signs may say so, whoever sends it.
    let other = World::new();
    let first = other.operator().put(goal(&quorum(), &json!({}))).unwrap().address();
    let more = json!({ "goal_state": "suspended", "created_at": 2000, "author_did": key().did(),
                       "derived_from": [first.to_string()] });
    let signed = sign(&encoded(&goal(&quorum(), &more)), &key(), None).unwrap().into_bytes();
    assert_eq!(
        told(other.actor("did:web:agent").supersede(&first, Offer::Signed(signed), None)),
        Ok(())
    );
}

#[test]
fn the_author_of_a_transition_does_not_lose_the_say_that_the_policy_gives() {
    for repeats in [true, false] {
        let world = World::new();
        let mut last = world.operator().put(goal(&quorum(), &json!({}))).unwrap().address();
        // More versions than are looked at one by one.
        let did = key().did();
        let owner = world.actor(did.as_str());
        for version in 0..20 {
            let state = if version % 2 == 0 { "suspended" } else { "active" };
            let more =
                json!({ "goal_state": state, "created_at": 2000 + version, "author_did": did });
            let mut next = goal(&quorum(), &more).into_fields();
            if !repeats {
                next.remove("invalidation_policy");
            }
            last = owner.supersede(&last, Grain::from_fields(next).unwrap(), None).unwrap();
        }
        let owned = agreed(&last, &quorum());
        assert_eq!(told(world.operator().supersede(&last, owned, None)), Ok(()), "{repeats}");
        // Whoever wrote the policy has no say by it.
        let own = World::new();
        let first = goal(&quorum(), &json!({ "author_did": did }));
        let first = own.operator().put(first).unwrap().address();
        let more =
            json!({ "goal_state": "suspended", "created_at": 2000, "author_did": "did:web:a" });
        let second = own.actor("did:web:a").supersede(&first, goal(&quorum(), &more), None);
        let second = second.unwrap();
        assert_eq!(
            told(own.operator().supersede(&second, agreed(&second, &quorum()), None)),
            DENIED
        );
    }
}

#[test]
fn no_transition_brings_a_policy_with_its_sources() {
    let world = World::new();
    let (operator, agent) = (world.operator(), world.actor("did:web:agent"));
    let belief = |subject: &str, more: Json| {
        let mut belief = json!({
            "type": "belief", "subject": subject, "relation": "is", "object": "so",
            "confidence": 1, "created_at": 1000,
        });
        belief.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        Grain::from_json(&belief.to_string()).unwrap()
    };
    let address = |grain: &Grain| grain.encode(Encoding::MessagePack).unwrap().address();
    let lock = |policy: Json| json!({ "invalidation_policy": policy });
    let to_come = belief("to come", lock(json!({ "mode": "locked", "scope": "subtree" })));
    let behind = belief("behind", json!({ "derived_from": [address(&to_come).to_string()] }));
    let delegated = json!({ "mode": "delegated", "scope": "subtree", "authorized": [key().did()] });
    let theirs = belief("theirs", lock(delegated));
    let plain = belief("plain", json!({}));
    let elsewhere = world.store.session(SessionOptions {
        namespace: Some("team".to_owned()),
        actor: Some("did:web:agent".to_owned()),
        ..SessionOptions::default()
    });
    for grain in [&behind, &theirs, &plain] {
        agent.put(grain.clone()).unwrap();
    }
    let sources = [(&to_come, DENIED), (&behind, DENIED), (&theirs, DENIED), (&plain, Ok(()))];
    for (source, expected) in sources {
        let named = json!({ "description": address(source).to_string(), "namespace": "team" });
        let first = operator.put(goal(&locked(), &named)).unwrap().address();
        let mut more = named;
        more.as_object_mut().unwrap().extend([
            ("goal_state".to_owned(), json!("suspended")),
            ("created_at".to_owned(), json!(2000)),
            ("derived_from".to_owned(), json!([first.to_string(), address(source).to_string()])),
        ]);
        let next = encoded(&goal(&locked(), &more));
        let signed = || Offer::Signed(sign(&next, &key(), None).unwrap().into_bytes());
        // What the session does not see is as if it were not stored.
        assert_eq!(told(elsewhere.supersede(&first, Offer::Blob(next.clone()), None)), DENIED);
        assert_eq!(told(agent.supersede(&first, signed(), None)), expected);
    }
}

#[test]
fn a_transition_is_no_older_than_what_it_replaces_and_not_of_a_time_to_come() {
    let now = SystemClock.now().get();
    let world = World::new();
    let agent = world.actor("did:web:agent");
    for (at, expected) in [
        (0, DENIED),
        (999, DENIED),
        (1000, Ok(())),
        (now, Ok(())),
        (now + 60_000, Ok(())),
        (now + 600_000, DENIED),
        (4_102_444_800_000, DENIED),
    ] {
        let named = json!({ "description": format!("at {at}") });
        let first = world.operator().put(goal(&locked(), &named)).unwrap().address();
        let mut more = named;
        more.as_object_mut().unwrap().extend([
            ("goal_state".to_owned(), json!("suspended")),
            ("created_at".to_owned(), json!(at)),
        ]);
        let next = agent.supersede(&first, goal(&locked(), &more), None);
        assert_eq!(told(next), expected, "{at}");
    }
}
