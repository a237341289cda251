//! Grains that are new here: their state, what protects them, what is left out.

use grainstore::cal::{ExecuteOptions, Query};
use grainstore::format::container::{Compression, ManifestEntry};
use grainstore::format::{Encoding, Envelope, Value, decode_value, disclose, encode_value};
use grainstore::{
    ConflictSubject, ContentAddress, EpochMs, Grain, GrainState, ImportOptions, Offer, PageOptions,
    VerificationStatus,
};

use crate::import::kit::{
    Place, about, address, belief, blob, child, code, container, counts, grain, policy, signed,
    state, superseded,
};

#[test]
fn a_state_is_taken_as_it_is_stated() {
    let place = Place::new();
    let (old, other) = (belief("tea", 1000, ""), belief("coffee", 2000, ""));
    // Its successor is in neither file nor store, or no successor by its own words.
    for (n, by) in [ContentAddress::of(b"elsewhere"), address(&other)].into_iter().enumerate() {
        let old = belief(&format!("old {n}"), 1000, "");
        let stated = [superseded(address(&old), by, 5000)];
        let imported = place.import(&[blob(&old), blob(&other)], &stated).unwrap();
        assert_eq!(imported.conflict_count, 0);
        assert_eq!(place.state(&address(&old)), stated[0].1.state);
    }
    let all = GrainState {
        verification_status: VerificationStatus::Contested,
        contradicted: true,
        needs_review: true,
        held: true,
        ..GrainState::default()
    };
    let unknown = state(ContentAddress::of(b"neither"), all);
    let counted = ManifestEntry { state: all, access_count: 9, ..ManifestEntry::default() };
    place.import(&[blob(&old)], &[unknown, (address(&old), counted)]).unwrap();
    let stored = place.session.get(&address(&old)).unwrap();
    // What is contradicted has ended, now where it is not said when.
    let ended = stored.state.system_valid_to;
    assert!(ended.is_some_and(|ended| ended > EpochMs::new(1000)));
    let all = GrainState { system_valid_to: ended, ..all };
    assert_eq!((stored.state, stored.access.count), (all, 0), "counts of reads stay behind");
    assert_eq!(code(place.session.get(&ContentAddress::of(b"neither"))), "ERR_NOT_FOUND");
    place.verify();
}

#[test]
fn a_hold_of_a_policy_comes_with_the_grain_unless_it_was_lifted() {
    let place = Place::new();
    let held = belief("held", 1000, &policy(r#""mode": "hold""#));
    let lifted = belief("lifted", 1000, &policy(r#""mode": "hold""#));
    let says = ManifestEntry { hold_lifted: true, ..ManifestEntry::default() };
    place.import(&[blob(&held), blob(&lifted)], &[(address(&lifted), says.clone())]).unwrap();
    assert!(place.state(&address(&held)).held);
    assert!(!place.state(&address(&lifted)).held);
    // Here already: a file cannot lift it any more.
    place.import(&[blob(&held)], &[(address(&held), says)]).unwrap();
    assert!(place.state(&address(&held)).held);
}

#[test]
fn what_only_supersession_may_carry_and_a_disguise_come_in() {
    let place = Place::new();
    let old = place.session.put(belief("tea", 1000, "")).unwrap().address();
    let disguised = child(&[old], "coffee", 2000, r#", "supersession_justification": "so""#);
    assert_eq!(code(place.session.put(disguised.clone())), "ERR_SUPERSEDE_REQUIRED");
    let imported = place.import(&[blob(&disguised)], &[]).unwrap();
    assert_eq!(counts(&imported), (1, 0, 0, 0));
    assert!(place.state(&old).is_current() && place.state(&address(&disguised)).is_current());
    place.verify();
}

#[test]
fn protection_reaches_descendants_whatever_the_order_of_a_file() {
    // Twenty generations, the youngest created first.
    let root = belief("root", 90_000, &policy(r#""mode": "locked", "scope": "subtree""#));
    let mut line = vec![root];
    for n in 1..20_i64 {
        let parent = address(&line[line.len() - 1]);
        let name = format!("generation {n}");
        line.push(about(&name, &child(&[parent], &name, 90_000 - n, "")));
    }
    let youngest = address(&line[19]);
    let entries: Vec<_> = line.iter().map(blob).collect();
    let denied = |place: &Place| {
        let next = about("generation 19", &belief("next", 99_000, ""));
        assert_eq!(code(place.session.supersede(&youngest, next, None)), "ERR_INVALIDATION_DENIED");
        place.verify();
    };
    let together = Place::new();
    together.import(&entries, &[]).unwrap();
    denied(&together);
    // The middle is missing at first, then the root.
    let pieces = Place::new();
    for part in [&entries[12..], &entries[1..5], &entries[5..12], &entries[..1]] {
        pieces.import(part, &[]).unwrap();
    }
    denied(&pieces);
    // The root comes by put.
    let late = Place::new();
    late.import(&entries[1..], &[]).unwrap();
    late.session.put(line[0].clone()).unwrap();
    denied(&late);
}

#[test]
fn a_version_is_protected_by_those_before_it() {
    let place = Place::new();
    let old = belief("tea", 1000, &policy(r#""mode": "locked", "scope": "lineage""#));
    let new = child(&[address(&old)], "coffee", 2000, "");
    let stated = [superseded(address(&old), address(&new), 2000)];
    place.import(&[blob(&old), blob(&new)], &stated).unwrap();
    let next = place.session.supersede(&address(&new), belief("milk", 3000, ""), None);
    assert_eq!(code(next), "ERR_INVALIDATION_DENIED");
    assert_eq!(place.session.history(&address(&new)).unwrap().len(), 2);
}

#[test]
fn envelopes_are_verified_and_kept() {
    let place = Place::new();
    let (valid, at) = signed(&belief("valid", 1000, ""), 1);
    let mut broken = valid.clone();
    let last = broken.len() - 1;
    broken[last] ^= 1;
    let entries = [blob(&belief("good", 500, "")), broken];
    let error = place.import(&entries, &[]).unwrap_err();
    assert_eq!(error.code(), "ERR_SIGNATURE");
    let told = place.session.audit(None, 1000).unwrap();
    let refused = told.iter().rfind(|entry| entry.decision == "refused").unwrap();
    assert_eq!(refused.rules, ["invalid_signature"]);
    assert!(refused.kid.as_deref().is_some_and(|kid| kid.starts_with("did:key:")));
    assert!(error.to_string().contains("in.mg: grain 1: "), "{error}");
    assert_eq!(place.store.stats().unwrap().grains, 0);
    // Cut from its tag, and from somebody whose key cannot be found.
    let unverifiable = {
        let envelope = Envelope::parse(valid.clone()).unwrap();
        let did = envelope.kid().unwrap();
        let from = valid.windows(did.len()).position(|bytes| bytes == did.as_bytes()).unwrap();
        let mut bytes = valid.clone();
        bytes[from..from + 8].copy_from_slice(b"did:web:");
        bytes
    };
    place.import(std::slice::from_ref(&unverifiable), &[]).unwrap();
    let kept = || place.session.get(&at).unwrap().envelope.unwrap().into_bytes();
    assert_eq!(kept(), unverifiable);
    let imported = place.import(std::slice::from_ref(&valid), &[]).unwrap();
    assert_eq!((counts(&imported), kept()), ((0, 1, 0, 0), valid.clone()));
    assert_eq!(code(place.import(&[unverifiable], &[])), "OK");
    assert_eq!(kept(), valid, "a valid envelope stays");
    place.verify();
}

#[test]
fn what_put_refuses_for_what_it_is_is_left_out() {
    let place = Place::new();
    let view = disclose(&blob(&belief("tea", 1000, r#", "user_id": "u""#)), &["user_id"]).unwrap();
    let owner = grain(
        r#""type": "belief", "subject": "did:web:bot", "relation": "mg:owned_by", "object": "x",
           "confidence": 1, "created_at": 2000, "namespace": "agent:identity",
           "author_did": "did:web:bot""#,
    );
    let good = belief("good", 3000, "");
    let entries = [blob(&view), blob(&owner), blob(&good)];
    let imported = place.import(&entries, &[]).unwrap();
    assert_eq!(counts(&imported), (1, 0, 2, 2));
    assert!(imported.conflicts.iter().all(|conflict| conflict.about == ConflictSubject::Grain));
    assert_eq!(place.store.stats().unwrap().grains, 1);
    place.verify();
}

#[test]
fn a_session_imports_only_what_lies_in_its_namespace() {
    let place = Place::new();
    let own = belief("own", 1000, r#", "namespace": "acme:bot""#);
    let foreign = belief("foreign", 2000, r#", "namespace": "other""#);
    let session = place.within("acme");
    for outside in [foreign, belief("shared", 2000, "")] {
        let file = place.file("mixed.mg", &[blob(&own), blob(&outside)], &[]);
        let error = session.import([&file], &ImportOptions::default()).unwrap_err();
        assert_eq!(error.code(), "ERR_ACCESS");
        assert!(error.to_string().contains("mixed.mg: grain 1: "), "{error}");
    }
    assert_eq!(place.store.stats().unwrap().grains, 0);
    let file = place.file("own.mg", &[blob(&own)], &[]);
    assert_eq!(session.import([&file], &ImportOptions::default()).unwrap().added, 1);
    // A manifest reaches no further either.
    let hidden = place.session.put(belief("hidden", 5000, r#", "namespace": "other""#)).unwrap();
    let retracted =
        GrainState { verification_status: VerificationStatus::Retracted, ..GrainState::default() };
    let file = place.file("far.mg", &[blob(&own)], &[state(hidden.address(), retracted)]);
    assert_eq!(session.import([&file], &ImportOptions::default()).unwrap().conflict_count, 0);
    assert!(place.state(&hidden.address()).is_current());
}

#[test]
fn a_withdrawal_in_a_file_ends_its_grant() {
    let consent = |from: &str, at: i64, more: &str| {
        grain(&format!(
            r#""type": "consent", "subject_did": "{from}", "grantee_did": "did:web:b",
               "scope": ["store"], "created_at": {at}{more}"#
        ))
    };
    let grant = consent(
        "did:web:a",
        1000,
        &format!(r#", "is_withdrawal": false{}"#, policy(r#""mode": "locked""#)),
    );
    let of = address(&grant);
    let withdraws = format!(r#", "is_withdrawal": true, "prior_consent": "{of}""#);
    let (by_party, by_other) =
        (consent("did:web:a", 2000, &withdraws), consent("did:web:c", 3000, &withdraws));
    let here = Place::new();
    here.session.put(grant.clone()).unwrap();
    let refused = here.import(&[blob(&by_other)], &[]).unwrap();
    assert_eq!(counts(&refused), (0, 0, 1, 1), "another party cannot withdraw it");
    assert!(here.state(&of).is_current());
    here.import(&[blob(&by_party)], &[]).unwrap();
    assert_eq!(here.state(&of).superseded_by, Some(address(&by_party)));
    here.verify();

    let stated = Place::new();
    stated.session.put(grant.clone()).unwrap();
    let says = [superseded(of, address(&by_party), 2500)];
    let imported = stated.import(&[blob(&grant), blob(&by_party)], &says).unwrap();
    assert_eq!(counts(&imported), (1, 1, 0, 0), "{:?}", imported.conflicts);
    assert_eq!(stated.state(&of).superseded_by, Some(address(&by_party)));
    stated.verify();

    let together = Place::new();
    // The grain of the other party stands before the grant, and behind it.
    let before = consent("did:web:c", 500, &withdraws);
    let entries = [&grant, &by_party, &by_other, &before].map(blob);
    let imported = together.import(&entries, &[]).unwrap();
    assert_eq!(counts(&imported), (3, 0, 1, 2));
    assert_eq!(together.state(&of).superseded_by, Some(address(&by_party)));
    assert!(together.state(&address(&before)).needs_review);
    together.verify();
}

fn consent(at: i64, more: &str) -> Grain {
    grain(&format!(
        r#""type": "consent", "subject_did": "did:web:a", "grantee_did": "did:web:b",
           "scope": ["store"], "created_at": {at}{more}"#
    ))
}

fn withdrawal(at: i64, of: &ContentAddress) -> Grain {
    consent(at, &format!(r#", "is_withdrawal": true, "prior_consent": "{of}""#))
}

#[test]
fn a_grant_in_a_file_that_was_withdrawn_here_before_ends_when_it_comes() {
    let first = consent(1000, r#", "is_withdrawal": false"#);
    let of = address(&first);
    let renewed = consent(2000, &format!(r#", "is_withdrawal": false, "derived_from": ["{of}"]"#));
    let place = Place::new();
    let by = place.session.put(withdrawal(3000, &of)).unwrap().address();
    // The renewal alone does not say to what chain it belongs: it is a grant of its own.
    place.import(&[blob(&renewed)], &[]).unwrap();
    assert!(place.state(&address(&renewed)).is_current());
    let before = place.session.audit_head().unwrap().0;
    place.import(&[blob(&first)], &[superseded(of, address(&renewed), 2000)]).unwrap();
    assert_eq!(place.state(&of).superseded_by, Some(address(&renewed)));
    assert_eq!(place.state(&address(&renewed)).superseded_by, Some(by), "its last version ends");
    let told = place.audit(before);
    assert_eq!(told.len(), 3, "{told:?}");
    place.verify();
    let alone = Place::new();
    let by = alone.session.put(withdrawal(3000, &of)).unwrap().address();
    alone.import(&[blob(&first)], &[]).unwrap();
    assert_eq!(alone.state(&of).superseded_by, Some(by));
    alone.verify();
}

#[test]
fn what_was_granted_again_after_a_withdrawal_comes_in_as_it_was() {
    let from = Place::new();
    let first = from.session.put(consent(1000, r#", "is_withdrawal": false"#)).unwrap().address();
    let by = from.session.put(withdrawal(2000, &first)).unwrap().address();
    let again = consent(3000, r#", "is_withdrawal": false"#);
    let again = from.session.supersede(&by, again, Some("granted anew")).unwrap();
    let (file, _) = from.export("all.mg", Compression::None);
    let to = Place::new();
    to.session.import([&file], &ImportOptions::default()).unwrap();
    assert!(to.state(&again).is_current());
    assert_eq!(to.everything(), from.everything());
    to.verify();
    // And where the withdrawal was here already, before its grant.
    let to = Place::new();
    to.session.put(withdrawal(2000, &first)).unwrap();
    to.session.import([&file], &ImportOptions::default()).unwrap();
    assert_eq!(to.state(&first).superseded_by, Some(by));
    assert!(to.state(&again).is_current());
    to.verify();
}

#[test]
fn one_file_may_hold_a_grain_twice_and_another_time_what_is_here() {
    let place = Place::new();
    let tea = blob(&belief("tea", 1000, ""));
    let entries = std::slice::from_ref(&tea);
    let two = || [place.file("a.mg", entries, &[]), place.file("b.mg", entries, &[])];
    for expected in [(1, 1, 0, 0), (0, 2, 0, 0)] {
        let imported = place.session.import(two(), &ImportOptions::default()).unwrap();
        assert_eq!(counts(&imported), expected);
    }
    let empty = place.import(&[], &[]).unwrap();
    assert_eq!(counts(&empty), (0, 0, 0, 0));
    assert!(container(&[], &[]).len() < 64);
    place.session.put(Offer::Grain(belief("after", 1, ""))).unwrap();
    place.verify();
}

#[test]
fn what_a_payload_says_of_its_own_contradiction_has_no_effect() {
    let stated = |is: bool| {
        let plain = blob(&belief("tea", 1000, ""));
        let mut fields = belief("tea", 1000, "").fields().clone();
        fields.insert("contradicted".to_owned(), is.into());
        // It is refused where a grain is written, so the bytes are put together here.
        let refused = Grain::from_fields(fields).unwrap_err();
        assert_eq!(refused.code(), "ERR_SCHEMA");
        let Ok(Value::Map(mut payload)) = decode_value(&plain[9..], Encoding::MessagePack) else {
            panic!("a payload is a map")
        };
        payload.insert("ct".to_owned(), is.into());
        [&plain[..9], &encode_value(&Value::Map(payload), Encoding::MessagePack)].concat()
    };
    for is in [true, false] {
        for by_import in [true, false] {
            let place = Place::new();
            let bytes = stated(is);
            let address = ContentAddress::of(&bytes);
            assert_eq!(
                Grain::decode(&bytes).unwrap().encode(Encoding::MessagePack).unwrap().bytes(),
                bytes
            );
            if by_import {
                place.import(std::slice::from_ref(&bytes), &[]).unwrap();
            } else {
                place.session.put(Offer::Blob(bytes.clone())).unwrap();
            }
            let stored = place.session.get(&address).unwrap();
            assert_eq!((stored.blob, stored.state), (bytes, GrainState::default()));
            let found = place.session.query(&Query::default(), &PageOptions::default()).unwrap();
            assert_eq!(found.results.len(), 1);
            let ask = |text: &str| {
                let answer = place
                    .session
                    .ask_with(text.as_bytes(), &ExecuteOptions::at(EpochMs::new(2000)));
                serde_json::to_string(&answer.unwrap()).unwrap().contains(&address.to_string())
            };
            assert!(ask("RECALL beliefs WHERE contradicted = false"));
            assert!(!ask("RECALL beliefs WHERE contradicted = true"));
            place.verify();
        }
    }
}

/// A consent of these parties that derives from another, or a withdrawal of it.
fn consent_of(subject: &str, grantee: &str, at: i64, more: &str) -> Grain {
    grain(&format!(
        r#""type": "consent", "subject_did": "{subject}", "grantee_did": "{grantee}",
           "scope": ["store"], "created_at": {at}{more}"#
    ))
}

#[test]
fn a_file_puts_no_consent_of_others_in_the_place_of_a_withdrawal_that_is_new_here() {
    let why = r#", "is_withdrawal": false, "supersession_justification": "again""#;
    let granted = consent_of("did:web:a", "did:web:b", 1000, r#", "is_withdrawal": false"#);
    let at = address(&granted);
    let takes_back = format!(r#", "is_withdrawal": true, "prior_consent": "{at}""#);
    let withdrawal = consent_of("did:web:a", "did:web:b", 2000, &takes_back);
    let from = |parent: ContentAddress| format!(r#", "derived_from": ["{parent}"]{why}"#);
    let again = consent_of("did:web:a", "did:web:b", 3000, &from(address(&withdrawal)));
    let mallory = consent_of("did:web:m", "did:web:x", 4000, &from(address(&again)));
    let chain = [&granted, &withdrawal, &again, &mallory];
    let stated: Vec<_> =
        chain.windows(2).map(|pair| superseded(address(pair[0]), address(pair[1]), 5000)).collect();
    let place = Place::new();
    let resting = belief("tea", 1000, &format!(r#", "processing_basis": "{at}""#));
    place.session.put(granted.clone()).unwrap();
    let resting = place.session.put(resting).unwrap().address();
    place.session.put(withdrawal.clone()).unwrap();
    assert_eq!(code(place.session.get(&resting)), "ERR_WITHDRAWN");
    let blobs: Vec<_> = chain.iter().map(|grain| blob(grain)).collect();
    let file = place.file("in.mg", &blobs, &stated);
    let imported = place.within("shared").import([file], &Default::default()).unwrap();
    assert!(!imported.conflicts.is_empty(), "{imported:?}");
    let head = place.state(&address(&again));
    assert!(head.is_current(), "nobody else's consent stands in its place: {head:?}");
    let takes_back = format!(r#", "is_withdrawal": true, "prior_consent": "{at}""#);
    let last = consent_of("did:web:a", "did:web:b", 6000, &takes_back);
    place.session.put(last).unwrap();
    assert_eq!(code(place.session.get(&resting)), "ERR_WITHDRAWN");
}

#[test]
fn a_descendant_of_a_lock_that_is_new_with_its_parent_comes_in_without_its_end() {
    let place = Place::new();
    let locked = policy(r#""mode": "locked", "scope": "subtree""#);
    let root = place.session.put(belief("tea", 1000, &locked)).unwrap().address();
    let first = about("bob", &child(&[root], "milk", 2000, ""));
    let second = about("carol", &child(&[address(&first)], "wine", 3000, ""));
    let retracted = GrainState {
        verification_status: VerificationStatus::Retracted,
        system_valid_to: Some(EpochMs::new(5000)),
        ..GrainState::default()
    };
    let stated = [state(address(&second), retracted)];
    let file = place.file("in.mg", &[blob(&second), blob(&first)], &stated);
    let imported = place.within("shared").import([file], &Default::default()).unwrap();
    assert_eq!(imported.conflicts.len(), 1, "{imported:?}");
    assert!(place.state(&address(&second)).is_current());
    place.verify();
}

#[test]
fn a_consent_under_a_lock_comes_in_without_its_end_and_so_does_what_derives_from_it() {
    let place = Place::new();
    let locked = policy(r#""mode": "locked", "scope": "subtree""#);
    let locked = consent(1000, &format!(r#", "is_withdrawal": false{locked}"#));
    let derived = child(&[address(&locked)], "milk", 2000, "");
    let ended = GrainState { system_valid_to: Some(EpochMs::new(5000)), ..GrainState::default() };
    let stated = [state(address(&locked), ended), state(address(&derived), ended)];
    let file = place.file("in.mg", &[blob(&derived), blob(&locked)], &stated);
    place.within("shared").import([file], &Default::default()).unwrap();
    for at in [address(&locked), address(&derived)] {
        assert_eq!(place.state(&at).system_valid_to, None, "{at}");
    }
    place.verify();
}

#[test]
fn a_long_line_of_children_before_their_parents_is_refused_from_who_is_not_the_operator() {
    let place = Place::new();
    let locked = policy(r#""mode": "locked", "scope": "subtree""#);
    let mut line = vec![belief("root", 90_000, &locked)];
    for n in 1..100_i64 {
        let parent = address(line.last().unwrap());
        let name = format!("generation {n}");
        line.push(about(&name, &child(&[parent], &name, 90_000 - n, "")));
    }
    let ended = GrainState { system_valid_to: Some(EpochMs::new(5000)), ..GrainState::default() };
    let stated = [state(address(&line[99]), ended)];
    let entries: Vec<_> = line.iter().map(blob).collect();
    let file = place.file("in.mg", &entries, &stated);
    let limited = place.within("shared").import([file.clone()], &Default::default());
    assert_eq!(code(limited), "ERR_LIMIT");
    place.session.import([file], &Default::default()).unwrap();
    assert!(place.state(&address(&line[50])).is_current());
}
