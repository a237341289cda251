//! The vault, encrypted layers: opened by whom they are for, and by nobody else.

use crate::support::*;
use grainstore::EpochMs;
use grainstore_interop::saga::{
    BoxKey, BoxPublicKey, Document, Grant, Level, NewItem, Permission, Recipient, Secrets, Vault,
    VaultKey, VaultType,
};
use serde_json::{Value, json};

const SECRET: &str = "open sesame 4711";

fn key() -> VaultKey {
    VaultKey::from_wallet_key([0x11; 32])
}

fn login() -> NewItem {
    let secrets = Secrets::of([("username", "aria"), ("password", SECRET)]).unwrap();
    NewItem { tags: vec!["mail".into()], ..NewItem::new(VaultType::Login, "mail", secrets) }
}

fn vault_of(count: usize) -> (Vault, Vec<String>) {
    let mut vault = Vault::create(NOW).unwrap();
    let ids = (0..count).map(|_| vault.add(login(), &key(), NOW).unwrap()).collect();
    (vault, ids)
}

fn password(secrets: &Secrets) -> String {
    secrets.get("password").unwrap().to_string()
}

fn grant(recipient: &str, key: &BoxKey, items: Vec<String>, expires_at: Option<EpochMs>) -> Grant {
    Grant {
        recipient: recipient.into(),
        key: key.public_key(),
        permission: Permission::Read,
        items,
        granted_by: EVM_ADDRESS.into(),
        expires_at,
    }
}

#[test]
fn an_item_needs_the_fields_of_its_type() {
    let mut vault = Vault::create(NOW).unwrap();
    let cases: [(VaultType, &[&str]); 7] = [
        (VaultType::Login, &["password"]),
        (VaultType::ApiKey, &["keyName", "keyValue"]),
        (VaultType::OauthToken, &["accessToken"]),
        (VaultType::SshKey, &["privateKey"]),
        (VaultType::Certificate, &["certificate"]),
        (VaultType::Note, &["content"]),
        (VaultType::Custom, &[]),
    ];
    for (item_type, fields) in cases {
        let whole = Secrets::of(fields.iter().map(|name| (*name, "x"))).unwrap();
        vault.add(NewItem::new(item_type, "item", whole), &key(), NOW).unwrap();
        if let Some((_, others)) = fields.split_last() {
            let part = Secrets::of(others.iter().map(|name| (*name, "x"))).unwrap();
            let refused = vault.add(NewItem::new(item_type, "item", part), &key(), NOW);
            assert_eq!(refused.unwrap_err().code(), "ERR_SCHEMA");
        }
    }
    assert_eq!(vault.item_ids().count(), 7);
}

#[test]
fn no_changed_byte_of_an_item_is_opened() {
    let (vault, ids) = vault_of(1);
    let value = vault.to_value();
    for pointer in [
        "/items/0/fields/ct",
        "/items/0/fields/iv",
        "/items/0/fields/at",
        "/items/0/keyWraps/0/wrappedKey",
        "/items/0/keyWraps/0/iv",
        "/items/0/keyWraps/0/authTag",
        "/encryption/salt",
    ] {
        let text = value.pointer(pointer).unwrap().as_str().unwrap();
        let bytes = data_encoding::BASE64.decode(text.as_bytes()).unwrap();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            let mut vault = value.clone();
            *vault.pointer_mut(pointer).unwrap() = data_encoding::BASE64.encode(&changed).into();
            let vault = Vault::from_value(vault).unwrap();
            assert_eq!(
                vault.open(&ids[0], &key()).unwrap_err().code(),
                "ERR_KEY",
                "{pointer} {at}"
            );
        }
    }
}

#[test]
fn a_wrap_with_its_tag_at_the_end_is_opened() {
    let (vault, ids) = vault_of(1);
    let mut value = vault.to_value();
    let wrap = value.pointer_mut("/items/0/keyWraps/0").unwrap();
    let bytes =
        |name: &str| data_encoding::BASE64.decode(wrap[name].as_str().unwrap().as_bytes()).unwrap();
    let joined = [bytes("wrappedKey"), bytes("authTag")].concat();
    wrap["wrappedKey"] = data_encoding::BASE64.encode(&joined).into();
    wrap.as_object_mut().unwrap().remove("authTag");
    let vault = Vault::from_value(value).unwrap();
    assert_eq!(password(&vault.open(&ids[0], &key()).unwrap()), SECRET);
}

#[test]
fn plaintext_where_ciphertext_belongs_is_refused_without_telling_it() {
    let (vault, _) = vault_of(1);
    let value = vault.to_value();
    let changes: [(&str, Value); 8] = [
        ("/items/0/fields", json!({"password": SECRET})),
        ("/items/0/fields", json!(SECRET)),
        ("/items/0/fields/__encrypted", json!(false)),
        ("/items/0/fields/v", json!(2)),
        ("/items/0/fields/alg", json!("none")),
        ("/items/0/fields/ct", json!(SECRET)),
        ("/items/0/fields/password", json!(SECRET)),
        ("/items/0/password", json!(SECRET)),
    ];
    for (pointer, changed) in changes {
        let mut vault = value.clone();
        let (above, name) = pointer.rsplit_once('/').unwrap();
        vault.pointer_mut(above).unwrap()[name] = changed;
        let refused = Vault::from_value(vault.clone()).unwrap_err();
        assert_eq!(refused.code(), "ERR_SCHEMA", "{pointer}");
        assert!(refused.entry().unwrap().contains("items[0]"), "{refused}");
        assert!(!refused.to_string().contains(SECRET));
        let mut layers = full_layers();
        layers["vault"] = vault;
        let mut document = envelope("full", layers);
        document["privacy"] = json!({"encryptedLayers": ["vault"]});
        let validation = signed(document, &evm()).validate(NOW);
        assert!(validation.of_level(Level::Error).next().is_some(), "{pointer}");
        assert!(!serde_json::to_string(&validation).unwrap().contains(SECRET));
    }
}

#[test]
fn shared_items_open_for_the_recipient_until_revoked() {
    let (mut vault, ids) = vault_of(3);
    let (ann, bob) = (BoxKey::new([7; 32]), BoxKey::new([8; 32]));
    vault.share(&grant("0xann", &ann, vec![ids[0].clone()], None), &key(), NOW).unwrap();
    vault.share(&grant("0xbob", &bob, Vec::new(), None), &key(), NOW).unwrap();
    assert_eq!(password(&vault.open_shared(&ids[0], "0xAnn", &ann).unwrap()), SECRET);
    for (id, address, key) in
        [(&ids[1], "0xann", &ann), (&ids[0], "0xann", &bob), (&ids[0], "0xeve", &bob)]
    {
        assert_eq!(vault.open_shared(id, address, key).unwrap_err().code(), "ERR_KEY");
    }
    let before = vault.clone();
    let lost = vault.revoke("0xann", &key(), NOW).unwrap();
    assert!(lost.is_empty());
    assert_eq!(vault.version(), before.version() + 1);
    assert!(vault.open_shared(&ids[0], "0xann", &ann).is_err());
    // The others still open it, under a new key, and items that were not shared keep theirs.
    assert_eq!(password(&vault.open_shared(&ids[0], "0xbob", &bob).unwrap()), SECRET);
    assert_eq!(password(&vault.open(&ids[0], &key()).unwrap()), SECRET);
    let fields = |vault: &Vault, at: usize| vault.to_value()["items"][at]["fields"].clone();
    assert_ne!(fields(&vault, 0), fields(&before, 0));
    assert_eq!(fields(&vault, 1), fields(&before, 1));
    assert_eq!(vault.revoke("0xeve", &key(), NOW).unwrap_err().code(), "ERR_NOT_FOUND");
    let wrong = VaultKey::from_wallet_key([0x12; 32]);
    let unchanged = vault.clone();
    assert_eq!(vault.revoke("0xbob", &wrong, NOW).unwrap_err().code(), "ERR_KEY");
    assert_eq!(vault, unchanged);
}

#[test]
fn rotation_gives_new_keys_and_drops_what_expired() {
    let (mut vault, ids) = vault_of(2);
    let (ann, bob) = (BoxKey::new([7; 32]), BoxKey::new([8; 32]));
    let soon = EpochMs::new(NOW.get() + 1000);
    vault.share(&grant("0xann", &ann, Vec::new(), Some(soon)), &key(), NOW).unwrap();
    vault.share(&grant("0xbob", &bob, Vec::new(), None), &key(), NOW).unwrap();
    let before = vault.clone();
    let later = EpochMs::new(NOW.get() + 2000);
    let (old, new) = (key(), VaultKey::from_wallet_key([0x44; 32]));
    let lost = vault.rotate(&old, &new, later).unwrap();
    assert_eq!(lost.len(), 2, "{lost:?}");
    assert!(lost.iter().all(|lost| lost.recipient == "0xann"));
    assert_eq!(vault.version(), before.version() + 1);
    assert_ne!(vault.to_value()["encryption"]["salt"], before.to_value()["encryption"]["salt"]);
    for id in &ids {
        assert_eq!(password(&vault.open(id, &new).unwrap()), SECRET);
        assert_eq!(password(&vault.open_shared(id, "0xbob", &bob).unwrap()), SECRET);
        assert!(vault.open(id, &old).is_err() && vault.open_shared(id, "0xann", &ann).is_err());
        assert_eq!(password(&before.open(id, &old).unwrap()), SECRET);
    }
}

#[test]
fn the_vault_of_a_clone_is_the_clone_s_alone() {
    let (mut vault, ids) = vault_of(2);
    let ann = BoxKey::new([7; 32]);
    vault.share(&grant("0xann", &ann, Vec::new(), None), &key(), NOW).unwrap();
    let clone_key = VaultKey::from_wallet_key([0x55; 32]);
    let clone = vault.for_clone(&key(), &clone_key, NOW).unwrap();
    for id in &ids {
        assert_eq!(password(&clone.open(id, &clone_key).unwrap()), SECRET);
        assert!(clone.open(id, &key()).is_err() && clone.open_shared(id, "0xann", &ann).is_err());
    }
    assert_eq!(clone.to_value()["shares"], json!([]));
    let wrong = VaultKey::from_wallet_key([0x12; 32]);
    assert_eq!(vault.for_clone(&wrong, &clone_key, NOW).unwrap_err().code(), "ERR_KEY");
}

#[test]
fn keys_and_secrets_are_never_printed() {
    let secrets = Secrets::of([("password", SECRET)]).unwrap();
    let item = NewItem::new(VaultType::Login, "mail", secrets.clone());
    let key = VaultKey::from_wallet_key([0xab; 32]);
    let printed = format!("{secrets:?} {item:?} {key:?} {:?} {:?}", BoxKey::new([0xab; 32]), evm());
    assert!(!printed.contains(SECRET) && !printed.contains("171") && !printed.contains("abab"));
    let refused = Secrets::from_json(format!("{{\"a\": \"{SECRET}\"")).unwrap_err();
    assert!(!refused.to_string().contains("sesame"));
}

#[test]
fn encrypted_layers_open_for_each_recipient_and_no_other() {
    let plain = Document::from_value(envelope("full", full_layers())).unwrap();
    let (ann, bob, eve) = (BoxKey::new([7; 32]), BoxKey::new([8; 32]), BoxKey::new([9; 32]));
    let recipients = [
        Recipient { address: Some("0xann".into()), ..Recipient::new(ann.public_key()) },
        Recipient::new(bob.public_key()),
    ];
    let mut document = plain.clone();
    for path in ["cognitive.systemPrompt", "memory.episodic", "taskHistory"] {
        assert!(document.encrypt(path, &recipients).unwrap());
        assert!(!document.encrypt(path, &recipients).unwrap(), "{path} twice");
    }
    let text = document.canonical().unwrap();
    for gone in ["Prompt of the house", "small steps win", "Refactor"] {
        assert!(!text.contains(gone), "{gone}");
    }
    document.sign(&evm()).unwrap();
    assert_eq!(document.validate(NOW).of_level(Level::Error).count(), 0);
    if let Some(schema) = official_schema() {
        assert!(schema.is_valid(&document.to_value()));
    }
    for key in [&ann, &bob] {
        let mut opened = document.clone();
        assert_eq!(opened.decrypt(key).unwrap().len(), 3);
        let mut value = opened.to_value();
        value.as_object_mut().unwrap().remove("signature");
        assert_eq!(Document::from_value(value).unwrap(), plain);
    }
    let mut kept = document.clone();
    assert!(kept.decrypt(&eve).unwrap().is_empty());
    assert_eq!(kept, document);
    for path in ["identity", "vault", "other"] {
        assert_eq!(document.encrypt(path, &recipients).unwrap_err().code(), "ERR_SCHEMA", "{path}");
    }
    let nobody = plain.clone().encrypt("persona", &[]).unwrap_err();
    assert_eq!(nobody.code(), "ERR_KEY");
}

#[test]
fn a_changed_box_is_refused() {
    let mut document = Document::from_value(envelope("full", full_layers())).unwrap();
    let key = box_key();
    document.encrypt("persona", &[Recipient::new(key.public_key())]).unwrap();
    let pointer = "/layers/persona/recipients/0/payload";
    for name in ["nonce", "ephemeralPublicKey", "ciphertext"] {
        let mut value = document.to_value();
        let field = &mut value.pointer_mut(pointer).unwrap()[name];
        let mut bytes = data_encoding::BASE64.decode(field.as_str().unwrap().as_bytes()).unwrap();
        bytes[3] ^= 1;
        *field = data_encoding::BASE64.encode(&bytes).into();
        let refused = Document::from_value(value).unwrap().decrypt(&key).unwrap_err();
        assert_eq!((refused.code(), refused.entry()), ("ERR_KEY", Some("persona")), "{name}");
    }
}

#[test]
fn public_keys_of_small_order_are_refused() {
    let mut one = [0; 32];
    one[0] = 1;
    for bytes in [[0; 32], one] {
        assert_eq!(BoxPublicKey::new(bytes).unwrap_err().code(), "ERR_KEY");
    }
    assert!(BoxPublicKey::new(*box_key().public_key().bytes()).is_ok());
}
