//! A streamed ASSEMBLE: its events to a listener on the caller's thread, or from a thread of its own to an
//! iterator.
//!
//! Events are made while the statement runs, and a bounded channel holds a few of them between the two
//! threads. A consumer that takes none blocks the statement, whose own deadline is extended meanwhile, until
//! the listener timeout is used up.

use std::ops::ControlFlow;
use std::time::Duration;

use grainstore_cal::{
    self as cal, CancelHandle, Event, EventListener, ExecuteOptions, Format, Params, Response,
    StreamStart,
};
use grainstore_format::EpochMs;

use super::prepare::cal_error;
use crate::base::error::Error;
use crate::base::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use crate::base::sync::thread::{self, JoinHandle};
use crate::handle::capability_token::CapabilityToken;
use crate::handle::session::Session;

/// Capacity of the channel, in events.
const CHANNEL_CAPACITY: usize = 16;
/// Time a cancelled stream may still wait for the consumer to take its last events.
const CANCELLED_WAIT: Duration = Duration::from_secs(1);
/// Sleep between tries for room in the channel: first, and at most.
const SEND_PAUSES: (Duration, Duration) = (Duration::from_micros(50), Duration::from_millis(5));

/// Options of [`Session::stream`]. Tokens are counted by the default estimator.
#[derive(Debug, Clone, Default)]
pub struct StreamOptions {
    /// Values of parameters.
    pub params: Params,
    /// Output format, in place of the statement's own.
    pub as_format: Option<Format>,
    /// True if a tight budget may choose toon where the statement names no format.
    pub auto_toon: bool,
    /// The time against which time phrases are resolved; by default the store's now.
    pub now: Option<EpochMs>,
    /// Total time it may wait for its events to be taken; 60 seconds by default. After that it ends with
    /// `CAL-E082`, so that it does not hold its view of the store for good.
    pub listener_timeout: Option<Duration>,
}

impl Session {
    /// Runs one ASSEMBLE and hands its events to a listener while it is assembled, as its STREAM clause asks
    /// (docs/cal.md, Streaming); all events without one. [`Session::stream`] gives them as an iterator. The
    /// answer is that of [`Session::ask_with`].
    ///
    /// # Errors
    /// As [`Session::ask_with`]; `CAL-E079` for any other statement, `CAL-E082` if the options' handle
    /// cancels it or the listener stops taking events. A statement refused before [`EventListener::on_start`] has no
    /// events; after it, the last event has the same error.
    pub fn ask_streaming(
        &self,
        query: &[u8],
        options: &ExecuteOptions<'_>,
        listener: &mut dyn EventListener,
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
        listener: &mut dyn EventListener,
    ) -> Result<Response, cal::Error> {
        self.execute_with(token, Some(listener))
    }

    /// Runs one ASSEMBLE on a thread of its own, with its events as an iterator. Returns once the statement
    /// is checked and has started.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let options = grainstore::OpenOptions::new().create(true);
    /// # let store = grainstore::Store::open(dir.path().join("s.grains"), &options)?;
    /// # let session = store.session(grainstore::SessionOptions::default());
    /// use grainstore::cal::EventKind;
    ///
    /// let query = "ASSEMBLE FROM known: (RECALL beliefs) BUDGET 500 tokens STREAM { chunks }";
    /// let mut events = session.stream(query, grainstore::StreamOptions::default())?;
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
    /// Errors before it starts: as [`Session::ask_streaming`]; `ERR_IO` if a thread cannot be started.
    pub fn stream(&self, query: &str, streaming: StreamOptions) -> Result<EventStream, cal::Error> {
        let (sender, receiver) = sync_channel(CHANNEL_CAPACITY);
        let (session, cancel, query) = (self.clone(), CancelHandle::new(), query.to_owned());
        let own = cancel.clone();
        let run = move || {
            let StreamOptions { params, as_format, auto_toon, now, listener_timeout: patience } =
                streaming;
            let usual = ExecuteOptions::at(now.unwrap_or_else(|| session.now()));
            let patience = patience.unwrap_or(usual.listener_timeout);
            let mut sending =
                ChannelListener { sender, listener_time_left: patience, cancel: own.clone() };
            let options = ExecuteOptions {
                params,
                as_format,
                auto_toon,
                cancel: own,
                listener_timeout: patience,
                ..usual
            };
            session.ask_streaming(query.as_bytes(), &options, &mut sending)
        };
        let worker = thread::Builder::new().name("grainstore-stream".to_owned()).spawn(run);
        let worker = worker.map_err(|error| cal_error(Error::from(error)))?;
        let began = receiver.recv();
        let stream = EventStream { events: Some(receiver), cancel, worker: Some(worker) };
        match began {
            Ok(_) => Ok(stream),
            Err(_) => stream.finish().and_then(|_| Err(cal_error(thread_lost()))),
        }
    }
}

/// A message from the statement's thread to the consumer.
#[derive(Debug)]
enum StreamMessage {
    Started,
    Event(Event),
}

struct ChannelListener {
    sender: SyncSender<StreamMessage>,
    /// Remaining time it may wait for the consumer.
    listener_time_left: Duration,
    cancel: CancelHandle,
}

impl ChannelListener {
    /// Sends a message, waiting for room. `Break` if the consumer is gone or the time is used up.
    fn send(&mut self, mut message: StreamMessage) -> ControlFlow<()> {
        let mut pause = SEND_PAUSES.0;
        loop {
            match self.sender.try_send(message) {
                Ok(()) => return ControlFlow::Continue(()),
                Err(TrySendError::Full(back)) if !self.listener_time_left.is_zero() => {
                    message = back;
                }
                Err(_) => return ControlFlow::Break(()),
            }
            if self.cancel.stop_reason().is_some() {
                self.listener_time_left = self.listener_time_left.min(CANCELLED_WAIT);
            }
            thread::sleep(pause);
            self.listener_time_left = self.listener_time_left.saturating_sub(pause);
            pause = (pause * 2).min(SEND_PAUSES.1);
        }
    }
}

impl EventListener for ChannelListener {
    fn on_start(&mut self, _: &StreamStart<'_>) {
        // A consumer that is gone is noticed at the first event.
        let _ = self.send(StreamMessage::Started);
    }

    fn on_event(&mut self, event: Event) -> ControlFlow<()> {
        self.send(StreamMessage::Event(event))
    }
}

/// The events of a streamed ASSEMBLE, in order: [`Session::stream`]. The last event says how it ended:
/// `assembly_completed`, `error` without a source, or `cancelled`; [`EventStream::finish`] then returns the
/// answer or the error. A stream whose events were not taken for longer than
/// [`StreamOptions::listener_timeout`] ends without a last event. Dropping it cancels the statement and waits
/// until its thread has stopped.
#[derive(Debug)]
pub struct EventStream {
    events: Option<Receiver<StreamMessage>>,
    cancel: CancelHandle,
    worker: Option<JoinHandle<Result<Response, cal::Error>>>,
}

impl EventStream {
    /// The handle that cancels it, from any thread. Events already in the channel are still delivered, then
    /// `cancelled`.
    #[must_use]
    pub fn cancel_handle(&self) -> CancelHandle {
        self.cancel.clone()
    }

    /// Drains the remaining events, and returns the answer of the statement.
    ///
    /// # Errors
    /// The error it ended with.
    pub fn finish(mut self) -> Result<Response, cal::Error> {
        self.by_ref().for_each(drop);
        self.outcome().unwrap_or_else(|| Err(cal_error(thread_lost())))
    }

    /// The result of the thread; `None` on later calls, or if it panicked.
    fn outcome(&mut self) -> Option<Result<Response, cal::Error>> {
        self.worker.take()?.join().ok()
    }
}

impl Iterator for EventStream {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        loop {
            match self.events.as_ref()?.recv().ok()? {
                StreamMessage::Event(event) => return Some(event),
                StreamMessage::Started => {}
            }
        }
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.cancel.cancel();
        // Disconnecting the channel releases a thread that waits for room.
        self.events = None;
        self.outcome();
    }
}

/// The error if the thread ended without an answer, which takes a panic in the host's own code.
fn thread_lost() -> Error {
    Error::integrity("the thread of the stream ended without an answer")
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn who_takes_nothing_is_waited_for_until_patience_is_over() {
        let (sender, receiver) = sync_channel(1);
        let cancel = CancelHandle::new();
        let patience = Duration::from_millis(20);
        let mut sending =
            ChannelListener { sender, listener_time_left: patience, cancel: cancel.clone() };
        assert!(sending.send(StreamMessage::Started).is_continue());
        assert!(sending.send(StreamMessage::Started).is_break(), "nobody made room");
        assert!(sending.listener_time_left.is_zero());
        assert!(receiver.recv().is_ok());
        assert!(
            sending.send(StreamMessage::Started).is_continue(),
            "there is room, and no need to wait"
        );
        sending.listener_time_left = Duration::MAX;
        cancel.cancel();
        assert!(sending.send(StreamMessage::Started).is_break(), "nobody wants it any longer");
        assert!(receiver.recv().is_ok());
        assert!(sending.send(StreamMessage::Started).is_continue());
        sending.listener_time_left = Duration::MAX;
        let late = thread::spawn(move || {
            thread::sleep(SEND_PAUSES.1);
            (receiver.recv().is_ok(), receiver)
        });
        assert!(sending.send(StreamMessage::Started).is_continue());
        let (taken, receiver) = late.join().unwrap();
        assert!(taken);
        drop(receiver);
        assert!(sending.send(StreamMessage::Started).is_break(), "it went away");
    }
}
