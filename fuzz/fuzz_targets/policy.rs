//! Invalidation policies: no policy map makes the decision panic, what it does not understand stays
//! locked, and what it says to people is what it does.
//!
//! A grain with a JSON value for its policy is asked about by people who bring more and more. What is
//! open to those with nothing is written down here a second time, from OMS 23.2 and 23.3.
#![no_main]

use grainstore::explain;
use grainstore::format::{Did, Encoding, Grain};
use grainstore::fuzzing::{Asking, Way, allows};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

/// Somebody no policy names by accident.
const STRANGER: &str = "did:web:stranger.example";
/// Who wrote the grain.
const AUTHOR: &str = "did:web:author.example";

fuzz_target!(|bytes: &[u8]| {
    let Some((time, policy)) = bytes.split_at_checked(8) else { return };
    let now_ms = i64::from_be_bytes(time.try_into().expect("eight bytes"));
    let Ok(policy) = serde_json::from_slice::<Value>(policy) else { return };
    let grain = json!({
        "type": "belief", "subject": "s", "relation": "r", "object": "o", "confidence": 1,
        "created_at": 0, "author_did": AUTHOR, "invalidation_policy": policy,
    });
    let Ok(grain) = Grain::from_json(&grain.to_string()) else { return };
    let Ok(blob) = grain.encode(Encoding::MessagePack) else { return };
    let told = explain(&grain).expect("it could be encoded");
    for way in Way::ALL {
        let with_nothing = Asking {
            way,
            now_ms,
            justification: None,
            signer: None,
            cosigners: Vec::new(),
            held: told.holds,
        };
        let allows = |asking: &Asking| allows(blob.bytes(), asking).expect("it is a blob");
        let is_open = allows(&with_nothing);
        assert_eq!(is_open, is_open_to_all(&policy, now_ms.div_euclid(1000)), "{way:?}");
        let justified =
            Asking { justification: Some("because".to_owned()), ..with_nothing.clone() };
        let is_justified = allows(&justified);
        assert!(is_justified || !is_open);
        let by_others = Asking {
            signer: Some(STRANGER.to_owned()),
            cosigners: vec![STRANGER.to_owned(), AUTHOR.to_owned()],
            ..justified.clone()
        };
        if !told.authorized.iter().any(|did| did.starts_with("did:web:")) {
            assert_eq!(allows(&by_others), is_justified, "nobody it names has signed");
        }
        // What is no DID has no key to sign with.
        let is_did = |text: &&String| text.parse::<Did>().is_ok();
        let signers: Vec<String> = told.authorized.iter().filter(is_did).cloned().collect();
        let mut by_all = justified;
        by_all.cosigners.clone_from(&signers);
        let mut signed = is_justified;
        for signer in signers.iter().take(16) {
            by_all.signer = Some(signer.clone());
            signed |= allows(&by_all);
        }
        match (told.then_open_to, told.open_to) {
            (None, "nobody") => assert!(!signed, "{way:?}: {:?}", told.demands),
            (None, "anyone") => assert!(is_open, "{way:?}: {:?}", told.demands),
            (None, "anyone_with_justification") => assert!(is_justified && !is_open),
            (None, "one_authorized_signer") => assert!(signed || signers.len() > 16),
            _ => {}
        }
        assert!(!allows(&Asking { held: true, ..by_all }), "a hold is a hold");
    }
});

/// Whether a grain under this policy may be replaced by who brings nothing, in this epoch second.
fn is_open_to_all(policy: &Value, now: i64) -> bool {
    // A field without a value is none.
    let field = |name: &str| policy.get(name).filter(|value| !value.is_null());
    if policy.is_null() {
        return true;
    }
    let is_text = |name: &str| field(name).is_none_or(Value::is_string);
    let is_integer = |name: &str| field(name).is_none_or(|n| n.is_i64() || n.is_u64());
    let is_list = field("authorized")
        .is_none_or(|dids| dids.as_array().is_some_and(|dids| dids.iter().all(Value::is_string)));
    let texts = ["mode", "scope", "fallback_mode", "protection_reason"];
    if !texts.into_iter().all(is_text)
        || !["threshold", "locked_until"].into_iter().all(is_integer)
        || !is_list
    {
        return false;
    }
    let is_open = |mode: Option<&Value>| {
        matches!(mode.and_then(Value::as_str), Some("open" | "consent_cascade"))
    };
    match field("mode").and_then(Value::as_str) {
        Some("timed") => {
            let over = field("locked_until").and_then(Value::as_u64);
            over.is_some_and(|until| i128::from(now) >= i128::from(until))
                && is_open(field("fallback_mode"))
        }
        _ => is_open(field("mode")),
    }
}
