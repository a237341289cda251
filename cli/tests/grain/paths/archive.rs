//! ALF archives put together by hand, of what the store itself exported.

use grainstore::format::ContentAddress;
use grainstore_interop::archive::{Archive, ArchiveWriter, Limits};
use serde_json::{Value, json};

use super::world::{Asker, World, bytes};

pub(super) const AGENT: &str = "0a1b2c3d-0000-4000-8000-00000000000a";
const PARTITION: &str = "memory/partitions/2026-Q1.jsonl";

/// The records of the store, which keeps its grains as records from here on; and the place of a target's among them.
pub(super) fn records(world: &mut World, place: usize) -> (Vec<Value>, usize) {
    let path = world.place.path().join("native.alf");
    if !path.exists() {
        let asker = world.asker;
        world.serve(Asker::Operator);
        let name = json!({ "path": path, "agent_id": AGENT, "agent_name": "Ada", "native": true });
        let exported = world.asked("alf_export", &name);
        assert!(exported["result"].is_object(), "{exported}");
        let kept = world.asked("alf_import", &json!({ "path": path }));
        assert_eq!(kept["result"]["records"]["failed"], json!(0), "{kept}");
        world.serve(asker);
    }
    let archive = Archive::open(&path, Limits::default()).unwrap();
    let lines = archive.read(PARTITION, 1 << 24).unwrap().unwrap();
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let records: Vec<Value> = lines.map(|line| serde_json::from_slice(line).unwrap()).collect();
    let is_it = |record: &Value| {
        let blob = bytes(&record["raw_source_format"]["blob"]);
        ContentAddress::of(&blob).to_string() == world.addresses[place]
    };
    let at = records.iter().position(is_it).unwrap();
    (records, at)
}

/// The record of a target.
pub(super) fn record(world: &mut World, place: usize) -> Value {
    let (mut records, at) = records(world, place);
    records.swap_remove(at)
}

/// The record of a target with something else in it.
pub(super) fn changed(world: &mut World, place: usize) -> Value {
    let mut record = record(world, place);
    record["content"] = json!("gone");
    record
}

/// A record that says it takes the place of that of a target.
pub(super) fn successor(world: &mut World, place: usize) -> Value {
    let old = record(world, place);
    json!({
        "id": format!("019bc119-0200-7000-8000-{place:012x}"), "agent_id": AGENT, "content": "gone",
        "memory_type": "semantic", "source": { "runtime": "grainstore" }, "status": "active",
        "namespace": "team", "supersedes": old["id"],
        "temporal": { "created_at": "2026-01-16T10:00:00Z" },
    })
}

/// Imports an archive of these records, which takes out what it does not have where it is a mirror.
pub(super) fn import(world: &mut World, records: &[Value], mirror: bool) {
    let path = world.place.path().join("in.alf");
    let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
    let manifest = json!({
        "alf_version": "1.0.0", "created_at": "2026-08-01T00:00:00Z",
        "agent": { "id": AGENT, "name": "Ada", "source_runtime": "grainstore" },
        "layers": { "memory": {
            "record_count": records.len(), "index_file": "memory/index.json",
            "partitions": [{
                "file": PARTITION, "from": "2026-01-01", "to": "2026-03-31", "sealed": true,
                "record_count": records.len(),
            }],
        } },
        "sync": { "last_sequence": 99 },
    });
    let mut writer = ArchiveWriter::create(&path).unwrap();
    writer.add("manifest.json", manifest.to_string().as_bytes()).unwrap();
    writer.add(PARTITION, lines.as_bytes()).unwrap();
    writer.finish().unwrap();
    world.asked("alf_import", &json!({ "path": path, "mirror": mirror }));
    std::fs::remove_file(path).unwrap();
}
