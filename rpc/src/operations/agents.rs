//! Methods about agents and conversations: `thread`, `owner`, `capabilities`, `handoffs`; and `latest`, the
//! grain in force for a subject and relation now or at a time.

use grainstore::AsOf;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::graph::{lens, listed};
use super::params::{self, address, time};
use crate::protocol::answer::Answer;
use crate::protocol::fault::Fault;
use crate::protocol::host::Host;
use crate::shape::Version;

/// Parameters of `thread`: one of its messages, its session, or a state that remembers it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Thread {
    message: Option<String>,
    session_id: Option<String>,
    state: Option<String>,
    #[serde(default)]
    include_superseded: bool,
}

pub(crate) fn thread(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params: Thread = params::read(params)?;
    let lens = lens(params.include_superseded);
    let session = host.session()?;
    let thread = match (params.message, params.session_id, params.state) {
        (Some(message), None, None) => session.thread(&address(&message)?, &lens)?,
        (None, Some(id), None) => session.thread_of_session(&id, &lens)?,
        (None, None, Some(state)) => session.thread_from_state(&address(&state)?, &lens)?,
        _ => return Err(Fault::params("give exactly one of message, session_id and state")),
    };
    Answer::of(&thread)
}

/// Parameters of `owner`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Owner {
    agent: String,
}

pub(crate) fn owner(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params: Owner = params::read(params)?;
    Answer::of(&host.session()?.owner(&params.agent)?)
}

/// Parameters of `capabilities`: an agent, or the name of a capability or tool.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Capabilities {
    agent: Option<String>,
    name: Option<String>,
}

pub(crate) fn capabilities(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params: Capabilities = params::read(params)?;
    let session = host.session()?;
    let found = match (params.agent, params.name) {
        (Some(agent), None) => session.capabilities(&agent)?,
        (None, Some(name)) => session.agents_with(&name)?,
        _ => return Err(Fault::params("give exactly one of agent and name")),
    };
    listed("capabilities", &found)
}

/// Parameters of `handoffs`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Handoffs {
    session_id: String,
}

pub(crate) fn handoffs(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params: Handoffs = params::read(params)?;
    listed("handoffs", &host.session()?.handoffs(&params.session_id)?)
}

/// Parameters of `latest`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Latest {
    subject: String,
    relation: String,
    namespace: Option<String>,
    as_of: Option<i64>,
    valid_at: Option<i64>,
}

pub(crate) fn latest(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params: Latest = params::read(params)?;
    let as_of = AsOf { known_at: time(params.as_of), valid_at: time(params.valid_at) };
    let session = host.session()?;
    let namespace = params.namespace.as_deref();
    let found = session.latest_as_of(&params.subject, &params.relation, namespace, &as_of)?;
    let version = found.map(Version::try_from).transpose()?;
    Answer::of(&json!({ "version": version }))
}
