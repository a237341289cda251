//! What sharing needs of the machine: the files and the lock of the store, the socket, and the time.
//!
//! The program has [`ThisMachine`]. A test has a simulated one (`take_over`), where it decides about every switch of
//! threads and every end of a process. What owns, joins and asks again does not know which it is.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use data_encoding::HEXLOWER;
use grainstore::{OpenOptions, Session, SessionOptions, Store};

use super::Converse;
use super::connection::{Connection, Sought};
use super::embedding::Offered;
use super::joining::Joining;
use super::service::Service;
use super::shared::{Alone, Shared};
use crate::error::{Code, Error, Result};

#[cfg(shuttle)]
pub(super) use shuttle::sync::{Mutex, MutexGuard};
#[cfg(not(shuttle))]
pub(super) use std::sync::{Mutex, MutexGuard};

/// A machine, as one process sees it.
pub(crate) trait Machine: Sized {
    /// A store that this process has open.
    type Store: Clone;
    /// A session of it.
    type Session: Clone;
    /// What serves other processes.
    type Service;
    /// A connection to the process that has the store open.
    type Connection;
    /// What tells a store from every other.
    type Id: PartialEq;
    /// The embedder that was offered to who has the store open, if there was one to offer.
    type Offered;

    /// Opens a store; `ERR_BUSY` where another process holds its lock.
    fn open(&self, path: &Path, open: &OpenOptions) -> Result<Self::Store>;

    /// Returns `true` if opening a store has created it.
    fn was_created(store: &Self::Store) -> bool;

    /// What tells the store from every other.
    fn id(store: &Self::Store) -> Result<Self::Id>;

    /// Begins a session.
    fn session(store: &Self::Store, options: SessionOptions) -> Self::Session;

    /// Closes a store for all its handles, and then releases its lock.
    fn close(store: &Self::Store) -> Result<()>;

    /// Listens for other processes, or tells why not.
    fn serve(
        shared: &Shared<Self>,
        store: &Self::Store,
    ) -> std::result::Result<Self::Service, Alone>;

    /// Serves nobody any more, once what was asked is answered; see [`Service::stop`].
    fn stop(service: &mut Self::Service, tell: &mut dyn FnMut(usize));

    /// Number of connections that are served.
    fn connections(service: &Self::Service) -> usize;

    /// Joins the process that has a store open; see [`Connection::join`].
    fn join(&self, joining: &Joining<'_>, until: Instant) -> Result<Sought<Self::Connection>>;

    /// The process at the other end.
    fn pid(connection: &Self::Connection) -> u32;

    /// What tells the store there from every other.
    fn id_there(connection: &Self::Connection) -> Self::Id;

    /// Offers the embedder of the options; see [`Connection::offer`].
    fn offer(&self, joining: &Joining<'_>, until: Instant) -> Result<Self::Offered>;

    /// Returns `true` if there is nothing to offer any more at the other end.
    fn holds(offered: &Self::Offered, connection: &Self::Connection) -> bool;

    /// The time.
    fn now(&self) -> Instant;

    /// Waits.
    fn pause(&self, time: Duration);
}

/// The machine that the program runs on.
#[derive(Debug, Clone)]
pub(crate) struct ThisMachine {
    /// Answers other processes.
    pub(super) converse: Converse,
}

impl Machine for ThisMachine {
    type Store = Store;
    type Session = Session;
    type Service = Service;
    type Connection = Connection;
    type Id = String;
    type Offered = Offered;

    fn open(&self, path: &Path, open: &OpenOptions) -> Result<Store> {
        Store::open(path, open).map_err(opening_error)
    }

    fn was_created(store: &Store) -> bool {
        store.was_created()
    }

    fn id(store: &Store) -> Result<String> {
        Ok(HEXLOWER.encode(&store.id()?))
    }

    fn session(store: &Store, options: SessionOptions) -> Session {
        store.session(options)
    }

    fn close(store: &Store) -> Result<()> {
        Ok(store.close()?)
    }

    fn serve(shared: &Shared<Self>, store: &Store) -> std::result::Result<Service, Alone> {
        shared.serve(store)
    }

    fn stop(service: &mut Service, tell: &mut dyn FnMut(usize)) {
        service.stop(tell);
    }

    fn connections(service: &Service) -> usize {
        service.connections()
    }

    fn join(&self, joining: &Joining<'_>, until: Instant) -> Result<Sought> {
        Connection::join(joining, until)
    }

    fn pid(connection: &Connection) -> u32 {
        connection.pid()
    }

    fn id_there(connection: &Connection) -> String {
        connection.store().to_owned()
    }

    fn offer(&self, joining: &Joining<'_>, until: Instant) -> Result<Offered> {
        Connection::offer(joining, until)
    }

    fn holds(offered: &Offered, connection: &Connection) -> bool {
        offered.holds(connection.owner())
    }

    fn now(&self) -> Instant {
        Instant::now()
    }

    fn pause(&self, time: Duration) {
        thread::sleep(time);
    }
}

/// Converts the error of opening a store, with a hint for a missing one.
fn opening_error(error: grainstore::Error) -> Error {
    let hint = "check the path, or make a store there with create: true";
    Error::from(error).with_hint_for(Code::NotFound.name(), hint)
}
