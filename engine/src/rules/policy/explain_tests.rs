//! The explanation of a policy, compared with the decisions made under it.

use grainstore_format::Encoding;

use super::*;
use crate::rules::policy::{
    PolicyAction, PolicyAttempt, PolicyFacts, Proofs, ProtectionLink, Protector, decide, same_did,
};

const A: &str = "did:web:a";
const B: &str = "did:web:b";
const AUTHOR: &str = "did:web:author";
/// Before and after the `locked_until` of the cases, in seconds.
const LOCKED_UNTIL: i64 = 2_000_000_000;

/// Policies of every mode and of every way to violate one.
const POLICIES: [&str; 31] = [
    r#"{"mode": "open"}"#,
    r#"{"mode": "consent_cascade"}"#,
    r#"{"mode": "soft_locked"}"#,
    r#"{"mode": "locked"}"#,
    r#"{"mode": "locked", "authorized": ["did:web:a"]}"#,
    r#"{"mode": "delegated", "authorized": ["did:web:a"]}"#,
    r#"{"mode": "delegated", "authorized": ["did:web:a#key-1", "nobody"]}"#,
    r#"{"mode": "delegated", "authorized": ["did:web:author"]}"#,
    r#"{"mode": "delegated", "authorized": ["nobody"]}"#,
    r#"{"mode": "delegated", "authorized": []}"#,
    r#"{"mode": "delegated"}"#,
    r#"{"mode": "quorum", "threshold": 1, "authorized": ["did:web:a"]}"#,
    r#"{"mode": "quorum", "threshold": 2, "authorized": ["did:web:a", "did:web:b"]}"#,
    r#"{"mode": "quorum", "threshold": 2, "authorized": ["did:web:a", "did:web:a#2"]}"#,
    r#"{"mode": "quorum", "threshold": 2, "authorized": ["did:web:a", "did:web:author"]}"#,
    r#"{"mode": "quorum", "threshold": 2, "authorized": ["did:web:a", "b"]}"#,
    r#"{"mode": "quorum", "threshold": 1}"#,
    r#"{"mode": "quorum", "threshold": 0, "authorized": ["did:web:a"]}"#,
    r#"{"mode": "quorum", "authorized": ["did:web:a"]}"#,
    r#"{"mode": "hold"}"#,
    r#"{"mode": "hold", "authorized": ["did:web:a"]}"#,
    r#"{"mode": "ajar"}"#,
    r#"{"mode": 7}"#,
    r#"{"mode": "timed", "locked_until": 2000000000}"#,
    r#"{"mode": "timed", "locked_until": 2000000000, "fallback_mode": "open"}"#,
    r#"{"mode": "timed", "locked_until": 2000000000, "fallback_mode": "soft_locked"}"#,
    r#"{"mode": "timed", "locked_until": 2000000000, "fallback_mode": "hold"}"#,
    r#"{"mode": "timed", "locked_until": 2000000000, "fallback_mode": "ajar"}"#,
    r#"{"mode": "timed", "locked_until": 2000000000, "fallback_mode": "delegated"}"#,
    r#"{"mode": "timed", "locked_until": 2000000000, "fallback_mode": "delegated",
        "authorized": ["did:web:b"]}"#,
    r#"{"mode": "timed", "locked_until": 2000000000, "fallback_mode": "quorum", "threshold": 1,
        "authorized": ["did:web:b"]}"#,
];

fn blob(fields: &str) -> Vec<u8> {
    let grain = Grain::from_json(&format!(
        r#"{{"type": "belief", "subject": "s", "relation": "r", "object": "o", "confidence": 1,
            "created_at": 0, "author_did": "{AUTHOR}", {fields}}}"#
    ));
    grain.unwrap().encode(Encoding::MessagePack).unwrap().into_bytes()
}

/// The proofs of an attempt: a justification, a signature of the successor, signatures beside it.
const BRINGINGS: [(Option<&str>, Option<&str>, &[&str]); 10] = [
    (None, None, &[]),
    (Some("why"), None, &[]),
    (None, Some(A), &[]),
    (None, Some(B), &[]),
    (None, Some(AUTHOR), &[]),
    (None, None, &[A]),
    (None, None, &[B]),
    (None, None, &[A, A]),
    (None, None, &[A, AUTHOR]),
    (None, None, &[A, B]),
];

/// Returns which of these may supersede the grain, by the decision.
fn decided(grain: &GrainRef<'_>, state: &GrainState, now_s: i64) -> Vec<bool> {
    let protector = Protector::from_grain(grain, state, ProtectionLink::TargetOrOlder);
    let facts = PolicyFacts { protectors: vec![protector], is_truncated: false };
    let allowed = BRINGINGS.iter().map(|(justification, signer, cosigners)| {
        let proofs = Proofs {
            signer: signer.map(str::to_owned),
            cosigners: cosigners.iter().map(|did| (*did).to_owned()).collect(),
            failure: None,
        };
        let attempt = PolicyAttempt {
            act: PolicyAction::Supersede,
            now: EpochMs::new(now_s * 1000),
            justification: *justification,
            actor: None,
            is_operator: false,
            proofs: &proofs,
            evidence: 0,
            locked_accepts_signature: false,
            may_review: false,
        };
        decide(&attempt, &facts).refusal().is_none()
    });
    allowed.collect()
}

/// Returns which of these may supersede the grain, by the explanation.
fn said(open_to: &str, policy: &PolicyTerms) -> Vec<bool> {
    let is_named = |did: &&str| policy.authorized.iter().any(|other| same_did(other, did));
    let allowed = BRINGINGS.iter().map(|(justification, signer, cosigners)| match open_to {
        "anyone" => true,
        "anyone_with_justification" => justification.is_some(),
        "one_authorized_signer" => signer.is_some_and(|signer| is_named(&signer)),
        "quorum" => {
            let mut named: Vec<_> = cosigners.iter().copied().filter(is_named).collect();
            named.retain(|did| *did != AUTHOR);
            named.dedup();
            // A quorum in these cases needs all authorized signers.
            !named.is_empty() && named.len() == policy.authorized.len()
        }
        "nobody" => false,
        other => panic!("open to {other:?}"),
    });
    allowed.collect()
}

#[test]
fn what_is_said_to_be_possible_is_what_is_decided() {
    let mut ways = std::collections::BTreeSet::new();
    for policy in POLICIES {
        let blob = blob(&format!(r#""invalidation_policy": {policy}"#));
        let grain = GrainRef::new(&blob).unwrap();
        let terms = PolicyTerms::of(&grain);
        let stored = GrainState { held: terms.holds, ..GrainState::default() };
        let offered = explain(&Grain::decode(&blob).unwrap()).unwrap();
        assert_eq!(offered, explain_alone(&grain, &stored), "{policy}");
        for held in [false, true] {
            let state = GrainState { held, ..GrainState::default() };
            let told = explain_alone(&grain, &state);
            let before = decided(&grain, &state, LOCKED_UNTIL - 1);
            assert_eq!(before, said(told.open_to, &terms), "{policy}, held {held}: {told:?}");
            let then = told.then_open_to.unwrap_or(told.open_to);
            let after = decided(&grain, &state, LOCKED_UNTIL);
            assert_eq!(after, said(then, &terms), "{policy}, held {held}, later: {told:?}");
            let shuts = |text: &String| {
                ["nobody can", "nothing may", "neither"].iter().any(|words| text.contains(words))
            };
            let is_shut = told.open_to == "nobody";
            assert_eq!(told.demands.first().is_some_and(shuts), is_shut, "{policy}: {told:?}");
            // An allowed attempt must be among those explained.
            assert_eq!(before.contains(&true), !is_shut, "{policy}: {told:?}");
            ways.extend([told.open_to, then]);
        }
    }
    assert_eq!(ways.len(), 5, "{ways:?}");
}

#[test]
fn what_restricts_nothing_is_not_said_to_protect() {
    for (policy, protects) in [
        (r#"{"mode": "open", "scope": "lineage"}"#, false),
        (r#"{"mode": "consent_cascade"}"#, false),
        (r#"{"mode": "soft_locked"}"#, true),
        (r#"{"mode": "hold"}"#, true),
    ] {
        let blob = blob(&format!(r#""invalidation_policy": {policy}"#));
        let grain = GrainRef::new(&blob).unwrap();
        let told = explain(&Grain::decode(&blob).unwrap()).unwrap().demands.join("; ");
        assert_eq!(told.contains("protects"), protects, "{policy}: {told}");
        let lifted = explain_alone(&grain, &GrainState::default()).demands.join("; ");
        assert_eq!(lifted.contains("protects"), protects && !policy.contains("hold"), "{lifted}");
    }
}

#[test]
fn a_time_is_told_as_a_date_where_a_calendar_has_it() {
    for (until, date) in [
        ("2000000000", " (2033-05-18T03:33:20.000Z)"),
        ("253370764799", " (9998-12-31T23:59:59.000Z)"),
        ("253370764800", ""),
        ("18446744073709551615", ""),
    ] {
        let policy =
            format!(r#""invalidation_policy": {{"mode": "timed", "locked_until": {until}}}"#);
        let blob = blob(&policy);
        let told = explain(&Grain::decode(&blob).unwrap()).unwrap().demands;
        let expected = format!("nothing may invalidate it before epoch second {until}{date}");
        assert_eq!(told.first(), Some(&expected));
    }
}

#[test]
fn doubts_are_about_what_nobody_means() {
    for (fields, doubts) in [
        (r#""invalidation_policy": {"mode": "locked"}"#, &[][..]),
        (r#""invalidation_policy": {"mode": "hold"}"#, &[]),
        (r#""invalidation_polity": 1"#, &["its field invalidation_polity is none"]),
        (r#""invalidationPolicy": {"mode": "locked"}"#, &["its field invalidationPolicy"]),
        (r#""invalidation_policies": 1"#, &[]),
        (r#""a": {"invalidation_polcy": 1}"#, &[]),
        (r#""invalidation_policy": {"mode": "Locked"}"#, &["has a mode the standard does not"]),
        (r#""invalidation_policy": {}"#, &["is malformed"]),
        (r#""invalidation_policy": {"mode": "quorum"}"#, &["no threshold"]),
        (
            r#""invalidation_policy": {"mode": "quorum", "threshold": 2, "authorized":
                ["did:web:a", "did:web:a"]}"#,
            &["wants 2 signers and of its authorized DIDs 1 can sign"],
        ),
        (r#""invalidation_policy": {"mode": "delegated"}"#, &["authorizes no DID"]),
        (
            r#""invalidation_policy": {"mode": "delegated", "authorized": ["did:web:a"]}"#,
            &["verified only where the host resolves them"],
        ),
        // Enough of them hold their keys, or too few.
        (
            r#""invalidation_policy": {"mode": "delegated", "authorized": ["did:web:a",
                "did:key:z6MkiTBz1ymuepAQ4HEHYSF1H8quG5GLVVQR3djdX3mDooWp"]}"#,
            &[],
        ),
        (
            r#""invalidation_policy": {"mode": "quorum", "threshold": 2, "authorized": ["did:web:a",
                "did:key:z6MkiTBz1ymuepAQ4HEHYSF1H8quG5GLVVQR3djdX3mDooWp"]}"#,
            &["1 of its authorized DIDs can be verified without a resolver, and it wants 2"],
        ),
        (
            r#""invalidation_policy": {"mode": "delegated", "authorized": ["did:key:zNoKey"]}"#,
            &[
                "a did:key that holds no key of a known kind signs nothing, so nobody can invalidate it",
            ],
        ),
        (
            r#""invalidation_policy": {"mode": "hold", "authorized": ["did:web:a"]}"#,
            &["nobody can lift the hold on it elsewhere"],
        ),
        (
            r#""invalidation_policy": {"mode": "timed", "locked_until": 10,
                "fallback_mode": "delegated", "authorized": ["did:web:a"]}"#,
            &["after its locked_until 0 of its authorized DIDs can be verified without a resolver"],
        ),
        (
            r#""invalidation_policy": {"mode": "timed", "locked_until": 1768471200000,
                "fallback_mode": "delegated"}"#,
            &["is it in milliseconds?", "after its locked_until it is delegated"],
        ),
        (
            r#""invalidation_policy": {"mode": "timed", "locked_until": 100000000000,
                "fallback_mode": "ajar"}"#,
            &["has a fallback_mode the standard does not"],
        ),
    ] {
        let blob = blob(fields);
        let told = warnings::policy_warnings(&GrainRef::new(&blob).unwrap());
        assert_eq!(told.len(), doubts.len(), "{fields}: {told:?}");
        for (told, doubt) in told.iter().zip(doubts) {
            assert!(told.contains(doubt), "{fields}: {told}");
        }
        let grain = Grain::decode(&blob).unwrap();
        assert_eq!(crate::Offer::from(grain).warnings(), told, "{fields}");
        assert_eq!(crate::Offer::Blob(blob).warnings(), told, "{fields}");
    }
}
