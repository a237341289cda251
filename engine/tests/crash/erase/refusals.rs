//! What stands against an erasure: holds, the time grains have to be kept, and who asks.

use grainstore::{EraseOptions, OpenOptions, SessionOptions, Store};
use tempfile::TempDir;

use crate::erase::kit::{ANN, BOB, NOW, belief, clock_at, code, open, open_at, operator, put};

/// 2024-02-29T00:00:00Z, and the moments three years of a calendar later.
const LEAP_DAY: i64 = 1_709_164_800_000;
const THREE_YEARS_LATER: i64 = 1_803_772_800_000;

#[test]
fn a_hold_refuses_the_erasure_of_its_grain_and_of_its_user_until_it_is_lifted() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    let session = operator(&store);
    let free = put(&session, belief(ANN, "tea", 1, ""));
    let marked = put(&session, belief(ANN, "coffee", 2, ""));
    session.hold(&marked, "a case").unwrap();
    let born = r#", "invalidation_policy": {"mode": "hold"}"#;
    let born = put(&session, belief(ANN, "milk", 3, born));
    let of_bob = put(&session, belief(BOB, "tea", 4, ""));
    session.hold(&of_bob, "another case").unwrap();
    let entries = store.stats().unwrap().audit_entries;
    let tried = session.erase_user(ANN, "ann asked", &EraseOptions::new().dry_run(true)).unwrap();
    assert_eq!((tried.erased, tried.skipped, tried.scrubbed), (0, 3, false));
    assert_eq!(tried.holds, [marked, born]);
    assert_eq!(tried.refusal.unwrap().code(), "ERR_INVALIDATION_DENIED");
    assert!(tried.certificate.is_none());
    assert_eq!(store.stats().unwrap().audit_entries, entries, "a dry run leaves no trace");
    let refused = session.erase_user(ANN, "ann asked", &EraseOptions::new()).unwrap_err();
    assert_eq!(refused.code(), "ERR_INVALIDATION_DENIED");
    assert!(refused.to_string().contains(&marked.to_string()));
    assert!(refused.to_string().contains(&born.to_string()));
    for held in [&marked, &born] {
        assert_eq!(
            code(session.erase(held, "ann asked", &EraseOptions::new())),
            "ERR_INVALIDATION_DENIED"
        );
    }
    let told: Vec<_> = session.audit(Some(entries - 1), 10).unwrap();
    let told: Vec<_> = told.iter().map(|e| (e.operation.as_str(), e.decision.as_str())).collect();
    assert_eq!(told, [("erase_user", "refused"), ("erase", "refused"), ("erase", "refused")]);
    for address in [&free, &marked, &born] {
        session.get(address).unwrap();
    }
    session.lift_hold(&marked, "the case is over", None).unwrap();
    session.lift_hold(&born, "the case is over", None).unwrap();
    assert_eq!(session.erase_user(ANN, "ann asked", &EraseOptions::new()).unwrap().erased, 3);
    session.get(&of_bob).unwrap();
}

#[test]
fn a_session_of_a_user_lifts_no_hold_and_so_erases_nothing_held() {
    let dir = TempDir::new().unwrap();
    let options = OpenOptions::new().create(true).operator("did:web:boss");
    let store = Store::open(dir.path(), &options).unwrap();
    let held = put(&operator(&store), belief(ANN, "tea", 1, ""));
    operator(&store).hold(&held, "a case").unwrap();
    let of = |namespace: Option<&str>, actor: Option<&str>| {
        let [user_id, namespace, actor] =
            [Some(ANN), namespace, actor].map(|of| of.map(str::to_owned));
        store.session(SessionOptions { user_id, namespace, actor, ..SessionOptions::default() })
    };
    for narrow in [of(None, None), of(Some("shared"), None)] {
        let error = narrow.lift_hold(&held, "it is mine", None).unwrap_err();
        assert_eq!(error.code(), "ERR_ACCESS");
        assert!(error.hint().contains("as the operator"), "{}", error.hint());
        assert!(narrow.erase_user(ANN, "it is mine", &EraseOptions::new()).is_err());
        assert!(operator(&store).get(&held).unwrap().state.held);
    }
    let told = operator(&store).audit(None, 100).unwrap();
    let told = told.iter().filter(|entry| entry.operation == "lift_hold");
    assert_eq!(told.map(|entry| entry.decision.as_str()).collect::<Vec<_>>(), ["refused"]);
    let agent = of(None, Some("did:web:agent"));
    assert_eq!(code(agent.lift_hold(&held, "why", None)), "ERR_INVALIDATION_DENIED");
    let boss = of(None, Some("did:web:boss"));
    assert_eq!(code(boss.lift_hold(&held, "settled", None)), "ERR_ACCESS", "it is limited");
    operator(&store).lift_hold(&held, "settled", None).unwrap();
}

#[test]
fn an_actor_counts_as_the_operator_where_none_was_named() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    let held = put(&operator(&store), belief(ANN, "tea", 1, ""));
    operator(&store).hold(&held, "a case").unwrap();
    let of = |actor: Option<&str>| {
        let [user_id, actor] = [Some(ANN), actor].map(|of| of.map(str::to_owned));
        store.session(SessionOptions { user_id, actor, ..SessionOptions::default() })
    };
    assert_eq!(code(of(None).lift_hold(&held, "why", None)), "ERR_ACCESS");
    let agent = of(Some("did:web:agent"));
    assert_eq!(code(agent.lift_hold(&held, "why", None)), "ERR_ACCESS", "it is limited");
    let actor = Some("did:web:agent".to_owned());
    let agent = store.session(SessionOptions { actor, ..SessionOptions::default() });
    agent.lift_hold(&held, "why", None).unwrap();
}

#[test]
fn a_timed_lock_that_becomes_a_hold_refuses_from_then_on() {
    let second = NOW / 1000;
    for (until, expected) in [(second, Err("ERR_INVALIDATION_DENIED")), (second + 1, Ok(1))] {
        let dir = TempDir::new().unwrap();
        let store = open(dir.path());
        let session = operator(&store);
        let policy = format!(
            r#", "invalidation_policy": {{"mode": "timed", "locked_until": {until}, "fallback_mode": "hold"}}"#
        );
        let address = put(&session, belief(ANN, "tea", 1, &policy));
        let alone = session.erase(&address, "asked", &EraseOptions::new().dry_run(true)).unwrap();
        assert_eq!(alone.refusal.map(|refusal| refusal.code()), expected.err());
        let erased = session.erase_user(ANN, "ann asked", &EraseOptions::new());
        assert_eq!(erased.map(|e| e.erased).map_err(|error| error.code()), expected, "{until}");
    }
}

#[test]
fn what_has_to_be_kept_is_kept_to_the_last_moment() {
    let policy = r#", "retention_policy": {"minimum_retention_years": 3, "regulation": "law",
        "deletion_requires": "Records Officer"}"#;
    let finance = r#", "context": {"fin:retention_years": 3}"#;
    for (more, reason, now, expected) in [
        (policy, "by the records officer", THREE_YEARS_LATER - 1, Err("ERR_POLICY")),
        (policy, "by the records officer", THREE_YEARS_LATER, Ok(1)),
        (policy, "by somebody else", THREE_YEARS_LATER, Err("ERR_POLICY")),
        (finance, "by anybody", THREE_YEARS_LATER - 1, Err("ERR_POLICY")),
        (finance, "by anybody", THREE_YEARS_LATER, Ok(1)),
    ] {
        let dir = TempDir::new().unwrap();
        let store = open_at(dir.path(), now);
        let session = operator(&store);
        let address = put(&session, belief(ANN, "an account", LEAP_DAY, more));
        let tried = session.erase_user(ANN, reason, &EraseOptions::new().dry_run(true)).unwrap();
        assert_eq!(tried.refusal.map(|refusal| refusal.code()), expected.err());
        let alone = session.erase(&address, reason, &EraseOptions::new().dry_run(true)).unwrap();
        assert_eq!(alone.refusal.map(|refusal| refusal.code()), expected.err());
        let erased = session.erase_user(ANN, reason, &EraseOptions::new());
        if now < THREE_YEARS_LATER {
            let message = erased.as_ref().unwrap_err().to_string();
            assert!(message.contains("2027-02-28T00:00:00"), "{message}");
        }
        let erased = erased.map(|erasure| erasure.erased).map_err(|error| error.code());
        assert_eq!(erased, expected, "{more} {reason} {now}");
    }
}

#[test]
fn a_malformed_retention_policy_is_overridden_only_by_saying_so() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    let session = operator(&store);
    put(&session, belief(ANN, "an account", 1, r#", "retention_policy": {"years": 3}"#));
    assert_eq!(code(session.erase_user(ANN, "ann asked", &EraseOptions::new())), "ERR_POLICY");
    let overriding = EraseOptions::new().override_malformed_retention(true);
    assert_eq!(session.erase_user(ANN, "ann asked", &overriding).unwrap().erased, 1);
    let last = session.audit(None, 100).unwrap().pop().unwrap();
    assert_eq!(last.rules, ["malformed_retention_overridden"]);
}

#[test]
fn only_the_operator_erases_and_a_user_where_the_store_lets_them() {
    let dir = TempDir::new().unwrap();
    let options = OpenOptions::new().create(true).clock(clock_at(NOW)).operator("did:web:boss");
    let as_who =
        |store: &Store, actor: Option<&str>, user: Option<&str>, namespace: Option<&str>| {
            store.session(SessionOptions {
                actor: actor.map(str::to_owned),
                user_id: user.map(str::to_owned),
                namespace: namespace.map(str::to_owned),
                ..SessionOptions::default()
            })
        };
    let (boss, agent) = (Some("did:web:boss"), Some("did:web:agent"));
    for (lets, actor, user, namespace, may) in [
        (false, None, None, None, true),
        (false, boss, None, None, true),
        (false, agent, None, None, false),
        (false, None, None, Some("home"), false),
        (false, None, Some(BOB), None, false),
        (false, agent, Some(ANN), None, false),
        (true, agent, Some(ANN), None, true),
        (true, agent, Some(ANN), Some("home"), false),
        (true, agent, Some(BOB), None, false),
    ] {
        let store = Store::open(dir.path(), &options.clone().users_erase_themselves(lets)).unwrap();
        put(&operator(&store), belief(ANN, "tea", 1, ""));
        let session = as_who(&store, actor, user, namespace);
        let tried = session.erase_user(ANN, "ann asked", &EraseOptions::new().dry_run(true));
        let refused = tried.map(drop).map_err(|error| error.code());
        let expected = if may { Ok(()) } else { Err("ERR_ACCESS") };
        assert_eq!(refused, expected, "{lets} {actor:?} {user:?} {namespace:?}");
        store.close().unwrap();
    }
}

#[test]
fn a_grain_with_an_empty_user_is_nobodys_own() {
    let dir = TempDir::new().unwrap();
    let options = OpenOptions::new().create(true).clock(clock_at(NOW)).operator("did:web:boss");
    let store = Store::open(dir.path(), &options.users_erase_themselves(true)).unwrap();
    let empty = r#", "user_id": """#;
    let address = put(&operator(&store), belief("", "tea", 1, empty));
    for user in ["", ANN] {
        let session = store.session(SessionOptions {
            actor: Some("did:web:agent".to_owned()),
            user_id: Some(user.to_owned()),
            ..SessionOptions::default()
        });
        for how in [EraseOptions::new(), EraseOptions::new().dry_run(true)] {
            assert_eq!(code(session.erase(&address, "x", &how)), "ERR_ACCESS", "{user:?}");
        }
    }
    assert_eq!(operator(&store).erase(&address, "x", &EraseOptions::new()).unwrap().erased, 1);
}

#[test]
fn an_erasure_needs_a_user_and_a_reason() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    let session = operator(&store);
    let address = put(&session, belief(ANN, "tea", 1, ""));
    let long = "x".repeat(grainstore::limits::MAX_REASON_BYTES + 1);
    for (user, reason, expected) in
        [("", "why", "ERR_EMPTY"), (ANN, " ", "ERR_EMPTY"), (ANN, &long, "ERR_TOO_LARGE")]
    {
        assert_eq!(code(session.erase_user(user, reason, &EraseOptions::new())), expected);
    }
    assert_eq!(code(session.erase(&address, "", &EraseOptions::new())), "ERR_EMPTY");
    session.get(&address).unwrap();
}

#[test]
fn a_certificate_is_verified_without_the_store_and_a_forged_one_is_not() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    let session = operator(&store);
    put(&session, belief(ANN, "tea", 1, ""));
    let certificate =
        session.erase_user(ANN, "ann asked", &EraseOptions::new()).unwrap().certificate;
    let certificate = certificate.unwrap();
    put(&session, belief(BOB, "tea", 2, ""));
    assert_eq!(store.passes(&certificate.checkpoint).unwrap(), None);
    store.close().unwrap();
    let json = serde_json::to_string(&certificate).unwrap();
    let read: grainstore::ErasureCertificate = serde_json::from_str(&json).unwrap();
    let resolver = grainstore::format::OfflineResolver;
    let entry = read.verify(&resolver).unwrap();
    assert_eq!((entry.operation.as_str(), entry.sequence), ("erase_user", certificate.sequence));
    assert!(!json.contains(ANN));
    let forged = |change: &dyn Fn(&mut grainstore::ErasureCertificate)| {
        let mut forged = certificate.clone();
        change(&mut forged);
        code(forged.verify(&resolver))
    };
    assert_eq!(forged(&|c| c.sequence += 1), "ERR_SCHEMA");
    assert_eq!(forged(&|c| c.hash = "00".repeat(32)), "ERR_SCHEMA");
    assert_eq!(forged(&|c| c.entry = "gA==".to_owned()), "ERR_SCHEMA");
}
