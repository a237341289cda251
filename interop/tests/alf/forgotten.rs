//! A person who was erased in the store, and archives that have them as a principal.

use grainstore::prelude::*;
use grainstore::{EpochMs, EraseOptions};
use grainstore_interop::Monitor;
use grainstore_interop::alf::{self, ImportOptions};
use serde_json::{Value, json};

use crate::kit::*;
use crate::vouched::running;

const LATER: i64 = 86_400_000;

/// An archive with a person, a record of them, and one of nobody.
fn archive(updated_at: &str) -> Made {
    let mine = with(
        record(1, "2026-07-02T00:00:00Z"),
        json!({"namespace": format!("principal_context:{PERSON}")}),
    );
    let other = with(record(2, "2026-07-02T00:00:00Z"), json!({"content": "plain"}));
    running(vec![mine, other]).layer("principals", principals(updated_at))
}

fn principals(updated_at: &str) -> Value {
    let profile = json!({"id": id(20), "agent_id": AGENT, "principal_id": PERSON, "version": 1,
        "updated_at": updated_at, "structured": {"name": "Ann"}});
    let robot = json!({"id": id(22), "agent_id": AGENT, "principal_id": id(21), "version": 1,
        "updated_at": "2026-07-01T00:00:00Z"});
    json!({"principals": [
        {"id": PERSON, "principal_type": "human", "profile": profile},
        {"id": id(21), "principal_type": "robot", "profile": robot},
    ]})
}

fn erase_person(world: &World) {
    world.session.erase_user(PERSON, "asked", &EraseOptions::new()).unwrap();
}

#[test]
fn a_person_who_was_erased_is_left_out_and_the_rest_is_taken() {
    for allow_purged in [false, true] {
        let world = World::new();
        let grain = BeliefBuilder::new(world.session.now(), "ann", "likes", "tea", 0.9);
        world.session.put(grain.user_id(PERSON).build().unwrap()).unwrap();
        erase_person(&world);
        let path = archive("2026-07-01T00:00:00Z").write(world.dir.path(), "in.alf");
        let options = ImportOptions { allow_purged, ..ImportOptions::default() };
        let dry = ImportOptions { dry_run: true, ..options.clone() };
        let before = world.session.audit(None, 1000).unwrap().len();
        let would = world.import_with(&path, &dry);
        assert_eq!(world.session.audit(None, 1000).unwrap().len(), before);
        let done = world.import_with(&path, &options);
        for report in [&would, &done] {
            assert_eq!((report.records.created, report.records.failed), (1, 1), "{report:?}");
            assert!(report.errors[0].message.contains("ERR_ERASED"), "{report:?}");
            assert_eq!(report.withheld, ["principals.json"]);
            assert_eq!(report.layers["principals"].created, 1);
        }
        let (out, _) = world.export();
        let kept = &out.documents["principals.json"]["principals"];
        assert_eq!(kept.as_array().unwrap().len(), 1);
        assert_eq!(kept[0]["id"], id(21));
        world.verify();
    }
}

#[test]
fn what_was_erased_but_for_the_person_is_taken_where_that_is_allowed() {
    let world = World::new();
    let path = archive("2026-07-01T00:00:00Z").write(world.dir.path(), "in.alf");
    world.import(&path);
    let plain = crate::erased::saying(&world, "plain").address;
    world.session.erase(&plain, "asked", &EraseOptions::new()).unwrap();
    erase_person(&world);
    let refused = world.import_with(&path, &ImportOptions::default());
    assert_eq!(refused.records.failed, 2);
    let options = ImportOptions { allow_purged: true, ..ImportOptions::default() };
    let report = world.import_with(&path, &options);
    assert_eq!((report.records.created, report.records.failed), (1, 1), "{report:?}");
    assert_eq!(report.withheld, ["principals.json"]);
    crate::erased::saying(&world, "plain");
}

#[test]
fn a_person_of_whom_is_more_since_they_were_erased_comes_again() {
    let world = World::new();
    let grain = BeliefBuilder::new(world.session.now(), "ann", "likes", "tea", 0.9);
    world.session.put(grain.user_id(PERSON).build().unwrap()).unwrap();
    erase_person(&world);
    world.clock.set(EpochMs::new(NOW + LATER));
    let report = world.import_with(
        &archive("2026-08-16T00:00:00Z").write(world.dir.path(), "in.alf"),
        &ImportOptions::default(),
    );
    assert_eq!((report.withheld.len(), report.layers["principals"].created), (0, 2));
}

#[test]
fn all_or_nothing_is_nothing_where_a_person_was_erased() {
    let world = World::new();
    let grain = BeliefBuilder::new(world.session.now(), "ann", "likes", "tea", 0.9);
    world.session.put(grain.user_id(PERSON).build().unwrap()).unwrap();
    erase_person(&world);
    let path = archive("2026-07-01T00:00:00Z").write(world.dir.path(), "in.alf");
    let options = ImportOptions { strict: true, ..ImportOptions::default() };
    let refused = alf::import(&world.session, &path, &options, &Monitor::default());
    assert_eq!(refused.unwrap_err().code(), "ERR_ERASED");
    assert_eq!(alf::agents(&world.session).unwrap().len(), 0);
}
