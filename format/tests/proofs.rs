//! Proofs beside a message: what they are over, and for what they do not serve (OMS 23.2).
#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected fails")]

use data_encoding::HEXLOWER;
use grainstore_format::cose::proof::{self, cosign};
use grainstore_format::{
    ContentAddress, Did, DidResolver, Encoding, Envelope, Grain, OfflineResolver, SignatureVerdict,
    SigningKey, Value, VerifyingKey, sign, sign_detached, verify_detached,
};

fn key() -> SigningKey {
    SigningKey::ed25519_from_seed(&[5; 32])
}

fn belief(object: &str) -> Grain {
    let json = format!(
        r#"{{"type": "belief", "subject": "s", "relation": "r", "object": "{object}",
             "confidence": 1, "created_at": 1737000000000}}"#
    );
    Grain::from_json(&json).unwrap()
}

/// What one proof is over serves for that alone.
#[test]
fn a_proof_serves_for_its_own_message_alone() {
    let a = ContentAddress::from_bytes([1; 32]);
    let b = ContentAddress::from_bytes([2; 32]);
    let mut messages = Vec::new();
    for at in [&a, &b] {
        messages.extend([
            proof::supersede_message(at, b"new"),
            proof::supersede_message(at, b"other"),
            proof::contradict_message(at),
            proof::contest_message(at),
            proof::retract_message(at),
            proof::lift_hold_message(at),
        ]);
    }
    for signer in [key(), SigningKey::p256_from_bytes(&[5; 32]).unwrap()] {
        for (at, message) in messages.iter().enumerate() {
            let proof = sign_detached(message, &signer).unwrap();
            for (other, offered) in messages.iter().enumerate() {
                let verdict = verify_detached(&proof, offered, &OfflineResolver);
                match at == other {
                    true => assert_eq!(verdict, SignatureVerdict::Valid(signer.did())),
                    false => assert_eq!(verdict.name(), "invalid", "{at} for {other}"),
                }
            }
        }
    }
}

#[test]
fn messages_have_these_bytes() {
    let address = ContentAddress::from_bytes([0xab; 32]);
    let hex = "ab".repeat(32);
    let of_abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    for (message, name, rest) in [
        (proof::supersede_message(&address, b"abc"), "oms-supersede-v1", format!("{hex}{of_abc}")),
        (proof::contradict_message(&address), "oms-contradict-v1", hex.clone()),
        (proof::contest_message(&address), "oms-contest-v1", hex.clone()),
        (proof::retract_message(&address), "oms-retract-v1", hex.clone()),
        (proof::lift_hold_message(&address), "oms-lift-hold-v1", hex.clone()),
    ] {
        let (text, bytes) = message.split_at(name.len());
        assert_eq!((text, HEXLOWER.encode(bytes)), (name.as_bytes(), rest));
    }
    let proof = sign_detached(b"m", &key()).unwrap();
    let did = HEXLOWER.encode(key().did().as_str().as_bytes());
    let shown = HEXLOWER.encode(&proof);
    let (head, signature) = shown.split_at(shown.len() - 128);
    assert_eq!(head, format!("d284583ea20127045838{did}a0f65840"));
    assert_eq!(signature.len(), 128);
}

/// The proofs of a grain are over the grain without them.
#[test]
fn a_grain_without_its_proofs_is_the_grain_before_it_had_them() {
    for encoding in [Encoding::MessagePack, Encoding::Cbor] {
        let before = belief("new").encode(encoding).unwrap();
        let mut fields = belief("new").into_fields();
        let auth = Value::Array(vec![Value::Bytes(b"proof".to_vec())]);
        fields.insert("supersession_auth".into(), auth);
        let with = Grain::from_fields(fields).unwrap();
        let stored = with.encode(encoding).unwrap();
        assert_ne!(stored.bytes(), before.bytes());
        let read = Grain::decode(stored.bytes()).unwrap();
        assert_eq!(proof::without_auth(&read).unwrap(), before);
        let none = Grain::decode(before.bytes()).unwrap();
        assert_eq!(proof::without_auth(&none).unwrap(), before);
        // Signed as a whole, its flag says so in what the proofs are over, too.
        let signed = sign(stored.bytes(), &key(), None).unwrap();
        let bare = sign(before.bytes(), &key(), None).unwrap();
        let bytes = proof::without_auth(&signed.grain().unwrap()).unwrap();
        assert_eq!(bytes.bytes(), bare.blob().unwrap());
    }
}

#[test]
fn neither_a_signed_grain_nor_other_bytes_serve_as_a_proof() {
    let blob = belief("o").encode(Encoding::MessagePack).unwrap();
    let envelope = sign(blob.bytes(), &key(), None).unwrap();
    let inner = envelope.blob().unwrap();
    let good = sign_detached(inner, &key()).unwrap();
    assert_eq!(
        verify_detached(&good, inner, &OfflineResolver),
        SignatureVerdict::Valid(key().did())
    );
    let twice = [&good[..], &good].concat();
    for bad in [envelope.bytes(), b"", b"proof", &good[..good.len() - 1], &twice] {
        assert_eq!(verify_detached(bad, inner, &OfflineResolver).name(), "invalid");
    }
    let without_payload = Envelope::parse(good).map_err(|error| error.code());
    assert_eq!(without_payload.err(), Some("ERR_CORRUPT"));
}

/// A host that knows one key.
struct Directory(VerifyingKey);

impl DidResolver for Directory {
    fn resolve(&self, did: &Did) -> Option<VerifyingKey> {
        (did.as_str() == "did:web:example.com").then(|| self.0.clone())
    }
}

#[test]
fn a_proof_beyond_all_measure_is_not_even_read() {
    let unprotected = [&[0xd2, 0x84, 0x40, 0x9f][..], &vec![0x80; 8 << 20]].concat();
    let verdict = verify_detached(&unprotected, b"m", &OfflineResolver);
    assert_eq!(verdict.reason(), Some("a proof has at most 65536 bytes"));
}

#[test]
fn a_host_supplies_keys_that_lie_elsewhere_but_none_for_did_key() {
    let rows = [
        ("did:web:example.com", key().verifying_key(), "valid"),
        ("did:web:example.com", SigningKey::ed25519_from_seed(&[6; 32]).verifying_key(), "invalid"),
        (
            "did:web:example.com",
            SigningKey::p256_from_bytes(&[6; 32]).unwrap().verifying_key(),
            "invalid",
        ),
        ("did:web:example.org", key().verifying_key(), "unverifiable"),
    ];
    for (kid, known, expected) in rows {
        let cose = signed_as(kid);
        let verdict = verify_detached(&cose, b"m", &Directory(known));
        assert_eq!(verdict.name(), expected, "{kid}");
        assert_eq!(verify_detached(&cose, b"m", &OfflineResolver).name(), "unverifiable");
    }
    let own = sign_detached(b"m", &key()).unwrap();
    let other = SigningKey::ed25519_from_seed(&[6; 32]).verifying_key();
    assert_eq!(
        verify_detached(&own, b"m", &Directory(other)),
        SignatureVerdict::Valid(key().did())
    );
}

/// A proof of `m` under a name that is not the key's own.
fn signed_as(kid: &str) -> Vec<u8> {
    use coset::{CoseSign1Builder, HeaderBuilder, TaggedCborSerializable, iana};
    use ed25519_dalek::Signer;
    let header =
        HeaderBuilder::new().algorithm(iana::Algorithm::EdDSA).key_id(kid.as_bytes().to_vec());
    let key = ed25519_dalek::SigningKey::from_bytes(&[5; 32]);
    CoseSign1Builder::new()
        .protected(header.build())
        .create_detached_signature(b"m", &[], |bytes| key.sign(bytes).to_bytes().to_vec())
        .build()
        .to_tagged_vec()
        .unwrap()
}

#[test]
fn verdicts_are_told_as_objects() {
    for (verdict, expected) in [
        (
            SignatureVerdict::Valid(key().did()),
            serde_json::json!({"verdict": "valid", "did": key().did()}),
        ),
        (
            SignatureVerdict::Invalid("r".into()),
            serde_json::json!({"verdict": "invalid", "reason": "r"}),
        ),
        (
            SignatureVerdict::Unverifiable("r".into()),
            serde_json::json!({"verdict": "unverifiable", "reason": "r"}),
        ),
    ] {
        assert_eq!(serde_json::to_value(&verdict).unwrap(), expected);
    }
}

/// Signers add to what the one before gives them; all sign the same.
#[test]
fn cosigners_of_a_grain_sign_it_as_it_was_without_them() {
    let old = ContentAddress::from_bytes([1; 32]);
    let keys = [key(), SigningKey::p256_from_bytes(&[6; 32]).unwrap()];
    for enveloped in [false, true] {
        let mut grain = belief("new");
        for key in &keys {
            let cosigned = cosign(&old, &grain, enveloped, key).unwrap();
            let last = cosigned.grain.list("supersession_auth").unwrap().last().cloned();
            assert_eq!(last, Some(Value::Bytes(cosigned.cose)));
            // Through JSON, as signers in different places have it.
            let json = serde_json::to_string(&cosigned.grain).unwrap();
            grain = Grain::from_json(&json).unwrap();
        }
        assert_eq!(grain.texts("derived_from").collect::<Vec<_>>(), [old.to_string()]);
        let blob = grain.encode(Encoding::MessagePack).unwrap();
        let read = match enveloped {
            true => sign(blob.bytes(), &key(), None).unwrap().grain().unwrap(),
            false => Grain::decode(blob.bytes()).unwrap(),
        };
        let message = proof::supersede_message(&old, proof::without_auth(&read).unwrap().bytes());
        let entries = read.list("supersession_auth").unwrap();
        assert_eq!(entries.len(), keys.len());
        for (entry, key) in entries.iter().zip(&keys) {
            let Value::Bytes(cose) = entry else { panic!("{entry:?} is bytes") };
            let verdict = verify_detached(cose, &message, &OfflineResolver);
            assert_eq!(verdict, SignatureVerdict::Valid(key.did()), "enveloped {enveloped}");
        }
    }
}

#[test]
fn without_a_network_no_key_is_found_not_even_one_that_nobody_asks_for() {
    for did in [key().did(), "did:web:example.com".parse().unwrap()] {
        assert_eq!(OfflineResolver.resolve(&did), None, "{did}");
    }
}
