//! What of an agent of Letta has no place of its own, and is kept beside its prompt; secrets are not.

use serde_json::{Map, Value};

use super::NO_MEMORY;
use crate::alf::is_secret_name;
use crate::migrate::record::rest;

/// Members of an agent that have a place, and those that point at parts of the file that have one.
const USED: [&str; 9] = [
    "id",
    "system",
    "messages",
    "core_memory",
    "block_ids",
    "in_context_message_ids",
    "message_ids",
    "created_at",
    "updated_at",
];
/// What alone makes no state of an agent: what it is called and of which kind.
const NAMES: [&str; 5] = ["name", "description", "agent_type", "version", "tags"];

/// What is kept of an agent.
pub(super) struct Kept {
    /// Its members without a place.
    pub(super) rest: Map<String, Value>,
    /// The places of secrets in it, which stay behind.
    pub(super) secrets: Vec<String>,
}

impl Kept {
    pub(super) fn of(members: &Map<String, Value>) -> Self {
        let used: Vec<&str> =
            USED.into_iter().chain(NO_MEMORY.into_iter().map(|(name, _)| name)).collect();
        let mut members = members.clone();
        // The model has a place.
        if let Some(Value::Object(config)) = members.get_mut("llm_config") {
            config.remove("model");
        }
        let mut secrets = Vec::new();
        take_secrets(&mut members, "", &mut secrets);
        Self { rest: rest(&members, &used), secrets }
    }
}

/// Returns `true` if there is nothing beside names.
pub(super) fn is_names_alone(rest: &Map<String, Value>) -> bool {
    rest.keys().all(|name| NAMES.contains(&name.as_str()))
}

/// Takes out the members whose names speak of a secret and that hold a text, and notes where they were.
fn take_secrets(members: &mut Map<String, Value>, place: &str, found: &mut Vec<String>) {
    members.retain(|name, value| {
        let place = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
        // What has a reason of its own to stay behind is told with that.
        if place == *name && NO_MEMORY.iter().any(|(part, _)| part == name)
            || USED.contains(&&*place)
        {
            return true;
        }
        if is_secret_name(name) && has_text(value) {
            found.push(place);
            return false;
        }
        within(value, &place, found);
        true
    });
}

fn within(value: &mut Value, place: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => take_secrets(members, place, found),
        Value::Array(items) => items.iter_mut().for_each(|item| within(item, place, found)),
        _ => {}
    }
}

fn has_text(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => items.iter().any(has_text),
        Value::Object(members) => members.values().any(has_text),
        _ => false,
    }
}
