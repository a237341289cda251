//! The store against a model of it: random calls, each answer judged by the rules, and everything
//! compared when the store is reopened.
//!
//! `goals`: transitions. `nearness`: vectors. `arriving`: imports. `tally`: how often each came out how.
//!
//! The full run: `GRAINSTORE_MODEL_OPS=100000 cargo test -p grainstore --test crash model:: -- --nocapture`.
//! A failure names its seed and operation; `GRAINSTORE_MODEL_SEED` runs that seed again.

#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests, which the allowance for tests does not reach"
)]

mod arriving;
#[path = "../../write/import/kit.rs"]
#[expect(dead_code, reason = "shared with the tests of import")]
mod files;
mod goals;
mod nearness;
mod tally;

use crate::kit;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use grainstore as engine;
use grainstore::format::{ContentAddress, EpochMs};
use grainstore::{ManualClock, OpenOptions, SameFact, Session, Store};
use tempfile::TempDir;

use arriving::{Coming, return_of_an_export};
use goals::Goals;
use kit::agree::{addresses, agree, agree_on, as_known, same};
use kit::calls::{CREATED_MS, Caller, Made, NAMESPACES, RELATIONS, SESSIONS, session};
use kit::model::{Known, Model};
use kit::offers::{Call, Settled};
use kit::rules;
use nearness::{Given, Vectors};
use tally::Tally;

/// Operations of a normal run.
const OPERATIONS: usize = 3000;
/// Every so many operations the store is closed, opened and compared whole.
const REOPEN_EVERY: usize = 1000;
/// When the clock of the store starts: after every `created_at`.
const START_MS: i64 = 1_800_000_000_000;

/// Who imports: mostly somebody who reaches what is in the file.
const IMPORTERS: [Option<&str>; 6] = [None, None, None, None, Some("acme"), Some("shared")];
/// What has to be done, and to be refused.
const BOTH_WAYS: [&str; 10] = [
    "transition as it is listed",
    "evidence",
    "put with a vector",
    "embed",
    "remove_vectors",
    "near",
    "import",
    "claim of a supersession",
    "next version that nothing claims",
    "mark that a file claims",
];

/// A store with a clock that says what it is told, and the model beside it.
struct Pair {
    dir: TempDir,
    /// For what is imported and exported.
    files: TempDir,
    clock: Arc<ManualClock>,
    store: Store,
    model: Model,
    caller: Caller,
    goals: Goals,
    vectors: Vectors,
    tally: Tally,
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
            0..470 => pair.write(),
            470..570 => pair.change_goal(),
            570..595 => pair.put_with_vector(),
            595..620 => pair.embed(),
            620..624 => pair.remove_vectors(),
            624..675 => pair.import(),
            675..680 => pair.return_export(),
            680..700 => pair.near(),
            700..995 => pair.read(),
            _ => pair.store.flush().map_err(|error| error.to_string()),
        };
        let reopened = match operation % REOPEN_EVERY {
            0 => checked.and_then(|()| pair.reopen((operation / REOPEN_EVERY).is_multiple_of(2))),
            _ => checked,
        };
        if let Err(why) = reopened {
            panic!("seed {seed}, operation {operation}: {why}");
        }
    }
    pair.reopen(true).unwrap();
    for operation in ["contradict", "set_verification", "lift_hold", "hold", "sign", "supersede"] {
        let told = pair.model.audit.iter().filter(|entry| entry.operation == operation);
        let (done, refused): (Vec<_>, Vec<_>) = told.partition(|entry| entry.decision == "done");
        println!("model: {operation}: {} done, {} refused", done.len(), refused.len());
        assert!(operations < OPERATIONS || !done.is_empty(), "{operation} came to be done");
    }
    // A short run of another seed may miss one of them.
    let is_long_enough = operations >= if seed == 1 { OPERATIONS } else { 10 * OPERATIONS };
    pair.tally.assert_both(&BOTH_WAYS, is_long_enough);
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
        Self {
            dir,
            files: TempDir::new().expect("a directory"),
            clock,
            store,
            model: Model::default(),
            caller: Caller::new(seed),
            goals: Goals::default(),
            vectors: Vectors::default(),
            tally: Tally::default(),
            now: START_MS,
        }
    }

    fn tick(&mut self) -> EpochMs {
        self.now += 7;
        let now = EpochMs::new(self.now);
        self.clock.set(now);
        now
    }

    fn write(&mut self) -> Checked {
        let now = self.tick();
        let (namespace, call) = self.caller.next(&self.model);
        self.settle(Settled::awaited(namespace, now, call)).map(drop)
    }

    fn settle(&mut self, mut settled: Settled) -> Result<Settled, String> {
        settled.answer =
            Made::submit(&session(&self.store, settled.namespace), &settled.call).wait();
        let judged = self.model.settle(&settled);
        judged.map_err(|why| format!("{settled:#?}\n{why}")).map(|()| settled)
    }

    fn change_goal(&mut self) -> Checked {
        let now = self.tick();
        let namespace = self.caller.random.pick(&[None, None, Some("acme"), Some("shared")]);
        let call = self.goals.call(&mut self.caller, &self.model);
        let mut settled = Settled::awaited(namespace, now, call);
        settled.answer = Made::submit(&session(&self.store, namespace), &settled.call).wait();
        self.goals.settled(&settled, &self.model, &mut self.tally);
        self.model.settle(&settled).map_err(|why| format!("{settled:#?}\n{why}"))
    }

    fn put_with_vector(&mut self) -> Checked {
        let now = self.tick();
        let namespace = self.caller.random.pick(&SESSIONS);
        let given = Given::random(&mut self.caller.random);
        let offered = self.caller.offered(&self.model, namespace);
        let pending = session(&self.store, namespace).submit(given.with(&offered), SameFact::Add);
        let call = Call::Put(offered, SameFact::Add);
        let mut settled = Settled::awaited(namespace, now, call);
        settled.answer = Made::Put(pending).wait();
        let judged = self.vectors.settle_put(&mut self.model, &given, &settled, &mut self.tally);
        judged.map_err(|why| format!("{given:?} {settled:#?}\n{why}"))
    }

    fn embed(&mut self) -> Checked {
        let now = self.tick();
        let namespace = self.caller.random.pick(&SESSIONS);
        let session = session(&self.store, namespace);
        let with = (&session, &mut self.model, &mut self.caller);
        self.vectors.embed(with, namespace, now, &mut self.tally)
    }

    fn remove_vectors(&mut self) -> Checked {
        let now = self.tick();
        let with = (&self.store, &mut self.model, &mut self.caller.random);
        self.vectors.remove(with, now, &mut self.tally)
    }

    fn near(&mut self) -> Checked {
        let namespace = self.caller.random.pick(&SESSIONS);
        let session = session(&self.store, namespace);
        let with = (&session, &self.model, &mut self.caller.random);
        self.vectors.search(with, namespace, &mut self.tally)
    }

    fn import(&mut self) -> Checked {
        let now = self.tick();
        let namespace = self.caller.random.pick(&IMPORTERS);
        let coming = Coming::random(&mut self.caller, &self.model, namespace);
        let session = session(&self.store, namespace);
        let with = (&session, self.files.path());
        let judged = coming.import(with, &mut self.model, (namespace, now), &mut self.tally);
        judged.map_err(|why| format!("as {namespace:?}: {}\n{why}", coming.told()))
    }

    fn return_export(&mut self) -> Checked {
        let now = self.tick();
        let namespace = self.caller.random.pick(&SESSIONS);
        let session = session(&self.store, namespace);
        let subject = format!("subject {}", self.caller.random.below(6));
        let with = (&session, self.files.path());
        let (model, tally) = (&mut self.model, &mut self.tally);
        return_of_an_export(with, model, (namespace, now), &subject, tally)
    }

    /// Closes the store and opens it again: after a minute, or within the one of the last refusals. Of those
    /// that are repeated within it the count comes when it is over.
    fn reopen(&mut self, after_a_minute: bool) -> Checked {
        self.store.close().expect("a store that closes");
        self.now += if after_a_minute { 61_000 } else { 7 };
        self.clock.set(EpochMs::new(self.now));
        self.store = open(&self.dir, &self.clock);
        match after_a_minute {
            true => agree(&self.store, &self.model)?,
            false => agree_on(&self.store, &self.model, false)?,
        }
        self.vectors.agree(&self.store, &session(&self.store, None))
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

    /// All versions are those linked by supersession, within reach, newest first.
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
        let found = self.session.history(address).map(|versions| addresses(&versions));
        let found = found.map_err(|error| error.code());
        let expected = if linked.is_empty() { Err("ERR_NOT_FOUND") } else { Ok(linked.clone()) };
        let set = found.clone().map(|found| found.into_iter().collect());
        same("history", &set, &expected)?;
        let found = found.unwrap_or_default();
        same("versions", &found.len(), &linked.len())?;
        // Whatever came first to the store: what superseded another is newer.
        let place = |of: &ContentAddress| found.iter().position(|address| address == of);
        let is_newer = |old: &ContentAddress| {
            let by = self.model.find(old).and_then(|old| old.superseded_by);
            by.and_then(|by| place(&by)).is_none_or(|by| Some(by) < place(old))
        };
        let all_newer = found.iter().all(is_newer);
        same(&format!("{found:?} newest first"), &all_newer, &true)
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
