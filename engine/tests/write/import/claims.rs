//! What a file says of grains that are here already: judged by the policies, never by the file.

use grainstore::format::Value;
use grainstore::format::cose::{proof, sign_detached};
use grainstore::{
    ConflictSubject, ContentAddress, Grain, GrainState, ImportReport, VerificationStatus,
};

use crate::import::kit::{
    Place, about, address, belief, blob, child, counts, grain, key, policy, signed, state,
    superseded,
};

fn pair(operation: &str, decision: &str) -> (String, String) {
    (operation.to_owned(), decision.to_owned())
}

/// A grain that two keys have signed for as the successor of its parent.
fn cosigned(old: &Grain, seeds: &[u8]) -> Grain {
    let new = child(&[address(old)], "cosigned", 2000, "");
    let message = proof::supersede_message(&address(old), &blob(&new));
    let auth = seeds.iter().map(|seed| Value::Bytes(sign_detached(&message, &key(*seed)).unwrap()));
    let mut fields = new.fields().clone();
    fields.insert("supersession_auth".to_owned(), Value::Array(auth.collect()));
    Grain::from_fields(fields).unwrap()
}

#[test]
fn a_supersession_applies_where_the_call_would() {
    let (one, two) = (key(1).did().to_string(), key(2).did().to_string());
    let quorum = format!(r#""mode": "quorum", "threshold": 2, "authorized": ["{one}", "{two}"]"#);
    let delegated = format!(r#""mode": "delegated", "authorized": ["{one}"]"#);
    let why = r#", "supersession_justification": "told so""#;
    /// What stands in the file.
    enum New {
        Plain(&'static str),
        Signed(u8),
        Cosigned(&'static [u8]),
    }
    use New::{Cosigned, Plain, Signed};
    for (mode, new, applies, review) in [
        (r#""mode": "open""#, Plain(""), true, false),
        (r#""mode": "locked""#, Plain(why), false, false),
        (r#""mode": "soft_locked""#, Plain(""), false, false),
        (r#""mode": "soft_locked""#, Plain(why), true, true),
        (r#""mode": "hold""#, Plain(why), false, false),
        (r#""mode": "timed", "locked_until": 4000000000"#, Plain(why), false, false),
        (r#""mode": "no such mode""#, Plain(why), false, false),
        (&delegated, Plain(why), false, false),
        (&delegated, Signed(1), true, false),
        (&delegated, Signed(2), false, false),
        (&quorum, Cosigned(&[1]), false, false),
        (&quorum, Cosigned(&[1, 1]), false, false),
        (&quorum, Cosigned(&[1, 2]), true, false),
    ] {
        let place = Place::new();
        let old = belief("tea", 1000, &policy(mode));
        let at = place.session.put(old.clone()).unwrap().address();
        let (entry, by) = match new {
            Plain(more) => {
                let new = child(&[at], "coffee", 2000, more);
                (blob(&new), address(&new))
            }
            Signed(seed) => signed(&child(&[at], "coffee", 2000, ""), seed),
            Cosigned(seeds) => {
                let new = cosigned(&old, seeds);
                (blob(&new), address(&new))
            }
        };
        let entries = [blob(&old), entry];
        let imported = place.import(&entries, &[superseded(at, by, 5000)]).unwrap();
        let state = place.state(&at);
        if applies {
            assert_eq!(counts(&imported), (1, 1, 0, 0), "{mode}: {:?}", imported.conflicts);
            assert_eq!(state.superseded_by, Some(by), "{mode}");
            assert_eq!(state.system_valid_to.map(grainstore::EpochMs::get), Some(5000));
            assert_eq!(place.state(&by).needs_review, review, "{mode}");
            assert_eq!(place.audit(2), [pair("import", "done"), pair("supersede", "done")]);
        } else {
            assert_eq!(counts(&imported), (0, 1, 1, 2), "{mode}: {:?}", imported.conflicts);
            assert_eq!(imported.conflicts[0].about, ConflictSubject::Supersession);
            assert!(state.is_current() && !place.session.exists(&by).unwrap(), "{mode}");
            assert_eq!(place.audit(2), [pair("import", "done"), pair("supersede", "refused")]);
        }
        place.verify();
        // The same once more changes nothing.
        place.import(&entries, &[superseded(at, by, 5000)]).unwrap();
        assert_eq!(place.state(&at), state);
        place.verify();
    }
}

#[test]
fn an_ancestor_refuses_a_claim_wherever_it_comes_from() {
    let lock = policy(r#""mode": "locked", "scope": "subtree""#);
    let root = belief("root", 90_000, &lock);
    let old = about("bob", &child(&[address(&root)], "old", 1000, ""));
    let new = about("bob", &child(&[address(&old)], "new", 2000, ""));
    let stated = [superseded(address(&old), address(&new), 5000)];
    for root_is_here in [true, false] {
        let place = Place::new();
        if root_is_here {
            place.session.put(root.clone()).unwrap();
        }
        place.session.put(old.clone()).unwrap();
        // The root comes last in the file, and after what it protects.
        let entries = [blob(&old), blob(&new), blob(&root)];
        let imported = place.import(&entries, &stated).unwrap();
        assert_eq!(imported.refused, 1, "{:?}", imported.conflicts);
        assert!(place.state(&address(&old)).is_current());
        place.verify();
    }
}

#[test]
fn a_claim_that_names_what_is_nowhere_or_no_successor_stays_a_claim() {
    let place = Place::new();
    let at = place.session.put(belief("tea", 1000, "")).unwrap().address();
    let nowhere = ContentAddress::of(b"nowhere");
    let imported = place.import(&[], &[superseded(at, nowhere, 5000)]).unwrap();
    assert_eq!(counts(&imported), (0, 0, 0, 1));
    let stranger = belief("stranger", 2000, "");
    let imported = place.import(&[blob(&stranger)], &[superseded(at, address(&stranger), 5000)]);
    assert_eq!(counts(&imported.unwrap()), (1, 0, 0, 1));
    assert!(place.state(&at).is_current() && place.state(&address(&stranger)).needs_review);
    place.verify();
}

#[test]
fn the_earlier_supersession_stays_and_the_other_is_told() {
    for (stated_at, takes) in [(500_000, true), (4_000_000_000_000, false)] {
        let place = Place::new();
        let old = place.session.put(belief("tea", 1000, "")).unwrap().address();
        let here = place.session.supersede(&old, belief("coffee", 2000, ""), None).unwrap();
        let there = child(&[old], "water", 3000, "");
        let imported =
            place.import(&[blob(&there)], &[superseded(old, address(&there), stated_at)]).unwrap();
        assert_eq!(counts(&imported), (1, 0, 0, 1), "{:?}", imported.conflicts);
        let (wins, loses) = if takes { (address(&there), here) } else { (here, address(&there)) };
        assert_eq!(place.state(&old).superseded_by, Some(wins));
        assert!(place.state(&loses).needs_review && place.state(&loses).is_current());
        assert!(!place.state(&wins).needs_review);
        place.verify();
    }
    // Where the grain is protected, the one that lost is left out.
    let place = Place::new();
    let old = belief("tea", 1000, &policy(r#""mode": "soft_locked""#));
    let old = place.session.put(old).unwrap().address();
    place.session.supersede(&old, belief("coffee", 2000, ""), Some("so")).unwrap();
    let there = child(&[old], "water", 3000, r#", "supersession_justification": "so""#);
    let stated = [superseded(old, address(&there), 4_000_000_000_000)];
    assert_eq!(counts(&place.import(&[blob(&there)], &stated).unwrap()), (0, 0, 1, 2));
}

#[test]
fn what_lost_its_place_to_an_earlier_supersession_is_replaced_without_what_it_replaced() {
    let place = Place::new();
    let old = place.session.put(belief("tea", 1000, "")).unwrap().address();
    let lost = place.session.supersede(&old, belief("coffee", 2000, ""), None).unwrap();
    let earlier = child(&[old], "water", 3000, "");
    place.import(&[blob(&earlier)], &[superseded(old, address(&earlier), 500_000)]).unwrap();
    // The older grain has another successor now, so that to name it beside the one that lost would replace it
    // a second time.
    let both = child(&[old, lost], "juice", 4000, "");
    let refused = place.session.supersede(&lost, both, None).unwrap_err();
    assert_eq!(refused.code(), "ERR_SUPERSEDE_REQUIRED");
    place.session.supersede(&lost, child(&[lost], "juice", 4000, ""), None).unwrap();
    let both = child(&[old, address(&earlier)], "milk", 5000, "");
    place.session.supersede(&address(&earlier), both, None).unwrap();
    place.verify();
}

#[test]
fn a_hold_that_was_lifted_protects_nothing_from_a_claim() {
    let place = Place::new();
    let old = belief("tea", 1000, &policy(r#""mode": "hold""#));
    let old = place.session.put(old).unwrap().address();
    place.session.lift_hold(&old, "settled", None).unwrap();
    let here = place.session.supersede(&old, belief("coffee", 2000, ""), None).unwrap();
    let there = child(&[old], "water", 3000, "");
    let stated = [superseded(old, address(&there), 4_000_000_000_000)];
    let imported = place.import(&[blob(&there)], &stated).unwrap();
    // As where there is no policy: it comes, and is to be reviewed.
    assert_eq!(counts(&imported), (1, 0, 0, 1), "{:?}", imported.conflicts);
    assert_eq!(place.state(&old).superseded_by, Some(here));
    assert!(place.state(&address(&there)).needs_review);
    place.verify();
}

#[test]
fn of_two_statuses_the_worse_stays_and_policies_are_asked() {
    use VerificationStatus::{Contested, Retracted, Unverified, Verified};
    let open = "";
    let locked = policy(r#""mode": "locked""#);
    for (mode, own, stated, expected, conflicts) in [
        (open, Unverified, Verified, Verified, 0),
        (open, Unverified, Contested, Contested, 0),
        (open, Unverified, Retracted, Retracted, 0),
        (open, Verified, Contested, Contested, 0),
        (open, Verified, Unverified, Verified, 0),
        (open, Contested, Verified, Contested, 1),
        (open, Retracted, Verified, Retracted, 1),
        (open, Retracted, Unverified, Retracted, 0),
        (&locked, Unverified, Contested, Unverified, 1),
        (&locked, Unverified, Retracted, Unverified, 1),
        (&locked, Unverified, Verified, Verified, 0),
    ] {
        let place = Place::new();
        let at = place.session.put(belief("tea", 1000, mode)).unwrap().address();
        if own != Unverified {
            place.session.set_verification(&at, own, "looked", None).unwrap();
        }
        let says = GrainState { verification_status: stated, ..GrainState::default() };
        let imported = place.import(&[], &[state(at, says)]).unwrap();
        let found = (place.state(&at).verification_status, imported.conflict_count);
        assert_eq!(found, (expected, conflicts), "{own:?} here, {stated:?} in the file");
        assert_eq!(place.state(&at).system_valid_to.is_some(), expected == Retracted);
        place.verify();
    }
}

#[test]
fn contradiction_is_asked_for_and_holds_and_reviews_are_only_ever_set() {
    let contradicted = GrainState { contradicted: true, ..GrainState::default() };
    for (mode, applies) in [(String::new(), true), (policy(r#""mode": "locked""#), false)] {
        let place = Place::new();
        let at = place.session.put(belief("tea", 1000, &mode)).unwrap().address();
        let imported = place.import(&[], &[state(at, contradicted)]).unwrap();
        assert_eq!(place.state(&at).contradicted, applies);
        assert_eq!(imported.conflict_count, u64::from(!applies));
        place.verify();
    }
    let place = Place::new();
    let tea = belief("tea", 1000, "");
    let at = place.session.put(tea.clone()).unwrap().address();
    let marked = GrainState { held: true, needs_review: true, ..GrainState::default() };
    place.import(&[], &[state(at, marked)]).unwrap();
    assert_eq!(place.state(&at), marked);
    let imported = place.import(&[blob(&tea)], &[state(at, GrainState::default())]).unwrap();
    assert_eq!((counts(&imported), place.state(&at)), ((0, 1, 0, 0), marked), "nothing is lifted");
    place.verify();
}

/// That no chain of these grains runs in a circle, and so many conflicts were told.
fn assert_straight(
    place: &Place,
    grains: &[ContentAddress],
    imported: &ImportReport,
    circles: u64,
) {
    assert_eq!(imported.conflict_count, circles, "{:?}", imported.conflicts);
    for grain in grains {
        assert!(!place.session.history(grain).unwrap().is_empty());
    }
    let ends = grains.iter().filter(|grain| place.state(grain).is_current());
    for end in ends {
        assert!(place.state(end).needs_review, "{end}");
    }
    place.verify();
}

#[test]
fn supersessions_that_a_file_states_in_a_circle_are_broken_and_told() {
    for length in [1, 2, 3, 300_i64] {
        // None of them names another, so that all of it is the word of the file.
        let grains: Vec<_> = (0..length).map(|n| belief(&format!("{n}"), 1000 + n, "")).collect();
        let addresses: Vec<_> = grains.iter().map(address).collect();
        let next = addresses.iter().cycle().skip(1);
        let stated: Vec<_> =
            addresses.iter().zip(next).map(|(old, by)| superseded(*old, *by, 9000)).collect();
        let entries: Vec<_> = grains.iter().map(blob).collect();
        let place = Place::new();
        let imported = place.import(&entries, &stated).unwrap();
        assert_straight(&place, &addresses, &imported, 1);
        let ends = addresses.iter().filter(|grain| place.state(grain).is_current());
        assert_eq!(ends.count(), 1, "{length}");
        // What was broken stays broken, and a later file closes it no more than the first.
        let imported = place.import(&entries, &stated).unwrap();
        assert_straight(&place, &addresses, &imported, 1);
    }
}

#[test]
fn a_circle_that_two_files_close_is_broken_where_the_grains_do_not_bear_it_out() {
    let first = belief("first", 1000, "");
    let second = child(&[address(&first)], "second", 2000, "");
    let third = child(&[address(&second)], "third", 3000, "");
    let all = [&first, &second, &third].map(address);
    let back = superseded(all[2], all[0], 9000);
    let on = [superseded(all[0], all[1], 2000), superseded(all[1], all[2], 3000)];
    let blobs = [&first, &second, &third].map(blob);
    // The last says that the first, which is not here yet, took its place.
    for (here, comes) in [(&blobs[2..], &blobs[..2]), (&blobs[1..], &blobs[..1])] {
        let place = Place::new();
        place.import(here, &[back.clone(), on[1].clone()]).unwrap();
        let imported = place.import(comes, &on).unwrap();
        assert_straight(&place, &all, &imported, 1);
        assert!(place.state(&all[2]).is_current(), "nothing bears out that it was replaced");
        assert_eq!(place.state(&all[0]).superseded_by, Some(all[1]));
    }
    // The first came by put, and its supersession is a claim.
    let place = Place::new();
    place.import(&blobs[1..], &[back.clone(), on[1].clone()]).unwrap();
    place.session.put(first).unwrap();
    let imported = place.import(&[], &on[..1]).unwrap();
    assert_straight(&place, &all, &imported, 1);
}

#[test]
fn a_supersession_that_asks_for_review_marks_a_successor_that_was_here_before() {
    let place = Place::new();
    let old = belief("tea", 1000, &policy(r#""mode": "soft_locked""#));
    let at = place.session.put(old.clone()).unwrap().address();
    let why = r#", "supersession_justification": "told so""#;
    let new = about("bob", &child(&[at], "coffee", 2000, why));
    assert_eq!(counts(&place.import(&[blob(&new)], &[]).unwrap()), (1, 0, 0, 0));
    assert!(!place.state(&address(&new)).needs_review);
    let imported = place.import(&[], &[superseded(at, address(&new), 5000)]).unwrap();
    assert_eq!(counts(&imported), (0, 0, 0, 0), "{:?}", imported.conflicts);
    assert_eq!(place.state(&at).superseded_by, Some(address(&new)));
    assert!(place.state(&address(&new)).needs_review, "as the call would have marked it");
    place.verify();
}

#[test]
fn a_limited_session_names_no_successor_it_does_not_see_and_learns_nothing_of_it() {
    let own = r#", "namespace": "acme""#;
    let old = belief("tea", 1000, own);
    let at = address(&old);
    let successors = [
        child(&[at], "coffee", 2000, r#", "namespace": "secret""#),
        grain(
            r#""type": "goal", "description": "a", "goal_state": "active", "created_at": 5,
            "namespace": "secret""#,
        ),
    ];
    let told = |hidden: Option<&Grain>, by| {
        let place = Place::new();
        place.session.put(old.clone()).unwrap();
        if let Some(hidden) = hidden {
            place.session.put(hidden.clone()).unwrap();
        }
        let file = place.file("in.mg", &[blob(&old)], &[superseded(at, by, 5000)]);
        let imported = place.within("acme").import([file], &Default::default()).unwrap();
        assert!(place.state(&at).is_current());
        format!("{:?}", imported.conflicts).replace(&by.to_string(), "BY")
    };
    let absent = told(None, address(&successors[0]));
    for hidden in &successors {
        assert_eq!(told(Some(hidden), address(hidden)), absent);
    }
}

#[test]
fn a_hidden_successor_that_loses_to_an_earlier_one_is_not_marked() {
    let own = r#", "namespace": "acme""#;
    let place = Place::new();
    let old = belief("tea", 1000, own);
    let at = place.session.put(old.clone()).unwrap().address();
    let hidden = child(&[at], "coffee", 2000, r#", "namespace": "secret""#);
    let by = place.session.supersede(&at, hidden, None).unwrap();
    let mine = child(&[at], "milk", 1500, own);
    let claim = superseded(at, address(&mine), 1600);
    let file = place.file("in.mg", &[blob(&mine)], &[claim]);
    place.within("acme").import([file], &Default::default()).unwrap();
    assert!(!place.state(&by).needs_review, "it is not theirs to mark");
    place.verify();
}

#[test]
fn an_earlier_supersession_asks_the_versions_it_would_displace() {
    let quorum = r#""mode": "quorum", "authorized": ["did:web:a"], "threshold": 1"#;
    for terms in [r#""mode": "locked""#, r#""mode": "hold""#, quorum] {
        for scope in ["grain", "lineage"] {
            let place = Place::new();
            let old = place.session.put(belief("tea", 1000, "")).unwrap().address();
            let more = policy(&format!(r#"{terms}, "scope": "{scope}""#));
            let kept = place.session.supersede(&old, belief("coffee", 3000, &more), None).unwrap();
            let earlier = child(&[old], "milk", 2000, "");
            let stated = [superseded(old, address(&earlier), 2000)];
            let imported = place.import(&[blob(&earlier)], &stated).unwrap();
            assert_eq!(imported.conflict_count, 1, "{terms} {scope}");
            assert_eq!(place.state(&old).superseded_by, Some(kept), "{terms} {scope}");
            place.verify();
        }
    }
}
