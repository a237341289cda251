//! A put that is to be the only current fact of its subject and relation.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at a surprise"
)]

use std::sync::Barrier;
use std::thread;

use grainstore::format::{ContentAddress, Grain};
use grainstore::{
    MasterKey, OpenOptions, PutOutcome, Result, SameFact, Session, SessionOptions, Store,
    VerificationStatus,
};
use serde_json::{Value, json};
use tempfile::TempDir;

fn store(options: OpenOptions) -> (TempDir, Store) {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path(), &options.create(true)).unwrap();
    (dir, store)
}

fn plain() -> (TempDir, Store, Session) {
    let (dir, store) = store(OpenOptions::new());
    let session = store.session(SessionOptions::default());
    (dir, store, session)
}

fn of_user(store: &Store, user: &str) -> Session {
    store.session(SessionOptions { user_id: Some(user.into()), ..SessionOptions::default() })
}

fn grain(fields: &Value) -> Grain {
    Grain::from_json(&fields.to_string()).unwrap()
}

/// What alice drinks, as somebody's grain, with other fields in place of these.
fn drinks(object: &str, at: i64, more: &Value) -> Grain {
    let mut fields = json!({ "type": "belief", "subject": "alice", "relation": "drinks",
        "object": object, "confidence": 0.9, "created_at": at });
    for (name, value) in more.as_object().unwrap() {
        fields[name] = value.clone();
    }
    grain(&fields)
}

fn nothing() -> Value {
    json!({})
}

fn unique(session: &Session, grain: Grain) -> Result<PutOutcome> {
    session.put_fact(grain, SameFact::Unique)
}

/// Puts a fact that nothing is in the way of.
#[track_caller]
fn added(session: &Session, grain: Grain) -> ContentAddress {
    match unique(session, grain).unwrap() {
        PutOutcome::Added(address) => address,
        other => panic!("{other:?}"),
    }
}

/// Puts a fact that is refused in favour of a current one.
#[track_caller]
fn refused(session: &Session, grain: Grain, for_the_sake_of: &ContentAddress) {
    let error = unique(session, grain).unwrap_err();
    assert_eq!(error.code(), "ERR_CONFLICT");
    assert!(error.to_string().contains(&for_the_sake_of.to_string()), "{error}");
}

#[test]
fn a_second_fact_is_refused_and_the_one_that_latest_answers_is_named() {
    let (_dir, store, session) = plain();
    let tea = added(&session, drinks("tea", 2000, &nothing()));
    refused(&session, drinks("coffee", 3000, &nothing()), &tea);
    refused(&session, drinks("tea", 1000, &nothing()), &tea);
    let later = session.put(drinks("milk", 4000, &nothing())).unwrap().address();
    session.put(drinks("water", 1000, &nothing())).unwrap();
    assert_eq!(session.latest("alice", "drinks").unwrap().unwrap().address, later);
    refused(&session, drinks("coffee", 5000, &nothing()), &later);
    let twins = ["rain", "dew"].map(|object| drinks(object, 4000, &json!({ "subject": "bob" })));
    let twins = twins.map(|twin| session.put(twin).unwrap().address());
    let least = twins.iter().min().unwrap();
    refused(&session, drinks("sun", 9, &json!({ "subject": "bob" })), least);
    assert_eq!(store.stats().unwrap().grains, 5);
}

#[test]
fn another_place_type_or_relation_is_no_hindrance() {
    let (_dir, _store, session) = plain();
    added(&session, drinks("tea", 1000, &nothing()));
    for more in [
        json!({ "namespace": "team" }),
        json!({ "subject": "alic" }),
        json!({ "relation": "drank" }),
        json!({ "type": "observation", "observer_id": "o", "observer_type": "sensor" }),
    ] {
        added(&session, drinks("tea", 1000, &more));
    }
    // The namespace of nobody is "shared".
    let shared = drinks("milk", 2000, &json!({ "namespace": "shared" }));
    assert_eq!(unique(&session, shared).unwrap_err().code(), "ERR_CONFLICT");
    let event = json!({ "type": "event", "content": "tea", "created_at": 1000 });
    added(&session, grain(&event));
}

#[test]
fn the_bytes_of_the_current_fact_are_a_duplicate_and_those_of_an_ended_one_are_refused() {
    let (_dir, _store, session) = plain();
    let first = drinks("tea", 1000, &nothing());
    let tea = added(&session, first.clone());
    assert_eq!(unique(&session, first.clone()).unwrap(), PutOutcome::Duplicate(tea));
    let coffee = session.supersede(&tea, drinks("coffee", 2000, &nothing()), None).unwrap();
    refused(&session, first.clone(), &coffee);
    session.set_verification(&coffee, VerificationStatus::Retracted, "why", None).unwrap();
    refused(&session, first.clone(), &tea);
    assert_eq!(session.put(first).unwrap(), PutOutcome::Duplicate(tea));
}

#[test]
fn what_has_ended_is_no_hindrance() {
    let (_dir, _store, session) = plain();
    let end: [fn(&Session, &ContentAddress); 3] = [
        |session, old| {
            let moved = drinks("tea", 1001, &json!({ "namespace": "elsewhere" }));
            session.supersede(old, moved, None).unwrap();
        },
        |session, old| {
            let retracted = VerificationStatus::Retracted;
            session.set_verification(old, retracted, "why", None).unwrap();
        },
        |session, old| {
            session.contradict(old, "why", None).unwrap();
        },
    ];
    for (at, end) in end.into_iter().enumerate() {
        let old = added(&session, drinks(&format!("tea {at}"), 1000, &nothing()));
        end(&session, &old);
    }
    let last = added(&session, drinks("coffee", 500, &nothing()));
    refused(&session, drinks("milk", 1000, &nothing()), &last);
}

#[test]
fn what_was_true_at_another_time_counts_as_latest_counts_it() {
    let (_dir, _store, session) = plain();
    let past = json!({ "valid_from": 1, "valid_to": 1000 });
    let tea = added(&session, drinks("tea", 1000, &past));
    assert_eq!(session.latest("alice", "drinks").unwrap().unwrap().address, tea);
    refused(&session, drinks("coffee", 2000, &nothing()), &tea);
}

#[test]
fn what_rests_on_a_withdrawn_consent_is_no_hindrance() {
    let (_dir, _store, session) = plain();
    let consent = |at: i64, prior: Option<&ContentAddress>| {
        let mut consent = json!({ "type": "consent", "subject_did": "did:web:a", "scope": ["store"],
            "grantee_did": "did:web:b", "is_withdrawal": prior.is_some(), "created_at": at });
        if let Some(prior) = prior {
            consent["prior_consent"] = json!(prior.to_string());
        }
        grain(&consent)
    };
    let basis = session.put(consent(1000, None)).unwrap().address();
    let resting = json!({ "processing_basis": basis.to_string() });
    let tea = added(&session, drinks("tea", 2000, &resting));
    refused(&session, drinks("milk", 3000, &nothing()), &tea);
    session.put(consent(4000, Some(&basis))).unwrap();
    assert!(session.latest("alice", "drinks").unwrap().is_none());
    added(&session, drinks("coffee", 5000, &nothing()));
}

#[test]
fn the_facts_of_another_user_are_no_hindrance_and_are_not_told() {
    let keyed = OpenOptions::new().key(MasterKey::new([7; 32]));
    for (_dir, store) in [store(OpenOptions::new()), store(keyed)] {
        let everybody = store.session(SessionOptions::default());
        let (ann, bob) = (of_user(&store, "ann"), of_user(&store, "bob"));
        let of = |user: &str| json!({ "user_id": user });
        let anns = added(&ann, drinks("tea", 1000, &of("ann")));
        let bobs = added(&bob, drinks("coffee", 1000, &of("bob")));
        refused(&ann, drinks("milk", 2000, &of("ann")), &anns);
        refused(&bob, drinks("milk", 2000, &of("bob")), &bobs);
        // A session of nobody that writes what is somebody's.
        refused(&everybody, drinks("water", 2000, &of("ann")), &anns);
        added(&everybody, drinks("water", 2000, &of("carol")));
        // A session of somebody that writes what is everybody's.
        refused(&ann, drinks("rain", 2000, &nothing()), &anns);
        // What is everybody's is seen by all.
        let tap = json!({ "relation": "has" });
        let all = added(&everybody, drinks("a tap", 1000, &tap));
        for (session, user) in [(&ann, "ann"), (&bob, "bob")] {
            let own = json!({ "relation": "has", "user_id": user });
            refused(session, drinks("a well", 2000, &own), &all);
        }
    }
}

#[test]
fn of_several_puts_in_flight_one_is_stored_and_the_others_are_told_which() {
    let (_dir, _store, session) = plain();
    for round in 0..20 {
        let of = json!({ "subject": format!("s{round}") });
        let pending: Vec<_> = (0..8)
            .map(|at| drinks(&format!("o{at}"), 1000 + at, &of))
            .map(|grain| session.submit(grain, SameFact::Unique))
            .collect();
        let mut puts = pending.into_iter().map(grainstore::Pending::wait);
        let first = puts.next().unwrap().unwrap().address();
        for put in puts {
            let error = put.unwrap_err();
            assert_eq!(error.code(), "ERR_CONFLICT");
            assert!(error.to_string().contains(&first.to_string()), "{error}");
        }
    }
}

#[test]
fn of_racing_puts_of_one_subject_and_relation_exactly_one_is_stored() {
    const THREADS: usize = 8;
    let (_dir, store, _) = plain();
    for round in 0..25 {
        let start = Barrier::new(THREADS);
        let stored: Vec<_> = thread::scope(|scope| {
            let race = |at: usize| {
                let (session, start) = (store.session(SessionOptions::default()), &start);
                let of = json!({ "subject": format!("s{round}") });
                // Some say the same.
                let fact = drinks(&format!("o{}", at / 2), 1000 + i64::try_from(at).unwrap(), &of);
                move || {
                    start.wait();
                    unique(&session, fact).ok().map(|put| put.address())
                }
            };
            let racing: Vec<_> = (0..THREADS).map(|at| scope.spawn(race(at))).collect();
            racing.into_iter().filter_map(|racer| racer.join().unwrap()).collect()
        });
        assert_eq!(stored.len(), 1, "round {round}");
        let latest = store.session(SessionOptions::default());
        let latest = latest.latest(&format!("s{round}"), "drinks").unwrap().unwrap();
        assert_eq!(stored, [latest.address]);
    }
    assert_eq!(store.stats().unwrap().grains, 25);
}
