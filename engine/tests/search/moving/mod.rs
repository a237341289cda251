//! A store that is moved to another model: the former one answers until every grain has a vector of
//! the new one, then the new one does, and what the former one left can be removed.
#![expect(clippy::unwrap_used, reason = "a test stops at a surprise")]

mod kit;
mod removal;

use crate::search::kit as search;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use grainstore::cal::{Diversity, Query, Rerank};
use grainstore::embed::{Embedder, Embedding, Metric, Vector};
use grainstore::{Error, Offer, OpenOptions, PageOptions, Store};
use tempfile::TempDir;

use kit::{
    GRAINS, ZEBRA, code, embedded, fill, former, gated, near, new, open, open_without, serving,
    settled, stats, until,
};
use search::{addresses, belief, found, put, scored};

/// One vector of each model.
const FORMER: [f32; 3] = [0.0, 1.0, 0.0];
const NEW: [f32; 2] = [1.0, 0.0];

#[test]
fn the_former_model_serves_until_every_grain_has_a_vector_of_the_new_one() {
    let dir = embedded();
    let (sense, gate) = gated();
    let past = former();
    let session = open(&dir, &sense, Some(&past));
    let (meant, close) = (found(&session, ZEBRA), addresses(&session, &near(None, &FORMER)));
    assert_eq!((meant.len(), close.len()), (GRAINS, GRAINS));
    assert_eq!(gate.await_texts(), 32);
    gate.open();
    assert_eq!(gate.await_texts(), GRAINS - 32);
    // The writer has taken the first batch; behind this it is written.
    session.store().flush().unwrap();
    let figures = stats(&session);
    assert_eq!(figures.rows.get("vectors"), Some(&(GRAINS as u64 + 32)));
    assert_eq!(figures.serving_model.as_deref(), Some("former"));
    let status = figures.embedding.unwrap();
    assert_eq!((status.model.as_str(), status.serves, status.behind), ("new", false, 8));
    assert_eq!(found(&session, ZEBRA), meant, "half of the new vectors change no answer");
    assert_eq!(addresses(&session, &near(None, &FORMER)), close);
    // What is written meanwhile is found by meaning as well, since the former embedder is there.
    let late = put(&session, belief("zoe", "norway and its town"));
    until(&session, |stats| stats.former_embedding.as_ref().unwrap().behind == 0);
    assert!(found(&session, ZEBRA).contains(&late));
    gate.open();
    assert_eq!(gate.await_texts(), 1, "the one that came meanwhile");
    session.store().flush().unwrap();
    assert_eq!(serving(&session), "former", "one is missing");
    assert!(!session.store().wait_for_vectors(Duration::ZERO).unwrap());
    gate.open();
    assert!(settled(&session));
    let figures = stats(&session);
    assert_eq!(figures.serving_model.as_deref(), Some("new"));
    assert!(figures.former_embedding.is_none() && figures.embedding.unwrap().serves);
    assert_eq!(
        code(session.query(&near(None, &FORMER), &PageOptions::first(1))),
        Err("ERR_DIMENSION")
    );
    // The former one is at rest.
    let asked = past.texts.load(Ordering::SeqCst);
    put(&session, belief("yan", "two cups of tea"));
    assert_eq!(gate.await_texts(), 1);
    gate.open();
    assert!(settled(&session));
    session.store().close().unwrap();
    assert_eq!(past.texts.load(Ordering::SeqCst), asked);
}

#[test]
fn after_the_move_answers_are_those_of_a_store_that_knew_the_new_model_alone() {
    let dir = embedded();
    let moved = open(&dir, &new(), None);
    assert!(settled(&moved));
    let other = TempDir::new().unwrap();
    let fresh = open(&other, &new(), None);
    fill(&fresh, 0..GRAINS);
    assert!(settled(&fresh));
    let unlike = Rerank { diversity: Some(Diversity::Mmr { lambda: 0.5 }), ..Rerank::default() };
    let questions = [
        Query::default().searching(ZEBRA),
        Query::default().searching("a cup of tea"),
        near(None, &NEW),
        near(Some("new"), &NEW).searching("town"),
        Query::default().searching(ZEBRA).reranked(unlike),
    ];
    for question in questions {
        let answer = scored(&moved, &question);
        assert!(!answer.is_empty());
        assert_eq!(answer, scored(&fresh, &question), "{question:?}");
    }
}

#[test]
fn a_move_that_was_interrupted_goes_on_where_it_was() {
    let dir = embedded();
    let (sense, gate) = gated();
    let session = open(&dir, &sense, None);
    gate.await_texts();
    gate.open();
    gate.await_texts();
    session.store().flush().unwrap();
    assert!(found(&session, ZEBRA).is_empty(), "without the former embedder by words alone");
    assert!(!found(&session, "tea").is_empty());
    assert_eq!(addresses(&session, &near(None, &FORMER)).len(), GRAINS);
    drop(gate);
    session.store().close().unwrap();
    let again = new();
    let session = open(&dir, &again, None);
    assert!(settled(&session));
    assert_eq!(again.texts.load(Ordering::SeqCst), GRAINS - 32);
    assert_eq!(serving(&session), "new");
    assert_eq!(found(&session, ZEBRA).len(), GRAINS);
    session.store().close().unwrap();
    // And back: its vectors are all there, so nothing is asked for.
    let back = former();
    let session = open(&dir, &back, None);
    assert!(settled(&session));
    assert_eq!((serving(&session).as_str(), back.texts.load(Ordering::SeqCst)), ("former", 0));
}

#[test]
fn a_new_embedder_that_never_answers_changes_nothing() {
    let dir = embedded();
    let sense = new();
    sense.dead.store(true, Ordering::SeqCst);
    let session = open(&dir, &sense, Some(&former()));
    let meant = found(&session, ZEBRA);
    assert!(!settled(&session));
    assert_eq!(serving(&session), "former");
    assert!(stats(&session).embedding.unwrap().error.is_some());
    put(&session, belief("zoe", "one more"));
    assert!(!settled(&session));
    assert_eq!(serving(&session), "former");
    until(&session, |stats| stats.former_embedding.as_ref().unwrap().behind == 0);
    assert_eq!(found(&session, ZEBRA).len(), meant.len() + 1);
}

#[test]
fn texts_that_are_refused_do_not_hold_a_move_up() {
    let dir = embedded();
    let session = open_without(&dir);
    // Alone in its batch, with nothing beside it that would be answered.
    fill(&session, GRAINS..64);
    put(&session, belief("bob", "a cup of poison"));
    session.store().close().unwrap();
    let session = open(&dir, &new(), None);
    assert!(settled(&session));
    let status = stats(&session).embedding.unwrap();
    assert_eq!((status.serves, status.behind, status.skipped), (true, 0, 1));
    assert_eq!(stats(&session).rows.get("vectors"), Some(&(40 + 64)));
}

#[test]
fn vectors_that_hosts_gave_serve_until_an_embedder_is_done() {
    let dir = TempDir::new().unwrap();
    let session = open_without(&dir);
    let given = |model: &str, object: &str, values: [f32; 3]| {
        let vector = Embedding::new(model, Metric::Cosine, values.to_vec()).unwrap();
        let offer = Offer::Grain(belief("alice", object)).with_vectors(vec![vector]);
        session.put(offer).unwrap().address()
    };
    let tea = given("hand", "tea", [1.0, 0.0, 0.0]);
    session.store().close().unwrap();
    let (sense, gate) = gated();
    let session = open(&dir, &sense, None);
    gate.await_texts();
    let town = put(&session, belief("bob", "a town"));
    gate.open();
    gate.await_texts();
    session.store().flush().unwrap();
    assert_eq!(stats(&session).vectors.len(), 2);
    assert_eq!(addresses(&session, &near(None, &FORMER)), [tea]);
    gate.open();
    assert!(settled(&session));
    assert_eq!(addresses(&session, &near(None, &NEW)), [tea, town]);
    assert_eq!(addresses(&session, &near(Some("hand"), &FORMER)), [tea]);
}

#[test]
fn of_several_models_that_hosts_gave_none_serves_before_the_embedder_is_done() {
    let dir = TempDir::new().unwrap();
    let session = open_without(&dir);
    let vector = |model| Embedding::new(model, Metric::Cosine, FORMER.to_vec()).unwrap();
    let offer = Offer::Grain(belief("alice", "tea")).with_vectors(vec![vector("a"), vector("b")]);
    let tea = session.put(offer).unwrap().address();
    session.store().close().unwrap();
    let (sense, gate) = gated();
    let session = open(&dir, &sense, None);
    gate.await_texts();
    assert_eq!(stats(&session).serving_model, None);
    assert_eq!(
        code(session.query(&near(None, &FORMER), &PageOptions::first(1))),
        Err("ERR_SCHEMA")
    );
    assert!(found(&session, ZEBRA).is_empty());
    gate.open();
    assert!(settled(&session));
    assert_eq!(addresses(&session, &near(None, &NEW)), [tea]);
}

#[test]
fn a_cursor_does_not_outlive_the_model_its_page_was_ranked_by() {
    let dir = embedded();
    let (sense, gate) = gated();
    let session = open(&dir, &sense, Some(&former()));
    let question = Query::default().searching(ZEBRA);
    let first = session.query(&question, &PageOptions::first(2)).unwrap();
    let next = || PageOptions::first(2).after(first.next_cursor.clone());
    assert_eq!(session.query(&question, &next()).unwrap().results.len(), 2);
    for _ in 0..2 {
        gate.await_texts();
        gate.open();
    }
    assert!(settled(&session));
    assert_eq!(code(session.query(&question, &next())), Err("ERR_CURSOR"));
}

#[test]
fn embedders_that_do_not_fit_are_refused_when_the_store_is_opened() {
    let dir = embedded();
    let outcome = |embedder: &dyn Fn(OpenOptions) -> OpenOptions| {
        code(Store::open(dir.path(), &embedder(OpenOptions::new())))
    };
    let of = |sense: Arc<kit::Sense>| sense as Arc<dyn Embedder>;
    let dot = |options: OpenOptions| options.embedder(of(former()), Metric::Dot);
    assert_eq!(outcome(&dot), Err("ERR_DIMENSION"));
    let alone = |options: OpenOptions| options.former_embedder(of(former()), Metric::Cosine);
    assert_eq!(outcome(&alone), Err("ERR_SCHEMA"));
    let twice = |options| alone(options).embedder(of(former()), Metric::Cosine);
    assert_eq!(outcome(&twice), Err("ERR_SCHEMA"));
    let long = |options: OpenOptions| {
        options
            .embedder(of(new()), Metric::Cosine)
            .former_embedder(of(kit::long_former()), Metric::Cosine)
    };
    assert_eq!(outcome(&long), Err("ERR_DIMENSION"));
    let fits = |options: OpenOptions| options.embedder(of(former()), Metric::Cosine);
    assert_eq!(outcome(&fits), Ok(()));
}

/// Answers for all texts but the last, or with a number too many.
struct Careless {
    long: bool,
}

impl Embedder for Careless {
    fn model(&self) -> &str {
        "careless"
    }

    fn dimension(&self) -> usize {
        2
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vector>, Error> {
        let (count, length) = if self.long { (texts.len(), 3) } else { (texts.len() - 1, 2) };
        (0..count).map(|_| Vector::new(vec![1.0; length]).map_err(Error::from)).collect()
    }
}

#[test]
fn an_answer_that_does_not_fit_its_texts_is_not_taken() {
    for (long, code) in [(false, "ERR_EMBEDDER"), (true, "ERR_DIMENSION")] {
        let dir = embedded();
        let careless = Arc::new(Careless { long }) as Arc<dyn Embedder>;
        let options = OpenOptions::new().embedder(careless, Metric::Cosine);
        let store = Store::open(dir.path(), &options).unwrap();
        assert!(!store.wait_for_vectors(kit::PATIENCE).unwrap());
        let stats = store.stats().unwrap();
        assert!(stats.embedding.unwrap().error.unwrap().starts_with(code));
        assert_eq!(stats.serving_model.as_deref(), Some("former"));
        assert_eq!(stats.rows.get("vectors"), Some(&(GRAINS as u64)));
    }
}
