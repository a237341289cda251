//! What a record was before, and what was made of it since, goes with it.

use grainstore::cal::{Query, Visibility};
use grainstore::prelude::*;
use grainstore::{PageOptions, StoredGrain};
use grainstore_interop::Monitor;
use grainstore_interop::alf::{self, ExportOptions, ImportOptions, PurgeOptions, PurgeScope};
use grainstore_interop::archive::Limits;
use serde_json::json;

use crate::kit::*;
use crate::purge::{SECRET, found_in, options, purge};

const OTHER: &str = "a harmless remark about the weather";

/// All grains that a store shows, of any state.
pub(crate) fn all(world: &World) -> Vec<StoredGrain> {
    let all = Query::default().seeing(Visibility::EVERYTHING);
    let found = world.session.query(&all, &PageOptions::first(1000)).unwrap().results;
    found.iter().map(|row| world.session.inspect(&row.content_address).unwrap()).collect()
}

/// The grain that says this.
pub(crate) fn saying(world: &World, text: &str) -> StoredGrain {
    let says = |stored: &StoredGrain| {
        let grain = stored.grain().unwrap();
        ["object", "content"].iter().any(|name| grain.text(name) == Some(text))
    };
    all(world).into_iter().find(says).unwrap()
}

/// Nothing of the secret is in any file of the store.
pub(crate) fn assert_gone(world: &World) {
    world.store.scrub().unwrap();
    world.store.compact().unwrap();
    world.store.flush().unwrap();
    assert_eq!(found_in(world, "4929 1234"), [""; 0]);
    world.verify();
}

fn running(records: Vec<serde_json::Value>) -> Made {
    Made::of(vec![("2026-Q3", records)])
}

fn secret(number: u32) -> serde_json::Value {
    with(record(number, "2026-07-02T00:00:00Z"), json!({"content": SECRET}))
}

fn native_export(world: &World) -> Read {
    let path = world.dir.path().join("native.alf");
    let options = ExportOptions {
        agent_id: Some(AGENT.to_owned()),
        agent_name: Some("Ada".to_owned()),
        native: true,
        ..ExportOptions::default()
    };
    alf::export(&world.session, &path, &options, &Monitor::default()).unwrap();
    read(&path)
}

#[test]
fn the_grain_of_before_a_change_of_type_goes_too() {
    let world = World::new();
    world.import_made(&running(vec![secret(50)]));
    let other = with(secret(50), json!({"content": OTHER, "memory_type": "episodic"}));
    world.import_made(&running(vec![other]));
    let done = purge(&world, &[50], &options()).unwrap();
    assert_eq!(done.records_removed, 1);
    assert!(all(&world).iter().all(|stored| {
        stored.grain().unwrap().map("context").is_none_or(|context| !context.contains_key("alf:id"))
    }));
    assert_gone(&world);
}

#[test]
fn the_grain_whose_place_another_took_goes_too() {
    let world = World::new();
    world.import_made(&running(vec![secret(50)]));
    let old = saying(&world, SECRET).address;
    let native = BeliefBuilder::new(world.session.now(), "ann", "mg:knows", OTHER, 0.5);
    world.session.supersede(&old, native.build().unwrap(), None).unwrap();
    world.import_made(&running(vec![with(secret(50), json!({"content": OTHER}))]));
    purge(&world, &[50], &options()).unwrap();
    assert!(!world.session.exists(&old).unwrap());
    assert_gone(&world);
}

#[test]
fn the_original_of_an_edited_native_record_goes_and_is_not_adopted_again() {
    let world = World::new();
    let native = BeliefBuilder::new(world.session.now(), "ann", "mg:knows", SECRET, 0.5);
    let old = world.session.put(native.build().unwrap()).unwrap().address();
    let out = native_export(&world);
    let (id, native) = out.records.iter().next().unwrap();
    world.import_made(&running(vec![with(native.clone(), json!({"content": OTHER}))]));
    let scope = PurgeScope::Records(vec![id.to_uppercase()]);
    alf::purge(&world.session, &scope, &options(), &Monitor::default()).unwrap();
    assert!(!world.session.exists(&old).unwrap());
    assert_eq!(native_export(&world).records.len(), 0);
    assert_gone(&world);
}

#[test]
fn a_purged_id_is_not_adopted() {
    let world = World::new();
    world.import_made(&running(vec![record(1, "2026-07-02T00:00:00Z")]));
    let other = World::new();
    let native =
        || BeliefBuilder::new(grainstore::EpochMs::new(NOW), "ann", "mg:knows", SECRET, 0.5);
    other.session.put(native().build().unwrap()).unwrap();
    let id = native_export(&other).records.keys().next().unwrap().clone();
    // The id is purged before the store has the grain, and while it has it in no record.
    for round in 0..2 {
        let scope = PurgeScope::Records(vec![id.clone()]);
        alf::purge(&world.session, &scope, &options(), &Monitor::default()).unwrap();
        assert!(!native_export(&world).records.contains_key(&id));
        assert!(
            all(&world).iter().all(|stored| stored.grain().unwrap().text("object") != Some(SECRET))
        );
        if round == 0 {
            world.session.put(native().build().unwrap()).unwrap();
            assert!(!native_export(&world).records.contains_key(&id));
        }
    }
    assert_gone(&world);
}

#[test]
fn changes_of_changes_go_too() {
    let of = |number: u32, of: u32, created_at: &str| {
        let members = json!({"content": SECRET, "supersedes": id(of), "x_change_of": id(of)});
        with(record(number, created_at), members)
    };
    let made = Made::of(vec![
        ("2026-Q1", vec![record(1, "2026-01-15T10:00:00Z")]),
        // The later change stands before the one that it is of.
        ("2026-Q2", vec![of(3, 2, "2026-04-15T10:00:00Z")]),
        ("2026-Q3", vec![of(2, 1, "2026-07-15T10:00:00Z"), record(4, "2026-07-15T10:00:00Z")]),
    ]);
    let world = World::new();
    let path = made.write(world.dir.path(), "in.alf");
    world.import(&path);
    world.export();
    let to = world.dir.path().join("purged.alf");
    let (now, limits) = (world.session.now(), Limits::default());
    let file =
        alf::purge_archive(&path, &to, &[id(1)], now, &options(), limits, &Monitor::default());
    assert_eq!(file.unwrap().record_ids, Some(vec![id(1), id(2), id(3)]));
    assert_eq!(read(&to).records.into_keys().collect::<Vec<_>>(), [id(4)]);
    let done = purge(&world, &[1], &options()).unwrap();
    assert_eq!(done.record_ids, Some(vec![id(1), id(2), id(3)]));
    assert_eq!(world.export().0.records.into_keys().collect::<Vec<_>>(), [id(4)]);
    assert_gone(&world);
    // Nor do they come again, though the store would have them purged by their ids alone.
    let again = world.import_with(&path, &Default::default());
    assert_eq!((again.records.failed, again.records.unchanged), (3, 1), "{again:?}");
}

#[test]
fn files_with_what_a_record_said_before_go_too() {
    let world = World::new();
    let first = with(
        secret(50),
        json!({"source": {"runtime": "openclaw", "origin_file": "memory/first.md"}}),
    );
    let made = running(vec![first])
        .file("raw/openclaw/log.md", SECRET.as_bytes())
        .file("raw/openclaw/memory/first.md", b"what it came from")
        .file("raw/openclaw/other.md", b"of something else");
    world.import_made(&made);
    world.import_made(&running(vec![with(secret(50), json!({"content": OTHER}))]));
    let done = purge(&world, &[50], &options()).unwrap();
    assert_eq!(done.raw_files_affected, ["raw/openclaw/log.md", "raw/openclaw/memory/first.md"]);
    let files = world.export().0.files;
    assert_eq!(files.into_keys().collect::<Vec<_>>(), ["raw/openclaw/other.md"]);
    assert_gone(&world);
}

#[test]
fn files_that_spell_the_content_with_escapes_go_too() {
    let spelled: String = SECRET.chars().map(|c| format!("\\u{:04X}", u32::from(c))).collect();
    let letter = SECRET.replace('c', "\\u0063").replace("is", "\\u0069s");
    let nested = serde_json::to_string(&format!("{{\"text\": \"{letter}\"}}")).unwrap();
    let files = [
        ("raw/r/all.json", format!("{{\"a\": \"{spelled}\"}}")),
        ("raw/r/some.json", format!("[\"x {letter}\"]")),
        ("raw/r/nested.json", format!("{{\"body\": {nested}}}")),
        ("raw/r/twice.json", serde_json::to_string(&nested).unwrap()),
        ("artifacts/a.txt", SECRET.replace(' ', "\r\n\t")),
        ("artifacts/near.txt", SECRET.replace("4929", "4930")),
    ];
    let mut made = running(vec![secret(50), record(51, "2026-07-02T00:00:00Z")]);
    for (name, text) in &files {
        made = made.file(name, text.as_bytes());
    }
    let world = World::new();
    let path = made.write(world.dir.path(), "in.alf");
    let expected = [
        "artifacts/a.txt",
        "raw/r/all.json",
        "raw/r/nested.json",
        "raw/r/some.json",
        "raw/r/twice.json",
    ];
    world.import(&path);
    assert_eq!(purge(&world, &[50], &options()).unwrap().raw_files_affected, expected);
    let (now, limits) = (world.session.now(), Limits::default());
    let done =
        alf::purge_archive(&path, &path, &[id(50)], now, &options(), limits, &Monitor::default());
    assert_eq!(done.unwrap().raw_files_affected, expected);
}

#[test]
fn a_record_that_agents_replaced_in_a_sealed_partition_is_superseded_in_the_archive() {
    let world = World::new();
    let first = with(record(1, "2026-01-15T10:00:00Z"), json!({"content": SECRET}));
    world.import_made(&Made::of(vec![("2026-Q1", vec![first])]));
    let (before, report) = world.export();
    let native = BeliefBuilder::new(world.session.now(), "ann", "mg:knows", OTHER, 0.5);
    let old = saying(&world, SECRET).address;
    world.session.supersede(&old, native.build().unwrap(), None).unwrap();
    let (after, _) = world.export();
    assert_eq!(
        before.partitions["memory/partitions/2026-Q1.jsonl"],
        after.partitions["memory/partitions/2026-Q1.jsonl"]
    );
    let successor = after.records.values().find(|record| record["supersedes"] == json!(id(1)));
    assert!(successor.unwrap()["content"].as_str().unwrap().contains(OTHER));
    assert_eq!(world.export().0.records, after.records);
    assert!(!world.assembled("beliefs").contains("4929"), "{}", world.assembled("beliefs"));
    // Another store with the archive, or the delta, recalls it no more.
    let other = World::new();
    other.import(&world.dir.path().join("out.alf"));
    assert!(!other.assembled("beliefs").contains("4929"), "{}", other.assembled("beliefs"));
    assert_eq!(other.export().0.records, after.records);
    let third = World::new();
    third.import_made(&Made::of(vec![("2026-Q1", before.records.values().cloned().collect())]));
    let delta = world.dir.path().join("a.alf-delta");
    let since = alf::DeltaOptions { since: report.sequence, ..Default::default() };
    alf::export_delta(&world.session, &delta, &since, &Monitor::default()).unwrap().unwrap();
    alf::apply_delta(&third.session, &delta, &Default::default(), &Monitor::default()).unwrap();
    assert!(!third.assembled("beliefs").contains("4929"));
    purge(&world, &[1], &options()).unwrap();
    assert_gone(&world);
}

#[test]
fn what_an_agent_has_of_a_person_goes_with_them() {
    let told = |text: &str| {
        json!({"principals": [{"id": PERSON, "principal_type": "human", "agent_id": null, "profile": {
            "id": id(20), "agent_id": AGENT, "principal_id": PERSON, "version": 1,
            "updated_at": "2026-07-01T00:00:00Z", "structured": {"name": text},
        }}]})
    };
    let world = World::new();
    let made = running(vec![record(50, "2026-07-02T00:00:00Z")]);
    let archives = ["card 4929 1234 first", "card 4929 1234 second"].map(|text| {
        let name = format!("{}.alf", text.len());
        made.clone().layer("principals", told(text)).write(world.dir.path(), &name)
    });
    archives.iter().for_each(|path| drop(world.import(path)));
    let before = world.export().1.sequence;
    let scope = PurgeScope::User(PERSON.to_uppercase());
    let run = |options: &PurgeOptions| {
        alf::purge(&world.session, &scope, options, &Monitor::default()).unwrap()
    };
    let name = format!("principal/{PERSON}");
    let mut dry = options();
    dry.dry_run = true;
    let dry = run(&dry);
    assert_eq!(dry.documents_removed.as_slice(), std::slice::from_ref(&name));
    assert!(!found_in(&world, "4929 1234").is_empty());
    let done = run(&options());
    assert_eq!((done.records_removed, done.documents_removed), (0, vec![name]));
    let out = world.export().0;
    assert_eq!(out.documents["principals.json"], json!({"principals": []}));
    assert_eq!(out.records.len(), 1);
    archives.iter().for_each(|path| std::fs::remove_file(path).unwrap());
    std::fs::remove_file(world.dir.path().join("out.alf")).unwrap();
    assert_gone(&world);
    // A delta tells others, and an archive of before brings nothing back unless it is asked for.
    let delta = world.dir.path().join("a.alf-delta");
    let since = alf::DeltaOptions { since: before, ..Default::default() };
    alf::export_delta(&world.session, &delta, &since, &Monitor::default()).unwrap().unwrap();
    let again = made.layer("principals", told("card 4929 1234 again"));
    let path = again.write(world.dir.path(), "again.alf");
    let report = world.import(&path);
    assert_eq!(report.withheld, ["principals.json"]);
    assert_eq!(world.export().0.documents["principals.json"], json!({"principals": []}));
    let strict = ImportOptions { strict: true, ..ImportOptions::default() };
    let error = alf::import(&world.session, &path, &strict, &Monitor::default()).unwrap_err();
    assert_eq!(error.code(), "ERR_ERASED");
    let allowed = ImportOptions { allow_purged: true, ..ImportOptions::default() };
    world.import_with(&path, &allowed);
    assert_eq!(world.export().0.documents["principals.json"], told("card 4929 1234 again"));
    assert_eq!(world.import(&path).withheld, [""; 0]);
}

#[test]
fn a_hold_on_a_person_refuses_their_purge_before_anything_goes() {
    let world = World::new();
    world.import_made(&rich());
    let documents = Query::default().seeing(Visibility::EVERYTHING);
    let found = world.session.query(&documents, &PageOptions::first(99)).unwrap().results;
    let item = |row: &&grainstore::QueryMatch| {
        let context = row.grain.map("context");
        context.and_then(|context| context.get("alf:item_id")?.as_str()) == Some(PERSON)
    };
    let held = found.iter().find(item).unwrap().content_address;
    world.session.hold(&held, "case 12").unwrap();
    let (before, _) = world.export();
    let scope = PurgeScope::User(PERSON.to_owned());
    let run =
        |options: &PurgeOptions| alf::purge(&world.session, &scope, options, &Monitor::default());
    assert_eq!(run(&options()).unwrap_err().code(), "ERR_INVALIDATION_DENIED");
    assert_eq!(world.export().0.records, before.records);
    let mut part = options();
    part.partial = true;
    let part = run(&part).unwrap();
    assert_eq!(part.documents_kept, [format!("principal/{PERSON}")]);
    assert!(part.records_removed > 0);
    let (after, _) = world.export();
    assert_eq!(after.documents["principals.json"], before.documents["principals.json"]);
}
