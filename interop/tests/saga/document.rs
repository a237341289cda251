//! Documents of SAGA: their canonical form, their signatures, their validation.

use crate::support::*;
use grainstore_interop::json;
use grainstore_interop::saga::{
    Document, Layer, Level, RedactOptions, SignatureVerdict, Signer, Vault, VaultKey, Verdict,
    Wallet, verify_signature,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

#[test]
fn the_canonical_form_is_that_of_the_vector() {
    let value =
        json::parse(r#"{"b":1,"a":[1.0,1e21,0.1,-0],"€":"€\n","A":null}"#.as_bytes()).unwrap();
    let canonical = json::canonical(&value).unwrap();
    assert_eq!(canonical, r#"{"A":null,"a":[1,1e+21,0.1,0],"b":1,"€":"€\n"}"#);
}

/// The vectors of signatures: key, identity, bytes and hash of what is signed, the signature.
struct Vector {
    key: grainstore_interop::saga::WalletKey,
    address: &'static str,
    bytes: usize,
    sha256: &'static str,
    sig: &'static str,
}

fn vectors() -> [Vector; 2] {
    [
        Vector {
            key: evm(),
            address: EVM_ADDRESS,
            bytes: 321,
            sha256: "6a6c9aad6dfaa0bb5b21bf2a0172d2adbafc98313733d317dbafb4737722ed3b",
            sig: "0xa6b82c8ce85cbd8ddcce791bc2675caacfd4da7b04e808e082ba88a8fa07cce672dcf763488c8b83a07a75c0bf706fe404278d5cd5f598203d7c958e0180f7921c",
        },
        Vector {
            key: solana(),
            address: SOLANA_ADDRESS,
            bytes: 326,
            sha256: "3a66cb797913ced9233613635167333364be8fe7956c63a5ee792464489149f6",
            sig: "0x7d65f23a782d113ddcde74d02c9dad74bcd5da8085f1c1d4faf9499c00bb297f3f31a72aa6a1aefd12d6c0b18ccef04d207eac98578bb0f843127e1100e7dd06",
        },
    ]
}

#[test]
fn documents_are_signed_as_the_vectors_say() {
    for vector in vectors() {
        let wallet = vector.key.wallet();
        assert_eq!(wallet.address(), vector.address);
        let layers = json!({"identity": identity_of(wallet.chain(), wallet.address())});
        let document = signed(envelope("identity", layers), &vector.key);
        let text = document.signed_text().unwrap();
        assert_eq!(text.len(), vector.bytes);
        assert_eq!(data_encoding::HEXLOWER.encode(&Sha256::digest(text)), vector.sha256);
        assert_eq!(document.get("signature").unwrap()["sig"], vector.sig);
        assert_eq!(document.verify(), SignatureVerdict::Verified);
    }
}

#[test]
fn a_signature_over_the_message_alone_is_told_apart() {
    let sig = "0xb12c2c387d09318371e58a81e736d708b534a00ab941f38865bcf767a14a753b7ce8450886c396339295117e5c046344ae23a268cd47ae69d33924039d8c80c51c";
    let message = "SAGA export saga_test0001 at 2026-03-20T10:00:00Z";
    assert_eq!(evm().sign(message.as_bytes()).unwrap(), sig);
    let mut value = envelope("identity", json!({"identity": evm_identity()}));
    value["signature"] = json!({
        "walletAddress": EVM_ADDRESS, "chain": "eip155:8453", "message": message, "sig": sig,
    });
    let document = Document::from_value(value).unwrap();
    assert_eq!(document.verify(), SignatureVerdict::MessageOnly);
}

#[test]
fn the_last_byte_of_a_signature_may_be_counted_from_zero_and_s_may_not_be_high() {
    let wallet = Wallet::new("eip155:8453", EVM_ADDRESS).unwrap();
    let sig = evm().sign(b"m").unwrap();
    let bytes = data_encoding::HEXLOWER.decode(sig.trim_start_matches("0x").as_bytes()).unwrap();
    let written = |bytes: &[u8]| format!("0x{}", data_encoding::HEXLOWER.encode(bytes));
    let mut low = bytes.clone();
    low[64] -= 27;
    assert!(verify_signature(&wallet, b"m", &written(&low)).is_ok());
    // The order of secp256k1 less s.
    let order = data_encoding::HEXLOWER
        .decode(b"fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141")
        .unwrap();
    let mut high = bytes.clone();
    let mut borrow = 0_i16;
    for at in (0..32).rev() {
        let difference = i16::from(order[at]) - i16::from(bytes[32 + at]) - borrow;
        borrow = i16::from(difference < 0);
        high[32 + at] = u8::try_from(difference.rem_euclid(256)).unwrap();
    }
    high[64] = 27 + (28 - high[64]);
    let refused = verify_signature(&wallet, b"m", &written(&high)).unwrap_err();
    assert!(refused.to_string().contains("high"), "{refused}");
}

#[test]
fn wrong_signatures_are_refused() {
    let wallet = Wallet::new("eip155:8453", EVM_ADDRESS).unwrap();
    let of_another = other_evm().sign(b"m").unwrap();
    let own = evm().sign(b"m").unwrap();
    for sig in [
        "",
        "0x",
        "0x00",
        own.trim_start_matches("0x"),
        &format!("{own}00"),
        own.get(..130).unwrap(),
        &of_another,
        "0xzz",
    ] {
        let refused = verify_signature(&wallet, b"m", sig).unwrap_err();
        assert_eq!(refused.code(), "ERR_SIGNATURE", "{sig}");
    }
    let of_solana = Wallet::new("solana:mainnet", SOLANA_ADDRESS).unwrap();
    assert!(verify_signature(&of_solana, b"m", &own).is_err());
    assert!(verify_signature(&of_solana, b"n", &solana().sign(b"m").unwrap()).is_err());
}

#[test]
fn no_byte_of_a_signed_document_can_be_changed() {
    let solana_layers = json!({"identity": identity_of("solana:mainnet", SOLANA_ADDRESS)});
    let documents = [
        signed(envelope("full", full_layers()), &evm()),
        signed(envelope("identity", solana_layers), &solana()),
    ];
    for document in documents {
        let text = document.canonical().unwrap();
        let signed_text = document.signed_text().unwrap();
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let Ok(document) = Document::parse(&bytes) else { continue };
            // The text of `signature.message` is signed by nothing, and says nothing.
            let is_same = document.signed_text().unwrap() == signed_text;
            let verdict = document.verify();
            let is_refused = matches!(verdict, SignatureVerdict::Invalid(_));
            assert!(is_refused || is_same, "byte {at}: {verdict:?}");
        }
    }
}

#[test]
fn a_document_is_signed_by_the_wallet_of_its_identity_alone() {
    let value = envelope("identity", json!({"identity": evm_identity()}));
    let mut document = Document::from_value(value).unwrap();
    assert_eq!(document.sign(&other_evm()).unwrap_err().code(), "ERR_KEY");
    document.sign(&evm()).unwrap();
    let mut value = document.to_value();
    value["signature"]["walletAddress"] = other_evm().wallet().address().into();
    let verdict = Document::from_value(value).unwrap().verify();
    assert!(matches!(verdict, SignatureVerdict::Invalid(_)));
}

#[test]
fn what_is_no_document_is_refused_with_a_code() {
    let cases: [(&[u8], &str); 12] = [
        (b"", "ERR_CORRUPT"),
        (b"[]", "ERR_SCHEMA"),
        (b"{}", "ERR_SCHEMA"),
        (br#"{"sagaVersion": 1}"#, "ERR_SCHEMA"),
        (br#"{"sagaVersion": "one"}"#, "ERR_SCHEMA"),
        (br#"{"sagaVersion": "2.0"}"#, "ERR_VERSION"),
        (br#"{"sagaVersion": "0.9"}"#, "ERR_VERSION"),
        (br#"{"sagaVersion": "1.0", "a": 1e400}"#, "ERR_CORRUPT"),
        (br#"{"sagaVersion": "1.0", "a": [9007199254740993]}"#, "ERR_SCHEMA"),
        (b"{\"sagaVersion\": \"1.0\", \"a\": \"\xff\"}", "ERR_CORRUPT"),
        (br#"{"sagaVersion": "1.0", "a": "\ud800"}"#, "ERR_CORRUPT"),
        (br#"{"sagaVersion": "1.0", "sagaVersion": "1.0"}"#, "ERR_CORRUPT"),
    ];
    for (bytes, code) in cases {
        let refused = Document::parse(bytes).unwrap_err();
        assert_eq!(refused.code(), code, "{}", String::from_utf8_lossy(bytes));
        assert!(!refused.hint().is_empty());
    }
    let deep = format!("{}{}", r#"{"sagaVersion": "1.0", "a": "#, "[".repeat(200));
    assert_eq!(Document::parse(deep.as_bytes()).unwrap_err().code(), "ERR_CORRUPT");
    let long = vec![b' '; grainstore_interop::saga::MAX_DOCUMENT_BYTES + 1];
    assert_eq!(Document::parse(&long).unwrap_err().code(), "ERR_LIMIT");
}

#[test]
fn a_full_document_is_valid_and_the_official_schema_agrees() {
    let document = signed(envelope("full", full_layers()), &evm());
    let validation = document.validate(NOW);
    assert_eq!(validation.verdict, Verdict::Valid, "{:#?}", validation.findings);
    let Some(schema) = official_schema() else { return };
    let errors: Vec<_> = schema.iter_errors(&document.to_value()).map(|e| e.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
}

/// Changes of a valid document: where, and to what.
fn changes() -> Vec<(&'static str, Value)> {
    vec![
        ("/$schema", json!("https://example.org")),
        ("/sagaVersion", json!("1")),
        ("/documentId", json!("saga-1")),
        ("/exportedAt", json!("yesterday")),
        ("/exportType", json!("copy")),
        ("/layers/identity/handle", json!("A")),
        ("/layers/identity/handle", json!("aria chen")),
        ("/layers/identity/handle", json!("koda.saga")),
        ("/layers/identity/chain", json!("bitcoin:main")),
        ("/layers/identity/cloneDepth", json!(-1)),
        ("/layers/identity/cloneDepth", json!(0.5)),
        ("/layers/identity/parentSagaId", json!(7)),
        ("/layers/persona/headline", json!("x".repeat(201))),
        ("/layers/persona/profileType", json!("robot")),
        ("/layers/persona/personality", json!([])),
        ("/layers/cognitive/parameters/temperature", json!(2.5)),
        ("/layers/cognitive/parameters/maxOutputTokens", json!(0)),
        ("/layers/cognitive/capabilities/reasoning", json!("yes")),
        ("/layers/memory/episodic/events/0/significance", json!(1.5)),
        ("/layers/memory/episodic/events/0/type", json!("party")),
        ("/layers/memory/episodic/events/0/timestamp", json!("2026")),
        ("/layers/memory/semantic/knowledgeDomains", json!([1])),
        ("/layers/memory/semantic/expertise/Python", json!("good")),
        ("/layers/skills/verified/0/confidence", json!("high")),
        ("/layers/taskHistory/recentTasks/0/status", json!("done")),
        ("/layers/taskHistory/artifacts/0/storageRef", json!({"type": "ipfs"})),
        ("/layers/taskHistory/artifacts/0/storageRef/checksum", json!("md5:00")),
        ("/layers/taskHistory/summary/bySkill/TypeScript", json!("many")),
        ("/layers/relationships/peers/0/relationship", json!("enemy")),
        ("/layers/environment/tools/mcpServers/0/url", json!("no uri")),
        ("/signature", json!({"walletAddress": "0x", "chain": "eip155:1", "message": ""})),
        ("/privacy", json!({"encryptionScheme": "rot13"})),
        ("/privacy", json!({"other": 1})),
    ]
}

#[test]
fn what_the_official_schema_refuses_is_invalid_here_too() {
    let valid = signed(envelope("full", full_layers()), &evm()).to_value();
    let schema = official_schema();
    let mut cases = Vec::new();
    for (pointer, value) in changes() {
        let mut changed = valid.clone();
        let (above, name) = pointer.rsplit_once('/').unwrap();
        let above = changed.pointer_mut(above).unwrap();
        match above {
            Value::Array(items) => items[name.parse::<usize>().unwrap()] = value,
            other => other[name] = value,
        }
        cases.push((pointer.to_owned(), changed));
    }
    let mut root = valid.clone();
    root["other"] = json!(1);
    cases.push(("an unknown member".to_owned(), root));
    let mut layer = valid.clone();
    layer["layers"]["other"] = json!({});
    cases.push(("an unknown layer".to_owned(), layer));
    let mut tasks = valid.clone();
    let task = json!({"taskId": "t", "status": "failed"});
    tasks["layers"]["taskHistory"]["recentTasks"] = json!(vec![task; 101]);
    cases.push(("101 tasks".to_owned(), tasks));
    for (name, value) in cases {
        if let Some(schema) = &schema {
            assert!(!schema.is_valid(&value), "the official schema takes {name}");
        }
        let Ok(document) = Document::from_value(value) else { continue };
        assert_eq!(document.validate(NOW).verdict, Verdict::Invalid, "{name}");
    }
}

#[test]
fn the_rules_of_the_text_are_held() {
    let rules: [(&str, Value, &str); 6] = [
        ("/createdAt", json!("2026-03-21T10:00:00Z"), "createdAt"),
        ("/layers/identity/parentSagaId", json!("saga_0"), "layers.identity.cloneDepth"),
        ("/signature/chain", json!("eip155:1"), "signature.chain"),
        ("/signature/walletAddress", json!(SOLANA_ADDRESS), "signature.walletAddress"),
        ("/exportType", json!("profile"), "layers.memory"),
        (
            "/consent",
            json!({"operation": "export", "grantedBy": EVM_ADDRESS, "grantedAt": "2026-03-20T10:00:00Z",
            "scope": ["identity"], "purpose": "x", "signature": "0x"}),
            "layers.persona",
        ),
    ];
    let valid = signed(envelope("full", full_layers()), &evm()).to_value();
    for (pointer, value, path) in rules {
        let mut changed = valid.clone();
        let (above, name) = pointer.rsplit_once('/').unwrap();
        changed.pointer_mut(above).unwrap()[name] = value;
        let validation = Document::from_value(changed).unwrap().validate(NOW);
        let told = validation.of_level(Level::Error).any(|finding| finding.path == path);
        assert!(told, "{pointer}: {:#?}", validation.findings);
    }
}

#[test]
fn unusual_things_are_warned_of() {
    let mut value = signed(envelope("full", full_layers()), &evm()).to_value();
    value["layers"]["identity"]["parentSagaId"] = json!("saga_0");
    value["layers"]["identity"]["cloneDepth"] = json!(4);
    value["layers"]["persona"]["personality"]["traits"] = json!(["grumpy"]);
    value["layers"].as_object_mut().unwrap().remove("environment");
    value["privacy"] = json!({"encryptedLayers": ["memory.longTerm"]});
    value["layers"]["skills"]["verified"][0]["verificationProof"] = json!("urn:proof");
    let validation = Document::from_value(value).unwrap().validate(NOW);
    assert_eq!(validation.verdict, Verdict::Valid, "{:#?}", validation.findings);
    let warned: Vec<_> = validation.of_level(Level::Warning).map(|f| f.path.as_str()).collect();
    for path in [
        "layers.identity.cloneDepth",
        "layers.persona.personality.traits[0]",
        "layers.environment",
        "privacy.encryptedLayers",
        "layers.skills.verified[0]",
    ] {
        assert!(warned.contains(&path), "{path} in {warned:?}");
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,5}|2026-03-20T10:00:00Z|0x[0-9a-f]{0,6}|[A-Za-z0-9+/]{0,4}={0,2}"
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{0,3}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn nothing_in_the_place_of_something_is_a_surprise(
        place in any::<usize>(), other in any::<usize>(), value in any_json(), second in any_json(),
    ) {
        let mut document = signed(envelope("full", full_layers()), &evm()).to_value();
        document["layers"]["vault"] = json!({
            "encryption": {"algorithm": "aes-256-gcm", "keyDerivation": "hkdf-sha256", "salt": "AAAA", "info": "x"},
            "items": [{"itemId": "a", "type": "note", "fields": {"__encrypted": true}, "keyWraps": [{}]}],
            "shares": [{"recipientAddress": "b"}],
        });
        document["consent"] = json!({"operation": "export", "scope": ["identity"]});
        document["redactionManifest"] = json!({"summary": {}, "entries": [{"type": "task"}], "orgSignature": {}});
        document["privacy"] = json!({"encryptedLayers": ["persona", "vault"]});
        for (place, value) in [(place, value), (other, second)] {
            let mut pointers = Vec::new();
            pointers_of(&document, "", &mut pointers);
            *document.pointer_mut(&pointers[place % pointers.len()]).unwrap() = value;
        }
        let Ok(mut document) = Document::from_value(document) else { return Ok(()) };
        let _ = document.validate(NOW);
        let _ = document.verify_manifest();
        let _ = document.classified(&Default::default());
        let _ = document.clone().decrypt(&box_key());
        if let Some(vault) = document.layer(Layer::Vault)
            && let Ok(vault) = Vault::from_value(vault.clone())
        {
            let _ = vault.open("a", &VaultKey::from_wallet_key([0x11; 32]));
        }
        let options = RedactOptions {
            organization: "company_flowstate".into(),
            reason: "organizational-exit".into(),
            at: NOW,
            classifications: Default::default(),
        };
        let _ = document.redact(&options, None);
        let _ = document.sign(&evm());
    }
}

/// The pointers to every value of a value.
fn pointers_of(value: &Value, at: &str, pointers: &mut Vec<String>) {
    pointers.push(at.to_owned());
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let name = name.replace('~', "~0").replace('/', "~1");
                pointers_of(value, &format!("{at}/{name}"), pointers);
            }
        }
        Value::Array(items) => {
            for (place, value) in items.iter().enumerate() {
                pointers_of(value, &format!("{at}/{place}"), pointers);
            }
        }
        _ => {}
    }
}
