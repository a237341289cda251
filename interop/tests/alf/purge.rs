//! What is purged is nowhere any more, and does not come back.

use grainstore::cal::Query;
use grainstore::{OpenOptions, PageOptions};
use grainstore_interop::alf::{
    self, DeltaOptions, ImportOptions, PurgeOptions, PurgeReason, PurgeReport, PurgeScope,
};
use grainstore_interop::archive::Limits;
use grainstore_interop::{Monitor, Result};
use serde_json::json;

use crate::kit::*;

pub(crate) const SECRET: &str = "the number of the card is 4929 1234";

pub(crate) fn options() -> PurgeOptions {
    PurgeOptions::new(PurgeReason::GdprArticle17, PERSON)
}

pub(crate) fn purge(world: &World, numbers: &[u32], options: &PurgeOptions) -> Result<PurgeReport> {
    let scope = PurgeScope::Records(numbers.iter().map(|number| id(*number)).collect());
    alf::purge(&world.session, &scope, options, &Monitor::default())
}

/// An archive with a secret in a sealed partition, in its successor of the same id, in raw files and an artifact.
pub(crate) fn secretive() -> Made {
    let mut made = rich();
    let second = &mut made.partitions[1].1[0];
    *second = with(
        second.clone(),
        json!({"content": SECRET,
        "source": {"runtime": "openclaw", "origin_file": "memory/secret.md"}}),
    );
    made.partitions[2].1.push(with(
        record(60, "2026-07-02T00:00:00Z"),
        json!({"content": format!("copied: {SECRET}")}),
    ));
    let artifact = format!("x,{SECRET}");
    let mut attachments: serde_json::Value =
        serde_json::from_slice(&made.entries["attachments.json"]).unwrap();
    attachments["attachments"][0]["size_bytes"] = json!(artifact.len());
    attachments["attachments"][0]["hash"]["value"] = json!(sha256(artifact.as_bytes()));
    made.layer("attachments", attachments)
        .file("artifacts/a.csv", artifact.as_bytes())
        .file("raw/openclaw/memory/secret.md", b"anything")
        .file(
            "raw/openclaw/log.jsonl",
            format!("{{\"t\": \"the  number of\\nthe card is 4929 1234\", \"u\": \"{SECRET}\"}}")
                .as_bytes(),
        )
}

/// The files of a store with these bytes in them.
pub(crate) fn found_in(world: &World, bytes: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in walk(&world.dir.path().join("store")) {
        let content = std::fs::read(&entry).unwrap();
        if content.windows(bytes.len()).any(|window| window == bytes.as_bytes()) {
            found.push(entry.display().to_string());
        }
    }
    found
}

fn walk(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

#[test]
fn a_purged_record_is_nowhere_any_more_and_does_not_come_back() {
    let world = World::new();
    world.import_made(&secretive());
    world.export();
    let (before, _) = world.export();
    let audit = world.dir.path().join("audit.jsonl");
    let mut asked = options();
    asked.audit_file = Some(audit.clone());
    asked.dry_run = true;
    let tried = purge(&world, &[2], &asked).unwrap();
    asked.dry_run = false;
    let done = purge(&world, &[2], &asked).unwrap();
    assert_eq!((done.records_removed, &done.record_ids), (1, &Some(vec![id(2)])));
    assert_eq!(done.partitions_affected, ["memory/partitions/2026-Q2.jsonl"]);
    assert_eq!(
        done.raw_files_affected,
        [
            "artifacts/a.csv",
            "memory/embeddings/vectors.bin",
            "raw/openclaw/log.jsonl",
            "raw/openclaw/memory/secret.md"
        ]
    );
    assert_eq!(done.records_with_copies, [id(60)]);
    assert_eq!((tried.records_removed, &tried.raw_files_affected), (1, &done.raw_files_affected));
    let written = std::fs::read_to_string(&audit).unwrap();
    assert_eq!(written.lines().count(), 1);
    assert!(!written.contains("4929") && written.contains("gdpr_article_17"));
    // The record is not in the archive; the other lines of its partition are the same bytes, links to it stay.
    let (after, _) = world.export();
    assert!(!after.records.contains_key(&id(2)));
    assert_eq!(after.records.len(), before.records.len() - 1);
    assert_eq!(after.records[&id(1)]["related_records"][0]["id"], json!(id(2)));
    let quarter = "memory/partitions/2026-Q2.jsonl";
    assert!(
        String::from_utf8_lossy(&before.partitions[quarter])
            .contains(&String::from_utf8_lossy(&after.partitions[quarter]).into_owned())
    );
    assert_eq!(after.documents["attachments.json"]["attachments"][0]["archive_path"], json!(null));
    assert_eq!(after.manifest["layers"]["attachments"]["included_count"], json!(0));
    // It does not come back by itself, and it does where it is meant to.
    let path = world.dir.path().join("in.alf");
    let again = world.import_with(&path, &ImportOptions::default());
    assert_eq!((again.records.failed, again.records.created), (1, 0));
    assert!(again.errors[0].message.contains("ERR_ERASED"), "{again:?}");
    let meant = ImportOptions { allow_purged: true, ..ImportOptions::default() };
    let meant = world.import_with(&path, &meant);
    assert_eq!((meant.records.failed, meant.records.created), (0, 1), "{meant:?}");
    assert_eq!(world.export().0.records[&id(2)], before.records[&id(2)]);
    assert_eq!(world.import_with(&path, &ImportOptions::default()).records.unchanged, 10);
    purge(&world, &[2, 60], &options()).unwrap();
    let files = world.export().0.files;
    assert!(files.values().all(|bytes| !String::from_utf8_lossy(bytes).contains("4929")));
    let delta = world.dir.path().join("a.alf-delta");
    let since = DeltaOptions { since: 7, ..DeltaOptions::default() };
    let told =
        alf::export_delta(&world.session, &delta, &since, &Monitor::default()).unwrap().unwrap();
    assert_eq!(told.deleted, 2);
    world.verify();
}

#[test]
fn nothing_of_a_purged_record_is_left_on_disk() {
    for encrypted in [false, true] {
        let options = match encrypted {
            true => OpenOptions::new().key(grainstore::MasterKey::new([7; 32])),
            false => OpenOptions::new(),
        };
        let world = World::with(options);
        world.import_made(&secretive());
        world.export();
        purge(&world, &[2, 60], &self::options()).unwrap();
        // An encrypted store is searched person by person.
        if !encrypted {
            let card = Query::default().searching("card");
            let found = world.session.query(&card, &PageOptions::first(9)).unwrap();
            assert!(found.results.is_empty());
        }
        world.store.scrub().unwrap();
        world.store.compact().unwrap();
        world.store.flush().unwrap();
        assert_eq!(found_in(&world, "4929 1234"), [""; 0], "encrypted: {encrypted}");
        world.verify();
    }
}

#[test]
fn a_hold_keeps_a_record_and_then_nothing_goes_unless_asked() {
    let world = World::new();
    world.import_made(&rich());
    let found = world.session.query(&Query::default(), &PageOptions::first(100)).unwrap();
    let held =
        found.results.iter().find(|row| row.grain.text("object") == Some("memory 2")).unwrap();
    world.session.hold(&held.content_address, "case 12").unwrap();
    let error = purge(&world, &[1, 2], &options()).unwrap_err();
    assert_eq!((error.code(), error.entry()), ("ERR_INVALIDATION_DENIED", Some(id(2).as_str())));
    assert_eq!(world.export().0.records.len(), 9);
    let mut partial = options();
    partial.partial = true;
    let done = purge(&world, &[1, 2], &partial).unwrap();
    assert_eq!((done.records_kept, done.records_removed), (vec![id(2)], 1));
    let (after, _) = world.export();
    assert!(after.records.contains_key(&id(2)) && !after.records.contains_key(&id(1)));
}

#[test]
fn all_of_an_agent_goes() {
    let world = World::new();
    world.import_made(&rich());
    world.export();
    let done =
        alf::purge(&world.session, &PurgeScope::Agent, &options(), &Monitor::default()).unwrap();
    assert_eq!((done.scope, done.records_removed, done.record_ids), ("full_agent", 9, None));
    let found = world.session.query(&Query::default(), &PageOptions::first(100)).unwrap();
    assert!(found.results.is_empty());
    let stats = world.store.stats().unwrap();
    // The ids are remembered, and that of the agent.
    assert_eq!((stats.side_blobs, stats.application_rows), (0, 10));
    let path = world.dir.path().join("out.alf");
    let error =
        alf::export(&world.session, &path, &Default::default(), &Monitor::default()).unwrap_err();
    assert_eq!(error.code(), "ERR_NOT_FOUND");
    world.verify();
}

#[test]
fn what_is_remembered_of_a_person_goes_with_its_copies() {
    let world = World::new();
    world.import_made(&secretive());
    world.export();
    let scope = PurgeScope::User(PERSON.to_owned());
    let done = alf::purge(&world.session, &scope, &options(), &Monitor::default()).unwrap();
    assert_eq!((done.records_removed, done.record_ids), (2, Some(vec![id(2), id(3)])));
    assert_eq!(done.raw_files_affected.len(), 4);
    assert_eq!(world.export().0.records.len(), 8);
}

#[test]
fn a_file_is_purged_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    let from = secretive().write(dir.path(), "in.alf");
    let to = dir.path().join("purged.alf");
    let ids = [id(2), id(4)];
    let now = grainstore::EpochMs::new(NOW);
    let run = |from: &std::path::Path, to: &std::path::Path| {
        alf::purge_archive(from, to, &ids, now, &options(), Limits::default(), &Monitor::default())
            .unwrap()
    };
    let done = run(&from, &to);
    assert_eq!((done.records_removed, done.record_ids), (2, Some(ids.to_vec())));
    assert_eq!(
        done.partitions_affected,
        ["memory/partitions/2026-Q2.jsonl", "memory/partitions/2026-Q3.jsonl"]
    );
    let found = alf::validate(&to, Limits::default(), &Monitor::default()).unwrap();
    assert!(found.valid, "{found:?}");
    let [before, after] = [read(&from), read(&to)];
    assert_eq!(after.records.len(), before.records.len() - 2);
    let quarter = "memory/partitions/2026-Q1.jsonl";
    assert_eq!(before.partitions[quarter], after.partitions[quarter]);
    let sealed = |read: &Read| {
        read.manifest["layers"]["memory"]["partitions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| (one["from"].clone(), one["to"].clone(), one["sealed"].clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(sealed(&before), sealed(&after));
    assert!(!after.files.contains_key("memory/embeddings/vectors.bin"));
    assert!(after.files.values().all(|bytes| !String::from_utf8_lossy(bytes).contains("4929")));
    assert_eq!(after.files["raw/openclaw/SOUL.md"], before.files["raw/openclaw/SOUL.md"]);
    let audit = std::fs::read_to_string(dir.path().join("purged.alf.purge-audit.jsonl")).unwrap();
    assert!(audit.contains(&id(2)) && !audit.contains("4929"));
}

#[test]
fn a_delta_of_which_nothing_is_left_is_removed() {
    let world = World::new();
    world.import_made(&rich());
    world.import_made(&Made::of(vec![(
        "2026-Q3",
        vec![record(50, "2026-07-02T00:00:00Z"), record(51, "2026-07-02T00:00:00Z")],
    )]));
    let path = world.dir.path().join("a.alf-delta");
    let since = DeltaOptions { since: 7, ..DeltaOptions::default() };
    alf::export_delta(&world.session, &path, &since, &Monitor::default()).unwrap();
    for (number, is_left) in [(50, true), (51, false)] {
        let now = grainstore::EpochMs::new(NOW);
        alf::purge_archive(
            &path,
            &path,
            &[id(number)],
            now,
            &options(),
            Limits::default(),
            &Monitor::default(),
        )
        .unwrap();
        assert_eq!(path.exists(), is_left);
        if is_left {
            let found = alf::validate(&path, Limits::default(), &Monitor::default()).unwrap();
            assert!((found.valid, found.records) == (true, 1), "{found:?}");
        }
    }
}

#[test]
fn what_the_store_erased_by_itself_is_in_no_export() {
    let world = World::new();
    world.import_made(&secretive());
    world.export();
    let erased =
        world.session.erase_user(PERSON, "asked", &grainstore::EraseOptions::new()).unwrap();
    // Two records, and what the agent has of the person as a principal.
    assert_eq!(erased.erased, 3);
    for _ in 0..2 {
        let (out, report) = world.export();
        assert_eq!((out.records.len(), report.records, report.omitted_records), (8, 8, 0));
        assert!(out.partitions.keys().all(|name| !name.contains("2026-Q2")));
    }
    world.verify();
}
