//! A store with some of everything in it, and what it answers.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use grainstore::format::{BeliefBuilder, ContentAddress, Encoding, EpochMs, Grain};
use grainstore::{ManualClock, OpenOptions, Session, SessionOptions, Store};
use tempfile::TempDir;

/// When the stores' clocks stand.
const NOW_MS: i64 = 1_800_000_000_000;

/// Threads that write while something is done, and what each writes.
const WRITERS: usize = 4;
const WRITES: i64 = 50;

pub(crate) fn operator(store: &Store) -> Session {
    store.session(SessionOptions::default())
}

/// Opens a store whose clock stands still, that counts no access and records no reads, so that equal
/// states give equal answers and asking leaves no entry.
pub(crate) fn open(path: &Path) -> Store {
    try_open(path).unwrap()
}

pub(crate) fn try_open(path: &Path) -> grainstore::Result<Store> {
    let clock = ManualClock::following();
    clock.set(EpochMs::new(NOW_MS));
    let options = OpenOptions::new().create(true).count_access(false).audit_reads(false);
    let options = options.clock(Arc::new(clock));
    Store::open(path, &options)
}

pub(crate) fn belief(subject: &str, object: &str, at: i64) -> BeliefBuilder {
    BeliefBuilder::new(EpochMs::new(at), subject, "prefers", object, 0.5)
}

/// A store with beliefs in namespaces, events of sessions, consents, supersessions with reasons,
/// protected grains, refusals, both encodings.
pub(crate) fn filled(grains: i64) -> (TempDir, Store) {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    fill(&store, 0..grains);
    (dir, store)
}

pub(crate) fn fill(store: &Store, numbers: std::ops::Range<i64>) {
    let session = operator(store);
    for number in numbers {
        let grain = one(number);
        let encoding = if number % 5 == 0 { Encoding::Cbor } else { Encoding::MessagePack };
        let old = session.put(grain.encode(encoding).unwrap()).unwrap().address();
        if number % 7 == 3 {
            supersede(&session, &old, number);
        }
    }
    let locked = Grain::from_json(
        r#"{"type": "belief", "subject": "vault", "relation": "opens", "object": "never",
            "confidence": 1, "created_at": 5000, "invalidation_policy": {"mode": "locked"}}"#,
    );
    let locked = session.put(locked.unwrap()).unwrap().address();
    let parents = vec![locked.to_string().into()];
    let key = BeliefBuilder::new(EpochMs::new(6000), "vault", "opens", "now", 1.0);
    let key = key.derived_from(parents).build().unwrap();
    let refused = session.supersede(&locked, key, None);
    assert_eq!(refused.map_err(|error| error.code()), Err("ERR_INVALIDATION_DENIED"));
}

fn supersede(session: &Session, old: &ContentAddress, number: i64) {
    let subject = format!("subject {}", number % 11);
    let new = belief(&subject, "something else", 20_000 + number).build().unwrap();
    let why = format!("they said so at {number}");
    session.supersede(old, new, Some(&why)).unwrap();
}

fn one(number: i64) -> Grain {
    let subject = format!("subject {}", number % 11);
    let object = format!("object {number}");
    let belief = belief(&subject, &object, 10_000 + number)
        .structural_tags([format!("tag {}", number % 3)].map(Into::into).to_vec())
        .namespace(if number % 4 == 0 { "work:team" } else { "work" })
        .user_id("u1");
    belief.build().unwrap()
}

/// What a store says to a set of questions, and its whole audit log.
pub(crate) fn answers(store: &Store) -> Vec<String> {
    let session = operator(store);
    let mut answers = Vec::new();
    for subject in 0..11 {
        let subject = format!("subject {subject}");
        let found = session.history_of(&subject, "prefers", None, None).unwrap();
        answers.extend(found.iter().map(|found| format!("{} {:?}", found.address, found.state)));
    }
    for query in [
        "RECALL beliefs WHERE subject = \"subject 3\" AS sml",
        "RECALL beliefs WHERE tags INCLUDE [\"tag 1\"] LIMIT 50 AS sml",
        "RECALL beliefs WHERE namespace = \"work:team\" LIMIT 100 AS sml",
        "RECALL beliefs WHERE subject = \"vault\" AS json",
    ] {
        let response = session.ask(query).unwrap();
        answers.push(format!("{:?}", response.answer));
    }
    let entries = session.audit(None, 10_000).unwrap();
    answers.extend(entries.into_iter().map(|entry| format!("{entry:?}")));
    answers.push(format!("{:?}", session.audit_head().unwrap()));
    answers
}

/// Does something while four threads write and two read: no write may fail, and no read may fail or
/// find less than was there before. Returns when all have ended.
pub(crate) fn while_busy(store: &Store, work: impl FnOnce()) {
    let known = found(store, "subject 1");
    let writing = AtomicUsize::new(WRITERS);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (session, writing) = (operator(store), &writing);
            scope.spawn(move || {
                for number in 0..WRITES {
                    let object = format!("{writer} {number}");
                    session.put(belief("new", &object, number).build().unwrap()).unwrap();
                }
                writing.fetch_sub(1, Ordering::SeqCst);
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                while writing.load(Ordering::SeqCst) > 0 {
                    assert_eq!(found(store, "subject 1"), known);
                }
            });
        }
        work();
    });
    assert_eq!(found(store, "new"), WRITERS * usize::try_from(WRITES).unwrap());
}

fn found(store: &Store, subject: &str) -> usize {
    operator(store).history_of(subject, "prefers", None, None).unwrap().len()
}

/// The names in a directory.
pub(crate) fn names(path: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(path).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Copies a directory as it is, with what is in the directories in it.
pub(crate) fn copy(from: &Path) -> TempDir {
    let to = TempDir::new().unwrap();
    copy_into(from, to.path());
    to
}

fn copy_into(from: &Path, to: &Path) {
    for name in names(from) {
        let (from, to) = (from.join(&name), to.join(&name));
        if from.is_dir() {
            std::fs::create_dir(&to).unwrap();
            copy_into(&from, &to);
        } else {
            std::fs::copy(from, to).unwrap();
        }
    }
}

/// Whether to run for minutes rather than seconds.
pub(crate) fn is_full() -> bool {
    std::env::var("GRAINSTORE_SWEEP").is_ok_and(|sweep| sweep == "full")
}
