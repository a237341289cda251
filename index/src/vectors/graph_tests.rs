//! Tests of the graph: its recall is high, all of it is reachable, and it is deterministic.

use std::sync::atomic::AtomicBool;

use super::*;
use crate::posting::Sequence;
use crate::vectors::approximate::{ApproximateIndex, BuildOptions, GraphAudit};
use crate::vectors::query::QueryVector;
use crate::vectors::rows::VectorKey;
use crate::vectors::space::Metric;
use crate::vectors::test_kit::{Random, clustered, space, vector};

static GO: AtomicBool = AtomicBool::new(false);

fn rows_of(metric: Metric, vectors: &[Vec<f32>]) -> VectorRows {
    let mut rows = VectorRows::new(space(vectors[0].len(), metric));
    for (sequence, values) in (0..).zip(vectors) {
        rows.push(VectorKey { sequence: Sequence::new(sequence), chunk: 0 }, &vector(values))
            .unwrap();
    }
    rows
}

fn build(rows: &VectorRows, threads: usize) -> HnswGraph {
    HnswGraph::build(rows, &BuildOptions { threads, stop: &GO }).unwrap()
}

/// The recall: the fraction of the ten true nearest neighbours among the ten best found.
fn recall(graph: &HnswGraph, rows: &VectorRows, queries: &[Vec<f32>], width: usize) -> f64 {
    let mut hits = 0;
    for values in queries {
        let values = vector(values);
        let query = QueryVector::new(rows.space(), &values).unwrap();
        let best = |mut ids: Vec<u32>| {
            ids.retain(|row| !rows.is_dead(*row));
            ids.sort_by(|a, b| {
                query.score(rows, *b).unwrap().total_cmp(&query.score(rows, *a).unwrap())
            });
            ids.truncate(10);
            ids
        };
        let truth = best(rows.ids().collect());
        let found = best(graph.search(rows, &query.probe, width, None));
        hits += found.iter().filter(|row| truth.contains(row)).count();
    }
    hits as f64 / (queries.len() * 10) as f64
}

#[test]
fn most_of_the_nearest_are_found_in_clustered_vectors_of_every_metric() {
    let mut random = Random(11);
    let all = clustered(&mut random, 1020, 24);
    let (vectors, queries) = all.split_at(1000);
    for metric in Metric::ALL {
        let rows = rows_of(metric, vectors);
        let recall = recall(&build(&rows, 2), &rows, queries, 64);
        assert!(recall >= 0.95, "{metric:?}: {recall}");
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let rows = rows_of(Metric::Cosine, &clustered(&mut Random(12), 700, 16));
    let bytes = build(&rows, 1).to_bytes(&rows);
    for threads in [2, 3, 7] {
        assert!(build(&rows, threads).to_bytes(&rows) == bytes, "{threads} threads");
    }
}

#[test]
fn every_live_row_can_be_reached_even_among_vectors_that_are_all_the_same() {
    let mut random = Random(13);
    let mut vectors = clustered(&mut random, 400, 8);
    vectors.extend(std::iter::repeat_n(vec![0.5; 8], 400));
    vectors.extend((0..8).map(|at| (0..8).map(|one| f32::from(u8::from(at == one))).collect()));
    let mut rows = rows_of(Metric::L2, &vectors);
    for sequence in 0..100 {
        rows.remove(Sequence::new(sequence * 3));
    }
    let audit = build(&rows, 2).audit(&rows);
    assert_eq!(audit, GraphAudit { rows: 708, orphans: 0 });
}

#[test]
fn a_filter_is_kept_inside_the_search() {
    let rows = rows_of(Metric::Cosine, &clustered(&mut Random(14), 600, 12));
    let graph = build(&rows, 2);
    let probe = Probe::query(rows.space(), &vector(&[0.3; 12]));
    let found = graph.search(&rows, &probe, 50, Some(&|row| row % 3 == 0));
    assert!(found.len() >= 15, "{}", found.len());
    assert!(found.iter().all(|row| row % 3 == 0));
}

#[test]
fn a_graph_that_takes_in_more_finds_it_and_stops_when_it_is_told_to() {
    let mut random = Random(15);
    let all = clustered(&mut random, 1220, 16);
    let (vectors, queries) = all.split_at(1200);
    let some = rows_of(Metric::Cosine, &vectors[..600]);
    let rows = rows_of(Metric::Cosine, vectors);
    let grown = build(&some, 2).with(&rows, &BuildOptions { threads: 2, stop: &GO }).unwrap();
    assert_eq!(grown.covers(), 1200);
    assert_eq!(grown.audit(&rows).orphans, 0);
    let recall = recall(&grown, &rows, queries, 64);
    assert!(recall >= 0.95, "{recall}");
    let stop = AtomicBool::new(true);
    assert!(HnswGraph::build(&rows, &BuildOptions { threads: 2, stop: &stop }).is_none());
}

#[test]
fn few_rows_and_none_are_a_graph_too() {
    for count in [0, 1, 2, 3] {
        let vectors: Vec<Vec<f32>> = (0..count).map(|at| vec![1.0, at as f32]).collect();
        let mut rows = VectorRows::new(space(2, Metric::Dot));
        for (sequence, values) in (0..).zip(&vectors) {
            let key = VectorKey { sequence: Sequence::new(sequence), chunk: 0 };
            rows.push(key, &vector(values)).unwrap();
        }
        let graph = build(&rows, 2);
        let probe = Probe::query(rows.space(), &vector(&[0.0, 1.0]));
        let mut found = graph.search(&rows, &probe, 10, None);
        assert_eq!(found.first().copied(), u32::try_from(count).unwrap().checked_sub(1));
        found.sort_unstable();
        assert!(found.into_iter().eq(rows.ids()));
    }
}
