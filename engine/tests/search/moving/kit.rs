//! Embedders that differ in what they take words for, and that wait until they are let on.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use grainstore::cal::{Near, Query};
use grainstore::embed::{Embedder, Embedding, Metric, Vector};
use grainstore::{Error, OpenOptions, Session, SessionOptions, Store, StoreStats};
use tempfile::TempDir;

use crate::moving::search::{belief, put};

/// How long a test waits for what must happen before it gives up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// A word no grain has: what it means is a matter of the model.
pub(crate) const ZEBRA: &str = "zebra";
/// Grains of a store: more than an embedder is given at once.
pub(crate) const GRAINS: usize = 40;

/// Makes vectors of the words a text has. It refuses the word `poison`.
pub(crate) struct Sense {
    model: &'static str,
    topics: &'static [&'static [&'static str]],
    pub(crate) dead: AtomicBool,
    /// Texts of grains it was given.
    pub(crate) texts: AtomicUsize,
    /// Where it says that it was given texts of grains, and waits; nothing where it does not wait.
    gate: Option<Mutex<(Sender<usize>, Receiver<()>)>>,
}

/// The other side of a gate. Dropping it lets the embedder fail.
pub(crate) struct Gate {
    given: Receiver<usize>,
    pass: Sender<()>,
}

impl Gate {
    /// Waits until the embedder was given texts; how many.
    pub(crate) fn await_texts(&self) -> usize {
        self.given.recv_timeout(PATIENCE).unwrap()
    }

    /// Lets it answer.
    pub(crate) fn open(&self) {
        self.pass.send(()).unwrap();
    }
}

/// For the former model a zebra is a place.
pub(crate) fn former() -> Arc<Sense> {
    let topics: &[&[&str]] =
        &[&["tea", "coffee"], &["town", "norway", ZEBRA], &["one", "two", "three"]];
    Arc::new(sense("former", topics, None))
}

/// One that says it is the former model, and has vectors of another length.
pub(crate) fn long_former() -> Arc<Sense> {
    Arc::new(sense("former", DRINKS, None))
}

/// For the new one it is a drink. Its vectors have another length.
pub(crate) fn new() -> Arc<Sense> {
    Arc::new(sense("new", DRINKS, None))
}

/// The same, waiting at a gate before each answer about grains.
pub(crate) fn gated() -> (Arc<Sense>, Gate) {
    let ((told, given), (pass, passed)) = (channel(), channel());
    let sense = sense("new", DRINKS, Some(Mutex::new((told, passed))));
    (Arc::new(sense), Gate { given, pass })
}

const DRINKS: &[&[&str]] = &[&["tea", "coffee", ZEBRA], &["town", "norway"]];

type Waits = Option<Mutex<(Sender<usize>, Receiver<()>)>>;

fn sense(model: &'static str, topics: &'static [&'static [&'static str]], gate: Waits) -> Sense {
    Sense { model, topics, dead: AtomicBool::new(false), texts: AtomicUsize::new(0), gate }
}

impl Embedder for Sense {
    fn model(&self) -> &str {
        self.model
    }

    fn dimension(&self) -> usize {
        self.topics.len()
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vector>, Error> {
        // What a program that died would answer.
        let died = || Embedding::new("", Metric::Cosine, vec![1.0]).unwrap_err();
        if texts.iter().all(|text| text.contains("likes")) {
            self.texts.fetch_add(texts.len(), Ordering::SeqCst);
            if let Some(gate) = &self.gate
                && !self.dead.load(Ordering::SeqCst)
            {
                let gate = gate.lock().unwrap();
                let passed =
                    gate.0.send(texts.len()).is_ok() && gate.1.recv_timeout(PATIENCE).is_ok();
                if !passed {
                    // The test is over, or gave up: nothing else waits.
                    self.dead.store(true, Ordering::SeqCst);
                }
            }
        }
        if self.dead.load(Ordering::SeqCst) || texts.iter().any(|text| text.contains("poison")) {
            return Err(died());
        }
        let of = |text: &&str| {
            let count = |words: &&[&str]| words.iter().filter(|word| text.contains(**word)).count();
            let values = self.topics.iter();
            let values = values.map(|words| 0.01 + f32::from(u8::try_from(count(words)).unwrap()));
            Vector::new(values.collect::<Vec<_>>()).map_err(Error::from)
        };
        texts.iter().map(of).collect()
    }
}

/// Opens a store with an embedder, and a former one.
pub(crate) fn open(dir: &TempDir, embedder: &Arc<Sense>, former: Option<&Arc<Sense>>) -> Session {
    let own = |embedder: &Arc<Sense>| Arc::clone(embedder) as Arc<dyn Embedder>;
    let mut options = OpenOptions::new().create(true).embedder(own(embedder), Metric::Cosine);
    if let Some(former) = former {
        options = options.former_embedder(own(former), Metric::Cosine);
    }
    Store::open(dir.path(), &options).unwrap().session(SessionOptions::default())
}

pub(crate) fn open_without(dir: &TempDir) -> Session {
    let options = OpenOptions::new().create(true);
    Store::open(dir.path(), &options).unwrap().session(SessionOptions::default())
}

/// What the grain of a number is about: tea, a town, or numbers.
fn about(number: usize) -> String {
    let things = ["a cup of tea", "a town in norway", "one two three"];
    format!("{} {number}", things.get(number % 3).unwrap())
}

/// Puts the grains of these numbers.
pub(crate) fn fill(session: &Session, numbers: std::ops::Range<usize>) {
    for number in numbers {
        put(session, belief(&format!("subject {number}"), &about(number)));
    }
}

/// A closed store whose grains all have a vector of the former model.
pub(crate) fn embedded() -> TempDir {
    let dir = TempDir::new().unwrap();
    let session = open(&dir, &former(), None);
    fill(&session, 0..GRAINS);
    assert!(settled(&session));
    session.store().close().unwrap();
    dir
}

/// Waits for the embedder, and the end of a move to its model.
pub(crate) fn settled(session: &Session) -> bool {
    session.store().wait_for_vectors(PATIENCE).unwrap()
}

pub(crate) fn stats(session: &Session) -> StoreStats {
    session.store().stats().unwrap()
}

pub(crate) fn serving(session: &Session) -> String {
    stats(session).serving_model.unwrap()
}

/// Waits until the figures are as they must become.
pub(crate) fn until(session: &Session, come: impl Fn(&StoreStats) -> bool) {
    let end = Instant::now() + PATIENCE;
    while !come(&stats(session)) {
        assert!(Instant::now() < end, "{:?}", stats(session));
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The grains nearest to a vector whose model is not named, or is.
pub(crate) fn near(model: Option<&str>, values: &[f32]) -> Query {
    Query::default().nearing(Near { model: model.map(str::to_owned), values: values.into() })
}

pub(crate) fn code<T>(outcome: Result<T, Error>) -> Result<(), &'static str> {
    outcome.map(drop).map_err(|error| error.code())
}
