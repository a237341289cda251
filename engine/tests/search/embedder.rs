//! A store with an embedder: every grain gets its vector sooner or later, and none is lost for want
//! of one.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops at a surprise")]

use crate::search::kit;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use grainstore::cal::{Answer, Near, Query, Rerank};
use grainstore::embed::{Embedder, Embedding, Metric, Vector};
use grainstore::format::DecodeOptions;
use grainstore::format::container::Container;
use grainstore::{Error, Offer, OpenOptions, PageOptions, Session, SessionOptions, Store};
use tempfile::TempDir;

use kit::{addresses, belief, found, put};

/// What three things a text is about: drinks, places, numbers. It refuses the word `poison`.
#[derive(Default)]
struct Topics {
    dead: AtomicBool,
    asked: AtomicUsize,
    /// What it answers to everything, if it does.
    late: Mutex<Option<Error>>,
}

const TOPICS: [&[&str]; 3] =
    [&["tea", "coffee", "drink", "cup"], &["norway", "paris", "town"], &["one", "two", "three"]];

impl Embedder for Topics {
    fn model(&self) -> &str {
        "topics"
    }

    fn dimension(&self) -> usize {
        3
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vector>, Error> {
        self.asked.fetch_add(texts.len(), Ordering::SeqCst);
        if let Some(late) = &*self.late.lock().unwrap() {
            return Err(late.clone());
        }
        let refused =
            self.dead.load(Ordering::SeqCst) || texts.iter().any(|t| t.contains("poison"));
        if refused {
            // What a program that died would answer.
            return Err(Embedding::new("", Metric::Cosine, vec![1.0]).unwrap_err());
        }
        let of = |text: &&str| {
            let count = |words: &[&str]| words.iter().filter(|word| text.contains(**word)).count();
            let values = TOPICS.map(|words| 0.01 + f32::from(u8::try_from(count(words)).unwrap()));
            Vector::new(values.to_vec()).map_err(Error::from)
        };
        texts.iter().map(of).collect()
    }
}

fn open(dir: &TempDir, embedder: &Arc<Topics>) -> Session {
    let embedder = Arc::clone(embedder) as Arc<dyn Embedder>;
    let options = OpenOptions::new().create(true).embedder(embedder, Metric::Cosine);
    Store::open(dir.path(), &options).unwrap().session(SessionOptions::default())
}

/// Waits for the embedder.
fn settled(session: &Session) -> bool {
    session.store().wait_for_vectors(Duration::from_secs(60)).unwrap()
}

/// What CAL tells of the model behind the search for meaning.
fn model_told(session: &Session) -> String {
    let Answer::Description { description } = session.ask("DESCRIBE capabilities").unwrap().answer
    else {
        panic!("DESCRIBE describes");
    };
    let model = description.get("embedding_model").and_then(|model| model.as_str());
    model.unwrap_or("none").to_owned()
}

#[test]
fn a_grain_has_embedding_refs_in_the_index_layer_which_a_manifest_carries_and_an_import_checks() {
    let dir = TempDir::new().unwrap();
    let topics = Arc::new(Topics::default());
    let session = open(&dir, &topics);
    let tea = put(&session, belief("alice", "a cup of tea"));
    let blob = session.get(&tea).unwrap().blob;
    assert!(settled(&session));
    let refs =
        |session: &Session| serde_json::to_value(session.embedding_refs(&tea).unwrap()).unwrap();
    let own = |metric: &str| {
        serde_json::json!([{
            "vector_id": format!("{tea}/topics/{metric}/0"), "model": "topics", "dimensions": 3,
            "distance_metric": metric, "chunk_index": 0,
        }])
    };
    assert_eq!(refs(&session), own("cosine"));
    assert_eq!(session.get(&tea).unwrap().blob, blob, "the grain knows nothing of them");

    let part = Embedding::new("other", Metric::Dot, vec![1.0, 2.0]).unwrap();
    session.embed(&tea, vec![part.clone().of_chunk(7), part.of_chunk(2)]).unwrap();
    let told = session.embedding_refs(&tea).unwrap();
    let told: Vec<_> =
        told.iter().map(|one| (&*one.model, one.dimensions, one.chunk_index)).collect();
    assert_eq!(told, [("other", 2, 2), ("other", 2, 7), ("topics", 3, 0)]);
    let elsewhere = session.store().session(SessionOptions {
        namespace: Some("elsewhere".to_owned()),
        ..SessionOptions::default()
    });
    assert_eq!(elsewhere.embedding_refs(&tea).unwrap_err().code(), "ERR_NOT_FOUND");

    let file = dir.path().parent().unwrap().join(format!("{tea}.mg"));
    session.export(&file, &Query::default(), &grainstore::ExportOptions::default()).unwrap();
    let bytes = std::fs::read(&file).unwrap();
    let container = Container::open(bytes.as_slice(), &DecodeOptions::default()).unwrap();
    let carried: Vec<_> = container.manifest().unwrap().map(Result::unwrap).collect();
    let carried = &carried.iter().find(|(address, _)| *address == tea).unwrap().1.embedded;
    let told: Vec<_> = carried
        .iter()
        .map(|one| (&*one.model, one.dimensions, &*one.metric, &*one.chunks))
        .collect();
    assert_eq!(
        told,
        [("other", 2, "dot", [2, 7].as_slice()), ("topics", 3, "cosine", [0].as_slice())]
    );

    // The same embedder makes the same again; one that compares otherwise is told of.
    for (metric, conflicts) in [(Metric::Cosine, 0), (Metric::L2, 1)] {
        let dir = TempDir::new().unwrap();
        let embedder = Arc::clone(&topics) as Arc<dyn Embedder>;
        let options = OpenOptions::new().create(true).embedder(embedder, metric);
        let store = Store::open(dir.path(), &options).unwrap();
        let session = store.session(SessionOptions::default());
        let imported = session.import([&file], &Default::default()).unwrap();
        let about = imported.conflicts.iter().filter(|one| {
            one.address == tea && serde_json::to_value(one.about).unwrap() == "embedding"
        });
        assert_eq!(about.count(), conflicts, "{imported:?}");
        assert!(settled(&session));
        assert_eq!(refs(&session), own(metric.name()));
    }
    std::fs::remove_file(&file).unwrap();
    session.store().remove_vectors("other").unwrap();
    assert_eq!(refs(&session), own("cosine"));
}

#[test]
fn grains_get_their_vectors_in_the_background_and_questions_use_them() {
    let dir = TempDir::new().unwrap();
    let topics = Arc::new(Topics::default());
    let session = open(&dir, &topics);
    let tea = put(&session, belief("alice", "a cup of tea"));
    let town = put(&session, belief("bob", "a town in norway"));
    for at in 0..100 {
        put(&session, belief("carol", &format!("number {at} is one two three")));
    }
    assert!(settled(&session));
    assert_eq!(model_told(&session), "topics");
    let stats = session.store().stats().unwrap();
    assert_eq!(stats.rows.get("vectors"), Some(&102));
    assert_eq!(stats.embedding.unwrap().behind, 0);
    // No word of it stands anywhere.
    assert_eq!(found(&session, "coffee").first(), Some(&tea));
    assert_eq!(found(&session, "paris").first(), Some(&town));
    session.store().close().unwrap();
    let without = Store::open(dir.path(), &OpenOptions::new()).unwrap();
    assert_eq!(model_told(&without.session(SessionOptions::default())), "none");
    assert!(found(&without.session(SessionOptions::default()), "coffee").is_empty());
    without.close().unwrap();
    let before = topics.asked.load(Ordering::SeqCst);
    let session = open(&dir, &topics);
    assert!(settled(&session));
    assert_eq!(topics.asked.load(Ordering::SeqCst), before, "what is embedded is not asked again");
    assert_eq!(found(&session, "coffee").first(), Some(&tea));
}

#[test]
fn a_text_that_is_refused_and_an_embedder_that_is_gone_lose_no_grain() {
    let dir = TempDir::new().unwrap();
    let topics = Arc::new(Topics::default());
    topics.dead.store(true, Ordering::SeqCst);
    let session = open(&dir, &topics);
    let tea = put(&session, belief("alice", "a cup of tea"));
    let poison = put(&session, belief("bob", "a cup of poison"));
    assert!(!settled(&session), "it cannot go on");
    assert!(session.store().stats().unwrap().embedding.unwrap().error.is_some());
    assert_eq!(found(&session, "tea"), [tea], "by its words");
    topics.dead.store(false, Ordering::SeqCst);
    let town = put(&session, belief("carol", "a town"));
    assert!(settled(&session), "the next write brings it back");
    let stats = session.store().stats().unwrap();
    assert_eq!(stats.rows.get("vectors"), Some(&2));
    assert_eq!(stats.embedding.unwrap().skipped, 1);
    assert_eq!(found(&session, "poison"), [poison], "a question it refuses is one of words");
    assert_eq!(found(&session, "paris").first(), Some(&town));
    assert!(session.get(&poison).is_ok());
}

#[test]
fn an_embedder_that_fails_has_a_rest_however_much_is_written() {
    const WRITES: usize = 10;
    let dir = TempDir::new().unwrap();
    let topics = Arc::new(Topics::default());
    topics.dead.store(true, Ordering::SeqCst);
    let session = open(&dir, &topics);
    session.put_batch((0..40).map(|at| belief("alice", &format!("tea {at}")))).unwrap();
    assert!(!settled(&session));
    // All at once, and each by itself.
    let once = topics.asked.load(Ordering::SeqCst);
    for at in 0..WRITES {
        put(&session, belief("bob", &format!("town {at}")));
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!settled(&session));
    let asked = topics.asked.load(Ordering::SeqCst) - once;
    assert!(asked > 0 && asked < WRITES * once / 2, "{asked} after {once}");
    topics.dead.store(false, Ordering::SeqCst);
    put(&session, belief("carol", "coffee"));
    assert!(settled(&session));
}

#[test]
fn vectors_are_waited_for_without_end() {
    let dir = TempDir::new().unwrap();
    let session = open(&dir, &Arc::new(Topics::default()));
    put(&session, belief("alice", "a cup of tea"));
    assert!(session.store().wait_for_vectors(Duration::MAX).unwrap());
}

#[test]
fn an_embedder_that_is_late_for_a_question_is_not_asked_by_the_next() {
    let dir = TempDir::new().unwrap();
    let topics = Arc::new(Topics::default());
    let session = open(&dir, &topics);
    let tea = put(&session, belief("alice", "a cup of tea"));
    assert!(settled(&session));
    assert_eq!(found(&session, "coffee"), [tea]);
    let page = PageOptions { timeout: Duration::ZERO, ..PageOptions::first(1) };
    let late = session.query(&Query::default(), &page).unwrap_err();
    assert_eq!(late.code(), "ERR_TIMEOUT");
    *topics.late.lock().unwrap() = Some(late);
    let asked = || topics.asked.load(Ordering::SeqCst);
    let before = asked();
    assert_eq!(found(&session, "tea"), [tea]);
    assert_eq!(asked(), before + 1);
    assert_eq!(found(&session, "cup"), [tea]);
    assert_eq!(asked(), before + 1, "it is left in peace");
}

#[test]
fn vectors_are_given_to_stored_grains_and_kept_by_the_embedder() {
    let dir = TempDir::new().unwrap();
    let topics = Arc::new(Topics::default());
    let session = open(&dir, &topics);
    let tea = put(&session, belief("alice", "a cup of tea"));
    assert!(settled(&session));
    let own = |values: [f32; 3]| Embedding::new("topics", Metric::Cosine, values.to_vec()).unwrap();
    session.embed(&tea, vec![own([0.0, 0.0, 1.0])]).unwrap();
    let near = |values: [f32; 3]| {
        Query::default().nearing(Near { model: None, values: values.as_slice().into() })
    };
    let score = |values| {
        let page = PageOptions::first(1);
        session.query(&near(values), &page).unwrap().results.first().unwrap().score
    };
    assert!(score([0.0, 0.0, 1.0]) > 0.99 && score([1.0, 0.0, 0.0]) < 0.6);
    let short = Embedding::new("topics", Metric::Cosine, vec![1.0]).unwrap();
    let code = |outcome: Result<(), Error>| outcome.map_err(|error| error.code());
    assert_eq!(code(session.embed(&tea, vec![short])), Err("ERR_DIMENSION"));
    let nothing = grainstore::ContentAddress::of(b"nothing");
    assert_eq!(code(session.embed(&nothing, vec![own([1.0; 3])])), Err("ERR_NOT_FOUND"));
    let elsewhere = session.store().session(SessionOptions {
        namespace: Some("elsewhere".to_owned()),
        ..SessionOptions::default()
    });
    assert_eq!(code(elsewhere.embed(&tea, vec![own([1.0; 3])])), Err("ERR_NOT_FOUND"));
    assert_eq!(addresses(&session, &near([1.0, 0.0, 0.0])), [tea]);
}

/// An embedder that says when it was asked, and answers once it may.
struct Gated {
    asked: Mutex<Sender<()>>,
    may: Mutex<Receiver<()>>,
}

impl Embedder for Gated {
    fn model(&self) -> &str {
        "topics"
    }

    fn dimension(&self) -> usize {
        3
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vector>, Error> {
        self.asked.lock().unwrap().send(()).unwrap();
        self.may.lock().unwrap().recv().unwrap();
        texts.iter().map(|_| Ok(Vector::new(vec![1.0, 0.0, 0.0])?)).collect()
    }
}

#[test]
fn a_vector_that_is_given_while_the_embedder_is_at_work_stays() {
    let dir = TempDir::new().unwrap();
    let ((asked, was_asked), (let_go, may)) = (channel(), channel());
    let gated = Gated { asked: Mutex::new(asked), may: Mutex::new(may) };
    let options = OpenOptions::new().create(true).embedder(Arc::new(gated), Metric::Cosine);
    let session = Store::open(dir.path(), &options).unwrap().session(SessionOptions::default());
    let given = put(&session, belief("alice", "a cup of tea"));
    let made = put(&session, belief("bob", "a town in norway"));
    was_asked.recv_timeout(Duration::from_secs(60)).unwrap();
    let own = Embedding::new("topics", Metric::Cosine, vec![0.0, 0.0, 1.0]).unwrap();
    session.embed(&given, vec![own]).unwrap();
    // However many batches the two came in.
    (0..9).for_each(|_| let_go.send(()).unwrap());
    assert!(settled(&session));
    let nearest = |values: [f32; 3]| {
        let near = Near { model: None, values: values.as_slice().into() };
        let answer =
            session.query(&Query::default().nearing(near), &PageOptions::first(1)).unwrap();
        answer.results.first().map(|row| (row.content_address, row.score > 0.99)).unwrap()
    };
    assert_eq!(nearest([0.0, 0.0, 1.0]), (given, true), "what the host gave");
    assert_eq!(nearest([1.0, 0.0, 0.0]), (made, true), "what the embedder made");
    assert_eq!(session.store().stats().unwrap().rows.get("vectors"), Some(&2));
}

#[test]
fn a_cursor_of_one_ranking_is_refused_where_another_would_go_on() {
    let dir = TempDir::new().unwrap();
    let topics = Arc::new(Topics::default());
    let session = open(&dir, &topics);
    for at in 0..8 {
        put(&session, belief("alice", &format!("a cup of tea {at}")));
    }
    assert!(settled(&session));
    let query = Query::default().searching("tea");
    let page = |dead: bool, query: &Query, cursor| {
        topics.dead.store(dead, Ordering::SeqCst);
        let answer = session.query(query, &PageOptions::first(3).after(cursor));
        answer.map(|answer| answer.next_cursor.unwrap()).map_err(|error| error.code())
    };
    let by_both = page(false, &query, None).unwrap();
    let by_words = page(true, &query, None).unwrap();
    assert!(page(false, &query, Some(by_both.clone())).is_ok());
    assert!(page(true, &query, Some(by_words.clone())).is_ok());
    assert_eq!(page(true, &query, Some(by_both.clone())), Err("ERR_CURSOR"), "it failed since");
    assert_eq!(page(false, &query, Some(by_words)), Err("ERR_CURSOR"), "it came back since");
    let reranked = query.clone().reranked(Rerank { access: true, ..Rerank::default() });
    let other = page(false, &reranked, None).unwrap();
    assert_eq!(page(false, &query, Some(other)), Err("ERR_CURSOR"));
    assert_eq!(page(false, &reranked, Some(by_both)), Err("ERR_CURSOR"));
}

#[test]
fn an_order_that_was_chosen_goes_on_without_the_embedder() {
    let dir = TempDir::new().unwrap();
    let topics = Arc::new(Topics::default());
    let session = open(&dir, &topics);
    for text in ["tea", "a cup of coffee", "tea in paris", "a drink and tea", "coffee and tea"] {
        put(&session, belief("alice", text));
    }
    assert!(settled(&session));
    let query = Query::default().searching("tea").reranked(Rerank::default());
    let whole = addresses(&session, &query);
    assert_eq!(whole.len(), 5, "one has no such word");
    let first = session.query(&query, &PageOptions::first(2)).unwrap();
    topics.dead.store(true, Ordering::SeqCst);
    let second = session.query(&query, &PageOptions::first(9).after(first.next_cursor)).unwrap();
    let rows = first.results.iter().chain(&second.results);
    assert_eq!(rows.map(|row| row.content_address).collect::<Vec<_>>(), whole);
}

#[test]
fn the_model_of_the_embedder_is_its_own_from_the_start_whatever_others_bring() {
    let dir = TempDir::new().unwrap();
    let topics = Arc::new(Topics::default());
    topics.dead.store(true, Ordering::SeqCst);
    let session = open(&dir, &topics);
    let put = |session: &Session, namespace: Option<&str>, model: &str, values: Vec<f32>| {
        let vector = Embedding::new(model, Metric::Cosine, values).unwrap();
        let said = format!("{namespace:?} {model}");
        let within = namespace.map(|name| format!(r#", "namespace": "{name}""#));
        let grain = kit::grain(&format!(
            r#"{{"type": "event", "content": {said:?}, "created_at": 1{}}}"#,
            within.unwrap_or_default()
        ));
        let session = session.store().session(SessionOptions {
            namespace: namespace.map(str::to_owned),
            ..SessionOptions::default()
        });
        let put = session.put(Offer::Grain(grain).with_vectors(vec![vector]));
        put.map(|put| put.address()).map_err(|error| error.code())
    };
    // Nothing of it is written yet.
    assert_eq!(put(&session, Some("a"), "topics", vec![1.0]), Err("ERR_DIMENSION"));
    assert_eq!(put(&session, None, "topics", vec![1.0]), Err("ERR_DIMENSION"));
    for at in 0..7 {
        put(&session, Some("a"), &format!("model{at}"), vec![1.0, 2.0]).unwrap();
    }
    // Seven and that of the embedder.
    for namespace in ["a", "b"] {
        assert_eq!(put(&session, Some(namespace), "model7", vec![1.0]), Err("ERR_LIMIT"));
    }
    let known = put(&session, Some("b"), "model0", vec![2.0, 1.0]).unwrap();
    put(&session, None, "model7", vec![1.0]).unwrap();
    put(&session, Some("b"), "model7", vec![0.5]).unwrap();
    let within = session
        .store()
        .session(SessionOptions { namespace: Some("b".to_owned()), ..SessionOptions::default() });
    let other = || vec![Embedding::new("model8", Metric::L2, vec![1.0]).unwrap()];
    assert_eq!(within.embed(&known, other()).map_err(|error| error.code()), Err("ERR_LIMIT"));
    session.embed(&known, other()).unwrap();
    for at in 9..63 {
        put(&session, None, &format!("model{at}"), vec![1.0]).unwrap();
    }
    assert_eq!(put(&session, None, "model63", vec![1.0]), Err("ERR_LIMIT"));
    topics.dead.store(false, Ordering::SeqCst);
    kit::put(&session, belief("alice", "a cup of tea"));
    assert!(settled(&session), "its place is kept");
    let stats = session.store().stats().unwrap();
    assert_eq!((stats.vectors.len(), stats.embedding.unwrap().error), (64, None));
    assert_eq!(put(&session, Some("b"), "topics", vec![1.0, 0.0, 0.0]).map(drop), Ok(()));
}
