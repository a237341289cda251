//! Records as grains: which type each is, which field has what, and what goes into the context.
//!
//! The same record gives the same grain. Knows no store, and no format but by its name.

use std::borrow::Cow;

use grainstore::format::{Int, Map, Value};
use grainstore::{ContentAddress, EpochMs, Grain};

use super::record::{Body, Record};
use crate::error::Result;
use crate::json;

/// The confidence of what a source says without one: neither for nor against it.
const UNSTATED_CONFIDENCE: f64 = 0.5;
/// The relation of what an agent keeps before it (OMS 8).
const STATE_AT: &str = "mg:state_at";
/// The name in the context of when a record was changed last, where that is not when its grain was made.
pub(super) const UPDATED_AT: &str = "migrate:updated_at";
/// The name in the context of the agent that a record is of.
pub(super) const AGENT: &str = "migrate:agent";
/// A mark that JSON may have in its texts, and a grain may not (OMS 4.4).
const BYTE_ORDER_MARK: char = '\u{feff}';

/// What a record is given beside what it says.
#[derive(Debug)]
pub(super) struct Setting<'s> {
    pub(super) format: &'static str,
    /// The id of the record in its source.
    pub(super) id: &'s str,
    pub(super) created_at: EpochMs,
    /// The namespace and the user that take the place of those of the source.
    pub(super) namespace: Option<&'s str>,
    pub(super) user: Option<&'s str>,
    /// The grain of the message before it.
    pub(super) parent: Option<ContentAddress>,
    /// The grain that this one takes the place of.
    pub(super) predecessor: Option<ContentAddress>,
    /// When a record that was erased was asked for again.
    pub(super) returned: Option<EpochMs>,
}

/// Makes the grain of a record.
///
/// # Errors
/// The code of OMS section 19 for what no grain can be.
pub(super) fn grain_of(record: &Record, setting: &Setting<'_>) -> Result<Grain> {
    let mut fields = Fields::default();
    fields.text("source_type", Some("imported"));
    fields.time("created_at", Some(setting.created_at));
    fields.time("valid_from", record.valid_from);
    fields.time("valid_to", record.valid_to);
    fields.text("namespace", setting.namespace.or(record.namespace.as_deref()));
    fields.text("origin_namespace", record.namespace.as_deref());
    fields.text("user_id", setting.user.or(record.who.user.as_deref()));
    fields.text("session_id", record.who.session.as_deref());
    fields.text("run_id", record.who.run.as_deref());
    fields.text("role", record.who.role.as_deref());
    fields.text("recall_priority", record.priority);
    if !record.tags.is_empty() {
        fields.set("structural_tags", Value::Array(record.tags.iter().map(text_of).collect()));
    }
    if let Some(old) = setting.predecessor {
        fields.set("derived_from", Value::from(vec![old.to_string()]));
    }
    let mut context = context_of(record, setting);
    fields.body(&record.body, setting, &mut context);
    fields.set("context", Value::Map(context));
    Ok(Grain::from_fields(fields.0)?)
}

/// What of a record has no field: where it comes from, and all else it says.
fn context_of(record: &Record, setting: &Setting<'_>) -> Map {
    let mut context = Fields::default();
    context.text("migrate:format", Some(setting.format));
    context.text("migrate:id", Some(setting.id));
    context.text("migrate:kind", Some(record.kind));
    context.text(AGENT, record.who.agent.as_deref());
    let updated = record.updated.filter(|time| *time != setting.created_at);
    context.text(UPDATED_AT, updated.map(|time| time.to_string()).as_deref());
    context.text("migrate:created_at", record.made.map(|time| time.to_string()).as_deref());
    context.text("migrate:returned_at", setting.returned.map(|at| at.to_string()).as_deref());
    if !record.rest.is_empty() {
        let rest = json::ascii(&json::Value::Object(record.rest.clone()));
        context.text("migrate:rest", Some(&rest));
    }
    context.0
}

/// Fields of a grain that is made.
#[derive(Default)]
struct Fields(Map);

impl Fields {
    fn set(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }

    fn text(&mut self, name: &str, text: Option<&str>) {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            self.set(name, text_of(text));
        }
    }

    fn time(&mut self, name: &str, time: Option<EpochMs>) {
        if let Some(time) = time {
            self.set(name, Value::from(time.get()));
        }
    }

    fn body(&mut self, body: &Body, setting: &Setting<'_>, context: &mut Map) {
        match body {
            Body::Fact { subject, relation, object, confidence } => {
                self.text("type", Some("belief"));
                self.text("subject", Some(subject));
                self.text("relation", Some(relation));
                self.set("object", object_of(object));
                self.set("confidence", Value::from(confidence.unwrap_or(UNSTATED_CONFIDENCE)));
            }
            Body::Message { text, model, .. } => {
                self.text("type", Some("event"));
                self.text("content", Some(text));
                self.text("model_id", model.as_deref());
                let parent = setting.parent.map(|parent| parent.to_string());
                self.text("parent_message_id", parent.as_deref());
            }
            Body::State { subject, context: state } => {
                self.text("type", Some("state"));
                self.text("subject", Some(subject));
                self.text("relation", Some(STATE_AT));
                for (name, value) in state {
                    context.insert(name.clone(), value_of(value));
                }
            }
            Body::Procedure { trigger, steps } => {
                self.text("type", Some("workflow"));
                self.text("trigger", Some(trigger));
                self.set("steps", Value::Array(steps.iter().map(text_of).collect()));
            }
        }
    }
}

/// Text as a grain may have it.
fn text_of(text: impl AsRef<str>) -> Value {
    Value::Str(clean(text.as_ref()).into_owned())
}

fn clean(text: &str) -> Cow<'_, str> {
    match text.contains(BYTE_ORDER_MARK) {
        true => Cow::Owned(text.replace(BYTE_ORDER_MARK, "")),
        false => Cow::Borrowed(text),
    }
}

/// The object of a triple: a text or a map.
fn object_of(value: &json::Value) -> Value {
    match value {
        json::Value::String(_) | json::Value::Object(_) => value_of(value),
        other => Value::Str(json::line(other)),
    }
}

fn value_of(value: &json::Value) -> Value {
    match value {
        json::Value::Null => Value::Null,
        json::Value::Bool(flag) => Value::Bool(*flag),
        json::Value::Number(number) => number_of(number),
        json::Value::String(text) => text_of(text),
        json::Value::Array(items) => Value::Array(items.iter().map(value_of).collect()),
        json::Value::Object(members) => {
            let members =
                members.iter().map(|(name, value)| (clean(name).into_owned(), value_of(value)));
            Value::Map(members.collect())
        }
    }
}

fn number_of(number: &serde_json::Number) -> Value {
    let integer = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    match integer.and_then(Int::new) {
        Some(integer) => Value::Int(integer),
        None => Value::Float(number.as_f64().unwrap_or_default()),
    }
}
