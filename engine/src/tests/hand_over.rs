//! The ways in which the threads of a store can take turns, tried by the thousand: the queue of
//! the writer, the bytes that may wait, the tail that is handed to the folder and back, closing.
//!
//! A schedule that ends in a deadlock, a lost write or a read that misses what was acknowledged
//! fails, and is printed so that it can be run again.
//! `RUSTFLAGS="--cfg shuttle" cargo test -p grainstore --lib hand_over -- --nocapture`

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use grainstore_format::{BeliefBuilder, ContentAddress, EpochMs};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::thread::{self, JoinHandle};
use shuttle::{Config, MaxSteps, Runner};

use super::disk::{Disk, Image};
use super::kit::calls::session;
use super::{START_MS, clock_at, is_full, open};
use crate::Store;
use crate::base::pending::Pending;
use crate::write::writer::{Backlog, Request, Writer};

/// Steps of one schedule, after which threads wait for each other in a circle.
const MAX_STEPS: usize = 200_000;
/// Bytes of stack of a thread under test: what the storage needs unoptimised.
const STACK_BYTES: usize = 8 << 20;
/// Bytes of which one request fills all room there is.
const ALL_ROOM: usize = 256 << 20;

/// Runs a test under schedules drawn at random, and under ones that seldom switch.
fn tried(test: impl Fn() + Send + Sync + 'static) {
    let schedules = if is_full() { 20_000 } else { 1_000 };
    let test = Arc::new(test);
    let again = Arc::clone(&test);
    let random = RandomScheduler::new(schedules);
    let ran = Runner::new(random, config()).run(move || test());
    let few_switches = PctScheduler::new(4, schedules);
    let more = Runner::new(few_switches, config()).run(move || again());
    println!("{} schedules", ran + more);
}

fn config() -> Config {
    let mut config = Config::new();
    config.max_steps = MaxSteps::FailAfter(MAX_STEPS);
    config.stack_size = STACK_BYTES;
    config
}

/// The image of an empty store, made once: making it takes no part in what is tried.
fn empty() -> Image {
    let disk = Disk::default();
    Runner::new(RandomScheduler::new(1), config()).run({
        let disk = disk.clone();
        move || open(&disk, &clock_at(START_MS)).unwrap().close().unwrap()
    });
    disk.live()
}

fn store(disk: &Disk) -> Store {
    open(disk, &clock_at(START_MS)).unwrap()
}

fn put(store: &Store, object: &str) -> crate::Result<ContentAddress> {
    let grain = BeliefBuilder::new(EpochMs::new(1), "alice", "says", object, 1.0);
    Ok(session(store, None).put(grain.build().unwrap())?.address())
}

/// How many grains are found by the index.
fn found(store: &Store) -> usize {
    session(store, None).history_of("alice", "says", None, None).unwrap().len()
}

/// Hands the tail to the folder as if it were full, and does not wait.
fn begin_to_fold(store: &Store) {
    let (reply, pending) = Pending::new();
    let request = Request::Exclusive(Box::new(move |writer: crate::Result<&mut Writer>| {
        let begun = writer.and_then(|writer| {
            let mut indexed = writer.view.indexed().clone();
            if !writer.fold_worker.is_busy() && indexed.tail.grains() > 0 {
                indexed.begin_fold(&mut writer.fold_worker)?;
                writer.replace_view(writer.view.with_index(indexed));
            }
            Ok(())
        });
        reply.send(begun).unwrap();
    }));
    store.inner().send(request).unwrap();
    pending.wait().unwrap();
}

fn join(threads: Vec<JoinHandle<()>>) {
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn what_was_answered_is_found_while_the_tail_is_handed_over() {
    let image = empty();
    tried(move || {
        let disk = Disk::new(image.clone());
        let store = store(&disk);
        let writers = (0..2).map(|writer| {
            let store = store.clone();
            thread::spawn(move || {
                for number in 0..2 {
                    let address = put(&store, &format!("{writer} {number}")).unwrap();
                    assert!(session(&store, None).exists(&address).unwrap());
                    assert!(found(&store) > number);
                }
            })
        });
        let folding = store.clone();
        let folder = thread::spawn(move || (0..2).for_each(|_| begin_to_fold(&folding)));
        join(writers.chain([folder]).collect());
        assert_eq!(found(&store), 4);
        store.close().unwrap();
        let again = self::store(&disk);
        assert_eq!(found(&again), 4);
        again.close().unwrap();
    });
}

#[test]
fn flushing_and_rebuilding_lose_nothing_that_is_being_folded() {
    let image = empty();
    tried(move || {
        let disk = Disk::new(image.clone());
        let store = store(&disk);
        let (writing, flushing, rebuilding) = (store.clone(), store.clone(), store.clone());
        let writer = thread::spawn(move || {
            for number in 0..2 {
                put(&writing, &number.to_string()).unwrap();
                begin_to_fold(&writing);
                assert!(found(&writing) > number);
            }
        });
        let flusher = thread::spawn(move || flushing.flush().unwrap());
        let rebuilder = thread::spawn(move || {
            rebuilding.reindex().unwrap();
        });
        join(vec![writer, flusher, rebuilder]);
        store.flush().unwrap();
        assert_eq!((found(&store), store.stats().unwrap().tail_grains), (2, 0));
        assert!(store.verify(true).unwrap().ok);
        store.close().unwrap();
    });
}

#[test]
fn closing_answers_every_write_and_keeps_those_it_acknowledged() {
    let image = empty();
    tried(move || {
        let disk = Disk::new(image.clone());
        let store = store(&disk);
        let done = Arc::new(AtomicUsize::new(0));
        let writers = (0..2).map(|writer| {
            let (store, done) = (store.clone(), Arc::clone(&done));
            thread::spawn(move || {
                for number in 0..2 {
                    match put(&store, &format!("{writer} {number}")) {
                        Ok(_) => done.fetch_add(1, Ordering::SeqCst),
                        Err(error) => {
                            assert_eq!(error.code(), "ERR_IO");
                            break;
                        }
                    };
                }
            })
        });
        let closing = store.clone();
        let closer = thread::spawn(move || closing.close().unwrap());
        join(writers.chain([closer]).collect());
        store.close().unwrap();
        drop(store);
        let again = self::store(&disk);
        assert_eq!(found(&again), done.load(Ordering::SeqCst));
        again.close().unwrap();
    });
}

#[test]
fn the_last_handle_that_goes_closes_the_store() {
    let image = empty();
    tried(move || {
        let disk = Disk::new(image.clone());
        let store = store(&disk);
        let threads = (0..3).map(|number| {
            let store = store.clone();
            thread::spawn(move || {
                put(&store, &number.to_string()).unwrap();
            })
        });
        let threads: Vec<_> = threads.collect();
        drop(store);
        join(threads);
        let again = self::store(&disk);
        assert_eq!(found(&again), 3);
        again.close().unwrap();
    });
}

#[test]
fn one_sender_at_a_time_has_room_and_each_gets_its_turn() {
    tried(|| {
        let backlog = Arc::new(Backlog::default());
        let inside = Arc::new(AtomicUsize::new(0));
        let senders = (0..3).map(|_| {
            let (backlog, inside) = (Arc::clone(&backlog), Arc::clone(&inside));
            thread::spawn(move || {
                for _ in 0..2 {
                    backlog.reserve(ALL_ROOM).unwrap();
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two where one has room");
                    thread::yield_now();
                    inside.fetch_sub(1, Ordering::SeqCst);
                    backlog.release(ALL_ROOM);
                }
            })
        });
        join(senders.collect());
    });
}

#[test]
fn closing_wakes_the_senders_that_wait_for_room() {
    tried(|| {
        let backlog = Arc::new(Backlog::default());
        backlog.reserve(ALL_ROOM).unwrap();
        let senders = (0..3).map(|_| {
            let backlog = Arc::clone(&backlog);
            thread::spawn(move || assert!(backlog.reserve(ALL_ROOM).is_err()))
        });
        let senders: Vec<_> = senders.collect();
        backlog.close();
        join(senders);
    });
}
