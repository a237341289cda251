//! An import is no way past a hold or a policy; and what the store does to records, an export tells.

use grainstore::VerificationStatus::Retracted;
use grainstore::cal::Query;
use grainstore::prelude::*;
use grainstore_interop::alf::{ImportMode, ImportOptions};
use serde_json::{Value, json};

use crate::kit::*;

/// The address of the grain with this content.
fn grain_of(world: &World, content: &str) -> ContentAddress {
    let found = world.session.query(&Query::default(), &PageOptions::first(100)).unwrap();
    let is_it =
        |grain: &Grain| [grain.text("object"), grain.text("content")].contains(&Some(content));
    found.results.iter().find(|row| is_it(&row.grain)).unwrap().content_address
}

#[test]
fn a_held_record_is_neither_superseded_nor_changed_nor_deleted() {
    let held = record(1, "2026-07-02T00:00:00Z");
    let other = |members: Value| with(record(2, "2026-07-03T00:00:00Z"), members);
    for (what, records) in [
        ("a successor", vec![held.clone(), other(json!({"supersedes": id(1)}))]),
        (
            "a successor of another type",
            vec![held.clone(), other(json!({"supersedes": id(1), "memory_type": "episodic"}))],
        ),
        (
            "a change record",
            vec![
                held.clone(),
                other(json!({"supersedes": id(1), "x_change_of": id(1), "status": "deleted"})),
            ],
        ),
        ("another content", vec![with(held.clone(), json!({"content": "other"}))]),
        ("another type", vec![with(held.clone(), json!({"memory_type": "episodic"}))]),
        ("a deletion", vec![with(held.clone(), json!({"status": "deleted"}))]),
        ("absence", vec![]),
    ] {
        let world = World::new();
        world.import_made(&Made::of(vec![("2026-Q3", vec![held.clone()])]));
        let address = grain_of(&world, "memory 1");
        world.session.hold(&address, "case 12").unwrap();
        let path = Made::of(vec![("2026-Q3", records)]).write(world.dir.path(), "in.alf");
        for dry_run in [true, false] {
            let mode = ImportMode::Mirror;
            let options = ImportOptions { mode, dry_run, ..ImportOptions::default() };
            let report = world.import_with(&path, &options);
            assert!(dry_run || report.records.failed == 1, "{what}: {report:?}");
            let refused =
                report.errors.iter().all(|error| error.message.contains("ERR_INVALIDATION_DENIED"));
            assert!(refused, "{what}: {report:?}");
        }
        let state = world.session.inspect(&address).unwrap().state;
        assert!(state.held && state.is_current(), "{what}");
        let (out, _) = world.export();
        assert_eq!(out.records[&id(1)], held, "{what}");
        world.verify();
    }
}

#[test]
fn what_the_store_did_to_records_is_told_by_an_export() {
    for sealed in [false, true] {
        let world = World::new();
        let (label, time) = match sealed {
            true => ("2026-Q1", "2026-02-01T00:00:00Z"),
            false => ("2026-Q3", "2026-07-02T00:00:00Z"),
        };
        let records = [1, 2, 3].map(|number| record(number, time)).to_vec();
        world.import_made(&Made::of(vec![(label, records)]));
        let (before, _) = world.export();
        let [retracted, superseded] =
            ["memory 1", "memory 2"].map(|content| grain_of(&world, content));
        world.session.set_verification(&retracted, Retracted, "a mistake", None).unwrap();
        let grain = world.session.get(&superseded).unwrap().grain().unwrap();
        let newer = BeliefBuilder::new(
            world.session.now(),
            grain.text("subject").unwrap(),
            "mg:knows",
            "newer",
            0.5,
        )
        .namespace(grain.text("namespace").unwrap());
        world.session.supersede(&superseded, newer.build().unwrap(), None).unwrap();
        for _ in 0..2 {
            let (after, report) = world.export();
            // The successor comes, then the others change.
            assert_eq!(report.sequence, 9);
            let successor = after.records.values().find(|record| record["content"] == "newer");
            assert_eq!(successor.unwrap()["supersedes"], json!(id(2)));
            match sealed {
                false => {
                    assert_eq!(after.records[&id(1)]["status"], "deleted");
                    assert_eq!(after.records[&id(2)]["status"], "superseded");
                    assert_eq!(after.records.len(), 4);
                }
                true => {
                    let name = format!("memory/partitions/{label}.jsonl");
                    assert_eq!(before.partitions[&name], after.partitions[&name]);
                    let mut of = after.records.values();
                    let change = of.find(|record| record["x_change_of"] == json!(id(1)));
                    assert_eq!(change.unwrap()["status"], "deleted");
                    assert_eq!(after.records.len(), 5);
                }
            }
        }
        world.verify();
    }
}

/// A store with a locked grain, which is a record of the agent too: the record.
fn locked() -> (World, Value) {
    let world = World::new();
    let grain = Grain::from_json(
        r#"{"type": "belief", "subject": "agent-007", "relation": "mg:must", "object": "never kill", "confidence": 0.9,
        "created_at": "2026-07-01T00:00:00Z", "invalidation_policy": {"mode": "locked", "scope": "lineage"}}"#,
    );
    world.session.put(grain.unwrap()).unwrap();
    let out = native_export(&world);
    assert_eq!(out.records.len(), 1);
    let record = out.records.into_values().next().unwrap();
    (world, record)
}

fn native_export(world: &World) -> Read {
    let path = world.dir.path().join("native.alf");
    let options = grainstore_interop::alf::ExportOptions {
        agent_id: Some(AGENT.to_owned()),
        agent_name: Some("Ada".to_owned()),
        native: true,
        ..Default::default()
    };
    let monitor = grainstore_interop::Monitor::default();
    grainstore_interop::alf::export(&world.session, &path, &options, &monitor).unwrap();
    read(&path)
}

#[test]
fn a_locked_record_is_not_taken_over_by_what_calls_itself_a_change_of_it() {
    let (world, locked) = locked();
    let lock_id = locked["id"].as_str().unwrap();
    let aside = with(
        record(7, "2026-07-02T00:00:00Z"),
        json!({"content": "always kill", "supersedes": id(99), "x_change_of": lock_id}),
    );
    let beside = with(
        record(8, "2026-07-02T00:00:00Z"),
        json!({"content": "kill", "supersedes": id(9), "x_change_of": lock_id}),
    );
    let other = record(9, "2026-07-02T00:00:00Z");
    world.import_made(&Made::of(vec![("2026-Q3", vec![aside, other, beside])]));
    let mut changed = with(locked.clone(), json!({"content": "agent-007 must kill"}));
    changed.as_object_mut().unwrap().remove("raw_source_format");
    for dry_run in [true, false] {
        let path =
            Made::of(vec![("2026-Q3", vec![changed.clone()])]).write(world.dir.path(), "in.alf");
        let options = ImportOptions { dry_run, ..ImportOptions::default() };
        let report = world.import_with(&path, &options);
        assert_eq!(report.records.failed, 1, "{report:?}");
        assert!(report.errors[0].message.contains("ERR_INVALIDATION_DENIED"), "{report:?}");
    }
    assert_eq!(native_export(&world).records[lock_id], locked);
    world.verify();
}

#[test]
fn a_locked_record_is_not_archived_or_superseded_by_its_status() {
    for status in ["deleted", "archived", "superseded"] {
        for dry_run in [true, false] {
            let (world, locked) = locked();
            let records = vec![with(locked.clone(), json!({"status": status}))];
            let path = Made::of(vec![("2026-Q3", records)]).write(world.dir.path(), "in.alf");
            let options = ImportOptions { dry_run, ..ImportOptions::default() };
            let before = world.session.audit(None, 100).unwrap().len();
            let report = world.import_with(&path, &options);
            assert_eq!(report.records.failed, 1, "{status}: {report:?}");
            let told = world.session.audit(None, 100).unwrap();
            let refused = told.iter().skip(before).filter(|entry| entry.decision == "refused");
            assert_eq!(refused.count(), usize::from(!dry_run), "{status}");
            let id = locked["id"].as_str().unwrap();
            assert_eq!(native_export(&world).records[id], locked, "{status}");
        }
    }
    // What is not locked is.
    let world = World::new();
    let first = record(1, "2026-07-02T00:00:00Z");
    world.import_made(&Made::of(vec![("2026-Q3", vec![first.clone()])]));
    let archived = with(first, json!({"status": "archived"}));
    world.import_made(&Made::of(vec![("2026-Q3", vec![archived.clone()])]));
    assert_eq!(world.export().0.records[&id(1)], archived);
}
