//! What only the operator may do, in processes that are killed at any moment: other keys, sweeps, and
//! changes of rules; and calls that read while they are noted.

use std::path::Path;
use std::sync::Arc;

use grainstore::cal::Answer;
use grainstore::format::{BeliefBuilder, EpochMs};
use grainstore::{
    ContentAddress, EraseOptions, Grain, ManualClock, MasterKey, OpenOptions, PutOutcome, Session,
    SessionOptions, Store,
};
use tempfile::TempDir;

use crate::kill::child::{
    assert_some_were_cut_short, begin, is_long_run, kill_after, lives, store_of_child, told,
};

/// How long a process lives from the moment it begins, in milliseconds.
const LIVES_MS: [u64; 12] = [0, 1, 2, 4, 7, 12, 18, 25, 40, 60, 90, 130];
/// As long where the process opens its store before it does anything.
const LIVES_WITH_OPENING_MS: [u64; 16] =
    [0, 20, 40, 50, 60, 70, 80, 90, 100, 110, 120, 130, 140, 160, 200, 400];
/// What a process does at most should nobody kill it.
const MOST: usize = 10_000;
/// Changes of rules that a store takes.
const MOST_RULES: usize = 64;
/// When the stores' clocks stand: 2027-01-15T08:00:00Z.
const NOW: i64 = 1_800_000_000_000;
const ANN: &str = "ann";
const BOB: &str = "bob";
/// Grains of each of them.
const GRAINS: usize = 40;
/// Grains that are due for erasure: of two transactions.
const DUE: usize = 1200;
/// As many in a long run, which has to be killed between two of the transactions of a sweep.
const DUE_IN_LONG_RUN: usize = 6200;

fn options() -> OpenOptions {
    let clock = ManualClock::following();
    clock.set(EpochMs::new(NOW));
    OpenOptions::new().create(true).clock(Arc::new(clock))
}

/// A master key of a store.
fn key(number: usize) -> MasterKey {
    let mut bytes = [7; 32];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    MasterKey::new(bytes)
}

fn open(directory: &Path, number: usize) -> grainstore::Result<Store> {
    Store::open(directory, &options().key(key(number)))
}

fn operator(store: &Store) -> Session {
    store.session(SessionOptions::default())
}

fn of(user: &str, object: &str) -> BeliefBuilder {
    BeliefBuilder::new(EpochMs::new(1000), user, "likes", object, 1.0).user_id(user)
}

fn put(session: &Session, grain: Grain) -> ContentAddress {
    session.put(grain).unwrap().address()
}

/// Grains of two people, with reasons beside.
fn filled(directory: &Path) -> [Vec<ContentAddress>; 2] {
    let store = open(directory, 0).unwrap();
    let session = operator(&store);
    let grains = [ANN, BOB].map(|user| {
        let mut put_one = |at| put(&session, of(user, &format!("drink {at}")).build().unwrap());
        let grains: Vec<_> = (0..GRAINS).map(&mut put_one).collect();
        session.contradict(&grains[0], "a reason", None).unwrap();
        grains
    });
    drop(session);
    store.close().unwrap();
    grains
}

/// All are there with their words and marks, all but the one that is contradicted are found, and all verify.
fn assert_whole(store: &Store, user: &str, grains: &[ContentAddress]) {
    let session = operator(store);
    for (at, address) in grains.iter().enumerate() {
        let grain = session.get(address).unwrap().grain().unwrap();
        assert_eq!(grain.text("object"), Some(format!("drink {at}").as_str()));
    }
    assert!(session.get(&grains[0]).unwrap().state.contradicted);
    let asked = format!("RECALL beliefs WHERE user_id = \"{user}\" | COUNT");
    let found = session.ask(&asked).unwrap_or_else(|error| panic!("{asked}: {error}")).answer;
    assert!(
        matches!(found, Answer::Count { count, .. } if count + 1 == grains.len() as u64),
        "{found:?}"
    );
    assert_verifies(store);
}

fn assert_verifies(store: &Store) {
    let verified = store.verify(true).unwrap();
    assert!(verified.ok, "{:?}", verified.problems);
}

/// Entries of the audit log of this operation.
fn entries(store: &Store, operation: &str) -> usize {
    let entries = operator(store).audit(None, 10_000).unwrap();
    entries.iter().filter(|entry| entry.operation == operation).count()
}

#[test]
fn of_a_change_of_the_master_key_that_is_killed_one_key_opens_the_store() {
    let name =
        "kill::operator::of_a_change_of_the_master_key_that_is_killed_one_key_opens_the_store";
    if let Some(directory) = store_of_child() {
        let store = open(Path::new(&directory), 0).unwrap();
        begin();
        for number in 1..MOST {
            store.rotate_key(key(number)).unwrap();
            if !told(number) {
                return;
            }
        }
    }
    let mut most = 0;
    for life in LIVES_MS {
        let dir = TempDir::new().unwrap();
        let [ann, bob] = filled(dir.path());
        let last = kill_after(name, dir.path(), life).len();
        most = most.max(last);
        let opening: Vec<usize> =
            (0..last + 2).filter(|number| open(dir.path(), *number).is_ok()).collect();
        assert!(
            matches!(opening.as_slice(), [one] if *one == last || *one == last + 1),
            "told of {last}, opens with {opening:?}"
        );
        let store = open(dir.path(), opening[0]).unwrap();
        assert_whole(&store, ANN, &ann);
        assert_whole(&store, BOB, &bob);
        assert!(entries(&store, "rotate_key") >= opening[0], "every key is in the audit log");
    }
    assert!(most > 0, "no process came to change a key");
}

#[test]
fn a_change_of_a_persons_key_that_is_killed_loses_nothing_and_erases_whole() {
    let name =
        "kill::operator::a_change_of_a_persons_key_that_is_killed_loses_nothing_and_erases_whole";
    if let Some(directory) = store_of_child() {
        let store = open(Path::new(&directory), 0).unwrap();
        begin();
        for number in 1..MOST {
            assert!(store.rotate_user_key(ANN).unwrap() > 0);
            if !told(number) {
                return;
            }
        }
    }
    let mut most = 0;
    // On a busy machine a change takes longer than most lives.
    for life in LIVES_MS.into_iter().chain([1000, 5000]) {
        if life > 130 && most > 0 {
            break;
        }
        let (dir, kept) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let [ann, bob] = filled(dir.path());
        let last = kill_after(name, dir.path(), life).len();
        most = most.max(last);
        // The rows as the killed process left them, under every key she may have had.
        for file in ["grains.redb", "index.redb"] {
            std::fs::copy(dir.path().join(file), kept.path().join(file)).unwrap();
        }
        let store = open(dir.path(), 0).unwrap();
        assert_whole(&store, ANN, &ann);
        assert_whole(&store, BOB, &bob);
        assert!(entries(&store, "rotate_key") >= last);
        let session = operator(&store);
        session.erase_user(ANN, "ann asked", &EraseOptions::new().now(true)).unwrap();
        assert!(ann.iter().all(|address| session.get(address).is_err()));
        assert_whole(&store, BOB, &bob);
        drop(session);
        store.close().unwrap();
        // With the keys that are left, nothing of hers opens even in the older rows.
        std::fs::copy(dir.path().join("keyring"), kept.path().join("keyring")).unwrap();
        if let Ok(store) = open(kept.path(), 0) {
            let session = operator(&store);
            assert!(ann.iter().all(|address| session.get(address).is_err()));
        }
    }
    assert!(most > 0, "no process came to change a key");
}

fn consent(more: &str) -> Grain {
    Grain::from_json(&format!(
        r#"{{"type": "consent", "subject_did": "did:web:ann", "grantee_did": "did:web:shop",
            "scope": ["store"], "user_id": "{ANN}"{more}}}"#
    ))
    .unwrap()
}

#[test]
fn a_sweep_that_is_killed_goes_on_when_the_store_is_next_open() {
    let name = "kill::operator::a_sweep_that_is_killed_goes_on_when_the_store_is_next_open";
    if let Some(directory) = store_of_child() {
        // It sweeps as it opens.
        begin();
        let store = open(Path::new(&directory), 0).unwrap();
        operator(&store).sweep().unwrap();
        told("all of it");
        return;
    }
    let (mut cut_short, mut ended) = (0, 0);
    let before = TempDir::new().unwrap();
    let [ann, bob] = filled(before.path());
    let due = fill_with_due(before.path());
    let lives = lives(&LIVES_WITH_OPENING_MS);
    for life in lives.iter().copied() {
        let dir = TempDir::new().unwrap();
        for file in ["grains.redb", "index.redb", "keyring"] {
            std::fs::copy(before.path().join(file), dir.path().join(file)).unwrap();
        }
        let has_ended = !kill_after(name, dir.path(), life).is_empty();
        let left = open_to_read(dir.path(), &due);
        assert!(!has_ended || left == 0, "{left} are left of a sweep that had ended");
        cut_short += usize::from(left > 0 && left < due.len());
        ended += usize::from(left == 0);
        let store = open(dir.path(), 0).unwrap();
        let session = operator(&store);
        session.sweep().unwrap();
        for address in &due {
            let code = session.get(address).map_err(|error| error.code()).map(drop);
            assert_eq!(code, Err("ERR_ERASED"), "killed after {life} ms");
        }
        assert_eq!(session.sweep().unwrap().erased, 0);
        assert_whole(&store, ANN, &ann);
        assert_whole(&store, BOB, &bob);
        store.scrub().unwrap();
        assert_verifies(&store);
    }
    println!("killed {}: {cut_short} in the middle, {ended} at the end", lives.len());
    assert_some_were_cut_short(cut_short);
}

/// Grains that end with a consent, and its withdrawal, which is due.
fn fill_with_due(directory: &Path) -> Vec<ContentAddress> {
    let store = open(directory, 0).unwrap();
    let session = operator(&store);
    let first = r#", "is_withdrawal": false, "created_at": 1"#;
    let grant = put(&session, consent(first));
    let due = (0..if is_long_run() { DUE_IN_LONG_RUN } else { DUE }).map(|at| {
        let json = format!(
            r#"{{"type": "belief", "subject": "due", "relation": "is", "object": "due {at}",
                "confidence": 1, "created_at": 5, "user_id": "{ANN}", "processing_basis": "{grant}",
                "invalidation_policy": {{"mode": "consent_cascade"}}}}"#
        );
        Grain::from_json(&json).unwrap()
    });
    let due = session.put_batch(due).unwrap().iter().map(PutOutcome::address).collect();
    let second =
        format!(r#", "is_withdrawal": true, "prior_consent": "{grant}", "created_at": {NOW}"#);
    put(&session, consent(&second));
    drop(session);
    store.close().unwrap();
    due
}

/// How many of these a killed process has left, told by a store that is opened to be read.
fn open_to_read(directory: &Path, grains: &[ContentAddress]) -> usize {
    let options = OpenOptions::new().read_only(true).key(key(0));
    let store = Store::open(directory, &options).unwrap();
    let session = operator(&store);
    let left = grains.iter().filter(|address| match session.get(address) {
        Err(error) => {
            assert_ne!(error.code(), "ERR_INTEGRITY", "{error}");
            error.code() != "ERR_ERASED"
        }
        Ok(_) => true,
    });
    left.count()
}

/// A rule that no grain of these tests breaks.
fn rule(number: usize) -> String {
    format!(
        r#"
        [[rule]]
        id = "own.n{number}"
        on = ["put"]
        require = {{ has = ["subject"] }}
        article = "house rule {number}"
        because = "it is about something"
        fix = "set subject"
        "#
    )
}

#[test]
fn changes_of_rules_that_are_killed_are_whole_and_in_the_audit_log() {
    let name = "kill::operator::changes_of_rules_that_are_killed_are_whole_and_in_the_audit_log";
    if let Some(directory) = store_of_child() {
        let store = open(Path::new(&directory), 0).unwrap();
        let session = operator(&store);
        begin();
        for number in 1..=MOST_RULES {
            session.change_rules(&rule(number), false, "a further rule").unwrap();
            if !told(number) {
                return;
            }
        }
    }
    let mut most = 0;
    for life in LIVES_MS {
        let dir = TempDir::new().unwrap();
        let [ann, _] = filled(dir.path());
        let last = kill_after(name, dir.path(), life).len();
        most = most.max(last);
        let store = open(dir.path(), 0).unwrap();
        let rules = store.rules();
        let own = rules.rules.iter().filter(|rule| rule.id.starts_with("own.n")).count();
        assert!(own == last || own == last + 1, "told of {last}, has {own}");
        let has = |number| rules.rules.iter().any(|rule| rule.id == format!("own.n{number}"));
        assert!((1..=own).all(has));
        assert_eq!(entries(&store, "preset_changed"), own);
        assert_whole(&store, ANN, &ann);
    }
    assert!(most > 0, "no process came to change a rule");
}

#[test]
fn reads_that_were_settled_stand_in_the_read_log_of_a_killed_process() {
    let name = "kill::operator::reads_that_were_settled_stand_in_the_read_log_of_a_killed_process";
    if let Some(directory) = store_of_child() {
        let store = open(Path::new(&directory), 0).unwrap();
        let session = operator(&store);
        begin();
        for number in 1..MOST {
            let limit = 1 + number % 50;
            let asked = format!("RECALL beliefs WHERE user_id = \"{ANN}\" LIMIT {limit}");
            session.ask(&asked).unwrap();
            // What asks for the log settles it.
            if number % 8 == 0 {
                let (entries, _) = session.reads_head().unwrap().unwrap();
                if !told(entries) {
                    return;
                }
            }
        }
    }
    let mut most = 0;
    for life in LIVES_MS {
        let dir = TempDir::new().unwrap();
        let [ann, _] = filled(dir.path());
        let heard = kill_after(name, dir.path(), life);
        let settled: u64 = heard.last().map_or(0, |entries| entries.parse().unwrap());
        most = most.max(settled);
        let store = open(dir.path(), 0).unwrap();
        assert_verifies(&store);
        let session = operator(&store);
        let stored = session.reads(None, 10_000).unwrap();
        assert!(stored.len() as u64 >= settled, "{} of {settled}", stored.len());
        let numbered = stored.iter().zip(0..).all(|(entry, number)| entry.sequence == number);
        assert!(numbered, "the read log has gaps");
        // It goes on where it was left.
        assert_whole(&store, ANN, &ann);
        let (entries, _) = session.reads_head().unwrap().unwrap();
        assert_eq!(entries, stored.len() as u64 + 1);
        assert_verifies(&store);
    }
    assert!(most > 0, "no process came to read anything");
}
