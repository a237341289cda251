//! What happens to an agent in a store: transfers, consents that end, decisions, credentials, erasure.

use crate::support::*;
use grainstore::EpochMs;
use grainstore::prelude::*;
use grainstore_interop::saga::{
    Classification, ClassifiedBy, Consent, ExportOptions, ExportType, ImportOptions, ItemType,
    Layer, NewItem, OldVersions, Operation, Secrets, Signer, TransferStatus, Vault, VaultKey,
    VaultType, classify_item, erase_agent, export_document, freeze, import_container,
    import_document, store_vault, stored_document, stored_vault, transfer_status, unfreeze,
    withdraw_consent,
};
use serde_json::json;

use crate::export::{Setup, consent, open, plain, redact};

#[test]
fn what_rests_on_a_consent_is_hidden_once_it_has_expired() {
    let setup = Setup::new();
    let (other, clock) = open(&setup.path("other"));
    let mut value = envelope("transfer", full_layers());
    value["consent"] = consent(Operation::Transfer, Layer::ALL);
    let document = signed(value, &evm());
    import_document(&other, &document, &ImportOptions::default()).unwrap();
    let tasks =
        |session: &Session| session.ask("RECALL goals").unwrap().answer.grains_given().len();
    assert_eq!(tasks(&other), 4);
    assert_eq!(stored_document(&other, evm().wallet()).unwrap().unwrap(), document);
    clock.set(EpochMs::new(NOW.get() + 86_400_001));
    assert_eq!(tasks(&other), 0);
    let refused = stored_document(&other, evm().wallet()).unwrap_err();
    assert_eq!(refused.code(), "ERR_WITHDRAWN");
    assert_eq!(
        export_document(&other, &plain(ExportType::Full), &evm()).unwrap_err().code(),
        "ERR_WITHDRAWN"
    );
    let late = import_document(&other, &document, &ImportOptions::default()).unwrap_err();
    assert_eq!(late.code(), "ERR_WITHDRAWN");
    // A newer consent to the same shows it again.
    let mut value = envelope("transfer", full_layers());
    let renewed = Consent {
        operation: Operation::Transfer,
        granted_at: EpochMs::new(NOW.get() + 86_400_000),
        expires_at: None,
        scope: Layer::ALL.to_vec(),
        purpose: "a longer stay".into(),
    };
    value["consent"] = renewed.sign(&evm()).unwrap();
    let renewed = signed(value, &evm());
    import_document(&other, &renewed, &ImportOptions::default()).unwrap();
    assert_eq!(tasks(&other), 4);
}

#[test]
fn an_agent_is_frozen_once_its_transfer_is_confirmed_and_not_before() {
    let setup = Setup::new();
    let agent = evm().wallet().clone();
    let session = &setup.session;
    assert_eq!(freeze(session, &agent, "imported").unwrap_err().code(), "ERR_CONFLICT");
    setup.export(&plain(ExportType::Transfer)).unwrap();
    assert!(matches!(
        transfer_status(session, &agent).unwrap(),
        Some(TransferStatus::TransferPending { .. })
    ));
    // The transfer may fail: it is active until then.
    setup.export(&plain(ExportType::Full)).unwrap();
    assert_eq!(freeze(session, &agent, " ").unwrap_err().code(), "ERR_EMPTY");
    freeze(session, &agent, "imported as agent_7").unwrap();
    assert_eq!(setup.export(&plain(ExportType::Full)).unwrap_err().code(), "ERR_READ_ONLY");
    let document = stored_document(session, &agent).unwrap().unwrap();
    let refused = import_document(session, &document, &ImportOptions::default()).unwrap_err();
    assert_eq!(refused.code(), "ERR_READ_ONLY");
    unfreeze(session, &agent).unwrap();
    setup.export(&plain(ExportType::Full)).unwrap();
}

#[test]
fn a_consent_that_is_withdrawn_hides_the_layers_and_ends_exports_and_imports() {
    let setup = Setup::new();
    let (other, clock) = open(&setup.path("other"));
    let mut value = envelope("transfer", full_layers());
    value["consent"] = consent(Operation::Transfer, Layer::ALL);
    let document = signed(value, &evm());
    import_document(&other, &document, &ImportOptions::default()).unwrap();
    clock.set(EpochMs::new(NOW.get() + 1000));
    let agent = evm().wallet().clone();
    withdraw_consent(&other, &agent, Operation::Transfer).unwrap();
    let again = withdraw_consent(&other, &agent, Operation::Transfer).unwrap_err();
    assert_eq!(again.code(), "ERR_CONFLICT");
    assert_eq!(other.ask("RECALL goals").unwrap().answer.grains_given().len(), 0);
    assert_eq!(stored_document(&other, &agent).unwrap_err().code(), "ERR_WITHDRAWN");
    let late = import_document(&other, &document, &ImportOptions::default()).unwrap_err();
    assert_eq!((late.code(), late.entry()), ("ERR_WITHDRAWN", Some("consent")));
    // Given anew, it holds again.
    let renewed = Consent {
        operation: Operation::Transfer,
        granted_at: EpochMs::new(NOW.get() + 2000),
        expires_at: None,
        scope: Layer::ALL.to_vec(),
        purpose: "once more".into(),
    };
    clock.set(EpochMs::new(NOW.get() + 3000));
    let mut value = envelope("transfer", full_layers());
    value["consent"] = renewed.sign(&evm()).unwrap();
    import_document(&other, &signed(value, &evm()), &ImportOptions::default()).unwrap();
    assert_eq!(other.ask("RECALL goals").unwrap().answer.grains_given().len(), 4);
}

#[test]
fn an_agent_is_erased_in_all_versions_but_what_is_held() {
    let setup = Setup::new();
    let session = &setup.session;
    let agent = evm().wallet().clone();
    let mut document = stored_document(session, &agent).unwrap().unwrap().to_value();
    document["layers"]["memory"]["episodic"]["events"][0]["summary"] = json!("changed");
    import_document(session, &signed(document, &evm()), &ImportOptions::default()).unwrap();
    let events = Query::default()
        .of_types(grainstore::cal::TypeSet::of(grainstore::format::GrainType::Event));
    let held = session.query(&events, &PageOptions::first(10)).unwrap();
    let held =
        held.results.iter().find(|row| row.grain.text("content") == Some("changed")).unwrap();
    session.hold(&held.content_address, "case 12").unwrap();
    let report = erase_agent(session, &agent, "the agent asked", None).unwrap();
    assert_eq!(report.files, 3);
    assert_eq!(report.kept.len(), 1, "{report:#?}");
    assert_eq!(report.kept[0].address, held.content_address.to_string());
    assert_eq!(report.erased["event"], 2);
    assert_eq!(stored_document(session, &agent).unwrap(), None);
    let stats = session.store().stats().unwrap();
    assert_eq!((stats.grains, stats.side_blobs), (1, 0), "{stats:?}");
    session.lift_hold(&held.content_address, "closed", None).unwrap();
    let report = erase_agent(session, &agent, "the agent asked", None).unwrap();
    assert!(report.kept.is_empty());
    assert_eq!(session.store().stats().unwrap().grains, 0);
}

#[test]
fn a_vault_that_is_rotated_in_the_store_leaves_its_old_keys_behind_only_if_asked() {
    let key = VaultKey::from_wallet_key([0x11; 32]);
    let agent = evm().wallet().clone();
    for old in [OldVersions::Erase, OldVersions::Keep] {
        let setup = Setup::new();
        let session = &setup.session;
        let mut vault = Vault::create(NOW).unwrap();
        let note = |text: &str| {
            NewItem::new(VaultType::Note, "codes", Secrets::of([("content", text)]).unwrap())
        };
        let one = vault.add(note("1"), &key, NOW).unwrap();
        let two = vault.add(note("2"), &key, NOW).unwrap();
        store_vault(session, &agent, &vault, old).unwrap();
        let blobs = session.store().stats().unwrap().side_blobs;
        let mut vault = stored_vault(session, &agent).unwrap().unwrap();
        vault.rotate(&key, &key, NOW).unwrap();
        vault.remove(&two, NOW).unwrap();
        let counts = store_vault(session, &agent, &vault, old).unwrap();
        assert_eq!((counts.added, counts.replaced), (0, 2));
        let stored = stored_vault(session, &agent).unwrap().unwrap();
        assert_eq!(stored, vault);
        assert!(stored.open(&one, &key).is_ok());
        // Two versions of one item and of the header, and one of the other item; or one of each that is left.
        let after = session.store().stats().unwrap().side_blobs;
        let expected = match old {
            OldVersions::Keep => blobs + 2,
            OldVersions::Erase => blobs - 1,
        };
        assert_eq!(after, expected);
        assert_eq!(session.store().verify(true).unwrap().problems, []);
        let (exported, _) = export_document(session, &plain(ExportType::Backup), &evm()).unwrap();
        let exported = Vault::from_value(exported.layer(Layer::Vault).unwrap().clone()).unwrap();
        assert!(exported.open(&one, &key).is_ok());
    }
}

#[test]
fn native_grains_are_shown_as_items_and_arrive_once() {
    let setup = Setup::new();
    let session = &setup.session;
    let native = "agent:aria";
    let said =
        EventBuilder::new(session.now(), "alice said hello").namespace(native).importance(0.5);
    let goal = GoalBuilder::new(session.now(), "buy tea", "satisfied").namespace(native);
    let steps = vec!["boil".to_owned(), "pour".to_owned()];
    let workflow = grainstore::format::WorkflowBuilder::new(session.now(), steps, "make tea")
        .namespace(native);
    let fact = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).namespace(native);
    let event = session.put(said.build().unwrap()).unwrap().address();
    session
        .put_batch([goal.build().unwrap(), workflow.build().unwrap(), fact.build().unwrap()])
        .unwrap();
    let grains = Query::default().within(grainstore::cal::Reach::Exact(native.to_owned()));
    let options =
        ExportOptions { grains: Some(grains), native_items: true, ..plain(ExportType::Backup) };
    let container = setup.export(&options).unwrap();
    let layers = &container.document().to_value()["layers"];
    let events = layers["memory"]["episodic"]["events"].as_array().unwrap();
    let shown = events.last().unwrap();
    let id = format!("evt_{}", event.to_string().get(..20).unwrap());
    let expected = json!({
        "eventId": id, "type": "interaction", "timestamp": "2026-03-20T10:00:00Z",
        "summary": "alice said hello", "significance": 0.5,
    });
    assert_eq!(shown, &expected);
    assert_eq!(
        layers["taskHistory"]["recentTasks"].as_array().unwrap().last().unwrap()["status"],
        "completed"
    );
    assert_eq!(layers["memory"]["procedural"]["workflows"][1]["name"], "make tea");
    // In another store each is one grain, the one it was.
    let (other, _) = open(&setup.path("other"));
    for _ in 0..2 {
        let path = setup.path("out.saga");
        import_container(&other, path, &ImportOptions::default()).unwrap();
        let count = |query: &str| other.ask(query).unwrap().answer.grains_given().len();
        assert_eq!(
            (count("RECALL events"), count("RECALL workflows"), count("RECALL goals")),
            (3, 2, 5)
        );
        assert!(other.exists(&event).unwrap());
        let stored = stored_document(&other, evm().wallet()).unwrap().unwrap();
        assert_eq!(&stored, container.document());
    }
    // Consent and redaction hold for them as for all.
    let org = other_evm();
    let redacted = ExportOptions {
        redact: Some(redact()),
        organization: Some(&org),
        ..ExportOptions { export_type: Some(ExportType::Full), ..options }
    };
    let text = setup.export(&redacted).unwrap().document().canonical().unwrap();
    for gone in ["alice said", "buy tea", "boil"] {
        assert!(!text.contains(gone), "{gone}");
    }
}

#[test]
fn what_was_decided_in_the_store_holds_for_redactions_until_it_is_erased() {
    let setup = Setup::new();
    let (session, agent, org) = (&setup.session, evm().wallet().clone(), other_evm());
    let admin = ClassifiedBy::Admin("marcus".into());
    let decide = |id: &str, class| {
        classify_item(session, &agent, ItemType::Task, id, class, &admin, Some("rule 7"))
    };
    decide("task_1", Classification::OrgInternal).unwrap();
    decide("task_1", Classification::AgentPortable).unwrap();
    decide("task_3", Classification::OrgConfidential).unwrap();
    let nobody = ClassifiedBy::Admin(" ".into());
    let refused =
        classify_item(session, &agent, ItemType::Task, "x", Classification::Public, &nobody, None);
    assert_eq!(refused.unwrap_err().code(), "ERR_SCHEMA");
    let mut options = ExportOptions {
        redact: Some(redact()),
        organization: Some(&org),
        ..plain(ExportType::Full)
    };
    let text = setup.export(&options).unwrap().document().canonical().unwrap();
    assert!(text.contains("Refactor auth") && !text.contains("Open work"));
    let mut other = redact();
    other.classifications.set(ItemType::Task, "task_3", Classification::Public);
    options.redact = Some(other);
    let text = setup.export(&options).unwrap().document().canonical().unwrap();
    assert!(text.contains("Open work"));
    let entries = session.audit(None, 1000).unwrap();
    assert!(entries.iter().filter(|entry| entry.operation == "write_rows").count() >= 3);
}
