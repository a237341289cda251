//! What ends with a consent is erased when that was withdrawn, and nothing else is: by whom it was withdrawn
//! decides whether at once or when the promised time is over.

use std::sync::Arc;

use grainstore::{
    ContentAddress, EpochMs, EraseOptions, ManualClock, OpenOptions, Session, SessionOptions,
    Store, SweepReport,
};
use tempfile::TempDir;

use crate::erase::kit::{ANN, NOW, belief, clock_at, code, grain, open_at, operator, put};

const DAY: i64 = 86_400_000;

fn consent(more: &str) -> String {
    format!(
        r#"{{"type": "consent", "subject_did": "did:web:ann", "grantee_did": "did:web:shop",
            "scope": ["store"], "is_withdrawal": false, "user_id": "{ANN}", "created_at": 1{more}}}"#
    )
}

fn withdrawal(of: &ContentAddress, at: i64) -> String {
    consent("")
        .replace(
            "\"is_withdrawal\": false",
            &format!("\"is_withdrawal\": true, \"prior_consent\": \"{of}\""),
        )
        .replace("\"created_at\": 1", &format!("\"created_at\": {at}"))
}

/// A grain that rests on a consent and ends with it, or not.
fn resting(session: &Session, on: &ContentAddress, object: &str, policy: &str) -> ContentAddress {
    let more = format!(r#", "processing_basis": "{on}"{policy}"#);
    put(session, belief(ANN, object, 5, &more))
}

const CASCADE: &str = r#", "invalidation_policy": {"mode": "consent_cascade"}"#;

fn swept(store: &Store) -> (u64, u64) {
    let SweepReport { erased, skipped, .. } = operator(store).sweep().unwrap();
    (erased, skipped)
}

#[test]
fn what_ends_with_a_consent_is_erased_at_once_when_the_operator_withdraws() {
    let dir = TempDir::new().unwrap();
    let store = open_at(dir.path(), NOW);
    let session = operator(&store);
    let grant = put(&session, grain(&consent("")));
    let other = put(&session, grain(&consent(r#", "jurisdiction": "elsewhere""#)));
    let due = resting(&session, &grant, "due", CASCADE);
    let held = resting(&session, &grant, "held", CASCADE);
    session.hold(&held, "a case").unwrap();
    let keeping = format!(r#"{CASCADE}, "retention_policy": {{"minimum_retention_years": 99}}"#);
    let kept = resting(&session, &grant, "kept", &keeping);
    let open = resting(&session, &grant, "without the mode", "");
    let elsewhere = resting(&session, &other, "of another consent", CASCADE);
    assert_eq!(swept(&store), (0, 0), "nothing was withdrawn");
    let taken = put(&session, grain(&withdrawal(&grant, NOW)));
    let listed = store.due_erasures().unwrap();
    assert_eq!(listed.iter().filter(|it| it.due.get() == NOW && it.kept).count(), 2);
    let told = doctors(&store);
    assert!(told.contains("due for erasure") && told.contains(&due.to_string()), "{told}");
    assert_eq!(swept(&store), (1, 2));
    assert_eq!(swept(&store), (0, 2), "once is enough");
    assert!(!doctors(&store).contains(&due.to_string()) && doctors(&store).contains("kept"));
    assert_eq!(code(session.get(&due)), "ERR_ERASED");
    // Those that stay are in the log, whoever may see them now.
    let report = session.subject_report(ANN).unwrap();
    for address in [&held, &kept, &open, &elsewhere, &grant, &other, &taken] {
        assert!(report.addresses.contains(address), "{address}");
    }
    let told = session.audit(None, 100).unwrap();
    let told = told.iter().find(|entry| entry.operation == "erase").unwrap();
    assert_eq!(
        (told.subjects.as_slice(), &*told.rules),
        (&[due][..], &["consent_cascade".into()][..])
    );
    let verified = store.verify(true).unwrap();
    assert!(verified.ok, "{:?}", verified.problems);
    // An explicit erasure takes consent too, once nothing stands against it.
    session.lift_hold(&held, "over", None).unwrap();
    assert_eq!(code(session.erase_user(ANN, "ann asked", &EraseOptions::new())), "ERR_POLICY");
}

fn doctors(store: &Store) -> String {
    let found = store.doctor().findings;
    let found = found.into_iter().filter(|finding| finding.name == "erasure");
    found.map(|finding| finding.detail).collect::<Vec<_>>().join("; ")
}

fn acting(store: &Store, actor: &str) -> Session {
    store.session(SessionOptions { actor: Some(actor.to_owned()), ..SessionOptions::default() })
}

fn with_operator(dir: &TempDir, clock: &Arc<ManualClock>) -> Store {
    let options = OpenOptions::new()
        .create(true)
        .clock(Arc::<ManualClock>::clone(clock))
        .operator("did:web:host");
    Store::open(dir.path(), &options).unwrap()
}

fn clock() -> Arc<ManualClock> {
    let clock = Arc::new(ManualClock::following());
    clock.set(EpochMs::new(NOW));
    clock
}

/// Waits until nobody can read the grain for it was erased: the store sweeps by itself.
fn waits_for_erasure(session: &Session, address: &ContentAddress) -> bool {
    // Nobody asks for a sweep; a flush only has the writer look at the clock now and not half a minute later.
    let end = std::time::Instant::now() + std::time::Duration::from_secs(300);
    while std::time::Instant::now() < end {
        if session.get(address).is_err_and(|error| error.code() == "ERR_ERASED") {
            return true;
        }
        session.store().flush().unwrap();
    }
    false
}

#[test]
fn who_withdrew_decides_from_when_on_it_is_due() {
    for (actor, at_once) in [
        ("did:web:ann", true),
        ("did:web:shop", true),
        ("did:web:host", true),
        ("did:web:somebody", false),
    ] {
        let (dir, clock) = (TempDir::new().unwrap(), clock());
        let store = with_operator(&dir, &clock);
        let host = acting(&store, "did:web:host");
        let grant = put(&host, grain(&consent("")));
        let due = resting(&host, &grant, "due", CASCADE);
        let taken = put(&acting(&store, actor), grain(&withdrawal(&grant, NOW)));
        assert_eq!(code(host.get(&due)), "ERR_WITHDRAWN", "{actor}");
        assert_eq!(host.get(&taken).unwrap().state.needs_review, !at_once, "{actor}");
        if at_once {
            assert_eq!(swept(&store), (1, 0), "{actor}");
            continue;
        }
        // It survives a reopening, and comes at the last moment that is promised.
        drop(host);
        store.close().unwrap();
        clock.set(EpochMs::new(NOW + 28 * DAY - 1));
        let store = with_operator(&dir, &clock);
        assert_eq!(swept(&store), (0, 0), "one moment before");
        assert!(doctors(&store).contains("others withdrew"));
        clock.set(EpochMs::new(NOW + 28 * DAY));
        assert!(waits_for_erasure(&acting(&store, "did:web:host"), &due));
    }
}

#[test]
fn what_others_withdrew_stays_where_the_subject_or_the_operator_grants_anew_in_time() {
    for (actor, after, stays) in [
        ("did:web:ann", 27 * DAY, true),
        ("did:web:host", 27 * DAY, true),
        ("did:web:shop", 27 * DAY, false),
        ("did:web:somebody", 27 * DAY, false),
    ] {
        let (dir, clock) = (TempDir::new().unwrap(), clock());
        let store = with_operator(&dir, &clock);
        let host = acting(&store, "did:web:host");
        let grant = put(&host, grain(&consent("")));
        let before = resting(&host, &grant, "before", CASCADE);
        let taken = put(&acting(&store, "did:web:somebody"), grain(&withdrawal(&grant, NOW)));
        clock.set(EpochMs::new(NOW + after));
        let anew = consent(&format!(r#", "prior_consent": "{taken}""#));
        acting(&store, actor).supersede(&taken, grain(&anew), Some("agreed again")).unwrap();
        let later = resting(&host, &grant, "after", CASCADE);
        clock.set(EpochMs::new(NOW + 28 * DAY + 1));
        assert_eq!(waits_or_stays(&store, &before, stays), stays, "{actor}");
        assert!(host.get(&later).is_ok(), "{actor}: it rests on the new grant");
    }
}

/// Whether the grain is there after the store had its chance to sweep.
fn waits_or_stays(store: &Store, address: &ContentAddress, stays: bool) -> bool {
    if !stays {
        return !waits_for_erasure(&acting(store, "did:web:host"), address);
    }
    swept(store);
    acting(store, "did:web:host").get(address).is_ok()
}

#[test]
fn a_store_sweeps_when_it_is_opened_and_every_hour() {
    let (dir, clock) = (TempDir::new().unwrap(), clock());
    let store = with_operator(&dir, &clock);
    let host = acting(&store, "did:web:host");
    let grants =
        ["", r#", "jurisdiction": "elsewhere""#].map(|more| put(&host, grain(&consent(more))));
    let [first, second] =
        grants.map(|grant| resting(&host, &grant, &format!("on {grant}"), CASCADE));
    put(&host, grain(&withdrawal(&grants[0], NOW)));
    // Nobody calls it.
    clock.set(EpochMs::new(NOW + 3_600_000));
    assert!(waits_for_erasure(&host, &first));
    put(&host, grain(&withdrawal(&grants[1], NOW + 1)));
    drop(host);
    store.close().unwrap();
    let store = with_operator(&dir, &clock);
    let host = acting(&store, "did:web:host");
    assert!(waits_for_erasure(&host, &second));
    let told = host.audit(None, 100).unwrap();
    let told: Vec<_> = told.iter().filter(|entry| entry.operation == "erase").collect();
    assert_eq!(told.len(), 2);
    assert!(told.iter().all(|entry| entry.actor == "operator" && entry.decision == "done"));
    assert!(store.verify(true).unwrap().ok);
}

#[test]
fn a_store_may_promise_less_than_a_month_and_a_renewed_grant_is_withdrawn_as_a_whole() {
    let dir = TempDir::new().unwrap();
    let options = OpenOptions::new().create(true).clock(clock_at(NOW)).cascade_after_days(0);
    let store = Store::open(dir.path(), &options).unwrap();
    let session = operator(&store);
    let first = put(&session, grain(&consent("")));
    let renewed = grain(&consent(&format!(r#", "prior_consent": "{first}""#)));
    let renewed = session.supersede(&first, renewed, Some("renewed")).unwrap();
    for (on, object) in [(&first, "on the first"), (&renewed, "on the second")] {
        resting(&session, on, object, CASCADE);
    }
    put(&session, grain(&withdrawal(&first, NOW)));
    assert_eq!(swept(&store), (2, 0));
    let agent = store.session(SessionOptions {
        namespace: Some("home".to_owned()),
        ..SessionOptions::default()
    });
    assert_eq!(code(agent.sweep()), "ERR_ACCESS");
    // Consent itself goes with its user alone.
    assert_eq!(session.subject_report(ANN).unwrap().addresses.len(), 3);
    assert_eq!(session.erase_user(ANN, "ann asked", &EraseOptions::new()).unwrap().erased, 3);
    assert_eq!(session.subject_report(ANN).unwrap().addresses.len(), 0);
}

#[test]
fn a_session_limited_to_a_user_or_a_namespace_withdraws_as_no_operator() {
    for (namespace, user, actor) in [
        (Some("shared"), Some("bob"), None),
        (Some("shared"), None, None),
        (None, Some("bob"), None),
        (Some("shared"), None, Some("did:web:host")),
    ] {
        let (dir, clock) = (TempDir::new().unwrap(), clock());
        let store = with_operator(&dir, &clock);
        let host = acting(&store, "did:web:host");
        // A consent that names no user is seen by the sessions of all of them.
        let of_nobody = |json: &str| grain(&json.replace(&format!(r#""user_id": "{ANN}", "#), ""));
        let grant = put(&host, of_nobody(&consent("")));
        let due = resting(&host, &grant, "due", CASCADE);
        let limited = store.session(SessionOptions {
            namespace: namespace.map(str::to_owned),
            user_id: user.map(str::to_owned),
            actor: actor.map(str::to_owned),
            ..SessionOptions::default()
        });
        let taken = put(&limited, of_nobody(&withdrawal(&grant, NOW)));
        assert!(host.get(&taken).unwrap().state.needs_review, "{namespace:?} {user:?} {actor:?}");
        assert_eq!(code(host.get(&due)), "ERR_WITHDRAWN", "hidden it is at once");
        assert_eq!(swept(&store), (0, 0), "{namespace:?} {user:?} {actor:?}");
        // Nor does it grant anew for the operator.
        clock.set(EpochMs::new(NOW + DAY));
        let anew = of_nobody(&consent(&format!(r#", "prior_consent": "{taken}""#)));
        limited.supersede(&taken, anew, Some("agreed again")).unwrap();
        let told = host.audit(None, 100).unwrap();
        assert!(told.iter().all(|entry| !entry.rules.contains(&"granted_anew".to_owned())));
        clock.set(EpochMs::new(NOW + 28 * DAY));
        assert!(waits_for_erasure(&host, &due), "{namespace:?} {user:?} {actor:?}");
    }
}

#[test]
fn a_renewal_by_the_subject_counts_after_a_grant_by_others() {
    for (renewed_by, stays) in
        [("did:web:ann", true), ("did:web:host", true), ("did:web:shop", false)]
    {
        let (dir, clock) = (TempDir::new().unwrap(), clock());
        let store = with_operator(&dir, &clock);
        let host = acting(&store, "did:web:host");
        let stranger = acting(&store, "did:web:somebody");
        let grant = put(&host, grain(&consent("")));
        let resting = resting(&host, &grant, "before", CASCADE);
        let taken = put(&stranger, grain(&withdrawal(&grant, NOW)));
        let by_others = grain(&consent(&format!(r#", "prior_consent": "{taken}""#)));
        let by_others = stranger.supersede(&taken, by_others, Some("never mind")).unwrap();
        clock.set(EpochMs::new(NOW + 27 * DAY));
        let renewed = grain(&consent(&format!(r#", "prior_consent": "{by_others}""#)));
        acting(&store, renewed_by).supersede(&by_others, renewed, Some("I agree")).unwrap();
        clock.set(EpochMs::new(NOW + 28 * DAY + 1));
        assert_eq!(waits_or_stays(&store, &resting, stays), stays, "{renewed_by}");
    }
}

#[test]
fn a_mark_on_the_withdrawal_hides_no_grant_in_its_place_and_moves_no_promise() {
    let (dir, clock) = (TempDir::new().unwrap(), clock());
    let store = with_operator(&dir, &clock);
    let host = acting(&store, "did:web:host");
    let stranger = acting(&store, "did:web:somebody");
    let grants =
        ["", r#", "jurisdiction": "elsewhere""#].map(|more| put(&host, grain(&consent(more))));
    let [first, second] =
        grants.map(|grant| resting(&host, &grant, &format!("on {grant}"), CASCADE));
    let taken = put(&stranger, grain(&withdrawal(&grants[0], NOW)));
    stranger.contradict(&taken, "for a time nobody knew", None).unwrap();
    clock.set(EpochMs::new(NOW + DAY));
    let anew = grain(&consent(&format!(r#", "prior_consent": "{taken}""#)));
    acting(&store, "did:web:ann").supersede(&taken, anew, Some("I agree")).unwrap();
    // What was contradicted before it was withdrawn counts from the withdrawal.
    stranger.contradict(&grants[1], "first this", None).unwrap();
    clock.set(EpochMs::new(NOW + 20 * DAY));
    put(&stranger, grain(&withdrawal(&grants[1], NOW + 20 * DAY)));
    clock.set(EpochMs::new(NOW + 40 * DAY));
    assert_eq!(swept(&store), (0, 0));
    assert!(host.get(&first).is_ok());
    clock.set(EpochMs::new(NOW + 48 * DAY));
    assert!(waits_for_erasure(&host, &second));
}

#[test]
fn what_the_store_erased_by_itself_meanwhile_is_counted() {
    let (dir, clock) = (TempDir::new().unwrap(), clock());
    let store = with_operator(&dir, &clock);
    let host = acting(&store, "did:web:host");
    for round in 1..=20 {
        let grant = put(&host, grain(&consent(&format!(r#", "jurisdiction": "{round}""#))));
        resting(&host, &grant, &format!("in round {round}"), CASCADE);
        put(&host, grain(&withdrawal(&grant, NOW + round)));
        // The writer sweeps at the next hour, before what is asked of it, or after.
        clock.set(EpochMs::new(NOW + round * 3_600_000));
        assert_eq!(host.sweep().unwrap().erased, 1, "round {round}");
    }
}

#[test]
fn a_clock_that_was_set_back_delays_no_sweep() {
    let (dir, clock) = (TempDir::new().unwrap(), clock());
    let store = with_operator(&dir, &clock);
    let host = acting(&store, "did:web:host");
    let grant = put(&host, grain(&consent("")));
    let due = resting(&host, &grant, "due", CASCADE);
    clock.set(EpochMs::new(NOW - 100 * DAY));
    put(&host, grain(&withdrawal(&grant, 2)));
    // The hour is counted by the clock as it is now.
    clock.set(EpochMs::new(NOW - 100 * DAY + 3_600_000));
    assert!(waits_for_erasure(&host, &due));
}
