//! The messages of a Letta agent, one thread.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::own_id;

use crate::error::Result;
use crate::migrate::record::{Body, Record, Sink, Who, rest, text};
use crate::migrate::time::{Dated, Unit, instant};

/// Fields of a message that have a place.
const USED: [&str; 9] =
    ["id", "role", "content", "text", "created_at", "updated_at", "model", "agent_id", "group_id"];

/// The thread of an agent.
pub(super) struct Thread<'t> {
    agent: &'t str,
    place: &'t str,
    who: Who,
}

impl<'t> Thread<'t> {
    pub(super) fn of(agent: &'t str, place: &'t str, who: Who) -> Self {
        Self { agent, place, who }
    }

    /// Reads the messages in their order: each answers the one before it.
    pub(super) fn read(&self, messages: Option<&Value>, sink: &mut dyn Sink) -> Result<()> {
        let messages = messages.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let mut parent = None;
        for (number, message) in (1_usize..).zip(messages) {
            let place = format!("{}: message {number}", self.place);
            let Some(members) = message.as_object() else {
                sink.misshapen(&place, "the message is no object")?;
                continue;
            };
            let parts = [spoken(members), calls(members)];
            // It is known by the first of them: what is beside it may be told more or less fully.
            let Some(first) = parts.iter().flatten().next() else {
                sink.skip(&place, "the message has no text")?;
                continue;
            };
            let id = format!("message {}", self.id(members, first));
            let said = parts.iter().flatten().cloned().collect::<Vec<_>>().join("\n\n");
            let record = self.record(members, said, place, parent.replace(id.clone()));
            sink.record(id, record)?;
        }
        Ok(())
    }

    /// The id of a message: its own, or when who said what. The last messages are all that a file has, counted anew.
    fn id(&self, members: &Map<String, Value>, said: &str) -> String {
        let told = |name: &str| text(members, name).unwrap_or_default();
        own_id(members).map_or_else(
            || {
                let said = data_encoding::HEXLOWER.encode(&Sha256::digest(said));
                let parts = [self.agent, told("created_at"), told("role"), &said];
                Value::from(parts.to_vec()).to_string()
            },
            str::to_owned,
        )
    }

    fn record(
        &self,
        members: &Map<String, Value>,
        said: String,
        place: String,
        parent: Option<String>,
    ) -> Record {
        let mut left = rest(members, &USED);
        if let Some(parts) = other_parts(members) {
            left.insert("content".to_owned(), parts);
        }
        let session = self.agent.to_owned();
        let role = text(members, "role").map(str::to_owned);
        let model = text(members, "model").map(str::to_owned);
        let created = Dated::of(members.get("created_at"), Unit::Seconds);
        Record {
            who: Who { session: Some(session), role, ..self.who.clone() },
            rest: left,
            updated: members.get("updated_at").and_then(|at| instant(at, Unit::Seconds)),
            ..Record::new(place, "message", Body::Message { text: said, parent, model }, created)
        }
    }
}

/// What a message says in words.
fn spoken(members: &Map<String, Value>) -> Option<String> {
    let parts = match members.get("content") {
        Some(Value::String(said)) => vec![said.as_str()],
        Some(Value::Array(parts)) => parts.iter().filter_map(text_of_part).collect(),
        _ => text(members, "text").into_iter().collect(),
    };
    Some(parts.join("\n\n")).filter(|said| !said.trim().is_empty())
}

fn text_of_part(part: &Value) -> Option<&str> {
    match part {
        Value::String(said) => Some(said),
        Value::Object(members) => text(members, "text").or_else(|| {
            let is_return = text(members, "type") == Some("tool_return");
            text(members, "content").filter(|_| is_return)
        }),
        _ => None,
    }
}

/// The calls of tools that a message makes, each as `name(arguments)`: those of its list, else those among its parts.
fn calls(members: &Map<String, Value>) -> Option<String> {
    let list =
        |name: &str| members.get(name).and_then(Value::as_array).filter(|all| !all.is_empty());
    let is_call = |part: &&Value| match list("tool_calls") {
        Some(_) => true,
        None => part.get("type").and_then(Value::as_str) == Some("tool_call"),
    };
    let among = list("tool_calls").or_else(|| list("content"))?;
    let calls = among.iter().filter(is_call).filter_map(|call| {
        let function = call.get("function").unwrap_or(call);
        let name = function.get("name").and_then(Value::as_str)?;
        let arguments = match function.get("arguments").or_else(|| function.get("input")) {
            Some(Value::String(arguments)) => arguments.clone(),
            Some(arguments) => arguments.to_string(),
            None => String::new(),
        };
        Some(format!("{name}({arguments})"))
    });
    let calls: Vec<_> = calls.collect();
    (!calls.is_empty()).then(|| calls.join("\n"))
}

/// The parts of a message that are no text.
fn other_parts(members: &Map<String, Value>) -> Option<Value> {
    let parts = members.get("content").and_then(Value::as_array)?;
    let other = parts.iter().filter(|part| text_of_part(part).is_none());
    let other: Vec<_> = other.cloned().collect();
    (!other.is_empty()).then_some(Value::Array(other))
}
