//! No answer is given before what it promises is synced.

use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;

use grainstore_format::{BeliefBuilder, Blob, ContentAddress, EpochMs, Grain};

use super::disk::{Cut, Disk, Event, Fault, File, Image, Shut};
use super::kit::calls::session;
use super::{START_MS, assert_no_writer_panicked, clock_at, empty_image, open, power_cut};
use crate::{Pending, PutOutcome, Result, SameFact, Session, Store};

/// Threads that write at once, and how often each does.
const THREADS: usize = 4;
const ROUNDS: usize = 12;

fn belief(subject: &str, object: &str) -> BeliefBuilder {
    BeliefBuilder::new(EpochMs::new(1000), subject, "prefers", object, 0.9)
}

fn built(subject: &str, object: &str) -> Grain {
    belief(subject, object).build().unwrap()
}

fn reopened(image: Image) -> Store {
    open(&Disk::new(image), &clock_at(START_MS)).unwrap()
}

/// A store whose syncs pass one by one.
struct Held {
    _shut: Shut,
    disk: Disk,
    session: Session,
}

impl Held {
    /// Lets the syncs of a call pass, and demands at each that there is no answer yet.
    fn answer<T>(&self, pending: Pending<T>) -> Result<T> {
        let mut pending = pin!(pending.into_future());
        let mut context = Context::from_waker(Waker::noop());
        let mut syncs = 0;
        loop {
            if self.disk.is_holding() {
                let early = pending.as_mut().poll(&mut context);
                assert!(early.is_pending(), "answered while sync {syncs} was under way");
                self.disk.pass();
                syncs += 1;
            }
            if let Poll::Ready(answer) = pending.as_mut().poll(&mut context) {
                assert!(syncs > 0, "answered without a sync");
                return answer;
            }
            thread::yield_now();
        }
    }

    fn put(&self, grain: Grain, same_fact: SameFact) -> PutOutcome {
        self.answer(self.session.submit(grain, same_fact)).unwrap()
    }

    /// What a power cut would leave, opened.
    fn survivor(&self) -> Session {
        session(&reopened(self.disk.after(Cut::Dropped)), None)
    }
}

#[test]
fn every_kind_of_write_is_answered_after_its_sync() {
    let disk = Disk::new(empty_image());
    let store = open(&disk, &clock_at(START_MS)).unwrap();
    let held = Held { _shut: disk.shut(), disk, session: session(&store, None) };

    let first = held.put(built("alice", "tea"), SameFact::Add).address();
    assert!(held.survivor().exists(&first).unwrap());

    let batch = held.session.submit_batch(["tea", "rice"].map(|object| built("bob", object)));
    for put in held.answer(batch).unwrap() {
        assert!(held.survivor().exists(&put.address()).unwrap());
    }
    let second = held.session.submit_supersede(&first, built("alice", "rice"), Some("it changed"));
    let second = held.answer(second).unwrap();
    assert_eq!(held.survivor().get(&first).unwrap().state.superseded_by, Some(second));

    let again = belief("alice", "rice").created_at(EpochMs::new(2000)).build().unwrap();
    let PutOutcome::Replaced { old, new } = held.put(again, SameFact::Supersede) else {
        panic!("the same fact is replaced")
    };
    assert_eq!(old, second);
    assert_eq!(held.survivor().get(&old).unwrap().state.superseded_by, Some(new));

    let locked = belief("carol", "quiet");
    let locked = locked.invalidation_policy([("mode".to_owned(), "locked".into())].into());
    let locked = held.put(locked.build().unwrap(), SameFact::Add).address();
    let refused = held.session.submit_supersede(&locked, built("carol", "noise"), None);
    let refused = held.answer(refused).map_err(|error| error.code());
    assert_eq!(refused, Err("ERR_INVALIDATION_DENIED"));
    let entries = held.survivor().audit(None, 100).unwrap();
    assert_eq!(entries.last().map(|entry| entry.decision.as_str()), Some("refused"));

    // What is refused before it gets to the writer is told the same way: nobody waits to hand it over.
    let elsewhere = session(&store, Some("elsewhere"));
    let outside = belief("dave", "tea").namespace("home").build().unwrap();
    let refused = held.answer(elsewhere.submit(outside, SameFact::Add));
    assert_eq!(refused.map_err(|error| error.code()), Err("ERR_ACCESS"));
    let told = held.survivor().audit(None, 100).unwrap();
    assert_eq!(told.len(), entries.len() + 1);
    drop(held);
    store.close().unwrap();
    assert_no_writer_panicked();
}

#[test]
fn a_group_whose_sync_fails_is_refused_whole_and_writing_ends() {
    let disk = Disk::new(empty_image());
    let store = open(&disk, &clock_at(START_MS)).unwrap();
    let session = session(&store, None);
    let shut = disk.shut();
    let first = session.submit(built("alice", "tea"), SameFact::Add);
    disk.await_sync();
    let group: Vec<_> = ["rice", "milk", "salt"]
        .map(|object| session.submit(built("bob", object), SameFact::Add))
        .into_iter()
        .collect();
    disk.fail(Fault::Syncs);
    drop(shut);
    first.wait().unwrap();
    for member in group {
        assert_eq!(member.wait().map_err(|error| error.code()), Err("ERR_IO"));
    }
    let later = session.put(built("carol", "tea")).map_err(|error| error.code());
    assert_eq!(later, Err("ERR_IO"));
    assert_eq!(store.close().map_err(|error| error.code()), Err("ERR_IO"));
    for cut in [Cut::Dropped, Cut::Torn(1), Cut::Applied] {
        let grains = reopened(disk.after(cut)).stats().unwrap().grains;
        // The group was written and not synced: it is in doubt as a whole.
        assert!(grains == 1 || (grains == 4 && cut != Cut::Dropped), "{cut:?}: {grains} grains");
    }
    assert_no_writer_panicked();
}

/// What somebody was told.
struct Promise {
    written: Vec<Blob>,
    superseded: Option<(ContentAddress, ContentAddress)>,
}

/// Notes an answer, as soon as it is there.
fn told(disk: &Disk, promises: &Mutex<Vec<Promise>>, promise: Promise) {
    let mut promises = promises.lock().unwrap_or_else(PoisonError::into_inner);
    disk.note(Event::Answered(promises.len()));
    promises.push(promise);
}

/// One thread's writes: a grain, a batch, and the next version of the grain before.
fn work(thread: usize, session: &Session, disk: &Disk, promises: &Mutex<Vec<Promise>>) {
    let name = format!("thread {thread}");
    let mut head: Option<ContentAddress> = None;
    for round in 0..ROUNDS {
        let version = built(&name, &format!("version {round}"));
        let (written, superseded) = match head {
            None => {
                let address = session.put(version).unwrap().address();
                head = Some(address);
                (address, None)
            }
            Some(old) => {
                let new = session.supersede(&old, version, None).unwrap();
                head = Some(new);
                (new, Some((old, new)))
            }
        };
        let stored = session.get(&written).unwrap();
        let written = vec![Blob::from_bytes(stored.blob)];
        told(disk, promises, Promise { written, superseded });
        let batch = ["a", "b", "c"].map(|part| built(&name, &format!("part {round}{part}")));
        let written = batch.each_ref().map(|grain| grain.encode(Default::default()).unwrap());
        session.put_batch(batch).unwrap();
        told(disk, promises, Promise { written: written.into(), superseded: None });
    }
}

#[test]
fn threads_are_answered_after_the_sync_of_their_writes() {
    let image = empty_image();
    let disk = Disk::recording(image.clone());
    let store = open(&disk, &clock_at(START_MS)).unwrap();
    let promises = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (session, disk, promises) = (session(&store, None), &disk, &promises);
            scope.spawn(move || work(thread, &session, disk, promises));
        }
    });
    store.close().unwrap();
    let promises = promises.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(promises.len(), THREADS * ROUNDS * 2);

    let (mut answered, mut checked) = (0, 0);
    power_cut::replay(&image, &disk.story(), |event, moment| match event {
        Some(Event::Answered(number)) => answered = number + 1,
        Some(Event::Synced(File::Truth)) | None if answered > checked => {
            let survivor = session(&reopened(moment.synced.clone()), None);
            for promise in &promises[..answered] {
                is_kept(&survivor, promise);
            }
            checked = answered;
        }
        _ => {}
    });
    assert_eq!(checked, promises.len());
    println!(
        "answers: {checked} of {THREADS} threads, each synced before, over {} syncs",
        disk.syncs()
    );
    assert_no_writer_panicked();
}

fn is_kept(survivor: &Session, promise: &Promise) {
    for blob in &promise.written {
        assert_eq!(survivor.get(&blob.address()).unwrap().blob, blob.bytes());
    }
    if let Some((old, new)) = promise.superseded {
        assert_eq!(survivor.get(&old).unwrap().state.superseded_by, Some(new));
    }
}
