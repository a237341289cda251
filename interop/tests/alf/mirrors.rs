//! Mirrors over sealed partitions that are cut off: what they began is completed, whatever comes next.

use grainstore::PageOptions;
use grainstore::cal::Query;
use grainstore::prelude::*;
use grainstore_interop::Monitor;
use grainstore_interop::alf::{self, ImportMode, ImportOptions};
use serde_json::json;
use std::path::{Path, PathBuf};

use crate::camera::Camera;
use crate::cut_off::{Watched, export, import};
use crate::kit::*;

const DAY: i64 = 86_400_000;

/// The memories that are current, in order.
fn texts(session: &Session) -> Vec<String> {
    let found = session.query(&Query::default(), &PageOptions::first(100)).unwrap().results;
    let said = found.iter().filter(|row| row.grain.text("relation") == Some("mg:knows"));
    let mut said: Vec<_> = said.map(|row| row.grain.text("object").unwrap().to_owned()).collect();
    said.sort();
    said
}

fn mirror(session: &Session, path: &Path) {
    let options = ImportOptions { mode: ImportMode::Mirror, ..ImportOptions::default() };
    let report = alf::import(session, path, &options, &Monitor::default()).unwrap();
    assert_eq!(report.errors, []);
}

/// An archive with a sealed partition of these records, and a running one.
fn archive(dir: &Path, name: &str, sealed: &[u32], edit: &str) -> PathBuf {
    let sealed = sealed.iter().map(|number| {
        let text = format!("sealed {number}{edit}");
        with(record(*number, "2026-02-02T00:00:00Z"), json!({"content": text}))
    });
    let running = vec![record(50, "2026-07-02T00:00:00Z")];
    Made::of(vec![("2026-Q1", sealed.collect()), ("2026-Q3", running)]).write(dir, name)
}

struct Cut {
    watched: Watched,
    whole: PathBuf,
    later: PathBuf,
    copies: Vec<PathBuf>,
}

/// What mirrors leave that are cut off: of an archive with one of four records.
fn cut(edit: &str) -> Cut {
    let watched = Watched::new();
    let whole = archive(watched.dir.path(), "whole.alf", &[1, 2, 3, 4], "");
    let sealed: &[u32] = if edit.is_empty() { &[1] } else { &[1, 2, 3, 4] };
    let later = archive(watched.dir.path(), "later.alf", sealed, edit);
    import(&watched.session, &whole);
    let copies = watched.camera.during(|| mirror(&watched.session, &later));
    assert!(copies.len() > 3);
    Cut { watched, whole, later, copies }
}

fn reopened(copy: &Path, days: i64) -> Session {
    Camera::open(copy, NOW + days * DAY)
}

#[test]
fn a_mirror_that_was_cut_off_is_completed_by_the_same_later() {
    let Cut { watched, later, copies, .. } = cut("");
    for copy in copies {
        for days in 1..3 {
            let session = reopened(&copy, days);
            mirror(&session, &later);
            assert_eq!(texts(&session), ["memory 50", "sealed 1"], "{copy:?}");
        }
        let out = export(&reopened(&copy, 3), &watched.dir.path().join("out.alf"));
        let changes = out.records.values().filter(|record| record.get("x_change_of").is_some());
        assert_eq!(changes.count(), 3, "{copy:?}");
    }
}

#[test]
fn a_mirror_that_was_cut_off_leaves_nothing_to_whatever_comes_next() {
    let Cut { watched, whole, copies, .. } = cut("");
    for copy in copies {
        let session = reopened(&copy, 1);
        for is_import in [true, false] {
            if is_import {
                import(&session, &whole);
            }
            // What was deleted is told, and all the rest is there.
            let out = export(&session, &watched.dir.path().join("out.alf"));
            assert!(!texts(&session).contains(&"[deleted]".to_owned()), "{copy:?}");
            assert_eq!(out.records.len(), 5 + (5 - texts(&session).len()), "{copy:?}");
        }
        assert_eq!(session.store().verify(true).unwrap().problems, []);
    }
}

#[test]
fn edits_of_sealed_records_that_were_cut_off_are_there_once() {
    let Cut { watched: _watched, later, copies, .. } = cut(", edited");
    for copy in copies {
        for days in 1..3 {
            let session = reopened(&copy, days);
            mirror(&session, &later);
            let sealed = (1..5).map(|number| format!("sealed {number}, edited"));
            let all: Vec<_> = std::iter::once("memory 50".to_owned()).chain(sealed).collect();
            assert_eq!(texts(&session), all, "{copy:?}");
        }
    }
}
