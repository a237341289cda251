//! Tests of saved graphs: they round-trip, and garbage is rejected.

use std::sync::LazyLock;
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;

use super::*;
use crate::vectors::approximate::{ApproximateIndex, BuildOptions};
use crate::vectors::space::Metric;
use crate::vectors::test_kit::{Random, clustered, space, vector};

static GO: AtomicBool = AtomicBool::new(false);

fn rows_of(metric: Metric, count: u64) -> VectorRows {
    let usize_count = usize::try_from(count).unwrap();
    let vectors = clustered(&mut Random(21), usize_count, 8);
    let mut rows = VectorRows::new(space(8, metric));
    for (sequence, values) in (0..count).zip(&vectors) {
        let key = VectorKey { sequence: Sequence::new(sequence), chunk: 0 };
        rows.push(key, &vector(values)).unwrap();
    }
    rows
}

fn build(rows: &VectorRows) -> HnswGraph {
    HnswGraph::build(rows, &BuildOptions { threads: 1, stop: &GO }).unwrap()
}

/// Appends the correct checksum.
fn sealed(mut body: Vec<u8>) -> Vec<u8> {
    let crc = crc32fast::hash(&body);
    body.extend(crc.to_le_bytes());
    body
}

#[test]
fn a_graph_comes_back_as_it_was() {
    for metric in Metric::ALL {
        let rows = rows_of(metric, 500);
        let bytes = build(&rows).to_bytes(&rows);
        let read = from_bytes(&bytes, &rows).unwrap().graph;
        assert!(read.to_bytes(&rows) == bytes);
        assert!(read.holes().is_empty());
        assert_eq!(read.covers(), 500);
    }
}

#[test]
fn dead_rows_are_not_written_and_rows_that_went_or_came_since_are_made_up_for() {
    let mut rows = rows_of(Metric::L2, 600);
    let graph = build(&rows);
    for sequence in (0..600).step_by(6) {
        rows.remove(Sequence::new(sequence));
    }
    let bytes = graph.to_bytes(&rows);
    // The rows at loading time lack some more, and have new ones in between.
    let mut later = rows.compact();
    for sequence in (1..600).step_by(12) {
        later.remove(Sequence::new(sequence));
    }
    let late = vector(&[0.25; 8]);
    later.push(VectorKey { sequence: Sequence::new(3), chunk: 1 }, &late).unwrap();
    later.push(VectorKey { sequence: Sequence::new(900), chunk: 0 }, &late).unwrap();
    let later = later.compact();
    let read = from_bytes(&bytes, &later).unwrap();
    assert_eq!(read.outdated, 0);
    let read = read.graph;
    assert_eq!(read.holes().len(), 1);
    let audit = read.audit(&later);
    assert_eq!((audit.rows, audit.orphans), (450, 0));
    let whole = read.with(&later, &BuildOptions { threads: 2, stop: &GO }).unwrap();
    assert!(whole.holes().is_empty());
    assert_eq!((whole.audit(&later).rows, whole.audit(&later).orphans), (452, 0));
}

#[test]
fn rows_with_other_vectors_than_the_graph_knew_are_beside_it() {
    for metric in Metric::ALL {
        let rows = rows_of(metric, 400);
        let bytes = build(&rows).to_bytes(&rows);
        let replaced = |part: u64| {
            let mut rows = rows.clone();
            for sequence in (0..400).filter(|sequence| sequence % part == 0) {
                let key = VectorKey { sequence: Sequence::new(sequence), chunk: 0 };
                let other = vector(&[sequence as f32, 1.0, -3.0, 2.0, 0.5, 0.0, 1.0, -9.0]);
                rows.push(key, &other).unwrap();
            }
            rows.compact()
        };
        let now = replaced(8);
        let read = from_bytes(&bytes, &now).unwrap();
        assert_eq!((read.outdated, read.graph.holes().len()), (50, 50));
        assert_eq!(read.graph.audit(&now).rows, 350);
        let whole = read.graph.with(&now, &BuildOptions { threads: 1, stop: &GO }).unwrap();
        assert_eq!((whole.audit(&now).rows, whole.audit(&now).orphans), (400, 0));
        assert!(from_bytes(&bytes, &replaced(2)).is_none(), "half of it is of other vectors");
    }
}

#[test]
fn a_graph_of_another_space_or_of_too_few_rows_is_not_used() {
    let rows = rows_of(Metric::L2, 300);
    let bytes = build(&rows).to_bytes(&rows);
    assert!(from_bytes(&bytes, &rows_of(Metric::Dot, 300)).is_none());
    assert!(from_bytes(&bytes, &rows_of(Metric::L2, 500)).is_none());
    let other = VectorRows::new(Space::new("other", 8, Metric::L2).unwrap());
    assert!(from_bytes(&bytes, &other).is_none());
}

#[test]
fn every_flipped_byte_and_every_cut_is_noticed() {
    let rows = rows_of(Metric::Cosine, 70);
    let bytes = build(&rows).to_bytes(&rows);
    for at in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x40;
        assert!(from_bytes(&flipped, &rows).is_none(), "byte {at}");
        assert!(from_bytes(&bytes[..at], &rows).is_none(), "cut at {at}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn garbage_with_a_right_checksum_is_refused_or_is_a_graph_that_answers(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        static SMALL: LazyLock<(VectorRows, Vec<u8>)> = LazyLock::new(|| {
            let rows = rows_of(Metric::Cosine, 70);
            let bytes = build(&rows).to_bytes(&rows);
            (rows, bytes)
        });
        let (rows, bytes) = &*SMALL;
        let mut body = bytes.clone();
        body.truncate(body.len() - 4);
        for (at, byte) in changes {
            let at = at.index(body.len());
            body[at] = byte;
        }
        if let Some(cut) = cut {
            body.truncate(cut.index(body.len()));
        }
        if let Some(LoadedGraph { graph, .. }) = from_bytes(&sealed(body), rows) {
            let space = rows.space();
            let probe = crate::vectors::quantise::Probe::query(space, &vector(&[0.5; 8]));
            let found = graph.search(rows, &probe, 20, None);
            prop_assert!(found.iter().all(|row| rows.ids().contains(row)));
        }
    }
}
