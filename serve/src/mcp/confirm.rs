//! Asking the person before something is lost, in both eras: by a request to the client while the call waits
//! (`elicitation/create`), or by an answer that asks for input, after which the client calls again (2026-07-28).
//!
//! What is confirmed stays here, under a random handle that works once, for the same call, for ten minutes.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use data_encoding::HEXLOWER;
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ElicitRequest, ElicitRequestParams,
    ElicitationCapability, ElicitationSchema, ErrorData, FormElicitationCapability, InputRequest,
    InputRequiredResult, InputResponses, ProtocolVersion, ServerRequest,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestContext, RoleServer};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::failure::{Failure, Kind, Result};

/// How long a person may take.
const PATIENCE: Duration = Duration::from_secs(600);
/// Most questions that are open at once; beyond, the oldest gives way.
const MAX_OPEN: usize = 64;
/// The name of the question, and of the value that answers it.
const QUESTION: &str = "confirm";

/// The way to the person who uses the client, for one call.
pub(super) struct Person {
    peer: Peer<RoleServer>,
    is_modern: bool,
    can_answer: bool,
    answers: Option<InputResponses>,
    state: Option<String>,
    ended: watch::Receiver<bool>,
}

/// The outcome of asking.
pub(super) enum Asked {
    /// The person agreed.
    Agreed,
    /// The client is to ask, and to call again.
    CallAgain(Box<InputRequiredResult>),
}

impl Person {
    pub(super) fn of(
        context: &RequestContext<RoleServer>,
        called: &CallToolRequestParams,
        ended: watch::Receiver<bool>,
    ) -> Self {
        let version = context.protocol_version();
        Self {
            peer: context.peer.clone(),
            is_modern: version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28),
            can_answer: context.client_capabilities().is_some_and(|client| shows_forms(&client)),
            answers: called.input_responses.clone(),
            state: called.request_state.clone(),
            ended,
        }
    }

    /// Asks whether to go on; `what` is done by this call, and is the same for the same arguments.
    ///
    /// # Errors
    /// `ERR_ACCESS` where nobody can be asked, or where the person does not agree.
    pub(super) async fn confirm(
        mut self,
        open: &Confirmations,
        what: &str,
        question: String,
    ) -> Result<Asked> {
        if !self.can_answer {
            return Err(self.unable());
        }
        if !self.is_modern {
            let answer = self.ask(form(question)?).await?;
            return agreed(&answer).map(|()| Asked::Agreed);
        }
        match self.state.take() {
            None => {
                let state = open.begin(what)?;
                let asked = InputRequest::Elicitation(ElicitRequest::new(form(question)?));
                let asked = [(QUESTION.to_owned(), asked)].into();
                let result = InputRequiredResult::new(Some(asked), Some(state));
                Ok(Asked::CallAgain(Box::new(result)))
            }
            Some(state) => {
                open.end(&state, what)?;
                let answer = self.answers.and_then(|mut answers| answers.remove(QUESTION));
                agreed(&answer.unwrap_or_default()).map(|()| Asked::Agreed)
            }
        }
    }

    /// Nobody can be asked. From 2026-07-28 on that is an error of the protocol.
    fn unable(&self) -> Failure {
        let message = "nobody can confirm it: the client has no elicitation";
        let hint = "use a client that can ask its user (elicitation), or `grain erase` on the command line";
        let failure = Failure::new(Kind::Access, message, hint);
        if !self.is_modern {
            return failure;
        }
        let mut needed = ClientCapabilities::default();
        let forms = ElicitationCapability::new().with_form(FormElicitationCapability::default());
        needed.elicitation = Some(forms);
        failure.or_by_protocol(ErrorData::missing_required_client_capability(needed))
    }

    /// Asks while the call waits.
    async fn ask(&mut self, form: ElicitRequestParams) -> Result<Value> {
        let request = ServerRequest::ElicitRequest(ElicitRequest::new(form));
        let mut options = PeerRequestOptions::no_options();
        options.timeout = Some(PATIENCE);
        let unanswered = |why: &str| {
            let hint = "nothing was done; ask again when somebody is there";
            Failure::new(Kind::Cancelled, format!("the confirmation was not answered: {why}"), hint)
        };
        let sent = self.peer.send_request_with_option(request, options).await;
        let sent = sent.map_err(|error| unanswered(&error.to_string()))?;
        tokio::select! {
            answer = sent.await_response() => {
                let answer = answer.map_err(|error| unanswered(&error.to_string()))?;
                serde_json::to_value(answer).map_err(|error| unanswered(&error.to_string()))
            }
            _ = self.ended.wait_for(|ended| *ended) => Err(unanswered("the client has gone")),
        }
    }
}

/// Whether a client can show a form; a capability without members means forms.
fn shows_forms(client: &ClientCapabilities) -> bool {
    client.elicitation.as_ref().is_some_and(|can| can.form.is_some() || can.url.is_none())
}

/// The form of the question.
fn form(question: String) -> Result<ElicitRequestParams> {
    let schema = json!({
        "type": "object",
        "properties": { QUESTION: { "type": "boolean", "title": "Erase it for good" } },
        "required": [QUESTION],
    });
    let schema = serde_json::from_value::<ElicitationSchema>(schema);
    let requested_schema =
        schema.map_err(|error| Failure::new(Kind::Schema, error.to_string(), ""))?;
    Ok(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: question,
        requested_schema,
    })
}

/// Checks that the person agreed: accepted the form, and said yes in it.
fn agreed(answer: &Value) -> Result<()> {
    let accepted = answer.get("action").and_then(Value::as_str) == Some("accept");
    let yes = answer.pointer(&format!("/content/{QUESTION}")).and_then(Value::as_bool);
    if accepted && yes == Some(true) {
        return Ok(());
    }
    let hint = "nothing was erased; do not ask again unless the person wants it";
    Err(Failure::new(Kind::Access, "the person did not agree", hint))
}

/// The questions that a client is to ask, and then to call again.
#[derive(Default)]
pub(super) struct Confirmations(Mutex<Vec<Open>>);

struct Open {
    handle: String,
    what: String,
    since: Instant,
}

impl Confirmations {
    /// Opens a question, and returns its handle.
    fn begin(&self, what: &str) -> Result<String> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)
            .map_err(|error| Failure::new(Kind::Io, error.to_string(), "try again"))?;
        let handle = HEXLOWER.encode(&bytes);
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|open| open.since.elapsed() < PATIENCE);
        if open.len() >= MAX_OPEN {
            open.remove(0);
        }
        open.push(Open { handle: handle.clone(), what: what.to_owned(), since: Instant::now() });
        Ok(handle)
    }

    /// Ends a question, which must be open, and about this.
    fn end(&self, handle: &str, what: &str) -> Result<()> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|open| open.since.elapsed() < PATIENCE);
        let at = open.iter().position(|open| open.handle == handle);
        match at.map(|at| open.remove(at)) {
            Some(found) if found.what == what => Ok(()),
            _ => {
                let hint = "call forget again without requestState";
                Err(Failure::new(Kind::Token, "this confirmation is not open for this call", hint))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_confirmation_works_once_and_for_its_own_call() {
        let open = Confirmations::default();
        let handle = open.begin("a").unwrap();
        open.end(&handle, "a").unwrap();
        assert!(open.end(&handle, "a").unwrap_err().has_code("ERR_TOKEN"));
        let handle = open.begin("a").unwrap();
        assert!(open.end(&handle, "b").is_err());
        assert!(open.end(&handle, "a").is_err(), "a wrong try uses it up");
        let first = open.begin("first").unwrap();
        let last = (0..MAX_OPEN).map(|_| open.begin("a").unwrap()).last().unwrap();
        assert!(open.end(&first, "first").is_err(), "the oldest gives way");
        open.end(&last, "a").unwrap();
    }

    #[test]
    fn only_an_accepted_yes_is_agreement() {
        agreed(&json!({ "action": "accept", "content": { "confirm": true } })).unwrap();
        for answer in [
            json!({ "action": "accept", "content": { "confirm": false } }),
            json!({ "action": "accept" }),
            json!({ "action": "accept", "content": { "confirm": "true" } }),
            json!({ "action": "decline", "content": { "confirm": true } }),
            json!({ "action": "cancel" }),
            Value::Null,
        ] {
            assert!(agreed(&answer).is_err(), "{answer}");
        }
    }
}
