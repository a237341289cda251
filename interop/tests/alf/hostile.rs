//! Archives that lie are refused with a code and the name of the entry, and nothing of them is stored.

use grainstore_interop::alf::{self, ImportOptions};
use grainstore_interop::archive::{Archive, ArchiveWriter, Limits};
use grainstore_interop::json::Value;
use grainstore_interop::{Error, Monitor};
use serde_json::json;

use crate::kit::*;

/// Imports an archive that is refused, into a store that stays empty.
pub(crate) fn refused(made: &Made) -> Error {
    let world = World::new();
    let path = made.write(world.dir.path(), "in.alf");
    let options = ImportOptions { strict: true, ..ImportOptions::default() };
    let error = alf::import(&world.session, &path, &options, &Monitor::default()).unwrap_err();
    let stats = world.store.stats().unwrap();
    assert_eq!((stats.grains, stats.side_blobs, stats.application_rows), (0, 0, 0), "{error}");
    error
}

pub(crate) fn plain() -> Made {
    Made::of(vec![("2026-Q3", vec![record(1, "2026-07-02T00:00:00Z")])])
}

pub(crate) fn changed(change: impl FnOnce(&mut Value)) -> Made {
    let mut made = rich();
    change(&mut made.manifest);
    made
}

#[test]
fn what_cannot_be_trusted_is_refused_with_a_code_and_the_entry() {
    let layer = |name: &str, document: Value| plain().layer(name, document);
    let with_credential = |members: Value| {
        layer("credentials", json!({"credentials": [with(credential(30), members)]}))
    };
    let mut attachment = json!({"id": id(40), "filename": "a", "media_type": "text/csv", "size_bytes": 3,
        "hash": {"algorithm": "sha256", "value": sha256(b"tea")}, "source_path": "a",
        "archive_path": "artifacts/a", "remote_ref": null});
    let attachments =
        |attachment: &Value| layer("attachments", json!({"attachments": [attachment]}));
    let missing = attachments(&attachment);
    let altered = attachments(&attachment).file("artifacts/a", b"tee");
    attachment["size_bytes"] = json!(4);
    let longer = attachments(&attachment).file("artifacts/a", b"tea");
    let line = |bytes: &[u8]| {
        let mut made = plain();
        made.partitions.clear();
        made.manifest["layers"]["memory"] = json!({"record_count": 1, "index_file": "memory/index.json",
            "partitions": [{"file": "memory/a.jsonl", "from": "2026-07-01", "record_count": 1, "sealed": false}]});
        made.file("memory/a.jsonl", bytes)
    };
    let text = record(1, "2026-07-02T00:00:00Z").to_string();
    let huge = text.replace("\"active\"", "\"active\",\"confidence\":1e999");
    let twice = text.replace("\"active\"", "\"active\",\"status\":\"active\"");
    let mut bad_text = text.clone().into_bytes();
    bad_text[text.find("memory 1").unwrap()] = 0xff;
    let mut other_identity = identity(1);
    other_identity["agent_id"] = json!(PERSON);
    for (what, made, code, entry) in [
        (
            "a version of the future",
            changed(|m| m["alf_version"] = json!("2.0.0")),
            "ERR_VERSION",
            "manifest.json",
        ),
        (
            "no version",
            changed(|m| m["alf_version"] = json!("one")),
            "ERR_SCHEMA",
            "manifest.json/alf_version",
        ),
        (
            "no agent",
            changed(|m| m["agent"]["id"] = json!("ada")),
            "ERR_SCHEMA",
            "manifest.json/agent/id",
        ),
        ("no cursor", changed(|m| m["sync"] = json!([])), "ERR_SCHEMA", "manifest.json/sync"),
        (
            "a layer that is not there",
            plain().layer("identity", identity(1)).without("identity.json"),
            "ERR_INTEGRITY",
            "identity.json",
        ),
        (
            "a layer that is no JSON",
            plain().layer("identity", identity(1)).file("identity.json", b"{"),
            "ERR_CORRUPT",
            "identity.json",
        ),
        (
            "another agent's identity",
            layer("identity", other_identity),
            "ERR_SCHEMA",
            "identity.json/agent_id",
        ),
        (
            "a secret in a member",
            with_credential(json!({"plaintext": "sk-1"})),
            "ERR_SCHEMA",
            "credentials.json/credentials/0",
        ),
        (
            "a secret further in",
            with_credential(json!({"metadata": {"x": [{"Password": "hunter2"}]}})),
            "ERR_SCHEMA",
            "credentials.json/credentials/0",
        ),
        (
            "a secret in camel case",
            with_credential(json!({"apiKey": "sk-1"})),
            "ERR_SCHEMA",
            "credentials.json/credentials/0",
        ),
        (
            "a secret in an object",
            with_credential(json!({"secret": {"value": "sk-1"}})),
            "ERR_SCHEMA",
            "credentials.json/credentials/0",
        ),
        (
            "a secret in a list",
            with_credential(json!({"payload": ["sk-1"], "x": "kept"})),
            "ERR_SCHEMA",
            "credentials.json/credentials/0",
        ),
        (
            "a secret beside its algorithm",
            with_credential(
                json!({"encryption": {"algorithm": "own", "nonce": "AAAA", "token": 7}}),
            ),
            "ERR_SCHEMA",
            "credentials.json/credentials/0",
        ),
        (
            "a secret as payload with a byte that is no text",
            with_credential(json!({"encrypted_payload":
                data_encoding::BASE64.encode(b"a secret of some length \0 and more")})),
            "ERR_SCHEMA",
            "credentials.json/credentials/0",
        ),
        (
            "a secret as payload",
            with_credential(
                json!({"encrypted_payload": data_encoding::BASE64.encode(b"sk-live-0123456789")}),
            ),
            "ERR_SCHEMA",
            "credentials.json/credentials/0",
        ),
        (
            "a payload that is no base64",
            with_credential(json!({"encrypted_payload": "sk-live 1"})),
            "ERR_SCHEMA",
            "credentials.json/credentials/0/encrypted_payload",
        ),
        (
            "a nonce of another length",
            with_credential(
                json!({"encryption": {"algorithm": "xchacha20-poly1305", "nonce": "AAAA"}}),
            ),
            "ERR_SCHEMA",
            "credentials.json/credentials/0",
        ),
        (
            "an artifact that is not there",
            missing,
            "ERR_INTEGRITY",
            "attachments.json/attachments/0",
        ),
        (
            "an artifact that was altered",
            altered,
            "ERR_INTEGRITY",
            "attachments.json/attachments/0",
        ),
        ("an artifact of another size", longer, "ERR_INTEGRITY", "attachments.json/attachments/0"),
        ("a number beyond doubles", line(huge.as_bytes()), "ERR_CORRUPT", "memory/a.jsonl:1"),
        ("bad UTF-8", line(&bad_text), "ERR_CORRUPT", "memory/a.jsonl:1"),
        ("a name twice", line(twice.as_bytes()), "ERR_CORRUPT", "memory/a.jsonl:1"),
        ("no record", line(b"{}"), "ERR_SCHEMA", "memory/a.jsonl:1"),
        (
            "a record too many",
            line(format!("{text}\n{text}").as_bytes()),
            "ERR_INTEGRITY",
            "memory/a.jsonl",
        ),
    ] {
        let error = refused(&made);
        let told = error.to_string();
        assert_eq!(error.code(), code, "{what}: {told}");
        assert!(told.contains(entry), "{what}: {told}");
        assert!(!error.hint().is_empty());
    }
}

#[test]
fn one_bad_line_does_not_keep_the_others_out_unless_asked() {
    let world = World::new();
    let mut bad = record(2, "2026-07-02T00:00:00Z");
    bad.as_object_mut().unwrap().remove("source");
    let records =
        vec![record(1, "2026-07-02T00:00:00Z"), bad.clone(), record(3, "2026-07-02T00:00:00Z")];
    let made = Made::of(vec![("2026-Q3", records)]);
    let path = made.write(world.dir.path(), "in.alf");
    let report = world.import_with(&path, &ImportOptions::default());
    assert_eq!((report.records.created, report.records.failed), (2, 1));
    assert_eq!(report.errors[0].path, "memory/partitions/2026-Q3.jsonl:2");
    // With leave to fill in what it lacks, it is taken, and comes back as it was.
    let lenient = ImportOptions { lenient: true, ..ImportOptions::default() };
    let report = world.import_with(&path, &lenient);
    assert_eq!((report.records.created, report.records.unchanged), (1, 2));
    let path = world.dir.path().join("out.alf");
    alf::export(&world.session, &path, &alf::ExportOptions::default(), &Monitor::default())
        .unwrap();
    assert_eq!(read(&path).records[&id(2)], bad);
}

#[test]
fn a_dry_run_tells_the_same_and_writes_nothing() {
    let world = World::new();
    let path = rich().write(world.dir.path(), "in.alf");
    let dry = ImportOptions { dry_run: true, ..ImportOptions::default() };
    let tried = world.import_with(&path, &dry);
    assert_eq!(world.store.stats().unwrap().grains, 0);
    assert_eq!(world.store.stats().unwrap().application_rows, 0);
    let done = world.import(&path);
    assert_eq!((tried.records, tried.layers), (done.records, done.layers));
    let again = world.import_with(&path, &dry);
    assert_eq!(again.records.unchanged, 9);
}

/// The entries of an archive, changed and written again with the same manifest.
fn altered(
    world: &World,
    from: &std::path::Path,
    change: impl Fn(&str, &mut Vec<u8>),
) -> std::path::PathBuf {
    let archive = Archive::open(from, Limits::default()).unwrap();
    let path = world.dir.path().join("altered.alf");
    let mut writer = ArchiveWriter::create(&path).unwrap();
    for entry in archive.entries() {
        let mut bytes = archive.read(entry.name(), 1 << 30).unwrap().unwrap();
        change(entry.name(), &mut bytes);
        writer.add(entry.name(), &bytes[..]).unwrap();
    }
    writer.finish().unwrap();
    path
}

#[test]
fn a_file_that_was_altered_after_its_export_is_refused() {
    let world = World::new();
    world.import_made(&rich());
    world.export();
    let out = world.dir.path().join("out.alf");
    for (name, entry) in [
        ("memory/partitions/2026-Q1.jsonl", "memory/partitions/2026-Q1.jsonl"),
        ("identity.json", "manifest.json/checksum"),
        ("raw/openclaw/SOUL.md", "manifest.json/checksum"),
    ] {
        let path = altered(&world, &out, |of, bytes| {
            if of == name {
                let at = bytes.len() - 3;
                bytes[at] = if bytes[at] == b' ' { b'x' } else { b' ' };
            }
        });
        let other = World::new();
        let error =
            alf::import(&other.session, &path, &ImportOptions::default(), &Monitor::default())
                .unwrap_err();
        let told = format!("{} {error}", error.code());
        let is_told = told.starts_with("ERR_INTEGRITY") && told.contains(entry);
        assert!(
            is_told || (name == "identity.json" && error.code() == "ERR_CORRUPT"),
            "{name}: {told}"
        );
        assert_eq!(other.store.stats().unwrap().grains, 0);
    }
    // A checksum that says nothing of how it is made is kept, and not judged.
    let mut made = rich();
    made.manifest["checksum"] = json!("sha256:00");
    let other = World::new();
    let report = other.import_made(&made);
    assert!(report.warnings.iter().any(|issue| issue.path == "manifest.json/checksum"));
}

#[test]
fn lines_of_a_delta_that_do_not_fit_are_told() {
    let world = World::new();
    world.import_made(&rich());
    let line = |number: u32, operation: &str| {
        with(record(number, "2026-07-02T00:00:00Z"), json!({"operation": operation}))
    };
    let lines = [
        line(70, "update"),
        line(71, "delete"),
        line(72, "merge"),
        line(73, "create"),
        line(4, "create"),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let mut made = Made::of(Vec::new());
    made.manifest = json!({
        "alf_version": "1.0.0", "created_at": "2026-08-02T00:00:00Z", "agent": {"id": AGENT},
        "sync": {"base_sequence": 7, "new_sequence": 0}, "changes": {"memory": {"record_count": 5}},
    });
    let path =
        made.file("memory/delta.jsonl", text.as_bytes()).write_raw(world.dir.path(), "a.alf-delta");
    let apply = || {
        alf::apply_delta(&world.session, &path, &ImportOptions::default(), &Monitor::default())
            .unwrap()
    };
    let applied = apply();
    let records = applied.import.records;
    assert_eq!(
        (applied.new_sequence, records.created, records.updated, records.failed),
        (8, 2, 1, 0)
    );
    let told: Vec<_> = applied
        .import
        .warnings
        .iter()
        .map(|issue| (issue.path.rsplit(':').next().unwrap(), issue.message.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            ("3/operation", "this operation is not known: the line is passed over"),
            ("1", "a record that the store does not have is updated"),
            ("2", "a record that the store does not have is deleted"),
            ("5", "a record that the store has is created"),
        ]
    );
    assert!(apply().known);
    let (out, _) = world.export();
    assert!(out.records.values().all(|record| record.get("operation").is_none()));
}

#[test]
fn what_is_against_the_standard_and_does_no_harm_is_taken() {
    let world = World::new();
    let mut made = rich();
    made.manifest["alf_version"] = json!("1.0.0-rc.1");
    let odd = json!({"content": "", "id": "0A1B2C3D-0000-4000-8000-0000000000FF",
        "temporal": {"created_at": "2026-07-02T00:00:00Z", "observed_at": "yesterday"}});
    made.partitions[2].1.push(with(record(80, "2026-07-02T00:00:00Z"), odd.clone()));
    let path = made.write(world.dir.path(), "in.alf");
    let found = alf::validate(&path, Limits::default(), &Monitor::default()).unwrap();
    let places: Vec<_> = found.errors.iter().map(|error| error.path.as_str()).collect();
    let line = "memory/partitions/2026-Q3.jsonl:7";
    assert_eq!(
        places,
        [
            "manifest.json/alf_version",
            &format!("{line}/content"),
            &format!("{line}/temporal/observed_at")
        ]
    );
    assert_eq!(world.import(&path).records.created, 10);
    let out = world.dir.path().join("out.alf");
    alf::export(&world.session, &out, &alf::ExportOptions::default(), &Monitor::default()).unwrap();
    let record = &read(&out).records[odd["id"].as_str().unwrap()];
    assert_eq!(
        (&record["content"], &record["temporal"]["observed_at"]),
        (&json!(""), &json!("yesterday"))
    );
    assert_eq!(read(&out).manifest["alf_version"], json!("1.0.0"));
}
