//! Names and numbers of an archive that a store has no use for, or no room.

use grainstore_interop::Monitor;
use grainstore_interop::alf::{self, ImportOptions};
use grainstore_interop::archive::{Archive, Limits};
use serde_json::json;

use crate::hostile::{changed, plain, refused};
use crate::kit::*;

#[test]
fn numbers_that_leave_no_room_for_those_of_the_store_are_refused() {
    let most = (1_u64 << 43) - 1;
    let error = refused(&changed(|m| m["sync"]["last_sequence"] = json!(most + 1)));
    assert_eq!(
        (error.code(), error.entry()),
        ("ERR_LIMIT", Some("manifest.json/sync/last_sequence"))
    );
    let world = World::new();
    let mut made = rich();
    made.manifest["sync"]["last_sequence"] = json!(most);
    assert_eq!(world.import_made(&made).sequence, most);
    let more = Made::of(vec![("2026-Q3", vec![record(50, "2026-07-02T00:00:00Z")])]);
    assert_eq!(world.import_made(&more).sequence, most + 1);
    let path = world.dir.path().join("a.alf-delta");
    let since = alf::DeltaOptions { since: most, ..alf::DeltaOptions::default() };
    let told =
        alf::export_delta(&world.session, &path, &since, &Monitor::default()).unwrap().unwrap();
    assert_eq!(told.created, 1);
    for name in ["base_sequence", "new_sequence"] {
        let mut made = Made::of(Vec::new());
        made.manifest = json!({
            "alf_version": "1.0.0", "created_at": "2026-08-02T00:00:00Z", "agent": {"id": AGENT},
            "sync": {"base_sequence": 7, "new_sequence": 8}, "changes": {},
        });
        made.manifest["sync"][name] = json!(u64::MAX);
        let path = made.write_raw(world.dir.path(), "b.alf-delta");
        let options = ImportOptions::default();
        let error =
            alf::apply_delta(&world.session, &path, &options, &Monitor::default()).unwrap_err();
        let entry = format!("manifest.json/sync/{name}");
        assert_eq!((error.code(), error.entry()), ("ERR_LIMIT", Some(entry.as_str())));
    }
}

#[test]
fn entries_that_the_manifest_does_not_list_are_told_where_their_names_are_of_the_standard() {
    let world = World::new();
    let secret = b"{\"plaintext\": \"sk-live-0123456789\"}";
    let reserved = [
        "memory/partitions/2025-Q1.jsonl",
        "memory/delta.jsonl",
        "Credentials.json",
        "credentials/a.json",
        "identity/soul.md",
        "principals.json",
    ];
    let mut made = plain()
        .file("notes/credentials.json", b"1")
        .file("memory/embeddings/more.jsonl", b"2")
        .file("memory/notes.json", b"3");
    for name in reserved {
        made = made.file(name, secret);
    }
    let path = made.write(world.dir.path(), "in.alf");
    let found = alf::validate(&path, Limits::default(), &Monitor::default()).unwrap();
    let mut told: Vec<_> = found.errors.iter().map(|issue| issue.path.as_str()).collect();
    told.sort_unstable();
    let mut expected = reserved;
    expected.sort_unstable();
    assert_eq!((told, found.valid), (expected.to_vec(), false));
    let report = world.import(&path);
    let told = report.warnings.iter().filter(|issue| issue.message.contains("does not list it"));
    assert_eq!((told.count(), report.layers["files"].created), (6, 3));
    let (out, _) = world.export();
    assert_eq!(
        out.files.keys().collect::<Vec<_>>(),
        ["memory/embeddings/more.jsonl", "memory/notes.json", "notes/credentials.json"]
    );
    // Purged of the file, too: a copy in what is not listed goes.
    let to = world.dir.path().join("purged.alf");
    let options = alf::PurgeOptions::new(alf::PurgeReason::UserRequest, PERSON);
    let copy = made.file("memory/old.jsonl", b"memory 1 is what it was about");
    let mut copy = copy;
    copy.partitions[0].1[0]["content"] = json!("memory 1 is what it was about");
    let path = copy.write(world.dir.path(), "copy.alf");
    let now = grainstore::EpochMs::new(NOW);
    alf::purge_archive(&path, &to, &[id(1)], now, &options, Limits::default(), &Monitor::default())
        .unwrap();
    let archive = Archive::open(&to, Limits::default()).unwrap();
    assert!(archive.entry("memory/old.jsonl").is_none());
    assert!(archive.entry("notes/credentials.json").is_some());
}
