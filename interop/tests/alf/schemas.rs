//! Everything that is written is valid by the official schemas, which are beside the checkout or where
//! `GRAINSTORE_SHARED` points.

use std::path::{Path, PathBuf};

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
