//! A grain of a file that claims nothing, and would replace another all the same (ruling 37): what `put`
//! refuses, an import leaves out where the other is protected, and marks for review where it is not.

use grainstore::{ConflictSubject, ContentAddress, Grain, GrainState};

use crate::import::kit::{
    Place, about, address, belief, blob, child, counts, grain, key, policy, signed, state,
    superseded,
};

/// Policies, each with whether it protects.
fn policies() -> Vec<(String, bool)> {
    let did = key(1).did().to_string();
    let mut all = Vec::new();
    for scope in ["grain", "lineage", "subtree"] {
        for (mode, protects) in [
            (r#""mode": "open""#.to_owned(), false),
            (r#""mode": "consent_cascade""#.to_owned(), false),
            (r#""mode": "soft_locked""#.to_owned(), true),
            (r#""mode": "locked""#.to_owned(), true),
            (format!(r#""mode": "quorum", "threshold": 1, "authorized": ["{did}"]"#), true),
            (format!(r#""mode": "delegated", "authorized": ["{did}"]"#), true),
            (r#""mode": "timed", "locked_until": 4000000000"#.to_owned(), true),
            (r#""mode": "timed", "locked_until": 1, "fallback_mode": "hold""#.to_owned(), true),
            (r#""mode": "hold""#.to_owned(), true),
            (r#""mode": "no such mode""#.to_owned(), true),
        ] {
            all.push((policy(&format!(r#"{mode}, "scope": "{scope}""#)), protects));
        }
    }
    all.push((String::new(), false));
    all
}

/// That a new head came in and waits for review, or was left out with an entry in the audit log.
fn check(place: &Place, old: &Grain, new: ContentAddress, out: bool, what: &str) {
    let at = address(old);
    assert!(place.state(&at).is_current(), "{what}");
    assert_eq!(place.session.exists(&new).unwrap(), !out, "{what}");
    let latest = place.session.latest("alice", "likes").unwrap();
    if out {
        assert_eq!(latest.map(|found| found.address), Some(at), "{what}");
        let told = place.session.audit(None, 100).unwrap();
        let entry = told.iter().rfind(|entry| entry.decision == "refused").unwrap();
        assert_eq!((entry.operation.as_str(), &*entry.subjects), ("supersede", &[at, new][..]));
        assert_eq!(entry.rules, ["disguised_supersession"], "{what}");
    } else {
        assert!(place.state(&new).needs_review, "{what}");
    }
    place.verify();
}

#[test]
fn a_grain_that_claims_nothing_replaces_none_that_is_protected_here() {
    for (policy, protects) in policies() {
        for is_signed in [false, true] {
            let place = Place::new();
            let old = belief("tea", 1000, &policy);
            let at = place.session.put(old.clone()).unwrap().address();
            let why = r#", "supersession_justification": "told so""#;
            let new = child(&[at], "coffee", 2000, why);
            let (entry, by) = match is_signed {
                true => signed(&new, 1),
                false => (blob(&new), address(&new)),
            };
            let imported = place.import(&[entry], &[]).unwrap();
            let refused = u64::from(protects);
            let told = (1 - refused, 0, refused, refused);
            assert_eq!(counts(&imported), told, "{policy}: {:?}", imported.conflicts);
            assert!(imported.conflicts.iter().all(|one| one.about == ConflictSubject::Grain));
            check(&place, &old, by, protects, &policy);
        }
    }
}

#[test]
fn what_is_left_out_again_and_again_is_counted_and_ends_stay_with_their_entries() {
    let place = Place::new();
    let locked = belief("tea", 1000, &policy(r#""mode": "locked""#));
    let at = place.session.put(locked).unwrap().address();
    let disguised = blob(&child(&[at], "coffee", 2000, ""));
    for round in 0..30 {
        // What else the file claims is done behind the refusal, and its entry is where its state says.
        let subject = format!("s{round}");
        let open = about(&subject, &belief("milk", 3000 + round, ""));
        let at = place.session.put(open.clone()).unwrap().address();
        let new = about(&subject, &child(&[at], "cream", 9000 + round, ""));
        let ends = superseded(at, address(&new), 9000 + round);
        let imported = place.import(&[disguised.clone(), blob(&new)], &[ends]).unwrap();
        assert_eq!(imported.refused, 1, "{:?}", imported.conflicts);
        assert_eq!(place.state(&at).superseded_by, Some(address(&new)));
    }
    let told = place.session.audit(None, 1000).unwrap();
    let refused = told.iter().filter(|entry| entry.decision == "refused").count();
    assert!((1..10).contains(&refused), "{refused}");
    place.verify();
}

#[test]
fn nor_one_that_comes_in_the_same_file_before_it_or_after_it() {
    for (policy, protects) in policies() {
        for new_at in [500, 2000] {
            let place = Place::new();
            let old = belief("tea", 1000, &policy);
            let new = child(&[address(&old)], "coffee", new_at, "");
            let imported = place.import(&[blob(&new), blob(&old)], &[]).unwrap();
            let refused = u64::from(protects);
            let told = (2 - refused, 0, refused, refused);
            assert_eq!(counts(&imported), told, "{policy}: {:?}", imported.conflicts);
            check(&place, &old, address(&new), protects, &policy);
        }
    }
}

#[test]
fn nor_one_that_is_held_by_a_call_or_by_the_file() {
    let held = GrainState { held: true, ..GrainState::default() };
    for by_file in [false, true] {
        let place = Place::new();
        let old = belief("tea", 1000, "");
        let new = child(&[address(&old)], "coffee", 2000, "");
        if by_file {
            let stated = [state(address(&old), held)];
            place.import(&[blob(&new), blob(&old)], &stated).unwrap();
        } else {
            place.session.put(old.clone()).unwrap();
            place.session.hold(&address(&old), "case 7").unwrap();
            place.import(&[blob(&new)], &[]).unwrap();
        }
        check(&place, &old, address(&new), true, "held");
    }
}

#[test]
fn a_chain_behind_one_that_is_left_out_is_left_out_with_it() {
    let place = Place::new();
    let old = belief("tea", 1000, &policy(r#""mode": "locked", "scope": "grain""#));
    place.session.put(old.clone()).unwrap();
    let one = child(&[address(&old)], "coffee", 2000, "");
    let two = child(&[address(&one)], "cocoa", 3000, "");
    let three = child(&[address(&two)], "water", 4000, "");
    let entries = [blob(&three), blob(&one), blob(&two)];
    let imported = place.import(&entries, &[]).unwrap();
    assert_eq!(counts(&imported), (0, 0, 3, 3), "{:?}", imported.conflicts);
    check(&place, &old, address(&three), true, "chain");
}

#[test]
fn what_derives_without_replacing_comes_in_as_before() {
    let place = Place::new();
    let old = belief("tea", 1000, &policy(r#""mode": "locked", "scope": "grain""#));
    place.session.put(old.clone()).unwrap();
    let parents = format!(r#", "derived_from": ["{}"]"#, address(&old));
    let note = grain(&format!(
        r#""type": "belief", "subject": "alice", "relation": "drinks", "object": "x",
           "confidence": 1, "created_at": 2000{parents}"#
    ));
    let imported = place.import(&[blob(&note)], &[]).unwrap();
    assert_eq!(counts(&imported), (1, 0, 0, 0), "{:?}", imported.conflicts);
    assert!(!place.state(&address(&note)).needs_review);
}

#[test]
fn a_new_grant_replaces_none_in_disguise_and_no_other_grain_withdraws_one() {
    let grant = |more: &str| {
        grain(&format!(
            r#""type": "consent", "subject_did": "did:key:z6MkA", "grantee_did": "did:key:z6MkB",
               "scope": ["recall"], "subject": "alice", "relation": "likes", "created_at": 1000{more}"#
        ))
    };
    let place = Place::new();
    let old = grant(r#", "is_withdrawal": false"#);
    let at = place.session.put(old.clone()).unwrap().address();
    let new = grant(&format!(r#", "is_withdrawal": false, "derived_from": ["{at}"]"#));
    assert_eq!(counts(&place.import(&[blob(&new)], &[]).unwrap()), (0, 0, 1, 1));
    check(&place, &old, address(&new), true, "a grant has the default policy of consents");
    let between = r#", "subject_did": "did:key:z6MkA", "grantee_did": "did:key:z6MkB""#;
    let ends = format!(r#", "is_withdrawal": true, "prior_consent": "{at}"{between}"#);
    let stranger = child(&[at], "coffee", 2000, &ends);
    let imported = place.import(&[blob(&stranger)], &[superseded(at, address(&stranger), 5000)]);
    assert_eq!(counts(&imported.unwrap()), (0, 0, 1, 2), "a belief withdraws nothing");
    assert_eq!(counts(&place.import(&[blob(&stranger)], &[]).unwrap()), (1, 0, 0, 0));
    assert!(place.state(&at).is_current());
    place.verify();
}
