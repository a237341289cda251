//! A long-term memory vouches for nobody: it renews no consent of the store, and takes none back in the operator's name.

use crate::export::{open, plain};
use crate::support::*;
use grainstore::prelude::*;
use grainstore_interop::saga::{
    ExportOptions, ExportType, ImportOptions, export_container, import_container, import_document,
};

fn consent(members: &str) -> Grain {
    Grain::from_json(&format!(
        r#"{{"type": "consent", "subject_did": "did:web:ann.example", "grantee_did": "did:web:bot.example",
        "scope": ["store", "retrieve"], "user_id": "ann", {members}}}"#
    ))
    .unwrap()
}

/// Stores a consent, and a fact that rests on it.
fn resting(session: &Session) -> (ContentAddress, ContentAddress) {
    let given = consent(r#""is_withdrawal": false, "created_at": "2026-03-01T00:00:00Z""#);
    let given = session.put(given).unwrap().address();
    let fact = Grain::from_json(&format!(
        r#"{{"type": "belief", "subject": "ann", "relation": "likes", "object": "tea", "confidence": 0.9,
        "user_id": "ann", "processing_basis": "{given}", "created_at": "2026-03-01T00:00:01Z"}}"#
    ));
    (given, session.put(fact.unwrap()).unwrap().address())
}

fn withdraw(session: &Session, given: &ContentAddress) -> ContentAddress {
    let members = format!(
        r#""is_withdrawal": true, "prior_consent": "{given}", "created_at": "2026-03-02T00:00:00Z""#
    );
    session.put(consent(&members)).unwrap().address()
}

fn renew(session: &Session, withdrawn: &ContentAddress) -> ContentAddress {
    let again = consent(r#""is_withdrawal": false, "created_at": "2026-03-03T00:00:00Z""#);
    session.supersede(withdrawn, again, Some("agreed")).unwrap()
}

/// A backup of everything in a store.
fn backup(session: &Session, path: &std::path::Path) {
    let document = signed(envelope("full", full_layers()), &evm());
    import_document(session, &document, &ImportOptions::default()).unwrap();
    let options = ExportOptions { grains: Some(Query::default()), ..plain(ExportType::Backup) };
    export_container(session, path, &options, &evm()).unwrap();
}

#[test]
fn a_consent_that_was_withdrawn_here_is_not_renewed_by_a_long_term_memory() {
    let dir = tempfile::tempdir().unwrap();
    let (other, _) = open(&dir.path().join("other"));
    let (given, fact) = resting(&other);
    let withdrawn = withdraw(&other, &given);
    renew(&other, &withdrawn);
    let path = dir.path().join("out.saga");
    backup(&other, &path);
    for has_withdrawn in [true, false] {
        let (session, _) = open(&dir.path().join(format!("store-{has_withdrawn}")));
        assert_eq!(resting(&session), (given, fact));
        if has_withdrawn {
            withdraw(&session, &given);
        }
        let before = session.store().stats().unwrap().grains;
        let refused = import_container(&session, &path, &ImportOptions::default()).unwrap_err();
        assert_eq!(refused.code(), "ERR_SIGNATURE");
        assert!(refused.entry().unwrap().ends_with("memory/longterm.bin"));
        assert_eq!(session.store().stats().unwrap().grains, before);
        let hidden = session.get(&fact).err().map(|error| error.code());
        assert_eq!(hidden, has_withdrawn.then_some("ERR_WITHDRAWN"));
    }
    // Where nobody of the store is asked for, and where it came from, it comes.
    let (fresh, _) = open(&dir.path().join("fresh"));
    for session in [&fresh, &other] {
        import_container(session, &path, &ImportOptions::default()).unwrap();
        session.get(&fact).unwrap();
    }
}

#[test]
fn a_withdrawal_of_a_consent_that_is_here_is_taken_and_marked_for_review() {
    let dir = tempfile::tempdir().unwrap();
    let (other, _) = open(&dir.path().join("other"));
    let (given, fact) = resting(&other);
    let withdrawn = withdraw(&other, &given);
    let path = dir.path().join("out.saga");
    backup(&other, &path);
    let (session, _) = open(&dir.path().join("store"));
    resting(&session);
    import_container(&session, &path, &ImportOptions::default()).unwrap();
    assert_eq!(session.get(&fact).unwrap_err().code(), "ERR_WITHDRAWN");
    assert!(session.get(&withdrawn).unwrap().state.needs_review);
    assert!(!other.get(&withdrawn).unwrap().state.needs_review);
}

#[test]
fn a_memory_with_consents_that_are_here_already_is_taken_again() {
    let dir = tempfile::tempdir().unwrap();
    let (session, _) = open(&dir.path().join("own"));
    let (given, fact) = resting(&session);
    let withdrawn = withdraw(&session, &given);
    let again = consent(&format!(
        r#""is_withdrawal": false, "prior_consent": "{given}", "created_at": "2026-03-03T00:00:00Z""#
    ));
    session.supersede(&withdrawn, again, Some("agreed")).unwrap();
    let path = dir.path().join("out.saga");
    backup(&session, &path);
    let (fresh, _) = open(&dir.path().join("fresh"));
    for (session, times) in [(&session, 1), (&fresh, 3)] {
        for _ in 0..times {
            import_container(session, &path, &ImportOptions::default()).unwrap();
            assert!(session.get(&fact).is_ok());
        }
    }
    // Once it is withdrawn again, that stays.
    let renewal = fresh.get(&withdrawn).unwrap().state.superseded_by.unwrap();
    withdraw(&fresh, &renewal);
    import_container(&fresh, &path, &ImportOptions::default()).unwrap();
    assert_eq!(fresh.get(&fact).err().map(|error| error.code()), Some("ERR_WITHDRAWN"));
}
