//! Redaction and consent: what leaves an organization, and who agreed.

use crate::support::*;
use grainstore::EpochMs;
use grainstore_interop::saga::{
    Classification, CloneOptions, Consent, Document, ItemType, Layer, Level, NewItem, Operation,
    REDACTED_TEXT, RedactOptions, RedactionAction, Secrets, Signer, TransferConsents, TransferKind,
    Vault, VaultKey, VaultType, Wallet, WalletKey, consent_message,
};
use serde_json::{Value, json};

fn options() -> RedactOptions {
    RedactOptions {
        organization: "company_flowstate".into(),
        reason: "organizational-exit".into(),
        at: NOW,
        classifications: Default::default(),
    }
}

fn redacted(options: &RedactOptions) -> Document {
    let mut layers = full_layers();
    layers["memory"]["longTerm"] = json!({
        "type": "vector-store", "vectorCount": 3, "format": "x",
        "storageRef": {"type": "inline", "ref": "memory/longterm.bin"},
    });
    let mut document = Document::from_value(envelope("full", layers)).unwrap();
    document.redact(options, Some(&other_evm())).unwrap();
    document.sign(&evm()).unwrap();
    document
}

#[test]
fn a_redaction_leaves_what_is_the_agent_s_and_nothing_else() {
    let document = redacted(&options());
    let text = document.canonical().unwrap();
    for gone in [
        "Refactor",
        "Replaced sessions",
        "Secret merger",
        "small steps",
        "how reviews go",
        "auth.ts",
        "ipfs://",
        "Prompt of the house",
        "just said",
        "company_flowstate\":145",
        "\"flowstate\",\"dep",
        "longterm.bin",
    ] {
        assert!(!text.contains(gone), "{gone}");
    }
    for kept in ["Open work", "TypeScript", "company_acme", "Aria Chen", "evt_2", "DATABASE_URL"] {
        assert!(text.contains(kept), "{kept}");
    }
    let value = document.to_value();
    let at = |pointer: &str| value.pointer(pointer).cloned().unwrap_or(Value::Null);
    assert_eq!(at("/layers/taskHistory/recentTasks/0/title"), REDACTED_TEXT);
    assert_eq!(at("/layers/taskHistory/recentTasks/0/organizationId"), "[redacted]");
    assert_eq!(at("/layers/taskHistory/recentTasks").as_array().unwrap().len(), 3);
    // Fields that are not there are not added.
    assert_eq!(
        at("/layers/taskHistory/recentTasks/2"),
        json!({"taskId": "task_4", "status": "failed"})
    );
    assert_eq!(at("/layers/taskHistory/summary/totalCompleted"), 234);
    assert_eq!(
        at("/layers/taskHistory/summary/byOrganization"),
        json!({"[redacted]": 145, "company_acme": 89})
    );
    assert_eq!(at("/layers/memory/procedural/workflows/0/steps"), json!([REDACTED_TEXT]));
    assert_eq!(at("/layers/memory/longTerm/vectorCount"), 3);
    assert_eq!(at("/layers/cognitive/systemPrompt"), Value::Null);
    assert_eq!(at("/layers/relationships/organization/companyId"), "[redacted]");
    assert_eq!(at("/layers/relationships/organization/role"), "Engineer");
    let fields = at("/privacy/redactedFields");
    assert!(fields.as_array().unwrap().contains(&json!("taskHistory.recentTasks[0].title")));
}

#[test]
fn a_redacted_document_is_valid_and_its_manifest_agrees() {
    let document = redacted(&options());
    let validation = document.validate(NOW);
    assert_eq!(validation.of_level(Level::Error).count(), 0, "{:#?}", validation.findings);
    assert_eq!(document.verify_manifest().unwrap().unwrap(), other_evm().wallet().address());
    let summary = &document.get("redactionManifest").unwrap()["summary"];
    let expected = json!({
        "tasksRedacted": 2, "tasksRemoved": 1, "eventsRedacted": 1, "eventsRemoved": 0,
        "workflowsRemoved": 0, "artifactsRemoved": 0,
        "memoryLayersRedacted": ["shortTerm", "longTerm"], "systemPromptRedacted": true,
    });
    assert_eq!(summary, &expected);
    if let Some(schema) = official_schema() {
        assert!(schema.is_valid(&document.published_part()));
    }
}

#[test]
fn a_redaction_again_changes_nothing_and_keeps_the_signature_of_the_organization() {
    let whole = redacted(&options());
    for signer in [None, Some(&other_evm() as &dyn Signer)] {
        let mut again = whole.clone();
        let manifest = again.redact(&options(), signer).unwrap();
        assert_eq!(manifest.entries, []);
        assert_eq!(again, whole);
    }
    // Another organization signs what it passes on, and leaves nothing out.
    let mut passed_on = whole.clone();
    passed_on.redact(&options(), Some(&solana())).unwrap();
    assert_eq!(passed_on.verify_manifest().unwrap().unwrap(), SOLANA_ADDRESS);
    let manifest = |of: &Document| of.get("redactionManifest").unwrap()["entries"].clone();
    assert_eq!(manifest(&passed_on), manifest(&whole));
    // A manifest that nobody signed is signed, and lists what it did.
    let mut value = whole.to_value();
    value["redactionManifest"].as_object_mut().unwrap().remove("orgSignature");
    let mut unsigned = Document::from_value(value.clone()).unwrap();
    unsigned.redact(&options(), None).unwrap();
    assert_eq!(unsigned.to_value(), value);
    unsigned.redact(&options(), Some(&other_evm())).unwrap();
    assert_eq!(unsigned.verify_manifest().unwrap().unwrap(), other_evm().wallet().address());
    assert_eq!(unsigned.to_value(), {
        let mut value = whole.to_value();
        value["redactionManifest"]["orgSignature"] =
            unsigned.get("redactionManifest").unwrap()["orgSignature"].clone();
        value
    });
}

#[test]
fn more_is_redacted_beside_what_a_signed_manifest_lists_with_a_key_alone() {
    let first = redacted(&options());
    let mut value = first.to_value();
    value["layers"]["taskHistory"]["recentTasks"][0]["summary"] = json!("new words");
    value["layers"]["taskHistory"]["recentTasks"]
        .as_array_mut()
        .unwrap()
        .push(json!({"taskId": "task_9", "status": "failed", "title": "new"}));
    let before = Document::from_value(value).unwrap();
    let mut again = before.clone();
    let refused = again.redact(&options(), None).unwrap_err();
    assert_eq!((refused.code(), refused.entry()), ("ERR_KEY", Some("redactionManifest")));
    assert_eq!(again, before);
    let manifest = again.redact(&options(), Some(&other_evm())).unwrap();
    let ids: Vec<_> = manifest.entries.iter().map(|entry| entry.id.as_str()).collect();
    assert_eq!(ids, ["task_1", "task_9"]);
    again.sign(&evm()).unwrap();
    let validation = again.validate(NOW);
    assert_eq!(validation.of_level(Level::Error).count(), 0, "{:#?}", validation.findings);
    assert!(again.verify_manifest().is_ok());
    let entries = |document: &Document| {
        let manifest = document.get("redactionManifest").unwrap();
        manifest["entries"].as_array().unwrap().clone()
    };
    assert_eq!(entries(&again).len(), entries(&first).len() + 1);
    let task_1 = entries(&again).into_iter().find(|entry| entry["id"] == "task_1").unwrap();
    assert_eq!(task_1["fieldsAffected"], json!(["title", "summary", "organizationId"]));
    let fields = &again.get("privacy").unwrap()["redactedFields"];
    let is_it = |path: &&Value| *path == "taskHistory.recentTasks[0].title";
    assert_eq!(fields.as_array().unwrap().iter().filter(is_it).count(), 1);
}

#[test]
fn a_changed_manifest_is_refused() {
    let document = redacted(&options()).to_value();
    let changes: [(&str, Value, &str); 4] = [
        ("/redactionManifest/summary/tasksRemoved", json!(0), "ERR_SCHEMA"),
        ("/redactionManifest/entries/0/id", json!("task_9"), "ERR_SIGNATURE"),
        ("/redactionManifest/appliedBy", json!("company_acme"), "ERR_SIGNATURE"),
        ("/redactionManifest/orgSignature/walletAddress", json!(EVM_ADDRESS), "ERR_SIGNATURE"),
    ];
    for (pointer, value, code) in changes {
        let mut changed = document.clone();
        *changed.pointer_mut(pointer).unwrap() = value;
        let refused = Document::from_value(changed).unwrap().verify_manifest().unwrap_err();
        assert_eq!(refused.code(), code, "{pointer}");
    }
    let mut unsigned = document;
    unsigned["redactionManifest"].as_object_mut().unwrap().remove("orgSignature");
    let refused = Document::from_value(unsigned).unwrap().verify_manifest().unwrap_err();
    assert_eq!(refused.code(), "ERR_SIGNATURE");
}

#[test]
fn decisions_of_the_organization_come_before_the_word_of_an_item_and_its_task() {
    let mut options = options();
    let decided = &mut options.classifications;
    decided.set(ItemType::Task, "task_1", Classification::AgentPortable);
    decided.set(ItemType::Task, "task_3", Classification::OrgConfidential);
    decided.set(ItemType::SystemPrompt, "cognitive.systemPrompt", Classification::OrgInternal);
    decided.set(ItemType::MemoryLayer, "memory.longTerm", Classification::OrgConfidential);
    decided.set(ItemType::Relationship, "relationships", Classification::OrgConfidential);
    let value = redacted(&options).to_value();
    let text = value.to_string();
    assert!(text.contains("Refactor auth") && !text.contains("Open work"));
    // The event and the workflow are of that task.
    assert!(text.contains("small steps win") && text.contains("how reviews go"));
    assert_eq!(value["layers"]["cognitive"]["systemPrompt"]["content"], REDACTED_TEXT);
    assert!(value["layers"]["memory"].get("longTerm").is_none());
    assert!(value["layers"]["relationships"].get("organization").is_none());
    assert!(value["layers"]["relationships"].get("peers").is_some());
}

#[test]
fn members_that_nobody_knows_go_with_what_was_redacted() {
    let mut layers = full_layers();
    layers["taskHistory"]["recentTasks"][0]["x_notes"] = json!("the ledger is false");
    layers["memory"]["shortTerm"]["x_raw"] = json!("the ledger is false");
    layers["memory"]["x.dreams"] = json!({"of": "the ledger"});
    layers["memory"]["episodic"]["x_log"] = json!(["the ledger"]);
    layers["taskHistory"]["x_board"] = json!("the ledger");
    let mut document = Document::from_value(envelope("full", layers)).unwrap();
    let manifest = document.redact(&options(), None).unwrap();
    assert!(!document.canonical().unwrap().contains("ledger"));
    let entry = manifest.entries.iter().find(|entry| entry.id == "task_1").unwrap();
    assert!(entry.fields_affected.contains(&"[unknown]".to_owned()));
    assert!(!document.canonical().unwrap().contains("x_notes"));
}

#[test]
fn what_is_encrypted_and_would_be_redacted_is_taken_out() {
    let recipient = grainstore_interop::saga::Recipient::new(box_key().public_key());
    let mut document = Document::from_value(envelope("full", full_layers())).unwrap();
    for path in ["memory.shortTerm", "memory.episodic", "taskHistory", "relationships"] {
        document.encrypt(path, std::slice::from_ref(&recipient)).unwrap();
    }
    let manifest = document.redact(&options(), None).unwrap();
    let value = document.to_value();
    for pointer in [
        "/layers/memory/shortTerm",
        "/layers/memory/episodic",
        "/layers/taskHistory",
        "/layers/relationships",
    ] {
        assert!(value.pointer(pointer).is_none(), "{pointer}");
    }
    let removed = manifest.entries.iter().filter(|it| it.action == RedactionAction::Removed);
    assert_eq!(removed.count(), 5);
}

#[test]
fn who_must_consent_depends_on_the_kind_of_transfer() {
    let message =
        consent_message(Operation::Transfer, "saga_test0001", "https://acme.example", NOW);
    assert_eq!(
        message,
        "SAGA transfer consent:\nDocumentId: saga_test0001\nDestination: https://acme.example\nTimestamp: 2026-03-20T10:00:00Z"
    );
    let (agent, org) = (evm(), other_evm());
    let by = |key: &WalletKey| Some((key.wallet().clone(), key.sign(message.as_bytes()).unwrap()));
    let acme = WalletKey::secp256k1("eip155:8453", &[0x13; 32]).unwrap();
    let orgs = TransferConsents { agent: None, source: by(&org), destination: by(&acme) };
    let all = TransferConsents { agent: by(&agent), ..orgs.clone() };
    let without_source = TransferConsents { source: None, ..all.clone() };
    let check = |given: &TransferConsents, kind| given.check(kind, agent.wallet(), &message);
    for kind in TransferKind::ALL {
        assert!(check(&all, *kind).unwrap().is_empty());
    }
    assert_eq!(check(&orgs, TransferKind::Voluntary).unwrap_err().code(), "ERR_POLICY");
    assert_eq!(check(&orgs, TransferKind::Administrative).unwrap(), ["agent"]);
    assert!(check(&orgs, TransferKind::Emergency).unwrap().is_empty());
    assert_eq!(check(&without_source, TransferKind::Voluntary).unwrap(), ["source organization"]);
    assert_eq!(check(&without_source, TransferKind::Emergency).unwrap_err().code(), "ERR_POLICY");
    let another = TransferConsents { agent: by(&org), ..orgs.clone() };
    assert_eq!(check(&another, TransferKind::Emergency).unwrap_err().code(), "ERR_SIGNATURE");
    let altered = TransferConsents {
        agent: Some((agent.wallet().clone(), agent.sign(b"another message").unwrap())),
        ..orgs
    };
    assert_eq!(check(&altered, TransferKind::Emergency).unwrap_err().code(), "ERR_SIGNATURE");
}

#[test]
fn a_consent_is_signed_over_all_its_members() {
    let consent = Consent {
        operation: Operation::Transfer,
        granted_at: NOW,
        expires_at: Some(EpochMs::new(NOW.get() + 1000)),
        scope: vec![Layer::Identity],
        purpose: "a move".into(),
    };
    let record = consent.sign(&evm()).unwrap();
    let mut value = envelope("transfer", json!({"identity": evm_identity()}));
    value["consent"] = record;
    let document = signed(value, &evm());
    let validation = document.validate(NOW);
    assert_eq!(validation.of_level(Level::Error).count(), 0, "{:#?}", validation.findings);
}

/// A signed source with a vault and a share.
fn source() -> (Document, VaultKey) {
    let key = VaultKey::from_wallet_key([0x11; 32]);
    let mut vault = Vault::create(NOW).unwrap();
    let note = NewItem::new(VaultType::Note, "codes", Secrets::of([("content", "7 7 7")]).unwrap());
    vault.add(note, &key, NOW).unwrap();
    let mut layers = full_layers();
    layers["vault"] = vault.to_value();
    layers["identity"]["cloneDepth"] = json!(2);
    layers["identity"]["parentSagaId"] = json!("saga_parent");
    let mut value = envelope("clone", layers);
    value["privacy"] = json!({"encryptedLayers": ["vault"]});
    (signed(value, &evm()), key)
}

#[test]
fn a_clone_has_a_wallet_a_lineage_and_a_vault_of_its_own() {
    let (source, key) = source();
    let clone_key = VaultKey::from_wallet_key([0x12; 32]);
    let options = CloneOptions {
        wallet: other_evm().wallet().clone(),
        handle: "aria-2".into(),
        at: NOW,
        vault: Some((&key, &clone_key)),
        crosses_organizations: false,
        max_depth: None,
    };
    let (mut clone, report) = source.to_clone(&options).unwrap();
    clone.sign(&other_evm()).unwrap();
    assert_eq!((report.depth, report.lost_vault), (3, false));
    let validation = clone.validate(NOW);
    assert_eq!(validation.of_level(Level::Error).count(), 0, "{:#?}", validation.findings);
    let identity = clone.layer(Layer::Identity).unwrap();
    assert_eq!(identity["parentSagaId"], "saga_test0001");
    assert_eq!(identity["cloneDepth"], 3);
    assert!(identity.get("registrationTxHash").is_none());
    assert_eq!(clone.layer(Layer::Memory), source.layer(Layer::Memory));
    let vault = Vault::from_value(clone.layer(Layer::Vault).unwrap().clone()).unwrap();
    let id = vault.item_ids().next().unwrap().to_owned();
    assert!(vault.open(&id, &clone_key).is_ok() && vault.open(&id, &key).is_err());
}

#[test]
fn a_clone_without_keys_has_no_vault_and_says_so() {
    let (source, _) = source();
    let options = CloneOptions {
        wallet: solana().wallet().clone(),
        handle: "aria-2".into(),
        at: NOW,
        vault: None,
        crosses_organizations: false,
        max_depth: None,
    };
    let (mut clone, report) = source.to_clone(&options).unwrap();
    assert!(report.lost_vault && clone.layer(Layer::Vault).is_none());
    clone.sign(&solana()).unwrap();
    assert_eq!(clone.validate(NOW).of_level(Level::Error).count(), 0);
}

#[test]
fn a_clone_that_is_no_clone_too_deep_or_not_agreed_to_is_refused() {
    let (source, _) = source();
    let options = CloneOptions {
        wallet: other_evm().wallet().clone(),
        handle: "aria-2".into(),
        at: NOW,
        vault: None,
        crosses_organizations: false,
        max_depth: None,
    };
    let code = |source: &Document, options: &CloneOptions<'_>| {
        source.to_clone(options).unwrap_err().code()
    };
    let same = CloneOptions { wallet: evm().wallet().clone(), ..options.clone() };
    assert_eq!(code(&source, &same), "ERR_CONFLICT");
    let same_elsewhere = Wallet::new("eip155:1", EVM_ADDRESS).unwrap();
    assert_eq!(
        code(&source, &CloneOptions { wallet: same_elsewhere, ..options.clone() }),
        "ERR_CONFLICT"
    );
    assert_eq!(code(&source, &CloneOptions { max_depth: Some(2), ..options.clone() }), "ERR_LIMIT");
    let crossing = CloneOptions { crosses_organizations: true, ..options.clone() };
    assert_eq!(code(&source, &crossing), "ERR_POLICY");
    let mut value = source.to_value();
    value["layers"]["persona"]["name"] = json!("Eve");
    assert_eq!(code(&Document::from_value(value).unwrap(), &options), "ERR_SIGNATURE");
    let wrong = VaultKey::from_wallet_key([0x77; 32]);
    assert_eq!(
        code(&source, &CloneOptions { vault: Some((&wrong, &wrong)), ..options }),
        "ERR_KEY"
    );
}

#[test]
fn what_is_not_of_a_form_that_can_be_looked_at_is_taken_out() {
    let ledger = || json!(["the ledger"]);
    for pointer in [
        "/cognitive",
        "/cognitive/systemPrompt",
        "/memory",
        "/memory/shortTerm",
        "/memory/episodic",
        "/memory/episodic/events",
        "/memory/procedural",
        "/memory/procedural/workflows",
        "/taskHistory",
        "/taskHistory/recentTasks",
        "/taskHistory/artifacts",
        "/relationships",
        "/relationships/organization",
    ] {
        let mut layers = full_layers();
        *layers.pointer_mut(pointer).unwrap() = ledger();
        let mut document = Document::from_value(envelope("full", layers)).unwrap();
        let manifest = document.redact(&options(), None).unwrap();
        assert!(!document.canonical().unwrap().contains("ledger"), "{pointer}");
        assert!(
            manifest.entries.iter().any(|it| it.action == RedactionAction::Removed),
            "{pointer}"
        );
    }
}
