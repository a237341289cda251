//! Operations about agents and conversations: `thread`, `owner`, `capabilities`, `handoffs`; and `latest`, the
//! grain in force for a subject and relation now or at a time.

use grainstore::{AsOf, Session, graph};
use serde::Deserialize;
use serde_json::{Value, json};

use super::graph::{graph_options, list_answer};
use crate::arguments::epoch_ms;
use crate::error::{Error, Result};
use crate::json::Address;
use crate::shape::Version;

/// Reads a conversation by one of its messages, its session, or a state that remembers it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Thread {
    message: Option<Address>,
    session_id: Option<String>,
    state: Option<Address>,
    #[serde(default)]
    include_superseded: bool,
}

pub(crate) fn thread(given: Thread, session: &Session) -> Result<graph::Thread> {
    let options = graph_options(given.include_superseded);
    Ok(match (given.message, given.session_id, given.state) {
        (Some(message), None, None) => session.thread(&message.get()?, &options)?,
        (None, Some(id), None) => session.thread_of_session(&id, &options)?,
        (None, None, Some(state)) => session.thread_from_state(&state.get()?, &options)?,
        _ => return Err(Error::arguments("give exactly one of message, session_id and state")),
    })
}

/// Names the owner of an agent.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Owner {
    agent: String,
}

pub(crate) fn owner(given: Owner, session: &Session) -> Result<graph::Ownership> {
    Ok(session.owner(&given.agent)?)
}

/// Lists the capabilities of an agent, or who has a capability or tool.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Capabilities {
    agent: Option<String>,
    name: Option<String>,
}

pub(crate) fn capabilities(given: Capabilities, session: &Session) -> Result<Value> {
    let found = match (given.agent, given.name) {
        (Some(agent), None) => session.capabilities(&agent)?,
        (None, Some(name)) => session.agents_with(&name)?,
        _ => return Err(Error::arguments("give exactly one of agent and name")),
    };
    list_answer("capabilities", &found)
}

/// Lists the handoffs of a conversation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Handoffs {
    session_id: String,
}

pub(crate) fn handoffs(given: Handoffs, session: &Session) -> Result<Value> {
    list_answer("handoffs", &session.handoffs(&given.session_id)?)
}

/// Reads the grain in force for a subject and relation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Latest {
    subject: String,
    relation: String,
    namespace: Option<String>,
    as_of: Option<i64>,
    valid_at: Option<i64>,
}

pub(crate) fn latest(given: Latest, session: &Session) -> Result<Value> {
    let as_of = AsOf { known_at: epoch_ms(given.as_of), valid_at: epoch_ms(given.valid_at) };
    let namespace = given.namespace.as_deref();
    let found = session.latest_as_of(&given.subject, &given.relation, namespace, &as_of)?;
    Ok(json!({ "version": found.map(Version::try_from).transpose()? }))
}
