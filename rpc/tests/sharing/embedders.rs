//! Embedders of clients that relay: the owner, which has none, asks them for vectors.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use grainstore::embed::{Embedder, Metric, Vector};
use grainstore::{Error as StoreError, MasterKey, OpenOptions};
use grainstore_rpc::{Client, ClientOptions};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{event, options, plain, refusal};

/// Tells texts of drinks from others.
struct Drinks {
    model: &'static str,
    dimension: usize,
    asked: AtomicUsize,
}

impl Embedder for Drinks {
    fn model(&self) -> &str {
        self.model
    }

    fn dimension(&self) -> usize {
        self.dimension
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vector>, StoreError> {
        self.asked.fetch_add(texts.len(), Ordering::SeqCst);
        assert!(!texts.iter().any(|text| text.contains("panic")), "this text ends an embedder");
        let of = |text: &&str| {
            let is_drink = ["tea", "coffee"].iter().any(|drink| text.contains(drink));
            let mut values = vec![0.1; self.dimension];
            values[usize::from(is_drink)] = 0.7;
            Ok(Vector::new(values)?)
        };
        texts.iter().map(of).collect()
    }
}

fn embedder(model: &'static str, dimension: usize) -> Arc<Drinks> {
    Arc::new(Drinks { model, dimension, asked: AtomicUsize::new(0) })
}

fn drinks() -> Arc<Drinks> {
    embedder("drinks", 3)
}

fn embedding(open: OpenOptions, embedder: &Arc<Drinks>) -> ClientOptions {
    options(open.embedder(Arc::clone(embedder) as Arc<dyn Embedder>, Metric::Cosine))
}

fn join(dir: &TempDir, embedder: &Arc<Drinks>) -> Result<Client, grainstore_rpc::Error> {
    Client::open(dir.path(), embedding(OpenOptions::new(), embedder))
}

fn put(client: &Client, text: &str) -> Value {
    client.call("put", &event(text)).unwrap()
}

fn settle(client: &Client) {
    let waited = json!({ "timeout_ms": 60_000 });
    assert_eq!(client.call::<Value>("wait_for_vectors", &waited).unwrap()["done"], true);
}

/// How many grains a text finds.
fn found(client: &Client, text: &str) -> usize {
    let answer: Value = client.call("query", &json!({ "text": text })).unwrap();
    answer["results"].as_array().unwrap().len()
}

/// The model that embeds at present, or null.
fn model(client: &Client) -> Value {
    client.call::<Value>("stats", &json!({})).unwrap()["embedding"]["model"].clone()
}

/// Waits until the store has no embedder.
fn wait_until_none(client: &Client) {
    while !model(client).is_null() {
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn the_embedder_of_a_relay_serves_all_while_it_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let owner = Client::open(dir.path(), plain()).unwrap();
    put(&owner, "a cup of coffee");
    assert_eq!(found(&owner, "tea"), 0, "by words");

    let own = drinks();
    let relay = join(&dir, &own).unwrap();
    assert!(relay.owner().is_some());
    put(&relay, "a town in norway");
    settle(&relay);
    assert_eq!(own.asked.load(Ordering::SeqCst), 2, "what the owner put as well");
    for client in [&owner, &relay, &Client::open(dir.path(), plain()).unwrap()] {
        assert_eq!(found(client, "tea"), 2, "by meaning");
    }
    assert_eq!(own.asked.load(Ordering::SeqCst), 5);
    let cal: Value = relay.call("cal", &json!({ "query": "RECALL LIKE \"tea\"" })).unwrap();
    assert!(cal.to_string().contains("a cup of coffee"), "{cal}");

    drop(relay);
    wait_until_none(&owner);
    assert_eq!(found(&owner, "tea"), 0);
    put(&owner, "more coffee");
    let back = join(&dir, &own).unwrap();
    settle(&back);
    assert_eq!(found(&owner, "tea"), 3, "what came meanwhile was embedded too");
}

#[test]
fn vectors_are_those_that_the_embedder_made_to_the_last_bit() {
    let (own, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let embedder = drinks();
    let vectors = |client: &Client| {
        put(client, "a cup of tea");
        settle(client);
        let near = json!({ "vector": { "values": [0.1, 0.7, 0.1] }, "limit": 1 });
        client.call::<Value>("query", &near).unwrap()["results"][0]["score"].clone()
    };
    let alone = vectors(&join(&own, &embedder).unwrap());
    let owner = Client::open(other.path(), plain()).unwrap();
    let relayed = vectors(&join(&other, &embedder).unwrap());
    assert!(owner.owner().is_none());
    assert_eq!(alone, relayed);
}

#[test]
fn relays_of_one_model_stand_in_for_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let owner = Client::open(dir.path(), plain()).unwrap();
    let (first, second) = (drinks(), drinks());
    let one = join(&dir, &first).unwrap();
    let two = join(&dir, &second).unwrap();
    put(&owner, "a cup of coffee");
    settle(&owner);
    assert_eq!(found(&owner, "tea"), 1);
    assert_eq!(second.asked.load(Ordering::SeqCst), 0);
    drop(one);
    // At once, and whenever the owner notices.
    for _ in 0..50 {
        assert_eq!(found(&owner, "tea"), 1);
    }
    assert_eq!(model(&owner), "drinks");
    assert_ne!(second.asked.load(Ordering::SeqCst), 0);
    drop(two);
    wait_until_none(&owner);
}

#[test]
fn another_model_is_refused_by_name_while_one_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let owner = Client::open(dir.path(), plain()).unwrap();
    let first = join(&dir, &drinks()).unwrap();
    let refused = join(&dir, &embedder("other", 3)).unwrap_err();
    let (code, message) = refusal(&refused);
    assert_eq!(code, "ERR_CONFLICT");
    assert!(message.contains("embedder") && message.contains("other"), "{message}");
    drop(first);
    wait_until_none(&owner);
    let other = join(&dir, &embedder("other", 3)).unwrap();
    assert_eq!(model(&other), "other");
}

#[test]
fn one_that_does_not_fit_what_is_stored_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let owner = Client::open(dir.path(), plain()).unwrap();
    let first = join(&dir, &drinks()).unwrap();
    put(&first, "a cup of coffee");
    settle(&first);
    drop(first);
    wait_until_none(&owner);
    let refused = join(&dir, &embedder("drinks", 2)).unwrap_err();
    assert_eq!(refusal(&refused).0, "ERR_DIMENSION");
    assert!(model(&owner).is_null());
    assert!(join(&dir, &drinks()).is_ok());
}

#[test]
fn an_owner_with_the_same_model_embeds_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    let (own, other) = (drinks(), drinks());
    let owner = join(&dir, &own).unwrap();
    let relay = join(&dir, &other).unwrap();
    put(&relay, "a cup of coffee");
    settle(&relay);
    assert_eq!(found(&relay, "tea"), 1);
    assert_eq!(other.asked.load(Ordering::SeqCst), 0);
    assert_eq!(own.asked.load(Ordering::SeqCst), 2);
    let refused = join(&dir, &embedder("other", 3)).unwrap_err();
    assert_eq!(refusal(&refused).0, "ERR_CONFLICT");
    drop(owner);
}

#[test]
fn an_embedder_is_offered_to_each_new_owner_and_used_by_one_that_takes_over() {
    let dir = tempfile::tempdir().unwrap();
    let owner = Client::open(dir.path(), plain()).unwrap();
    let heir = Client::open(dir.path(), plain()).unwrap();
    let relay = join(&dir, &drinks()).unwrap();
    put(&relay, "a cup of coffee");
    settle(&relay);
    owner.close().unwrap();
    assert_eq!(found(&heir, "tea"), 0, "it owns the store, and nobody has asked it yet");
    assert!(heir.owner().is_none());
    assert_eq!(found(&relay, "tea"), 1);
    assert_eq!(found(&heir, "tea"), 1);
    heir.close().unwrap();
    assert_eq!(found(&relay, "tea"), 1, "it owns the store itself");
    assert!(relay.owner().is_none());
}

#[test]
fn an_embedder_that_panics_leaves_searches_by_words_and_the_next_text() {
    let dir = tempfile::tempdir().unwrap();
    let owner = Client::open(dir.path(), plain()).unwrap();
    let relay = join(&dir, &drinks()).unwrap();
    put(&relay, "a cup of coffee");
    // One that fails is tried with a text that it embedded before.
    settle(&relay);
    put(&relay, "do not panic");
    put(&relay, "green tea");
    settle(&relay);
    assert_eq!(found(&owner, "tea"), 2);
    assert_eq!(found(&owner, "panic"), 1, "by words");
    assert_eq!(found(&owner, "tea"), 2);
}

#[test]
fn who_closes_answers_by_the_help_of_who_embeds() {
    let dir = tempfile::tempdir().unwrap();
    let owner = Client::open(dir.path(), plain()).unwrap();
    let relay = join(&dir, &drinks()).unwrap();
    put(&relay, "a cup of coffee");
    settle(&relay);
    let asking = {
        let relay = relay.clone();
        thread::spawn(move || {
            for _ in 0..200 {
                assert_eq!(found(&relay, "tea"), 1);
            }
        })
    };
    thread::sleep(Duration::from_millis(20));
    owner.close().unwrap();
    asking.join().unwrap();
}

#[test]
fn who_embeds_for_an_encrypted_store_has_its_key() {
    let dir = tempfile::tempdir().unwrap();
    let keyed = || OpenOptions::new().key(MasterKey::new([7; 32]));
    let owner = Client::open(dir.path(), options(keyed())).unwrap();
    let refused = join(&dir, &drinks()).unwrap_err();
    assert_eq!(refusal(&refused).0, "ERR_KEY");
    let relay = Client::open(dir.path(), embedding(keyed(), &drinks())).unwrap();
    put(&relay, "a cup of coffee");
    settle(&relay);
    assert_eq!(found(&owner, "tea"), 1);
}

/// One that says when it is asked, and answers once it may.
struct Gated(Mutex<(Sender<()>, Receiver<()>)>);

impl Embedder for Gated {
    fn model(&self) -> &str {
        "gated"
    }

    fn dimension(&self) -> usize {
        1
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vector>, StoreError> {
        let gate = self.0.lock().unwrap();
        gate.0.send(()).unwrap();
        let _ = gate.1.recv();
        texts.iter().map(|_| Ok(Vector::new(vec![1.0])?)).collect()
    }
}

/// What the owner answers to a first line; nothing if it ends the connection.
fn first_line(dir: &TempDir, line: &str) -> String {
    let mut stream = UnixStream::connect(dir.path().join("socket")).unwrap();
    writeln!(stream, "{line}").unwrap();
    let mut told = String::new();
    BufReader::new(stream).read_line(&mut told).unwrap();
    told
}

#[test]
fn an_owner_that_closes_gives_signs_of_life_until_all_is_answered() {
    let dir = tempfile::tempdir().unwrap();
    let ((asked, was_asked), (let_go, may)) = (channel(), channel());
    let gated = Arc::new(Gated(Mutex::new((asked, may))));
    let open = OpenOptions::new().embedder(gated, Metric::Cosine);
    let owner = Client::open(dir.path(), options(open)).unwrap();
    let relay = Client::open(dir.path(), plain()).unwrap();
    put(&relay, "tea");
    was_asked.recv().unwrap();
    let_go.send(()).unwrap();
    settle(&relay);
    let asking = thread::spawn(move || found(&relay, "tea"));
    was_asked.recv().unwrap();
    let closing = thread::spawn(move || owner.close().unwrap());
    // From then on nobody joins any more.
    let join = super::greeting(env!("CARGO_PKG_VERSION"), &json!({})).to_string();
    while !first_line(&dir, &join).is_empty() {
        thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(first_line(&dir, "\"ping\""), "\"done\"\n");
    assert!(!closing.is_finished() && !asking.is_finished());
    let_go.send(()).unwrap();
    assert_eq!(asking.join().unwrap(), 1);
    closing.join().unwrap();
    assert!(!dir.path().join("socket").exists());
}
