//! What all clients of one store in this process share: whether it is owned here, and how that changes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use grainstore::{ManualClock, OpenOptions, SessionOptions, Store};

use super::connection::{Connection, Sought};
use super::embedding::Offered;
use super::joining::Joining;
use super::service::Service;
use super::{ClientOptions, Converse, Hosting};
use crate::dids::SharedResolver;
use crate::error::{Code, Error, Result};

/// What to do about a store that is open elsewhere and cannot be shared.
pub(super) const BUSY_HINT: &str = "close the other process, or wait longer (wait_ms)";
/// Time between two attempts to own the store or to join who does.
const TRY_EVERY: Duration = Duration::from_millis(5);

/// The store of a process, owned or joined.
pub(super) struct Shared {
    path: PathBuf,
    open: OpenOptions,
    settings: BTreeMap<String, String>,
    resolver: Option<SharedResolver>,
    test_clock: Option<Arc<ManualClock>>,
    converse: Converse,
    /// The process that opened it: a fork of it has no store.
    process: u32,
    pub(super) created: bool,
    state: Mutex<State>,
}

/// Where the store is open. The number grows whenever that changes.
struct State {
    number: u64,
    owning: Owning,
}

enum Owning {
    Here { store: Store, service: Option<Service> },
    There { pid: u32, offered: Offered },
    Closed,
}

/// Where a request is to be done.
pub(super) enum Place {
    Here(u64, Store),
    There(u64),
}

/// A connection that joined, and the number of the joining.
pub(super) type Joined = (u64, Box<Connection>);

impl Drop for Shared {
    /// A fork leaves alone what is its parent's: threads that it does not have, and the socket.
    fn drop(&mut self) {
        if std::process::id() != self.process {
            let owning = std::mem::replace(&mut self.lock().owning, Owning::Closed);
            std::mem::forget(owning);
        }
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.path.display())
    }
}

impl Shared {
    /// Opens a store, or joins who has it open.
    pub(super) fn open(
        path: &Path,
        options: ClientOptions,
        converse: Converse,
    ) -> Result<(Self, Option<Joined>)> {
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
        let state = Mutex::new(State { number: 0, owning: Owning::Closed });
        // What the current directory is later plays no part.
        let named = path;
        let path = std::path::absolute(named).unwrap_or_else(|_| named.to_owned());
        let created = false;
        let mut shared =
            Self { path, open, settings, resolver, test_clock, converse, process, created, state };
        if exclusive {
            let store = Store::open(named, &shared.open).map_err(opening_error)?;
            shared.created = store.was_created();
            shared.lock().owning = Owning::Here { store, service: None };
            return Ok((shared, None));
        }
        let until = Instant::now() + shared.open.wait_time();
        let joined = {
            let mut state = shared.lock();
            shared.own_or_join(&mut state, (named, &shared.open), &session, until)?
        };
        shared.created = shared.owned().is_some_and(|store| store.was_created());
        Ok((shared, joined))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns where the store is open, as far as is known.
    ///
    /// # Errors
    /// `ERR_IO` in a fork of the process that opened it, and once it is closed.
    pub(super) fn place(&self) -> Result<Place> {
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

    pub(super) fn owned(&self) -> Option<Store> {
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
            Owning::Here { service: Some(service), .. } => service.connections(),
            _ => 0,
        }
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
    ) -> Result<Option<Joined>> {
        let mut state = self.lock();
        if state.number != number || !matches!(state.owning, Owning::There { .. }) {
            return Ok(None);
        }
        match Connection::join(&self.joining(&self.open, session), until)? {
            Sought::Joined(connection) => {
                self.joined(&mut state, &connection, (&self.open, session), until)?;
                return Ok(Some((number, connection)));
            }
            Sought::Nobody => {}
        }
        let open = self.open.clone().create(false);
        self.own_or_join(&mut state, (&self.path, &open), session, until)
    }

    /// Opens the store, or joins who does, whatever comes first.
    fn own_or_join(
        &self,
        state: &mut State,
        (path, open): (&Path, &OpenOptions),
        session: &SessionOptions,
        until: Instant,
    ) -> Result<Option<Joined>> {
        let (at_once, waited) = (open.clone().wait(Duration::ZERO), Instant::now());
        loop {
            let busy = match Store::open(path, &at_once) {
                Ok(store) => {
                    let service = self.serve(&store);
                    *state =
                        State { number: state.number + 1, owning: Owning::Here { store, service } };
                    return Ok(None);
                }
                Err(error) if error.code() == "ERR_BUSY" => error,
                Err(error) => return Err(opening_error(error)),
            };
            if let Sought::Joined(connection) =
                Connection::join(&self.joining(open, session), until)?
            {
                self.joined(state, &connection, (open, session), until)?;
                state.number += 1;
                return Ok(Some((state.number, connection)));
            }
            if Instant::now() >= until {
                let message = format!(
                    "the store at {} is open elsewhere; close it there, or wait longer than {} ms",
                    path.display(),
                    waited.elapsed().as_millis()
                );
                return Err(Error::refused(busy.code(), message, BUSY_HINT));
            }
            thread::sleep(TRY_EVERY);
        }
    }

    /// Notes who has the store open, and offers it the embedder of the options, once.
    fn joined(
        &self,
        state: &mut State,
        connection: &Connection,
        (open, session): (&OpenOptions, &SessionOptions),
        until: Instant,
    ) -> Result<()> {
        let (pid, to) = (connection.pid(), connection.owner());
        if matches!(&state.owning, Owning::There { offered, .. } if offered.holds(to)) {
            return Ok(());
        }
        let offering = Connection::offer(&self.joining(open, session), until)?;
        state.owning = Owning::There { pid, offered: Offered { to, offering } };
        Ok(())
    }

    fn joining<'s>(&'s self, open: &'s OpenOptions, session: &'s SessionOptions) -> Joining<'s> {
        Joining { directory: &self.path, open, settings: &self.settings, session }
    }

    /// Listens for other processes. Where that is not possible, as on a file system without sockets, this process
    /// has the store alone.
    fn serve(&self, store: &Store) -> Option<Service> {
        if store.is_read_only() {
            return None;
        }
        let hosting = Hosting {
            store: store.clone(),
            settings: self.settings.clone(),
            resolver: self.resolver.clone(),
            test_clock: self.test_clock.clone(),
        };
        Service::start(&self.path, hosting, self.converse).ok()
    }

    /// Closes the store, once what other processes asked is answered; see [`Service::stop`].
    pub(super) fn close(&self, tell: &mut dyn FnMut(usize)) -> Result<()> {
        self.check_process()?;
        let mut state = self.lock();
        state.number += 1;
        match std::mem::replace(&mut state.owning, Owning::Closed) {
            Owning::Here { store, service } => {
                if let Some(mut service) = service {
                    service.stop(tell);
                }
                Ok(store.close()?)
            }
            _ => Ok(()),
        }
    }
}

/// Converts the error of opening a store, with a hint for a missing one.
fn opening_error(error: grainstore::Error) -> Error {
    let hint = "check the path, or make a store there with create: true";
    Error::from(error).with_hint_for(Code::NotFound.name(), hint)
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
        let (mut shared, _) = Shared::open(dir.path(), options, |_| Ok(())).unwrap();
        shared.process += 1;
        assert!(shared.place().is_err_and(|error| error.has_code(Code::Io)));
        assert!(shared.close(&mut |_| {}).is_err_and(|error| error.has_code(Code::Io)));
        drop(shared);
        assert_eq!(dir.path().join("socket").exists(), cfg!(target_os = "linux"));
    }
}
