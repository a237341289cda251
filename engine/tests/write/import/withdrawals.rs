//! Withdrawals of consent that come in a file: what it states of when hastens no erasure.

use std::sync::Arc;

use grainstore::format::container::Compression;
use grainstore::{
    ContentAddress, EpochMs, GrainState, ImportOptions, ManualClock, Offer, OpenOptions, Session,
    SessionOptions, Store, VerificationStatus,
};
use tempfile::TempDir;

use crate::import::kit::{
    Place, Stated, address, belief, blob, container, grain, key, signed, state, superseded,
};

const DAY: i64 = 86_400_000;
const NOW: i64 = 1_800_000_000_000;
const HOST: &str = "did:web:host";
const STRANGER: &str = "did:web:somebody";

/// A consent, or what takes the place of another.
fn consent(created_at: i64, more: &str) -> grainstore::Grain {
    let grants = if more.contains("is_withdrawal") { "" } else { r#", "is_withdrawal": false"# };
    grain(&format!(
        r#""type": "consent", "subject_did": "did:web:ann", "grantee_did": "did:web:shop",
           "scope": ["store"], "created_at": {created_at}{grants}{more}"#
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
    acting(&place.store, by).import([file], &ImportOptions::default()).unwrap();
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

fn withdrawal(created_at: i64, of: &ContentAddress) -> grainstore::Grain {
    consent(created_at, &format!(r#", "is_withdrawal": true, "prior_consent": "{of}""#))
}

/// A grant and a grain that rests on it, which is shown.
fn granted(place: &Place) -> (ContentAddress, ContentAddress) {
    let grant = place.session.put(consent(1000, "")).unwrap().address();
    let rests = format!(r#", "processing_basis": "{grant}""#);
    (grant, place.session.put(belief("tea", 2000, &rests)).unwrap().address())
}

/// The fields of a grain that ends with a grant.
fn cascades(grant: &ContentAddress) -> String {
    let mode = r#""invalidation_policy": {"mode": "consent_cascade"}"#;
    format!(r#", "processing_basis": "{grant}", {mode}"#)
}

fn shown(place: &Place, address: &ContentAddress) -> Result<(), &'static str> {
    place.session.get(address).map(drop).map_err(|error| error.code())
}

#[test]
fn a_withdrawal_by_others_is_marked_however_it_comes() {
    type Comes = fn(&Place, &ContentAddress, grainstore::Grain) -> ContentAddress;
    let ways: [(&str, Comes); 4] = [
        ("put", |place, _, taken| acting(&place.store, STRANGER).put(taken).unwrap().address()),
        ("supersede", |place, grant, taken| {
            acting(&place.store, STRANGER).supersede(grant, taken, Some("why")).unwrap()
        }),
        ("import", |place, _, taken| {
            imports(place, STRANGER, &[blob(&taken)], &[]);
            address(&taken)
        }),
        ("claim", |place, grant, taken| {
            let stated = superseded(*grant, address(&taken), NOW - DAY);
            imports(place, STRANGER, &[blob(&taken)], &[stated]);
            address(&taken)
        }),
    ];
    for (way, comes) in ways {
        let (place, _) = place();
        let (grant, rests) = granted(&place);
        let named = format!(r#", "is_withdrawal": true, "prior_consent": "{grant}""#);
        let taken = consent(3000, &format!(r#"{named}, "derived_from": ["{grant}"]"#));
        let taken = comes(&place, &grant, taken);
        assert!(place.state(&taken).needs_review, "{way}");
        assert_eq!(shown(&place, &rests), Err("ERR_WITHDRAWN"), "{way}");
    }
    // In advance too, and whatever else it supersedes.
    let (place, _) = place();
    let stranger = acting(&place.store, STRANGER);
    let own = stranger.put(consent(500, r#", "invalidation_policy": {"mode": "open"}"#)).unwrap();
    let to_come = ContentAddress::of(&blob(&consent(1000, "")));
    let named = format!(
        r#", "is_withdrawal": true, "prior_consent": "{to_come}", "derived_from": ["{}"]"#,
        own.address()
    );
    let taken = stranger.supersede(&own.address(), consent(3000, &named), Some("why")).unwrap();
    let grant = place.session.put(consent(1000, "")).unwrap().address();
    // One that replaced something else ends no other consent.
    assert_eq!(place.state(&grant).superseded_by, None);
    assert!(place.state(&taken).needs_review);
}

#[test]
fn a_consent_whose_successor_is_not_here_is_withdrawn_all_the_same() {
    let (place, _) = place();
    let grant = consent(1000, "");
    let elsewhere = ContentAddress::of(b"a renewal that stayed behind");
    let stated = superseded(address(&grant), elsewhere, 1500);
    imports(&place, HOST, &[blob(&grant)], &[stated]);
    let rests = format!(r#", "processing_basis": "{}""#, address(&grant));
    let rests = place.session.put(belief("tea", 2000, &rests)).unwrap().address();
    assert_eq!(shown(&place, &rests), Ok(()));
    let taken = place.session.put(withdrawal(3000, &address(&grant))).unwrap().address();
    assert_eq!(shown(&place, &rests), Err("ERR_WITHDRAWN"));
    let state = place.state(&address(&grant));
    assert_eq!(state.superseded_by, Some(taken));
    assert_eq!(state.system_valid_to, Some(EpochMs::new(1500)), "it ended earlier");
    place.verify();
}

#[test]
fn a_withdrawal_that_came_without_effect_has_it_when_it_comes_again() {
    // By a file that names it as the successor of something else.
    let (place, _) = place();
    let (grant, rests) = granted(&place);
    let own = acting(&place.store, STRANGER).put(belief("junk", 10, "")).unwrap().address();
    let taken = withdrawal(3000, &grant);
    imports(&place, STRANGER, &[blob(&taken)], &[superseded(own, address(&taken), 20)]);
    assert_eq!(shown(&place, &rests), Err("ERR_WITHDRAWN"));
    // By one who does not see the grant.
    for again_by_file in [false, true] {
        let (place, _) = self::place();
        let (grant, rests) = granted(&place);
        let taken = withdrawal(3000, &grant);
        let of_another = place.store.session(SessionOptions {
            user_id: Some("bob".to_owned()),
            actor: Some(STRANGER.to_owned()),
            ..SessionOptions::default()
        });
        let put = of_another.put(taken.clone());
        let unseen = put.is_ok() && shown(&place, &rests).is_ok();
        match again_by_file {
            true => imports(&place, HOST, &[blob(&taken)], &[]),
            false => drop(place.session.put(taken).unwrap()),
        }
        assert_eq!(shown(&place, &rests), Err("ERR_WITHDRAWN"), "{unseen}");
        place.verify();
    }
}

#[test]
fn a_withdrawal_names_its_grant_with_or_without_sha256() {
    for first in [true, false] {
        let (place, _) = place();
        let grant = address(&consent(1000, ""));
        let named = format!(r#", "is_withdrawal": true, "prior_consent": "sha256:{grant}""#);
        let put = || place.session.put(consent(3000, &named)).map(drop).unwrap();
        if first {
            put();
        }
        place.session.put(consent(1000, "")).unwrap();
        if !first {
            put();
        }
        let rests = format!(r#", "processing_basis": "{grant}""#);
        let rests = place.session.put(belief("tea", 2000, &rests)).map_err(|error| error.code());
        assert_eq!(rests, Err("ERR_WITHDRAWN"), "{first}");
        place.verify();
    }
}

#[test]
fn no_earlier_supersession_in_a_file_undoes_a_withdrawal_or_cuts_one_off() {
    for by in [HOST, STRANGER] {
        let (place, _) = place();
        let (grant, rests) = granted(&place);
        place.session.put(withdrawal(3000, &grant)).unwrap();
        let justified =
            format!(r#", "derived_from": ["{grant}"], "supersession_justification": "so it was""#);
        let renewed = consent(2500, &justified);
        let stated = [superseded(grant, address(&renewed), 2500)];
        imports(&place, by, &[blob(&renewed)], &stated);
        assert_eq!(shown(&place, &rests), Err("ERR_WITHDRAWN"), "{by}");
        // Of a grant that was renewed: its last version is ended.
        let (place, _) = self::place();
        let (grant, _) = granted(&place);
        let renewed = place.session.supersede(&grant, consent(2500, ""), Some("again")).unwrap();
        let rests = format!(r#", "processing_basis": "{renewed}""#);
        let rests = place.session.put(belief("milk", 2600, &rests)).unwrap().address();
        let taken = withdrawal(2400, &grant);
        imports(&place, by, &[blob(&taken)], &[superseded(grant, address(&taken), 2400)]);
        assert_eq!(shown(&place, &rests), Err("ERR_WITHDRAWN"), "{by}");
        assert_eq!(place.state(&renewed).superseded_by, Some(address(&taken)), "{by}");
        place.verify();
    }
}

#[test]
fn what_an_erased_version_hides_is_withdrawn_and_granted_anew_by_its_subject() {
    let (place, _) = place();
    let (grant, rests) = granted(&place);
    let user = r#", "user_id": "mallory""#;
    let named = format!(r#", "is_withdrawal": true, "prior_consent": "{grant}"{user}"#);
    acting(&place.store, STRANGER).put(consent(3000, &named)).unwrap();
    place.session.erase_user("mallory", "asked", &grainstore::EraseOptions::new()).unwrap();
    assert_eq!(shown(&place, &rests), Err("ERR_WITHDRAWN"));
    let taken = place.session.put(withdrawal(4000, &grant)).unwrap().address();
    assert_eq!(shown(&place, &rests), Err("ERR_WITHDRAWN"));
    place.session.supersede(&taken, consent(5000, ""), Some("she said so")).unwrap();
    assert_eq!(shown(&place, &rests), Ok(()));
    place.verify();
}

#[test]
fn no_mark_on_a_withdrawal_puts_off_what_it_erases() {
    type Mark = fn(&Session, &ContentAddress) -> grainstore::Result<()>;
    let ways: [Mark; 3] = [
        |session, at| session.contradict(at, "so", None),
        |session, at| session.set_verification(at, VerificationStatus::Contested, "so", None),
        |session, at| session.set_verification(at, VerificationStatus::Retracted, "so", None),
    ];
    for mark in ways {
        let (place, _) = place();
        let grant = place.session.put(consent(1000, "")).unwrap().address();
        let rests = cascades(&grant);
        place.session.put(belief("tea", 2000, &rests)).unwrap();
        let taken = place.session.put(withdrawal(3000, &grant)).unwrap().address();
        let _ = mark(&acting(&place.store, STRANGER), &taken);
        assert!(!place.state(&taken).needs_review);
        assert_eq!(place.session.sweep().unwrap().erased, 1);
    }
}

#[test]
fn no_grant_comes_in_the_place_of_several_and_no_chain_runs_in_a_circle() {
    let (place, _) = place();
    let stranger = acting(&place.store, STRANGER);
    let (grant, rests) = granted(&place);
    let open = r#", "invalidation_policy": {"mode": "open"}"#;
    let own = stranger.put(consent(500, open)).unwrap().address();
    let parents = |of: &[ContentAddress]| {
        let of: Vec<_> = of.iter().map(|one| format!("\"{one}\"")).collect();
        format!(r#", "derived_from": [{}]"#, of.join(","))
    };
    let taken =
        format!(r#", "is_withdrawal": true, "prior_consent": "{grant}"{}"#, parents(&[own]));
    let taken = consent(3000, &taken);
    let refused = stranger.supersede(&own, taken.clone(), Some("why")).unwrap_err();
    assert_eq!(refused.code(), "ERR_INVALIDATION_DENIED");
    let taken = place.session.supersede(&own, taken, Some("why")).unwrap();
    let both = consent(4000, &parents(&[taken, grant]));
    let refused = stranger.supersede(&taken, both.clone(), Some("why")).unwrap_err();
    assert_eq!(refused.code(), "ERR_INVALIDATION_DENIED");
    // The operator may, and the withdrawal then cannot end what replaced it.
    let both = place.session.supersede(&taken, both, Some("why")).unwrap();
    let both = place.session.get(&both).unwrap();
    let blob = both.blob;
    place.session.supersede(&grant, Offer::Blob(blob), Some("why")).unwrap();
    let again = place.session.get(&taken).unwrap().blob;
    place.session.put(Offer::Blob(again)).unwrap();
    assert_eq!(place.state(&both.address).superseded_by, None);
    assert_eq!(shown(&place, &rests), Ok(()));
    place.session.sweep().unwrap();
    place.verify();
}

#[test]
fn a_withdrawal_that_lay_without_effect_hastens_nothing_when_it_has_one() {
    let (place, clock) = place();
    let stranger = acting(&place.store, STRANGER);
    let grant = place.session.put(consent(1000, r#", "user_id": "ann""#)).unwrap().address();
    let rests = cascades(&grant);
    place.session.put(belief("tea", 2000, &rests)).unwrap();
    stranger.contradict(&grant, "so", None).unwrap();
    // Who puts it first does not see the grant.
    let bob = place.store.session(SessionOptions {
        user_id: Some("bob".to_owned()),
        actor: Some(STRANGER.to_owned()),
        ..SessionOptions::default()
    });
    let named = format!(r#", "is_withdrawal": true, "prior_consent": "{grant}", "user_id": "bob""#);
    let taken = consent(3000, &named);
    bob.put(taken.clone()).unwrap();
    assert_eq!(place.state(&grant).superseded_by, None);
    clock.set(EpochMs::new(NOW + 30 * DAY));
    stranger.put(taken.clone()).unwrap();
    assert_eq!(place.state(&grant).superseded_by, Some(address(&taken)));
    assert_eq!(place.session.sweep().unwrap().erased, 0);
    clock.set(EpochMs::new(NOW + 59 * DAY));
    assert_eq!(place.session.sweep().unwrap().erased, 1);
}

#[test]
fn whoever_is_erased_takes_no_due_erasure_along_and_opens_no_withdrawal_to_others() {
    let (place, _) = place();
    let grant = place.session.put(consent(1000, "")).unwrap().address();
    let rests = cascades(&grant);
    let rests = place.session.put(belief("tea", 2000, &rests)).unwrap().address();
    let renewed = consent(2500, r#", "user_id": "mallory""#);
    place.session.supersede(&grant, renewed, Some("again")).unwrap();
    place.session.hold(&rests, "asked").unwrap();
    place.session.put(withdrawal(3000, &grant)).unwrap();
    place.session.erase_user("mallory", "asked", &grainstore::EraseOptions::new()).unwrap();
    // A third party takes the place of nothing that was erased.
    let stranger = acting(&place.store, STRANGER);
    let fresh = stranger.put(withdrawal(4000, &grant)).unwrap().address();
    let _ = stranger.supersede(&fresh, consent(5000, ""), Some("why"));
    assert_eq!(shown(&place, &rests), Err("ERR_WITHDRAWN"));
    place.session.lift_hold(&rests, "over", None).unwrap();
    assert_eq!(place.session.sweep().unwrap().erased, 1);
    place.verify();
}

#[test]
fn the_audit_log_leads_over_versions_that_were_erased() {
    let (place, _) = place();
    let grant = place.session.put(consent(1000, "")).unwrap().address();
    let rests = place.session.put(belief("tea", 2000, &cascades(&grant))).unwrap().address();
    let (mut last, mut versions) = (grant, Vec::new());
    for at in [2500, 2600, 2700] {
        let renewed = consent(at, r#", "user_id": "mallory""#);
        last = place.session.supersede(&last, renewed, Some("again")).unwrap();
        versions.push(last);
    }
    place.session.hold(&rests, "asked").unwrap();
    // A withdrawal between others that names a version stands for nothing.
    let stray = grain(&format!(
        r#""type": "consent", "subject_did": "did:web:eve", "grantee_did": "did:web:eve2",
           "scope": ["store"], "created_at": 2800, "is_withdrawal": true, "prior_consent": "{}",
           "user_id": "eve""#,
        ContentAddress::of(b"to come")
    ));
    acting(&place.store, "did:web:eve").put(stray).unwrap();
    place.session.put(withdrawal(3000, &versions[2])).unwrap();
    place.session.erase_user("mallory", "asked", &grainstore::EraseOptions::new()).unwrap();
    assert_eq!(shown(&place, &rests), Err("ERR_WITHDRAWN"));
    place.session.lift_hold(&rests, "over", None).unwrap();
    assert_eq!(place.session.sweep().unwrap().erased, 1);
    place.verify();
}

#[test]
fn what_was_granted_anew_over_an_erased_version_is_not_swept() {
    let (place, _) = place();
    let grant = place.session.put(consent(1000, "")).unwrap().address();
    let rests = cascades(&grant);
    let rests = place.session.put(belief("tea", 2000, &rests)).unwrap().address();
    let renewed = consent(2500, r#", "user_id": "mallory""#);
    acting(&place.store, STRANGER).supersede(&grant, renewed, Some("again")).unwrap();
    place.session.erase_user("mallory", "asked", &grainstore::EraseOptions::new()).unwrap();
    // Only the subject and the operator take the place of what was erased.
    let by_grantee = acting(&place.store, "did:web:shop").put(withdrawal(2900, &grant)).unwrap();
    assert_ne!(place.state(&grant).superseded_by, Some(by_grantee.address()));
    let taken = place.session.put(withdrawal(3000, &grant)).unwrap().address();
    place.session.supersede(&taken, consent(4000, ""), Some("she said so")).unwrap();
    assert_eq!(place.session.sweep().unwrap().erased, 0);
    assert_eq!(shown(&place, &rests), Ok(()));
    place.verify();
}

/// A session that withdraws or grants as the subject of the consent.
fn subject(place: &Place) -> Session {
    acting(&place.store, "did:web:ann")
}

#[test]
fn a_withdrawal_that_changed_nothing_ends_no_grant_given_since() {
    let (place, clock) = place();
    let grant = place.session.put(consent(1000, "")).unwrap().address();
    let taken = subject(&place).put(withdrawal(3000, &grant)).unwrap().address();
    let second = withdrawal(3500, &grant);
    subject(&place).put(second.clone()).unwrap();
    let anew = subject(&place).supersede(&taken, consent(4000, ""), Some("she agreed again"));
    let anew = anew.unwrap();
    let rests = place.session.put(belief("tea", 4500, &cascades(&grant))).unwrap().address();
    let (export, _) = place.export("all.mg", Compression::None);
    acting(&place.store, STRANGER).put(second.clone()).unwrap();
    imports(&place, STRANGER, &[blob(&second)], &[]);
    subject(&place).put(second.clone()).unwrap();
    imports(&place, HOST, &[blob(&second)], &[]);
    place.session.import([&export], &ImportOptions::default()).unwrap();
    assert!(place.state(&anew).is_current());
    // Elsewhere, too, where all of it comes at once.
    let (other, _) = self::place();
    other.session.import([&export], &ImportOptions::default()).unwrap();
    for place in [&place, &other] {
        assert_eq!(place.session.sweep().unwrap().erased, 0);
        assert_eq!(shown(place, &rests), Ok(()));
        place.verify();
    }
    // A fresh one is another matter.
    subject(&place).put(withdrawal(5000, &grant)).unwrap();
    clock.set(EpochMs::new(NOW + 1));
    assert_eq!(place.session.sweep().unwrap().erased, 1);
}

#[test]
fn a_withdrawal_without_effect_stands_in_the_way_of_no_other() {
    let (place, _) = place();
    let granted = consent(1000, "");
    let to_come = address(&granted);
    // A stranger's withdrawal of what is to come replaces another consent between the two.
    let stranger = acting(&place.store, STRANGER);
    let other = stranger.put(consent(500, "")).unwrap().address();
    let named = format!(r#", "is_withdrawal": true, "prior_consent": "{to_come}""#);
    let shadow = consent(600, &format!(r#"{named}, "derived_from": ["{other}"]"#));
    stranger.supersede(&other, shadow, Some("why")).unwrap();
    let taken = subject(&place).put(withdrawal(3000, &to_come)).unwrap().address();
    place.session.put(granted).unwrap();
    assert_eq!(place.state(&to_come).superseded_by, Some(taken));
}

#[test]
fn what_was_granted_anew_in_time_is_kept_where_the_operator_imports_it() {
    let (place, clock) = place();
    let grant = place.session.put(consent(1000, "")).unwrap().address();
    let rests = place.session.put(belief("tea", 2000, &cascades(&grant))).unwrap().address();
    let taken = acting(&place.store, STRANGER).put(withdrawal(3000, &grant)).unwrap().address();
    subject(&place).supersede(&taken, consent(4000, ""), Some("she agreed again")).unwrap();
    let (export, _) = place.export("all.mg", Compression::None);
    let (other, others_clock) = self::place();
    other.session.import([&export], &ImportOptions::default()).unwrap();
    for (place, clock) in [(&place, &clock), (&other, &others_clock)] {
        clock.set(EpochMs::new(NOW + 40 * DAY));
        assert_eq!(place.session.sweep().unwrap().erased, 0);
        assert_eq!(shown(place, &rests), Ok(()));
        place.verify();
    }
}

#[test]
fn the_audit_log_leads_over_erased_versions_of_an_imported_consent() {
    let (place, _) = place();
    let grant = consent(1000, "");
    let parent = format!(r#", "user_id": "mallory", "derived_from": ["{}"]"#, address(&grant));
    let (renewed, taken) = (consent(2500, &parent), withdrawal(3000, &address(&grant)));
    let rests = belief("tea", 2000, &cascades(&address(&grant)));
    let entries = [&grant, &renewed, &taken, &rests].map(blob);
    let stated = [
        superseded(address(&grant), address(&renewed), 2500),
        superseded(address(&renewed), address(&taken), 3000),
    ];
    imports(&place, HOST, &entries, &stated);
    place.verify();
    place.session.hold(&address(&rests), "asked").unwrap();
    place.session.erase_user("mallory", "asked", &grainstore::EraseOptions::new()).unwrap();
    place.session.lift_hold(&address(&rests), "over", None).unwrap();
    assert_eq!(place.session.sweep().unwrap().erased, 1);
    assert_eq!(shown(&place, &address(&rests)), Err("ERR_ERASED"));
    place.verify();
}

#[test]
fn no_file_marks_a_withdrawal_that_its_subject_signed() {
    let (place, _) = place();
    let parties = format!(
        r#""type": "consent", "subject_did": "{}", "grantee_did": "did:web:shop", "scope": ["store"]"#,
        key(7).did()
    );
    let grant = grain(&format!(r#"{parties}, "is_withdrawal": false, "created_at": 1000"#));
    let grant = place.session.put(grant).unwrap().address();
    let rests = place.session.put(belief("tea", 2000, &cascades(&grant))).unwrap().address();
    let taken = format!(r#""is_withdrawal": true, "prior_consent": "{grant}", "created_at": 3000"#);
    let (envelope, of) = signed(&grain(&format!("{parties}, {taken}")), 7);
    let marked = GrainState { needs_review: true, ..GrainState::default() };
    imports(&place, STRANGER, &[envelope], &[state(of, marked)]);
    assert!(!place.state(&of).needs_review);
    assert_eq!(shown(&place, &rests), Err("ERR_WITHDRAWN"));
    assert_eq!(place.session.sweep().unwrap().erased, 1);
}

#[test]
fn a_grant_that_its_subject_signed_counts_whoever_imports_it() {
    let (place, _) = place();
    let parties = format!(
        r#""type": "consent", "subject_did": "{}", "grantee_did": "did:web:shop", "scope": ["store"]"#,
        key(7).did()
    );
    let stranger = acting(&place.store, STRANGER);
    let granted = grain(&format!(r#"{parties}, "is_withdrawal": false, "created_at": 1000"#));
    let grant = stranger.put(granted).unwrap().address();
    let named = format!(r#"{parties}, "is_withdrawal": true, "prior_consent": "{grant}""#);
    let by_stranger = grain(&format!(r#"{named}, "created_at": 3000"#));
    let by_stranger = stranger.put(by_stranger).unwrap().address();
    let (second, _) = signed(&grain(&format!(r#"{named}, "created_at": 3500"#)), 7);
    stranger.put(Offer::Signed(second)).unwrap();
    let anew = format!(
        r#"{parties}, "is_withdrawal": false, "created_at": 4000, "derived_from": ["{by_stranger}"],
           "supersession_justification": "she agreed again""#
    );
    let (anew, of) = signed(&grain(&anew), 7);
    stranger.supersede(&by_stranger, Offer::Signed(anew), None).unwrap();
    assert!(place.state(&of).is_current());
    let (export, _) = place.export("all.mg", Compression::None);
    let (other, _) = self::place();
    acting(&other.store, STRANGER).import([&export], &ImportOptions::default()).unwrap();
    assert!(other.state(&of).is_current());
    other.verify();
}

#[test]
fn a_withdrawal_that_derives_from_a_grant_to_come_is_protected_by_it() {
    let (place, _) = place();
    let granted = consent(1000, "");
    let of = address(&granted);
    let named = format!(r#", "is_withdrawal": true, "prior_consent": "{of}""#);
    let taken = consent(3000, &format!(r#"{named}, "derived_from": ["{of}"]"#));
    place.session.put(taken.clone()).unwrap();
    place.session.put(granted.clone()).unwrap();
    place.verify();
    let (other, _) = self::place();
    imports(&other, STRANGER, &[blob(&granted), blob(&taken)], &[]);
    other.verify();
}
