//! In whatever order records come and however many quarters they are of, they are read and written in bounded steps.

use grainstore::cal::Query;
use grainstore::prelude::*;
use grainstore_interop::Monitor;
use grainstore_interop::alf::{self, ImportOptions};
use grainstore_interop::json::Value;
use serde_json::json;

use crate::kit::*;
use crate::round_trip::assert_same;

#[test]
fn a_chain_whose_newest_comes_first_is_read_once() {
    let world = World::new();
    let count: u32 = 3_000;
    let records = (0..count).rev().map(|number| {
        let record = record(number, "2026-07-02T00:00:00Z");
        match number {
            0 => record,
            _ => with(record, json!({"supersedes": id(number - 1)})),
        }
    });
    let path = Made::of(vec![("2026-Q3", records.collect())]).write(world.dir.path(), "in.alf");
    let steps = std::cell::Cell::new(0_u32);
    let progress = |_, _| steps.set(steps.get() + 1);
    let monitor = Monitor { progress: Some(&progress), ..Monitor::default() };
    let report = alf::import(&world.session, &path, &ImportOptions::default(), &monitor).unwrap();
    assert_eq!((report.records.created, report.error_count), (3_000, 0));
    assert!(!report.warnings.iter().any(|issue| issue.message.contains("kept as text")));
    // Every 500 records one: those that are checked, those that are read, those that waited.
    assert!(steps.get() <= 3 * count / 500 + 5, "{} steps", steps.get());
    let current = world.session.query(&Query::default(), &PageOptions::first(10)).unwrap().results;
    let objects: Vec<_> = current.iter().filter_map(|row| row.grain.text("object")).collect();
    assert_eq!(objects, [format!("memory {}", count - 1)]);
    let newest = current.iter().find(|row| row.grain.text("object").is_some()).unwrap();
    assert_eq!(world.session.history(&newest.content_address).unwrap().len(), count as usize);
    assert_same(&read(&path), &world.export().0);
}

#[test]
fn what_hangs_on_a_circle_takes_its_place_all_the_same() {
    let world = World::new();
    let superseding = |number: u32, old: u32| {
        with(record(number, "2026-07-02T00:00:00Z"), json!({"supersedes": id(old)}))
    };
    let records = vec![superseding(10, 9), superseding(9, 8), superseding(8, 9)];
    let path = Made::of(vec![("2026-Q3", records)]).write(world.dir.path(), "in.alf");
    let report = world.import(&path);
    assert_eq!(report.records.created, 3);
    let found = world.session.query(&Query::default(), &PageOptions::first(10)).unwrap().results;
    let mut current: Vec<_> = found.iter().filter_map(|row| row.grain.text("object")).collect();
    current.sort_unstable();
    assert_eq!(current, ["memory 10", "memory 8"]);
    assert_same(&read(&path), &world.export().0);
}

/// Number of files that this process has open.
fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

#[test]
fn memory_of_three_hundred_years_is_exported_with_few_open_files() {
    let world = World::new();
    let quarters: Vec<(String, Vec<Value>)> = (0..1_200_u32)
        .map(|at| {
            let (year, quarter) = (1726 + at / 4, at % 4);
            let time = format!("{year}-{:02}-02T00:00:00Z", quarter * 3 + 1);
            (format!("{year}-Q{}", quarter + 1), vec![record(at, &time)])
        })
        .collect();
    let quarters = quarters.iter().map(|(label, records)| (label.as_str(), records.clone()));
    let mut made = Made::of(quarters.collect());
    // Partitions whose bytes are not kept are written anew.
    made.partitions.iter_mut().for_each(|(_, records)| records[0]["x"] = json!(1));
    world.import(&made.write(world.dir.path(), "in.alf"));
    let months = alf::ExportOptions { granularity: alf::Granularity::Month, ..Default::default() };
    let (before, most) = (open_files(), std::cell::Cell::new(0));
    let progress = |_, _| most.set(most.get().max(open_files()));
    let monitor = Monitor { progress: Some(&progress), ..Monitor::default() };
    let path = world.dir.path().join("out.alf");
    let report = alf::export(&world.session, &path, &months, &monitor).unwrap();
    assert_eq!(report.partitions.len(), 1_200);
    // Other tests open files meanwhile.
    assert!(most.get() < before + 600, "{before} before, {} at most", most.get());
    assert_eq!(read(&path).records.len(), 1_200);
}
