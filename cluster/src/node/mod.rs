//! A node: it keeps a copy of a shard, and leads it or follows who does.
//!
//! A thread looks at the journal: it applies what is new, renews the lead or takes one that has ended, and opens the
//! copy again when the role changes. What decides who leads is the journal.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use grainstore::journal::{
    CommitPosition, Head, Journal, Lead, ShardId, ShardStatus, invalid, not_leader,
};
use grainstore::{Error, ErrorKind, OpenOptions, Result, Store};

/// Looks at a journal in which nothing came, after which it is looked at less often.
const QUIET_LOOKS: u32 = 100;

/// The role of a node.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum NodeRole {
    /// It writes.
    Leader {
        /// Its lead.
        epoch: u64,
    },
    /// It reads what the leader wrote.
    Follower {
        /// The name of the leader; `None` while there is none.
        leader: Option<String>,
    },
    /// It changes its role, or has not begun.
    Changing,
    /// It cannot serve, and is tried again: the journal is not reached, for instance.
    Waiting(Error),
    /// It serves no more until somebody decides: its copy has what the journal has not (`ERR_DIVERGED`), or is
    /// damaged.
    Stopped(Error),
}

impl NodeRole {
    /// Its name: `leader`, `follower`, `changing`, `waiting` or `stopped`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Leader { .. } => "leader",
            Self::Follower { .. } => "follower",
            Self::Changing => "changing",
            Self::Waiting(_) => "waiting",
            Self::Stopped(_) => "stopped",
        }
    }
}

/// What a host does with the copy of its node: serve it to other processes, for instance.
pub trait Attendant: std::fmt::Debug + Send + Sync {
    /// The copy was opened in a role.
    fn opened(&self, store: &Store, role: &NodeRole);

    /// The copy is closed next, or cannot be opened: nothing of it may be used any more. The shard waits for this to
    /// return: what is still asked of the copy then ends with `ERR_IO`.
    fn closing(&self, role: &NodeRole);

    /// Another node leads what this one follows, or nobody does; the copy stays open.
    fn leader_changed(&self, _store: &Store, _role: &NodeRole) {}

    /// The journal is not reached since now, and why; or it is reached again. The copy stays open.
    fn journal_reached(&self, _failed: Option<&Error>) {}
}

/// Options of a [`Node`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct NodeOptions {
    /// The name of the node, another for each.
    pub name: String,
    /// The directory of its copy.
    pub path: PathBuf,
    /// How the copy is opened.
    pub open: OpenOptions,
    /// The shard.
    pub shard: ShardId,
    /// True if it may lead. One that may not follows only.
    pub leads: bool,
    /// Time after which others may take the lead of a node that is gone. 5 seconds by default.
    pub lease: Duration,
    /// Time between two looks at the journal of a follower. 10 milliseconds by default; four times that while nothing
    /// comes.
    pub poll: Duration,
    /// Time for which a write waits for a journal that is not reached, before it is in doubt. 10 seconds by default.
    pub patience: Duration,
    /// Who is told of the copy. Nobody by default.
    pub attendant: Option<Arc<dyn Attendant>>,
}

impl NodeOptions {
    /// The defaults of a node of shard 1 with its copy in a directory.
    #[must_use]
    pub fn new(name: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            path: path.into(),
            open: OpenOptions::new(),
            shard: ShardId(1),
            leads: true,
            lease: Duration::from_secs(5),
            poll: Duration::from_millis(10),
            patience: Duration::from_secs(10),
            attendant: None,
        }
    }
}

/// A node that runs. Dropping it stops it.
#[derive(Debug)]
pub struct Node {
    shared: Arc<Shared>,
    runs: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    options: NodeOptions,
    journal: Arc<dyn Journal>,
    state: Mutex<State>,
    /// Told of each change of the role.
    changed: Condvar,
    stops: AtomicBool,
    /// True unless the journal was not reached when it was last looked at.
    reached: AtomicBool,
}

#[derive(Debug)]
struct State {
    role: NodeRole,
    store: Option<Store>,
}

/// A copy that is open, and the lead if it has one.
struct Opened {
    store: Store,
    lead: Option<Held>,
}

/// How long nothing came that a copy follows.
#[derive(Default)]
struct Quiet {
    at: Option<CommitPosition>,
    looks: u32,
}

impl Quiet {
    /// Time to the next look at the journal: longer where nothing came for a second or so.
    fn pause(&mut self, opened: Option<&Opened>, poll: Duration) -> Duration {
        let at = opened.and_then(|copy| copy.store.position().ok().flatten());
        self.looks = if at == self.at { self.looks.saturating_add(1) } else { 0 };
        self.at = at;
        if self.looks > QUIET_LOOKS { poll.saturating_mul(4) } else { poll }
    }
}

/// A lead, and when it was renewed, or that was tried.
struct Held {
    lead: Lead,
    tried: Instant,
    /// Time after that in which it is renewed again.
    pause: Duration,
}

impl Held {
    fn new(lead: Lead, pause: Duration) -> Self {
        Self { lead, tried: Instant::now(), pause }
    }
}

impl Node {
    /// Starts a node. It returns at once; [`Node::store`] waits for it.
    ///
    /// # Errors
    /// `ERR_SCHEMA` for an empty name; `ERR_IO` if there is no thread for it.
    pub fn start(options: NodeOptions, journal: Arc<dyn Journal>) -> Result<Self> {
        if options.name.trim().is_empty() {
            return Err(invalid("a node has no name", "give each node another name"));
        }
        let state = Mutex::new(State { role: NodeRole::Changing, store: None });
        let (changed, stops, reached) =
            (Condvar::new(), AtomicBool::new(false), AtomicBool::new(true));
        let shared = Arc::new(Shared { options, journal, state, changed, stops, reached });
        let running = Arc::clone(&shared);
        let runs = thread::Builder::new().name("grainstore-node".to_owned());
        let runs = runs.spawn(move || running.run())?;
        Ok(Self { shared, runs: Some(runs) })
    }

    /// The role it has now.
    #[must_use]
    pub fn role(&self) -> NodeRole {
        let role = self.shared.lock().role.clone();
        match &self.runs {
            Some(runs) if runs.is_finished() && !matches!(role, NodeRole::Stopped(_)) => {
                NodeRole::Stopped(Error::from(std::io::Error::other("the node's thread has ended")))
            }
            _ => role,
        }
    }

    /// The open copy, as leader or follower, waited for while the role changes. A handle ends with the role: ask
    /// again after `ERR_FENCED`, `ERR_IN_DOUBT`, `ERR_NOT_LEADER` and an `ERR_IO` of a store that is closed.
    ///
    /// # Errors
    /// `ERR_TIMEOUT` if the role lasts to change for longer than `patience`; why it waits or has stopped otherwise,
    /// `ERR_DIVERGED` for instance.
    pub fn store(&self, patience: Duration) -> Result<Store> {
        self.wait(patience, |_| true)
    }

    /// The copy once it leads.
    ///
    /// # Errors
    /// As [`Node::store`]; `ERR_NOT_LEADER` if it follows for longer than `patience`.
    pub fn leading_store(&self, patience: Duration) -> Result<Store> {
        self.wait(patience, |role| matches!(role, NodeRole::Leader { .. }))
    }

    /// Waits until reads of this node see a commit that any node acknowledged.
    ///
    /// # Errors
    /// As [`Store::wait_for`] and [`Node::store`].
    pub fn wait_for(&self, position: CommitPosition, patience: Duration) -> Result<()> {
        self.store(patience)?.wait_for(position, patience)
    }

    /// Stops it: it closes its copy, and gives its lead back.
    pub fn stop(mut self) {
        self.end();
    }

    fn wait(&self, patience: Duration, suits: impl Fn(&NodeRole) -> bool) -> Result<Store> {
        let began = Instant::now();
        let mut state = self.shared.lock();
        loop {
            if let Some(store) = state.store.as_ref().filter(|_| suits(&state.role)) {
                return Ok(store.clone());
            }
            if let NodeRole::Stopped(error) = &state.role {
                return Err(error.clone());
            }
            let left = patience.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Err(match &state.role {
                    NodeRole::Waiting(error) => error.clone(),
                    NodeRole::Follower { leader } => {
                        not_leader(self.shared.options.shard, leader.as_deref())
                    }
                    _ => Error::timeout("this node changes its role"),
                });
            }
            let waited = self.shared.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn end(&mut self) {
        self.shared.stops.store(true, Ordering::SeqCst);
        if let Some(runs) = self.runs.take() {
            // One that panicked has closed its copy all the same.
            let _ = runs.join();
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, role: &NodeRole, store: Option<&Store>) {
        *self.lock() = State { role: role.clone(), store: store.cloned() };
        self.changed.notify_all();
        match (&self.options.attendant, store) {
            (Some(attendant), Some(store)) => attendant.opened(store, role),
            (Some(attendant), None) => attendant.closing(role),
            (None, _) => {}
        }
    }

    fn stops(&self) -> bool {
        self.stops.load(Ordering::SeqCst)
    }

    /// Runs until it is stopped, or must not go on.
    fn run(&self) {
        let mut opened: Option<Opened> = None;
        let mut wait = self.options.poll;
        let mut quiet = Quiet::default();
        while !self.stops() {
            let step = match opened.take() {
                None => self.open(),
                Some(copy) => self.step(copy),
            };
            match step {
                Ok(next) => {
                    wait = quiet.pause(next.as_ref(), self.options.poll);
                    opened = next;
                }
                Err(error) if is_final(&error) => {
                    self.set(&NodeRole::Stopped(error), None);
                    return;
                }
                Err(error) => {
                    self.set(&NodeRole::Waiting(error), None);
                    wait = wait.saturating_mul(2).min(Duration::from_secs(1));
                }
            }
            thread::sleep(wait);
        }
        self.set(&NodeRole::Changing, None);
        if let Some(copy) = opened {
            self.close(copy);
        }
    }

    /// Opens the copy to follow, or to lead a shard that has no records. One that has some is led once the copy is at
    /// their end: it may have much to read, and others none of it.
    fn open(&self) -> Result<Option<Opened>> {
        let status = self.journal.status(self.options.shard)?;
        let lead = match status.head == Head::EMPTY {
            true => self.take_lead(&status)?,
            false => None,
        };
        self.open_as(lead, leader_of(&status))
    }

    /// Takes the lead if nobody has it, and this node may.
    fn take_lead(&self, status: &ShardStatus) -> Result<Option<Lead>> {
        let NodeOptions { name, shard, leads, lease, .. } = &self.options;
        if !leads || !status.may_be_taken(*lease) {
            return Ok(None);
        }
        match self.journal.lead(*shard, name, *lease) {
            // Another was faster.
            Err(busy) if busy.kind() == ErrorKind::Busy => Ok(None),
            taken => taken.map(Some),
        }
    }

    /// Opens the copy, to lead with a lead or else to follow who leads.
    fn open_as(&self, lead: Option<Lead>, leader: Option<String>) -> Result<Option<Opened>> {
        let NodeOptions { path, open, shard, patience, .. } = &self.options;
        let (journal, open) = (Arc::clone(&self.journal), open.clone().create(true));
        let options = match &lead {
            Some(lead) => open.leading(journal, lead.clone(), *patience),
            None => open.following(journal, *shard),
        };
        // Opening may last for longer than the lease: it may have much to read.
        let opened = self.keeping(lead.as_ref(), || {
            let store = Store::open(path, &options)?;
            match store.renew_lead() {
                // An append says whether it still leads, and it is renewed soon.
                Err(failed) if failed.kind() != ErrorKind::Io => Err(failed),
                _ => Ok(store),
            }
        });
        let store = match opened {
            Ok(store) => store,
            Err(failed) => {
                if let Some(lead) = &lead {
                    let _ = self.journal.release(lead);
                }
                return Err(failed);
            }
        };
        let role = match &lead {
            Some(lead) => NodeRole::Leader { epoch: lead.epoch },
            None => NodeRole::Follower { leader },
        };
        self.set(&role, Some(&store));
        let lead = lead.map(|lead| Held::new(lead, self.pause_after(true)));
        Ok(Some(Opened { store, lead }))
    }

    /// Time until a lead is renewed again: less where that has just failed.
    fn pause_after(&self, renewed: bool) -> Duration {
        self.options.lease / if renewed { 4 } else { 16 }
    }

    /// Does something, and renews a lead meanwhile.
    fn keeping<T: Send>(&self, lead: Option<&Lead>, work: impl FnOnce() -> T) -> T {
        let Some(lead) = lead else { return work() };
        let (done, ended) = channel::<()>();
        thread::scope(|scope| {
            let renews = move || {
                while ended.recv_timeout(self.options.lease / 4) == Err(RecvTimeoutError::Timeout) {
                    // What comes of it is asked for when the work is done.
                    let _ = self.journal.renew(lead);
                }
            };
            scope.spawn(renews);
            let made = work();
            drop(done);
            made
        })
    }

    /// Does what is due. `None` once the copy is closed, to be opened in another role.
    fn step(&self, copy: Opened) -> Result<Option<Opened>> {
        match copy.lead {
            Some(held) => self.lead(copy.store, held),
            None => self.follow(copy.store),
        }
    }

    fn lead(&self, store: Store, mut held: Held) -> Result<Option<Opened>> {
        let stopped = store.stopped().is_some();
        // One that its host closed, or whose writer is gone, cannot read either.
        let mut is_lost = stopped && store.position().is_err();
        if !is_lost && (stopped || held.tried.elapsed() >= held.pause) {
            let renewed = store.renew_lead();
            self.note_reached(renewed.as_ref().err());
            held = Held::new(held.lead, self.pause_after(renewed.is_ok()));
            is_lost = match renewed {
                Ok(()) => stopped,
                // It reads on while the journal is not reached, and who writes is told.
                Err(failed) => failed.kind() != ErrorKind::Io,
            };
        }
        let copy = Opened { store, lead: Some(held) };
        if is_lost {
            self.set(&NodeRole::Changing, None);
            self.close(copy);
            return Ok(None);
        }
        Ok(Some(copy))
    }

    fn follow(&self, store: Store) -> Result<Option<Opened>> {
        let lead = match self.look(&store) {
            Ok(lead) => lead,
            // It reads on while the journal is not reached.
            Err(failed) if failed.kind() == ErrorKind::Io && store.stopped().is_none() => None,
            Err(failed) => {
                self.set(&NodeRole::Changing, None);
                self.close(Opened { store, lead: None });
                return Err(failed);
            }
        };
        if lead.is_none() {
            return Ok(Some(Opened { store, lead: None }));
        }
        // What is asked of the copy is answered first, which takes a while.
        self.keeping(lead.as_ref(), || {
            self.set(&NodeRole::Changing, None);
            self.close(Opened { store, lead: None });
        });
        self.open_as(lead, None)
    }

    /// Reads what is new in the journal, and takes the lead if nobody has it.
    fn look(&self, store: &Store) -> Result<Option<Lead>> {
        let followed = store.follow_status();
        self.note_reached(followed.as_ref().err());
        let Some((_, status)) = followed? else { return Ok(None) };
        let lead = self.take_lead(&status)?;
        let leader = leader_of(&status);
        let mut state = self.lock();
        if lead.is_none()
            && matches!(&state.role, NodeRole::Follower { leader: known } if *known != leader)
        {
            state.role = NodeRole::Follower { leader };
            let role = state.role.clone();
            drop(state);
            if let Some(attendant) = &self.options.attendant {
                attendant.leader_changed(store, &role);
            }
        }
        Ok(lead)
    }

    /// Tells when the journal is not reached any more, and when it is again.
    fn note_reached(&self, failed: Option<&Error>) {
        let failed = failed.filter(|failed| failed.kind() == ErrorKind::Io);
        let is_reached = failed.is_none();
        if self.reached.swap(is_reached, Ordering::SeqCst) != is_reached
            && let Some(attendant) = &self.options.attendant
        {
            attendant.journal_reached(failed);
        }
    }

    /// Closes a copy, and gives its lead back. What fails here is in the journal, or is met when it is opened.
    fn close(&self, Opened { store, lead }: Opened) {
        let _ = store.close();
        if let Some(Held { lead, .. }) = lead {
            let _ = self.journal.release(&lead);
        }
    }
}

/// Who leads, if somebody does.
fn leader_of(status: &ShardStatus) -> Option<String> {
    status.leader.clone().filter(|_| !status.is_free())
}

/// Returns `true` if trying again does not help.
fn is_final(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Diverged | ErrorKind::StoreVersion | ErrorKind::Policy | ErrorKind::Format(_)
    )
}
