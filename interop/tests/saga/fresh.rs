//! What is older does not take the place of what is newer, and what was erased does not come back.

use crate::export::{Setup, consent, open, redact};
use crate::support::*;
use grainstore::EpochMs;
use grainstore::prelude::*;
use grainstore_interop::saga::{
    Classification, ClassifiedBy, Document, ImportOptions, ItemType, Layer, NewItem, OldVersions,
    Operation, Secrets, Signer, Vault, VaultKey, VaultType, classify_item, erase_agent,
    import_document, store_vault, stored_classifications, stored_document, withdraw_consent,
};
use serde_json::json;

fn at(text: &str, id: &str) -> Document {
    let mut value = envelope("full", full_layers());
    value["exportedAt"] = json!(text);
    value["documentId"] = json!(id);
    value["layers"]["persona"]["bio"] = json!(id);
    signed(value, &evm())
}

#[test]
fn an_older_document_is_refused_after_a_newer_one_unless_it_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let (session, _) = open(dir.path());
    let newer = at("2026-03-20T09:00:00Z", "saga_b");
    let older = at("2026-03-19T09:00:00Z", "saga_a");
    import_document(&session, &newer, &ImportOptions::default()).unwrap();
    let refused = import_document(&session, &older, &ImportOptions::default()).unwrap_err();
    assert_eq!((refused.code(), refused.entry()), ("ERR_CONFLICT", Some("exportedAt")));
    assert_eq!(stored_document(&session, evm().wallet()).unwrap().unwrap(), newer);
    import_document(&session, &newer, &ImportOptions::default()).unwrap();
    let asked = ImportOptions { allow_older: true, ..ImportOptions::default() };
    import_document(&session, &older, &asked).unwrap();
    assert_eq!(stored_document(&session, evm().wallet()).unwrap().unwrap(), older);
}

/// A document with an artifact whose reference alone is whole, and what a redaction left of it.
fn whole_and_redacted(
    organization: &str,
    decided: &[(ItemType, &str, Classification)],
) -> (Document, Document) {
    let mut value = envelope("full", full_layers());
    value["layers"]["taskHistory"]["artifacts"][0]["name"] = json!("[redacted] before");
    let whole = signed(value, &evm());
    let mut redacted = whole.clone();
    let mut how = redact();
    how.organization = organization.to_owned();
    for (item_type, id, class) in decided {
        how.classifications.set(*item_type, *id, *class);
    }
    redacted.redact(&how, Some(&other_evm())).unwrap();
    redacted.sign(&evm()).unwrap();
    (whole, redacted)
}

/// Decides that all is the agent's, but for these.
fn all_but(
    but: &[(ItemType, &'static str, Classification)],
) -> Vec<(ItemType, &'static str, Classification)> {
    let (whole, _) = whole_and_redacted("company_flowstate", &[]);
    let of_agent = |it: grainstore_interop::saga::ClassifiedItem| {
        let id: &'static str = it.id.leak();
        (it.item_type, id, Classification::AgentPortable)
    };
    let mut all: Vec<_> = whole.classified(&Default::default()).into_iter().map(of_agent).collect();
    all.push((ItemType::Relationship, "relationships", Classification::AgentPortable));
    all.extend(but);
    all
}

#[test]
fn a_redacted_document_does_not_replace_what_is_whole_unless_it_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let (session, _) = open(dir.path());
    let (whole, redacted) = whole_and_redacted("company_flowstate", &[]);
    import_document(&session, &whole, &ImportOptions::default()).unwrap();
    let grains = session.store().stats().unwrap().grains;
    let refused = import_document(&session, &redacted, &ImportOptions::default()).unwrap_err();
    assert_eq!(refused.code(), "ERR_CONFLICT", "{refused}");
    assert!(refused.to_string().contains("redacted"), "{refused}");
    assert_eq!(session.store().stats().unwrap().grains, grains);
    assert_eq!(stored_document(&session, evm().wallet()).unwrap().unwrap(), whole);
    let asked = ImportOptions { allow_older: true, ..ImportOptions::default() };
    import_document(&session, &redacted, &asked).unwrap();
    assert_eq!(stored_document(&session, evm().wallet()).unwrap().unwrap(), redacted);
    // What was redacted replaces what was redacted, and the whole replaces it.
    import_document(&session, &redacted, &ImportOptions::default()).unwrap();
    import_document(&session, &whole, &ImportOptions::default()).unwrap();
    // Elsewhere, where nothing is, it is taken.
    let dir = tempfile::tempdir().unwrap();
    let (session, _) = open(dir.path());
    import_document(&session, &redacted, &ImportOptions::default()).unwrap();
    import_document(&session, &redacted, &ImportOptions::default()).unwrap();
}

#[test]
fn every_kind_of_redaction_is_told_from_the_whole() {
    use Classification::{OrgConfidential, OrgInternal};
    let (prompt, memory) = (ItemType::SystemPrompt, ItemType::MemoryLayer);
    let cases = [
        (ItemType::Task, "task_1", OrgInternal),
        (ItemType::Task, "task_1", OrgConfidential),
        (ItemType::EpisodicEvent, "evt_1", OrgInternal),
        (ItemType::EpisodicEvent, "evt_1", OrgConfidential),
        (ItemType::Artifact, "artifact_1", OrgInternal),
        (ItemType::Artifact, "artifact_1", OrgConfidential),
        (memory, "memory.shortTerm", OrgInternal),
        (memory, "memory.shortTerm", OrgConfidential),
        (prompt, "cognitive.systemPrompt", OrgInternal),
        (prompt, "cognitive.systemPrompt", OrgConfidential),
        (ItemType::Relationship, "relationships", OrgInternal),
        (ItemType::Relationship, "relationships", OrgConfidential),
    ];
    let taken = |(whole, redacted): (Document, Document)| {
        let dir = tempfile::tempdir().unwrap();
        let (session, _) = open(dir.path());
        import_document(&session, &whole, &ImportOptions::default()).unwrap();
        import_document(&session, &redacted, &ImportOptions::default())
            .map_or_else(|error| error.code(), |_| "")
    };
    for case in cases {
        let documents = whole_and_redacted("nobody", &all_but(&[case]));
        assert_eq!(taken(documents), "ERR_CONFLICT", "{case:?}");
    }
    // The counts of an organization, and nothing.
    assert_eq!(taken(whole_and_redacted("company_flowstate", &all_but(&[]))), "ERR_CONFLICT");
    assert_eq!(taken(whole_and_redacted("nobody", &all_but(&[]))), "");
}

#[test]
fn a_redacted_document_that_replaces_nothing_whole_is_taken() {
    let dir = tempfile::tempdir().unwrap();
    let (session, _) = open(dir.path());
    let (whole, redacted) = whole_and_redacted("company_flowstate", &[]);
    let mut value = whole.to_value();
    let layers = value["layers"].as_object_mut().unwrap();
    layers.retain(|name, _| ["identity", "persona", "skills"].contains(&name.as_str()));
    import_document(&session, &signed(value, &evm()), &ImportOptions::default()).unwrap();
    import_document(&session, &redacted, &ImportOptions::default()).unwrap();
    // A change that is none of the redaction's goes on being one.
    let mut value = redacted.to_value();
    value["layers"]["persona"]["name"] = json!("another");
    value["layers"]["taskHistory"]["recentTasks"][0]["status"] = json!("failed");
    import_document(&session, &signed(value, &evm()), &ImportOptions::default()).unwrap();
}

fn note(text: &str) -> NewItem {
    NewItem::new(VaultType::Note, "codes", Secrets::of([("content", text)]).unwrap())
}

#[test]
fn an_older_vault_brings_no_share_back() {
    let setup = Setup::new();
    let session = &setup.session;
    let (agent, key) = (evm().wallet().clone(), VaultKey::from_wallet_key([0x11; 32]));
    let mut vault = Vault::create(NOW).unwrap();
    vault.add(note("1"), &key, NOW).unwrap();
    let grant = grainstore_interop::saga::Grant {
        recipient: "0xann".into(),
        key: box_key().public_key(),
        permission: grainstore_interop::saga::Permission::Read,
        items: Vec::new(),
        granted_by: "0xagent".into(),
        expires_at: None,
    };
    vault.share(&grant, &key, NOW).unwrap();
    store_vault(session, &agent, &vault, OldVersions::Erase).unwrap();
    let shared = vault.clone();
    vault.revoke("0xann", &key, EpochMs::new(NOW.get() + 1)).unwrap();
    store_vault(session, &agent, &vault, OldVersions::Erase).unwrap();
    let refused = store_vault(session, &agent, &shared, OldVersions::Erase).unwrap_err();
    assert_eq!(refused.code(), "ERR_CONFLICT");
    // In a document that is newer, the vault may be an older one all the same.
    let mut layers = full_layers();
    layers["vault"] = shared.to_value();
    let mut value = envelope("full", layers);
    value["exportedAt"] = json!("2026-03-21T10:00:00Z");
    value["privacy"] = json!({"encryptedLayers": ["vault"]});
    let document = signed(value, &evm());
    let refused = import_document(session, &document, &ImportOptions::default()).unwrap_err();
    assert_eq!((refused.code(), refused.entry()), ("ERR_CONFLICT", Some("layers.vault.version")));
    // Of one version, the one that was changed last is the newer.
    let before = vault.clone();
    vault.add(note("2"), &key, EpochMs::new(NOW.get() + 2000)).unwrap();
    store_vault(session, &agent, &vault, OldVersions::Erase).unwrap();
    let refused = store_vault(session, &agent, &before, OldVersions::Erase).unwrap_err();
    assert_eq!(refused.code(), "ERR_CONFLICT");
}

#[test]
fn an_erasure_reaches_all_versions_of_what_an_ended_consent_hides() {
    let setup = Setup::new();
    let (other, clock) = open(&setup.path("other"));
    let agent = evm().wallet().clone();
    let document = |title: &str| {
        let mut value = envelope("transfer", full_layers());
        value["layers"]["taskHistory"]["recentTasks"][0]["title"] = json!(title);
        value["consent"] = consent(Operation::Transfer, Layer::ALL);
        signed(value, &evm())
    };
    import_document(&other, &document("first title"), &ImportOptions::default()).unwrap();
    let second = document("second title");
    import_document(&other, &second, &ImportOptions::default()).unwrap();
    let admin = ClassifiedBy::Policy;
    let long = "t".repeat(2000);
    let class = Classification::Public;
    classify_item(&other, &agent, ItemType::Task, &long, class, &admin, None).unwrap();
    clock.set(EpochMs::new(NOW.get() + 1000));
    withdraw_consent(&other, &agent, Operation::Transfer).unwrap();
    let report = erase_agent(&other, &agent, "the agent asked", None).unwrap();
    assert!(report.kept.is_empty(), "{report:#?}");
    assert_eq!(other.store().stats().unwrap().grains, 0, "{report:#?}");
    let decided = stored_classifications(&other, &agent).unwrap();
    assert_eq!(decided.of(ItemType::Task, &long), None);
    // The same documents bring nothing back, whatever consent they come with.
    let mut value = second.to_value();
    value.as_object_mut().unwrap().remove("consent");
    value["exportType"] = json!("full");
    let refused = import_document(&other, &signed(value, &evm()), &ImportOptions::default());
    assert_eq!(refused.unwrap_err().code(), "ERR_ERASED");
    assert_eq!(other.store().stats().unwrap().grains, 0);
    // What the agent exports after that is another matter.
    let mut value = envelope("full", json!({"identity": full_layers()["identity"]}));
    value["exportedAt"] = json!("2026-03-20T11:00:00Z");
    import_document(&other, &signed(value, &evm()), &ImportOptions::default()).unwrap();
}

#[test]
fn an_item_that_was_erased_does_not_come_back_on_another_consent() {
    let setup = Setup::new();
    let (other, _) = open(&setup.path("other"));
    let mut value = envelope("transfer", full_layers());
    value["consent"] = consent(Operation::Transfer, Layer::ALL);
    let with_consent = signed(value, &evm());
    let without = signed(envelope("full", full_layers()), &evm());
    for (first, second) in [(&with_consent, &without), (&without, &with_consent)] {
        let dir = tempfile::tempdir().unwrap();
        let (session, _) = open(dir.path());
        import_document(&session, first, &ImportOptions::default()).unwrap();
        let events = Query::default()
            .of_types(grainstore::cal::TypeSet::of(grainstore::format::GrainType::Event));
        let row = session.query(&events, &PageOptions::first(1)).unwrap().results.remove(0);
        session.erase(&row.content_address, "a mistake", &grainstore::EraseOptions::new()).unwrap();
        let refused = import_document(&session, second, &ImportOptions::default()).unwrap_err();
        assert_eq!(refused.code(), "ERR_ERASED");
    }
    drop(other);
}

/// Erases every grain of an agent, in any state, whose text has one of these.
fn erase_saying(session: &Session, texts: &[&str]) -> usize {
    let all = Query::default().seeing(grainstore::cal::Visibility::EVERYTHING);
    let found = session.query(&all, &PageOptions::first(1000)).unwrap().results;
    let says = |row: &&grainstore::QueryMatch| {
        let text = serde_json::to_string(&row.grain).unwrap();
        texts.iter().any(|said| text.contains(said))
    };
    let addresses: Vec<_> = found.iter().filter(says).map(|row| row.content_address).collect();
    for address in &addresses {
        session.erase(address, "a mistake", &grainstore::EraseOptions::new()).unwrap();
    }
    addresses.len()
}

#[test]
fn an_item_that_was_erased_stays_erased_whatever_came_before_it() {
    let document = |at: &str, told: &str, skill: &str| {
        let mut value = envelope("full", full_layers());
        value["exportedAt"] = json!(at);
        value["layers"]["memory"]["episodic"]["events"][0]["summary"] = json!(told);
        value["layers"]["skills"]["selfReported"][0]["name"] = json!(skill);
        signed(value, &evm())
    };
    let days = ["2026-03-20T10:00:00Z", "2026-03-20T11:00:00Z", "2026-03-20T12:00:00Z"];
    let take = |session: &Session, document: &Document| {
        import_document(session, document, &ImportOptions::default())
    };
    for (erased, texts) in [
        (document(days[1], "a secret", "brewing"), &["first words", "a secret"][..]),
        (document(days[1], "first words", "a secret"), &["a secret"]),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let (session, _) = open(dir.path());
        take(&session, &document(days[0], "first words", "brewing")).unwrap();
        take(&session, &erased).unwrap();
        assert!(erase_saying(&session, texts) >= texts.len());
        let before = session.store().stats().unwrap().grains;
        let mut later = erased.to_value();
        later["exportedAt"] = json!(days[2]);
        for again in [&erased, &signed(later, &evm())] {
            let refused = take(&session, again).unwrap_err();
            assert_eq!(refused.code(), "ERR_ERASED", "{texts:?}");
            assert!(refused.entry().is_some_and(|entry| entry.contains(": ")), "{refused:?}");
        }
        assert_eq!(session.store().stats().unwrap().grains, before);
    }
}

#[test]
fn a_former_version_of_an_item_that_was_erased_stays_erased() {
    let document = |hour: u32, told: &str| {
        let mut value = envelope("full", full_layers());
        value["exportedAt"] = json!(format!("2026-03-20T{hour}:00:00Z"));
        value["layers"]["memory"]["episodic"]["events"][0]["summary"] = json!(told);
        value["layers"]["persona"]["name"] = json!(told);
        signed(value, &evm())
    };
    let dir = tempfile::tempdir().unwrap();
    let (session, _) = open(dir.path());
    for (hour, told) in [(10, "a secret"), (11, "harmless")] {
        import_document(&session, &document(hour, told), &ImportOptions::default()).unwrap();
    }
    assert_eq!(erase_saying(&session, &["a secret"]), 2);
    let refused = import_document(&session, &document(12, "a secret"), &ImportOptions::default());
    assert_eq!(refused.unwrap_err().code(), "ERR_ERASED");
    import_document(&session, &document(12, "something else"), &ImportOptions::default()).unwrap();
}

/// What an import leaves that is cut off between grains and rows.
fn cut_off(session: &Session) {
    let application = format!("saga:{}", evm().wallet());
    for table in [1_u8, 4] {
        let range = grainstore::RowRange::BytesAfter(None);
        let page = session.rows(&application, table, &range, 1000).unwrap();
        assert!(!page.rows.is_empty());
        let remove = |row: &grainstore::ApplicationRow| {
            grainstore::RowChange::remove(application.as_str(), table, row.key.clone())
        };
        session.write_rows(page.rows.iter().map(remove)).unwrap();
    }
}

#[test]
fn what_an_import_that_was_cut_off_has_left_is_gone_on_from_and_erased_with_the_agent() {
    let document = |hour: u32, told: &str| {
        let mut value = envelope("full", full_layers());
        value["exportedAt"] = json!(format!("2026-03-20T{hour}:00:00Z"));
        value["layers"]["memory"]["episodic"]["events"][0]["summary"] = json!(told);
        value["layers"]["persona"]["name"] = json!(told);
        signed(value, &evm())
    };
    let dir = tempfile::tempdir().unwrap();
    let (session, _) = open(dir.path());
    let take = |document: &Document| {
        import_document(&session, document, &ImportOptions::default()).unwrap()
    };
    take(&document(10, "older"));
    let current = || session.query(&Query::default(), &PageOptions::first(1000)).unwrap().results;
    let before = current().len();
    cut_off(&session);
    let newer = document(11, "newer");
    take(&newer);
    assert_eq!(current().len(), before);
    assert!(
        !current().iter().any(|row| serde_json::to_string(&row.grain).unwrap().contains("older"))
    );
    assert_eq!(stored_document(&session, evm().wallet()).unwrap().unwrap(), newer);
    cut_off(&session);
    let report = erase_agent(&session, evm().wallet(), "the agent asked", None).unwrap();
    assert!(report.kept.is_empty(), "{report:#?}");
    assert_eq!(session.store().stats().unwrap().grains, 0, "{report:#?}");
}
