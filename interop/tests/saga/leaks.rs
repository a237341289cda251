//! What an export leaves out is in no other part of it: memories, files, layers that nobody knows.

use crate::export::{Setup, consent, plain, recipient, redact};
use crate::support::*;
use grainstore::prelude::*;
use grainstore_interop::saga::{
    Classification, Container, ContainerFile, Document, ExportOptions, ExportType, ImportOptions,
    ItemType, Layer, Level, Operation, export_container, import_container, import_document,
    write_container,
};
use serde_json::json;
use std::io::Read;

fn bytes(container: &Container, name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    container.reader(name).unwrap().unwrap().read_to_end(&mut bytes).unwrap();
    bytes
}

/// The grains of the long-term memory, as text.
fn memory_of(container: &Container) -> String {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("memory.mg");
    std::fs::write(&file, bytes(container, "memory/longterm.bin")).unwrap();
    let (other, _) = crate::export::open(&dir.path().join("other"));
    other.import([&file], &grainstore::ImportOptions::default()).unwrap();
    let all = other.query(&Query::default(), &PageOptions::first(1000)).unwrap();
    format!("{:?}", all.results.iter().map(|row| row.grain.fields()).collect::<Vec<_>>())
}

fn native(setup: &Setup) {
    let session = &setup.session;
    let tea = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9);
    session.put(tea.namespace("agent:aria").build().unwrap()).unwrap();
    let said = EventBuilder::new(session.now(), "alice said hello").namespace("agent:aria");
    session.put(said.build().unwrap()).unwrap();
}

#[test]
fn a_memory_with_grains_has_none_of_the_layers_that_an_export_leaves_out() {
    let setup = Setup::new();
    native(&setup);
    let base = ExportOptions { grains: Some(Query::default()), ..plain(ExportType::Full) };
    let whole = memory_of(&setup.export(&base).unwrap());
    assert!(whole.contains("Secret merger") && whole.contains("alice"));
    let scope = [Layer::Identity, Layer::Memory];
    let layered = ExportOptions {
        layers: Some(scope.to_vec()),
        grains: Some(Query::default()),
        ..plain(ExportType::Full)
    };
    let narrowed = ExportOptions {
        consent: Some(consent(Operation::Export, &scope)),
        grains: Some(Query::default()),
        ..plain(ExportType::Full)
    };
    for options in [layered, narrowed] {
        let memory = memory_of(&setup.export(&options).unwrap());
        assert!(!memory.contains("Secret merger") && memory.contains("alice"), "{memory}");
    }
}

#[test]
fn a_memory_has_nothing_that_the_redaction_took_out_of_the_document() {
    let setup = Setup::new();
    native(&setup);
    let org = other_evm();
    let mut decided = redact();
    let portable = Classification::AgentPortable;
    decided.classifications.set(ItemType::MemoryLayer, "memory.longTerm", portable);
    let options = ExportOptions {
        redact: Some(decided),
        organization: Some(&org),
        native_items: true,
        grains: Some(Query::default()),
        ..plain(ExportType::Full)
    };
    let container = setup.export(&options).unwrap();
    assert!(!container.document().canonical().unwrap().contains("alice said"));
    let memory = memory_of(&container);
    assert!(memory.contains("prefers"), "{memory}");
    for gone in ["alice said", "Secret merger", "Prompt of the house"] {
        assert!(!memory.contains(gone), "{gone}");
    }
}

#[test]
fn a_redaction_takes_out_layers_and_members_that_nobody_knows() {
    let mut value = envelope("full", full_layers());
    value["x_root"] = json!("ledger of the root");
    value["layers"]["x_layer"] = json!({"says": "ledger of the layer"});
    value["layers"]["taskHistory"]["summary"]["x_sum"] = json!("ledger of the sum");
    value["layers"]["relationships"]["peers"][0]["x_peer"] = json!("ledger of the peer");
    value["layers"]["relationships"]["principals"][0]["x_one"] = json!("ledger of the principal");
    let mut document = Document::from_value(value).unwrap();
    let manifest = document.redact(&redact(), None).unwrap();
    let text = document.canonical().unwrap();
    assert!(!text.contains("ledger"), "{text}");
    for id in ["x_layer", "taskHistory.summary.x_sum", "document.x_root"] {
        assert!(manifest.entries.iter().any(|entry| entry.id == id), "{id}");
    }
}

#[test]
fn a_redaction_takes_out_nothing_held_with_a_whole_layer_or_a_native_item() {
    let setup = Setup::new();
    let session = &setup.session;
    let org = other_evm();
    let options = |native_items: bool| ExportOptions {
        redact: Some(redact()),
        organization: Some(&org),
        grains: native_items.then(|| {
            Query::default().within(grainstore::cal::Reach::Exact("agent:aria".to_owned()))
        }),
        native_items,
        ..plain(ExportType::Full)
    };
    // A part that is encrypted, of a layer that is held.
    let mut boxed = Document::from_value(envelope("full", full_layers())).unwrap();
    boxed.encrypt("memory.episodic", &[recipient()]).unwrap();
    boxed.sign(&evm()).unwrap();
    import_document(session, &boxed, &ImportOptions::default()).unwrap();
    let states = Query::default()
        .of_types(grainstore::cal::TypeSet::of(grainstore::format::GrainType::State))
        .within(grainstore::cal::Reach::Exact(format!("saga:eip155:8453:{EVM_ADDRESS}:memory")));
    let rows = session.query(&states, &PageOptions::first(50)).unwrap().results;
    let layer = rows.iter().find(|row| format!("{:?}", row.grain.fields()).contains("ciphertext"));
    let layer = layer.unwrap().content_address;
    session.hold(&layer, "case 12").unwrap();
    let refused = setup.export(&options(false)).unwrap_err();
    assert_eq!(refused.code(), "ERR_INVALIDATION_DENIED");
    assert_eq!(refused.entry(), Some("memory"));
    session.lift_hold(&layer, "closed", None).unwrap();
    // A goal that was not born in SAGA.
    let goal = GoalBuilder::new(session.now(), "buy the ledger", "satisfied");
    let goal = session.put(goal.namespace("agent:aria").build().unwrap()).unwrap().address();
    session.hold(&goal, "case 13").unwrap();
    let id = format!("task_{}", goal.to_string().get(..20).unwrap());
    let mut decided = options(true);
    let mut how = redact();
    how.classifications.set(ItemType::Task, id.as_str(), Classification::OrgConfidential);
    decided.redact = Some(how);
    let refused = setup.export(&decided).unwrap_err();
    assert_eq!(refused.code(), "ERR_INVALIDATION_DENIED");
    assert_eq!(refused.entry(), Some(format!("task {id}").as_str()));
}

#[test]
fn what_says_it_is_encrypted_and_is_not_is_refused_and_encrypted() {
    let scheme = "x25519-xsalsa20-poly1305";
    let fakes = [
        json!({"encrypted": true, "scheme": scheme, "recipients": [], "bio": "plain words"}),
        json!({"encrypted": true, "scheme": scheme, "recipients": []}),
        json!({"encrypted": true, "scheme": scheme, "recipients": [{"payload": "plain words"}]}),
        json!({"encrypted": true, "recipients": [], "bio": "plain words"}),
    ];
    for fake in fakes {
        let mut layers = full_layers();
        layers["persona"] = fake.clone();
        let document = signed(envelope("full", layers), &evm());
        let found = document.validate(NOW);
        let worst = found.of_level(Level::Error).next();
        assert_eq!(worst.map(|it| it.path.as_str()), Some("layers.persona"), "{fake}");
        let mut document = document;
        assert!(document.encrypt("persona", &[recipient()]).unwrap(), "{fake}");
        assert!(!document.canonical().unwrap().contains("plain words"));
    }
}

#[test]
fn grains_do_not_stand_in_plain_beside_a_memory_that_is_encrypted() {
    let setup = Setup::new();
    native(&setup);
    let mut document = Document::from_value(envelope("full", full_layers())).unwrap();
    document.encrypt("memory", &[recipient()]).unwrap();
    document.sign(&evm()).unwrap();
    import_document(&setup.session, &document, &ImportOptions::default()).unwrap();
    let options = ExportOptions {
        grains: Some(Query::default()),
        native_items: true,
        recipients: vec![recipient()],
        ..plain(ExportType::Backup)
    };
    let refused = setup.export(&options).unwrap_err();
    assert_eq!((refused.code(), refused.entry()), ("ERR_CONFLICT", Some("memory")));
    assert!(!setup.path("out.saga").exists());
}

#[test]
fn every_file_of_an_encrypted_memory_is_encrypted_and_of_a_redacted_one_left_out() {
    let setup = Setup::new();
    let secret = b"vectors of the ledger, second part";
    let mut layers = full_layers();
    layers["memory"]["longTerm"] = json!({
        "type": "vector-store", "format": "saga-memory-v1", "vectorCount": 2,
        "storageRef": {"type": "inline", "ref": "store/vectors.bin",
            "checksum": format!("sha256:{}", ContentAddress::of(secret))},
    });
    let document = signed(envelope("full", layers), &evm());
    let path = setup.path("second.saga");
    let files = vec![
        ContainerFile::new("store/vectors.bin", &secret[..]),
        ContainerFile::new("memory/longterm.2", &secret[..]),
    ];
    write_container(&path, &document, files, NOW, &evm()).unwrap();
    import_container(&setup.session, &path, &ImportOptions::default()).unwrap();
    let options = ExportOptions { recipients: vec![recipient()], ..ExportOptions::default() };
    let container = setup.export(&options).unwrap();
    for name in ["store/vectors.bin", "memory/longterm.2"] {
        let file = bytes(&container, name);
        assert!(!file.windows(6).any(|window| window == b"ledger"), "{name}");
        let boxes: serde_json::Value = serde_json::from_slice(&file).unwrap();
        assert!(boxes["recipients"].is_array(), "{name}");
    }
    let org = other_evm();
    let options = ExportOptions {
        redact: Some(redact()),
        organization: Some(&org),
        ..plain(ExportType::Full)
    };
    let out = setup.path("redacted.saga");
    export_container(&setup.session, &out, &options, &evm()).unwrap();
    let container = Container::open(&out, Default::default()).unwrap();
    assert!(!container.files().any(|name| name.contains("vectors") || name.contains("longterm")));
}

#[test]
fn events_that_came_encrypted_are_in_no_file_in_plain() {
    let setup = Setup::new();
    let mut document = Document::from_value(envelope("full", full_layers())).unwrap();
    document.encrypt("memory.episodic", &[recipient()]).unwrap();
    document.sign(&evm()).unwrap();
    let path = setup.path("boxed.saga");
    let lines = &b"{\"summary\": \"of the ledger\"}\n"[..];
    let files = vec![ContainerFile::new("memory/episodic.jsonl", lines)];
    write_container(&path, &document, files, NOW, &evm()).unwrap();
    import_container(&setup.session, &path, &ImportOptions::default()).unwrap();
    let without = setup.export(&plain(ExportType::Backup)).unwrap_err();
    assert_eq!(without.code(), "ERR_KEY");
    let options = ExportOptions { recipients: vec![recipient()], ..plain(ExportType::Backup) };
    let file = bytes(&setup.export(&options).unwrap(), "memory/episodic.jsonl");
    assert!(!file.windows(6).any(|window| window == b"ledger"));
}

#[test]
fn a_held_grain_of_a_layer_that_is_not_asked_for_refuses_no_redaction() {
    let setup = Setup::new();
    let session = &setup.session;
    let goal = GoalBuilder::new(session.now(), "buy the ledger", "satisfied");
    let goal = session.put(goal.namespace("agent:aria").build().unwrap()).unwrap().address();
    session.hold(&goal, "case 13").unwrap();
    let org = other_evm();
    let options = ExportOptions {
        layers: Some(vec![Layer::Identity, Layer::Memory]),
        redact: Some(redact()),
        organization: Some(&org),
        grains: Some(Query::default()),
        native_items: true,
        ..plain(ExportType::Full)
    };
    let container = setup.export(&options).unwrap();
    assert!(container.document().layer(Layer::TaskHistory).is_none());
}

#[test]
fn a_redaction_does_not_leak_around_itself() {
    let mut value = envelope("full", full_layers());
    value["privacy"] = json!({"note": "ledger", "encryptedLayers": [{"a": "ledger"}]});
    let layers = &mut value["layers"];
    let task = &mut layers["taskHistory"]["recentTasks"][0];
    task["outcome"] = json!("the ledger was false");
    task["classifiedBy"] = json!("a ledger clerk");
    task["policyRule"] = json!("ledger-rule");
    task["skillTags"] = json!([{"x": "ledger"}]);
    task["durationSeconds"] = json!("ledger");
    task["ledger_name"] = json!(1);
    let event = &mut layers["memory"]["episodic"]["events"][0];
    event["significance"] = json!({"a": "ledger"});
    event["timestamp"] = json!("when the ledger came");
    layers["memory"]["shortTerm"]["maxTokens"] = json!({"a": "ledger"});
    let workflow = &mut layers["memory"]["procedural"]["workflows"][0];
    workflow["name"] = json!("Ledger fraud");
    workflow["classification"] = json!("org-confidential");
    let mut document = signed(value, &evm());
    let manifest = document.redact(&redact(), Some(&other_evm())).unwrap();
    let text = document.canonical().unwrap().to_lowercase();
    assert!(!text.contains("ledger"), "{text}");
    let removed: Vec<_> =
        manifest.entries.iter().filter(|it| it.id.starts_with("workflow_")).collect();
    assert_eq!(removed.len(), 1, "{manifest:?}");
    // Done again, it stays as it is.
    let before = document.clone();
    document.redact(&redact(), Some(&other_evm())).unwrap();
    assert_eq!(document, before);
}
