//! A session for a user sees the grains of that user and of nobody, and writes no other.

use grainstore::cal::Query;
use grainstore::{PutOutcome, SameFact, Session};
use serde_json::json;

use crate::isolation::kit::{Place, belief, code, everything, found, grain, put, with};

/// Whose grains there are, by the word each has, and who sees it: sessions of nobody, of ann, of bob, and
/// of the user without a name.
const WHOSE: [(&str, Option<&str>, [bool; 4]); 4] = [
    ("anns", Some("ann"), [true, true, false, false]),
    ("bobs", Some("bob"), [true, false, true, false]),
    ("nobodys", None, [true, true, true, true]),
    ("namelesss", Some(""), [true, true, true, true]),
];
const USERS: [Option<&str>; 4] = [None, Some("ann"), Some("bob"), Some("")];

fn of(user: Option<&str>, object: &str) -> serde_json::Value {
    let user = user.map_or_else(|| json!({}), |user| json!({ "user_id": user }));
    with(belief(object, 1000), &user)
}

fn place() -> Place {
    let place = Place::new();
    for (word, user, _) in WHOSE {
        put(&place.all(), &of(user, word));
    }
    place
}

#[test]
fn every_session_sees_its_user_and_nobody() {
    let place = place();
    for (at, user) in USERS.into_iter().enumerate() {
        let session = place.session(None, user);
        let mut expected = 0;
        for (word, whose, seen_by) in WHOSE {
            let address = crate::isolation::kit::address(&of(whose, word));
            let seen = seen_by[at];
            expected += usize::from(seen);
            let answer = if seen { "OK" } else { "ERR_NOT_FOUND" };
            assert_eq!(code(session.get(&address)), answer, "{word} {user:?}");
            assert_eq!(session.exists(&address).unwrap(), seen, "{word} {user:?}");
            let by_words = found(&session, &Query::default().searching(word));
            assert_eq!(by_words.contains(&address), seen, "{word} {user:?}");
            let count = session.ask(&format!("RECALL WHERE object = {word:?} | COUNT")).unwrap();
            let count = serde_json::to_value(count).unwrap();
            assert_eq!(count["count"], u64::from(seen), "{word} {user:?}");
        }
        assert_eq!(found(&session, &everything()).len(), expected, "{user:?}");
    }
}

#[test]
fn what_a_query_names_is_kept_within_the_session() {
    let place = place();
    let ann = place.session(None, Some("ann"));
    for (statement, count) in [
        ("RECALL MY beliefs | COUNT", 1),
        ("RECALL beliefs WHERE user_id = \"ann\" | COUNT", 1),
        ("RECALL beliefs WHERE user_id = \"bob\" | COUNT", 0),
        ("RECALL beliefs | COUNT", 3),
    ] {
        let answer = serde_json::to_value(ann.ask(statement).unwrap()).unwrap();
        assert_eq!(answer["count"], count, "{statement}");
    }
    let added = r#"ADD belief SET subject = "ann" SET relation = "likes" SET object = "tea"
        SET confidence = 0.5 REASON "said so""#;
    let options = grainstore::cal::ExecuteOptions {
        tier: grainstore::cal::Tier::Evolve,
        ..grainstore::cal::ExecuteOptions::at(ann.now())
    };
    ann.ask_with(added.as_bytes(), &options).unwrap();
    let own = Query::default().searching("tea");
    let [added] = found(&ann, &own)[..] else { panic!("one was added") };
    let stored = ann.get(&added).unwrap().grain().unwrap();
    assert_eq!(stored.text("user_id"), Some("ann"), "what is added is the user's");
    assert_eq!(found(&place.session(None, Some("bob")), &own), []);
}

#[test]
fn nothing_of_another_user_is_written() {
    let place = place();
    let ann = place.session(None, Some("ann"));
    let entries = ann.audit_head().unwrap();
    let bobs = of(Some("bob"), "tea");
    assert_eq!(code(ann.put(grain(&bobs))), "ERR_ACCESS");
    assert_eq!(code(ann.put_fact(grain(&bobs), SameFact::Keep)), "ERR_ACCESS");
    let mine = of(Some("ann"), "tea");
    assert_eq!(code(ann.put_batch([grain(&mine), grain(&bobs)])), "ERR_ACCESS");
    let old = crate::isolation::kit::address(&of(Some("bob"), "bobs"));
    assert_eq!(code(ann.supersede(&old, grain(&mine), Some("why"))), "ERR_NOT_FOUND");
    assert_eq!(code(ann.contradict(&old, "why", None)), "ERR_NOT_FOUND");
    assert_eq!(code(ann.hold(&old, "why")), "ERR_NOT_FOUND");
    assert_eq!(code(ann.lift_hold(&old, "why", None)), "ERR_NOT_FOUND");
    let retracted = grainstore::VerificationStatus::Retracted;
    assert_eq!(code(ann.set_verification(&old, retracted, "why", None)), "ERR_NOT_FOUND");
    assert_eq!(code(ann.embed(&old, Vec::new())), "ERR_NOT_FOUND");
    let trial = ann.try_supersede(&old, grain(&mine), Some("why")).unwrap();
    assert_eq!(trial.refusal.map(|error| error.code()), Some("ERR_NOT_FOUND"));
    // Three were refused for whose they are, which is one entry and a count.
    assert_eq!(ann.audit_head().unwrap().0, entries.0 + 1, "nothing else happened");
    assert_eq!(code(ann.put(grain(&mine))), "OK");
}

#[test]
fn the_same_fact_of_another_user_is_not_found() {
    let fact = |user: &str, at: i64| with(of(Some(user), "same"), &json!({ "created_at": at }));
    for same_fact in [SameFact::Keep, SameFact::Supersede] {
        let place = Place::new();
        let bobs = put(&place.session(None, Some("bob")), &fact("bob", 1000));
        let ann: Session = place.session(None, Some("ann"));
        let put = |at| ann.put_fact(grain(&fact("ann", at)), same_fact).unwrap();
        let first = put(2000);
        assert!(matches!(first, PutOutcome::Added(_)), "{first:?}");
        let again = put(3000);
        assert_eq!(again.is_duplicate(), same_fact == SameFact::Keep, "{again:?}");
        assert!(place.all().get(&bobs).unwrap().state.is_current());
    }
}

#[test]
fn words_of_a_turn_are_lent_to_turns_of_the_same_user_alone() {
    let place = Place::new();
    let all = place.all();
    let turn = |user: Option<&str>, at: i64, words: &str| {
        let turn = json!({
            "type": "event", "content": words, "role": "user", "session_id": "s",
            "created_at": at, "timestamp_ms": at,
        });
        with(turn, &user.map_or_else(|| json!({}), |user| json!({ "user_id": user })))
    };
    let turns = [
        (Some("ann"), "zebra"),
        (Some("bob"), "quokka"),
        (None, "narwhal"),
        (Some(""), "okapi"),
        (Some("ann"), "lemur"),
    ];
    let put =
        |(at, (user, words)): (i64, &(Option<&str>, &str))| put(&all, &turn(*user, at, words));
    let put: Vec<_> = (1000..).zip(&turns).map(put).collect();
    for (word, expected) in [
        ("zebra", vec![0, 4]),
        ("lemur", vec![0, 4]),
        ("quokka", vec![1]),
        ("narwhal", vec![2, 3]),
        ("okapi", vec![2, 3]),
    ] {
        let mut addresses = found(&all, &Query::default().searching(word));
        addresses.sort_unstable();
        let mut expected: Vec<_> = expected.into_iter().map(|at| put[at]).collect();
        expected.sort_unstable();
        assert_eq!(addresses, expected, "{word}");
    }
}

#[test]
fn a_plan_counts_what_its_user_sees() {
    let place = Place::new();
    for at in 0..40 {
        put(&place.all(), &with(of(Some("bob"), "tea"), &json!({ "created_at": at })));
    }
    let ann = place.session(None, Some("ann"));
    let query = |session: &Session| {
        let query = Query::default()
            .of_types(grainstore::cal::TypeSet::of(grainstore::format::GrainType::Belief));
        session.explain(&query).unwrap()
    };
    let plan = query(&ann);
    assert_eq!((plan.estimated, plan.at_most), (0, Some(0)), "{plan:?}");
    assert_eq!(plan.lists.iter().map(|list| list.rows).collect::<Vec<_>>(), [0], "{plan:?}");
    put(&place.all(), &of(Some("ann"), "coffee"));
    assert_eq!(query(&ann).estimated, 1);
    assert_eq!(query(&place.all()).estimated, 41);
}

#[test]
fn an_import_brings_nothing_of_another_user() {
    let place = place();
    let file = place.dir.path().join("all.mg");
    place.all().export(&file, &Query::default(), &Default::default()).unwrap();
    let other = Place::new();
    let ann = other.session(None, Some("ann"));
    assert_eq!(code(ann.import([&file], &Default::default())), "ERR_ACCESS");
    assert_eq!(other.store.stats().unwrap().grains, 0);
    let own = place.dir.path().join("ann.mg");
    place.session(None, Some("ann")).export(&own, &Query::default(), &Default::default()).unwrap();
    assert_eq!(ann.import([&own], &Default::default()).unwrap().added, 3);
}
