//! What stands against an erasure, and what a user has, is found in an encrypted store as in a plain one.

use grainstore::cal::Query;
use grainstore::{EraseOptions, Grain, PageOptions, Session};

use super::world::{World, belief, open};

/// A belief of a user with these fields beside.
fn put(session: &Session, user: &str, object: &str, more: &str) -> grainstore::ContentAddress {
    let json = format!(
        r#"{{"type": "belief", "subject": "s", "relation": "likes", "object": "{object}",
            "confidence": 1, "created_at": 1700000000000, "user_id": "{user}"{more}}}"#
    );
    session.put(Grain::from_json(&json).unwrap()).unwrap().address()
}

#[test]
fn holds_and_retention_refuse_the_erasure_of_a_user() {
    for (more, expected) in [
        (r#", "invalidation_policy": {"mode": "hold"}"#, Err("ERR_INVALIDATION_DENIED")),
        (
            r#", "invalidation_policy": {"mode": "timed", "locked_until": 5, "fallback_mode": "hold"}"#,
            Err("ERR_INVALIDATION_DENIED"),
        ),
        (r#", "retention_policy": {"minimum_retention_years": 99}"#, Err("ERR_POLICY")),
        (r#", "context": {"fin:retention_years": 99}"#, Err("ERR_POLICY")),
        ("", Ok(2)),
    ] {
        let world = World::new();
        let operator = world.operator();
        let (free, bound) =
            (put(&operator, "ann", "tea", ""), put(&operator, "ann", "coffee", more));
        put(&operator, "bob", "tea", r#", "retention_policy": {"minimum_retention_years": 99}"#);
        let report = operator.subject_report("ann").unwrap();
        assert_eq!(report.addresses, [bound, free]);
        let tried =
            operator.erase_user("ann", "asked", &EraseOptions::new().dry_run(true)).unwrap();
        assert_eq!(tried.refusal.map(|refusal| refusal.code()), expected.err(), "{more}");
        let alone = operator.erase(&bound, "asked", &EraseOptions::new().dry_run(true)).unwrap();
        assert_eq!(alone.refusal.map(|refusal| refusal.code()), expected.err(), "{more}");
        let erased = operator.erase_user("ann", "asked", &EraseOptions::new().now(true));
        assert_eq!(erased.map(|e| e.erased).map_err(|error| error.code()), expected, "{more}");
    }
}

#[test]
fn what_ends_with_its_consent_is_swept() {
    let world = World::new();
    let operator = world.operator();
    let consent = |more: &str| {
        let json = format!(
            r#"{{"type": "consent", "subject_did": "did:web:ann", "grantee_did": "did:web:shop",
                "scope": ["store", "retrieve"], "user_id": "ann", "created_at": 1000{more}}}"#
        );
        operator.put(Grain::from_json(&json).unwrap()).unwrap().address()
    };
    let grant = consent(r#", "is_withdrawal": false"#);
    let cascade = format!(
        r#", "processing_basis": "{grant}", "invalidation_policy": {{"mode": "consent_cascade"}}"#
    );
    let due = put(&operator, "ann", "tea", &cascade);
    consent(&format!(r#", "is_withdrawal": true, "prior_consent": "{grant}""#));
    let world = world.reopened_with(|options| options.cascade_after_days(0));
    let swept = world.operator().sweep().unwrap();
    assert_eq!((swept.erased, swept.skipped), (1, 0));
    let got = world.operator().get(&due).map(drop).map_err(|error| error.code());
    assert_eq!(got, Err("ERR_ERASED"));
}

#[test]
fn others_are_answered_while_an_erasure_waits_to_be_scrubbed() {
    let world = World::new();
    let operator = world.operator();
    for at in 0..30 {
        operator.put(belief(Some("bob"), "b", &format!("o{at}"), at)).unwrap();
    }
    operator.put(belief(Some("ann"), "b", "the last", 99)).unwrap();
    let bob = world.user("bob");
    let first = bob.query(&Query::default(), &PageOptions::first(10)).unwrap();
    operator.erase_user("ann", "asked", &EraseOptions::new()).unwrap();
    let check = |page: PageOptions| {
        let answer = bob.query(&Query::default(), &page).unwrap();
        assert_eq!(answer.results.len(), 10);
        answer.next_cursor
    };
    check(PageOptions::first(10).after(check(PageOptions::first(10))));
    // A page of before goes on, now and once it is scrubbed.
    check(PageOptions::first(10).after(first.next_cursor.clone()));
    assert!(world.store.verify(true).unwrap().problems.is_empty());
    world.store.scrub().unwrap();
    check(PageOptions::first(10).after(first.next_cursor));
    let found = bob.query(&Query::default().searching("o7"), &PageOptions::first(10)).unwrap();
    assert_eq!(found.results.len(), 1);
}

#[test]
fn what_rests_on_an_erased_consent_stays_hidden_whatever_is_built_again() {
    let world = World::new();
    let operator = world.operator();
    let grant = put_consent(&operator, "ann");
    let basis = format!(r#", "processing_basis": "{grant}""#);
    let resting = put(&operator, "bob", "tea", &basis);
    let free = put(&operator, "ann", "tea", "");
    let hidden = |session: &Session| {
        let refused = |at| session.get(at).map(drop).map_err(|error| error.code());
        assert_eq!(refused(&resting), Err("ERR_WITHDRAWN"));
        assert_eq!(refused(&free), Err("ERR_ERASED"));
    };
    operator.erase_user("ann", "asked", &EraseOptions::new()).unwrap();
    hidden(&operator);
    world.store.reindex().unwrap();
    hidden(&operator);
    world.store.scrub().unwrap();
    hidden(&operator);
    assert!(world.store.verify(true).unwrap().problems.is_empty());
    let world = world.reopened();
    hidden(&world.operator());
}

#[test]
fn a_reason_goes_with_the_person_it_is_about() {
    let world = World::new();
    let operator = world.operator();
    let old = operator.put(belief(None, "x", "tea", 1)).unwrap().address();
    let new = belief(Some("ann"), "x", "coffee", 2);
    operator.supersede(&old, new, Some("ann said so")).unwrap();
    let reason = || {
        let entries = world.operator().audit(None, 99).unwrap();
        entries.into_iter().find(|entry| entry.operation == "supersede").unwrap().reason
    };
    assert_eq!(reason().as_deref(), Some("ann said so"));
    operator.erase_user("ann", "asked", &EraseOptions::new().now(true)).unwrap();
    assert_eq!(reason(), None);
    world.store.close().unwrap();
    drop(open(world.dir.path()));
}

/// A consent of a user.
fn put_consent(session: &Session, user: &str) -> grainstore::ContentAddress {
    let json = format!(
        r#"{{"type": "consent", "subject_did": "did:web:{user}", "grantee_did": "did:web:shop",
            "scope": ["store", "retrieve"], "user_id": "{user}", "created_at": 1000,
            "is_withdrawal": false}}"#
    );
    session.put(Grain::from_json(&json).unwrap()).unwrap().address()
}
