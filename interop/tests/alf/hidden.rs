//! Locks and hidden grains: what a purge may not do it does not begin, and what cannot be read goes all the same.

use grainstore::ContentAddress;
use grainstore::prelude::*;
use grainstore_interop::Monitor;
use grainstore_interop::alf::{self, ExportOptions, ImportMode, ImportOptions, PurgeScope};
use serde_json::json;

use crate::erased::{all, assert_gone};
use crate::kit::*;
use crate::purge::{SECRET, options, purge, secretive};

fn consent(withdraws: Option<&ContentAddress>) -> Grain {
    let mut grain = json!({
        "type": "consent", "subject_did": "did:web:a", "grantee_did": "did:web:b", "scope": ["store"],
        "is_withdrawal": withdraws.is_some(), "created_at": if withdraws.is_some() { 9000 } else { 1000 },
    });
    if let Some(prior) = withdraws {
        grain["prior_consent"] = json!(prior.to_string());
    }
    Grain::from_json(&grain.to_string()).unwrap()
}

/// A native grain on a consent that was withdrawn since it was exported, as the store keeps it, with its record.
fn withdrawn(world: &World, edited: bool) -> (ContentAddress, String) {
    let note = Made::of(vec![("2026-Q3", vec![record(1, "2026-07-02T00:00:00Z")])])
        .file("raw/openclaw/note.md", SECRET.as_bytes());
    world.import_made(&note);
    let basis = world.session.put(consent(None)).unwrap().address();
    let grain = json!({"type": "event", "content": SECRET, "created_at": NOW - 1000, "user_id": "ann",
        "processing_basis": basis.to_string()});
    let address =
        world.session.put(Grain::from_json(&grain.to_string()).unwrap()).unwrap().address();
    let path = world.dir.path().join("native.alf");
    let native = ExportOptions {
        agent_id: Some(AGENT.to_owned()),
        agent_name: Some("Ada".to_owned()),
        native: true,
        ..ExportOptions::default()
    };
    alf::export(&world.session, &path, &native, &Monitor::default()).unwrap();
    let records = read(&path).records;
    let (id, record) = records.iter().find(|(_, record)| record["content"] == SECRET).unwrap();
    if edited {
        let other = with(record.clone(), json!({"content": "something else altogether"}));
        world.import_made(&Made::of(vec![("2026-Q3", vec![other])]));
    }
    world.session.put(consent(Some(&basis))).unwrap();
    let hidden = world.session.inspect(&address).unwrap_err();
    assert_eq!(hidden.code(), "ERR_WITHDRAWN");
    (address, id.clone())
}

#[test]
fn what_an_ended_consent_hides_is_purged() {
    for edited in [false, true] {
        for by in 0..3 {
            let world = World::new();
            let (address, id) = withdrawn(&world, edited);
            let scope = match by {
                0 => PurgeScope::Records(vec![id.clone()]),
                1 => PurgeScope::Agent,
                _ => PurgeScope::User("ann".to_owned()),
            };
            let done = alf::purge(&world.session, &scope, &options(), &Monitor::default()).unwrap();
            // The record of a person that somebody made one of nobody stays, without what it was.
            let stays = edited && by == 2;
            assert_eq!(done.records_removed > 0, !stays, "{edited} {by}");
            // What a person said is read for the person alone; all of an agent goes unread.
            assert_eq!(done.records_unread.is_empty(), by != 0, "{edited} {by}: {done:?}");
            assert_eq!(done.raw_files_affected.len(), usize::from(by != 0), "{edited} {by}");
            if stays {
                assert!(world.export().0.records.contains_key(&id));
            }
            let erased = world.session.inspect(&address).unwrap_err();
            assert_eq!(erased.code(), "ERR_ERASED", "{edited} {by}");
            if by != 0 {
                assert_gone(&world);
            }
        }
    }
}

/// The grains of documents of a layer.
fn documents(world: &World, layer: &str) -> Vec<ContentAddress> {
    let of = |grain: &Grain| {
        let context = grain.map("context");
        let said = context.and_then(|context| context.get("alf:layer"));
        said.and_then(grainstore::format::Value::as_str) == Some(layer)
    };
    let found = all(world).into_iter().filter(|stored| of(&stored.grain().unwrap()));
    found.map(|stored| stored.address).collect()
}

fn entries(world: &World) -> (Read, u64) {
    let (read, report) = world.export();
    (read, report.sequence)
}

#[test]
fn a_hold_on_a_document_keeps_all_of_an_agent() {
    for layer in ["identity", "principal", "credentials", "files", "sealed", "manifest", "anchor"] {
        let world = World::new();
        world.import_made(&rich());
        let (before, sequence) = entries(&world);
        let held = documents(&world, layer)[0];
        world.session.hold(&held, "case 12").unwrap();
        let error = alf::purge(&world.session, &PurgeScope::Agent, &options(), &Monitor::default());
        let error = error.unwrap_err();
        assert_eq!(error.code(), "ERR_INVALIDATION_DENIED", "{layer}");
        let (mut after, after_sequence) = entries(&world);
        for name in ["created_at", "checksum"] {
            after.manifest[name] = before.manifest[name].clone();
        }
        assert!((&after, after_sequence) == (&before, sequence), "{layer}");
        let mut partial = options();
        partial.partial = true;
        let done = alf::purge(&world.session, &PurgeScope::Agent, &partial, &Monitor::default());
        // Lists of files stay with the bytes, and the bytes with their lists.
        let kept = if ["files", "sealed", "anchor"].contains(&layer) { 3 } else { 1 };
        assert_eq!(done.unwrap().documents_kept.len(), kept, "{layer}");
        assert!(world.session.exists(&held).unwrap(), "{layer}");
        assert_eq!(all(&world).len(), kept, "{layer}");
        world.export();
        world.verify();
    }
}

#[test]
fn a_hold_on_a_list_that_would_change_refuses_before_anything_goes() {
    for layer in ["files", "sealed", "attachment"] {
        let world = World::new();
        world.import_made(&secretive());
        world.export();
        let (before, sequence) = entries(&world);
        for held in documents(&world, layer) {
            world.session.hold(&held, "case 12").unwrap();
        }
        let error = purge(&world, &[2], &options()).unwrap_err();
        assert_eq!(error.code(), "ERR_INVALIDATION_DENIED", "{layer}");
        let (mut after, after_sequence) = entries(&world);
        for name in ["created_at", "checksum"] {
            after.manifest[name] = before.manifest[name].clone();
        }
        assert!((&after, after_sequence) == (&before, sequence), "{layer}");
        assert!(after.records.contains_key(&id(2)), "{layer}");
    }
}

#[test]
fn an_audit_record_that_cannot_be_written_stops_a_purge_before_it_begins() {
    let world = World::new();
    world.import_made(&secretive());
    for place in ["store/audit.jsonl", "nowhere/audit.jsonl"] {
        let mut asked = options();
        asked.audit_file = Some(world.dir.path().join(place));
        assert!(purge(&world, &[2], &asked).is_err());
        assert!(world.export().0.records.contains_key(&id(2)), "{place}");
    }
}

#[test]
fn a_part_of_an_agent_that_is_kept_can_still_leave() {
    let world = World::new();
    world.import_made(&rich());
    let (before, sequence) = entries(&world);
    let held = crate::erased::saying(&world, "memory 4").address;
    world.session.hold(&held, "case 12").unwrap();
    let mut partial = options();
    partial.partial = true;
    let done = alf::purge(&world.session, &PurgeScope::Agent, &partial, &Monitor::default());
    let done = done.unwrap();
    assert_eq!((done.records_kept, done.records_removed), (vec![id(4)], 8));
    let (after, later) = entries(&world);
    assert_eq!(after.records.len(), 1);
    assert_eq!(after.records[&id(4)], before.records[&id(4)]);
    assert!(after.documents.is_empty() && after.files.is_empty());
    assert!(later > sequence);
    // Once the hold is lifted, the rest goes.
    world.session.lift_hold(&held, "closed", None).unwrap();
    alf::purge(&world.session, &PurgeScope::Agent, &options(), &Monitor::default()).unwrap();
    assert_eq!(alf::agents(&world.session).unwrap(), []);
    assert_eq!(all(&world).len(), 0);
    world.verify();
}

#[test]
fn documents_that_were_taken_back_go_with_the_agent() {
    let world = World::new();
    let mut made = rich();
    made.entries.insert(
        "identity.json".to_owned(),
        serde_json::to_vec(&with(identity(3), json!({"prose": {"soul": SECRET}}))).unwrap(),
    );
    world.import_made(&made);
    let without = Made::of(vec![("2026-Q3", vec![record(4, "2026-07-02T00:00:00Z")])]);
    let mirror = ImportOptions { mode: ImportMode::Mirror, ..ImportOptions::default() };
    world.import_with(&without.write(world.dir.path(), "small.alf"), &mirror);
    assert!(all(&world).len() > 5);
    alf::purge(&world.session, &PurgeScope::Agent, &options(), &Monitor::default()).unwrap();
    assert_eq!(all(&world).len(), 0);
    assert_gone(&world);
}

#[test]
fn a_hidden_record_stops_nothing() {
    let world = World::new();
    let (_, id) = withdrawn(&world, false);
    let path = world.dir.path().join("a.alf-delta");
    let since = alf::DeltaOptions { since: 0, ..Default::default() };
    let told = alf::export_delta(&world.session, &path, &since, &Monitor::default()).unwrap();
    assert!(told.unwrap().created > 0);
    assert!(!world.export().0.records.contains_key(&id));
    let other = World::new();
    other.import_made(&Made::of(vec![("2026-Q3", vec![record(1, "2026-07-02T00:00:00Z")])]));
    alf::apply_delta(&other.session, &path, &ImportOptions::default(), &Monitor::default())
        .unwrap();
    assert!(!other.export().0.records.contains_key(&id));
    // The archive that has it still is taken, but for it.
    let native = world.dir.path().join("native.alf");
    let done = world.import_with(&native, &ImportOptions::default());
    assert_eq!((done.records.failed, done.records.created), (1, 0), "{done:?}");
    assert!(done.errors[0].message.contains("ERR_WITHDRAWN"), "{done:?}");
    world.verify();
}
