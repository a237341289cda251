//! How the store is reached: the operations of `grainstore-rpc` by name, and a store that is opened in the background.
//!
//! Knows nothing of MCP.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use grainstore::cal::CancelHandle;
use grainstore_rpc::{Code, Error, Following, Result};
use serde_json::Value;
use tokio::task::spawn_blocking;

/// The methods of docs/rpc.md on one open store, which block. [`grainstore_rpc::Client`] is one.
///
/// ```
/// use grainstore::cal::CancelHandle;
/// use grainstore_rpc::Result;
/// use serde_json::{Value, json};
///
/// /// A store that holds nothing.
/// struct Empty;
///
/// impl grainstore_serve::Operations for Empty {
///     fn call(&self, _: &str, _: &Value, _: &CancelHandle) -> Result<Value> {
///         Ok(json!({ "results": [] }))
///     }
///     fn close(&self) -> Result<()> {
///         Ok(())
///     }
/// }
/// ```
pub trait Operations: Send + Sync + 'static {
    /// Calls a method of docs/rpc.md with an object of parameters; answers its result. What reads ends early once
    /// it is cancelled.
    ///
    /// # Errors
    /// As the method; `CAL-E082` for what was cancelled.
    fn call(&self, method: &str, params: &Value, cancel: &CancelHandle) -> Result<Value>;

    /// Closes the store. What was acknowledged is there, also where this fails.
    ///
    /// # Errors
    /// As the method `close`.
    fn close(&self) -> Result<()>;
}

impl Operations for grainstore_rpc::Client {
    fn call(&self, method: &str, params: &Value, cancel: &CancelHandle) -> Result<Value> {
        let params = serde_json::value::to_raw_value(params)?;
        let mut following = Following { cancel: cancel.clone(), ..Following::default() };
        let answer = self.call_following(method, &params, &mut following)?;
        Ok(serde_json::from_str(answer.get())?)
    }

    fn close(&self) -> Result<()> {
        Self::close(self)
    }
}

/// The operations of a store, for one call of a client.
pub(crate) struct Calls<'s> {
    store: &'s dyn Operations,
    cancel: &'s CancelHandle,
}

impl Calls<'_> {
    /// As [`Operations::call`].
    pub(crate) fn call(&self, method: &str, params: &Value) -> Result<Value> {
        self.store.call(method, params, self.cancel)
    }
}

/// A call of a client: whether it is cancelled, and what it holds while any work of it waits or runs.
#[derive(Clone, Default)]
pub(crate) struct Ticket {
    pub(crate) cancel: CancelHandle,
    held: Option<Arc<dyn Any + Send + Sync>>,
}

impl Ticket {
    /// A call that holds this.
    pub(crate) fn holding(held: Option<Arc<dyn Any + Send + Sync>>) -> Self {
        Self { cancel: CancelHandle::new(), held }
    }
}

/// What the work of a request over HTTP holds, among the extensions of the request.
#[cfg(feature = "http")]
#[derive(Clone)]
pub(crate) struct HeldByWork(pub(crate) Arc<dyn Any + Send + Sync>);

/// Opens the store; called again where it failed.
pub(crate) type Open = dyn Fn() -> Result<Box<dyn Operations>> + Send + Sync;

/// A store that is opened once somebody needs it, or before.
#[derive(Clone)]
pub(crate) struct Memory(Arc<Shared>);

struct Shared {
    open: Box<Open>,
    /// Held while the store is opened, so that it is opened once.
    opening: Mutex<()>,
    /// Held for a moment.
    opened: Mutex<Opened>,
}

#[derive(Default)]
struct Opened {
    store: Option<Arc<dyn Operations>>,
    closed: bool,
}

impl Memory {
    pub(crate) fn new(open: Box<Open>) -> Self {
        Self(Arc::new(Shared { open, opening: Mutex::default(), opened: Mutex::default() }))
    }

    /// Begins to open the store, and waits for nothing. A failure is told to the first call, which tries again.
    pub(crate) fn begin(&self) {
        let shared = Arc::clone(&self.0);
        drop(spawn_blocking(move || shared.store().map(drop)));
    }

    /// Does something with the store on a thread that may block; nothing, if it is cancelled before its turn. What the
    /// call holds is held until then, whoever waits for it.
    ///
    /// # Errors
    /// Those of opening, and of what is done; `CAL-E082` for what was cancelled.
    pub(crate) async fn with<T, E, F>(&self, ticket: Ticket, work: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: FnOnce(&Calls<'_>) -> Result<T, E> + Send + 'static,
    {
        let shared = Arc::clone(&self.0);
        let work = move || {
            let Ticket { cancel, held: _held } = ticket;
            let store = shared.store()?;
            if cancel.check().is_err() {
                return Err(Error::new(Code::Cancelled, "the call was cancelled", "").into());
            }
            work(&Calls { store: &*store, cancel: &cancel })
        };
        let done = spawn_blocking(work).await;
        done.unwrap_or_else(|_| Err(broken("an operation ended without an answer").into()))
    }

    /// Closes the store, if it was opened; one that is being opened is closed then. Nothing opens it again.
    ///
    /// # Errors
    /// As [`Operations::close`].
    pub(crate) fn close(&self) -> Result<()> {
        let store = {
            let mut opened = self.0.opened();
            opened.closed = true;
            opened.store.take()
        };
        store.map_or(Ok(()), |store| store.close())
    }
}

impl Shared {
    fn opened(&self) -> MutexGuard<'_, Opened> {
        // The guarded value is whole at every step, whatever panicked.
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the store, if it was opened.
    fn known(&self) -> Result<Option<Arc<dyn Operations>>> {
        let opened = self.opened();
        if opened.closed {
            return Err(broken("the store was closed"));
        }
        Ok(opened.store.clone())
    }

    /// Returns the store, which is opened if it is not yet.
    fn store(&self) -> Result<Arc<dyn Operations>> {
        if let Some(store) = self.known()? {
            return Ok(store);
        }
        let _turn = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = self.known()? {
            return Ok(store);
        }
        let store: Arc<dyn Operations> = Arc::from((self.open)()?);
        let closed = {
            let mut opened = self.opened();
            opened.store = (!opened.closed).then(|| Arc::clone(&store));
            opened.closed
        };
        if closed {
            store.close()?;
            return Err(broken("the store was closed"));
        }
        Ok(store)
    }
}

fn broken(message: &str) -> Error {
    Error::new(Code::Io, message, "start the server again")
}
