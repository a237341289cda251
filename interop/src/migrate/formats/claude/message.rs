//! The messages of a conversation with Claude.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::error::Result;
use crate::migrate::record::{Body, Record, Sink, Who, rest, text};
use crate::migrate::time::{Dated, Unit, instant};

/// Fields of a message that have a place.
const USED: [&str; 7] =
    ["uuid", "text", "content", "sender", "created_at", "updated_at", "parent_message_uuid"];

/// Reads the messages in their order. Each answers the one that it names, or the one before it.
pub(super) fn read_all(
    messages: Option<&Value>,
    place: &str,
    who: &Who,
    sink: &mut dyn Sink,
) -> Result<()> {
    let messages = messages.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    // What is answered by whoever answers a message: itself, or what it answers if it says nothing.
    let mut answered: HashMap<&str, Option<String>> = HashMap::new();
    let mut before: Option<String> = None;
    for (number, message) in (1..).zip(messages) {
        let place = format!("{place}: message {number}");
        let members =
            message.as_object().and_then(|members| Some((members, text(members, "uuid")?)));
        let Some((members, id)) = members else {
            sink.misshapen(&place, "the message is no object with a uuid")?;
            continue;
        };
        // The first message of a thread names a parent that is nowhere.
        let named = text(members, "parent_message_uuid");
        let parent = named.and_then(|parent| answered.get(parent)).unwrap_or(&before).clone();
        let Some(said) = said(members) else {
            answered.insert(id, parent);
            sink.skip(&place, "the message has no text")?;
            continue;
        };
        let own = format!("message {id}");
        answered.insert(id, Some(own.clone()));
        before = Some(own.clone());
        sink.record(own, record(members, said, place, parent, who))?;
    }
    Ok(())
}

fn record(
    members: &Map<String, Value>,
    said: String,
    place: String,
    parent: Option<String>,
    who: &Who,
) -> Record {
    let role = match text(members, "sender") {
        Some("human") => Some("user"),
        sender => sender,
    };
    let mut left = rest(members, &USED);
    if let Some(blocks) = other_blocks(members) {
        left.insert("content".to_owned(), blocks);
    }
    let created = Dated::of(members.get("created_at"), Unit::Seconds);
    let body = Body::Message { text: said, parent, model: None };
    Record {
        who: Who { role: role.map(str::to_owned), ..who.clone() },
        updated: members.get("updated_at").and_then(|at| instant(at, Unit::Seconds)),
        rest: left,
        ..Record::new(place, "message", body, created)
    }
}

/// What a message says: the texts of its blocks, or its own, or those of its attachments.
fn said(members: &Map<String, Value>) -> Option<String> {
    let list = |name: &str| members.get(name).and_then(Value::as_array).into_iter().flatten();
    let texts = |name: &'static str, field: &'static str| {
        let texts = list(name).filter_map(move |part| text(part.as_object()?, field));
        texts.collect::<Vec<_>>().join("\n\n")
    };
    let own = || text(members, "text").unwrap_or_default().to_owned();
    let all = [texts("content", "text"), own(), texts("attachments", "extracted_content")];
    all.into_iter().find(|said| !said.trim().is_empty())
}

/// The blocks that are no text.
fn other_blocks(members: &Map<String, Value>) -> Option<Value> {
    let blocks = members.get("content").and_then(Value::as_array)?;
    let is_text = |block: &&Value| block.get("type").and_then(Value::as_str) == Some("text");
    let other: Vec<_> = blocks.iter().filter(|block| !is_text(block)).cloned().collect();
    (!other.is_empty()).then_some(Value::Array(other))
}
