//! Stores of two people, one of whom is erased, and the words that are looked for in the files.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use grainstore::cal::Query;
use grainstore::embed::{Embedder, Embedding, Metric, Vector};
use grainstore::format::{Encoding, SigningKey, sign};
use grainstore::{
    ContentAddress, EpochMs, Grain, ManualClock, MasterKey, Offer, OpenOptions, PageOptions,
    Session, SessionOptions, Store,
};

use crate::erase::random::Random;

/// Letters of a word that tell it from everything else.
const TELLING: usize = 10;
/// When the stores' clocks stand: 2027-01-15T08:00:00Z.
pub(crate) const NOW: i64 = 1_800_000_000_000;
/// Who is erased, and who is not.
pub(crate) const ANN: &str = "ann";
pub(crate) const BOB: &str = "bob";

pub(crate) fn clock_at(now: i64) -> Arc<ManualClock> {
    let clock = ManualClock::following();
    clock.set(EpochMs::new(now));
    Arc::new(clock)
}

pub(crate) fn open(path: &Path) -> Store {
    open_at(path, NOW)
}

pub(crate) fn open_at(path: &Path, now: i64) -> Store {
    Store::open(path, &OpenOptions::new().create(true).clock(clock_at(now))).unwrap()
}

pub(crate) fn open_encrypted(path: &Path) -> Store {
    let options = OpenOptions::new().create(true).clock(clock_at(NOW));
    Store::open(path, &options.key(MasterKey::new([7; 32]))).unwrap()
}

pub(crate) fn operator(store: &Store) -> Session {
    store.session(SessionOptions::default())
}

/// A belief with these fields beside.
pub(crate) fn belief(user: &str, object: &str, created_at: i64, more: &str) -> Grain {
    let user = if user.is_empty() { String::new() } else { format!(r#", "user_id": "{user}""#) };
    grain(&format!(
        r#"{{"type": "belief", "subject": "s", "relation": "likes", "object": "{object}",
            "confidence": 1, "created_at": {created_at}{user}{more}}}"#
    ))
}

pub(crate) fn grain(json: &str) -> Grain {
    Grain::from_json(json).unwrap_or_else(|error| panic!("{error}: {json}"))
}

pub(crate) fn put(session: &Session, grain: Grain) -> ContentAddress {
    session.put(grain).unwrap().address()
}

/// What a search finds.
pub(crate) fn found(session: &Session, text: &str) -> Vec<ContentAddress> {
    let answer =
        session.query(&Query::default().searching(text), &PageOptions::first(1000)).unwrap();
    answer.results.iter().map(|row| row.content_address).collect()
}

/// The code of a refusal.
pub(crate) fn code<T: std::fmt::Debug>(outcome: grainstore::Result<T>) -> &'static str {
    outcome.map_err(|error| error.code()).unwrap_err()
}

/// A word of sixteen letters that no stemming changes and that stands nowhere else, some of them large:
/// folding makes another word of it.
pub(crate) fn canary(random: &mut Random) -> String {
    let letter = |random: &mut Random| {
        let letter = char::from(random.pick(b"bcdfgkmpqrtvwxz"));
        if random.percent(20) { letter.to_ascii_uppercase() } else { letter }
    };
    (0..16).map(|_| letter(random)).collect()
}

/// Every file of a directory with its bytes, its subdirectories among them.
pub(crate) fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.insert(path.display().to_string(), fs::read(&path).unwrap());
        }
    }
    found
}

/// The files that have one of these words, with the words. Its last letters are enough: sorted lists keep
/// of a word what it does not share with the one before.
pub(crate) fn found_in(directory: &Path, words: &[String]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (name, bytes) in files(directory) {
        for word in words {
            let end = &word.as_bytes()[word.len() - TELLING..];
            if bytes.windows(TELLING).any(|window| window.eq_ignore_ascii_case(end)) {
                found.push((name.clone(), word.clone()));
            }
        }
    }
    found
}

/// An embedder that waits until it is let on, once it was given a text.
pub(crate) struct Slow(Mutex<(Sender<()>, Receiver<()>)>);

/// The other side of it.
pub(crate) struct Gate(Receiver<()>, Sender<()>);

impl Slow {
    pub(crate) fn new() -> (Self, Gate) {
        let ((given, was_given), (pass, passed)) = (channel(), channel());
        (Self(Mutex::new((given, passed))), Gate(was_given, pass))
    }
}

impl Gate {
    /// Waits until it was given texts.
    pub(crate) fn was_given(&self) {
        self.0.recv_timeout(Duration::from_secs(20)).unwrap();
    }

    /// Lets it answer from now on.
    pub(crate) fn open(self) {
        drop(self.1);
    }
}

impl Embedder for Slow {
    fn model(&self) -> &'static str {
        "slow"
    }

    fn dimension(&self) -> usize {
        2
    }

    fn embed(&self, texts: &[&str]) -> grainstore::Result<Vec<Vector>> {
        let gate = self.0.lock().unwrap();
        // Nobody may be listening any more, nor holding it back.
        let _ = gate.0.send(());
        let _ = gate.1.recv();
        texts.iter().map(|_| Ok(Vector::new(vec![1.0, 0.5])?)).collect()
    }
}

/// Both people in one store, with a word of one's own in every field of what is hers.
pub(crate) struct World {
    pub(crate) canaries: Vec<String>,
    spoken: String,
    pub(crate) of_ann: Vec<ContentAddress>,
    pub(crate) of_bob: Vec<ContentAddress>,
}

impl World {
    /// Fills a store.
    pub(crate) fn of(store: &Store, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut world = Self {
            canaries: Vec::new(),
            spoken: String::new(),
            of_ann: Vec::new(),
            of_bob: Vec::new(),
        };
        let session = operator(store);
        world.facts(&session, &mut random);
        world.turns(&session, &mut random);
        world.versions(&session, &mut random);
        world
    }

    fn word(&mut self, random: &mut Random) -> String {
        let word = canary(random);
        self.canaries.push(word.clone());
        word
    }

    /// A grain of every kind of field, a word each; the same sentence is said by Bob.
    fn facts(&mut self, session: &Session, random: &mut Random) {
        let mut words: Vec<String> = (0..14).map(|_| self.word(random)).collect();
        let mut next = || words.pop().unwrap();
        let fields = format!(
            r#"{{"type": "belief", "subject": "{}", "relation": "{}", "object": {{"{}": ["{}", {{"x": "{}"}}]}},
                "confidence": 1, "created_at": 1000, "user_id": "{ANN}", "namespace": "home:{}",
                "session_id": "{}", "run_id": "{}", "structural_tags": ["{}"],
                "context": {{"{}": "{}", "hc:patient_id": "{}"}}, "{}": {{"deep": "{}"}}}}"#,
            next(),
            next(),
            next(),
            next(),
            next(),
            next(),
            next(),
            next(),
            next(),
            next(),
            next(),
            next(),
            next(),
            next()
        );
        for encoding in [Encoding::MessagePack, Encoding::Cbor] {
            let vector = Embedding::new("model", Metric::Cosine, vec![1.0, 0.25]).unwrap();
            let blob = grain(&fields).encode(encoding).unwrap();
            let offer = Offer::from(blob).with_vectors(vec![vector]);
            self.of_ann.push(session.put(offer).unwrap().address());
        }
        let key = SigningKey::ed25519_from_seed(&[7; 32]);
        for user in [ANN, BOB] {
            let word = if user == ANN { self.word(random) } else { "signed by him".to_owned() };
            let blob = belief(user, &word, 1003, "").encode(Encoding::MessagePack).unwrap();
            let signed = session.put(sign(blob.bytes(), &key, None).unwrap()).unwrap().address();
            let of = if user == ANN { &mut self.of_ann } else { &mut self.of_bob };
            of.push(signed);
        }
        for user in [ANN, BOB] {
            let said = put(session, belief(user, "they both like tea", 1001, ""));
            if user == ANN { self.of_ann.push(said) } else { self.of_bob.push(said) }
        }
        self.of_bob.push(put(session, belief("", "belongs to nobody", 1002, "")));
    }

    /// Two conversations under one name, whose turns lie between each other.
    fn turns(&mut self, session: &Session, random: &mut Random) {
        for at in 0..12 {
            let user = if at % 2 == 0 { ANN } else { BOB };
            let word = if user == ANN { self.word(random) } else { "weather".to_owned() };
            if user == ANN {
                self.spoken.clone_from(&word);
            }
            let address = put(
                session,
                grain(&format!(
                    r#"{{"type": "event", "content": "we spoke of {word} {at}", "role": "user",
                        "session_id": "s1", "user_id": "{user}", "created_at": {at}, "timestamp_ms": {at}}}"#,
                    at = 2000 + at
                )),
            );
            if user == ANN { self.of_ann.push(address) } else { self.of_bob.push(address) }
        }
    }

    /// Versions, and reasons for what was done with them.
    fn versions(&mut self, session: &Session, random: &mut Random) {
        let (first, second) = (self.word(random), self.word(random));
        let old = put(session, belief(ANN, &first, 3000, ""));
        let new = belief(ANN, &second, 3001, "");
        let why = self.word(random);
        let new = session.supersede(&old, new, Some(&why)).unwrap();
        let why = self.word(random);
        session.hold(&new, &why).unwrap();
        let why = self.word(random);
        session.lift_hold(&new, &why, None).unwrap();
        let why = self.word(random);
        session.contradict(&new, &why, None).unwrap();
        self.of_ann.extend([old, new]);
        let kept = put(session, belief(BOB, "was said before", 3002, ""));
        let by = belief(BOB, "is said now", 3003, "");
        let by = session.supersede(&kept, by, Some("bob has a reason")).unwrap();
        self.of_bob.extend([kept, by]);
    }

    /// A word of a turn of hers.
    pub(crate) fn spoken(&self) -> &str {
        &self.spoken
    }

    /// Whether all of the other is as it was.
    pub(crate) fn assert_bob_is_whole(&self, store: &Store) {
        let session = operator(store);
        for address in &self.of_bob {
            session.get(address).unwrap_or_else(|error| panic!("{address}: {error}"));
        }
        let reasons = session.audit(None, 10_000).unwrap();
        let has = |text: &str| reasons.iter().any(|e| e.reason.as_deref() == Some(text));
        assert!(has("bob has a reason"));
        let verified = store.verify(true).unwrap();
        assert!(verified.ok, "{:?}", verified.problems);
    }

    /// Whether nothing of the one who was erased is shown.
    pub(crate) fn assert_ann_is_gone(&self, store: &Store) {
        let session = operator(store);
        for address in &self.of_ann {
            assert!(!session.exists(address).unwrap());
            assert_eq!(code(session.get(address)), "ERR_ERASED");
        }
    }
}
