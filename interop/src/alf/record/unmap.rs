//! The fields of a grain as the record that they say.

use grainstore::EpochMs;
use grainstore::format::{Map, Value as Field};

use super::links::is_link;
use super::map::{JSON_MEMBERS, TEXT_MEMBERS, TIMES};
use crate::alf::names::PROFILE;
use crate::json::{self, Map as Object, Value};
use crate::kept::date_text;

/// Returns an entry of `context`, by its name in ALF.
pub(in super::super) fn context_text<'f>(fields: &'f Map, name: &str) -> Option<&'f str> {
    fields.get("context")?.as_map()?.get(&PROFILE.key(name))?.as_str()
}

/// Returns what the fields say of the record, without the residue.
pub(super) fn said(fields: &Map) -> Value {
    let mut record = Object::new();
    let text = |name: &str| fields.get(name).and_then(Field::as_str);
    for name in TEXT_MEMBERS {
        if let Some(value) = context_text(fields, name) {
            record.insert(name.to_owned(), Value::from(value));
        }
    }
    for name in JSON_MEMBERS {
        let value = context_text(fields, name).and_then(|value| json::parse(value.as_bytes()).ok());
        if let Some(value) = value {
            record.insert(name.to_owned(), value);
        }
    }
    if let Some(content) = content_of(fields) {
        record.insert("content".to_owned(), Value::from(content));
    }
    let agent_id = context_text(fields, "agent_id").unwrap_or_default();
    let namespace = text("namespace").and_then(|namespace| {
        namespace.strip_prefix("agent:")?.strip_prefix(agent_id)?.strip_prefix(':')
    });
    if let Some(namespace) = namespace {
        record.insert("namespace".to_owned(), Value::from(namespace));
    }
    let defaults = context_text(fields, "defaults").unwrap_or_default();
    let is_given = |name: &str| !defaults.split(',').any(|default| default == name);
    if let Some(confidence) = fields.get("confidence").and_then(Field::as_f64)
        && is_given("confidence")
    {
        record.insert("confidence".to_owned(), Value::from(confidence));
    }
    let tags = fields.get("structural_tags").and_then(Field::as_array).unwrap_or_default();
    // Behind the tag of the format are those for what the record names.
    let end = tags.iter().rposition(|tag| tag.as_str() == Some(&PROFILE.tag()));
    let tags = tags.get(..end.unwrap_or_default()).unwrap_or_default();
    let tags: Vec<Value> = tags.iter().filter_map(Field::as_str).map(Value::from).collect();
    if !tags.is_empty() {
        record.insert("tags".to_owned(), Value::from(tags));
    }
    record.insert("temporal".to_owned(), Value::Object(times_of(fields)));
    Value::Object(record)
}

/// Returns what a copy of the grain of a record says that is not of that record alone.
pub(in super::super) fn said_by_copy(fields: &Map) -> Object<String, Value> {
    let Value::Object(mut said) = said(fields) else { return Object::new() };
    said.retain(|name, _| matches!(&**name, "content" | "memory_type" | "category" | "namespace"));
    let tags = fields.get("structural_tags").and_then(Field::as_array).unwrap_or_default();
    let tags = tags.iter().filter_map(Field::as_str);
    let own: Vec<_> = tags.filter(|tag| *tag != PROFILE.tag() && !is_link(tag)).collect();
    said.insert("tags".to_owned(), Value::from(own));
    said
}

fn times_of(fields: &Map) -> Object<String, Value> {
    let named = TIMES.into_iter().chain([("created_at", "created_at")]);
    let said = named.filter_map(|(name, field)| {
        let time = fields.get(field).and_then(Field::as_i64)?;
        Some((name.to_owned(), Value::from(date_text(EpochMs::new(time))?)))
    });
    said.collect()
}

fn content_of(fields: &Map) -> Option<&str> {
    match fields.get("type").and_then(Field::as_str)? {
        "event" => fields.get("content")?.as_str(),
        "workflow" => fields.get("steps")?.as_array()?.first()?.as_str(),
        _ => fields.get("object")?.as_str(),
    }
}
