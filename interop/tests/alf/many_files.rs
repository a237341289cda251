//! Archives with more names of files than a row of the log can have.

use grainstore_interop::Monitor;
use grainstore_interop::alf::{
    self, DeltaOptions, ImportOptions, PurgeOptions, PurgeReason, PurgeScope,
};

use crate::kit::{AGENT, Made, PERSON, World, id, read, record, with};

/// Files with names of 900 bytes, which say the same.
const FILES: usize = 1500;

fn many(text: &str) -> Made {
    let mut made = Made::of(vec![(
        "2026-Q3",
        vec![with(
            record(1, "2026-07-02T00:00:00Z"),
            serde_json::json!({"content": "Ann keeps the key under the mat"}),
        )],
    )]);
    made.manifest["raw_sources"] = serde_json::json!(["openclaw"]);
    for number in 0..FILES {
        let name = format!("raw/openclaw/{number:05}-{}.md", "x".repeat(880));
        made = made.file(&name, text.as_bytes());
    }
    made
}

#[test]
fn an_archive_with_many_files_goes_in_and_out_and_on_as_a_delta_and_is_purged() {
    let [world, other] = [World::new(), World::new()];
    let first = many("Ann keeps the key under the mat");
    let report = world.import_made(&first);
    assert_eq!(report.layers["files"].created, FILES as u64);
    let (out, exported) = world.export();
    assert_eq!(out.files.len(), FILES);
    other.import(&world.dir.path().join("out.alf"));
    assert_same_files(&world, &other);
    world.import_made(&many("Ann keeps the key under the mat, still"));
    let path = world.dir.path().join("next.alf-delta");
    let since = DeltaOptions { since: exported.sequence, ..DeltaOptions::default() };
    alf::export_delta(&world.session, &path, &since, &Monitor::default()).unwrap().unwrap();
    alf::apply_delta(&other.session, &path, &ImportOptions::default(), &Monitor::default())
        .unwrap();
    assert_same_files(&world, &other);
    let asked = PurgeOptions::new(PurgeReason::UserRequest, PERSON);
    let scope = PurgeScope::Records(vec![id(1)]);
    alf::purge(&world.session, &scope, &asked, &Monitor::default()).unwrap();
    assert_eq!(world.export().0.files.len(), 0, "of {AGENT}");
    world.verify();
}

fn assert_same_files(world: &World, other: &World) {
    let [left, right] = [world, other].map(|one| one.export().0.files);
    assert!(left == right && left.len() == FILES);
    let path = other.dir.path().join("out.alf");
    assert_eq!(read(&path).files.len(), FILES);
}
