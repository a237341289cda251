//! What an erasure leaves of consents: that they were given and taken back, and nothing of who or why
//! (ruling 40).

use grainstore::{AuditEntry, ContentAddress, EraseOptions, SessionOptions, Store};
use serde_json::json;
use tempfile::TempDir;

use crate::erase::kit::{belief, code, found_in, grain, open, open_encrypted, operator, put};

const SECRET: &str = "aftercare of the knee";

fn consent(user: &str, created_at: i64, more: &serde_json::Value) -> grainstore::Grain {
    let mut consent = json!({
        "type": "consent", "user_id": user, "subject_did": format!("did:web:{user}.example"),
        "grantee_did": "did:web:clinic.example", "scope": ["store", "retrieve"],
        "is_withdrawal": false, "created_at": created_at,
        "basis": if user == "ann" { SECRET } else { "nothing to hide" },
    });
    consent.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    grain(&consent.to_string())
}

fn left(store: &Store) -> Vec<AuditEntry> {
    let entries = operator(store).audit(None, 1000).unwrap();
    entries.into_iter().filter(|entry| entry.operation == "erase_consent").collect()
}

/// Ann gives a consent and takes it back, bob gives one.
fn consents(store: &Store) -> [ContentAddress; 3] {
    let session = operator(store);
    let given =
        put(&session, consent("ann", 1000, &json!({ "valid_from": 500, "valid_to": 9_000 })));
    put(&session, belief("ann", "tea", 1500, ""));
    let taken = json!({ "is_withdrawal": true, "prior_consent": given.to_string() });
    let taken = put(&session, consent("ann", 2000, &taken));
    let of_bob = put(&session, consent("bob", 3000, &json!({})));
    [given, taken, of_bob]
}

#[test]
fn a_record_without_content_stays_of_each_consent_of_an_erased_user() {
    for opened in [open, open_encrypted] {
        let dir = TempDir::new().unwrap();
        let store = opened(dir.path());
        let [given, taken, of_bob] = consents(&store);
        let erasure = operator(&store)
            .erase_user("ann", "she asked", &EraseOptions::new().now(true))
            .unwrap();
        assert_eq!(erasure.erased, 3);
        let told = left(&store);
        let kinds: Vec<_> =
            told.iter().map(|entry| entry.consent.as_ref().unwrap().kind()).collect();
        assert_eq!(kinds, ["grant", "withdrawal"]);
        let grant = told[0].consent.as_ref().unwrap();
        assert_eq!(grant.scope, ["store", "retrieve"]);
        let times = (grant.created_at, grant.valid_from, grant.valid_to);
        assert_eq!(times, (1000, Some(500), Some(9_000)));
        // In an encrypted store no address can be tested: the same token stands for it as anywhere.
        let puts = operator(&store).audit(None, 1000).unwrap();
        let put_of = |at: usize| {
            let mut puts =
                puts.iter().filter(|entry| entry.subjects.contains(&told[at].subjects[0]));
            puts.next().unwrap().operation.clone()
        };
        assert_eq!(put_of(0), "put");
        if store.is_encrypted() {
            assert!(!told[0].subjects.contains(&given) && !told[1].subjects.contains(&taken));
        } else {
            assert_eq!((&told[0].subjects, &told[1].subjects), (&vec![given], &vec![taken]));
        }
        assert_eq!(code(operator(&store).get(&given)), "ERR_ERASED");
        operator(&store).get(&of_bob).unwrap();
        let certificate = erasure.certificate.unwrap();
        certificate.verify(&grainstore::format::OfflineResolver).unwrap();
        assert!(store.verify(true).unwrap().problems.is_empty());
        // They are told to the operator, after a restart as well, and to nobody in a namespace.
        store.close().unwrap();
        let store = opened(dir.path());
        assert_eq!(left(&store), told);
        assert!(store.verify(true).unwrap().problems.is_empty());
        let limited = SessionOptions { namespace: Some("a".into()), ..SessionOptions::default() };
        let shown = store.session(limited).audit(None, 1000).unwrap();
        assert!(shown.iter().all(|entry| entry.operation != "erase_consent"), "{shown:?}");
        store.close().unwrap();
        assert_eq!(found_in(dir.path(), &[SECRET.to_owned()]), []);
    }
}

#[test]
fn one_consent_that_is_erased_leaves_its_record_and_a_dry_run_or_a_refusal_leaves_none() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    let [.., of_bob] = consents(&store);
    let session = operator(&store);
    session.erase(&of_bob, "a test", &EraseOptions::new().dry_run(true)).unwrap();
    session.hold(&of_bob, "case 7").unwrap();
    let refused = session.erase(&of_bob, "a test", &EraseOptions::new());
    assert_eq!(code(refused), "ERR_INVALIDATION_DENIED");
    assert_eq!(left(&store), []);
    session.lift_hold(&of_bob, "over", None).unwrap();
    session.erase(&of_bob, "a test", &EraseOptions::new()).unwrap();
    let [told] = &left(&store)[..] else { panic!("one record") };
    assert_eq!(told.subjects, [of_bob]);
    // What is no consent leaves none.
    let other = put(&session, belief("bob", "milk", 5000, ""));
    session.erase(&other, "a test", &EraseOptions::new()).unwrap();
    assert_eq!(left(&store).len(), 1);
    assert!(store.verify(true).unwrap().problems.is_empty());
}
