//! Archives that say of ids of others what is not so: a record that nobody erased can come.

use grainstore::EraseOptions;
use grainstore::prelude::*;
use grainstore_interop::Monitor;
use grainstore_interop::alf::{self, ImportOptions, ImportReport};
use serde_json::{Value, json};

use crate::erased::saying;
use crate::kit::*;
use crate::purge::{options, purge};
use crate::vouched::{carrying, running};

fn record_of(number: u32, content: &str, more: Value) -> Value {
    with(with(record(number, "2026-07-02T00:00:00Z"), json!({"content": content})), more)
}

fn import(world: &World, records: Vec<Value>) -> ImportReport {
    let path = running(records).write(world.dir.path(), "in.alf");
    alf::import(&world.session, path, &ImportOptions::default(), &Monitor::default()).unwrap()
}

fn erase(world: &World, text: &str) {
    let address = saying(world, text).address;
    world.session.erase(&address, "asked", &EraseOptions::new()).unwrap();
}

/// Stores in which record 1 was erased or purged.
fn without_one() -> [World; 2] {
    let worlds = [World::new(), World::new()];
    for world in &worlds {
        import(world, vec![record_of(1, "gone", json!({})), record_of(2, "two", json!({}))]);
    }
    erase(&worlds[0], "gone");
    purge(&worlds[1], &[1], &options()).unwrap();
    worlds
}

#[test]
fn an_id_that_calls_itself_a_change_of_what_is_gone_is_not_gone_itself() {
    for world in without_one() {
        let change = |number, of| record_of(number, "evil", json!({"x_change_of": id(of)}));
        let report = import(&world, vec![change(50, 1), change(51, 50)]);
        assert_eq!(report.records.failed, 2, "{report:?}");
        // A change of it stays out all the same, whenever it comes.
        assert_eq!(import(&world, vec![change(52, 51)]).records.failed, 1);
        assert_eq!(import(&world, vec![change(53, 52)]).records.failed, 1);
        // An honest record has the id, and a change that comes before it in the archive.
        let honest = vec![
            record_of(51, "changed", json!({"x_change_of": id(50), "supersedes": id(50)})),
            record_of(50, "honest", json!({})),
        ];
        let report = import(&world, honest);
        assert_eq!((report.records.created, report.errors), (2, Vec::new()));
        saying(&world, "honest");
        saying(&world, "changed");
        world.verify();
    }
}

#[test]
fn an_id_that_carries_what_was_erased_is_not_gone_itself() {
    let grain = Grain::from_json(
        r#"{"type": "belief", "subject": "bob", "relation": "likes", "object": "gin", "confidence": 0.9,
        "created_at": "2026-07-01T00:00:00Z"}"#,
    )
    .unwrap();
    for is_here in [false, true] {
        let world = World::new();
        if is_here {
            import(&world, vec![record_of(60, "honest", json!({}))]);
        }
        world.session.put(grain.clone()).unwrap();
        erase(&world, "gin");
        let report = import(&world, vec![carrying(60, &grain, json!({}))]);
        // Of a record that is here what it says is taken, and not what it carries.
        assert_eq!(report.records.failed, u64::from(!is_here), "{report:?}");
        let report = import(&world, vec![record_of(60, "honest too", json!({}))]);
        assert_eq!(report.errors, []);
        saying(&world, "honest too");
    }
}
