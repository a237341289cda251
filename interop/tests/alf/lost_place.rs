//! Records whose place another has, and imports of them that are cut off: what was left is known, and is not there twice.

use std::collections::BTreeSet;

use grainstore::cal::Query;
use grainstore::prelude::*;
use grainstore::{EraseOptions, PageOptions};
use grainstore_interop::Monitor;
use grainstore_interop::alf::{self, ImportOptions, ImportReport};
use serde_json::{Value, json};

use crate::cut_off::{Watched, import, reopened};
use crate::kit::*;
use crate::vouched::running;

/// The memories that are current, with their grains, in order.
fn memories(session: &Session) -> Vec<(String, ContentAddress)> {
    let found = session.query(&Query::default(), &PageOptions::first(100)).unwrap().results;
    let said = found.iter().filter(|row| row.grain.text("relation") == Some("mg:knows"));
    let mut said: Vec<_> = said
        .map(|row| (row.grain.text("object").unwrap().to_owned(), row.content_address))
        .collect();
    said.sort();
    said
}

fn texts(session: &Session) -> Vec<String> {
    memories(session).into_iter().map(|(text, _)| text).collect()
}

fn saying(number: u32, text: &str, more: Value) -> Value {
    with(with(record(number, "2026-07-02T00:00:00Z"), json!({"content": text})), more)
}

fn first() -> Vec<Value> {
    vec![record(41, "2026-07-01T00:00:00Z"), saying(51, "first", json!({"supersedes": id(41)}))]
}

/// Another record that supersedes the same one, and one that supersedes nothing.
fn with_second(words: &str) -> Vec<Value> {
    let mut records = first();
    records.push(saying(52, &format!("second {words}"), json!({"supersedes": id(41)})));
    records.push(saying(54, &format!("plain {words}"), json!({})));
    records
}

fn import_allowing(session: &Session, path: &std::path::Path, allow_purged: bool) -> ImportReport {
    let options = ImportOptions { allow_purged, ..ImportOptions::default() };
    alf::import(session, path, &options, &Monitor::default()).unwrap()
}

struct Archives {
    watched: Watched,
    old: std::path::PathBuf,
    new: std::path::PathBuf,
}

fn archives() -> Archives {
    let watched = Watched::new();
    let dir = watched.dir.path();
    let [old, new] =
        ["old", "new"].map(|words| running(with_second(words)).write(dir, &format!("{words}.alf")));
    Archives { watched, old, new }
}

#[test]
fn what_was_left_beside_a_place_is_not_current_beside_what_comes_next() {
    let Archives { watched, old, new } = archives();
    import(&watched.session, &running(first()).write(watched.dir.path(), "first.alf"));
    for copy in watched.cut_off(&old) {
        let session = reopened(&copy);
        for _ in 0..2 {
            import_allowing(&session, &new, false);
            assert_eq!(texts(&session), ["first", "plain new", "second new"], "{copy:?}");
        }
        assert_eq!(session.store().verify(true).unwrap().problems, []);
    }
}

#[test]
fn what_was_left_beside_a_place_and_was_erased_stays_erased() {
    let Archives { watched, old, new } = archives();
    import(&watched.session, &running(first()).write(watched.dir.path(), "first.alf"));
    let mut erased = BTreeSet::new();
    for copy in watched.cut_off(&old) {
        let session = reopened(&copy);
        let left = memories(&session).into_iter().filter(|(text, _)| text != "first");
        let gone: Vec<String> = left
            .map(|(text, address)| {
                session.erase(&address, "asked", &EraseOptions::new()).unwrap();
                text.replace("old", "new")
            })
            .collect();
        import_allowing(&session, &new, false);
        for text in texts(&session) {
            assert!(!gone.contains(&text), "{text} {copy:?}");
        }
        erased.extend(gone);
    }
    assert_eq!(erased.len(), 2);
}

#[test]
fn what_a_record_that_took_a_place_has_left_is_not_current_beside_what_comes_next() {
    let watched = Watched::new();
    let of = |words: &str| {
        vec![
            saying(41, &format!("origin {words}"), json!({})),
            saying(51, &format!("first {words}"), json!({"supersedes": id(41)})),
        ]
    };
    let [old, new] = ["old", "new"]
        .map(|words| running(of(words)).write(watched.dir.path(), &format!("{words}.alf")));
    for copy in watched.cut_off(&old) {
        let session = reopened(&copy);
        for _ in 0..2 {
            import_allowing(&session, &new, false);
            // What comes in other words, and was complete, stands beside what had its place.
            let mut texts = texts(&session);
            texts.retain(|text| text != "origin new");
            assert_eq!(texts, ["first new"], "{copy:?}");
        }
    }
}

#[test]
fn what_was_erased_and_is_taken_again_in_two_turns_is_there_once() {
    let Archives { watched, new, .. } = archives();
    import(&watched.session, &new);
    let all = memories(&watched.session);
    assert_eq!(all.len(), 3);
    for (_, address) in grains(&watched.session) {
        watched.session.erase(&address, "asked", &EraseOptions::new()).unwrap();
    }
    let again = || import_allowing(&watched.session, &new, true);
    let copies = watched.camera.during(again);
    assert!(copies.len() > 3);
    for copy in copies {
        let session = reopened(&copy);
        for _ in 0..2 {
            let report = import_allowing(&session, &new, true);
            assert_eq!(report.errors, [], "{copy:?}");
            assert_eq!(texts(&session), ["first", "plain new", "second new"], "{copy:?}");
        }
    }
}

/// All grains of records, also those in whose places others are.
fn grains(session: &Session) -> Vec<(String, ContentAddress)> {
    let all = Query::default().seeing(grainstore::cal::Visibility::EVERYTHING);
    let found = session.query(&all, &PageOptions::first(100)).unwrap().results;
    let said = found.iter().filter(|row| row.grain.text("relation") == Some("mg:knows"));
    said.map(|row| (row.grain.text("object").unwrap().to_owned(), row.content_address)).collect()
}
