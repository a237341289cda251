//! What stands against an erasure, and what a user has, is found in an encrypted store as in a plain one.

use grainstore::{Erasing, Grain, Session};

use super::world::World;

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
        let tried = operator.erase_user("ann", "asked", &Erasing::new().dry_run(true)).unwrap();
        assert_eq!(tried.refusal.map(|refusal| refusal.code()), expected.err(), "{more}");
        let alone = operator.erase(&bound, "asked", &Erasing::new().dry_run(true)).unwrap();
        assert_eq!(alone.refusal.map(|refusal| refusal.code()), expected.err(), "{more}");
        let erased = operator.erase_user("ann", "asked", &Erasing::new().now(true));
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
