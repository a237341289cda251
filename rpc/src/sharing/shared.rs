//! What all clients of one store in this process share: whether it is owned here, and how that changes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use grainstore::{ManualClock, OpenOptions, SessionOptions, Store};

use super::connection::Sought;
use super::joining::Joining;
use super::machine::{Machine, Mutex, MutexGuard, ThisMachine};
use super::service::Service;
use super::{ClientOptions, Hosting};
use crate::dids::SharedResolver;
use crate::error::{Code, Error, Result};

/// What to do about a store that is open elsewhere and cannot be shared.
pub(super) const BUSY_HINT: &str = "close the other process, or wait longer (wait_ms)";
/// The code of a store that is open elsewhere.
const BUSY: &str = "ERR_BUSY";
/// The code of a store that is written by its journal alone.
const NOT_LEADER: &str = "ERR_NOT_LEADER";
/// Time in which a node that changes its role opens its copy again.
const NODE_CHANGES: Duration = Duration::from_secs(3);
/// Time between two attempts to own the store or to join who does.
const TRY_EVERY: Duration = Duration::from_millis(5);

/// The store of a process, owned or joined.
pub(crate) struct Shared<M: Machine = ThisMachine> {
    path: PathBuf,
    open: OpenOptions,
    settings: BTreeMap<String, String>,
    resolver: Option<SharedResolver>,
    test_clock: Option<Arc<ManualClock>>,
    machine: M,
    /// The process that opened it: a fork of it has no store.
    process: u32,
    pub(super) created: bool,
    state: Mutex<State<M>>,
}

/// Where the store is open. The number grows whenever that changes.
struct State<M: Machine> {
    number: u64,
    owning: Owning<M>,
    /// The number that the store has for good, once it was open here or elsewhere.
    id: Option<M::Id>,
}

enum Owning<M: Machine> {
    Here { store: M::Store, service: std::result::Result<M::Service, Alone> },
    There { pid: u32, offered: M::Offered },
    Closed,
}

/// Why a process that has a store open serves no others.
#[derive(Debug, Clone)]
pub(crate) enum Alone {
    /// It is meant to.
    Meant,
    /// It cannot listen.
    Unable(String),
}

/// Where a request is to be done.
pub(super) enum Place<M: Machine> {
    Here(u64, M::Store),
    There(u64),
}

/// A connection that joined, and the number of the joining.
pub(super) type Joined<M> = (u64, Box<<M as Machine>::Connection>);

impl<M: Machine> Drop for Shared<M> {
    /// A fork leaves alone what is its parent's: threads that it does not have, and the socket.
    fn drop(&mut self) {
        if std::process::id() != self.process {
            let owning = std::mem::replace(&mut self.lock().owning, Owning::Closed);
            std::mem::forget(owning);
        }
    }
}

impl<M: Machine> std::fmt::Debug for Shared<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.path.display())
    }
}

impl<M: Machine> Shared<M> {
    /// Opens a store, or joins who has it open.
    pub(super) fn open(
        path: &Path,
        options: ClientOptions,
        machine: M,
    ) -> Result<(Self, Option<Joined<M>>)> {
        let ClientOptions { mut open, session, exclusive, mut settings, resolver, test_clock } =
            options;
        if let Some(resolver) = &resolver {
            open = open.resolver(Arc::clone(resolver));
        }
        if let Some(clock) = &test_clock {
            open = open.clock(Arc::<ManualClock>::clone(clock));
        }
        if test_clock.is_some() {
            settings.insert("test_clock".to_owned(), true.to_string());
        }
        let of_store = open.settings().into_iter();
        let of_store = of_store.map(|(name, value)| (name.to_owned(), value));
        let settings = of_store.chain(settings).collect();
        let process = std::process::id();
        let state = Mutex::new(State { number: 0, owning: Owning::Closed, id: None });
        // What the current directory is later plays no part.
        let named = path;
        let path = std::path::absolute(named).unwrap_or_else(|_| named.to_owned());
        let created = false;
        let mut shared =
            Self { path, open, settings, resolver, test_clock, machine, process, created, state };
        if exclusive {
            let store = shared.machine.open(named, &shared.open)?;
            shared.created = M::was_created(&store);
            shared.lock().owning = Owning::Here { store, service: Err(Alone::Meant) };
            return Ok((shared, None));
        }
        let until = shared.machine.now() + shared.open.wait_time();
        let joined = shared.own_or_join(0, (named, &shared.open), &session, until)?;
        shared.created = shared.owned().is_some_and(|store| M::was_created(&store));
        Ok((shared, joined))
    }

    fn lock(&self) -> MutexGuard<'_, State<M>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns where the store is open, as far as is known.
    ///
    /// # Errors
    /// `ERR_IO` in a fork of the process that opened it, and once it is closed.
    pub(super) fn place(&self) -> Result<Place<M>> {
        self.check_process()?;
        let state = self.lock();
        match &state.owning {
            Owning::Here { store, .. } => Ok(Place::Here(state.number, store.clone())),
            Owning::There { .. } => Ok(Place::There(state.number)),
            Owning::Closed => Err(Error::new(Code::Io, "the store is closed", "open it again")),
        }
    }

    /// Refuses to work in a fork of the process that opened the store.
    fn check_process(&self) -> Result<()> {
        if std::process::id() == self.process {
            return Ok(());
        }
        let message =
            format!("this process is a fork of process {}, which opened the store", self.process);
        Err(Error::new(Code::Io, message, "open the store after the fork"))
    }

    pub(super) fn owned(&self) -> Option<M::Store> {
        match &self.lock().owning {
            Owning::Here { store, .. } => Some(store.clone()),
            _ => None,
        }
    }

    pub(super) fn owner(&self) -> Option<u32> {
        match &self.lock().owning {
            Owning::There { pid, .. } => Some(*pid),
            _ => None,
        }
    }

    pub(super) fn served(&self) -> usize {
        match &self.lock().owning {
            Owning::Here { service: Ok(service), .. } => M::connections(service),
            _ => 0,
        }
    }

    /// Why others cannot use the store while this process has it open; `None` if they can, or are not meant to.
    pub(super) fn alone(&self) -> Option<String> {
        match &self.lock().owning {
            Owning::Here { service: Err(Alone::Unable(why)), .. } => Some(why.clone()),
            _ => None,
        }
    }

    pub(super) fn now(&self) -> Instant {
        self.machine.now()
    }

    pub(super) fn resolver(&self) -> Option<SharedResolver> {
        self.resolver.clone()
    }

    /// Connects to the owner, or becomes it where that has ended. `None` if a request has to look again where the
    /// store is open. `number` is that of what was known.
    pub(super) fn settle(
        &self,
        number: u64,
        session: &SessionOptions,
        until: Instant,
    ) -> Result<Option<Joined<M>>> {
        // Nobody waits for another's connection: no lock is held meanwhile.
        if let Sought::Joined(connection) =
            self.machine.join(&self.joining(&self.open, session), until)?
        {
            let mut state = self.lock();
            if state.number != number || !matches!(state.owning, Owning::There { .. }) {
                return Ok(None);
            }
            self.joined(&mut state, &connection, (&self.open, session), until)?;
            return Ok(Some((number, connection)));
        }
        let open = self.open.clone().create(false);
        self.own_or_join(number, (&self.path, &open), session, until)
    }

    /// Opens the store, or joins who does, whatever comes first. `None` once it is open here, or if where it is open
    /// is no longer what it was by that number.
    fn own_or_join(
        &self,
        number: u64,
        (path, open): (&Path, &OpenOptions),
        session: &SessionOptions,
        until: Instant,
    ) -> Result<Option<Joined<M>>> {
        let (at_once, waited) = (open.clone().wait(Duration::ZERO), self.machine.now());
        loop {
            match self.own(number, (path, &at_once)) {
                Ok(true) => return Ok(None),
                Ok(false) => {}
                // A node opens its copy again when its role changes.
                Err(error)
                    if is_of_node(&error)
                        && self.machine.now() < until.min(waited + NODE_CHANGES) => {}
                Err(error) => return Err(error),
            }
            if let Sought::Joined(connection) =
                self.machine.join(&self.joining(open, session), until)?
            {
                let mut state = self.lock();
                if state.number != number {
                    return Ok(None);
                }
                self.joined(&mut state, &connection, (open, session), until)?;
                state.number += 1;
                return Ok(Some((state.number, connection)));
            }
            let now = self.machine.now();
            if now >= until {
                let message = format!(
                    "the store at {} is open elsewhere; close it there, or wait longer than {} ms",
                    path.display(),
                    (now - waited).as_millis()
                );
                return Err(Error::refused(BUSY, message, BUSY_HINT));
            }
            self.machine.pause(TRY_EVERY);
        }
    }

    /// Opens the store if nobody has it open. Returns `true` if there is no more to do: it is open here, or where it is
    /// open is no longer what it was by that number.
    fn own(&self, number: u64, (path, open): (&Path, &OpenOptions)) -> Result<bool> {
        let mut state = self.lock();
        if state.number != number {
            return Ok(true);
        }
        let store = match self.machine.open(path, open) {
            Ok(store) => store,
            Err(error) if is_busy(&error) => return Ok(false),
            Err(error) => return Err(error),
        };
        let id = M::id(&store)?;
        if let Err(error) = self.check_id(&state, &id) {
            M::close(&store)?;
            return Err(error);
        }
        let service = M::serve(self, &store);
        *state =
            State { number: number + 1, owning: Owning::Here { store, service }, id: Some(id) };
        Ok(true)
    }

    /// Notes who has the store open, and offers it the embedder of the options, once.
    fn joined(
        &self,
        state: &mut State<M>,
        connection: &M::Connection,
        (open, session): (&OpenOptions, &SessionOptions),
        until: Instant,
    ) -> Result<()> {
        let id = M::id_there(connection);
        self.check_id(state, &id)?;
        state.id = Some(id);
        if matches!(&state.owning, Owning::There { offered, .. } if M::holds(offered, connection)) {
            return Ok(());
        }
        let offered = self.machine.offer(&self.joining(open, session), until)?;
        state.owning = Owning::There { pid: M::pid(connection), offered };
        Ok(())
    }

    /// Refuses a store that has taken the place of the one that was opened.
    fn check_id(&self, state: &State<M>, id: &M::Id) -> Result<()> {
        match &state.id {
            Some(known) if known != id => {
                let message = format!("the store at {} is another one by now", self.path.display());
                Err(Error::new(Code::Conflict, message, "open it again"))
            }
            _ => Ok(()),
        }
    }

    fn joining<'s>(&'s self, open: &'s OpenOptions, session: &'s SessionOptions) -> Joining<'s> {
        Joining { directory: &self.path, open, settings: &self.settings, session }
    }
}

impl Shared {
    /// Listens for other processes. Where that is not possible, as on a file system without sockets, this process
    /// has the store alone.
    pub(super) fn serve(&self, store: &Store) -> std::result::Result<Service, Alone> {
        if store.is_read_only() {
            return Err(Alone::Meant);
        }
        let hosting = Hosting {
            store: store.clone(),
            settings: self.settings.clone(),
            resolver: self.resolver.clone(),
            test_clock: self.test_clock.clone(),
        };
        let service = Service::start(&self.path, hosting, self.machine.converse);
        service.map_err(|error| Alone::Unable(format!("no socket in its directory: {error}")))
    }
}

impl<M: Machine> Shared<M> {
    /// Closes the store, once what other processes asked is answered; see [`Service::stop`].
    pub(super) fn close(&self, tell: &mut dyn FnMut(usize)) -> Result<()> {
        self.check_process()?;
        let mut state = self.lock();
        state.number += 1;
        match std::mem::replace(&mut state.owning, Owning::Closed) {
            Owning::Here { store, service } => {
                if let Ok(mut service) = service {
                    M::stop(&mut service, tell);
                }
                M::close(&store)
            }
            _ => Ok(()),
        }
    }
}

/// Whether a store is the copy of a shard, which its node opens.
fn is_of_node(error: &Error) -> bool {
    error.refusal().is_some_and(|refusal| refusal.code == NOT_LEADER)
}

/// Whether a store is open elsewhere.
fn is_busy(error: &Error) -> bool {
    error.refusal().is_some_and(|refusal| refusal.code == BUSY)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fork has another number; here the number is changed instead.
    #[test]
    fn a_fork_has_no_store_and_leaves_that_of_its_parent() {
        let dir = tempfile::tempdir().unwrap();
        let open = OpenOptions::new().create(true);
        let options = ClientOptions::new(open, SessionOptions::default());
        let machine = ThisMachine { converse: |_| Ok(()) };
        let (mut shared, _) = Shared::open(dir.path(), options, machine).unwrap();
        shared.process += 1;
        assert!(shared.place().is_err_and(|error| error.has_code(Code::Io)));
        assert!(shared.close(&mut |_| {}).is_err_and(|error| error.has_code(Code::Io)));
        drop(shared);
        assert_eq!(dir.path().join("socket").exists(), cfg!(target_os = "linux"));
    }
}
