//! Archives of before a purge come again, and bring back nothing of it.

use grainstore_interop::alf::{self, DeltaOptions, ImportMode, ImportOptions, PurgeScope};
use grainstore_interop::archive::Limits;
use grainstore_interop::{Monitor, json as own_json};
use serde_json::json;

use crate::erased::{all, assert_gone};
use crate::kit::*;
use crate::purge::{SECRET, options, purge, secretive};

/// An agent whose second quarter has secrets alone.
fn all_secret() -> Made {
    let mut made = secretive();
    made.partitions[1].1[1]["content"] = json!(format!("again: {SECRET}"));
    made
}

#[test]
fn files_and_sealed_bytes_of_before_do_not_come_again() {
    for mode in [ImportMode::Merge, ImportMode::Mirror] {
        let world = World::new();
        let path = all_secret().write(world.dir.path(), "before.alf");
        world.import(&path);
        world.export();
        purge(&world, &[2, 3, 60], &options()).unwrap();
        let files = world.export().0.files;
        let options = ImportOptions { mode, ..ImportOptions::default() };
        let again = world.import_with(&path, &options);
        assert_eq!(again.records.failed, 3);
        assert_gone(&world);
        assert_eq!(
            again.withheld,
            [
                "artifacts/a.csv",
                "memory/embeddings/vectors.bin",
                "memory/partitions/2026-Q2.jsonl",
                "raw/openclaw/log.jsonl",
                "raw/openclaw/memory/secret.md"
            ]
        );
        for name in &again.withheld {
            assert!(again.warnings.iter().any(|issue| issue.path == *name), "{again:?}");
        }
        let (after, _) = world.export();
        assert_eq!(after.files, files);
        let attachment = &after.documents["attachments.json"]["attachments"][0];
        assert_eq!(attachment["archive_path"], json!(null));
        assert_gone(&world);
        // Unless that is what is asked for.
        let meant = ImportOptions { allow_purged: true, ..options };
        let meant = world.import_with(&path, &meant);
        assert_eq!((meant.records.failed, meant.withheld.len()), (0, 0));
        let (after, _) = world.export();
        assert_eq!(after.files.len(), 6);
        assert_eq!(after.records[&id(2)]["content"], json!(SECRET));
        assert_eq!(world.import_with(&path, &ImportOptions::default()).withheld, [""; 0]);
    }
}

#[test]
fn an_older_archive_with_other_files_brings_no_copy_either() {
    let world = World::new();
    let made = secretive();
    world.import_made(&made);
    purge(&world, &[2], &options()).unwrap();
    let older = made
        .file(
            "raw/openclaw/older.json",
            format!("{{\"a\": \"{}\"}}", SECRET.replace('c', "\\u0063")).as_bytes(),
        )
        .file("raw/openclaw/memory/secret.md", b"an earlier state of the same file")
        .file("raw/openclaw/new.md", b"of something else");
    let path = older.write(world.dir.path(), "older.alf");
    let again = world.import_with(&path, &ImportOptions::default());
    assert!(again.withheld.contains(&"raw/openclaw/older.json".to_owned()), "{again:?}");
    let files = world.export().0.files;
    assert!(files.contains_key("raw/openclaw/new.md"));
    assert!(!files.contains_key("raw/openclaw/older.json"));
    assert!(!files.contains_key("raw/openclaw/memory/secret.md"));
}

#[test]
fn a_file_without_its_record_does_not_come_again() {
    let world = World::new();
    world.import_made(&secretive());
    purge(&world, &[2], &options()).unwrap();
    let bytes = secretive().entries["raw/openclaw/log.jsonl"].clone();
    let made = Made::of(vec![("2026-Q3", vec![record(5, "2026-07-02T00:00:00Z")])])
        .file("raw/openclaw/another-name.jsonl", &bytes);
    let again = world.import_made(&made);
    assert_eq!(again.withheld, ["raw/openclaw/another-name.jsonl"]);
    assert!(!world.export().0.files.contains_key("raw/openclaw/another-name.jsonl"));
}

#[test]
fn a_delta_tells_others_which_files_are_gone() {
    let [one, other] = [World::new(), World::new()];
    one.import_made(&secretive());
    let (_, report) = one.export();
    other.import(&one.dir.path().join("out.alf"));
    purge(&one, &[2, 60], &options()).unwrap();
    let path = one.dir.path().join("a.alf-delta");
    let since = DeltaOptions { since: report.sequence, ..DeltaOptions::default() };
    alf::export_delta(&one.session, &path, &since, &Monitor::default()).unwrap().unwrap();
    alf::apply_delta(&other.session, &path, &ImportOptions::default(), &Monitor::default())
        .unwrap();
    let (out, _) = other.export();
    assert!(out.files.values().all(|bytes| !String::from_utf8_lossy(bytes).contains("4929")));
    assert_eq!(out.documents["attachments.json"]["attachments"][0]["archive_path"], json!(null));
}

#[test]
fn a_purged_agent_does_not_come_again_by_itself() {
    let world = World::new();
    let path = secretive().write(world.dir.path(), "before.alf");
    world.import(&path);
    alf::purge(&world.session, &PurgeScope::Agent, &options(), &Monitor::default()).unwrap();
    for dry_run in [true, false] {
        let options = ImportOptions { dry_run, ..ImportOptions::default() };
        let error = alf::import(&world.session, &path, &options, &Monitor::default()).unwrap_err();
        assert_eq!(error.code(), "ERR_ERASED");
    }
    assert_eq!(all(&world).len(), 0);
    assert_gone(&world);
    let meant = ImportOptions { allow_purged: true, ..ImportOptions::default() };
    let meant = world.import_with(&path, &meant);
    assert_eq!(meant.records.failed, 0, "{meant:?}");
    assert_eq!(world.export().0.records.len(), 10);
    assert_eq!(world.import(&path).records.unchanged, 10);
}

/// A file with a record in lines that nobody can read, in entries that no manifest names, and in side indexes.
fn scattered() -> Made {
    let secret = with(record(60, "2026-07-02T00:00:00Z"), json!({"content": SECRET}));
    let mut made = rich();
    made.partitions[2].1.push(secret.clone());
    made.file("memory/partitions/2025-Q4.jsonl", format!("{secret}\n").as_bytes())
        .file(
            "memory/embeddings/by-record.json",
            format!("{{\"{}\": [1, 2]}}", id(60).to_uppercase()).as_bytes(),
        )
        .file("memory/tombstones.json", format!("[\"{}\"]", id(60)).as_bytes())
        .file("memory/embeddings/other.json", b"[]")
}

#[test]
fn nothing_of_a_record_is_left_in_any_entry_of_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let from = scattered().write(dir.path(), "in.alf");
    let to = dir.path().join("out.alf");
    let run = |from: &std::path::Path| {
        let now = grainstore::EpochMs::new(NOW);
        alf::purge_archive(
            from,
            &to,
            &[id(60)],
            now,
            &options(),
            Limits::default(),
            &Monitor::default(),
        )
        .unwrap()
    };
    let done = run(&from);
    assert_eq!(done.records_removed, 1);
    let archive = grainstore_interop::archive::Archive::open(&to, Limits::default()).unwrap();
    for entry in archive.entries() {
        let bytes = archive.read(entry.name(), 1 << 20).unwrap().unwrap();
        let text = String::from_utf8_lossy(&bytes).to_lowercase();
        assert!(!text.contains("4929"), "{}", entry.name());
        assert!(!text.contains(&id(60)), "{}", entry.name());
    }
    assert!(archive.entry("memory/embeddings/other.json").is_some());
    let [before, found] = [&from, &to]
        .map(|path| alf::validate(path, Limits::default(), &Monitor::default()).unwrap());
    assert!(found.valid, "{found:?}");
    assert!(found.warnings.iter().all(|issue| before.warnings.contains(issue)), "{found:?}");
    let out = read(&to);
    let memory = &out.manifest["layers"]["memory"];
    assert_eq!(memory["record_count"], json!(out.records.len()));
    assert_eq!(run(&to).records_removed, 0);
}

#[test]
fn lines_that_cannot_be_read_go_if_they_name_the_record() {
    let dir = tempfile::tempdir().unwrap();
    let mut made = Made::of(vec![("2026-Q3", vec![record(1, "2026-07-02T00:00:00Z")])]);
    let from = made.write(dir.path(), "in.alf");
    made.manifest = read(&from).manifest;
    let good = record(1, "2026-07-02T00:00:00Z");
    let short = json!({"id": id(60), "content": SECRET});
    let broken = format!("{{\"id\": \"{}\", \"content\": \"{SECRET}\"", id(60));
    let foreign = "{\"id\": nonsense";
    let lines = format!("{short}\n{good}\n{broken}\n{foreign}\n");
    let made = made.file("memory/partitions/2026-Q3.jsonl", lines.as_bytes());
    let from = made.write_raw(dir.path(), "in.alf");
    let to = dir.path().join("out.alf");
    let now = grainstore::EpochMs::new(NOW);
    let (ids, limits) = ([id(60)], Limits::default());
    let done =
        alf::purge_archive(&from, &to, &ids, now, &options(), limits, &Monitor::default()).unwrap();
    assert_eq!(done.records_removed, 2);
    let archive = grainstore_interop::archive::Archive::open(&to, Limits::default()).unwrap();
    let left = archive.read("memory/partitions/2026-Q3.jsonl", 1 << 20).unwrap().unwrap();
    assert_eq!(String::from_utf8(left).unwrap(), format!("{good}\n{foreign}\n"));
}

#[test]
fn a_file_tells_what_else_has_a_copy() {
    let dir = tempfile::tempdir().unwrap();
    let mut made = secretive();
    let profile = made.entries["principals.json"].clone();
    let mut profile: own_json::Value = serde_json::from_slice(&profile).unwrap();
    profile["principals"][0]["profile"]["prose"]["user_profile"] =
        json!(format!("knows: {SECRET}"));
    made = made.layer("principals", profile);
    let from = made.write(dir.path(), "in.alf");
    let to = dir.path().join("out.alf");
    let now = grainstore::EpochMs::new(NOW);
    let (ids, limits) = ([id(2)], Limits::default());
    let done =
        alf::purge_archive(&from, &to, &ids, now, &options(), limits, &Monitor::default()).unwrap();
    assert_eq!(done.records_with_copies, [id(60)]);
    assert_eq!(done.documents_with_copies, ["principals"]);
    let world = World::new();
    world.import(&from);
    let done = purge(&world, &[2], &options()).unwrap();
    assert_eq!(done.records_with_copies, [id(60)]);
    assert_eq!(done.documents_with_copies, ["principals"]);
}

#[test]
fn a_delta_of_before_brings_nothing_back() {
    let [one, other] = [World::new(), World::new()];
    let mut made = secretive();
    one.import_made(&made);
    let (_, report) = one.export();
    other.import(&one.dir.path().join("out.alf"));
    // The one learns more of the secret, and sends it when the other has forgotten it.
    let second = made.partitions[1].1[0].clone();
    made.partitions[1].1[0] = with(second, json!({"content": format!("once more: {SECRET}")}));
    let more = format!("once more: {SECRET}");
    let made = made.file("raw/openclaw/more.md", more.as_bytes());
    one.import_made(&made);
    let path = one.dir.path().join("a.alf-delta");
    let since = DeltaOptions { since: report.sequence, ..DeltaOptions::default() };
    let told = alf::export_delta(&one.session, &path, &since, &Monitor::default()).unwrap();
    assert_eq!((told.as_ref().unwrap().created, told.unwrap().files), (1, 1));
    purge(&other, &[2, 60], &options()).unwrap();
    let done =
        alf::apply_delta(&other.session, &path, &ImportOptions::default(), &Monitor::default());
    let done = done.unwrap().import;
    // The delta has a change of the record, and the file.
    assert_eq!((done.records.failed, done.records.created), (1, 0), "{done:?}");
    assert_eq!(done.withheld, ["raw/openclaw/more.md"]);
    assert_gone(&other);
}

#[test]
fn all_or_nothing_is_nothing_where_a_record_was_purged() {
    let world = World::new();
    let path = secretive().write(world.dir.path(), "before.alf");
    world.import(&path);
    purge(&world, &[2], &options()).unwrap();
    let (before, _) = world.export();
    let strict = ImportOptions { strict: true, ..ImportOptions::default() };
    let error = alf::import(&world.session, &path, &strict, &Monitor::default()).unwrap_err();
    assert_eq!(error.code(), "ERR_ERASED");
    let (after, _) = world.export();
    assert_eq!((after.records, after.files), (before.records, before.files));
}
