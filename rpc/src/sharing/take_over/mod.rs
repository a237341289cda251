//! The ways in which processes can take a store over from each other, tried by the thousand: each is killed or
//! closes at any point, and every switch of threads is decided by a test.
//!
//! Owning, joining, settling and asking again are the program's; the machine is simulated. A schedule that ends in a
//! deadlock, in two owners, in a write that is lost or done twice, or that goes round in a circle fails, and is
//! printed so that it can be run again.
//! `RUSTFLAGS="--cfg shuttle" cargo test -p grainstore-rpc --lib take_over -- --nocapture`

mod process;
mod world;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use grainstore::{OpenOptions, SessionOptions};
use shuttle::rand::{Rng as _, thread_rng};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::sync::Mutex;
use shuttle::thread::{self, JoinHandle};
use shuttle::{Config, MaxSteps, Runner};

use self::process::{Process, Relay};
use self::world::{Disk, Params, Pid, Request, World};
use super::{Call, ClientOptions, SharedStore};
use crate::error::{Error, Result};

/// Steps of one schedule, after which requests go round in a circle.
const MAX_STEPS: usize = 20_000;
/// Most turns of other threads that one waits before it kills a process.
const LATEST_KILL: usize = 50;
/// Bytes of stack of a thread under test.
const STACK_BYTES: usize = 512 << 10;

/// What was seen, over all schedules of a test.
#[derive(Default)]
struct Seen {
    taken_over: AtomicUsize,
    in_doubt: AtomicUsize,
    busy: AtomicUsize,
    closed: AtomicUsize,
}

/// What was asked, and what came of it.
#[derive(Default)]
struct Asked {
    /// Keys of what was acknowledged.
    puts: Vec<String>,
    superseded: Vec<String>,
    /// Keys of what was refused, and therefore not done.
    refused: Vec<String>,
}

/// One schedule of a test.
#[derive(Clone)]
struct Trial {
    world: Arc<World>,
    asked: Arc<Mutex<Asked>>,
    seen: Arc<Seen>,
    is_slow: bool,
}

/// Runs a test under schedules drawn at random, and under ones that seldom switch.
fn tried(is_slow: bool, test: fn(&Trial)) -> Arc<Seen> {
    let is_full = std::env::var("GRAINSTORE_SWEEP").is_ok_and(|sweep| sweep == "full");
    let schedules = if is_full { 50_000 } else { 2_000 };
    let seen = Arc::<Seen>::default();
    let run = || {
        let seen = Arc::clone(&seen);
        move || {
            let (world, asked) = (World::new(is_slow), Arc::default());
            let trial = Trial { world, asked, seen: Arc::clone(&seen), is_slow };
            test(&trial);
            trial.check();
        }
    };
    let mut config = Config::new();
    config.max_steps = MaxSteps::FailAfter(MAX_STEPS);
    config.stack_size = STACK_BYTES;
    let ran = Runner::new(RandomScheduler::new(schedules), config.clone()).run(run());
    let more = Runner::new(PctScheduler::new(4, schedules), config).run(run());
    let of = |count: &AtomicUsize| count.load(Ordering::Relaxed);
    println!(
        "{} schedules: {} taken over, {} in doubt, {} busy, {} closed",
        ran + more,
        of(&seen.taken_over),
        of(&seen.in_doubt),
        of(&seen.busy),
        of(&seen.closed)
    );
    seen
}

fn happened(count: &AtomicUsize) -> bool {
    count.load(Ordering::Relaxed) > 0
}

fn join(threads: impl IntoIterator<Item = JoinHandle<()>>) {
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// A client of a process, and what it asks for.
#[derive(Clone)]
struct Client {
    trial: Trial,
    pid: Pid,
    store: SharedStore<Process>,
    /// True if another thread of the process closes the store.
    is_closing: bool,
}

impl Trial {
    /// Opens the store in a process; `None` if it is killed, or waits in vain.
    fn open(&self, pid: Pid) -> Option<Client> {
        let options = ClientOptions::new(OpenOptions::new(), SessionOptions::default());
        let opened = SharedStore::open_on(self.world.process(pid), Path::new("/store"), options);
        match opened {
            Ok(store) => Some(Client { trial: self.clone(), pid, store, is_closing: false }),
            Err(error) => {
                let is_busy = self.is_slow && code(&error) == "ERR_BUSY";
                assert!(is_busy || self.world.is_killed(pid), "{error}");
                None
            }
        }
    }

    fn spawn(&self, run: impl FnOnce(&Self) + Send + 'static) -> JoinHandle<()> {
        let trial = self.clone();
        thread::spawn(move || run(&trial))
    }

    /// Opens the store in a process of its own, and asks.
    fn process(&self, pid: Pid, run: impl FnOnce(&Client) + Send + 'static) -> JoinHandle<()> {
        self.spawn(move |trial| {
            if let Some(client) = trial.open(pid) {
                run(&client);
            }
        })
    }

    /// Kills a process, sooner or later.
    fn kill(&self, pid: Pid) {
        (0..thread_rng().gen_range(0..LATEST_KILL)).for_each(|_| thread::yield_now());
        self.world.kill(pid);
    }

    /// Looks at the disk when all is over.
    fn check(&self) {
        let (disk, asked) = (self.world.disk(), self.asked.lock().unwrap());
        let Disk { puts, superseded, opened } = disk;
        for key in &asked.puts {
            assert!(puts.contains(key), "{key} was acknowledged and is lost");
        }
        for (key, times) in &superseded {
            assert_eq!(*times, 1, "{key} was superseded {times} times");
        }
        for key in &asked.superseded {
            assert!(superseded.contains_key(key), "{key} was acknowledged and is lost");
        }
        for key in &asked.refused {
            assert!(!superseded.contains_key(key), "{key} was refused and is done");
        }
        self.seen.taken_over.fetch_add(opened - 1, Ordering::Relaxed);
    }
}

fn code(error: &Error) -> &str {
    error.refusal().map_or("", |refusal| &refusal.code)
}

impl Client {
    /// Puts a grain and finds it, and supersedes another, each with a key of its own.
    fn ask(&self, name: &str) {
        let key = format!("{} {name}", self.pid);
        let is_put = self.call("put", &key).is_some();
        self.call("supersede", &key);
        if let Some(is_found) = self.call("get", &key) {
            assert!(is_found || !is_put, "{key} was acknowledged and is not found");
        }
    }

    /// Calls a method, and judges what comes of it. `None` if it was not acknowledged.
    fn call(&self, method: &str, key: &str) -> Option<bool> {
        let answer = self.answer(method, key);
        let disk = self.trial.world.disk();
        let times = disk.superseded.get(key).copied().unwrap_or_default();
        let mut asked = self.trial.asked.lock().unwrap();
        let seen = &self.trial.seen;
        let error = match answer {
            Ok(answer) => {
                match method {
                    "put" => asked.puts.push(key.to_owned()),
                    "supersede" => asked.superseded.push(key.to_owned()),
                    _ => {}
                }
                let is_done = method != "put" || disk.puts.contains(key);
                assert!(
                    is_done && (method != "supersede" || times == 1),
                    "{method} {key}: {times}"
                );
                return Some(answer);
            }
            Err(error) => error,
        };
        if self.trial.world.is_killed(self.pid) {
            return None;
        }
        match code(&error) {
            "ERR_IN_DOUBT" => {
                let is_possible = method == "supersede" || (method == "put" && self.trial.is_slow);
                assert!(is_possible, "{method}: {error}");
                seen.in_doubt.fetch_add(1, Ordering::Relaxed);
                return None;
            }
            "ERR_BUSY" if self.trial.is_slow => seen.busy.fetch_add(1, Ordering::Relaxed),
            "ERR_IO" if self.is_closing => seen.closed.fetch_add(1, Ordering::Relaxed),
            _ => panic!("{method} {key}: {error}"),
        };
        if method == "supersede" {
            asked.refused.push(key.to_owned());
        }
        None
    }

    fn answer(&self, method: &str, key: &str) -> Result<bool> {
        let params = serde_json::value::to_raw_value(&serde_json::json!({ "key": key }))?;
        let request = Call { id: "0", method, params: Some(&params) };
        let here = Request { method: method.to_owned(), params: Params { key: key.to_owned() } };
        self.store.with(&request, |store, _| store.run(&here), Relay::exchange)?
    }

    fn close(&self) {
        let closed = self.store.close(&mut |_| {});
        assert!(closed.is_ok() || self.trial.world.is_killed(self.pid));
    }
}

/// One of three processes is left, whichever of them own the store meanwhile.
#[test]
fn owners_are_killed_at_any_point() {
    let seen = tried(false, |trial| {
        let processes = (1..=3).map(|pid| trial.process(pid, |client| client.ask("a")));
        let processes: Vec<_> = processes.collect();
        let killer = trial.spawn(|trial| {
            trial.kill(1);
            trial.kill(2);
        });
        join(processes.into_iter().chain([killer]));
    });
    assert!(happened(&seen.taken_over) && happened(&seen.in_doubt));
}

#[test]
fn owners_close_at_any_point_and_answer_what_was_asked() {
    let seen = tried(false, |trial| {
        let processes = (1..=3).map(|pid| {
            trial.process(pid, |client| {
                client.ask("a");
                client.close();
            })
        });
        join(processes.collect::<Vec<_>>());
    });
    assert!(happened(&seen.taken_over));
    assert!(!happened(&seen.in_doubt), "what a closing owner has read it answers");
}

/// The last handle that goes closes the store.
#[test]
fn owners_end_without_closing() {
    let seen = tried(false, |trial| {
        let processes = (1..=3).map(|pid| trial.process(pid, |client| client.ask("a")));
        join(processes.collect::<Vec<_>>());
    });
    assert!(happened(&seen.taken_over) && !happened(&seen.in_doubt));
}

#[test]
fn a_process_closes_while_its_other_threads_ask() {
    let seen = tried(false, |trial| {
        let processes = (1..=2).map(|pid| {
            trial.process(pid, |client| {
                let asking = Client { is_closing: true, ..client.clone() };
                let asking = thread::spawn(move || asking.ask("b"));
                client.call("put", &format!("{} a", client.pid));
                client.close();
                join([asking]);
            })
        });
        let other = trial.process(3, |client| client.ask("a"));
        join(processes.collect::<Vec<_>>().into_iter().chain([other]));
    });
    assert!(happened(&seen.taken_over) && happened(&seen.closed) && !happened(&seen.in_doubt));
}

/// Threads of one process find out at once that the owner has gone.
#[test]
fn threads_of_a_relay_settle_at_once() {
    let seen = tried(false, |trial| {
        let owner = trial.open(1);
        let relay = trial.open(2).unwrap();
        let threads = ["a", "b"].map(|name| {
            let client = relay.clone();
            thread::spawn(move || client.ask(name))
        });
        let other = trial.process(3, |client| client.ask("a"));
        trial.kill(1);
        join(threads.into_iter().chain([other]));
        drop(owner);
    });
    assert!(happened(&seen.taken_over) && happened(&seen.in_doubt));
}

/// Owners seem to hang and do what was asked later, and deadlines pass.
#[test]
fn owners_are_slow_and_killed_and_close() {
    let seen = tried(true, |trial| {
        let processes = (1..=3).map(|pid| {
            trial.process(pid, move |client| {
                client.ask("a");
                if pid == 2 {
                    client.close();
                }
            })
        });
        let processes: Vec<_> = processes.collect();
        let killer = trial.spawn(|trial| trial.kill(1));
        join(processes.into_iter().chain([killer]));
    });
    assert!(happened(&seen.taken_over) && happened(&seen.in_doubt) && happened(&seen.busy));
}
