//! Everything that is written is valid by the official schemas, which are beside the checkout or where
//! `GRAINSTORE_SHARED` points.

use std::path::{Path, PathBuf};

use grainstore::prelude::*;
use grainstore_interop::Monitor;
use grainstore_interop::alf::{self, DeltaOptions, ExportOptions};
use grainstore_interop::archive::{Archive, Limits};
use grainstore_interop::json::{Value, parse};
use jsonschema::Validator;

use crate::kit::*;

fn schemas() -> Option<PathBuf> {
    let folder = shared("schemas/alf");
    if folder.is_none() {
        println!("skipped: the schemas are not there");
    }
    folder
}

fn validator(folder: &Path, name: &str) -> Validator {
    let text = std::fs::read(folder.join(format!("{name}.schema.json"))).unwrap();
    let mut schema = parse(&text).unwrap();
    open_words(&mut schema);
    jsonschema::validator_for(&schema).unwrap()
}

/// The schemas list words that validators must not insist on (ALF 8.2).
fn open_words(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.remove("enum");
            members.values_mut().for_each(open_words);
        }
        Value::Array(items) => items.iter_mut().for_each(open_words),
        _ => {}
    }
}

fn check(folder: &Path, name: &str, value: &Value) {
    let errors: Vec<_> =
        validator(folder, name).iter_errors(value).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{name}: {errors:?}\n{value}");
}

#[test]
fn what_is_exported_is_valid_by_the_official_schemas() {
    let Some(folder) = schemas() else { return };
    let world = World::new();
    world.import_made(&rich());
    let (out, _) = world.export();
    check(&folder, "manifest", &out.manifest);
    for (name, document) in &out.documents {
        check(&folder, name.trim_end_matches(".json"), document);
    }
    let records = validator(&folder, "memory-record");
    for record in out.records.values() {
        assert!(records.is_valid(record), "{record}");
    }
}

#[test]
fn deltas_and_records_of_native_grains_are_valid_by_the_official_schemas() {
    let Some(folder) = schemas() else { return };
    let world = World::new();
    world.import_made(&rich());
    for grain in [
        r#"{"type": "belief", "subject": "ann", "relation": "likes", "object": {"a": 1}, "confidence": 1,
            "created_at": "2026-07-15T10:00:00Z"}"#,
        r#"{"type": "state", "context": {"a": 1}, "created_at": "1970-01-01T00:00:00Z", "valid_to": 99999999999999}"#,
    ] {
        world.session.put(Grain::from_json(grain).unwrap()).unwrap();
    }
    let path = world.dir.path().join("out.alf");
    let native = ExportOptions { native: true, ..ExportOptions::default() };
    alf::export(&world.session, &path, &native, &Monitor::default()).unwrap();
    let records = validator(&folder, "memory-record");
    let out = read(&path);
    assert_eq!(out.records.len(), 11);
    for record in out.records.values() {
        assert!(records.is_valid(record), "{record}");
    }
    check(&folder, "manifest", &out.manifest);
    let path = world.dir.path().join("a.alf-delta");
    alf::export_delta(&world.session, &path, &DeltaOptions::default(), &Monitor::default())
        .unwrap();
    let archive = Archive::open(&path, Limits::default()).unwrap();
    for name in ["manifest.json", "delta-manifest.json"] {
        let manifest = parse(&archive.read(name, 1 << 20).unwrap().unwrap()).unwrap();
        check(&folder, "delta-manifest", &manifest);
    }
    let text = archive.read("memory/delta.jsonl", 1 << 20).unwrap().unwrap();
    for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        assert!(records.is_valid(&parse(line).unwrap()));
    }
}
