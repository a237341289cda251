//! Tests of graphs that are built, saved and read again, on the caller's thread alone.

use std::path::Path;

use grainstore_index::vectors::Metric;
use tempfile::TempDir;

use super::*;
use crate::search::embed::Embedding;
use crate::{Grain, Offer, OpenOptions, Session, SessionOptions, Store};

/// Vectors up to which there is no graph, in these tests.
const FEW: usize = 64;
const MANY: usize = 4 * FEW;

fn grain(at: usize) -> Grain {
    let json = format!(
        r#"{{"type": "belief", "subject": "s{at}", "relation": "r", "object": "o",
            "confidence": 0.5, "created_at": 1000}}"#
    );
    Grain::from_json(&json).unwrap()
}

/// A grain with a vector of its own in each turn.
fn offer(at: usize, turn: usize) -> Offer {
    let value = |i: usize| f32::from(u8::try_from((at * 31 + i * 17 + turn * 57) % 101).unwrap());
    let values: Vec<f32> = (0..8).map(|i| value(i) - 50.0).collect();
    let vector = Embedding::new("m", Metric::Cosine, values).unwrap();
    Offer::Grain(grain(at)).with_vectors(vec![vector])
}

fn store() -> (TempDir, Session) {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path(), &OpenOptions::new().create(true)).unwrap();
    let session = store.session(SessionOptions::default());
    session.put_batch((0..MANY).map(|at| offer(at, 0))).unwrap();
    (dir, session)
}

/// The vectors of a store, which no thread follows, with files of their own.
fn vectors(home: &Path) -> StoreVectors {
    let vectors = StoreVectors::new(Some(home));
    vectors.lock().vector_index = VectorIndex::with_scan_up_to(FEW);
    vectors
}

fn files(home: &Path) -> usize {
    std::fs::read_dir(home.join("vectors")).map_or(0, Iterator::count)
}

#[test]
fn settling_saves_the_graphs_there_are_and_makes_none() {
    let (_dir, session) = store();
    let home = TempDir::new().unwrap();
    let (vectors, view) = (vectors(home.path()), session.view().unwrap());
    vectors.of(&view).unwrap();
    vectors.save(&view).unwrap();
    let graphs = |vectors: &StoreVectors| {
        let stats = vectors.stats(&view).unwrap();
        MANY - stats.first().unwrap().beside
    };
    assert_eq!((graphs(&vectors), files(home.path())), (0, 0), "nobody waits for a graph");
    assert!(!vectors.lock().vector_index.is_settled());
    assert!(!vectors.step(&view).unwrap());
    assert_eq!((graphs(&vectors), files(home.path())), (MANY, 0), "made, and not saved yet");
    vectors.stop();
    vectors.save(&view).unwrap();
    assert_eq!(files(home.path()), 1, "what is made is not lost when the store is closed");
    assert!(vectors.lock().vector_index.is_settled());
}

/// Builds a graph of the first vectors, replaces some of them, and reads the store again.
fn read_again(replaced: usize) -> (StoreVectors, VectorSpaceStats) {
    let (_dir, session) = store();
    let home = TempDir::new().unwrap();
    let view = session.view().unwrap();
    let first = vectors(home.path());
    first.of(&view).unwrap();
    while !first.step(&view).unwrap() {}
    assert_eq!(files(home.path()), 1);
    session.put_batch((0..replaced).map(|at| offer(at, 1))).unwrap();
    let view = session.view().unwrap();
    let again = vectors(home.path());
    again.of(&view).unwrap();
    again.step(&view).unwrap();
    let stats = again.stats(&view).unwrap().remove(0);
    (again, stats)
}

#[test]
fn a_graph_that_is_older_than_its_vectors_is_noticed() {
    let (vectors, stats) = read_again(0);
    assert_eq!((stats.outdated, stats.beside, vectors.unusable_graphs()), (0, 0, 0));
    let (vectors, stats) = read_again(40);
    assert_eq!((stats.outdated, stats.beside, vectors.unusable_graphs()), (40, 40, 0));
    let (vectors, stats) = read_again(MANY / 2);
    assert_eq!(
        (stats.outdated, stats.beside, vectors.unusable_graphs()),
        (0, MANY, 1),
        "made anew"
    );
}

#[test]
fn a_view_that_was_asked_before_there_was_a_graph_uses_it_afterwards() {
    let (_dir, session) = store();
    let home = TempDir::new().unwrap();
    let (vectors, view) = (vectors(home.path()), session.view().unwrap());
    let space = view.spaces().unwrap().values().next().unwrap().clone();
    let beside = || {
        let read = view.vectors(&vectors, &CancelHandle::new()).unwrap();
        let stats = read.stats(&space).unwrap();
        (stats.audit.is_some(), stats.unindexed)
    };
    assert_eq!(beside(), (false, MANY));
    while !vectors.step(&view).unwrap() {}
    assert_eq!(beside(), (true, 0));
}
