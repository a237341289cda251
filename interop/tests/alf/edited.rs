//! New versions of records that keep what the grains of records say of ALF: CAL makes them so, and who reads a grain, edits
//! it and puts it in its place.

use std::path::PathBuf;

use grainstore::cal::{ExecuteOptions, Query, Tier};
use grainstore::format::{GrainType, Value as Field};
use grainstore::prelude::*;
use grainstore::{EraseOptions, Offer, StoredGrain};
use grainstore_interop::Monitor;
use grainstore_interop::alf::{self, DeltaOptions, ExportOptions, ImportOptions, PurgeScope};
use serde_json::{Value, json};

use crate::kit::*;
use crate::purge;
use crate::vouched::carrying_bytes;

/// The content of the current grains.
fn current(world: &World) -> Vec<String> {
    let found = world.session.query(&Query::default(), &PageOptions::first(99)).unwrap().results;
    let beliefs = found.iter().filter(|row| row.grain.grain_type() == GrainType::Belief);
    let mut texts: Vec<_> =
        beliefs.map(|row| row.grain.text("object").unwrap().to_owned()).collect();
    texts.sort_unstable();
    texts
}

/// The current grain of this content.
fn address_of(world: &World, content: &str) -> ContentAddress {
    let found = world.session.query(&Query::default(), &PageOptions::first(99)).unwrap().results;
    let of = |row: &&grainstore::QueryMatch| row.grain.text("object") == Some(content);
    found.iter().find(of).unwrap().content_address
}

/// How a new version is made.
type Edit = fn(&World, &str, &str) -> ContentAddress;

/// In CAL.
fn by_cal(world: &World, old: &str, new: &str) -> ContentAddress {
    let before = address_of(world, old);
    let query = format!("SUPERSEDE sha256:{before} SET object = \"{new}\" REASON \"she said so\"");
    let options = ExecuteOptions { tier: Tier::Evolve, ..ExecuteOptions::at(world.session.now()) };
    world.session.ask_with(query.as_bytes(), &options).unwrap();
    address_of(world, new)
}

/// The grain is read, edited and put in its place.
fn by_hand(world: &World, old: &str, new: &str) -> ContentAddress {
    let before = address_of(world, old);
    world.session.supersede(&before, edited(world, &before, new), None).unwrap()
}

/// A grain with another content.
fn edited(world: &World, address: &ContentAddress, content: &str) -> Grain {
    let mut fields = world.session.get(address).unwrap().grain().unwrap().into_fields();
    fields.insert("object".to_owned(), Field::from(content));
    fields.insert("created_at".to_owned(), Field::from(world.session.now().get()));
    Grain::from_fields(fields).unwrap()
}

/// Long enough to be looked for elsewhere.
const TEA: &str = "she drinks a pot of tea every evening";
const GREEN_TEA: &str = "she drinks a pot of tea every evening, green";

const WAYS: [(&str, Edit); 2] = [("CAL", by_cal), ("by hand", by_hand)];

/// A store with one record of a person.
fn with_a_record(content: &str) -> World {
    let world = World::new();
    let members = json!({
        "content": content, "tags": ["drinks"], "category": "taste",
        "namespace": format!("principal_context:{}", id(900)),
    });
    let first = with(record(1, "2026-07-01T00:00:00Z"), members);
    world.import_made(&Made::of(vec![("2026-Q3", vec![first])]));
    world
}

fn of<'r>(read: &'r Read, content: &str) -> &'r Value {
    read.records.values().find(|record| record["content"] == content).unwrap()
}

fn file(world: &World) -> PathBuf {
    world.dir.path().join("out.alf")
}

#[test]
fn a_version_that_keeps_the_notes_of_a_record_is_in_every_export() {
    for (way, edit) in WAYS {
        let world = with_a_record("tea");
        edit(&world, "tea", "coffee");
        edit(&world, "coffee", "water");
        let (out, report) = world.export();
        assert_eq!((report.records, report.native_left_out), (3, 0), "{way}");
        let [tea, coffee, water] = ["tea", "coffee", "water"].map(|content| of(&out, content));
        assert_eq!((&tea["status"], &tea["id"]), (&json!("superseded"), &coffee["supersedes"]));
        assert_eq!(
            (&coffee["status"], &coffee["id"]),
            (&json!("superseded"), &water["supersedes"])
        );
        assert_eq!(water["status"], "active");
        // What it says of itself stays, but for what tells it from the record that it follows.
        for name in ["tags", "category", "namespace", "memory_type"] {
            assert_eq!(water[name], tea[name], "{way}: {name}");
        }
        assert_eq!(world.export().0.records, out.records, "{way}");

        // In another store it goes on, in both ways.
        for (again, edit) in WAYS {
            let other = World::new();
            other.import(&file(&world));
            assert_eq!(current(&other), ["water"], "{way}");
            assert_eq!(other.export().0.records, out.records, "{way}");
            edit(&other, "water", "milk");
            let (more, report) = other.export();
            assert_eq!((report.records, report.native_left_out), (4, 0), "{way}, {again}");
            assert_eq!(of(&more, "milk")["supersedes"], of(&more, "water")["id"]);
            // And comes back to the first.
            let report = world.import_with(&file(&other), &ImportOptions::default());
            assert_eq!(report.records.failed, 0, "{way}, {again}: {report:?}");
            assert!(current(&world).contains(&"milk".to_owned()), "{way}, {again}");
            world.verify();
            other.verify();
            // The next round begins with the same.
            edit(&world, "milk", "water");
        }
    }
}

#[test]
fn a_delta_has_it_and_gives_it_its_place() {
    for (way, edit) in WAYS {
        let world = with_a_record("tea");
        let (_, report) = world.export();
        let other = World::new();
        other.import(&file(&world));
        edit(&world, "tea", "coffee");
        let path = world.dir.path().join("a.alf-delta");
        let options = DeltaOptions { since: report.sequence, ..DeltaOptions::default() };
        let monitor = Monitor::default();
        let report = alf::export_delta(&world.session, &path, &options, &monitor).unwrap().unwrap();
        assert_eq!((report.created, report.updated), (1, 1), "{way}");
        let applied =
            alf::apply_delta(&other.session, &path, &ImportOptions::default(), &monitor).unwrap();
        assert_eq!(applied.import.errors, [], "{way}");
        assert_eq!(current(&other), ["coffee"], "{way}");
        assert_eq!(other.export().0.records, world.export().0.records, "{way}");
    }
}

#[test]
fn one_that_took_nobodys_place_is_counted_and_goes_where_all_are_asked_for() {
    let world = with_a_record("tea");
    let tea = address_of(&world, "tea");
    world.session.put(edited(&world, &tea, "milk")).unwrap();
    let (out, report) = world.export();
    assert_eq!((out.records.len(), report.native_left_out), (1, 1));
    let options = ExportOptions { native: true, ..ExportOptions::default() };
    let report = alf::export(&world.session, file(&world), &options, &Monitor::default()).unwrap();
    assert_eq!((report.records, report.native_left_out), (2, 0));
    let out = read(&file(&world));
    assert_eq!(of(&out, "milk")["supersedes"], Value::Null);
    let other = World::new();
    other.import(&file(&world));
    assert_eq!(current(&other), ["milk", "tea"]);
    // What an agent has is not another's.
    let second = Made::of(vec![("2026-Q3", vec![record(2, "2026-07-02T00:00:00Z")])]);
    let mut second = second;
    second.manifest["agent"]["id"] = json!(id(800));
    world.import_made(&second);
    let options = ExportOptions { agent_id: Some(id(800)), ..options };
    let report = alf::export(&world.session, file(&world), &options, &Monitor::default()).unwrap();
    assert_eq!((report.records, report.native_left_out), (1, 0), "the copy is the first agent's");
}

#[test]
fn a_person_gets_it_and_a_purge_of_the_person_takes_it() {
    for (way, edit) in WAYS {
        let world = with_a_record("tea");
        edit(&world, "tea", "coffee");
        let options = ExportOptions { of_user: Some(id(900)), ..ExportOptions::default() };
        let report =
            alf::export(&world.session, file(&world), &options, &Monitor::default()).unwrap();
        assert_eq!(report.records, 2, "{way}");
        edit(&world, "coffee", "water");
        for dry_run in [true, false] {
            let mut options = purge::options();
            options.dry_run = dry_run;
            let scope = PurgeScope::User(id(900));
            let report = alf::purge(&world.session, &scope, &options, &Monitor::default()).unwrap();
            assert!(dry_run || report.records_removed == 3, "{way}: {report:?}");
        }
        assert_eq!(current(&world), [""; 0], "{way}");
        assert_eq!(world.export().0.records.len(), 0, "{way}");
    }
}

#[test]
fn a_purge_of_a_record_leaves_what_took_its_place_and_tells_of_copies() {
    for (way, edit) in WAYS {
        for adopted in [false, true] {
            let world = with_a_record(TEA);
            edit(&world, TEA, GREEN_TEA);
            if adopted {
                world.export();
            }
            for dry_run in [true, false] {
                let mut options = purge::options();
                options.dry_run = dry_run;
                let report = purge::purge(&world, &[1], &options).unwrap();
                assert_eq!(report.records_removed, 1, "{way}: {report:?}");
                assert_eq!(report.records_with_copies.len(), 1, "{way}: {report:?}");
            }
            assert_eq!(current(&world), [GREEN_TEA], "{way}");
            let (out, report) = world.export();
            assert_eq!((out.records.len(), report.native_left_out), (1, 0), "{way}");
            let native = out.records.keys().next().unwrap().clone();
            let scope = PurgeScope::Records(vec![native]);
            let monitor = Monitor::default();
            alf::purge(&world.session, &scope, &purge::options(), &monitor).unwrap();
            assert_eq!(current(&world), [""; 0], "{way}");
        }
    }
}

#[test]
fn a_purge_of_the_agent_takes_it() {
    for (way, edit) in WAYS {
        let world = with_a_record("tea");
        edit(&world, "tea", "coffee");
        let report =
            alf::purge(&world.session, &PurgeScope::Agent, &purge::options(), &Monitor::default());
        assert_eq!(report.unwrap().records_removed, 2, "{way}");
        assert_eq!(current(&world), [""; 0], "{way}");
    }
}

#[test]
fn an_update_from_elsewhere_stands_beside_it() {
    for (way, edit) in WAYS {
        let world = with_a_record("tea");
        edit(&world, "tea", "coffee");
        let members = json!({
            "content": "mint tea", "namespace": format!("principal_context:{}", id(900)),
        });
        let changed = with(record(1, "2026-07-01T00:00:00Z"), members);
        let path = Made::of(vec![("2026-Q3", vec![changed])]).write(world.dir.path(), "in.alf");
        world.import_with(&path, &ImportOptions::default());
        assert_eq!(current(&world), ["coffee", "mint tea"], "{way}");
        let (out, report) = world.export();
        assert_eq!((report.records, report.native_left_out), (2, 0), "{way}");
        assert_eq!(of(&out, "coffee")["supersedes"], of(&out, "mint tea")["id"], "{way}");
        let scope = PurgeScope::User(id(900));
        alf::purge(&world.session, &scope, &purge::options(), &Monitor::default()).unwrap();
        assert_eq!(current(&world), [""; 0], "{way}");
    }
}

/// A copy that no row leads to is found by what it says of its agent.
#[test]
fn a_copy_beside_a_record_goes_with_the_person_and_with_the_agent() {
    for scope in [PurgeScope::User(id(900)), PurgeScope::Agent] {
        for erased in [false, true] {
            let world = with_a_record("tea");
            let tea = address_of(&world, "tea");
            match erased {
                false => drop(world.session.put(edited(&world, &tea, "milk")).unwrap()),
                // The way to what took its place is gone with its row.
                true => {
                    by_hand(&world, "tea", "milk");
                    world.session.erase(&tea, "a test", &EraseOptions::new()).unwrap();
                }
            }
            let report =
                alf::purge(&world.session, &scope, &purge::options(), &Monitor::default()).unwrap();
            assert_eq!(report.records_removed, if erased { 1 } else { 2 });
            assert_eq!(current(&world), [""; 0], "{scope:?}");
        }
    }
}

/// What anybody may write into a grain ends no walk over all grains, and hides nothing.
#[test]
fn notes_that_say_nothing_are_none() {
    let long = "x".repeat(5_000);
    let notes: &[&[(&str, &str)]] = &[
        &[("alf:id", ""), ("alf:agent_id", AGENT)],
        &[("alf:id", &long), ("alf:agent_id", AGENT)],
        &[("alf:id", "no uuid"), ("alf:agent_id", "no uuid")],
        &[("alf:agent_id", AGENT)],
        &[("alf:source", "{}")],
        &[],
    ];
    for of_record in [false, true] {
        for said in notes {
            let world = with_a_record("tea");
            let mut grain = edited(&world, &address_of(&world, "tea"), "milk").into_fields();
            let said = said.iter().map(|(name, text)| ((*name).to_owned(), Field::from(*text)));
            grain.insert("context".to_owned(), Field::Map(said.collect()));
            let grain = Grain::from_fields(grain).unwrap();
            let tea = address_of(&world, "tea");
            match of_record {
                true => drop(world.session.supersede(&tea, grain, None).unwrap()),
                false => drop(world.session.put(grain).unwrap()),
            }
            let (out, report) = world.export();
            let expected = if of_record { (2, 0) } else { (1, 1) };
            assert_eq!((report.records, report.native_left_out), expected, "{out:?}");
            purge::purge(&world, &[1], &purge::options()).unwrap();
            assert_eq!(current(&world), ["milk"]);
        }
    }
}

#[test]
fn what_an_agent_has_is_in_no_archive_of_another() {
    for (way, edit) in WAYS {
        let world = with_a_record("tea");
        let mut second =
            Made::of(vec![("2026-Q3", vec![other_agent(record(2, "2026-07-02T00:00:00Z"))])]);
        second.manifest["agent"]["id"] = json!(id(800));
        world.import_made(&second);
        edit(&world, "tea", "coffee");
        let options =
            ExportOptions { agent_id: Some(id(800)), native: true, ..ExportOptions::default() };
        let report =
            alf::export(&world.session, file(&world), &options, &Monitor::default()).unwrap();
        assert_eq!((report.records, report.native_left_out), (1, 0), "{way}");
        let mut of_second = purge::options();
        of_second.agent_id = Some(id(800));
        alf::purge(&world.session, &PurgeScope::Agent, &of_second, &Monitor::default()).unwrap();
        assert_eq!(current(&world), ["coffee"], "{way}");
        let options =
            ExportOptions { agent_id: Some(AGENT.to_owned()), ..ExportOptions::default() };
        let report =
            alf::export(&world.session, file(&world), &options, &Monitor::default()).unwrap();
        assert_eq!(report.records, 2, "{way}");
    }
}

fn other_agent(record: Value) -> Value {
    with(record, json!({"agent_id": id(800)}))
}

/// An archive cannot make a grain that is a version of a record the grain of another.
#[test]
fn one_grain_is_one_record_whatever_an_archive_says() {
    // A store that has the grains of records without their rows carries them as they are.
    let world = with_a_record("tea");
    let tea = world.session.get(&address_of(&world, "tea")).unwrap();
    let bare = World::new();
    bare.session.put(Offer::Blob(tea.blob.clone())).unwrap();
    let options = ExportOptions {
        agent_id: Some(AGENT.to_owned()),
        agent_name: Some("Ada".to_owned()),
        native: true,
        ..ExportOptions::default()
    };
    let report = alf::export(&bare.session, file(&bare), &options, &Monitor::default()).unwrap();
    assert_eq!((report.records, report.native_left_out), (0, 0));
    // A lying one: a record that carries it under the id that a native grain of these bytes has.
    let view = lying(&tea);
    let path = Made::of(vec![("2026-Q3", vec![view.clone()])]).write(world.dir.path(), "lie.alf");
    world.import(&path);
    let lied = view["id"].as_str().unwrap().to_owned();
    let scope = PurgeScope::Records(vec![lied]);
    alf::purge(&world.session, &scope, &purge::options(), &Monitor::default()).unwrap();
    assert_eq!(current(&world), ["tea"]);
    // The other way round: the record comes after it.
    let late = World::new();
    late.import(&path);
    let members = json!({
        "content": "tea", "tags": ["drinks"], "category": "taste",
        "namespace": format!("principal_context:{}", id(900)),
    });
    late.import_made(&Made::of(vec![(
        "2026-Q3",
        vec![with(record(1, "2026-07-01T00:00:00Z"), members)],
    )]));
    alf::purge(&late.session, &scope, &purge::options(), &Monitor::default()).unwrap();
    assert_eq!(current(&late), ["tea"]);
}

/// A record that says that it carries this grain, under the id that it would have as a native one.
fn lying(tea: &StoredGrain) -> Value {
    let hash = *tea.address.as_bytes();
    let ms = tea.grain().unwrap().created_at().get();
    let part = |from: usize, to: usize| {
        hash[from..to].iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte))
    };
    let (middle, random) = (part(0, 2) >> 4, part(2, 10) & 0x3fff_ffff_ffff_ffff | 1 << 63);
    let id = format!(
        "{:08x}-{:04x}-7{middle:03x}-{:04x}-{:012x}",
        ms >> 16,
        ms & 0xffff,
        random >> 48,
        random & 0xffff_ffff_ffff
    );
    let more = json!({"id": id, "temporal": {"created_at": "2026-07-01T00:00:00Z"}});
    carrying_bytes(1, &tea.blob, None, more)
}
