//! Histories of clients that read and supersede one fact by any node while the lead changes, checked for
//! linearizability: a supersession is there once it is told, for whoever asks for a fresh read.
//!
//! A normal run is short; with `GRAINSTORE_CLUSTER=full` there are a thousand histories for each journal.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::thread;
use std::time::Duration;

use grainstore::format::BeliefBuilder;
use grainstore::journal::{CommitPosition, Journal, Lead, MemoryJournal, ShardId};
use grainstore::{ContentAddress, EpochMs, ErrorKind, OpenOptions, Result, SessionOptions, Store};
use stateright::semantics::{ConsistencyTester as _, LinearizabilityTester, SequentialSpec};

use crate::journal::journal_of;
use crate::kills::Random;
use crate::server::{Programs, Server, open_directory};

const SHARD: ShardId = ShardId(1);
const NODES: usize = 3;
const CLIENTS: usize = 3;
/// Calls of a client in one history.
const CALLS: usize = 6;
/// A lead that others may take at any moment.
const NO_TIME: Duration = Duration::from_millis(1);
const PATIENCE: Duration = Duration::from_millis(300);
/// How long a copy is waited for, which may be that of a leader that was deposed.
const SHORT: Duration = Duration::from_millis(30);
const FIRST_MS: u64 = 1_768_471_200_000;

/// The current version of a fact, by its number.
#[derive(Debug, Clone)]
struct Fact(u64);

#[derive(Debug, Clone)]
enum Call {
    Read,
    Supersede { from: u64, to: u64 },
}

#[derive(Debug, Clone, PartialEq)]
enum Answer {
    Version(u64),
    Superseded,
    Conflict,
}

impl SequentialSpec for Fact {
    type Op = Call;
    type Ret = Answer;

    fn invoke(&mut self, call: &Call) -> Answer {
        match call {
            Call::Read => Answer::Version(self.0),
            Call::Supersede { from, to } if *from == self.0 => {
                self.0 = *to;
                Answer::Superseded
            }
            Call::Supersede { .. } => Answer::Conflict,
        }
    }
}

/// What happened, in the order in which it did: a client called, or was answered.
#[derive(Debug, Default)]
struct Events(Vec<(usize, Event)>);

#[derive(Debug)]
enum Event {
    Called(Call),
    Answered(Answer),
    /// Nothing was done, and never will be.
    Refused,
}

impl Events {
    /// Returns `true` if they are those of one fact that the clients read and superseded one after another.
    fn are_of_one_fact(&self, first: u64) -> bool {
        let mut tester = LinearizabilityTester::new(Fact(first));
        for (at, (client, event)) in self.0.iter().enumerate() {
            match event {
                Event::Called(call) => {
                    let outcome = self.0[at + 1..].iter().find(|(of, _)| of == client);
                    let counts = match outcome {
                        Some((_, Event::Answered(_))) => true,
                        // Of what became of a supersession nothing is known; a read without an answer says nothing.
                        Some((_, Event::Called(_))) | None => {
                            matches!(call, Call::Supersede { .. })
                        }
                        Some((_, Event::Refused)) => false,
                    };
                    if counts {
                        tester.on_invoke(*client, call.clone()).unwrap();
                    }
                }
                Event::Answered(answer) => {
                    tester.on_return(*client, answer.clone()).unwrap();
                }
                Event::Refused => {}
            }
        }
        tester.is_consistent()
    }
}

struct Cluster {
    directory: PathBuf,
    journal: Arc<dyn Journal>,
    nodes: [RwLock<Store>; NODES],
    /// The node that was the last to take the lead.
    leader: AtomicUsize,
    version: AtomicU64,
}

fn follow(directory: &std::path::Path, journal: &Arc<dyn Journal>, node: usize) -> Result<Store> {
    let options = OpenOptions::new().create(true).following(Arc::clone(journal), SHARD);
    Store::open(directory.join(format!("n{node}")), &options)
}

fn lead(
    directory: &std::path::Path,
    journal: &Arc<dyn Journal>,
    (node, lead): (usize, Lead),
) -> Result<Store> {
    let options = OpenOptions::new().create(true).leading(Arc::clone(journal), lead, PATIENCE);
    Store::open(directory.join(format!("n{node}")), &options)
}

impl Cluster {
    fn new(directory: PathBuf, journal: Arc<dyn Journal>) -> Self {
        let first = journal.lead(SHARD, "n0", NO_TIME).unwrap();
        let first = lead(&directory, &journal, (0, first)).unwrap();
        let others = [1, 2].map(|node| RwLock::new(follow(&directory, &journal, node).unwrap()));
        let [second, third] = others;
        let nodes = [RwLock::new(first), second, third];
        let (leader, version) = (AtomicUsize::new(0), AtomicU64::new(0));
        Self { directory, journal, nodes, leader, version }
    }

    fn store(&self, node: usize) -> Store {
        self.nodes[node].read().unwrap().clone()
    }

    /// Has a node lead, while who led before knows nothing of it.
    fn depose(&self, node: usize) {
        let mut store = self.nodes[node].write().unwrap();
        let Ok(taken) = self.journal.lead(SHARD, &format!("n{node}"), NO_TIME) else { return };
        // One that was deposed says so.
        let _ = store.close();
        *store = match lead(&self.directory, &self.journal, (node, taken)) {
            Ok(leads) => {
                self.leader.store(node, Ordering::SeqCst);
                leads
            }
            Err(_) => follow(&self.directory, &self.journal, node).unwrap(),
        };
    }

    /// Has a node that may think that it leads follow.
    fn demote(&self, node: usize) {
        let mut store = self.nodes[node].write().unwrap();
        // One that was deposed says so.
        let _ = store.close();
        *store = follow(&self.directory, &self.journal, node).unwrap();
    }

    fn grain(subject: &str, version: u64) -> grainstore::Grain {
        let at = EpochMs::new(i64::try_from(FIRST_MS + version).unwrap());
        BeliefBuilder::new(at, subject, "is", format!("version {version}"), 1.0).build().unwrap()
    }

    /// A fresh read, with where the copy was then.
    fn read(&self, node: usize, subject: &str) -> Result<(u64, ContentAddress, CommitPosition)> {
        let store = self.store(node);
        store.wait_for_latest(PATIENCE)?;
        let found = store.session(SessionOptions::default()).latest(subject, "is")?.unwrap();
        let at = u64::try_from(found.grain()?.created_at().get()).unwrap();
        Ok((at - FIRST_MS, found.address, store.position()?.unwrap()))
    }
}

/// One history: three clients, and a lead that changes amid their calls.
fn history(cluster: &Cluster, number: u64) -> (u64, Events) {
    let subject = format!("fact {number}");
    let first = cluster.version.fetch_add(1, Ordering::SeqCst);
    let begun = loop {
        let leader = cluster.store(cluster.leader.load(Ordering::SeqCst));
        let put = leader.session(SessionOptions::default()).put(Cluster::grain(&subject, first));
        match put {
            Ok(put) => break put.address(),
            Err(_) => {
                cluster.demote(cluster.leader.load(Ordering::SeqCst));
                cluster.depose(usize::try_from(number % 3).unwrap());
            }
        }
    };
    let events = Mutex::default();
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (events, subject) = (&events, &subject);
            scope.spawn(move || call(cluster, (number, client), (subject, first, begun), events));
        }
        scope.spawn(|| {
            let mut random = Random(number * 31 + 7);
            thread::sleep(Duration::from_micros(random.below(4_000)));
            let before = cluster.leader.load(Ordering::SeqCst);
            if random.below(2) == 0 {
                let next = (before + 1 + usize::try_from(random.below(2)).unwrap()) % NODES;
                cluster.depose(next);
                thread::sleep(Duration::from_micros(random.below(4_000)));
                if random.below(2) == 0 && cluster.leader.load(Ordering::SeqCst) != before {
                    cluster.demote(before);
                }
            }
        });
    });
    (first, events.into_inner().unwrap())
}

fn call(
    cluster: &Cluster,
    (number, client): (u64, usize),
    (subject, first, begun): (&str, u64, ContentAddress),
    events: &Mutex<Events>,
) {
    let mut random = Random(number * 1009 + client as u64);
    let mut known = (first, begun);
    let note = |client, event| events.lock().unwrap().0.push((client, event));
    // Who does not know what became of a call goes on as another client.
    let mut id = client;
    for _ in 0..CALLS {
        let anywhere = usize::try_from(random.below(NODES as u64)).unwrap();
        let answer = if random.below(2) == 0 {
            note(id, Event::Called(Call::Read));
            let read = cluster.read(anywhere, subject);
            read.map(|(version, address, at)| {
                known = (version, address);
                // Whoever waits for that place sees it, or what came later.
                let elsewhere = cluster.store((anywhere + 1) % NODES);
                if elsewhere.wait_for(at, SHORT).is_ok() {
                    let session = elsewhere.session(SessionOptions::default());
                    assert!(session.get(&address).is_ok(), "{subject}: {at} lacks {version}");
                }
                Event::Answered(Answer::Version(version))
            })
        } else {
            let leader = cluster.leader.load(Ordering::SeqCst);
            let node = if random.below(4) == 0 { anywhere } else { leader };
            let to = cluster.version.fetch_add(1, Ordering::SeqCst);
            let call = Call::Supersede { from: known.0, to };
            note(id, Event::Called(call));
            let session = cluster.store(node).session(SessionOptions::default());
            let done = session.supersede(&known.1, Cluster::grain(subject, to), None);
            match done {
                Ok(address) => {
                    known = (to, address);
                    Ok(Event::Answered(Answer::Superseded))
                }
                Err(error) => match error.kind() {
                    ErrorKind::Conflict => Ok(Event::Answered(Answer::Conflict)),
                    ErrorKind::Fenced | ErrorKind::NotLeader => Ok(Event::Refused),
                    _ => Err(error),
                },
            }
        };
        match answer {
            Ok(event) => note(id, event),
            Err(_) => id += CLIENTS,
        }
    }
}

fn check(directory: PathBuf, journal: Arc<dyn Journal>, short: u64) {
    let full = std::env::var("GRAINSTORE_CLUSTER").is_ok_and(|sweep| sweep == "full");
    let count = if full { 1_000 } else { short };
    let cluster = Cluster::new(directory, journal);
    let (mut calls, mut leads) = (0, 0);
    for number in 0..count {
        let before = cluster.leader.load(Ordering::SeqCst);
        let (first, events) = history(&cluster, number);
        calls += events.0.len() / 2;
        leads += usize::from(before != cluster.leader.load(Ordering::SeqCst));
        assert!(events.are_of_one_fact(first), "history {number} is none of one fact: {events:?}");
    }
    eprintln!("{count} histories of {calls} calls, with {leads} changes of the lead");
    assert!(leads * 10 > usize::try_from(count).unwrap(), "the lead changed {leads} times");
    for store in &cluster.nodes {
        let _ = store.read().unwrap().close();
    }
}

#[test]
fn fresh_reads_and_supersessions_are_linearizable_by_a_journal_in_memory() {
    let directory = tempfile::tempdir().unwrap();
    check(directory.path().to_owned(), Arc::new(MemoryJournal::default()), 60);
}

#[test]
fn fresh_reads_and_supersessions_are_linearizable_by_a_journal_in_postgresql() {
    let Some(programs) = Programs::find() else { return };
    let directory = open_directory();
    let server = Server::primary(&programs, &directory.path().join("primary"));
    check(directory.path().join("nodes"), Arc::new(journal_of(&server)), 40);
}
