//! The state between requests: the open store, its session, and the test clock.

use std::sync::Arc;

use grainstore::format::DidResolver;
use grainstore::{
    Clock, EpochMs, ManualClock, OpenOptions, Session, SessionOptions, Store, SystemClock,
};

use crate::dids::SharedResolver;
use crate::error::{Code, Error, Result};

/// The state of one connection.
pub(crate) struct Host {
    session: Option<Session>,
    clock: Option<Arc<ManualClock>>,
    /// What resolves DIDs for the open store.
    resolver: Option<SharedResolver>,
}

impl Host {
    pub(crate) fn new(test_clock: bool) -> Self {
        let clock = test_clock.then(|| Arc::new(ManualClock::following()));
        Self { session: None, clock, resolver: None }
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

    /// The session of the open store.
    pub(crate) fn session(&self) -> Result<&Session> {
        self.session
            .as_ref()
            .ok_or_else(|| Error::new(Code::NotFound, "no store is open", "call open first"))
    }

    /// Opens a store in place of the open one. Returns `true` if it was created.
    pub(crate) fn open(
        &mut self,
        path: &str,
        mut options: OpenOptions,
        session: SessionOptions,
        resolver: Option<SharedResolver>,
    ) -> Result<bool> {
        self.close()?;
        if let Some(resolver) = &resolver {
            options = options.resolver(Arc::clone(resolver));
        }
        if let Some(clock) = &self.clock {
            options = options.clock(Arc::<ManualClock>::clone(clock));
        }
        let store = Store::open(path, &options).map_err(opening_error)?;
        let created = store.was_created();
        self.session = Some(store.session(session));
        self.resolver = resolver;
        Ok(created)
    }

    /// Changes the identity of the session.
    pub(crate) fn change_session(&mut self, options: SessionOptions) -> Result<()> {
        let session = self.session()?.store().session(options);
        self.session = Some(session);
        Ok(())
    }

    /// Closes the store that is open, if any. It is closed also where that fails.
    pub(crate) fn close(&mut self) -> Result<()> {
        self.resolver = None;
        match self.session.take() {
            Some(session) => Ok(session.store().close()?),
            None => Ok(()),
        }
    }
}

/// Converts the error of opening a store, with a hint for a missing one.
fn opening_error(error: grainstore::Error) -> Error {
    let hint = "check the path, or make a store there with create: true";
    Error::from(error).with_hint_for(Code::NotFound.name(), hint)
}
