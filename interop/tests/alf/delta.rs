//! Deltas: what one store learned since, and another after it.

use grainstore_interop::alf::{
    self, ApplyReport, DeltaOptions, DeltaReport, ExportOptions, ImportMode, ImportOptions,
};
use grainstore_interop::archive::Limits;
use grainstore_interop::{Monitor, Result};
use proptest::prelude::*;
use serde_json::json;

use crate::kit::*;
use crate::round_trip::assert_same;

fn delta(world: &World, since: u64) -> Option<DeltaReport> {
    let path = world.dir.path().join("a.alf-delta");
    let options = DeltaOptions { since, ..DeltaOptions::default() };
    let report = alf::export_delta(&world.session, &path, &options, &Monitor::default()).unwrap();
    if report.is_some() {
        let found = alf::validate(&path, Limits::default(), &Monitor::default()).unwrap();
        assert!(found.valid, "{found:?}");
    }
    report
}

fn apply(world: &World, from: &World) -> Result<ApplyReport> {
    let path = from.dir.path().join("a.alf-delta");
    alf::apply_delta(&world.session, path, &ImportOptions::default(), &Monitor::default())
}

/// Two stores with the same agent.
fn twins() -> [World; 2] {
    let [one, other] = [World::new(), World::new()];
    one.import_made(&rich());
    one.export();
    other.import(&one.dir.path().join("out.alf"));
    [one, other]
}

/// The agent of [`rich`] some time later: records came, changed and went, in the running partition and in sealed ones.
fn later() -> Made {
    let mut made = rich();
    made.manifest["created_at"] = json!("2026-08-10T00:00:00Z");
    made.manifest["agent"]["name"] = json!("Ada the second");
    for (_, records) in &mut made.partitions {
        for record in records {
            let changed = match record["id"]
                .as_str()
                .map(|text| text.trim_start_matches("019470a0-0000-7000-8000-00000000000"))
            {
                // In sealed partitions: an edit, a deletion.
                Some("1") => json!({"content": "memory 1, edited"}),
                Some("2") => json!({"status": "deleted"}),
                // In the running one: an edit, a deletion, embeddings, an access, another type.
                Some("4") => json!({"content": "memory 4, edited", "x": [1]}),
                Some("5") => json!({"status": "deleted"}),
                Some("6") => json!({"memory_type": "episodic"}),
                Some("7") => json!({"status": "active"}),
                Some("8") => {
                    json!({"embeddings": [{"model": "m", "dimensions": 2, "vector": [1, 0],
                    "computed_at": "2026-08-01T00:00:00Z", "source": "runtime"}]})
                }
                _ => continue,
            };
            *record = with(record.clone(), changed);
            record["temporal"]["updated_at"] = json!("2026-08-09T00:00:00Z");
        }
    }
    let new = with(record(50, "2026-08-09T00:00:00Z"), json!({"supersedes": id(9)}));
    made.partitions[2].1.push(new);
    let mut made = made.layer("identity", identity(4)).file("raw/openclaw/SOUL.md", b"be kinder");
    made.entries.remove("x-unknown/thing");
    made
}

#[test]
fn a_delta_makes_of_the_store_before_the_store_after() {
    let [one, other] = twins();
    let path = later().write(one.dir.path(), "later.alf");
    let mirror = ImportOptions { mode: ImportMode::Mirror, ..ImportOptions::default() };
    let report = one.import_with(&path, &mirror);
    assert_eq!(report.errors, []);
    let told = delta(&one, 7).unwrap();
    assert_eq!((told.base_sequence, told.new_sequence), (7, 8));
    assert_eq!((told.created, told.updated, told.deleted), (3, 4, 1), "{told:?}");
    assert_eq!((told.layers, told.files), (vec!["identity"], 1));
    let applied = apply(&other, &one).unwrap();
    assert_eq!(applied.import.errors, []);
    let ([before, _], [after, _]) =
        ([one.export(), one.export()], [other.export(), other.export()]);
    assert_same(&before.0, &after.0);
    assert_eq!(before.0.partitions, after.0.partitions);
    assert_eq!(before.1.sequence, 8);
    // Once more, it is known; and nothing is left to tell.
    assert!(apply(&other, &one).unwrap().known);
    assert_eq!(delta(&one, 8), None);
    one.verify();
    other.verify();
}

#[test]
fn a_change_of_a_sealed_record_is_a_record_of_its_own() {
    let [one, _] = twins();
    let (before, _) = one.export();
    let path = later().write(one.dir.path(), "later.alf");
    one.import(&path);
    let (after, report) = one.export();
    assert_eq!(report.replaced_partitions, [""; 0]);
    for quarter in ["2026-Q1", "2026-Q2"] {
        let name = format!("memory/partitions/{quarter}.jsonl");
        assert_eq!(before.partitions[&name], after.partitions[&name]);
    }
    let changes: Vec<_> =
        after.records.values().filter(|record| record.get("x_change_of").is_some()).collect();
    let told = |change: &serde_json::Value| {
        let text = |name: &str| change[name].as_str().unwrap_or_default().to_owned();
        (text("x_change_of"), text("status"), text("content"))
    };
    let mut told: Vec<_> = changes.iter().map(|change| told(change)).collect();
    told.sort();
    let [active, deleted, edited, gone] =
        ["active", "deleted", "memory 1, edited", "[deleted]"].map(str::to_owned);
    assert_eq!(told, [(id(1), active, edited), (id(2), deleted, gone)]);
    // Once more, nothing changes; and in another store it is the same.
    let again = one.import(&path);
    assert_eq!(
        (again.records.created, again.records.updated, again.records.deleted),
        (0, 0, 0),
        "{again:?}"
    );
    let other = World::new();
    other.import(&one.dir.path().join("out.alf"));
    assert_same(&after, &other.export().0);
    let text = other.assembled("events");
    assert_eq!(text.matches("memory 1").count(), 1, "{text}");
    assert!(text.contains("memory 1, edited"), "{text}");
}

#[test]
fn a_record_that_comes_late_replaces_a_sealed_partition_and_the_report_says_so() {
    let world = World::new();
    world.import_made(&rich());
    world.export();
    let late = Made::of(vec![("2026-Q1", vec![record(60, "2026-02-01T00:00:00Z")])]);
    world.import_made(&late);
    let (out, report) = world.export();
    assert_eq!(report.replaced_partitions, ["2026-Q1"]);
    assert_eq!(out.records.len(), 10);
    let (again, report) = world.export();
    assert_eq!((report.replaced_partitions.len(), again.partitions), (0, out.partitions));
}

#[test]
fn a_quarter_that_ends_is_sealed_from_the_next_export_on() {
    let world = World::new();
    world.import_made(&Made::of(vec![("2026-Q3", vec![record(1, "2026-07-02T00:00:00Z")])]));
    let sealed = |read: &Read| {
        let partitions =
            read.manifest["layers"]["memory"]["partitions"].as_array().unwrap().clone();
        partitions
            .into_iter()
            .map(|one| (one["sealed"].as_bool().unwrap(), one["to"].clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(sealed(&world.export().0), [(false, json!(null))]);
    world.clock.set(grainstore::EpochMs::new(NOW + 90 * 86_400_000));
    let (first, _) = world.export();
    assert_eq!(sealed(&first), [(true, json!("2026-09-30"))]);
    world.import_made(&Made::of(vec![(
        "2026-Q3",
        vec![with(record(1, "2026-07-02T00:00:00Z"), json!({"content": "new"}))],
    )]));
    let (second, _) = world.export();
    let name = "memory/partitions/2026-Q3.jsonl";
    assert_eq!(first.partitions[name], second.partitions[name]);
    assert_eq!(second.records.len(), 2);
    assert_eq!(sealed(&second), [(true, json!("2026-09-30")), (false, json!(null))]);
}

#[test]
fn a_delta_that_goes_on_from_elsewhere_is_refused() {
    let [one, other] = twins();
    for number in [50, 51] {
        let records = vec![record(number, "2026-07-02T00:00:00Z")];
        one.import_made(&Made::of(vec![("2026-Q3", records)]));
    }
    delta(&one, 8).unwrap();
    let error = apply(&other, &one).unwrap_err();
    assert_eq!((error.code(), error.entry()), ("ERR_CONFLICT", Some("delta-manifest.json")));
    let stranger = World::new();
    assert_eq!(apply(&stranger, &one).unwrap_err().code(), "ERR_NOT_FOUND");
    delta(&one, 7).unwrap();
    assert_eq!(apply(&other, &one).unwrap().import.records.created, 2);
    let future = DeltaOptions { since: 99, ..DeltaOptions::default() };
    let path = one.dir.path().join("b");
    let error = alf::export_delta(&one.session, path, &future, &Monitor::default()).unwrap_err();
    assert_eq!(error.code(), "ERR_CONFLICT");
}

#[test]
fn months_are_partitions_where_they_are_asked_for() {
    let world = World::new();
    world.import_made(&rich());
    let path = world.dir.path().join("months.alf");
    let options =
        ExportOptions { granularity: alf::Granularity::Month, ..ExportOptions::default() };
    alf::export(&world.session, &path, &options, &Monitor::default()).unwrap();
    let names: Vec<_> = read(&path).partitions.into_keys().collect();
    let months = ["2026-01", "2026-04", "2026-05", "2026-07"];
    assert_eq!(names, months.map(|month| format!("memory/partitions/{month}.jsonl")));
    assert!(alf::validate(&path, Limits::default(), &Monitor::default()).unwrap().valid);
}

#[test]
fn an_edit_of_a_sealed_record_whose_place_another_took_is_told_once() {
    let world = World::new();
    let first = record(2, "2026-02-01T00:00:00Z");
    let taker = with(record(100, "2026-08-01T00:00:00Z"), json!({"supersedes": id(2)}));
    world.import_made(&Made::of(vec![("2026-Q1", vec![first.clone()])]));
    world.export();
    let later = ("2026-Q3", vec![taker]);
    world.import_made(&Made::of(vec![("2026-Q1", vec![first.clone()]), later.clone()]));
    let mut edited = with(first, json!({"content": "edited"}));
    edited["temporal"]["updated_at"] = json!("2026-08-02T00:00:00Z");
    let path = Made::of(vec![("2026-Q1", vec![edited]), later]).write(world.dir.path(), "in.alf");
    for updated in [1, 0, 0] {
        let report = world.import_with(&path, &ImportOptions::default());
        assert_eq!((report.records.updated, report.errors), (updated, vec![]));
    }
    let (out, _) = world.export();
    let of = |record: &&serde_json::Value| record["x_change_of"] == json!(id(2));
    assert_eq!(out.records.values().filter(of).count(), 1);
    world.verify();
}

/// What happens to a record: which one, and what.
#[derive(Debug, Clone)]
enum Event {
    Edit(u32),
    Status(u32, &'static str),
    Kind(u32, &'static str),
    Touch(u32),
    Supersede(u32),
    Export,
}

fn event() -> impl Strategy<Value = Event> {
    let number = 0_u32..8;
    prop_oneof![
        3 => number.clone().prop_map(Event::Edit),
        3 => (number.clone(), prop::sample::select(vec!["active", "deleted", "archived", "superseded", "odd"]))
            .prop_map(|(number, status)| Event::Status(number, status)),
        1 => (number.clone(), prop::sample::select(vec!["semantic", "episodic", "preference", "odd"]))
            .prop_map(|(number, kind)| Event::Kind(number, kind)),
        1 => number.clone().prop_map(Event::Touch),
        2 => number.prop_map(Event::Supersede),
        1 => Just(Event::Export),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(24), ..ProptestConfig::default() })]

    /// Whatever happens to records, in sealed partitions and in the running one: deltas make one store of the other,
    /// and what was sealed does not change.
    #[test]
    fn deltas_tell_whatever_happened(rounds in prop::collection::vec(prop::collection::vec(event(), 1..5), 1..4)) {
        let [one, other] = [World::new(), World::new()];
        let mut records: Vec<_> = (0..8_u32).map(|number| match number % 2 {
            0 => record(number, "2026-02-01T00:00:00Z"),
            _ => record(number, "2026-07-02T00:00:00Z"),
        }).collect();
        let made = |records: &[serde_json::Value]| {
            let of = |quarter: &str| records.iter().filter(|one| {
                (one["temporal"]["created_at"] == "2026-02-01T00:00:00Z") == (quarter == "2026-Q1")
            }).cloned().collect();
            Made::of(vec![("2026-Q1", of("2026-Q1")), ("2026-Q3", of("2026-Q3"))])
        };
        one.import_made(&made(&records));
        let (first, exported) = one.export();
        other.import(&one.dir.path().join("out.alf"));
        let mut since = exported.sequence;
        for (round, events) in rounds.into_iter().enumerate() {
            for (step, event) in events.into_iter().enumerate() {
                let time = format!("2026-08-{:02}T00:00:{step:02}Z", round + 1);
                let (number, members) = match event {
                    Event::Export => { one.export(); continue; }
                    Event::Supersede(number) => {
                        let next = 100 + u32::try_from(round * 10 + step).unwrap();
                        records.push(with(record(next, &time), json!({"supersedes": id(number)})));
                        continue;
                    }
                    Event::Edit(number) => (number, json!({"content": format!("edited at {time}")})),
                    Event::Status(number, status) => (number, json!({"status": status})),
                    Event::Kind(number, kind) => (number, json!({"memory_type": kind})),
                    Event::Touch(number) => (number, json!({"temporal": {"access_count": step}})),
                };
                let record = &mut records[number as usize];
                let mut times = record["temporal"].clone();
                if let Some(count) = members["temporal"].get("access_count") {
                    times["access_count"] = count.clone();
                }
                *record = with(record.clone(), members);
                times["updated_at"] = json!(time);
                record["temporal"] = times;
            }
            let path = made(&records).write(one.dir.path(), "in.alf");
            let report = one.import_with(&path, &ImportOptions::default());
            prop_assert_eq!(report.errors, []);
            let again = one.import_with(&path, &ImportOptions::default()).records;
            prop_assert_eq!((again.created, again.updated, again.deleted), (0, 0, 0));
            if let Some(told) = delta(&one, since) {
                let applied = apply(&other, &one).unwrap();
                prop_assert_eq!(applied.import.errors, []);
                since = told.new_sequence;
            }
            let (left, _) = one.export();
            let (right, _) = other.export();
            assert_same(&left, &right);
            prop_assert_eq!(&left.partitions, &right.partitions);
            let sealed = "memory/partitions/2026-Q1.jsonl";
            prop_assert_eq!(&left.partitions[sealed], &first.partitions[sealed]);
        }
        one.verify();
        other.verify();
    }
}
