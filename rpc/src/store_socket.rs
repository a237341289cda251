//! A store that this process has opened by itself, and serves others.

use std::time::Duration;

use grainstore::{OpenOptions, Store};

use crate::error::{Code, Error, Result};
use crate::protocol::converse;
use crate::sharing::{Service, serve_open};

/// What serves other processes a store that this one has opened by itself: a node, for instance. Dropping it ends that,
/// once what was asked is answered; the store stays open.
///
/// ```
/// use grainstore::{OpenOptions, SessionOptions, Store};
/// use grainstore_rpc::{Client, ClientOptions, StoreSocket};
///
/// # if !cfg!(target_os = "linux") { return Ok(()) }
/// let directory = tempfile::tempdir()?;
/// let options = OpenOptions::new().create(true);
/// let store = Store::open(directory.path(), &options)?;
/// let socket = StoreSocket::open(&store, &options)?;
/// let client = ClientOptions::new(OpenOptions::new(), SessionOptions::default());
/// assert!(Client::open(directory.path(), client)?.owner().is_some(), "it has joined");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct StoreSocket(Service);

impl StoreSocket {
    /// Begins to serve a store that was opened with these options.
    ///
    /// # Errors
    /// `ERR_IO` if its directory can have no socket, and on systems where processes do not share a store.
    pub fn open(store: &Store, open: &OpenOptions) -> Result<Self> {
        let settings = open.settings().into_iter();
        let settings = settings.map(|(name, value)| (name.to_owned(), value)).collect();
        serve_open(store, settings, converse).map(Self).map_err(|error| {
            let message = format!("other processes cannot use this store: {error}");
            Error::new(Code::Io, message, "put it where sockets can be, on a local disk")
        })
    }

    /// Takes no new requests, and returns once everything is answered that was asked before, or after so long: what is left
    /// then is cancelled, and ends with `ERR_IO` when the store is closed.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use grainstore::{OpenOptions, Store};
    /// # use grainstore_rpc::StoreSocket;
    /// # if !cfg!(target_os = "linux") { return Ok(()) }
    /// # let directory = tempfile::tempdir()?;
    /// # let options = OpenOptions::new().create(true);
    /// # let store = Store::open(directory.path(), &options)?;
    /// let socket = StoreSocket::open(&store, &options)?;
    /// socket.close_within(Duration::from_secs(1));
    /// store.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn close_within(mut self, patience: Duration) {
        self.0.stop_within(patience);
    }
}

impl Drop for StoreSocket {
    fn drop(&mut self) {
        self.0.stop(&mut |_| {});
    }
}
