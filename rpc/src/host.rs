//! The state between requests: the open store, its session, and the test clock.

use std::cell::RefCell;
use std::sync::Arc;

use grainstore::cal::CancelHandle;
use grainstore::format::DidResolver;
use grainstore::{Clock, EpochMs, ManualClock, Session, SessionOptions, SystemClock};

use crate::answer::Answer;
use crate::client::{Call, Client, ClientOptions, Hosting};
use crate::dids::SharedResolver;
use crate::error::{Code, Error, Result};
use crate::operations::stream::Events;
use crate::protocol::{Fault, Run};

/// The state of one connection.
pub(crate) struct Host {
    /// The store that `open` has opened.
    client: Option<Client>,
    /// The session of a request that is done here.
    session: Option<Session>,
    clock: Option<Arc<ManualClock>>,
    /// What resolves DIDs for the open store.
    resolver: Option<SharedResolver>,
    /// What makes the handle that cancels a request.
    cancels: Option<NewCancel>,
}

/// Makes the handle that cancels the next request.
pub(crate) type NewCancel = Box<dyn Fn() -> CancelHandle + Send>;

impl Host {
    pub(crate) fn new(test_clock: bool) -> Self {
        let clock = test_clock.then(|| Arc::new(ManualClock::following()));
        Self { client: None, session: None, clock, resolver: None, cancels: None }
    }

    /// The state of a connection of another process, whose session is fixed.
    #[cfg(target_os = "linux")]
    pub(crate) fn joined(session: Session, hosting: &Hosting, cancels: NewCancel) -> Self {
        let (session, cancels) = (Some(session), Some(cancels));
        let (clock, resolver) = (hosting.test_clock.clone(), hosting.resolver.clone());
        Self { client: None, session, clock, resolver, cancels }
    }

    /// The state of a single request.
    pub(crate) fn of_call(session: Session, resolver: Option<SharedResolver>) -> Self {
        Self { client: None, session: Some(session), clock: None, resolver, cancels: None }
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

    /// The client of the open store, where `open` has opened one.
    pub(crate) fn client(&self) -> Option<Client> {
        self.client.clone()
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
    pub(crate) fn open(&mut self, path: &str, mut options: ClientOptions) -> Result<Client> {
        self.close()?;
        options.test_clock.clone_from(&self.clock);
        self.resolver.clone_from(&options.resolver);
        let client = Client::open(path, options)?;
        self.client = Some(client.clone());
        Ok(client)
    }

    /// Changes the identity of the session.
    pub(crate) fn change_session(&mut self, options: SessionOptions) -> Result<()> {
        match &self.client {
            Some(client) => {
                self.client = Some(client.with_session(options));
                Ok(())
            }
            None => self.session().map(drop),
        }
    }

    /// Answers a call of the open store, here or by the process that has it open.
    pub(crate) fn relay(
        &mut self,
        client: &Client,
        call: &Call<'_>,
        run: Run,
        events: &mut Events<'_>,
    ) -> Result<Answer, Fault> {
        let (host, events) = (RefCell::new(self), RefCell::new(events));
        client.with(
            call,
            |session, _| {
                let mut host = host.borrow_mut();
                host.session = Some(session);
                let answer = run(&mut host, call.params, &mut events.borrow_mut());
                host.session = None;
                Ok(answer?)
            },
            |connection, line| {
                if call.method == "clock" {
                    // Its own too, which counts once this process owns the store.
                    let _ = run(&mut host.borrow_mut(), call.params, &mut events.borrow_mut());
                }
                let is_cancelled = || events.borrow().is_cancelled();
                let mut forward = |line: &[u8]| events.borrow_mut().forward(line);
                let answered = connection.exchange(line, &is_cancelled, &mut forward)?;
                Ok(match answered {
                    Ok(result) => Ok(Answer::of_json(&result)),
                    Err(fault) => Err(Fault::of_json(&fault)),
                })
            },
        )?
    }

    /// Closes the store that is open, if any. It is closed also where that fails.
    pub(crate) fn close(&mut self) -> Result<()> {
        self.resolver = None;
        match self.client.take() {
            Some(client) => client.close(),
            None => Ok(()),
        }
    }
}

/// Converts the error of opening a store, with a hint for a missing one.
pub(crate) fn opening_error(error: grainstore::Error) -> Error {
    let hint = "check the path, or make a store there with create: true";
    Error::from(error).with_hint_for(Code::NotFound.name(), hint)
}
