//! The state between requests: the open store, its session, and the test clock.

use std::path::Path;
use std::sync::Arc;

use grainstore::cal::CancelHandle;
use grainstore::format::DidResolver;
use grainstore::{Clock, EpochMs, ManualClock, Session, SessionOptions, SystemClock};

use crate::dids::SharedResolver;
use crate::error::{Code, Error, Result};
use crate::sharing::{ClientOptions, Converse, Hosting, NewCancel, SharedStore};

/// The state of one connection.
pub(crate) struct Host {
    /// The store that `open` has opened.
    store: Option<SharedStore>,
    /// What answers others, where the store is open here.
    converse: Option<Converse>,
    /// The session of a request that is done here.
    session: Option<Session>,
    clock: Option<Arc<ManualClock>>,
    /// What resolves DIDs for the open store.
    resolver: Option<SharedResolver>,
    /// What makes the handle that cancels a request.
    cancels: Option<NewCancel>,
}

impl Host {
    pub(crate) fn new(test_clock: bool, converse: Converse) -> Self {
        let clock = test_clock.then(|| Arc::new(ManualClock::following()));
        Self { clock, converse: Some(converse), ..Self::empty() }
    }

    fn empty() -> Self {
        Self {
            store: None,
            converse: None,
            session: None,
            clock: None,
            resolver: None,
            cancels: None,
        }
    }

    /// The state of a connection of another process, whose session is fixed.
    pub(crate) fn joined(session: Session, hosting: &Hosting, cancels: NewCancel) -> Self {
        let (session, cancels) = (Some(session), Some(cancels));
        let (clock, resolver) = (hosting.test_clock.clone(), hosting.resolver.clone());
        Self { session, clock, resolver, cancels, ..Self::empty() }
    }

    /// The state of a single request.
    pub(crate) fn of_call(session: Session, resolver: Option<SharedResolver>) -> Self {
        Self { session: Some(session), resolver, ..Self::empty() }
    }

    /// Returns what cancels the next request.
    pub(crate) fn new_cancel(&self) -> CancelHandle {
        self.cancels.as_ref().map_or_else(CancelHandle::new, |cancels| cancels())
    }

    /// The test clock, if there is one.
    pub(crate) fn clock(&self) -> Option<&Arc<ManualClock>> {
        self.clock.as_ref()
    }

    /// The current time, by the test clock if there is one.
    pub(crate) fn now(&self) -> EpochMs {
        self.clock.as_ref().map_or_else(|| SystemClock.now(), |clock| clock.now())
    }

    /// What resolves DIDs for the open store, if there is something.
    pub(crate) fn resolver(&self) -> Option<&(dyn DidResolver + Send + Sync)> {
        self.resolver.as_deref()
    }

    /// The open store, where `open` has opened one.
    pub(crate) fn store(&self) -> Option<SharedStore> {
        self.store.clone()
    }

    /// Sets the session of the request that runs.
    pub(crate) fn set_session(&mut self, session: Option<Session>) {
        self.session = session;
    }

    /// The session of the open store, while a request of it runs here.
    pub(crate) fn session(&self) -> Result<&Session> {
        self.session
            .as_ref()
            .ok_or_else(|| Error::new(Code::NotFound, "no store is open", "call open first"))
    }

    /// Returns `true` for a connection of another process: its store and its session are fixed.
    pub(crate) fn is_fixed(&self) -> bool {
        self.cancels.is_some()
    }

    /// Opens a store in place of the open one.
    pub(crate) fn open(&mut self, path: &str, mut options: ClientOptions) -> Result<SharedStore> {
        self.close()?;
        options.test_clock.clone_from(&self.clock);
        self.resolver.clone_from(&options.resolver);
        let Some(converse) = self.converse else {
            return Err(Error::arguments("no store is opened here"));
        };
        let store = SharedStore::open(Path::new(path), options, converse)?;
        self.store = Some(store.clone());
        Ok(store)
    }

    /// Changes the identity of the session.
    pub(crate) fn change_session(&mut self, options: SessionOptions) -> Result<()> {
        match &self.store {
            Some(store) => {
                self.store = Some(store.with_session(options));
                Ok(())
            }
            None => self.session().map(drop),
        }
    }

    /// Closes the store that is open, if any. It is closed also where that fails.
    pub(crate) fn close(&mut self) -> Result<()> {
        self.resolver = None;
        match self.store.take() {
            Some(store) => store.close(&mut |_| {}),
            None => Ok(()),
        }
    }
}
