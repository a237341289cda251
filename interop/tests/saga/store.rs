//! SAGA in a store: what goes in comes out, and what is refused leaves nothing.

use std::path::Path;

use crate::support::*;
use grainstore::prelude::*;
use grainstore::{EpochMs, ManualClock};
use grainstore_interop::json;
use grainstore_interop::saga::{
    Document, ExportOptions, ExportType, ImportOptions, Layer, Level, NewItem, Secrets,
    SignatureVerdict, Signer, Vault, VaultKey, VaultType, export_document, import_document,
    stored_document,
};
use serde_json::{Value, json};

/// A store of which the time is [`NOW`].
pub(crate) fn open(dir: &Path) -> Session {
    open_at(dir, NOW)
}

fn open_at(dir: &Path, now: EpochMs) -> Session {
    let clock = std::sync::Arc::new(ManualClock::following());
    clock.set(now);
    let store = Store::open(dir, &OpenOptions::new().create(true).clock(clock)).unwrap();
    store.session(SessionOptions::default())
}

fn with_vault(mut layers: Value) -> (Value, Vault) {
    let key = VaultKey::from_wallet_key([0x11; 32]);
    let mut vault = Vault::create(NOW).unwrap();
    let login =
        NewItem::new(VaultType::Login, "mail", Secrets::of([("password", SECRET)]).unwrap());
    vault.add(login, &key, NOW).unwrap();
    layers["vault"] = vault.to_value();
    (layers, vault)
}

pub(crate) const SECRET: &str = "open sesame 4711";

pub(crate) fn full_value() -> Value {
    let (mut layers, _) = with_vault(full_layers());
    layers["memory"]["longTerm"] = json!({
        "type": "vector-store", "embeddingModel": "m", "dimensions": 3, "vectorCount": 2, "format": "saga-memory-v1",
        "storageRef": {"type": "ipfs", "ref": "ipfs://Qm", "checksum": "sha256:00"}, "encrypted": false, "encryptedFor": [],
    });
    let mut value = envelope("full", layers);
    value["createdAt"] = json!("2026-03-20T09:00:00Z");
    value["privacy"] = json!({"encryptedLayers": ["vault"], "redactedFields": []});
    value
}

pub(crate) fn take(
    session: &Session,
    document: &Document,
) -> grainstore_interop::saga::ImportReport {
    import_document(session, document, &ImportOptions::default()).unwrap()
}

pub(crate) fn plain_export() -> ExportOptions<'static> {
    ExportOptions { plain_long_term: true, ..ExportOptions::default() }
}

#[test]
fn a_document_comes_back_as_it_was_with_its_signature() {
    let dir = tempfile::tempdir().unwrap();
    let session = open(dir.path());
    let document = signed(full_value(), &evm());
    let report = take(&session, &document);
    assert_eq!(report.layers.len(), 9);
    assert_eq!((report.items.replaced, report.items.unchanged), (0, 0));
    let stored = stored_document(&session, evm().wallet()).unwrap().unwrap();
    assert_eq!(stored, document);
    assert_eq!(stored.verify(), SignatureVerdict::Verified);
    let again = take(&session, &document).items;
    assert_eq!((again.added, again.replaced, again.unchanged), (0, 0, report.items.added));
    assert_eq!(session.store().verify(true).unwrap().problems, []);
}

#[test]
fn an_export_has_every_field_of_every_layer_and_is_signed_and_valid() {
    let dir = tempfile::tempdir().unwrap();
    let session = open(dir.path());
    let document = signed(full_value(), &evm());
    take(&session, &document);
    let (exported, report) = export_document(&session, &plain_export(), &evm()).unwrap();
    for layer in Layer::ALL {
        let (was, is) = (document.layer(*layer).unwrap(), exported.layer(*layer).unwrap());
        assert!(json::equal(was, is), "{layer}: {is:#}");
    }
    assert_eq!(exported.verify(), SignatureVerdict::Verified);
    assert_eq!(exported.validate(NOW).of_level(Level::Error).count(), 0);
    assert!(report.absent.is_empty());
    if let Some(schema) = official_schema() {
        assert!(schema.is_valid(&exported.published_part()));
    }
    // And once more through another store.
    let other_dir = tempfile::tempdir().unwrap();
    let other = open(other_dir.path());
    take(&other, &exported);
    assert_eq!(stored_document(&other, evm().wallet()).unwrap().unwrap(), exported);
}

#[test]
fn each_type_of_export_has_its_layers() {
    let dir = tempfile::tempdir().unwrap();
    let session = open(dir.path());
    take(&session, &signed(full_value(), &evm()));
    let schema = official_schema();
    for export_type in ExportType::ALL {
        let options = ExportOptions { export_type: Some(*export_type), ..plain_export() };
        let (exported, report) = export_document(&session, &options, &evm()).unwrap();
        let expected: Vec<_> =
            Layer::ALL.iter().copied().filter(|layer| export_type.has(*layer)).collect();
        assert_eq!(report.layers, expected, "{export_type}");
        let validation = exported.validate(NOW);
        assert_eq!(validation.of_level(Level::Error).count(), 0, "{:#?}", validation.findings);
        if let Some(schema) = &schema {
            assert!(schema.is_valid(&exported.published_part()), "{export_type}");
        }
        grainstore_interop::saga::unfreeze(&session, evm().wallet()).unwrap();
    }
}

#[test]
fn items_become_grains_that_are_found_as_such() {
    let dir = tempfile::tempdir().unwrap();
    let session = open(dir.path());
    take(&session, &signed(full_value(), &evm()));
    let count = |query: &str| session.ask(query).unwrap().answer.grains_given().len();
    assert_eq!(count(r#"RECALL events"#), 2);
    assert_eq!(count(r#"RECALL workflows"#), 1);
    assert_eq!(count(r#"RECALL goals WHERE goal_state = "active""#), 1);
    assert_eq!(count(r#"RECALL goals WHERE goal_state = "suspended""#), 1);
    assert_eq!(count(r#"RECALL beliefs WHERE relation = "mg:knows""#), 2);
    assert_eq!(count(r#"RECALL beliefs WHERE relation = "mg:has_capability""#), 5);
    assert_eq!(count(r#"RECALL beliefs WHERE relation = "saga:peer_of""#), 1);
}

#[test]
fn a_newer_document_supersedes_what_changed_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let session = open(dir.path());
    take(&session, &signed(full_value(), &evm()));
    let mut value = full_value();
    value["documentId"] = json!("saga_test0002");
    // The vault has other keys each time.
    value["layers"]["vault"] = stored_document(&session, evm().wallet())
        .unwrap()
        .unwrap()
        .layer(Layer::Vault)
        .unwrap()
        .clone();
    value["layers"]["memory"]["episodic"]["events"][0]["summary"] = json!("Rewrote the auth layer");
    value["layers"]["taskHistory"]["recentTasks"].as_array_mut().unwrap().remove(3);
    let changed = signed(value, &evm());
    let items = take(&session, &changed).items;
    // The event; the list of tasks; the new envelope.
    assert_eq!((items.added, items.replaced), (1, 2));
    assert_eq!(stored_document(&session, evm().wallet()).unwrap().unwrap(), changed);
}

#[test]
fn unknown_words_and_members_are_kept_unless_the_import_is_strict() {
    let dir = tempfile::tempdir().unwrap();
    let session = open(dir.path());
    let mut value = full_value();
    value["x_root"] = json!({"a": [1, null]});
    value["layers"]["x_layer"] = json!({"b": 2});
    value["layers"]["persona"]["profileType"] = json!("robot");
    value["layers"]["memory"]["x_sub"] = json!([{}]);
    value["layers"]["taskHistory"]["recentTasks"][0]["status"] = json!("dreaming");
    let document = signed(value, &evm());
    let strict = ImportOptions { strict: true, ..ImportOptions::default() };
    assert_eq!(import_document(&session, &document, &strict).unwrap_err().code(), "ERR_SCHEMA");
    let report = take(&session, &document);
    assert!(report.warnings.iter().any(|finding| finding.path == "layers.persona.profileType"));
    assert_eq!(stored_document(&session, evm().wallet()).unwrap().unwrap(), document);
}

#[test]
fn an_identity_document_touches_no_other_layer() {
    let dir = tempfile::tempdir().unwrap();
    let session = open(dir.path());
    take(&session, &signed(full_value(), &evm()));
    let mut value = envelope("identity", json!({"identity": full_layers()["identity"]}));
    value["documentId"] = json!("saga_id");
    let identity = signed(value, &evm());
    let report = take(&session, &identity);
    assert_eq!((report.items.added, report.items.replaced, report.items.unchanged), (1, 0, 1));
    assert_eq!(stored_document(&session, evm().wallet()).unwrap().unwrap(), identity);
    let (exported, _) = export_document(&session, &plain_export(), &evm()).unwrap();
    assert_eq!(exported.layers().count(), 9);
}

#[test]
fn a_cancelled_import_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let session = open(dir.path());
    let options = ImportOptions::default();
    options.monitor.cancel.cancel();
    let refused = import_document(&session, &signed(full_value(), &evm()), &options).unwrap_err();
    assert_eq!(refused.code(), "ERR_TIMEOUT");
    assert_eq!(session.store().stats().unwrap().grains, 0);
}

/// Every byte that the files of a directory have.
fn bytes_of(dir: &Path) -> Vec<u8> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => all.extend(bytes_of(&path)),
            false => all.extend(std::fs::read(path).unwrap()),
        }
    }
    all
}

#[test]
fn no_plaintext_of_the_vault_is_in_any_file_of_the_store() {
    let dir = tempfile::tempdir().unwrap();
    let store_dir = dir.path().join("store");
    let session = open(&store_dir);
    let document = signed(full_value(), &evm());
    take(&session, &document);
    let vault = Vault::from_value(document.layer(Layer::Vault).unwrap().clone()).unwrap();
    let id = vault.item_ids().next().unwrap().to_owned();
    let opened = vault.open(&id, &VaultKey::from_wallet_key([0x11; 32])).unwrap();
    assert_eq!(opened.get("password").as_deref().map(String::as_str), Some(SECRET));
    let (exported, _) = export_document(&session, &plain_export(), &evm()).unwrap();
    assert!(!exported.canonical().unwrap().contains(SECRET));
    session.store().flush().unwrap();
    let bytes = bytes_of(&store_dir);
    let has = |text: &[u8]| bytes.windows(text.len()).any(|window| window == text);
    assert!(
        !has(SECRET.as_bytes()) && !has(data_encoding::BASE64.encode(SECRET.as_bytes()).as_bytes())
    );
    assert!(!has(&[0x11; 32]));
    // Nothing of the vault is found by words either.
    for word in ["mail", "login"] {
        let found =
            session.query(&Query::default().searching(word), &PageOptions::first(10)).unwrap();
        assert!(found.results.is_empty(), "{word}");
    }
}

#[test]
fn values_of_any_size_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let session = open(dir.path());
    let mut value = full_value();
    let layers = &mut value["layers"];
    layers["memory"]["episodic"]["events"][0]["summary"] = json!("tea \u{e9} ".repeat(300_000));
    layers["taskHistory"]["recentTasks"][0]["summary"] = json!("t".repeat(1_500_000));
    layers["persona"]["x_large"] = json!(vec!["é"; 400_000]);
    let document = signed(value, &evm());
    take(&session, &document);
    let stored = stored_document(&session, evm().wallet()).unwrap().unwrap();
    assert!(stored == document);
    assert_eq!(stored.verify(), SignatureVerdict::Verified);
    assert_eq!(take(&session, &document).items.replaced, 0);
    assert_eq!(session.store().verify(true).unwrap().problems, []);
}

#[test]
fn an_item_that_was_erased_or_written_by_hand_is_told_or_taken_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let session = open(dir.path());
    let document = signed(full_value(), &evm());
    take(&session, &document);
    let find = |query: Query| session.query(&query, &PageOptions::first(20)).unwrap().results;
    let goals = find(
        Query::default()
            .of_types(grainstore::cal::TypeSet::of(grainstore::format::GrainType::Goal)),
    );
    let secret =
        goals.iter().find(|row| row.grain.text("description") == Some("Secret merger")).unwrap();
    session.erase(&secret.content_address, "a mistake", &grainstore::EraseOptions::new()).unwrap();
    let auth =
        goals.iter().find(|row| row.grain.text("description") == Some("Refactor auth")).unwrap();
    let by_hand = GoalBuilder::new(session.now(), "Refactor auth, done", "satisfied")
        .namespace(auth.grain.text("namespace").unwrap());
    session.supersede(&auth.content_address, by_hand.build().unwrap(), None).unwrap();
    let events = find(
        Query::default()
            .of_types(grainstore::cal::TypeSet::of(grainstore::format::GrainType::Event)),
    );
    let event = events.iter().find(|row| row.grain.number("importance") == Some(0.85)).unwrap();
    let by_hand = EventBuilder::new(session.now(), "what really happened");
    let by_hand = by_hand.namespace(event.grain.text("namespace").unwrap());
    session.supersede(&event.content_address, by_hand.build().unwrap(), None).unwrap();
    let (exported, report) = export_document(&session, &plain_export(), &evm()).unwrap();
    assert_eq!(report.absent, ["taskHistory: task task_2"]);
    let event = &exported.layer(Layer::Memory).unwrap()["episodic"]["events"][0];
    let expected = json!({
        "eventId": "evt_1", "type": "interaction", "timestamp": "2026-03-20T10:00:00Z",
        "summary": "what really happened",
    });
    assert_eq!(event, &expected);
    let tasks = &exported.layer(Layer::TaskHistory).unwrap()["recentTasks"];
    let expected =
        json!({"taskId": "task_1", "title": "Refactor auth, done", "status": "completed"});
    assert_eq!(tasks[0], expected);
    assert_eq!(exported.validate(NOW).of_level(Level::Error).count(), 0);
    // Erased is erased: the document does not bring it back.
    let again = import_document(&session, &document, &ImportOptions::default()).unwrap_err();
    assert_eq!(again.code(), "ERR_ERASED");
}

#[test]
fn an_encrypted_store_keeps_documents_as_any_other_does() {
    let dir = tempfile::tempdir().unwrap();
    let store_dir = dir.path().join("store");
    let options = OpenOptions::new().create(true).key(grainstore::MasterKey::new([9; 32]));
    let session = Store::open(&store_dir, &options).unwrap().session(SessionOptions::default());
    let document = signed(full_value(), &evm());
    take(&session, &document);
    assert!(stored_document(&session, evm().wallet()).unwrap().unwrap() == document);
    session.store().flush().unwrap();
    let bytes = bytes_of(&store_dir);
    let has = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(
        !has("Refactored the auth layer") && !has("Prompt of the house") && !has("saga_test0001")
    );
    assert_eq!(session.store().verify(true).unwrap().problems, []);
}

#[test]
fn an_import_that_was_interrupted_is_completed_by_the_same_import() {
    let dir = tempfile::tempdir().unwrap();
    let session = open(dir.path());
    let document = signed(full_value(), &evm());
    take(&session, &document);
    // The grain of a vault item is there, and what lies beside it is not.
    let vault = Query::default()
        .of_types(grainstore::cal::TypeSet::of(grainstore::format::GrainType::State));
    let rows = session.query(&vault, &PageOptions::first(100)).unwrap().results;
    let is_secret =
        |grain: &Grain| grain.texts("structural_tags").any(|tag| tag == "sec:credential");
    for row in rows.iter().filter(|row| is_secret(&row.grain)) {
        let reference = row.grain.list("content_refs").unwrap()[0].as_map().unwrap();
        let uri = reference["uri"].as_str().unwrap().trim_start_matches("cas://sha256:");
        let owner = grainstore::Owner::Grain(row.content_address);
        assert!(session.remove_side_blob(&uri.parse().unwrap(), owner).unwrap());
    }
    assert!(stored_document(&session, evm().wallet()).is_err());
    let items = take(&session, &document).items;
    assert_eq!((items.added, items.replaced), (0, 2));
    assert!(stored_document(&session, evm().wallet()).unwrap().unwrap() == document);
}
