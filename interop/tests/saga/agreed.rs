//! Who agreed to what: signatures that are looked at, parties that are distinct, clones within their consent, vaults
//! without anything in plain.

use crate::export::{Setup, consent, plain, recipient, redact};
use crate::support::*;
use grainstore::EpochMs;
use grainstore_interop::saga::{
    BoxKey, CloneOptions, Document, ExportOptions, ExportType, Grant, ImportOptions, Layer, Level,
    NewItem, Operation, Permission, Secrets, Signer, TransferConsents, TransferKind,
    TransferRequest, Vault, VaultKey, VaultType, WalletKey, consent_message, export_document,
    import_document,
};
use serde_json::{Value, json};

#[test]
fn a_validation_looks_at_the_signatures_of_consent_and_manifest() {
    let org = other_evm();
    let mut document = Document::from_value(envelope("transfer", full_layers())).unwrap();
    document.redact(&redact(), Some(&org)).unwrap();
    let mut value = document.to_value();
    value["consent"] = consent(Operation::Transfer, Layer::ALL);
    let errors = |value: &Value| {
        let found = signed(value.clone(), &evm()).validate(NOW);
        found.of_level(Level::Error).map(|it| it.path.clone()).collect::<Vec<_>>()
    };
    assert!(errors(&value).is_empty());
    let mut changed = value.clone();
    changed["consent"]["purpose"] = json!("another");
    assert_eq!(errors(&changed), ["consent.signature"]);
    let mut by_another = value.clone();
    by_another["consent"]["grantedBy"] = json!(other_evm().wallet().address());
    assert_eq!(errors(&by_another), ["consent.grantedBy"]);
    let mut changed = value.clone();
    changed["redactionManifest"]["reason"] = json!("another");
    assert_eq!(errors(&changed), ["redactionManifest.orgSignature"]);
    value["redactionManifest"].as_object_mut().unwrap().remove("orgSignature");
    let found = signed(value, &evm()).validate(NOW);
    let warned = found.of_level(Level::Warning);
    assert!(warned.into_iter().any(|it| it.path == "redactionManifest.orgSignature"));
}

fn key() -> VaultKey {
    VaultKey::from_wallet_key([0x11; 32])
}

fn vault() -> Vault {
    let mut vault = Vault::create(NOW).unwrap();
    let note = Secrets::of([("content", "7 7 7")]).unwrap();
    vault.add(NewItem::new(VaultType::Note, "codes", note), &key(), NOW).unwrap();
    vault
}

fn grant(recipient: &str, key: &BoxKey, end: Option<EpochMs>) -> Grant {
    Grant {
        recipient: recipient.into(),
        key: key.public_key(),
        permission: Permission::Read,
        items: Vec::new(),
        granted_by: "0xagent".into(),
        expires_at: end,
    }
}

#[test]
fn a_vault_has_no_member_that_is_not_known_unless_it_is_an_envelope() {
    let mut shared = vault();
    shared.share(&grant("0xann", &box_key(), None), &key(), NOW).unwrap();
    let value = shared.to_value();
    let places = ["", "/encryption", "/items/0", "/items/0/keyWraps/0", "/shares/0"];
    for place in places {
        for plain in [json!("7 7 7"), json!(777), json!({"pin": 777}), json!({"__encrypted": true})]
        {
            let mut changed = value.clone();
            changed.pointer_mut(place).unwrap()["x_pin"] = plain;
            let refused = Vault::from_value(changed.clone()).unwrap_err();
            assert_eq!(refused.code(), "ERR_SCHEMA", "{place}");
            assert!(refused.entry().unwrap().ends_with("x_pin"), "{refused}");
            assert!(!refused.to_string().contains("777"));
        }
        let mut changed = value.clone();
        changed.pointer_mut(place).unwrap()["x_pin"] = value["items"][0]["fields"].clone();
        assert!(Vault::from_value(changed).is_ok(), "{place}");
    }
}

#[test]
fn a_share_that_has_expired_gets_no_new_key_where_another_is_revoked() {
    let (ann, bob, eve) = (BoxKey::new([7; 32]), BoxKey::new([8; 32]), BoxKey::new([9; 32]));
    let mut vault = vault();
    let id = vault.item_ids().next().unwrap().to_owned();
    let soon = EpochMs::new(NOW.get() + 1000);
    vault.share(&grant("0xann", &ann, Some(soon)), &key(), NOW).unwrap();
    vault.share(&grant("0xbob", &bob, None), &key(), NOW).unwrap();
    vault.share(&grant("0xeve", &eve, None), &key(), NOW).unwrap();
    let later = EpochMs::new(NOW.get() + 2000);
    let lost = vault.revoke("0xeve", &key(), later).unwrap();
    assert!(lost.is_empty(), "{lost:?}");
    assert!(vault.open_shared(&id, "0xann", &ann).is_err());
    assert!(vault.open_shared(&id, "0xbob", &bob).is_ok());
    assert!(!vault.to_value().to_string().contains("0xann"));
}

fn by(key: &WalletKey, message: &str) -> Option<(grainstore_interop::saga::Wallet, String)> {
    Some((key.wallet().clone(), key.sign(message.as_bytes()).unwrap()))
}

#[test]
fn those_who_consent_to_a_transfer_are_three_and_the_source_signs_the_manifest() {
    let setup = Setup::new();
    let (agent, org) = (evm(), other_evm());
    let acme = WalletKey::secp256k1("eip155:1", &[0x13; 32]).unwrap();
    let message = consent_message(Operation::Transfer, "saga_move1", "https://acme.example", NOW);
    let code = |consents: TransferConsents, signer: &WalletKey| {
        let options = ExportOptions {
            crosses_organizations: true,
            consent: Some(consent(Operation::Transfer, Layer::ALL)),
            document_id: Some("saga_move1".into()),
            redact: Some(redact()),
            organization: Some(signer),
            recipients: vec![recipient()],
            transfer: Some(TransferRequest {
                kind: TransferKind::Voluntary,
                destination: "https://acme.example".into(),
                at: NOW,
                consents,
            }),
            ..plain(ExportType::Transfer)
        };
        export_document(&setup.session, &options, &evm()).map_err(|error| error.code()).err()
    };
    let all = TransferConsents {
        agent: by(&agent, &message),
        source: by(&org, &message),
        destination: by(&acme, &message),
    };
    // The same key on another chain is the same party.
    let agent_elsewhere = WalletKey::secp256k1("eip155:1", &[0x11; 32]).unwrap();
    for one in [&agent, &agent_elsewhere, &org] {
        let twice = TransferConsents { destination: by(one, &message), ..all.clone() };
        assert_eq!(code(twice, &org), Some("ERR_POLICY"));
    }
    let of_agent = TransferConsents { source: by(&agent, &message), ..all.clone() };
    assert_eq!(code(of_agent, &agent), Some("ERR_POLICY"));
    assert_eq!(code(all.clone(), &acme), Some("ERR_POLICY"));
    let without_source = TransferConsents { source: None, ..all.clone() };
    assert_eq!(code(without_source, &agent), Some("ERR_POLICY"));
    assert_eq!(code(all, &org), None);
}

fn clone_options(crosses: bool) -> CloneOptions<'static> {
    CloneOptions {
        wallet: solana().wallet().clone(),
        handle: "aria-2".into(),
        at: NOW,
        vault: None,
        crosses_organizations: crosses,
        max_depth: None,
    }
}

#[test]
fn a_clone_has_what_its_consent_covers_and_for_another_organization_is_redacted() {
    let org = other_evm();
    let scope = [Layer::Identity, Layer::Persona, Layer::TaskHistory];
    let mut value = envelope("clone", json!({}));
    for layer in scope {
        value["layers"][layer.name()] = full_layers()[layer.name()].clone();
    }
    value["consent"] = consent(Operation::Clone, &scope);
    let source = signed(value.clone(), &evm());
    let refused = source.to_clone(&clone_options(true)).unwrap_err();
    assert_eq!((refused.code(), refused.entry()), ("ERR_POLICY", Some("redactionManifest")));
    source.to_clone(&clone_options(false)).unwrap();
    let mut redacted = Document::from_value(value.clone()).unwrap();
    redacted.redact(&redact(), Some(&org)).unwrap();
    redacted.sign(&evm()).unwrap();
    let (clone, report) = redacted.to_clone(&clone_options(true)).unwrap();
    assert!(report.narrowed.is_empty() && !clone.canonical().unwrap().contains("merger"));
    // By itself it is no redaction of an organization.
    let mut own = Document::from_value(value.clone()).unwrap();
    own.redact(&redact(), Some(&evm())).unwrap();
    own.sign(&evm()).unwrap();
    assert_eq!(own.to_clone(&clone_options(true)).unwrap_err().code(), "ERR_POLICY");
    // What the consent does not cover is left out, and told.
    value["consent"] = consent(Operation::Clone, &[Layer::Identity, Layer::Persona]);
    let source = signed(value, &evm());
    for crosses in [true, false] {
        let (clone, report) = source.to_clone(&clone_options(crosses)).unwrap();
        assert_eq!(report.narrowed, [Layer::TaskHistory]);
        assert_eq!(clone.layers().collect::<Vec<_>>(), [Layer::Identity, Layer::Persona]);
    }
}

#[test]
fn a_document_with_a_consent_that_is_not_the_agent_s_is_still_refused_as_such() {
    let setup = Setup::new();
    let mut value = envelope("transfer", full_layers());
    value["consent"] = consent(Operation::Transfer, Layer::ALL);
    value["consent"]["purpose"] = json!("another");
    let refused =
        import_document(&setup.session, &signed(value, &evm()), &ImportOptions::default());
    assert_eq!(refused.unwrap_err().code(), "ERR_SIGNATURE");
}
