//! A process that writes is killed at any moment; whatever it was told is there afterwards.
//!
//! The test runs itself again as the process to be killed, which writes from several threads and
//! prints every answer it gets. The full run:
//! `GRAINSTORE_KILL_ROUNDS=50 cargo test -p grainstore --test crash kill::writes -- --nocapture`.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use grainstore::format::{
    BeliefBuilder, ContentAddress, Envelope, EpochMs, Grain, SigningKey, sign,
};
use grainstore::{
    Offer, OpenOptions, PutOutcome, Session, SessionOptions, Store, VerificationStatus,
};
use tempfile::TempDir;

use crate::kill::child::Running;
use crate::kill::random::Random;

/// Kills of a normal run.
const ROUNDS: usize = 8;
/// How long a process lives, in milliseconds, give or take [`JITTER_MS`].
const LIVES_MS: [usize; 6] = [5, 10, 20, 35, 55, 75];
const JITTER_MS: usize = 5;
/// In this share of rounds there is no store at first, and life begins with the process rather than
/// with the first answer.
const FRESH_PERCENT: usize = 25;
/// Threads that write, and what one writes at most should nobody kill it.
const THREADS: usize = 6;
const MOST_ROUNDS: usize = 20_000;
const BATCH: usize = 5;
const CREATED: EpochMs = EpochMs::new(0);
/// Tells the process to be killed where to write, and for the how manieth time.
const CHILD: &str = "GRAINSTORE_KILL_CHILD";
const GENERATION: &str = "GRAINSTORE_KILL_GENERATION";

/// Who wrote: the generation of the process, and the thread.
type Author = (usize, usize);

#[test]
fn a_killed_process_loses_nothing_it_was_told() {
    if let Ok(directory) = std::env::var(CHILD) {
        let generation = std::env::var(GENERATION).unwrap().parse().unwrap();
        return write_until_killed(Path::new(&directory), generation);
    }
    let rounds = std::env::var("GRAINSTORE_KILL_ROUNDS").ok().and_then(|text| text.parse().ok());
    let rounds = rounds.unwrap_or(ROUNDS);
    let mut random = Random::new(1);
    let mut place = Place::new();
    let mut totals = Totals::default();
    for round in 0..rounds {
        let fresh = random.percent(FRESH_PERCENT);
        if fresh {
            place = Place::new();
        }
        let life = random.pick(&LIVES_MS) + random.below(JITTER_MS);
        totals.answers += place.kill_one(Duration::from_millis(life as u64), fresh);
        place.check(round, &mut totals);
    }
    assert!(totals.answers > 0, "no process came to write anything");
    println!("kill: {rounds} rounds, {totals:?}");
}

/// What all rounds came to.
#[derive(Debug, Default)]
struct Totals {
    answers: usize,
    /// Grains of the fullest store.
    most_grains: u64,
    /// Versions of one store that were stored and never answered, at most.
    unanswered_versions: usize,
}

/// A store that process after process writes to, and what they were told.
struct Place {
    directory: TempDir,
    generations: usize,
    answers: Vec<String>,
}

impl Place {
    fn new() -> Self {
        Self { directory: TempDir::new().unwrap(), generations: 0, answers: Vec::new() }
    }

    fn store(&self) -> PathBuf {
        self.directory.path().join("store")
    }

    /// Starts a process, kills it when its time is over, and keeps what it printed. Says how much.
    fn kill_one(&mut self, life: Duration, from_the_start: bool) -> usize {
        let before = self.answers.len();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "kill::writes::a_killed_process_loses_nothing_it_was_told",
                "--nocapture",
            ])
            .env(CHILD, self.store())
            .env(GENERATION, self.generations.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut running = Running(child);
        let (lines, printed) = channel();
        let reader = thread::spawn(move || read_lines(output, &lines));
        if !from_the_start {
            // It writes before anything can end it.
            self.answers.push(printed.recv().unwrap());
        }
        // Not to wait for anything: this is how long the process lives.
        thread::sleep(life);
        running.0.kill().unwrap();
        let status = running.0.wait().unwrap();
        assert!(!status.success(), "the process ended by itself: {status}");
        reader.join().unwrap();
        self.answers.extend(printed);
        self.generations += 1;
        self.answers.len() - before
    }

    fn check(&self, round: usize, totals: &mut Totals) {
        let store = Store::open(self.store(), &OpenOptions::new().create(true)).unwrap();
        let session = store.session(SessionOptions::default());
        let mut versions = 0;
        for answer in &self.answers {
            versions += check_answer(&session, answer, round);
        }
        let mut stored = 0;
        for author in self.authors() {
            stored += check_chain(&session, author);
            check_batches(&session, author);
        }
        assert!(stored >= versions, "round {round}: {stored} versions of {versions}");
        check_audit(&session, &store);
        assert_eq!(store.verify(false).unwrap().problems, [], "round {round}");
        let after = BeliefBuilder::new(CREATED, "round", "ends", format!("well {round}"), 1.0);
        assert!(matches!(session.put(after.build().unwrap()).unwrap(), PutOutcome::Added(_)));
        let grains = store.stats().unwrap().grains;
        totals.most_grains = totals.most_grains.max(grains);
        totals.unanswered_versions = totals.unanswered_versions.max(stored - versions);
    }

    fn authors(&self) -> impl Iterator<Item = Author> {
        let generations = 0..self.generations;
        generations.flat_map(|generation| (0..THREADS).map(move |thread| (generation, thread)))
    }
}

/// Sends every answer that was printed whole.
fn read_lines(mut output: impl BufRead, lines: &Sender<String>) {
    let mut line = String::new();
    while output.read_line(&mut line).unwrap() > 0 {
        if let Some(answer) = line.strip_suffix('\n').and_then(|line| line.strip_prefix("told ")) {
            lines.send(answer.to_owned()).unwrap();
        }
        line.clear();
    }
}

/// Checks what one line says: `kind generation thread number address...`. Says how many versions of
/// a chain it tells of.
fn check_answer(session: &Session, answer: &str, round: usize) -> usize {
    let words: Vec<&str> = answer.split(' ').collect();
    let [kind, generation, thread, number, addresses @ ..] = words.as_slice() else {
        panic!("printed: {answer}");
    };
    let author = (generation.parse().unwrap(), thread.parse().unwrap());
    let number: usize = number.parse().unwrap();
    let addresses: Vec<ContentAddress> = addresses.iter().map(|a| a.parse().unwrap()).collect();
    let stored =
        |address| session.get(address).unwrap_or_else(|e| panic!("round {round}: {answer}: {e}"));
    match (*kind, addresses.as_slice()) {
        ("batch", _) => {
            assert_eq!(addresses.len(), BATCH);
            for (part, address) in addresses.iter().enumerate() {
                let blob = batch_part(author, number, part).encode(Default::default()).unwrap();
                assert_eq!((blob.address(), blob.bytes()), (*address, &*stored(address).blob));
            }
            0
        }
        ("put", [address]) => {
            let blob = version(author, number).encode(Default::default()).unwrap();
            assert_eq!((blob.address(), blob.bytes()), (*address, &*stored(address).blob));
            1
        }
        ("mark", [contradicted, held, contested]) => {
            assert!(stored(contradicted).state.contradicted);
            assert!(stored(held).state.held);
            let status = stored(contested).state.verification_status;
            assert_eq!(status, VerificationStatus::Contested);
            0
        }
        ("late", [child, root]) => {
            // What protects it arrived behind it, and was noted with it.
            let denied = session.contradict(child, "why", None).map_err(|error| error.code());
            assert_eq!(denied, Err("ERR_INVALIDATION_DENIED"), "{root} protects {child}");
            0
        }
        ("sign", [address]) => {
            let envelope = stored(address).envelope;
            assert_eq!(envelope.unwrap(), signed(author, number));
            0
        }
        ("supersede", [old, new]) => {
            assert_eq!(stored(old).state.superseded_by, Some(*new));
            let grain = stored(new).grain().unwrap();
            assert_eq!(grain.text("object"), version(author, number).text("object"));
            assert!(grain.texts("derived_from").any(|parent| parent == old.to_string()));
            1
        }
        _ => panic!("printed: {answer}"),
    }
}

/// The versions of a thread's chain are linked one to one, and the last is current. Says how many.
fn check_chain(session: &Session, author: Author) -> usize {
    let versions = session.history_of(&chain(author), "is at", None, None).unwrap();
    for (place, found) in versions.iter().enumerate() {
        let next = place.checked_sub(1).map(|newer| versions[newer].address);
        assert_eq!(found.state.superseded_by, next, "{author:?}, {place} before the head");
        let number = versions.len() - 1 - place;
        let expected = version(author, number);
        assert_eq!(found.grain().unwrap().text("object"), expected.text("object"));
    }
    versions.len()
}

/// Each batch of a thread is there whole or not at all, and none is left out.
fn check_batches(session: &Session, author: Author) {
    let mut missing = false;
    for number in 0.. {
        let parts = session.history_of(&batch(author, number), "has", None, None).unwrap().len();
        assert!(parts == 0 || (parts == BATCH && !missing), "{author:?} {number}: {parts}");
        if missing {
            break;
        }
        missing = parts == 0;
    }
}

fn check_audit(session: &Session, store: &Store) {
    let mut next = 0_u64;
    loop {
        let entries = session.audit(next.checked_sub(1), 1000).unwrap();
        if entries.is_empty() {
            break;
        }
        for entry in entries {
            assert_eq!(entry.sequence, next);
            next += 1;
        }
    }
    assert_eq!(store.stats().unwrap().audit_entries, next);
}

fn chain((generation, thread): Author) -> String {
    format!("chain {generation}.{thread}")
}

fn batch((generation, thread): Author, number: usize) -> String {
    format!("batch {generation}.{thread}.{number}")
}

fn version(author: Author, number: usize) -> Grain {
    let object = format!("version {number}");
    BeliefBuilder::new(CREATED, chain(author), "is at", object, 1.0).build().unwrap()
}

fn batch_part(author: Author, number: usize, part: usize) -> Grain {
    let object = format!("part {part}");
    BeliefBuilder::new(CREATED, batch(author, number), "has", object, 1.0).build().unwrap()
}

/// A grain that protects what derives from it.
fn root((generation, thread): Author, number: usize) -> Grain {
    let json = format!(
        r#"{{"type": "belief", "subject": "root {generation}.{thread}.{number}", "relation": "is",
            "object": "kept", "confidence": 1, "created_at": 0,
            "invalidation_policy": {{"mode": "locked", "scope": "subtree"}}}}"#
    );
    Grain::from_json(&json).unwrap()
}

fn signed((generation, thread): Author, number: usize) -> Envelope {
    let subject = format!("signed {generation}.{thread}.{number}");
    let grain = BeliefBuilder::new(CREATED, subject, "is", "signed", 1.0).build().unwrap();
    let blob = grain.encode(Default::default()).unwrap();
    sign(blob.bytes(), &SigningKey::ed25519_from_seed(&[7; 32]), None).unwrap()
}

/// An envelope by somebody whose key nobody can find.
fn unverifiable(blob: &[u8]) -> Vec<u8> {
    let protected = [&[0xa2, 1, 0x27, 4, 0x40 + 17][..], b"did:web:a.example"].concat();
    let length = u8::try_from(blob.len()).unwrap();
    [&[0xd2, 0x84, 0x56][..], &protected, &[0xa0, 0x58, length], blob, &[0x58, 64], &[1; 64]]
        .concat()
}

/// What the process does that is to be killed.
fn write_until_killed(directory: &Path, generation: usize) {
    let store = Store::open(directory, &OpenOptions::new().create(true)).unwrap();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let session = store.session(SessionOptions::default());
            scope.spawn(move || write(&session, (generation, thread)));
        }
    });
}

/// Versions and batches in turn, until nobody listens any more.
fn write(session: &Session, author: Author) {
    let mut head = session.put(version(author, 0)).unwrap().address();
    let mut listened = tell("put", author, 0, &[head]);
    for number in 1..MOST_ROUNDS {
        let new = session.supersede(&head, version(author, number), None).unwrap();
        listened &= tell("supersede", author, number, &[head, new]);
        head = new;
        let parts = (0..BATCH).map(|part| batch_part(author, number - 1, part));
        let puts = session.put_batch(parts).unwrap();
        let addresses: Vec<_> = puts.iter().map(PutOutcome::address).collect();
        listened &= tell("batch", author, number - 1, &addresses);
        listened &= mark(session, author, number - 1, &addresses);
        if !listened {
            return;
        }
    }
}

/// Marks of every kind, a root behind what it protects, and an envelope better than the one before.
fn mark(session: &Session, author: Author, number: usize, parts: &[ContentAddress]) -> bool {
    let [contradicted, held, contested, ..] = parts else { return false };
    session.contradict(contradicted, "why", None).unwrap();
    session.hold(held, "why").unwrap();
    session.lift_hold(held, "why", None).unwrap();
    session.hold(held, "why again").unwrap();
    session.set_verification(contested, VerificationStatus::Contested, "why", None).unwrap();
    let listened = tell("mark", author, number, &[*contradicted, *held, *contested]);
    let root = root(author, number);
    let named = root.encode(Default::default()).unwrap().address();
    let child = BeliefBuilder::new(CREATED, format!("child of {named}"), "is", "kept", 1.0)
        .derived_from(vec![named.to_string().into()]);
    let child = session.put(child.build().unwrap()).unwrap().address();
    session.put(root).unwrap();
    let listened = listened && tell("late", author, number, &[child, named]);
    let signed = signed(author, number);
    session.put(Offer::Signed(unverifiable(signed.blob().unwrap()))).unwrap();
    let address = session.put(signed).unwrap().address();
    listened && tell("sign", author, number, &[address])
}

/// Prints an answer, and says whether that was heard.
fn tell(kind: &str, (generation, thread): Author, number: usize, told: &[ContentAddress]) -> bool {
    let addresses: Vec<String> = told.iter().map(ToString::to_string).collect();
    let line = format!("told {kind} {generation} {thread} {number} {}\n", addresses.join(" "));
    let mut output = std::io::stdout().lock();
    output.write_all(line.as_bytes()).and_then(|()| output.flush()).is_ok()
}
