//! Half of many vectors are deleted and replaced: the graph stays as good as a new one. Takes a minute in
//! release, so it runs only on request: `cargo test --release -p grainstore-index churn -- --ignored
//! --nocapture`.

use std::collections::BTreeSet;

use super::test_kit::{Random, address, anyone, clustered, settle, space, vector};
use super::{Metric, NearestQuery, SearchEffort, Space, VectorIndex, VectorView};
use crate::posting::Sequence;

const COUNT: usize = 50_000;
const DIMENSION: usize = 96;
const QUERIES: usize = 300;

#[test]
#[ignore = "builds graphs of 50,000 vectors"]
fn churn_of_half_the_vectors_keeps_the_recall_of_a_fresh_graph_and_shows_no_dead() {
    let space = space(DIMENSION, Metric::Cosine);
    let mut random = Random(41);
    let vectors = clustered(&mut random, COUNT * 3 / 2 + QUERIES, DIMENSION);
    let (queries, vectors) = vectors.split_at(QUERIES);
    let mut vector_index = VectorIndex::new();
    for (sequence, values) in (0..COUNT as u64).zip(vectors) {
        vector_index.add(&space, Sequence::new(sequence), 0, &vector(values)).unwrap();
    }
    settle(&mut vector_index);
    let mut live: BTreeSet<u64> = (0..COUNT as u64).collect();
    let mut orphans = 0;
    for (sequence, values) in (COUNT as u64..).zip(&vectors[COUNT..]) {
        let gone = loop {
            let gone = random.below(COUNT as u64);
            if live.remove(&gone) {
                break gone;
            }
        };
        vector_index.remove(Sequence::new(gone));
        vector_index.add(&space, Sequence::new(sequence), 0, &vector(values)).unwrap();
        live.insert(sequence);
        if sequence % 500 == 0 {
            let (outcomes, _) = settle(&mut vector_index);
            if !outcomes.is_empty() {
                println!("{sequence}: {outcomes:?}");
            }
            dead_are_not_shown(&vector_index.view(), &space, &queries[..20], &live);
        }
    }
    let mut fresh = VectorIndex::new();
    for sequence in &live {
        let values = &vectors[usize::try_from(*sequence).unwrap()];
        fresh.add(&space, Sequence::new(*sequence), 0, &vector(values)).unwrap();
    }
    settle(&mut fresh);
    dead_are_not_shown(&vector_index.view(), &space, queries, &live);
    orphans += vector_index.view().stats(&space).unwrap().audit.unwrap().orphans;
    let (churned, new) =
        (recall(&vector_index.view(), &space, queries), recall(&fresh.view(), &space, queries));
    println!("recall@10: churned {churned:.4}, fresh {new:.4}; {orphans} orphans");
    println!("{:?}", vector_index.view().stats(&space));
    assert_eq!(orphans, 0);
    assert!(churned >= 0.95 * new, "{churned} of {new}");
}

fn dead_are_not_shown(
    view: &VectorView,
    space: &Space,
    queries: &[Vec<f32>],
    live: &BTreeSet<u64>,
) {
    for query in queries {
        let ask = NearestQuery {
            vector: &vector(query),
            limit: 10,
            within: None,
            care: SearchEffort::Ef(64),
        };
        let found =
            view.search::<crate::Error>(space, &ask, &mut |sequence| Ok(Some(address(sequence))));
        assert!(found.unwrap().near.iter().all(|near| live.contains(&near.sequence.get())));
    }
}

fn recall(view: &VectorView, space: &Space, queries: &[Vec<f32>]) -> f64 {
    let mut hits = 0;
    for query in queries {
        let search = |care| {
            let ask = NearestQuery { vector: &vector(query), limit: 10, within: None, care };
            view.search(space, &ask, &mut anyone).unwrap().near
        };
        let truth = search(SearchEffort::Exact);
        hits += search(SearchEffort::Usual).iter().filter(|near| truth.contains(near)).count();
    }
    hits as f64 / (queries.len() * 10) as f64
}
