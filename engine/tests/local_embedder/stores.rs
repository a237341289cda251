//! A store whose embedder is a model in the process.

use std::sync::Arc;
use std::time::Duration;

use grainstore::cal::{Near, Query};
use grainstore::embed::{Embedder, LocalEmbedder, Metric};
use grainstore::{ContentAddress, Grain, OpenOptions, PageOptions, Session, SessionOptions, Store};
use tempfile::TempDir;

use crate::tiny::Tiny;
use crate::{load, vector};

const SAID: [&str; 5] =
    ["alice likes tea", "bob likes a cup of coffee", "zurich in norway", "one two three", "a town"];

fn open(dir: &TempDir, embedder: &Arc<LocalEmbedder>) -> Session {
    let embedder = Arc::clone(embedder) as Arc<dyn Embedder>;
    let options = OpenOptions::new().create(true).embedder(embedder, Metric::Cosine);
    Store::open(dir.path(), &options).unwrap().session(SessionOptions::default())
}

fn event(content: &str, second: usize) -> Grain {
    let json = format!(
        r#"{{"type": "event", "content": "{content}", "role": "user", "created_at": {second}000}}"#
    );
    Grain::from_json(&json).unwrap()
}

/// What a query finds, the best first, with the scores.
fn found(session: &Session, query: &Query) -> Vec<(ContentAddress, f64)> {
    let answer = session.query(query, &PageOptions::first(10)).unwrap();
    answer.results.iter().map(|row| (row.content_address, row.score)).collect()
}

#[test]
fn grains_are_found_by_what_the_model_makes_of_them() {
    let model = Tiny::new(12).written();
    let embedder = Arc::new(load(model.path()).unwrap());
    let dir = TempDir::new().unwrap();
    let session = open(&dir, &embedder);
    let put = |(at, said): (usize, &&str)| session.put(event(said, at + 1)).unwrap().address();
    let addresses: Vec<_> = SAID.iter().enumerate().map(put).collect();
    assert!(session.store().wait_for_vectors(Duration::from_secs(60)).unwrap());
    let stats = session.store().stats().unwrap();
    let embedding = stats.embedding.unwrap();
    assert_eq!((embedding.behind, embedding.skipped, embedding.error), (0, 0, None));
    assert_eq!(embedding.model, embedder.model());
    for (said, address) in SAID.iter().zip(&addresses) {
        let values = vector(&embedder, said).into();
        let near = found(&session, &Query::default().nearing(Near { model: None, values }));
        assert_eq!(near.len(), SAID.len());
        assert_eq!(near[0].0, *address, "{said}");
        assert!(near[0].1 > 0.999_9 && near[1].1 < near[0].1, "{said}: {near:?}");
    }
    // No grain has this word; the question has a vector all the same.
    let question = Query::default().searching("biscuits");
    assert!(!found(&session, &question).is_empty());
    session.store().close().unwrap();
    let without = Store::open(dir.path(), &OpenOptions::new()).unwrap();
    let without = without.session(SessionOptions::default());
    assert!(found(&without, &question).is_empty());
}
