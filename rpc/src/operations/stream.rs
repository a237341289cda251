//! The method `cal_stream`, and the notifications it sends before it answers.

use std::io::Write;
use std::ops::ControlFlow;

use grainstore::cal::{Event, EventListener, StreamStart};
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::calls::token;
use super::params::{self, CalStream, time};
use super::read::query_text;
use crate::error::{Error, Result};
use crate::patience::Patience;
use crate::protocol::answer::Answer;
use crate::protocol::fault::Fault;
use crate::protocol::host::Host;
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
}

/// `{"jsonrpc": "2.0", "method": "event", "params": {"request": id, "event": {..}}}`.
#[derive(Serialize)]
struct Notification<'n> {
    jsonrpc: &'static str,
    method: &'static str,
    params: Told<'n>,
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
    ) -> Self {
        Self { to, request, assembly_id: String::new(), sent: 0, failed: None, patience }
    }

    /// Returns the error of the output, if there was one.
    ///
    /// # Errors
    /// The error of writing an event.
    pub(crate) fn finish(self) -> Result<()> {
        self.patience.end();
        self.failed.map_or(Ok(()), Err)
    }

    fn send(&mut self, event: &Event) -> Result<()> {
        let Some(request) = self.request else { return Ok(()) };
        let params = Told { request, event };
        let line = Notification { jsonrpc: "2.0", method: "event", params };
        serde_json::to_writer(&mut *self.to, &line)?;
        self.to.write_all(b"\n")?;
        Ok(self.to.flush()?)
    }
}

impl EventListener for Events<'_> {
    fn begins(&mut self, began: &StreamStart<'_>) {
        self.assembly_id = began.assembly_id.to_owned();
        if self.request.is_some() {
            self.patience.begin();
        }
    }

    fn event(&mut self, event: Event) -> ControlFlow<()> {
        match self.send(&event) {
            Ok(()) => {
                self.sent += 1;
                ControlFlow::Continue(())
            }
            Err(error) => {
                self.failed = Some(error);
                ControlFlow::Break(())
            }
        }
    }
}

/// Runs an ASSEMBLE and sends its events meanwhile. The answer has only what the events do not: the text is
/// in the events alone.
pub(crate) fn cal_stream(
    host: &mut Host,
    params: Option<&RawValue>,
    events: &mut Events<'_>,
) -> Result<Answer, Fault> {
    let params: CalStream = params::read(params)?;
    let session = host.session()?;
    let response = match params {
        CalStream {
            query: Some(query),
            token: None,
            params,
            now,
            format,
            auto_toon,
            namespace,
            user_id,
            agent_id,
        } => {
            let query = query_text(&query)?;
            let question = Question {
                query: query.as_bytes(),
                params: params.map(|pairs| pairs.0).unwrap_or_default(),
                format,
                auto_toon,
                now: time(now),
                ..Question::default()
            };
            let session = session.narrower_part(namespace, user_id, agent_id)?;
            question.ask_streaming(&session, events)?
        }
        CalStream {
            query: None,
            token: Some(given),
            params: None,
            now: None,
            format: None,
            auto_toon: false,
            namespace: None,
            user_id: None,
            agent_id: None,
        } => {
            let answer = session.execute_streaming(&token(given)?, events);
            answer.map_err(|error| Error::cal(&error, ""))?
        }
        _ => return Err(Fault::params("give query with what cal takes, or token alone")),
    };
    Answer::of(&json!({
        "_cal": response.meta,
        "assembly_id": events.assembly_id,
        "events": events.sent,
    }))
}
