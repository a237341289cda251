//! An archive of one person alone: what is known of them, and nothing of anybody else's.

use grainstore_interop::Monitor;
use grainstore_interop::alf::{self, DeltaOptions, ExportOptions, ImportMode, ImportOptions};
use grainstore_interop::archive::Limits;
use grainstore_interop::json::Value;
use serde_json::json;

use crate::again::normal;
use crate::kit::*;
use crate::round_trip::assert_same;

/// An agent that knows a person, with a file that is theirs and one that others share.
fn known() -> Made {
    let mut made = rich();
    let list: Value = serde_json::from_slice(&made.entries["attachments.json"]).unwrap();
    let mut list = list["attachments"].as_array().unwrap().clone();
    for (number, name, records) in
        [(42, "ann.csv", vec![id(2), id(3)]), (43, "shared.csv", vec![id(1), id(2)])]
    {
        let path = format!("artifacts/{name}");
        made = made.file(&path, name.as_bytes());
        list.push(json!({
            "id": id(number), "filename": name, "media_type": "text/csv", "size_bytes": name.len(),
            "hash": {"algorithm": "sha256", "value": sha256(name.as_bytes())}, "source_path": name,
            "archive_path": path, "remote_ref": null, "referenced_by": records,
        }));
    }
    made.layer("attachments", json!({"attachments": list}))
}

fn export_person(world: &World, person: &str) -> std::path::PathBuf {
    let path = world.dir.path().join("person.alf");
    let options = ExportOptions { of_user: Some(person.to_owned()), ..ExportOptions::default() };
    alf::export(&world.session, &path, &options, &Monitor::default()).unwrap();
    let found = alf::validate(&path, Limits::default(), &Monitor::default()).unwrap();
    assert!(found.valid, "{found:?}");
    assert!(!found.warnings.iter().any(|issue| issue.path.contains("x_of_user")));
    path
}

#[test]
fn a_person_gets_what_is_theirs_and_nothing_of_others() {
    let world = World::new();
    world.import_made(&known());
    // The bytes of whole partitions are kept from now on; a person does not get those.
    let mut more = known();
    more.partitions[1].1.push(record(60, "2026-05-02T00:00:00Z"));
    world.import_made(&more);
    let (before, exported) = world.export();
    let out = read(&export_person(&world, &PERSON.to_uppercase()));
    assert_eq!(out.records.keys().collect::<Vec<_>>(), [&id(2), &id(3)]);
    for (id, record) in &out.records {
        assert_eq!(record, &before.records[id]);
    }
    assert_eq!(out.documents.keys().collect::<Vec<_>>(), ["attachments.json", "principals.json"]);
    let principals = out.documents["principals.json"]["principals"].as_array().unwrap();
    assert_eq!((principals.len(), &principals[0]["id"]), (1, &json!(PERSON)));
    assert_eq!(out.files.keys().collect::<Vec<_>>(), ["artifacts/ann.csv"]);
    assert_eq!(out.manifest["x_of_user"], json!(PERSON.to_uppercase()));
    assert_eq!(out.manifest.get("sync"), None);
    let all = format!("{:?} {:?} {:?}", out.records, out.documents, out.manifest);
    for others in ["memory 1\"", "be kind", "shared.csv", "openai", "primary_model"] {
        assert!(!all.contains(others), "{others}");
    }
    // A name that is written wrong is not answered with "nothing is known of you".
    let nobody = ExportOptions { of_user: Some("nobody".to_owned()), ..ExportOptions::default() };
    let path = world.dir.path().join("nobody.alf");
    let error = alf::export(&world.session, &path, &nobody, &Monitor::default()).unwrap_err();
    assert_eq!((error.code(), path.exists()), ("ERR_NOT_FOUND", false));
    // The store is as it was.
    let (after, again) = world.export();
    assert_same(&before, &after);
    assert_eq!((exported.sequence, exported.partitions), (again.sequence, again.partitions));
}

#[test]
fn an_archive_of_a_person_adds_to_a_store_and_takes_nothing_away() {
    let world = World::new();
    world.import_made(&known());
    let (before, exported) = world.export();
    let path = export_person(&world, PERSON);
    let mirror = ImportOptions { mode: ImportMode::Mirror, ..ImportOptions::default() };
    let error = alf::import(&world.session, &path, &mirror, &Monitor::default()).unwrap_err();
    assert_eq!((error.code(), error.entry()), ("ERR_CONFLICT", Some("manifest.json")));
    assert_eq!(world.import(&path).records.unchanged, 2);
    let (after, _) = world.export();
    assert_same(&before, &after);
    assert_eq!(before.partitions, after.partitions);

    // A store that has a copy goes on with deltas all the same.
    let other = World::new();
    other.import(&world.dir.path().join("out.alf"));
    other.import(&path);
    let more = Made::of(vec![("2026-Q3", vec![record(70, "2026-08-01T00:00:00Z")])]);
    world.import_made(&more);
    let delta = world.dir.path().join("a.alf-delta");
    let since = DeltaOptions { since: exported.sequence, ..DeltaOptions::default() };
    alf::export_delta(&world.session, &delta, &since, &Monitor::default()).unwrap();
    let options = ImportOptions::default();
    alf::apply_delta(&other.session, &delta, &options, &Monitor::default()).unwrap();
    assert_same(&world.export().0, &other.export().0);

    // One that has nothing has the person, and is told the rest later.
    let third = World::new();
    third.import(&path);
    assert_eq!(third.export().0.records.len(), 2);
    assert_eq!(third.export().0.manifest.get("x_of_user"), None);
    assert_eq!(third.import_with(&world.dir.path().join("out.alf"), &mirror).errors, []);
    assert_same(&normal(world.export().0), &normal(third.export().0));
    third.verify();
}
