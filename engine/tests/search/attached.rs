//! An embedder that an open store is given, and that is taken away again.
#![expect(clippy::unwrap_used, reason = "a test stops at a surprise")]

use crate::search::kit;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use grainstore::cal::{Near, Query};
use grainstore::embed::{Embedder, Embedding, Metric, Vector};
use grainstore::{Error, Offer, OpenOptions, Session, SessionOptions, Store};
use tempfile::TempDir;

use kit::{addresses, belief, put};

/// Time that nothing here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Tells texts of drinks from others.
#[derive(Default)]
struct Drinks {
    model: &'static str,
    asked: AtomicUsize,
}

impl Embedder for Drinks {
    fn model(&self) -> &str {
        self.model
    }

    fn dimension(&self) -> usize {
        2
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vector>, Error> {
        self.asked.fetch_add(texts.len(), Ordering::SeqCst);
        let of = |text: &&str| {
            let is_drink = ["tea", "coffee"].iter().any(|drink| text.contains(drink));
            Ok(Vector::new(if is_drink { vec![1.0, 0.0] } else { vec![0.0, 1.0] })?)
        };
        texts.iter().map(of).collect()
    }
}

fn drinks() -> Arc<Drinks> {
    Arc::new(Drinks { model: "drinks", ..Drinks::default() })
}

fn open(dir: &TempDir) -> Session {
    let store = Store::open(dir.path(), &OpenOptions::new().create(true)).unwrap();
    store.session(SessionOptions::default())
}

fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> &'static str {
    result.unwrap_err().code()
}

#[test]
fn an_attached_embedder_embeds_what_is_stored_and_what_comes_and_what_is_asked() {
    let dir = TempDir::new().unwrap();
    let session = open(&dir);
    let store = session.store();
    let before = put(&session, belief("alice", "a cup of coffee"));
    put(&session, belief("bob", "a town in norway"));
    let tea = Query::default().searching("tea");
    assert!(addresses(&session, &tea).is_empty(), "by words alone");

    let embedder = drinks();
    store.attach_embedder(Arc::clone(&embedder) as Arc<dyn Embedder>, Metric::Cosine).unwrap();
    assert!(store.wait_for_vectors(PATIENCE).unwrap());
    assert_eq!(addresses(&session, &tea).first(), Some(&before), "by meaning");
    let after = put(&session, belief("carol", "green tea"));
    assert!(store.wait_for_vectors(PATIENCE).unwrap());
    assert_eq!(session.embedding_refs(&after).unwrap().len(), 1);
    assert_eq!(store.stats().unwrap().embedding.unwrap().model, "drinks");
    assert_eq!(embedder.asked.load(Ordering::SeqCst), 4, "three grains and a question");
}

#[test]
fn a_store_has_one_embedder_however_it_came() {
    let dir = TempDir::new().unwrap();
    let session = open(&dir);
    let store = session.store();
    store.attach_embedder(drinks(), Metric::Cosine).unwrap();
    assert_eq!(code(store.attach_embedder(drinks(), Metric::Cosine)), "ERR_CONFLICT");
    assert!(store.detach_embedder().unwrap());
    assert!(!store.detach_embedder().unwrap());
    store.attach_embedder(drinks(), Metric::Cosine).unwrap();
    store.close().unwrap();
    assert_eq!(code(store.attach_embedder(drinks(), Metric::Cosine)), "ERR_IO");

    let other = TempDir::new().unwrap();
    let options = OpenOptions::new().create(true).embedder(drinks(), Metric::Cosine);
    let store = Store::open(other.path(), &options).unwrap();
    assert_eq!(code(store.attach_embedder(drinks(), Metric::Cosine)), "ERR_CONFLICT");
    assert!(store.detach_embedder().unwrap());
    assert!(store.stats().unwrap().embedding.is_none());
}

#[test]
fn one_that_does_not_fit_what_is_stored_is_refused() {
    let dir = TempDir::new().unwrap();
    let session = open(&dir);
    let vector = Embedding::new("drinks", Metric::Cosine, vec![1.0, 0.0, 0.0]).unwrap();
    session.put(Offer::Grain(belief("alice", "tea")).with_vectors(vec![vector])).unwrap();
    let store = session.store();
    assert_eq!(code(store.attach_embedder(drinks(), Metric::Cosine)), "ERR_DIMENSION");
    assert!(!store.detach_embedder().unwrap(), "nothing was attached");
    let nameless = Arc::new(Drinks::default());
    assert_eq!(code(store.attach_embedder(nameless, Metric::Cosine)), "ERR_SCHEMA");
    store.close().unwrap();
    let reader = Store::open(dir.path(), &OpenOptions::new().read_only(true)).unwrap();
    assert_eq!(code(reader.attach_embedder(drinks(), Metric::Cosine)), "ERR_READ_ONLY");
    assert_eq!(code(reader.detach_embedder()), "ERR_READ_ONLY");
}

#[test]
fn vectors_stay_when_their_embedder_goes_and_serve_again_when_it_is_back() {
    let dir = TempDir::new().unwrap();
    let session = open(&dir);
    let store = session.store();
    store.attach_embedder(drinks(), Metric::Cosine).unwrap();
    let coffee = put(&session, belief("alice", "a cup of coffee"));
    assert!(store.wait_for_vectors(PATIENCE).unwrap());
    store.detach_embedder().unwrap();
    let tea = Query::default().searching("tea");
    assert!(addresses(&session, &tea).is_empty(), "no text is embedded");
    let near = Near { model: Some("drinks".to_owned()), values: [1.0, 0.0].as_slice().into() };
    assert_eq!(addresses(&session, &Query::default().nearing(near)), [coffee]);
    let late = put(&session, belief("bob", "more coffee"));
    assert!(store.wait_for_vectors(PATIENCE).unwrap(), "nothing is waited for");
    assert!(session.embedding_refs(&late).unwrap().is_empty());

    store.attach_embedder(drinks(), Metric::Cosine).unwrap();
    assert!(store.wait_for_vectors(PATIENCE).unwrap());
    assert_eq!(session.embedding_refs(&late).unwrap().len(), 1);
    assert_eq!(addresses(&session, &tea).len(), 2);
}

/// One that says when it is asked, and answers once it may.
struct Gated {
    asked: Mutex<Sender<()>>,
    may: Mutex<Receiver<()>>,
}

impl Embedder for Gated {
    fn model(&self) -> &str {
        "gated"
    }

    fn dimension(&self) -> usize {
        1
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vector>, Error> {
        let _ = self.asked.lock().unwrap_or_else(PoisonError::into_inner).send(());
        let _ = self.may.lock().unwrap_or_else(PoisonError::into_inner).recv();
        texts.iter().map(|_| Ok(Vector::new(vec![1.0])?)).collect()
    }
}

#[test]
fn writes_go_on_while_one_that_is_at_work_is_taken_away() {
    let dir = TempDir::new().unwrap();
    let session = open(&dir);
    let ((asked, was_asked), (let_go, may)) = (channel(), channel());
    let gated = Gated { asked: Mutex::new(asked), may: Mutex::new(may) };
    session.store().attach_embedder(Arc::new(gated), Metric::Cosine).unwrap();
    let first = put(&session, belief("alice", "tea"));
    was_asked.recv_timeout(PATIENCE).unwrap();
    let store = session.store().clone();
    let detaching = thread::spawn(move || store.detach_embedder().unwrap());
    while session.store().stats().unwrap().embedding.is_some() {
        thread::yield_now();
    }
    put(&session, belief("bob", "coffee"));
    assert!(!detaching.is_finished(), "its answer is waited for");
    let_go.send(()).unwrap();
    assert!(detaching.join().unwrap());
    assert!(session.embedding_refs(&first).unwrap().is_empty(), "what came late is not stored");
}

#[test]
fn who_waits_for_vectors_of_one_that_is_taken_away_waits_no_longer() {
    let dir = TempDir::new().unwrap();
    let session = open(&dir);
    let ((asked, was_asked), (let_go, may)) = (channel(), channel());
    let gated = Gated { asked: Mutex::new(asked), may: Mutex::new(may) };
    session.store().attach_embedder(Arc::new(gated), Metric::Cosine).unwrap();
    put(&session, belief("alice", "tea"));
    was_asked.recv_timeout(PATIENCE).unwrap();
    let store = session.store().clone();
    // Without an end.
    let waiting = thread::spawn(move || store.wait_for_vectors(Duration::MAX).unwrap());
    let_go.send(()).unwrap();
    session.store().detach_embedder().unwrap();
    // By then its vector is stored or not.
    waiting.join().unwrap();
}
