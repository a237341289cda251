//! One store for several processes: the first to open it owns it and serves the others, which relay to it.
//!
//! - `shared`: owning or joining, and taking over from an owner that has ended.
//! - `service`, `watched`: the owner's side. `joining`, `connection`: the relay's. `greeting`, `socket`: of both.
//! - `embedding`: embedders of relays, which the owner asks.
//! - `in_doubt`: requests that were lost with their owner. `request_line`: a request as a line.
//! - `machine`: what these need of the machine, which a test simulates (`take_over`).

#[cfg(target_os = "linux")]
mod connection;
#[cfg(target_os = "linux")]
mod embedding;
#[cfg(target_os = "linux")]
mod greeting;
mod in_doubt;
#[cfg(target_os = "linux")]
mod joining;
mod machine;
mod request_line;
#[cfg(target_os = "linux")]
mod service;
mod shared;
#[cfg(target_os = "linux")]
mod socket;
#[cfg(shuttle)]
#[cfg(test)]
mod take_over;
#[cfg(not(target_os = "linux"))]
mod unshared;
#[cfg(target_os = "linux")]
mod watched;
#[cfg(not(target_os = "linux"))]
use unshared as connection;
#[cfg(not(target_os = "linux"))]
use unshared as embedding;
#[cfg(not(target_os = "linux"))]
use unshared as joining;
#[cfg(not(target_os = "linux"))]
use unshared as service;

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use grainstore::cal::CancelHandle;
use grainstore::{ManualClock, OpenOptions, Session, SessionOptions, Store};

pub(crate) use self::connection::Lost;
use self::in_doubt::{in_doubt, is_reading, is_repeatable};
use self::machine::{Machine, Mutex, ThisMachine};
pub(crate) use self::request_line::Call;
pub(crate) use self::service::Service;
use self::shared::{Place, Shared};
use crate::dids::SharedResolver;
use crate::error::{Error, Result};

/// Time that a request waits for a new owner where the one that it asked has ended.
const TAKE_OVER: Duration = Duration::from_secs(30);

/// Connections of a client that stay open while it asks nothing.
const MAX_IDLE: usize = 4;

/// How a [`Client`](crate::Client) opens a store.
#[derive(Clone, Default)]
pub struct ClientOptions {
    /// The options of the store. A process that owns it already must have the same
    /// [settings](OpenOptions::settings).
    pub open: OpenOptions,
    /// Who asks.
    pub session: SessionOptions,
    /// Opens the store for this process alone, as [`Store::open`] does.
    pub exclusive: bool,
    /// More settings that all processes must agree on, by name, such as the file of DID documents.
    pub settings: BTreeMap<String, String>,
    /// What resolves DIDs, where this process owns the store.
    pub resolver: Option<SharedResolver>,
    /// The clock of a test, where this process owns the store; all processes have one then, and set the owner's.
    pub test_clock: Option<Arc<ManualClock>>,
}

impl std::fmt::Debug for ClientOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ClientOptions({:?}, exclusive: {})", self.session, self.exclusive)
    }
}

impl ClientOptions {
    /// These options of a store, and a session of it.
    ///
    /// ```
    /// use grainstore::{OpenOptions, SessionOptions};
    /// use grainstore_rpc::ClientOptions;
    ///
    /// let options = ClientOptions::new(OpenOptions::new().create(true), SessionOptions::default());
    /// assert!(!options.exclusive);
    /// ```
    #[must_use]
    pub fn new(open: OpenOptions, session: SessionOptions) -> Self {
        Self { open, session, ..Self::default() }
    }
}

/// What a process that owns a store serves others with.
pub(crate) struct Hosting {
    pub(crate) store: Store,
    pub(crate) settings: BTreeMap<String, String>,
    pub(crate) resolver: Option<SharedResolver>,
    pub(crate) test_clock: Option<Arc<ManualClock>>,
}

/// Makes the handle that cancels the next request of a connection.
pub(crate) type NewCancel = Box<dyn Fn() -> CancelHandle + Send>;

/// A connection of another process that has joined.
pub(crate) struct Conversation<'c> {
    pub(crate) session: Session,
    pub(crate) hosting: &'c Hosting,
    pub(crate) cancels: NewCancel,
    pub(crate) requests: &'c mut dyn BufRead,
    pub(crate) responses: &'c mut dyn Write,
}

/// Answers the requests of another process until it ends.
pub(crate) type Converse = fn(Conversation<'_>) -> Result<()>;

/// Begins to serve a store that is open here to other processes.
///
/// # Errors
/// Of the system, if its directory can have no socket.
pub(crate) fn serve_open(
    store: &Store,
    settings: BTreeMap<String, String>,
    converse: Converse,
) -> std::io::Result<Service> {
    let (resolver, test_clock) = (None, None);
    let hosting = Hosting { store: store.clone(), settings, resolver, test_clock };
    Service::start(store.path(), hosting, converse)
}

/// What the clones of a client share.
struct Own<M: Machine> {
    /// The session where this process owns the store, and the number of the owning.
    session: Mutex<Option<(u64, M::Session)>>,
    /// Connections that wait for a request, with the number of the joining.
    idle: Mutex<Vec<(u64, M::Connection)>>,
}

impl<M: Machine> Default for Own<M> {
    fn default() -> Self {
        Self { session: Mutex::new(None), idle: Mutex::new(Vec::new()) }
    }
}

/// A store that this process owns or has joined, and a session of it. Cheap to clone.
#[derive(Clone)]
pub(crate) struct SharedStore<M: Machine = ThisMachine> {
    shared: Arc<Shared<M>>,
    session: SessionOptions,
    own: Arc<Own<M>>,
}

impl<M: Machine> std::fmt::Debug for SharedStore<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}, {:?}", self.shared, self.session)
    }
}

impl SharedStore {
    /// Opens the store in a directory, or joins the process that has it open. `converse` answers others, where it
    /// is open here.
    pub(crate) fn open(path: &Path, options: ClientOptions, converse: Converse) -> Result<Self> {
        Self::open_on(ThisMachine { converse }, path, options)
    }

    /// The store, where this process owns it at present.
    pub(crate) fn owned(&self) -> Option<Store> {
        self.shared.owned()
    }
}

impl<M: Machine> SharedStore<M> {
    /// As [`SharedStore::open`], on a machine.
    fn open_on(machine: M, path: &Path, options: ClientOptions) -> Result<Self> {
        let session = options.session.clone();
        let (shared, joined) = Shared::open(path, options, machine)?;
        let own = Own::default();
        if let Some((number, connection)) = joined {
            own.idle.lock().unwrap_or_else(PoisonError::into_inner).push((number, *connection));
        }
        Ok(Self { shared: Arc::new(shared), session, own: Arc::new(own) })
    }

    /// Returns a client of the same store with another session.
    pub(crate) fn with_session(&self, session: SessionOptions) -> Self {
        Self { shared: Arc::clone(&self.shared), session, own: Arc::default() }
    }

    /// Returns `true` if the store was created when it was opened.
    pub(crate) fn has_created(&self) -> bool {
        self.shared.created
    }

    /// The session of this client, where this process owns the store at present.
    pub(crate) fn owned_session(&self) -> Option<M::Session> {
        match self.shared.place() {
            Ok(Place::Here(number, store)) => Some(self.session_on(number, &store)),
            _ => None,
        }
    }

    /// The process that owned the store when it was last looked for; `None` if it is this one.
    pub(crate) fn owner(&self) -> Option<u32> {
        self.shared.owner()
    }

    /// Closes the store for all clones; see [`Client::close_telling`](crate::Client::close_telling).
    pub(crate) fn close(&self, tell: &mut dyn FnMut(usize)) -> Result<()> {
        self.own.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
        *self.own.session.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.shared.close(tell)
    }

    /// Why others cannot use the store while this process has it open; see [`Client::unshared`](crate::Client::unshared).
    pub(crate) fn unshared(&self) -> Option<String> {
        self.shared.alone()
    }

    /// Number of connections of other processes that this one serves at present.
    pub(crate) fn served(&self) -> usize {
        self.shared.served()
    }

    /// Runs a request here, where this process owns the store, or sends it where another does.
    pub(crate) fn with<T>(
        &self,
        request: &Call<'_>,
        mut here: impl FnMut(M::Session, Option<SharedResolver>) -> T,
        mut there: impl FnMut(&mut M::Connection, &[u8]) -> std::result::Result<T, Lost>,
    ) -> Result<T> {
        let (mut deadline, mut line) = (None, None);
        loop {
            let (number, mut connection) = match self.shared.place().map_err(Error::of_reach)? {
                Place::Here(number, store) => {
                    return Ok(here(self.session_on(number, &store), self.shared.resolver()));
                }
                Place::There(number) => match self.idle(number) {
                    Some(connection) => (number, connection),
                    None => {
                        let until = *deadline.get_or_insert_with(|| self.shared.now() + TAKE_OVER);
                        let settled = self.shared.settle(number, &self.session, until);
                        match settled.map_err(Error::of_reach)? {
                            Some((number, connection)) => (number, *connection),
                            None => continue,
                        }
                    }
                },
            };
            let line = match &mut line {
                Some(line) => line,
                none => none.insert(request.line()?),
            };
            let lost = match there(&mut connection, line) {
                Ok(answer) => {
                    self.park(number, connection);
                    return Ok(answer);
                }
                Err(lost) => lost,
            };
            let pid = M::pid(&connection);
            let is_repeatable = || is_repeatable(request.method, request.params);
            match lost {
                Lost::Listener(error) => return Err(error),
                Lost::Stuck => return Err(Error::owner_hangs(pid).of_reach()),
                Lost::Hangs if is_reading(request.method, request.params) => {
                    return Err(Error::owner_hangs(pid).of_reach());
                }
                Lost::Hangs => return Err(in_doubt(request.method, pid, "does not answer")),
                Lost::Unanswered if is_repeatable() => {}
                Lost::Unanswered => {
                    return Err(in_doubt(request.method, pid, "ended before it answered"));
                }
                Lost::Unsent => {}
            }
            let until = *deadline.get_or_insert_with(|| self.shared.now() + TAKE_OVER);
            if self.shared.now() > until {
                return Err(Error::owner_hangs(pid).of_reach());
            }
        }
    }

    /// The session of this client on the store that this process owns.
    fn session_on(&self, number: u64, store: &M::Store) -> M::Session {
        let mut own = self.own.session.lock().unwrap_or_else(PoisonError::into_inner);
        match &*own {
            Some((of, session)) if *of == number => session.clone(),
            _ => {
                let session = M::session(store, self.session.clone());
                *own = Some((number, session.clone()));
                session
            }
        }
    }

    /// Takes a connection that waits for a request; those to former owners end.
    fn idle(&self, number: u64) -> Option<M::Connection> {
        let mut idle = self.own.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|(of, _)| *of == number);
        idle.pop().map(|(_, connection)| connection)
    }

    fn park(&self, number: u64, connection: M::Connection) {
        let mut idle = self.own.idle.lock().unwrap_or_else(PoisonError::into_inner);
        // What many requests at once have opened is not kept open for ever.
        if idle.len() < MAX_IDLE {
            idle.push((number, connection));
        }
    }
}
