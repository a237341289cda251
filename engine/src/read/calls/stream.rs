//! A streamed ASSEMBLE: its events to a listener on the caller's thread, or from a thread of its own to
//! whoever asks for the next one.
//!
//! Events are made while the statement runs. Between the two threads wait at most a few of them: who
//! takes none holds the statement up, for which its own time stands still, until patience is over.

use std::ops::ControlFlow;
use std::time::Duration;

use grainstore_cal::{
    self as cal, Began, Cancel, Event, Format, Listener, Options, Params, Response,
};
use grainstore_format::EpochMs;

use super::prepare::refused;
use super::token::CapabilityToken;
use crate::base::error::Error;
use crate::base::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use crate::base::sync::thread::{self, JoinHandle};
use crate::handle::session::Session;

/// Events that may wait to be taken.
const WAITING: usize = 16;
/// How long it may still wait once it is cancelled, for who wants to know how it ended.
const PATIENCE_AT_END: Duration = Duration::from_secs(1);
/// How long it sleeps before it looks for room again: first, and at most.
const PAUSES: (Duration, Duration) = (Duration::from_micros(50), Duration::from_millis(5));

/// How a statement is streamed from a thread of its own. Tokens are counted as by default.
#[derive(Debug, Clone, Default)]
pub struct Streaming {
    /// Values for parameters.
    pub params: Params,
    /// The format, in place of the statement's own.
    pub as_format: Option<Format>,
    /// Whether a tight budget may choose toon where no format was.
    pub auto_toon: bool,
    /// The present, against which phrases are resolved; the store's now where none is named.
    pub now: Option<EpochMs>,
    /// How long it may wait, all together, for its events to be taken; 60 seconds where nothing is said. It
    /// ends then with `CAL-E082`, so that it does not hold its view of the store for good.
    pub patience: Option<Duration>,
}

impl Session {
    /// Runs one ASSEMBLE and hands its events to a listener while it is put together, as its STREAM asks
    /// (docs/cal.md, Streaming); without STREAM all of them. The answer is that of [`Session::ask_with`].
    ///
    /// # Errors
    /// As [`Session::ask_with`]; `CAL-E079` for any other statement, `CAL-E082` once the options' handle
    /// cancels it or the listener takes no more. What is refused before [`Listener::begins`] has no
    /// events; after it the last event tells of the same error.
    pub fn ask_streaming(
        &self,
        query: &[u8],
        options: &Options<'_>,
        listener: &mut dyn Listener,
    ) -> Result<Response, cal::Error> {
        self.call(query, options, None, Some(listener))
    }

    /// Runs a prepared ASSEMBLE as [`Session::ask_streaming`] does.
    ///
    /// # Errors
    /// As [`Session::execute`] and [`Session::ask_streaming`].
    pub fn execute_streaming(
        &self,
        token: &CapabilityToken,
        listener: &mut dyn Listener,
    ) -> Result<Response, cal::Error> {
        self.execute_for(token, Some(listener))
    }

    /// Runs one ASSEMBLE on a thread of its own, and gives its events as an iterator. Answers once the
    /// statement was checked and has begun.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let options = grainstore::OpenOptions::new().create(true);
    /// # let store = grainstore::Store::open(dir.path().join("s.grains"), &options)?;
    /// # let session = store.session(grainstore::SessionOptions::default());
    /// use grainstore::cal::EventKind;
    ///
    /// let query = "ASSEMBLE FROM known: (RECALL beliefs) BUDGET 500 tokens STREAM { chunks }";
    /// let mut events = session.stream(query, grainstore::Streaming::default())?;
    /// let mut text = String::new();
    /// for event in &mut events {
    ///     if let EventKind::Chunk { content, .. } = event.kind {
    ///         text.push_str(&content);
    ///     }
    /// }
    /// assert_eq!(events.finish()?.text(), Some(text.as_str()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// What refuses the statement before it begins: as [`Session::ask_streaming`]; `ERR_IO` where the
    /// system gives no thread.
    pub fn stream(&self, query: &str, streaming: Streaming) -> Result<EventStream, cal::Error> {
        let (sender, receiver) = sync_channel(WAITING);
        let (session, cancel, query) = (self.clone(), Cancel::new(), query.to_owned());
        let own = cancel.clone();
        let run = move || {
            let Streaming { params, as_format, auto_toon, now, patience } = streaming;
            let usual = Options::at(now.unwrap_or_else(|| session.now()));
            let patience = patience.unwrap_or(usual.patience);
            let mut sending = Sending { sender, patience, cancel: own.clone() };
            let options = Options { params, as_format, auto_toon, cancel: own, patience, ..usual };
            session.ask_streaming(query.as_bytes(), &options, &mut sending)
        };
        let worker = thread::Builder::new().name("grainstore-stream".to_owned()).spawn(run);
        let worker = worker.map_err(|error| refused(Error::from(error)))?;
        let began = receiver.recv();
        let stream = EventStream { events: Some(receiver), cancel, worker: Some(worker) };
        match began {
            Ok(_) => Ok(stream),
            Err(_) => stream.finish().and_then(|_| Err(refused(lost()))),
        }
    }
}

/// What goes from one thread to the other.
enum Message {
    Began,
    Event(Event),
}

struct Sending {
    sender: SyncSender<Message>,
    /// What is left of the time it may wait.
    patience: Duration,
    cancel: Cancel,
}

impl Sending {
    /// Waits until there is room. `Break` where nobody takes anything any longer.
    fn send(&mut self, mut message: Message) -> ControlFlow<()> {
        let mut pause = PAUSES.0;
        loop {
            match self.sender.try_send(message) {
                Ok(()) => return ControlFlow::Continue(()),
                Err(TrySendError::Full(back)) if !self.patience.is_zero() => message = back,
                Err(_) => return ControlFlow::Break(()),
            }
            if self.cancel.stopped().is_some() {
                self.patience = self.patience.min(PATIENCE_AT_END);
            }
            thread::sleep(pause);
            self.patience = self.patience.saturating_sub(pause);
            pause = (pause * 2).min(PAUSES.1);
        }
    }
}

impl Listener for Sending {
    fn begins(&mut self, _: &Began<'_>) {
        // Who went away is noticed at the first event.
        let _ = self.send(Message::Began);
    }

    fn event(&mut self, event: Event) -> ControlFlow<()> {
        self.send(Message::Event(event))
    }
}

/// The events of a streamed ASSEMBLE, in their order. The last says how it ended: `assembly_completed`,
/// `error` without a source, or `cancelled`; [`EventStream::finish`] has the answer or the error then. One
/// whose events were not taken for longer than [`Streaming::patience`] ends without a last event.
/// Dropping it cancels what still runs, and waits until it has stopped.
#[derive(Debug)]
pub struct EventStream {
    events: Option<Receiver<Message>>,
    cancel: Cancel,
    worker: Option<JoinHandle<Result<Response, cal::Error>>>,
}

impl EventStream {
    /// The handle that cancels it, from any thread. What was sent by then stays as it is; events that
    /// wait to be taken still come, then `cancelled`.
    #[must_use]
    pub fn cancel_handle(&self) -> Cancel {
        self.cancel.clone()
    }

    /// Takes the events that are left, and gives what the whole statement answers.
    ///
    /// # Errors
    /// The one it ended with.
    pub fn finish(mut self) -> Result<Response, cal::Error> {
        self.by_ref().for_each(drop);
        self.outcome().unwrap_or_else(|| Err(refused(lost())))
    }

    /// What the thread came to, once.
    fn outcome(&mut self) -> Option<Result<Response, cal::Error>> {
        self.worker.take()?.join().ok()
    }
}

impl Iterator for EventStream {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        loop {
            match self.events.as_ref()?.recv().ok()? {
                Message::Event(event) => return Some(event),
                Message::Began => {}
            }
        }
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.cancel.cancel();
        // A thread that waits for room goes on once nobody can take anything.
        self.events = None;
        self.outcome();
    }
}

/// The thread ended without an answer, which takes a panic of the host's own code.
fn lost() -> Error {
    Error::integrity("the thread of the stream ended without an answer")
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn who_takes_nothing_is_waited_for_until_patience_is_over() {
        let (sender, receiver) = sync_channel(1);
        let cancel = Cancel::new();
        let patience = Duration::from_millis(20);
        let mut sending = Sending { sender, patience, cancel: cancel.clone() };
        assert!(sending.send(Message::Began).is_continue());
        assert!(sending.send(Message::Began).is_break(), "nobody made room");
        assert!(sending.patience.is_zero());
        assert!(receiver.recv().is_ok());
        assert!(sending.send(Message::Began).is_continue(), "there is room, and no need to wait");
        sending.patience = Duration::MAX;
        cancel.cancel();
        assert!(sending.send(Message::Began).is_break(), "nobody wants it any longer");
        assert!(receiver.recv().is_ok());
        assert!(sending.send(Message::Began).is_continue());
        sending.patience = Duration::MAX;
        let late = thread::spawn(move || {
            thread::sleep(PAUSES.1);
            (receiver.recv().is_ok(), receiver)
        });
        assert!(sending.send(Message::Began).is_continue());
        let (taken, receiver) = late.join().unwrap();
        assert!(taken);
        drop(receiver);
        assert!(sending.send(Message::Began).is_break(), "it went away");
    }
}
