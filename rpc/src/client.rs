//! The store as other crates reach it: one that several processes may have open.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::path::Path;

use grainstore::cal::CancelHandle;
use grainstore::journal::CommitPosition;
use grainstore::{Session, SessionOptions, Store};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::dids::SharedResolver;
use crate::error::{Code, Error, Result};
use crate::host::Host;
use crate::operations::stream::{Events, LineSink};
use crate::patience::Patience;
use crate::protocol::{converse, is_of_store, run};
use crate::sharing::{Call, ClientOptions, SharedStore};

/// The id of the one request that is on its way.
const REQUEST: &str = "0";

/// A store that several processes use at once: this process owns it, or relays to the one that does. Cheap to
/// clone, `Send` and `Sync`.
///
/// The first process to open a store owns it, and listens on a socket in its directory, for processes of the same
/// user. The others send it their requests, and share nothing else. When it ends, by itself or by force, the next
/// request of another makes that one the owner. A session is fixed for a client; [`Client::with_session`] has
/// another one.
///
/// ```
/// use grainstore::{OpenOptions, SessionOptions};
/// use grainstore_rpc::{Client, ClientOptions};
/// use serde_json::{Value, json};
///
/// # let dir = tempfile::tempdir()?;
/// let options = ClientOptions::new(OpenOptions::new().create(true), SessionOptions::default());
/// let owner = Client::open(dir.path(), options.clone())?;
/// let grain = json!({ "type": "event", "content": "hello", "created_at": "2026-03-02T09:00:00Z" });
/// let put: Value = owner.call("put", &json!({ "grain": grain }))?;
///
/// // Another process does the same; here it is the same one.
/// let relay = Client::open(dir.path(), options)?;
/// let got: Value = relay.call("get", &json!({ "address": put["address"] }))?;
/// assert_eq!(got["grain"]["content"], "hello");
/// owner.close()?;
/// assert!(relay.call::<Value>("get", &json!({ "address": put["address"] })).is_ok(), "it owns it now");
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
#[derive(Clone)]
pub struct Client(SharedStore);

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Client({:?})", self.0)
    }
}

/// Gets an event, and may end the request; see [`Client::call_following`].
pub type OnEvent<'f> = dyn FnMut(&RawValue) -> ControlFlow<()> + 'f;

/// What follows a request while it runs; [`Client::call_following`] has an example.
#[derive(Default)]
pub struct Following<'f> {
    /// Gets the lines of events and of progress, as JSON (docs/rpc.md); it may end the request.
    pub on_event: Option<&'f mut OnEvent<'f>>,
    /// Cancels the request.
    pub cancel: CancelHandle,
    /// Set with the answer: where the store was in its journal, or after that (docs/cluster.md); `None` without one.
    pub position: Option<CommitPosition>,
}

impl std::fmt::Debug for Following<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Following({:?})", self.cancel)
    }
}

/// Calls a method of an open store (docs/rpc.md) on a session, as [`Client::call_following`] does where this process
/// owns the store.
///
/// ```
/// # use grainstore::prelude::*;
/// # let dir = tempfile::tempdir()?;
/// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
/// # let session = store.session(SessionOptions::default());
/// let params = serde_json::value::to_raw_value(&serde_json::json!({}))?;
/// let answer = grainstore_rpc::call_on(session, "stats", &params, &mut Default::default())?;
/// assert!(answer.get().contains("grains"));
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
///
/// # Errors
/// Those of the method.
pub fn call_on(
    session: Session,
    method: &str,
    params: &RawValue,
    following: &mut Following<'_>,
) -> Result<Box<RawValue>> {
    let (cancel, on_event) = (following.cancel.clone(), &mut following.on_event);
    let mut tell = |line: &[u8]| told(on_event, line);
    let (answer, position) = run_here(session, None, (method, params), &mut tell, cancel)?;
    following.position = position;
    Ok(answer)
}

/// Hands a line of an event to who follows a request.
fn told(on_event: &mut Option<&mut OnEvent<'_>>, line: &[u8]) -> Result<()> {
    let Some(told) = on_event else { return Ok(()) };
    let line: &RawValue = serde_json::from_slice(line)?;
    match told(line) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::OutputClosed),
    }
}

/// Runs a method on a session of this process.
fn run_here(
    session: Session,
    resolver: Option<SharedResolver>,
    (method, params): (&str, &RawValue),
    tell: &mut dyn FnMut(&[u8]) -> Result<()>,
    cancel: CancelHandle,
) -> Result<(Box<RawValue>, Option<CommitPosition>)> {
    let mut host = Host::of_call(session, resolver);
    let mut sink = LineSink::new(tell);
    let patience = Patience::default();
    let id = serde_json::from_str(REQUEST)?;
    let mut events = Events::of(&mut sink, Some(id), &patience, cancel);
    let answer = run(&mut host, method, Some(params), &mut events);
    events.finish()?;
    let answer = answer?;
    Ok((serde_json::from_slice(answer.json())?, answer.position()))
}

impl Client {
    /// Opens the store in a directory, or joins the process that has it open.
    ///
    /// # Errors
    /// As [`Store::open`] where nobody has it open, or `exclusive` is asked for. `ERR_CONFLICT` for settings that
    /// differ from the owner's, by their name; `ERR_STORE_VERSION` if the owner is another version; `ERR_KEY` for a
    /// wrong or missing key; `ERR_ACCESS` if the owner is another user's; `ERR_BUSY` if the store is open for one
    /// process alone, or its owner does not answer, for longer than the options wait.
    pub fn open(path: impl AsRef<Path>, options: ClientOptions) -> Result<Self> {
        SharedStore::open(path.as_ref(), options, converse).map(Self)
    }

    /// Returns a client of the same store with another session.
    #[must_use]
    pub fn with_session(&self, session: SessionOptions) -> Self {
        Self(self.0.with_session(session))
    }

    /// Returns `true` if the store was created when it was opened.
    #[must_use]
    pub fn has_created(&self) -> bool {
        self.0.has_created()
    }

    /// The store, where this process owns it at present.
    #[must_use]
    pub fn owned(&self) -> Option<Store> {
        self.0.owned()
    }

    /// The session of this client, where this process owns the store at present.
    #[must_use]
    pub fn owned_session(&self) -> Option<Session> {
        self.0.owned_session()
    }

    /// The process that owned the store when it was last looked for; `None` if it is this one.
    #[must_use]
    pub fn owner(&self) -> Option<u32> {
        self.0.owner()
    }

    /// Calls a method (docs/rpc.md), such as `get` with `{"address": ...}`. Waits for the answer; a write is on disk
    /// then.
    ///
    /// # Errors
    /// Those of the method; that of wrong usage for methods that open and close; `ERR_IN_DOUBT` if the owner
    /// ended before it answered what may not be asked twice; `ERR_BUSY` if it does not answer; `ERR_LIMIT`;
    /// `ERR_IO` in a fork of the process that opened the store.
    pub fn call<T: DeserializeOwned>(&self, method: &str, params: &impl Serialize) -> Result<T> {
        let params = serde_json::value::to_raw_value(params)?;
        let answer = self.call_following(method, &params, &mut Following::default())?;
        serde_json::from_str(answer.get()).map_err(|error| {
            let message = format!("the answer to {method} is not what was expected: {error}");
            Error::new(Code::Corrupt, message, "read it as any JSON value")
        })
    }

    /// As [`Client::call`], with unparsed JSON, and with what follows the request while it runs.
    ///
    /// ```
    /// use grainstore::{OpenOptions, SessionOptions};
    /// use grainstore_rpc::{Client, ClientOptions, Following};
    /// use std::ops::ControlFlow;
    ///
    /// # let dir = tempfile::tempdir()?;
    /// let options = ClientOptions::new(OpenOptions::new().create(true), SessionOptions::default());
    /// let client = Client::open(dir.path(), options)?;
    /// let mut events = 0;
    /// let mut count = |_: &serde_json::value::RawValue| {
    ///     events += 1;
    ///     ControlFlow::Continue(())
    /// };
    /// let mut following = Following { on_event: Some(&mut count), ..Following::default() };
    /// let query = serde_json::value::to_raw_value(&serde_json::json!({
    ///     "query": "ASSEMBLE FROM (RECALL) BUDGET 100 tokens STREAM",
    /// }))?;
    /// client.call_following("cal_stream", &query, &mut following)?;
    /// assert!(events > 0);
    /// # Ok::<(), grainstore_rpc::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Client::call`]; `CAL-E082` for a request that was cancelled.
    pub fn call_following(
        &self,
        method: &str,
        params: &RawValue,
        following: &mut Following<'_>,
    ) -> Result<Box<RawValue>> {
        if !is_of_store(method, false) {
            let message = format!("{method} is no method of an open store");
            return Err(Error::usage(Code::Schema, message, "docs/rpc.md lists the methods"));
        }
        let request = Call { id: REQUEST, method, params: Some(params) };
        let (cancel, on_event) = (following.cancel.clone(), &mut following.on_event);
        let mut tell = |line: &[u8]| told(on_event, line);
        // Both ways tell events to the same listener, never at once.
        let tell = RefCell::new(&mut tell as &mut dyn FnMut(&[u8]) -> Result<()>);
        let answered = self.0.with(
            &request,
            |session, resolver| {
                let mut tell = tell.borrow_mut();
                run_here(session, resolver, (method, params), &mut **tell, cancel.clone())
            },
            |connection, line| {
                let is_cancelled = || cancel.check().is_err();
                let answered =
                    connection.exchange(line, &is_cancelled, &mut **tell.borrow_mut())?;
                Ok(answered.map_err(|fault| Error::from_fault(&fault)))
            },
        )?;
        let (answer, position) = answered?;
        following.position = position;
        Ok(answer)
    }

    /// Closes the store for all clones, once what other processes asked of it is answered. They go on without this
    /// process.
    ///
    /// # Errors
    /// As [`Store::close`].
    pub fn close(&self) -> Result<()> {
        self.close_telling(&mut |_| {})
    }

    /// As [`Client::close`]. Where other processes' requests take longer than a second, `tell` gets their number,
    /// once: it waits for them all the same.
    ///
    /// # Errors
    /// As [`Store::close`].
    pub fn close_telling(&self, tell: &mut dyn FnMut(usize)) -> Result<()> {
        self.0.close(tell)
    }

    /// Why no other process can use the store while this one has it open: it cannot listen on a socket in the store's
    /// directory. `None` where others can, where this process relays itself, and where the store was opened to be read
    /// or with `exclusive`.
    #[must_use]
    pub fn unshared(&self) -> Option<String> {
        self.0.unshared()
    }

    /// Number of connections of other processes that this one serves at present.
    #[must_use]
    pub fn served(&self) -> usize {
        self.0.served()
    }
}
