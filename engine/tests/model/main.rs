//! The store against a model of it: random calls, each answer judged by the rules, and everything
//! compared when the store is reopened.
//!
//! The full run: `GRAINSTORE_MODEL_OPS=100000 cargo test -p grainstore --test model -- --nocapture`.
//! A failure names its seed and operation; `GRAINSTORE_MODEL_SEED` runs that seed again.

#![expect(
    clippy::panic,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "helpers of tests, which the allowance for tests does not reach"
)]

mod kit;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use grainstore as engine;
use grainstore::format::{ContentAddress, EpochMs};
use grainstore::{ManualClock, OpenOptions, Session, Store};
use tempfile::TempDir;

use kit::agree::{addresses, agree, as_known, same};
use kit::calls::{CREATED_MS, Caller, Made, NAMESPACES, RELATIONS, SESSIONS, session};
use kit::model::{Known, Model};
use kit::offers::Settled;
use kit::rules;

/// Operations of a normal run.
const OPERATIONS: usize = 3000;
/// Every so many operations the store is closed, opened and compared whole.
const REOPEN_EVERY: usize = 1000;
/// When the clock of the store starts: after every `created_at`.
const START_MS: i64 = 1_800_000_000_000;

/// A store with a clock that says what it is told, and the model beside it.
struct Pair {
    dir: TempDir,
    clock: Arc<ManualClock>,
    store: Store,
    model: Model,
    caller: Caller,
    now: i64,
}

/// What was asked, for the message of a failure.
type Checked = Result<(), String>;

#[test]
fn random_calls_get_the_answers_of_the_model() {
    let from_env = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let operations = from_env("GRAINSTORE_MODEL_OPS").unwrap_or(OPERATIONS);
    let seed = from_env("GRAINSTORE_MODEL_SEED").unwrap_or(1);
    let mut pair = Pair::new(seed as u64);
    for operation in 1..=operations {
        let checked = match pair.caller.random.below(1000) {
            0..600 => pair.write(),
            600..995 => pair.read(),
            _ => pair.store.flush().map_err(|error| error.to_string()),
        };
        let reopened = match operation % REOPEN_EVERY {
            0 => checked.and_then(|()| pair.reopen()),
            _ => checked,
        };
        if let Err(why) = reopened {
            panic!("seed {seed}, operation {operation}: {why}");
        }
    }
    pair.reopen().unwrap();
    for operation in ["contradict", "set_verification", "lift_hold", "hold", "sign", "supersede"] {
        let told = pair.model.audit.iter().filter(|entry| entry.operation == operation);
        let (done, refused): (Vec<_>, Vec<_>) = told.partition(|entry| entry.decision == "done");
        println!("model: {operation}: {} done, {} refused", done.len(), refused.len());
        assert!(operations < OPERATIONS || !done.is_empty(), "{operation} came to be done");
    }
    assert_eq!(pair.store.verify(true).unwrap().problems, []);
    let (grains, entries) = (pair.model.grains.len(), pair.model.audit.len());
    println!(
        "model: seed {seed}, {operations} operations, {grains} grains, {entries} audit entries"
    );
}

impl Pair {
    fn new(seed: u64) -> Self {
        let dir = TempDir::new().expect("a directory");
        let clock = Arc::new(ManualClock::following());
        clock.set(EpochMs::new(START_MS));
        let store = open(&dir, &clock);
        let (model, caller) = (Model::default(), Caller::new(seed));
        Self { dir, clock, store, model, caller, now: START_MS }
    }

    fn write(&mut self) -> Checked {
        self.now += 7;
        let now = EpochMs::new(self.now);
        self.clock.set(now);
        let (namespace, call) = self.caller.next(&self.model);
        let made = Made::submit(&session(&self.store, namespace), &call);
        let mut settled = Settled::awaited(namespace, now, call);
        settled.answer = made.wait();
        self.model.settle(&settled).map_err(|why| format!("{settled:#?}\n{why}"))
    }

    fn reopen(&mut self) -> Checked {
        self.store.close().expect("a store that closes");
        // Refusals of the minute before a store is opened are counted with those after it.
        self.now += 61_000;
        self.clock.set(EpochMs::new(self.now));
        self.store = open(&self.dir, &self.clock);
        agree(&self.store, &self.model)
    }

    fn read(&mut self) -> Checked {
        let namespace = self.caller.random.pick(&SESSIONS);
        let reader =
            Reader { namespace, session: session(&self.store, namespace), model: &self.model };
        let random = &mut self.caller.random;
        let grains = &self.model.grains;
        let address = match grains.len() {
            count if count > 0 && random.percent(95) => grains[random.below(count)].address,
            _ => ContentAddress::of(b"never stored"),
        };
        let asked = random.below(5);
        let checked = match asked {
            0 => reader.get(&address),
            1 => {
                let digits = random.below(66);
                let limit = random.below(3);
                let mut prefix: String = address.to_string().chars().take(digits).collect();
                if random.percent(10) {
                    prefix = prefix.to_uppercase();
                }
                reader.resolve(&prefix, limit)
            }
            2 => reader.history(&address),
            _ => {
                let subject = format!("subject {}", random.below(6 + grains.len() / 40));
                let relation = random.pick(&RELATIONS);
                let of = random.percent(50).then(|| random.pick(&NAMESPACES)).flatten();
                let as_of = random.pick(&[START_MS, CREATED_MS]);
                let as_of = as_of + random.pick(&[0, 20_000, (self.now - START_MS) / 2]);
                let as_of = random.percent(50).then(|| EpochMs::new(as_of));
                reader.history_of(&subject, relation, of, as_of)
            }
        };
        checked.map_err(|why| format!("read {asked} as {namespace:?} of {address}: {why}"))
    }
}

fn open(dir: &TempDir, clock: &Arc<ManualClock>) -> Store {
    let options = OpenOptions::new().create(true).clock(Arc::<ManualClock>::clone(clock));
    Store::open(dir.path(), &options).expect("the store opens")
}

/// A session that reads, and what it must be told.
struct Reader<'m> {
    namespace: Option<&'static str>,
    session: Session,
    model: &'m Model,
}

impl Reader<'_> {
    fn sees(&self, known: &Known) -> bool {
        rules::reaches(self.namespace, rules::partition(&known.grain))
    }

    fn get(&self, address: &ContentAddress) -> Checked {
        let known = self.model.find(address).filter(|known| self.sees(known));
        let exists = self.session.exists(address).map_err(|error| error.to_string())?;
        same("exists", &exists, &known.is_some())?;
        let batch = self.session.get_batch(&[*address]).map_err(|error| error.to_string())?;
        same("answers of a batch", &batch.len(), &1)?;
        same("found by a batch", &batch[0].is_some(), &known.is_some())?;
        match (self.session.get(address), known) {
            (Ok(stored), Some(known)) => as_known(&stored, known),
            (Err(error), None) => same("code", &error.code(), &"ERR_NOT_FOUND"),
            (answer, known) => Err(format!("{answer:?}, not {known:?}")),
        }
    }

    fn resolve(&self, prefix: &str, limit: usize) -> Checked {
        let lower = prefix.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let expected = match prefix.len() {
            8..=64 if lower => {
                let known = self.model.grains.iter().filter(|known| self.sees(known));
                let named = known.filter(|known| known.address.to_string().starts_with(prefix));
                let found: BTreeSet<_> = named.map(|known| known.address).collect();
                Ok(found.into_iter().take(limit).collect::<Vec<_>>())
            }
            8..=64 => Err("ERR_HASH_FORMAT"),
            _ => Err("ERR_HASH_LENGTH"),
        };
        let found = self.session.resolve(prefix, limit).map_err(|error| error.code());
        same(prefix, &found, &expected)
    }

    /// All versions are those linked by supersession, within reach.
    fn history(&self, address: &ContentAddress) -> Checked {
        let mut linked = BTreeSet::new();
        let mut queue = VecDeque::from([*address]);
        while let Some(address) = queue.pop_front() {
            let Some(known) = self.model.find(&address).filter(|known| self.sees(known)) else {
                continue;
            };
            if !linked.insert(address) {
                continue;
            }
            queue.extend(known.superseded_by);
            let parents = rules::parents(&known.grain);
            let superseded = |parent: &ContentAddress| {
                self.model.find(parent).and_then(|parent| parent.superseded_by) == Some(address)
            };
            queue.extend(parents.into_iter().filter(superseded));
        }
        let newest_first = self.model.grains.iter().rev().map(|known| known.address);
        let versions: Vec<_> = newest_first.filter(|known| linked.contains(known)).collect();
        let expected = if versions.is_empty() { Err("ERR_NOT_FOUND") } else { Ok(versions) };
        let found = self.session.history(address).map(|versions| addresses(&versions));
        same("history", &found.map_err(|error| error.code()), &expected)
    }

    fn history_of(
        &self,
        subject: &str,
        relation: &str,
        namespace: Option<&str>,
        as_of: Option<EpochMs>,
    ) -> Checked {
        let asked = namespace.map(|name| if name.is_empty() { "shared" } else { name });
        let words = (subject.to_owned(), relation.to_owned());
        let places = self.model.words.get(&words).into_iter().flatten();
        let versions = places.rev().map(|place| &self.model.grains[*place]);
        let versions = versions.filter(|known| {
            let partition = rules::partition(&known.grain);
            let current = as_of.is_none_or(|at| {
                known.grain.created_at() <= at && known.ended.is_none_or(|ended| at < ended)
            });
            self.sees(known) && asked.is_none_or(|asked| asked == partition) && current
        });
        let expected = match asked {
            Some(asked) if !rules::reaches(self.namespace, asked) => Err("ERR_ACCESS"),
            _ => Ok(versions.map(|known| known.address).collect()),
        };
        let found = self.session.history_of(subject, relation, namespace, as_of);
        let found = found.map(|versions| addresses(&versions)).map_err(|error| error.code());
        same(&format!("{subject} {relation} in {namespace:?} at {as_of:?}"), &found, &expected)
    }
}
