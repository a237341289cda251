//! Withdrawals of consent that come in a file: what it states of when hastens no erasure.

use std::sync::Arc;

use grainstore::{
    ContentAddress, EpochMs, ManualClock, OpenOptions, Session, SessionOptions, Store,
};
use tempfile::TempDir;

use crate::import::kit::{Place, Stated, address, belief, blob, container, grain, superseded};

const DAY: i64 = 86_400_000;
const NOW: i64 = 1_800_000_000_000;
const HOST: &str = "did:web:host";
const STRANGER: &str = "did:web:somebody";

/// A consent, or what takes the place of another.
fn consent(created_at: i64, more: &str) -> grainstore::Grain {
    grain(&format!(
        r#""type": "consent", "subject_did": "did:web:ann", "grantee_did": "did:web:shop",
           "scope": ["store"], "created_at": {created_at}{more}"#
    ))
}

fn acting(store: &Store, actor: &str) -> Session {
    store.session(SessionOptions { actor: Some(actor.to_owned()), ..SessionOptions::default() })
}

/// A store whose host named its operator, at a moment that the test sets.
fn place() -> (Place, Arc<ManualClock>) {
    let (dir, clock) = (TempDir::new().unwrap(), Arc::new(ManualClock::following()));
    clock.set(EpochMs::new(NOW));
    let options = OpenOptions::new().create(true).operator(HOST);
    let options = options.clock(Arc::<ManualClock>::clone(&clock));
    let store = Store::open(dir.path().join("store"), &options).unwrap();
    let session = acting(&store, HOST);
    (Place { dir, store, session }, clock)
}

fn imports(place: &Place, by: &str, entries: &[Vec<u8>], stated: &[Stated]) {
    let file = place.dir.path().join("withdrawn.mg");
    std::fs::write(&file, container(entries, stated)).unwrap();
    acting(&place.store, by).import([file], &grainstore::ImportOptions::default()).unwrap();
}

/// A grant, what ends with it, and a file by a stranger that says it was withdrawn long ago.
fn withdrawn(place: &Place) -> (ContentAddress, ContentAddress, ContentAddress) {
    let grant = place.session.put(consent(1000, r#", "is_withdrawal": false"#)).unwrap().address();
    let more = format!(
        r#", "processing_basis": "{grant}", "invalidation_policy": {{"mode": "consent_cascade"}}"#
    );
    let resting = place.session.put(belief("tea", 2000, &more)).unwrap().address();
    let taken = consent(3000, &format!(r#", "is_withdrawal": true, "prior_consent": "{grant}""#));
    let by = address(&taken);
    imports(place, STRANGER, &[blob(&taken)], &[superseded(grant, by, NOW - 29 * DAY)]);
    assert!(place.state(&by).needs_review);
    (grant, resting, by)
}

#[test]
fn a_stranger_who_states_an_early_withdrawal_hastens_no_erasure() {
    let (place, clock) = place();
    let (grant, resting, taken) = withdrawn(&place);
    assert_eq!(place.session.get(&resting).unwrap_err().code(), "ERR_WITHDRAWN");
    // A later file moves nothing either.
    clock.set(EpochMs::new(NOW + DAY));
    imports(&place, STRANGER, &[], &[superseded(grant, taken, NOW - 90 * DAY)]);
    let due = place.store.due_erasures().unwrap();
    assert_eq!(due.iter().map(|it| it.due.get()).collect::<Vec<_>>(), [NOW + 28 * DAY]);
    assert_eq!(place.session.sweep().unwrap().erased, 0);
    clock.set(EpochMs::new(NOW + 28 * DAY - 1));
    assert_eq!(place.session.sweep().unwrap().erased, 0);
    clock.set(EpochMs::new(NOW + 28 * DAY));
    assert_eq!(place.session.sweep().unwrap().erased, 1);
    place.verify();
}

#[test]
fn what_the_operator_granted_anew_stays_whatever_a_file_stated() {
    let (place, clock) = place();
    let (_, resting, taken) = withdrawn(&place);
    let anew = consent(4000, &format!(r#", "is_withdrawal": false, "prior_consent": "{taken}""#));
    place.session.supersede(&taken, anew, Some("she said so")).unwrap();
    for days in [0, 1, 28, 400] {
        clock.set(EpochMs::new(NOW + days * DAY));
        assert_eq!(place.session.sweep().unwrap().erased, 0, "after {days} days");
        place.session.get(&resting).unwrap();
    }
    assert_eq!(place.store.due_erasures().unwrap(), []);
}
