//! What a store refuses of SAGA: invalid documents, and ways past what protects a grain.

use crate::store::{SECRET, full_value, open, plain_export, take};
use crate::support::*;
use grainstore::prelude::*;
use grainstore_interop::saga::{
    Document, ExportOptions, ExportType, ImportOptions, Layer, SignatureVerdict, Signer,
    export_container, import_container, import_document, stored_document,
};
use serde_json::{Value, json};

/// A document that is not to be taken.
struct Bad {
    name: &'static str,
    change: fn(&mut Value),
    /// True if it is signed after the change.
    signs: bool,
    code: &'static str,
    entry: &'static str,
}

const BAD: [Bad; 8] = [
    Bad {
        name: "altered",
        change: |it| it["layers"]["persona"]["bio"] = json!("other"),
        signs: false,
        code: "ERR_SIGNATURE",
        entry: "signature",
    },
    Bad {
        name: "unsigned",
        change: |it| drop(it.as_object_mut().unwrap().remove("signature")),
        signs: false,
        code: "ERR_SCHEMA",
        entry: "signature",
    },
    Bad {
        name: "a bad event",
        change: |it| it["layers"]["memory"]["episodic"]["events"][1]["eventId"] = json!(7),
        signs: true,
        code: "ERR_SCHEMA",
        entry: "layers.memory.episodic.events[1].eventId",
    },
    Bad {
        name: "no identity",
        change: |it| drop(it["layers"].as_object_mut().unwrap().remove("identity")),
        signs: false,
        code: "ERR_SCHEMA",
        entry: "layers.identity",
    },
    Bad {
        name: "plaintext in the vault",
        change: |it| it["layers"]["vault"]["items"][0]["fields"] = json!({"password": SECRET}),
        signs: true,
        code: "ERR_SCHEMA",
        entry: "layers.vault.items[0].fields",
    },
    Bad {
        name: "a vault that privacy does not list",
        change: |it| it["privacy"] = json!({}),
        signs: true,
        code: "ERR_SCHEMA",
        entry: "privacy.encryptedLayers",
    },
    Bad {
        name: "a memory in a profile",
        change: |it| it["exportType"] = json!("profile"),
        signs: true,
        code: "ERR_SCHEMA",
        entry: "layers.memory",
    },
    Bad {
        name: "a consent that is none",
        change: |it| it["consent"] = json!({"operation": "export"}),
        signs: true,
        code: "ERR_SCHEMA",
        entry: "consent.grantedBy",
    },
];

#[test]
fn what_is_not_valid_or_not_signed_is_refused_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let session = open(dir.path());
    for Bad { name, change, signs, code, entry } in BAD {
        let mut value = signed(full_value(), &evm()).to_value();
        change(&mut value);
        let mut document = Document::from_value(value).unwrap();
        if signs {
            document.sign(&evm()).unwrap();
        }
        let refused = import_document(&session, &document, &ImportOptions::default()).unwrap_err();
        assert_eq!((refused.code(), refused.entry()), (code, Some(entry)), "{name}: {refused}");
        assert!(!refused.to_string().contains(SECRET));
        let stats = session.store().stats().unwrap();
        assert_eq!((stats.grains, stats.side_blobs), (0, 0), "{name}");
    }
}

#[test]
fn a_message_only_signature_is_taken_only_where_it_is_allowed() {
    let dir = tempfile::tempdir().unwrap();
    let session = open(dir.path());
    let mut value =
        signed(envelope("identity", json!({"identity": evm_identity()})), &evm()).to_value();
    let message = value["signature"]["message"].as_str().unwrap().to_owned();
    value["signature"]["sig"] = json!(evm().sign(message.as_bytes()).unwrap());
    let document = Document::from_value(value).unwrap();
    let refused = import_document(&session, &document, &ImportOptions::default()).unwrap_err();
    assert_eq!(refused.code(), "ERR_SIGNATURE");
    let allowed = ImportOptions { allow_message_only: true, ..ImportOptions::default() };
    let report = import_document(&session, &document, &allowed).unwrap();
    assert_eq!(report.signature, SignatureVerdict::MessageOnly);
}

#[test]
fn an_import_is_no_way_past_a_lock_or_a_hold() {
    let dir = tempfile::tempdir().unwrap();
    let session = open(dir.path());
    take(&session, &signed(full_value(), &evm()));
    let events = session
        .query(
            &Query::default()
                .of_types(grainstore::cal::TypeSet::of(grainstore::format::GrainType::Event)),
            &PageOptions::first(10),
        )
        .unwrap();
    let event = events
        .results
        .iter()
        .find(|row| row.grain.text("content").unwrap().contains("auth layer"))
        .unwrap();
    session.hold(&event.content_address, "case 12").unwrap();
    let before = session.store().stats().unwrap().grains;
    let vault = stored_document(&session, evm().wallet())
        .unwrap()
        .unwrap()
        .layer(Layer::Vault)
        .unwrap()
        .clone();
    let mut value = full_value();
    value["layers"]["vault"] = vault;
    // One that only changes, and one that was redacted.
    for summary in ["something else", grainstore_interop::saga::REDACTED_TEXT] {
        value["layers"]["memory"]["episodic"]["events"][0]["summary"] = json!(summary);
        value["layers"]["persona"]["name"] = json!(summary);
        let refused =
            import_document(&session, &signed(value.clone(), &evm()), &ImportOptions::default())
                .unwrap_err();
        assert_eq!(refused.code(), "ERR_INVALIDATION_DENIED");
        assert_eq!(refused.entry(), Some("memory: event evt_1"));
        assert_eq!(session.store().stats().unwrap().grains, before);
    }
    let stored = stored_document(&session, evm().wallet()).unwrap().unwrap();
    assert_eq!(stored.verify(), SignatureVerdict::Verified);
}

#[test]
fn the_identity_of_an_agent_never_changes() {
    let dir = tempfile::tempdir().unwrap();
    let session = open(dir.path());
    take(&session, &signed(full_value(), &evm()));
    for (name, value) in [
        ("handle", json!("other")),
        ("parentSagaId", json!("saga_0")),
        ("createdAt", json!("2026-01-16T08:00:00Z")),
    ] {
        let mut changed = full_value();
        changed["layers"]["identity"][name] = value;
        changed["layers"]["identity"]["cloneDepth"] =
            json!(if name == "parentSagaId" { 1 } else { 0 });
        let document = signed(changed, &evm());
        let refused = import_document(&session, &document, &ImportOptions::default()).unwrap_err();
        assert_eq!(refused.code(), "ERR_CONFLICT", "{name}");
    }
}

#[test]
fn an_item_is_no_successor_in_disguise_of_a_locked_grain() {
    let dir = tempfile::tempdir().unwrap();
    let session = open(dir.path());
    take(&session, &signed(full_value(), &evm()));
    // The operator locks what the agent is said to know.
    let beliefs = Query::default().when(Predicate::text_is("relation", "mg:knows").unwrap());
    let known = session.query(&beliefs, &PageOptions::first(10)).unwrap().results;
    let typescript =
        known.iter().find(|row| row.grain.text("object") == Some("TypeScript")).unwrap();
    let mut fields = typescript.grain.fields().clone();
    let policy = [("mode".to_owned(), "locked".into())].into();
    fields.insert("invalidation_policy".to_owned(), grainstore::format::Value::Map(policy));
    fields.remove("derived_from");
    let locked = Grain::from_fields(fields).unwrap();
    let locked = session.supersede(&typescript.content_address, locked, Some("reviewed")).unwrap();
    let grains = session.store().stats().unwrap().grains;
    // As it is it may be imported again, and changed it may not.
    let same = stored_document(&session, evm().wallet()).unwrap().unwrap();
    assert_eq!(same.verify(), SignatureVerdict::Verified);
    take(&session, &same);
    let mut changed = same.to_value();
    changed["layers"]["memory"]["semantic"]["expertise"]["TypeScript"]["level"] = json!("familiar");
    take(&session, &signed(changed.clone(), &evm()));
    assert!(session.get(&locked).unwrap().state.is_current());
    assert_eq!(session.store().stats().unwrap().grains, grains + 2);
    // A grain that says it takes the place of the locked one, in a long-term memory.
    let rival = BeliefBuilder::new(session.now(), evm().wallet().did(), "mg:knows", "nothing", 0.9)
        .namespace(typescript.grain.text("namespace").unwrap())
        .derived_from(vec![locked.to_string().into()]);
    let other_dir = tempfile::tempdir().unwrap();
    let other = open(other_dir.path());
    let rival = other.put(rival.build().unwrap()).unwrap().address();
    take(&other, &signed(changed, &evm()));
    let files = tempfile::tempdir().unwrap();
    let container = files.path().join("rival.saga");
    let options = ExportOptions {
        export_type: Some(ExportType::Backup),
        grains: Some(Query::default().at_address(rival)),
        ..plain_export()
    };
    export_container(&other, &container, &options, &evm()).unwrap();
    let report = import_container(&session, &container, &ImportOptions::default()).unwrap();
    let grains = report.grains.unwrap();
    assert!(grains.conflict_count + grains.refused >= 1, "{grains:?}");
    assert!(session.get(&locked).unwrap().state.is_current());
    assert_eq!(session.store().verify(true).unwrap().problems, []);
}

#[test]
fn a_session_that_is_not_the_operator_s_imports_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let session = open(dir.path());
    let team = session
        .part(SessionOptions { namespace: Some("team".into()), ..SessionOptions::default() });
    let document = signed(full_value(), &evm());
    let refused = import_document(&team, &document, &ImportOptions::default()).unwrap_err();
    assert_eq!(refused.code(), "ERR_ACCESS");
    assert_eq!(session.store().stats().unwrap().grains, 0);
}
