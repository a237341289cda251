//! The disk fails at its n-th operation, for every n until a workload passes.
//!
//! A failure is `ERR_IO`, never a panic, a false answer or a false acknowledgement. What is on the
//! disk afterwards holds everything acknowledged and nothing refused. The one call under way when
//! the disk fails is in doubt: it is there whole, or not at all.

use std::path::Path;
use std::sync::Arc;

use grainstore_format::{BeliefBuilder, ContentAddress, EpochMs};

use super::disk::{Cut, Disk, Fault};
use super::examine::examine;
use super::kit::agree::as_known;
use super::kit::calls::{Made, session};
use super::kit::model::Model;
use super::kit::offers::{Answer, Settled};
use super::script::{Script, Step};
use super::{
    CACHE_BYTES, START_MS, assert_no_writer_panicked, clock_at, empty_image, is_full, open_with,
};
use crate::disk::keyring::Keyring;
use crate::disk::vault::Vault;
use crate::{EraseOptions, ManualClock, MasterKey, OpenOptions, Store};

/// Calls that are still made after the first one that fails.
const AFTERWARDS: usize = 3;
/// A page cache with which most pages are read again and again.
const SMALL_CACHE_BYTES: usize = 16 << 10;
const IO: &str = "ERR_IO";
const DENIED: &str = "ERR_INVALIDATION_DENIED";

/// A workload on a disk that fails.
struct Attempt<'s> {
    script: &'s Script,
    cache_bytes: usize,
    disk: Disk,
    fault: Fault,
    /// Everything that was answered.
    state: Model,
    /// The state before the last answer, where that was a refusal whose record may be lost.
    unrecorded: Option<Model>,
    /// The state with the call that failed.
    doubtful: Option<Model>,
    failures: usize,
}

/// What was found over all attempts.
#[derive(Debug, Default)]
struct Found {
    attempts: usize,
    calls_failed: usize,
    /// Calls that failed and are there after a power cut all the same.
    done_in_spite: usize,
}

impl<'s> Attempt<'s> {
    fn new(script: &'s Script, cache_bytes: usize, fault: Fault) -> Self {
        Self {
            script,
            cache_bytes,
            disk: Disk::failing(script.image.clone(), fault),
            fault,
            state: Model::default(),
            unrecorded: None,
            doubtful: None,
            failures: 0,
        }
    }

    /// Works until the disk has failed for good, or everything is done.
    fn run(&mut self) {
        let clock = clock_at(START_MS);
        let Some(mut store) = self.open(&clock) else { return };
        for step in &self.script.steps {
            match step {
                Step::Call(settled) => self.call(&store, &clock, settled),
                Step::Flush => {
                    let flushed = store.flush().map_err(|error| error.code());
                    assert!(matches!(flushed, Ok(()) | Err(IO)), "{:?}: {flushed:?}", self.fault);
                }
                // What a failed call did shows in the end, not to the calls that follow.
                Step::Reopen if self.failures > 0 => break,
                Step::Reopen => {
                    self.close(&store);
                    match self.open(&clock) {
                        Some(opened) => store = opened,
                        None => return,
                    }
                }
            }
            if self.failures > AFTERWARDS || self.unrecorded.is_some() {
                break;
            }
            self.read(&store);
        }
        self.close(&store);
    }

    /// Closes the store, which says so where a disk that fails has kept something from it.
    fn close(&self, store: &Store) {
        let closed = store.close().map_err(|error| error.code());
        assert!(closed.is_ok() || self.disk.has_failed(), "{closed:?} on a sound disk");
        assert!(matches!(closed, Ok(()) | Err(IO)), "{:?}: {closed:?}", self.fault);
        let again = store.close().map_err(|error| error.code());
        assert_eq!(closed, again, "whoever closes it again is told the same");
        assert!(closed.is_err() || self.failures == 0, "{:?}: writing had ended", self.fault);
    }

    fn open(&self, clock: &Arc<ManualClock>) -> Option<Store> {
        match open_with(&self.disk, clock, self.cache_bytes) {
            Ok(store) => Some(store),
            Err(error) => {
                assert_eq!(error.code(), IO, "{:?}: {error}", self.fault);
                None
            }
        }
    }

    fn call(&mut self, store: &Store, clock: &ManualClock, expected: &Settled) {
        let Settled { namespace, now, call, answer } = expected;
        clock.set(*now);
        let given = Made::submit(&session(store, *namespace), call).wait();
        if given == Answer::Refused(IO) {
            assert!(self.disk.has_failed(), "{:?}: {given:?} on a sound disk", self.fault);
            if self.failures == 0 {
                let mut doubtful = self.state.clone();
                doubtful.settle(expected).unwrap();
                self.doubtful = Some(doubtful);
            }
            self.failures += 1;
            return;
        }
        let refused = matches!(given, Answer::Refused(_));
        assert!(self.failures == 0 || refused, "{:?}: {given:?} after a failure", self.fault);
        if self.failures == 0 {
            assert_eq!(given, *answer, "{:?}: {call:?}", self.fault);
            if given == Answer::Refused(DENIED) && self.disk.has_failed() {
                self.unrecorded = Some(self.state.clone());
            }
            self.state.settle(expected).unwrap();
        }
    }

    /// What is known is found, or the disk is to blame.
    fn read(&self, store: &Store) {
        let Some(known) = self.state.grains.last() else { return };
        let operator = session(store, None);
        let fault = self.fault;
        match operator.get(&known.address) {
            // The call in doubt may be done already, and have changed the state.
            Ok(stored) if self.failures > 0 => assert_eq!(*stored.blob, *known.bytes),
            Ok(stored) => as_known(&stored, known).unwrap(),
            Err(error) => assert_eq!(error.code(), IO, "{fault:?}: {error}"),
        }
        for ((subject, relation), places) in self.state.words.iter().take(2) {
            match operator.history_of(subject, relation, None, None) {
                Ok(found) => assert!(found.len() >= places.len(), "{fault:?}: {found:?}"),
                Err(error) => assert_eq!(error.code(), IO, "{fault:?}: {error}"),
            }
        }
    }

    /// Looks at what is left, in three ways to lose power.
    fn examine(&self, found: &mut Found) {
        let possible = [Some(&self.state), self.doubtful.as_ref(), self.unrecorded.as_ref()];
        let states: Vec<Model> = possible.into_iter().flatten().cloned().collect();
        for cut in [Cut::Dropped, Cut::Torn(found.attempts as u64), Cut::Applied] {
            let place = examine(self.disk.after(cut), &states);
            let place = place.unwrap_or_else(|why| panic!("{:?}, {cut:?}: {why}", self.fault));
            let done = place == 1 && self.doubtful.is_some() && cut == Cut::Dropped;
            found.done_in_spite += usize::from(done);
        }
        found.attempts += 1;
        found.calls_failed += self.failures;
    }
}

/// Fails at operations of random calls in turn, in a full run at every one; says what was found.
fn fail_everywhere(
    seed: u64,
    calls: usize,
    cache_bytes: usize,
    fault: impl Fn(u64) -> Fault,
) -> Found {
    let script = Script::random(seed, calls);
    let mut found = Found::default();
    for number in (1..).step_by(if is_full() { 1 } else { 6 }) {
        let mut attempt = Attempt::new(&script, cache_bytes, fault(number));
        attempt.run();
        assert_no_writer_panicked();
        if !attempt.disk.has_failed() {
            assert_eq!(attempt.failures, 0);
            break;
        }
        attempt.examine(&mut found);
    }
    assert!(found.calls_failed > 0);
    println!("i/o failure, seed {seed}, {calls} calls, cache of {cache_bytes} bytes: {found:?}");
    found
}

#[test]
fn a_disk_that_fails_once_costs_nothing_acknowledged() {
    let (seeds, calls) = if is_full() { (1..=4, 60) } else { (1..=1, 16) };
    for seed in seeds {
        fail_everywhere(seed, calls, SMALL_CACHE_BYTES, Fault::Once);
        fail_everywhere(seed, calls, CACHE_BYTES, Fault::Once);
    }
}

#[test]
fn a_disk_that_fails_for_good_costs_nothing_acknowledged() {
    let (seeds, calls) = if is_full() { (5..=8, 60) } else { (2..=2, 16) };
    for seed in seeds {
        fail_everywhere(seed, calls, SMALL_CACHE_BYTES, Fault::From);
        fail_everywhere(seed, calls, CACHE_BYTES, Fault::From);
    }
}

/// Both files, the counts of who read what, and the tail are still to be written when it is closed.
fn to_be_closed(disk: &Disk, clock: &Arc<ManualClock>) -> (Store, ContentAddress) {
    let store = open_with(disk, clock, SMALL_CACHE_BYTES).unwrap();
    let grain = BeliefBuilder::new(EpochMs::new(1), "alice", "says", "tea", 1.0).build().unwrap();
    let address = session(&store, None).put(grain).unwrap().address();
    session(&store, Some("shared")).get(&address).unwrap();
    (store, address)
}

#[test]
fn a_disk_that_fails_while_a_store_is_closed_is_told_and_costs_nothing() {
    let (image, clock) = (empty_image(), clock_at(START_MS));
    for fault in [Fault::Once, Fault::From] {
        let mut failed = 0;
        for number in 1.. {
            let disk = Disk::new(image.clone());
            let (store, address) = to_be_closed(&disk, &clock);
            let before = disk.operations();
            disk.fail(fault(before + number));
            let closed = store.close().map_err(|error| error.code());
            if !disk.has_failed() {
                assert_eq!(closed, Ok(()), "on a sound disk");
                break;
            }
            assert_eq!(closed, Err(IO), "operation {number} of closing");
            failed += 1;
            for cut in [Cut::Dropped, Cut::Torn(number), Cut::Applied] {
                let disk = Disk::new(disk.after(cut));
                let again = open_with(&disk, &clock, CACHE_BYTES).unwrap();
                assert!(session(&again, None).exists(&address).unwrap(), "{cut:?} at {number}");
                assert_eq!(again.verify(true).unwrap().problems, [], "{cut:?} at {number}");
                again.close().unwrap();
            }
        }
        assert!(failed > 5, "{failed} operations of closing");
    }
    assert_no_writer_panicked();
}

/// Opens an encrypted store whose keyring lies in a directory of its own.
fn open_keyed(disk: &Disk, keyring: &Path) -> crate::Result<Store> {
    let keys = Keyring::open(keyring, &MasterKey::new([7; 32]))?.unwrap();
    let options = OpenOptions::new().cache_bytes(SMALL_CACHE_BYTES).clock(clock_at(START_MS));
    let backends = (|| disk.truth(), || disk.index());
    Store::on_keyed_backends(backends, &Vault::with_keyring(Arc::new(keys)), &options)
}

/// What an encrypted store has acknowledged.
#[derive(Debug, Default)]
struct Acknowledged {
    /// Of whom, and where.
    grains: Vec<(&'static str, ContentAddress)>,
    erased: Vec<&'static str>,
    failed: Option<&'static str>,
}

/// Puts and erases until a call fails. Gives what was acknowledged.
fn work_keyed(store: &Store) -> Acknowledged {
    let operator = session(store, None);
    let mut known = Acknowledged::default();
    for (number, user) in ["ann", "bob", "", "cem", "bob"].into_iter().enumerate() {
        let object = format!("tea {number}");
        let grain = BeliefBuilder::new(EpochMs::new(1), "somebody", "likes", object, 1.0);
        let grain = if user.is_empty() { grain } else { grain.user_id(user) };
        match operator.put(grain.build().unwrap()) {
            Ok(put) => known.grains.push((user, put.address())),
            Err(error) => {
                known.failed = Some(error.code());
                break;
            }
        }
        if number == 2 {
            match operator.erase_user("ann", "ann asked", &EraseOptions::new().now(true)) {
                Ok(_) => known.erased.push("ann"),
                Err(error) => {
                    known.failed = Some(error.code());
                    break;
                }
            }
        }
    }
    let closed = store.close().map_err(|error| error.code());
    assert!(known.failed.is_none() || closed.is_err(), "writing had ended, and closing is Ok");
    known.failed = known.failed.or(closed.err());
    known
}

#[test]
fn a_disk_that_fails_costs_an_encrypted_store_nothing_acknowledged() {
    let empty = tempfile::TempDir::new().unwrap();
    Keyring::create(empty.path(), &MasterKey::new([7; 32]), [5; 16]).unwrap();
    let disk = Disk::default();
    open_keyed(&disk, empty.path()).unwrap().close().unwrap();
    let image = disk.live();
    let step = if is_full() { 1 } else { 31 };
    for fault in [Fault::Once, Fault::From] {
        let mut failures = 0;
        for number in (1..).step_by(step) {
            let dir = tempfile::TempDir::new().unwrap();
            std::fs::copy(empty.path().join("keyring"), dir.path().join("keyring")).unwrap();
            let disk = Disk::failing(image.clone(), fault(number));
            let known = match open_keyed(&disk, dir.path()) {
                Ok(store) => work_keyed(&store),
                Err(error) => {
                    Acknowledged { failed: Some(error.code()), ..Acknowledged::default() }
                }
            };
            if !disk.has_failed() {
                assert_eq!(known.failed, None);
                break;
            }
            failures += 1;
            // A read of the background may fail, and be done again.
            assert!(matches!(known.failed, None | Some(IO)), "{number}: {known:?}");
            for cut in [Cut::Dropped, Cut::Torn(number), Cut::Applied] {
                let left = tempfile::TempDir::new().unwrap();
                std::fs::copy(dir.path().join("keyring"), left.path().join("keyring")).unwrap();
                let store = open_keyed(&Disk::new(disk.after(cut)), left.path()).unwrap();
                let operator = session(&store, None);
                for (user, address) in &known.grains {
                    let got = operator.get(address).map(drop).map_err(|error| error.code());
                    match known.erased.contains(user) {
                        true => assert_eq!(got, Err("ERR_ERASED"), "{number}, {cut:?}: {user}"),
                        // An erasure that failed is in doubt.
                        false if *user == "ann" => {
                            assert!(matches!(got, Ok(()) | Err("ERR_ERASED")), "{number}, {cut:?}");
                        }
                        false => assert_eq!(got, Ok(()), "{number}, {cut:?}: {user}"),
                    }
                }
                assert_eq!(store.verify(true).unwrap().problems, [], "{number}, {cut:?}");
                store.close().unwrap();
            }
        }
        println!("encrypted, {fault:?}: {failures} failures", fault = fault(0));
        assert!(failures > 3, "{failures}");
    }
    assert_no_writer_panicked();
}
