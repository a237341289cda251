//! The state between requests: the open store, its session, and the test clock.

use std::sync::Arc;

use grainstore::cal::Tier;
use grainstore::{
    Clock, EpochMs, ManualClock, OpenOptions, Session, SessionOptions, Store, SystemClock,
};
use serde_json::value::RawValue;

use super::answer::Answer;
use super::bytes::UnreadableQuery;
use super::fault::Fault;
use super::methods;
use crate::error::{Code, Error, Result};
use crate::operations::stream::Events;

/// The state of one connection.
pub(crate) struct Host {
    session: Option<Session>,
    clock: Option<Arc<ManualClock>>,
}

impl Host {
    pub(crate) fn new(test_clock: bool) -> Self {
        Self { session: None, clock: test_clock.then(|| Arc::new(ManualClock::following())) }
    }

    /// Runs a method, which may send events before it answers.
    pub(crate) fn call(
        &mut self,
        method: &str,
        params: Option<&RawValue>,
        events: &mut Events<'_>,
    ) -> Result<Answer, Fault> {
        match methods::find(method, self.clock.is_some()) {
            Some(found) => Ok((found.run)(self, params, events)?),
            None => Err(Fault::unknown_method(method)),
        }
    }

    /// The test clock, if there is one.
    pub(crate) fn clock(&self) -> Option<&Arc<ManualClock>> {
        self.clock.as_ref()
    }

    /// The current time, by the test clock if there is one.
    pub(crate) fn now(&self) -> EpochMs {
        self.clock.as_ref().map_or_else(|| SystemClock.now(), |clock| clock.now())
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
    ) -> Result<bool> {
        self.close()?;
        if let Some(clock) = &self.clock {
            options = options.clock(Arc::<ManualClock>::clone(clock));
        }
        let store = Store::open(path, &options).map_err(not_opened)?;
        let created = store.was_created();
        self.session = Some(store.session(session));
        Ok(created)
    }

    /// Returns the refusal of a query that is not UTF-8, recorded if a store is open.
    pub(crate) fn refuse_query(&self, unreadable: UnreadableQuery) -> Error {
        let UnreadableQuery { query, error, namespace, user_id, agent_id } = unreadable;
        let error = match &self.session {
            Some(own) => {
                // A session that it may not ask for is not recorded in the place of its own.
                let narrowed = own.narrower_part(namespace, user_id, agent_id);
                let session = narrowed.unwrap_or_else(|_| own.clone());
                session.record_failed_call(&query, Tier::Read, error)
            }
            None => error,
        };
        Error::cal(&error, &String::from_utf8_lossy(&query))
    }

    /// Changes the identity of the session.
    pub(crate) fn rescope(&mut self, options: SessionOptions) -> Result<()> {
        let session = self.session()?.store().session(options);
        self.session = Some(session);
        Ok(())
    }

    /// Closes the store that is open, if any. It is closed also where that fails.
    pub(crate) fn close(&mut self) -> Result<()> {
        match self.session.take() {
            Some(session) => Ok(session.store().close()?),
            None => Ok(()),
        }
    }
}

/// Converts the error of opening a store, with a hint for a missing one.
fn not_opened(error: grainstore::Error) -> Error {
    let hint = "check the path, or make a store there with create: true";
    Error::from(error).with_hint_for(Code::NotFound.name(), hint)
}
