//! What encryption costs: a store with a key beside one without, the same grains and questions, in turns.
//!
//! `cargo run --release -p grainstore-bench --bin privacy [-- GRAINS]` prints medians and their ratios.
//! All grains are of one person, whom both sessions name; 100,000 of them unless told otherwise.
#![expect(clippy::print_stdout, reason = "a program that prints what it measured")]

use std::path::Path;
use std::time::{Duration, Instant};

use grainstore::cal::{Predicate, Query};
use grainstore::{
    ContentAddress, EraseOptions, Grain, MasterKey, OpenOptions, PageOptions, PutOutcome, Session,
    SessionOptions, Store,
};
use grainstore_bench::Error;
use tempfile::TempDir;

/// Whose grains they are.
const PERSON: &str = "person";
/// Subjects they are about.
const SUBJECTS: u64 = 1_000;
/// Grains of a batch.
const BATCH: u64 = 5_000;
/// Measurements of everything but opening.
const ROUNDS: u64 = 400;
/// Openings of each store.
const OPENINGS: u64 = 7;

/// Words that texts are made of, the first ones in most of them.
const WORDS: [&str; 16] = [
    "coffee", "morning", "window", "garden", "letter", "train", "winter", "music", "orange",
    "paper", "river", "silver", "summer", "table", "yellow", "zebra",
];

fn main() -> Result<(), Error> {
    let grains = match std::env::args().nth(1) {
        Some(count) => count.parse()?,
        None => 100_000,
    };
    let (mut plain, mut keyed) = (World::new(false, grains)?, World::new(true, grains)?);
    println!("{grains} grains of one person; medians, plain and encrypted");
    report("a batch, per grain", plain.filled, keyed.filled);
    for (name, measure) in MEASURES {
        let (mut of_plain, mut of_keyed) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            of_plain.push(measure(&plain, round)?);
            of_keyed.push(measure(&keyed, round)?);
        }
        report(name, median(of_plain), median(of_keyed));
    }
    let (mut of_plain, mut of_keyed) = (Vec::new(), Vec::new());
    for round in 0..OPENINGS {
        of_plain.push(plain.reopen(ROUNDS + round)?);
        of_keyed.push(keyed.reopen(ROUNDS + round)?);
    }
    for (step, name) in REOPENED.iter().enumerate() {
        let of = |all: &[Reopened]| all.iter().filter_map(|took| took.get(step).copied()).collect();
        report(name, median(of(&of_plain)), median(of(&of_keyed)));
    }
    for (name, world) in [("plain", &plain), ("encrypted", &keyed)] {
        let operator = world.store.session(SessionOptions::default());
        let began = Instant::now();
        let done = operator.erase_user(PERSON, "measured", &EraseOptions::new())?;
        let committed = began.elapsed();
        let began = Instant::now();
        world.store.scrub()?;
        println!(
            "erase_user, {name}: {:.1} ms for {} grains; scrubbed after {:.1} s",
            committed.as_secs_f64() * 1e3,
            done.erased,
            began.elapsed().as_secs_f64()
        );
    }
    Ok(())
}

/// What is measured at each opening.
const REOPENED: [&str; 4] = ["open", "then the first get", "the first recall", "the first put"];

type Reopened = [Duration; REOPENED.len()];

/// Something that is measured, of a world in a round.
type Measure = fn(&World, u64) -> Result<Duration, Error>;

const MEASURES: [(&str, Measure); 6] = [
    ("put, durable", |world, round| {
        let grain = belief(world.grains + round)?;
        timed(|| {
            world.session.put(grain)?;
            Ok(())
        })
    }),
    ("get", |world, round| {
        let at = usize::try_from(round * 7919)? % world.addresses.len();
        let address = world.addresses.get(at).ok_or("no such grain")?;
        timed(|| {
            world.session.get(address)?;
            Ok(())
        })
    }),
    ("recall, 16 of a subject", |world, round| {
        let subject = format!("subject {}", round * 31 % SUBJECTS);
        let query = Query::default().when(Predicate::text_is("subject", &subject)?);
        timed(|| asked(&world.session, &query))
    }),
    ("recall, 16 of a person", |world, _| {
        let query = Query::default().when(Predicate::text_is("user_id", PERSON)?);
        timed(|| asked(&world.session, &query))
    }),
    ("words, in most texts", |world, _| {
        timed(|| asked(&world.session, &Query::default().searching("coffee morning")))
    }),
    ("a code, its part in all texts", |world, round| {
        let text = format!("number{}", round * 101 % world.grains);
        timed(|| asked(&world.session, &Query::default().searching(text)))
    }),
];

/// A store full of grains, and the session of their person.
struct World {
    dir: TempDir,
    store: Store,
    session: Session,
    is_keyed: bool,
    grains: u64,
    addresses: Vec<ContentAddress>,
    /// How long a grain of a batch took.
    filled: Duration,
}

impl World {
    fn new(is_keyed: bool, grains: u64) -> Result<Self, Error> {
        let dir = TempDir::new()?;
        let (store, session) = open(dir.path(), is_keyed)?;
        let mut addresses = Vec::new();
        let began = Instant::now();
        for first in (0..grains).step_by(usize::try_from(BATCH)?) {
            let batch = (first..grains.min(first + BATCH)).map(belief);
            let batch = batch.collect::<Result<Vec<Grain>, Error>>()?;
            addresses.extend(session.put_batch(batch)?.iter().map(PutOutcome::address));
        }
        store.flush()?;
        let filled = began.elapsed() / u32::try_from(grains)?;
        // The first search reads what is not followed yet.
        asked(&session, &Query::default().searching("coffee"))?;
        Ok(Self { dir, store, session, is_keyed, grains, addresses, filled })
    }

    /// How long it takes to open it again, and what is done first after that: [`REOPENED`].
    fn reopen(&mut self, round: u64) -> Result<Reopened, Error> {
        self.store.close()?;
        let opened = timed(|| {
            (self.store, self.session) = open(self.dir.path(), self.is_keyed)?;
            Ok(())
        })?;
        let [(_, put), (_, get), (_, recall), ..] = MEASURES;
        Ok([opened, get(self, round)?, recall(self, round)?, put(self, round)?])
    }
}

fn open(path: &Path, is_keyed: bool) -> Result<(Store, Session), Error> {
    let options = OpenOptions::new().create(true);
    let options = if is_keyed { options.key(MasterKey::new([7; 32])) } else { options };
    let store = Store::open(path, &options)?;
    let user_id = Some(PERSON.to_owned());
    let session = store.session(SessionOptions { user_id, ..SessionOptions::default() });
    Ok((store, session))
}

fn belief(number: u64) -> Result<Grain, Error> {
    let word = |at: u64| WORDS.get(usize::try_from(at % 16).unwrap_or(0)).copied().unwrap_or("");
    let object = format!(
        "coffee in the {} morning with {} and {} beside the {}, number{number}",
        word(number / 7),
        word(number / 11),
        word(number / 13),
        word(number / 17)
    );
    let json = serde_json::json!({
        "type": "belief", "subject": format!("subject {}", number % SUBJECTS), "relation": "said",
        "object": object, "confidence": 0.9, "created_at": 1_700_000_000_000_u64 + number,
        "user_id": PERSON, "structural_tags": ["daily"],
    });
    Ok(Grain::from_json(&json.to_string())?)
}

fn asked(session: &Session, query: &Query) -> Result<(), Error> {
    let answer = session.query(query, &PageOptions::first(16))?;
    if answer.results.is_empty() {
        return Err("an empty answer".into());
    }
    Ok(())
}

fn timed(work: impl FnOnce() -> Result<(), Error>) -> Result<Duration, Error> {
    let began = Instant::now();
    work()?;
    Ok(began.elapsed())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn report(name: &str, plain: Duration, keyed: Duration) {
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    let ratio = keyed.as_secs_f64() / plain.as_secs_f64();
    println!("{name:28} {:>10.1} us {:>10.1} us {ratio:>6.2}", micros(plain), micros(keyed));
}
