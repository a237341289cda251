//! What ends with a consent is erased a month after that was withdrawn, and nothing else is.

use grainstore::{ContentAddress, Erasing, OpenOptions, Session, SessionOptions, Store, Swept};
use tempfile::TempDir;

use crate::kit::{ANN, NOW, belief, clock_at, code, grain, open_at, operator, put};

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
    let Swept { erased, skipped, .. } = operator(store).sweep().unwrap();
    (erased, skipped)
}

#[test]
fn a_month_after_the_withdrawal_what_ends_with_it_is_erased() {
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
    assert_eq!(swept(&store), (0, 0), "nothing is due yet");
    drop(session);
    store.close();
    let store = open_at(dir.path(), NOW + 30 * DAY - 1);
    assert_eq!(swept(&store), (0, 0), "one moment before");
    store.close();
    let store = open_at(dir.path(), NOW + 30 * DAY);
    assert_eq!(swept(&store), (1, 2));
    assert_eq!(swept(&store), (0, 2), "once is enough");
    let session = operator(&store);
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
    assert_eq!(code(session.erase_user(ANN, "ann asked", &Erasing::new())), "ERR_POLICY");
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
    assert_eq!(session.erase_user(ANN, "ann asked", &Erasing::new()).unwrap().erased, 3);
    assert_eq!(session.subject_report(ANN).unwrap().addresses.len(), 0);
}
