//! The withdrawal of consent: it ends the grant as it stands now, waits for no policy, and is for the
//! parties alone.

use grainstore::format::{ContentAddress, Grain};
use grainstore::{AuditEntry, OpenOptions, Put, Session, SessionOptions, Store};
use serde_json::json;
use tempfile::TempDir;

fn store() -> (TempDir, Session) {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path(), &OpenOptions::new().create(true)).unwrap();
    (dir, store.session(SessionOptions::default()))
}

/// A consent of `did:web:a`, at this second; a withdrawal where it names what it takes back.
fn consent(to: &str, at: i64, withdraws: Option<&ContentAddress>) -> Grain {
    let mut grain = json!({
        "type": "consent", "subject_did": "did:web:a", "grantee_did": to, "scope": ["store"],
        "is_withdrawal": withdraws.is_some(), "created_at": at * 1000,
    });
    if let Some(prior) = withdraws {
        grain["prior_consent"] = json!(prior.to_string());
    }
    Grain::from_json(&grain.to_string()).unwrap()
}

const B: &str = "did:web:b";
const C: &str = "did:web:c";

fn grant(session: &Session) -> ContentAddress {
    session.put(consent(B, 1, None)).unwrap().address()
}

fn renew(session: &Session, old: &ContentAddress, to: &str, at: i64) -> ContentAddress {
    session.supersede(old, consent(to, at, None), Some("renewed")).unwrap()
}

fn withdraw(
    session: &Session,
    to: &str,
    at: i64,
    prior: &ContentAddress,
) -> Result<ContentAddress, &'static str> {
    match session.put(consent(to, at, Some(prior))) {
        Ok(put @ Put::Added(_)) => Ok(put.address()),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error.code()),
    }
}

/// What the audit log has beyond so many entries.
fn entries(session: &Session, from: u64) -> Vec<AuditEntry> {
    session.audit(from.checked_sub(1), 100).unwrap()
}

fn count(session: &Session) -> u64 {
    session.audit_head().unwrap().0
}

#[test]
fn a_renewed_grant_is_withdrawn_whichever_version_is_named() {
    for named in 0..3 {
        let (_dir, session) = store();
        let first = grant(&session);
        let second = renew(&session, &first, B, 2);
        let versions = [first, second, renew(&session, &second, B, 3)];
        let withdrawal = withdraw(&session, B, 4, &versions[named]).unwrap();
        let head = session.get(&versions[2]).unwrap().state;
        assert_eq!(head.superseded_by, Some(withdrawal), "{named}");
        assert!(session.get(&withdrawal).unwrap().state.is_current());
        for version in versions.iter().chain([&withdrawal]) {
            let chain = session.history(version).unwrap();
            let chain: Vec<_> = chain.iter().map(|version| version.address).collect();
            assert_eq!(chain, [withdrawal, versions[2], versions[1], versions[0]], "{named}");
        }
    }
}

#[test]
fn a_withdrawal_writes_one_entry_for_one_effect() {
    let (_dir, session) = store();
    let first = grant(&session);
    let head = renew(&session, &first, B, 2);
    let before = count(&session);
    let withdrawal = withdraw(&session, B, 3, &first).unwrap();
    let written = entries(&session, before);
    assert_eq!(written.len(), 1, "{written:?}");
    assert_eq!(
        (written[0].operation.as_str(), written[0].decision.as_str()),
        ("supersede", "done")
    );
    assert_eq!(written[0].subjects, [head, withdrawal]);
    assert_eq!(written[0].rules, ["withdrawal"]);
}

#[test]
fn what_is_withdrawn_already_stays_so_until_it_is_granted_again() {
    let (_dir, session) = store();
    let first = grant(&session);
    let withdrawal = withdraw(&session, B, 2, &first).unwrap();
    for (at, named) in [(3, &first), (4, &withdrawal)] {
        withdraw(&session, B, at, named).unwrap();
        assert!(session.get(&withdrawal).unwrap().state.is_current());
    }
    let again = renew(&session, &withdrawal, B, 5);
    let last = withdraw(&session, B, 6, &first).unwrap();
    assert_eq!(session.get(&again).unwrap().state.superseded_by, Some(last));
}

#[test]
fn others_withdraw_nothing_and_their_attempt_is_recorded() {
    let (_dir, session) = store();
    let first = grant(&session);
    let head = renew(&session, &first, C, 2);
    // The first was made with B and the last with C: neither is withdrawn by naming the first.
    for (to, refused_for) in [(C, first), (B, head)] {
        let before = count(&session);
        assert_eq!(withdraw(&session, to, 3, &first), Err("ERR_INVALIDATION_DENIED"), "{to}");
        let written = entries(&session, before);
        assert_eq!(written.len(), 1, "{written:?}");
        let offered = consent(to, 3, Some(&first)).encode(Default::default()).unwrap().address();
        assert_eq!(written[0].operation, "supersede");
        assert_eq!(written[0].decision, "refused");
        assert_eq!(written[0].rules, ["withdrawal_by_others"]);
        assert_eq!(written[0].subjects, [refused_for, offered]);
        assert!(written[0].why().is_some());
    }
    assert!(session.get(&head).unwrap().state.is_current());
    assert!(withdraw(&session, C, 3, &head).is_ok());
}

#[test]
fn a_batch_may_hold_a_grant_and_its_withdrawal() {
    let (_dir, session) = store();
    let grant = consent(B, 1, None);
    let address = grant.encode(Default::default()).unwrap().address();
    let before = count(&session);
    let put = session.put_batch([grant, consent(B, 2, Some(&address))]).unwrap();
    let ended = session.get(&address).unwrap().state.superseded_by;
    assert_eq!(ended, Some(put[1].address()));
    let told: Vec<_> =
        entries(&session, before).into_iter().map(|e| (e.operation, e.subjects)).collect();
    let put = put.iter().map(Put::address).collect::<Vec<_>>();
    assert_eq!(told, [("supersede".to_owned(), put.clone()), ("put".to_owned(), vec![put[0]])]);
}
