//! The withdrawal of consent: it ends the grant as it stands now, waits for no policy, and is for the
//! parties alone.

use grainstore::format::{ContentAddress, Grain};
use grainstore::{
    AuditEntry, EraseOptions, OpenOptions, PutOutcome, SameFact, Session, SessionOptions, Store,
};
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
        Ok(put @ PutOutcome::Added(_)) => Ok(put.address()),
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
        verified(&session);
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
fn nobody_else_puts_a_consent_of_others_in_the_place_of_one() {
    let (_dir, session) = store();
    let granted = grant(&session);
    let withdrawal = withdraw(&session, B, 2, &granted).unwrap();
    let agent = session.store().session(SessionOptions {
        namespace: Some("shared".into()),
        actor: Some(C.into()),
        ..SessionOptions::default()
    });
    let of_others = json!({
        "type": "consent", "subject_did": "did:web:m", "grantee_did": C, "scope": ["store"],
        "is_withdrawal": false, "created_at": 3000,
    });
    let of_others = Grain::from_json(&of_others.to_string()).unwrap();
    let before = count(&session);
    let refused = agent.supersede(&withdrawal, of_others, Some("mine")).map(drop);
    assert_eq!(refused.unwrap_err().code(), "ERR_INVALIDATION_DENIED");
    let written = entries(&session, before);
    assert_eq!(written[0].rules, ["withdrawal_by_others"]);
    assert!(session.get(&withdrawal).unwrap().state.is_current());
    let again = agent.supersede(&withdrawal, consent(B, 4, None), Some("agreed again"));
    assert!(again.is_ok(), "between the two parties as before");
}

/// The address a grain will have.
fn address(grain: &Grain) -> ContentAddress {
    grain.encode(Default::default()).unwrap().address()
}

fn verified(session: &Session) {
    assert_eq!(session.store().verify(true).unwrap().problems, []);
}

#[test]
fn a_grant_that_was_withdrawn_before_it_came_is_withdrawn_when_it_comes() {
    let grant = consent(B, 1, None);
    let of = address(&grant);
    type Bring = fn(&Session, Grain) -> ContentAddress;
    let ways: [(&str, Bring); 3] = [
        ("put", |session, grant| session.put(grant).unwrap().address()),
        ("put_batch", |session, grant| {
            let others = [consent(C, 7, None), grant, consent(C, 8, None)];
            session.put_batch(others).unwrap()[1].address()
        }),
        ("put_fact", |session, grant| {
            session.put_fact(grant, SameFact::Supersede).unwrap().address()
        }),
    ];
    for (way, bring) in ways {
        let (_dir, session) = store();
        let withdrawal = withdraw(&session, B, 2, &of).unwrap();
        let before = count(&session);
        assert_eq!(bring(&session, grant.clone()), of);
        let state = session.get(&of).unwrap().state;
        assert_eq!(state.superseded_by, Some(withdrawal), "{way}");
        assert!(!state.is_current() && state.system_valid_to.is_some(), "{way}");
        let told = entries(&session, before);
        let ended: Vec<_> = told.iter().filter(|entry| entry.operation == "supersede").collect();
        let [entry] = ended.as_slice() else { panic!("{way}: {told:?}") };
        assert_eq!(
            (&entry.subjects, &entry.rules),
            (&vec![of, withdrawal], &vec!["withdrawal".to_owned()])
        );
        assert!(told.iter().any(|entry| entry.operation == "put" && entry.subjects.contains(&of)));
        let chain: Vec<_> = session.history(&of).unwrap().iter().map(|v| v.address).collect();
        assert_eq!(chain, [withdrawal, of], "{way}");
        verified(&session);
        // Coming again, once more or granted anew, is no new arrival.
        let again = renew(&session, &withdrawal, B, 9);
        assert!(session.put(grant.clone()).unwrap().is_duplicate());
        assert!(session.get(&again).unwrap().state.is_current(), "{way}");
        verified(&session);
    }
}

#[test]
fn a_renewal_that_was_withdrawn_before_it_came_ends_when_it_comes() {
    let (_dir, session) = store();
    let first = grant(&session);
    let renewal = consent(B, 2, None);
    let mut fields = renewal.clone().into_fields();
    let parents = vec![grainstore::format::Value::from(first.to_string())];
    fields.insert("derived_from".to_owned(), grainstore::format::Value::Array(parents));
    fields.insert("supersession_justification".to_owned(), "renewed".into());
    let renewal = Grain::from_fields(fields).unwrap();
    let of = address(&renewal);
    let withdrawal = withdraw(&session, B, 3, &of).unwrap();
    assert!(session.get(&first).unwrap().state.is_current(), "it names another");
    assert_eq!(session.supersede(&first, renewal, Some("renewed")).unwrap(), of);
    assert_eq!(session.get(&of).unwrap().state.superseded_by, Some(withdrawal));
    verified(&session);
}

#[test]
fn a_withdrawal_and_its_grant_in_one_batch_end_it_whichever_comes_first() {
    let (_dir, session) = store();
    let grant = consent(B, 1, None);
    let of = address(&grant);
    let put = session.put_batch([consent(B, 2, Some(&of)), grant]).unwrap();
    assert_eq!(session.get(&of).unwrap().state.superseded_by, Some(put[0].address()));
    verified(&session);
}

#[test]
fn others_withdraw_no_grant_that_is_still_to_come_and_no_batch_that_fails_leaves_one() {
    let (_dir, session) = store();
    let grant = consent(B, 1, None);
    let of = address(&grant);
    withdraw(&session, C, 2, &of).unwrap();
    // A batch that is refused leaves its withdrawal nowhere.
    let broken = [consent(B, 3, Some(&of)), consent(B, 4, Some(&ContentAddress::of(b"x")))];
    let locked = session.put(under_lock()).unwrap().address();
    let weaker = disguised(&locked);
    let batch = broken.into_iter().chain([weaker]);
    assert_eq!(session.put_batch(batch).unwrap_err().code(), "ERR_SUPERSEDE_REQUIRED");
    session.put(grant).unwrap();
    let state = session.get(&of).unwrap().state;
    assert!(state.is_current() && !state.needs_review, "{state:?}");
    verified(&session);
}

#[test]
fn a_withdrawal_of_another_namespace_marks_a_grant_for_review_and_ends_nothing() {
    let within = |grain: Grain, namespace: &str| {
        let mut fields = grain.into_fields();
        fields.insert("namespace".to_owned(), namespace.into());
        Grain::from_fields(fields).unwrap()
    };
    for (elsewhere, ends) in
        [("acme", true), ("acme:bot", true), ("acme:bot:x", false), ("other", false)]
    {
        let (_dir, session) = store();
        let grant = within(consent(B, 1, None), "acme:bot");
        let of = address(&grant);
        session.put(within(consent(B, 2, Some(&of)), elsewhere)).unwrap();
        session.put(grant).unwrap();
        let state = session.get(&of).unwrap().state;
        assert_eq!((state.is_current(), state.needs_review), (!ends, !ends), "{elsewhere}");
        verified(&session);
    }
}

fn under_lock() -> Grain {
    Grain::from_json(
        r#"{"type": "belief", "subject": "s", "relation": "r", "object": "o", "confidence": 1,
            "created_at": 0, "invalidation_policy": {"mode": "locked"}}"#,
    )
    .unwrap()
}

fn disguised(old: &ContentAddress) -> Grain {
    Grain::from_json(&format!(
        r#"{{"type": "belief", "subject": "s", "relation": "r", "object": "p", "confidence": 1,
            "created_at": 0, "derived_from": ["{old}"]}}"#
    ))
    .unwrap()
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
    let put = put.iter().map(PutOutcome::address).collect::<Vec<_>>();
    assert_eq!(told, [("supersede".to_owned(), put.clone()), ("put".to_owned(), vec![put[0]])]);
}

#[test]
fn the_operator_is_told_the_versions_to_erase_that_an_ended_consent_hides_and_nobody_else() {
    let (_dir, session) = store();
    let basis = grant(&session);
    let belief = |object: &str| {
        let grain = json!({
            "type": "belief", "subject": "alice", "relation": "likes", "object": object,
            "confidence": 1.0, "created_at": 2000, "processing_basis": basis.to_string(),
        });
        Grain::from_json(&grain.to_string()).unwrap()
    };
    let tea = session.put(belief("tea")).unwrap().address();
    let coffee = session.supersede(&tea, belief("coffee"), None).unwrap();
    withdraw(&session, B, 4, &basis).unwrap();
    assert_eq!(session.history(&tea).unwrap_err().code(), "ERR_WITHDRAWN");
    for version in [tea, coffee] {
        assert_eq!(session.versions_to_erase(&version).unwrap(), [coffee, tea]);
    }
    let others = [
        SessionOptions { namespace: Some("team".into()), ..SessionOptions::default() },
        SessionOptions { user_id: Some("u1".into()), ..SessionOptions::default() },
    ];
    for other in others {
        let refused = session.part(other).versions_to_erase(&tea).unwrap_err();
        assert_eq!(refused.code(), "ERR_ACCESS");
    }
    session.erase(&coffee, "asked for", &EraseOptions::new()).unwrap();
    assert_eq!(session.versions_to_erase(&tea).unwrap(), [tea]);
    assert_eq!(session.versions_to_erase(&coffee).unwrap_err().code(), "ERR_ERASED");
}
