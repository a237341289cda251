//! The operation `cal_stream`, and the notifications it sends before it answers.

use std::io::Write;
use std::ops::ControlFlow;

use grainstore::Session;
use grainstore::cal::{CancelHandle, Event, EventListener, Format, Response, StreamStart};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::calls::{query_text, token};
use crate::arguments::epoch_ms;
use crate::error::{Error, Result};
use crate::json::Pairs;
use crate::patience::Patience;
use crate::question::Question;

/// The output of a request's events.
pub(crate) struct Events<'e> {
    to: &'e mut dyn Write,
    /// Id of the request, `None` for a notification, which gets no events.
    request: Option<&'e RawValue>,
    assembly_id: String,
    sent: u64,
    /// The error that ended the output.
    failed: Option<Error>,
    /// The patience with who reads the events.
    patience: &'e Patience,
    /// Cancels the statement once a signal has asked to stop.
    cancel: CancelHandle,
    /// True if the statement runs under that handle; one of a token does not.
    is_cancellable: bool,
}

/// A notification, such as `{"jsonrpc": "2.0", "method": "event", "params": {"request": id, "event": {..}}}`.
#[derive(Serialize)]
struct Notification<P> {
    jsonrpc: &'static str,
    method: &'static str,
    params: P,
}

#[derive(Serialize)]
struct Told<'n> {
    request: &'n RawValue,
    event: &'n Event,
}

impl<'e> Events<'e> {
    pub(crate) fn of(
        to: &'e mut dyn Write,
        request: Option<&'e RawValue>,
        patience: &'e Patience,
        cancel: CancelHandle,
    ) -> Self {
        let assembly_id = String::new();
        let (sent, failed, is_cancellable) = (0, None, false);
        Self { to, request, assembly_id, sent, failed, patience, cancel, is_cancellable }
    }

    /// Returns the error of the output, if there was one.
    pub(crate) fn finish(self) -> Result<()> {
        self.patience.end();
        self.failed.map_or(Ok(()), Err)
    }

    fn send(&mut self, event: &Event) -> Result<()> {
        let Some(request) = self.request else { return Ok(()) };
        self.send_line("event", Told { request, event })
    }

    fn send_line(&mut self, method: &'static str, params: impl Serialize) -> Result<()> {
        let line = Notification { jsonrpc: "2.0", method, params };
        serde_json::to_writer(&mut *self.to, &line)?;
        self.to.write_all(b"\n")?;
        Ok(self.to.flush()?)
    }
}

/// `{"jsonrpc": "2.0", "method": "progress", "params": {"request": id, "done": 2000, "of": 50000}}`.
#[derive(Serialize)]
struct Progress<'n> {
    request: &'n RawValue,
    done: u64,
    of: u64,
}

impl Events<'_> {
    /// What cancels the request.
    pub(super) fn cancel(&self) -> CancelHandle {
        self.cancel.clone()
    }

    /// Returns `true` if the request is to end: it was cancelled, or a signal has asked to stop.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.patience.is_stopped() || self.cancel.check().is_err()
    }

    /// Sends on a line that another process has sent for the request.
    pub(crate) fn forward(&mut self, line: &[u8]) -> Result<()> {
        if self.request.is_none() {
            return Ok(());
        }
        if self.patience.idle().load(std::sync::atomic::Ordering::SeqCst) {
            self.patience.begin();
        }
        self.to.write_all(line)?;
        self.to.write_all(b"\n")?;
        Ok(self.to.flush()?)
    }

    /// Begins work that is no stream, and returns what cancels it.
    pub(super) fn begin_work(&mut self) -> CancelHandle {
        if self.request.is_some() {
            self.patience.begin();
        }
        self.is_cancellable = true;
        self.cancel.clone()
    }

    /// Sends how far work is, if `is_told`, and cancels it if nobody reads that or a signal has asked to stop.
    pub(super) fn tell_progress(&mut self, is_told: bool, done: u64, of: u64) {
        let sent = match self.request.filter(|_| is_told) {
            None => Ok(()),
            Some(request) => self.send_line("progress", Progress { request, done, of }),
        };
        if let Err(error) = sent {
            self.failed = Some(error);
            self.cancel.cancel();
        } else if self.patience.is_stopped() {
            self.cancel.cancel();
        }
    }
}

/// A writer that hands over whole lines.
pub(crate) struct LineSink<'s> {
    line: Vec<u8>,
    to: &'s mut dyn FnMut(&[u8]) -> Result<()>,
}

impl<'s> LineSink<'s> {
    pub(crate) fn new(to: &'s mut dyn FnMut(&[u8]) -> Result<()>) -> Self {
        Self { line: Vec::new(), to }
    }
}

impl Write for LineSink<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.line.extend_from_slice(bytes);
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
            (self.to)(&self.line)
                .map_err(|_| std::io::Error::from(std::io::ErrorKind::BrokenPipe))?;
            self.line.clear();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl EventListener for Events<'_> {
    fn on_start(&mut self, began: &StreamStart<'_>) {
        self.assembly_id = began.assembly_id.to_owned();
        if self.request.is_some() {
            self.patience.begin();
        }
    }

    fn on_event(&mut self, event: Event) -> ControlFlow<()> {
        match self.send(&event) {
            Ok(()) => {
                self.sent += 1;
                if !self.patience.is_stopped() {
                    return ControlFlow::Continue(());
                }
                self.cancel.cancel();
                if self.is_cancellable { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            }
            Err(error) => {
                self.failed = Some(error);
                ControlFlow::Break(())
            }
        }
    }
}

/// Runs an ASSEMBLE, of a query like that of `cal` or of the token of a prepared statement, and sends its
/// events meanwhile.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CalStream {
    query: Option<Box<RawValue>>,
    token: Option<Value>,
    params: Option<Pairs>,
    now: Option<i64>,
    #[serde(rename = "as")]
    format: Option<Format>,
    #[serde(default)]
    auto_toon: bool,
    namespace: Option<String>,
    user_id: Option<String>,
    agent_id: Option<String>,
}

/// The answer has only what the events do not: the text is in the events alone.
pub(crate) fn cal_stream(
    mut given: CalStream,
    session: &Session,
    events: &mut Events<'_>,
) -> Result<Value> {
    let response = match (given.query.take(), given.token.take()) {
        (Some(query), None) => given.of_query(&query, session, events)?,
        (None, Some(sent)) if given.is_empty() => {
            let answer = session.execute_streaming(&token(sent)?, events);
            answer.map_err(|error| Error::from_cal(&error, ""))?
        }
        _ => return Err(Error::arguments("give query with what cal takes, or token alone")),
    };
    Ok(json!({
        "_cal": response.meta,
        "assembly_id": events.assembly_id,
        "events": events.sent,
    }))
}

impl CalStream {
    fn of_query(
        self,
        query: &RawValue,
        session: &Session,
        events: &mut Events<'_>,
    ) -> Result<Response> {
        let query = query_text(query)?;
        events.is_cancellable = true;
        let question = Question {
            query: query.as_bytes(),
            params: self.params.unwrap_or_default().0,
            format: self.format,
            auto_toon: self.auto_toon,
            now: epoch_ms(self.now),
            cancel: events.cancel.clone(),
            ..Question::default()
        };
        let session = session.narrower_part(self.namespace, self.user_id, self.agent_id)?;
        question.run_streaming(&session, events)
    }

    /// Returns `true` if nothing is given beside a query or token.
    fn is_empty(&self) -> bool {
        let texts = [&self.namespace, &self.user_id, &self.agent_id];
        self.params.is_none()
            && self.now.is_none()
            && self.format.is_none()
            && !self.auto_toon
            && texts.iter().all(|text| text.is_none())
    }
}
