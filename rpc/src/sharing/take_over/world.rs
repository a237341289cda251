//! A machine that is simulated: the lock, the socket, the connections and the disk of it, and processes that are killed.
//!
//! Every effect of a process is one step under the lock of the machine, and threads may switch before each. A process
//! that is killed has no effect any more: the steps of its threads fail, and its lock, its socket and its connections
//! go one after the other, in any order.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Weak};
use std::time::Instant;

use serde::Deserialize;
use shuttle::rand::{Rng as _, thread_rng};
use shuttle::sync::{Condvar, Mutex, MutexGuard};

use super::process::{Handle, Process};
use crate::error::Result;

/// Number of a process.
pub(super) type Pid = u32;

/// The machine that all processes run on.
pub(super) struct World {
    state: Mutex<State>,
    pub(super) changed: Condvar,
    pub(super) began: Instant,
    /// Seconds since the beginning.
    pub(super) seconds: AtomicU64,
    /// True if owners seem to hang and deadlines pass, at random.
    pub(super) is_slow: bool,
}

#[derive(Default)]
pub(super) struct State {
    /// Who holds the lock of the store.
    pub(super) lock: Option<Pid>,
    pub(super) disk: Disk,
    /// The listener whose name is in the directory.
    pub(super) socket: Option<usize>,
    pub(super) listeners: Vec<Listener>,
    pub(super) pipes: Vec<Pipe>,
    killed: BTreeSet<Pid>,
}

/// What is on the disk.
#[derive(Debug, Clone, Default)]
pub(super) struct Disk {
    /// Grains, by their address.
    pub(super) puts: BTreeSet<String>,
    /// How often each grain was superseded.
    pub(super) superseded: BTreeMap<String, usize>,
    /// Number of times that the store was opened.
    pub(super) opened: usize,
}

pub(super) struct Listener {
    pub(super) pid: Pid,
    pub(super) store: Weak<Handle>,
    pub(super) is_open: bool,
    pub(super) accepts: bool,
}

/// A connection, as the system has it.
#[derive(Default)]
pub(super) struct Pipe {
    pub(super) client: Pid,
    pub(super) owner: Pid,
    pub(super) listener: usize,
    pub(super) accepted: bool,
    pub(super) hello: bool,
    pub(super) welcome: bool,
    pub(super) requests: VecDeque<Request>,
    pub(super) answers: VecDeque<Result<bool>>,
    /// The owner reads what was sent, and no more.
    pub(super) read_shut: bool,
    /// The owner's end is closed.
    pub(super) closed: bool,
    /// The client's end is closed.
    pub(super) left: bool,
}

/// A request, as its line has it.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) params: Params,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Params {
    pub(super) key: String,
}

impl World {
    pub(super) fn new(is_slow: bool) -> Arc<Self> {
        let (began, seconds) = (Instant::now(), AtomicU64::new(0));
        Arc::new(Self { state: Mutex::default(), changed: Condvar::new(), began, seconds, is_slow })
    }

    pub(super) fn process(self: &Arc<Self>, pid: Pid) -> Process {
        Process::new(Arc::clone(self), pid)
    }

    /// Kills a process: the system ends its threads, and then frees what it held.
    pub(super) fn kill(&self, pid: Pid) {
        self.change(|state| state.killed.insert(pid));
        let mut frees: [fn(&mut State, Pid); 3] =
            [State::free_lock, State::free_listeners, State::free_pipes];
        for next in 0..frees.len() {
            let other = thread_rng().gen_range(next..frees.len());
            frees.swap(next, other);
            self.change(|state| frees[next](state, pid));
        }
    }

    pub(super) fn is_killed(&self, pid: Pid) -> bool {
        self.lock().is_killed(pid)
    }

    pub(super) fn disk(&self) -> Disk {
        self.lock().disk.clone()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(super) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.lock());
        self.changed.notify_all();
        changed
    }

    pub(super) fn happens(&self, chance: f64) -> bool {
        self.is_slow && thread_rng().gen_bool(chance)
    }
}

impl State {
    fn free_lock(&mut self, pid: Pid) {
        if self.lock == Some(pid) {
            self.lock = None;
        }
    }

    fn free_listeners(&mut self, pid: Pid) {
        for number in 0..self.listeners.len() {
            if self.listeners[number].pid == pid {
                self.end_listener(number);
            }
        }
    }

    /// Closes a listener with the connections that it has not accepted.
    pub(super) fn end_listener(&mut self, number: usize) {
        let listener = &mut self.listeners[number];
        (listener.is_open, listener.accepts) = (false, false);
        let waiting = |pipe: &&mut Pipe| pipe.listener == number && !pipe.accepted;
        self.pipes.iter_mut().filter(waiting).for_each(|pipe| pipe.closed = true);
    }

    fn free_pipes(&mut self, pid: Pid) {
        for pipe in &mut self.pipes {
            pipe.closed |= pipe.owner == pid && pipe.accepted;
            pipe.left |= pipe.client == pid;
        }
    }

    /// Whether a process is killed.
    pub(super) fn is_killed(&self, pid: Pid) -> bool {
        self.killed.contains(&pid)
    }

    /// The connections that a listener has accepted.
    pub(super) fn served(&mut self, listener: usize) -> impl Iterator<Item = &mut Pipe> {
        self.pipes.iter_mut().filter(move |pipe| pipe.listener == listener && pipe.accepted)
    }
}
