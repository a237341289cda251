//! Two migrations of one dump at the same time.

use std::thread;

use grainstore_interop::Monitor;
use grainstore_interop::migrate::{self, Format, MigrateOptions};

use crate::kit::Kit;

#[test]
fn a_dump_that_two_take_at_once_is_taken_once() {
    let kit = Kit::new();
    let records: Vec<_> = (0..200)
        .map(|at| {
            serde_json::json!({ "id": at.to_string(), "memory": format!("fact {at}"), "user_id": "ann",
                "created_at": "2026-03-02T09:00:00Z" })
        })
        .collect();
    let file = kit.file("dump.json", serde_json::json!({ "results": records }).to_string());
    let added: Vec<_> = thread::scope(|scope| {
        let running: Vec<_> = (0..3)
            .map(|_| {
                let (session, file) = (kit.session.clone(), &file);
                scope.spawn(move || {
                    let options = MigrateOptions::default();
                    let report =
                        migrate::run(&session, Format::Mem0, file, &options, &Monitor::default());
                    let report = report.unwrap();
                    (report.added, report.unchanged)
                })
            })
            .collect();
        running.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let mut added = added;
    added.sort_unstable();
    assert_eq!(added, [(0, 200), (0, 200), (200, 0)]);
}
