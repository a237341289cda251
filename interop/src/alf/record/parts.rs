//! A record in its parts: what names it, what of it changes without making it another memory, and the rest.

use crate::alf::names::CHANGE_OF;
use crate::json::{Map, Value};
use crate::kept::{digest_of, milliseconds};

/// Members that change without making a record another memory.
const CHANGING: [&str; 2] = ["status", "embeddings"];
/// Those of its times.
const CHANGING_TIMES: [&str; 3] = ["updated_at", "last_accessed_at", "access_count"];

/// A record that was read.
#[derive(Debug, Clone)]
pub(in super::super) struct Record {
    /// Its id in lower case, by which it is found.
    pub(in super::super) id: String,
    pub(in super::super) number: u128,
    /// Milliseconds of `temporal.created_at`.
    pub(in super::super) created_ms: i64,
    pub(in super::super) supersedes: Option<String>,
    /// The record that it is a change of.
    pub(in super::super) change_of: Option<String>,
    /// The record without what changes.
    pub(in super::super) rest: Value,
    /// What changes: `status`, `embeddings`, and three of `temporal`.
    pub(in super::super) changing: Value,
    /// The hash of its canonical line.
    pub(in super::super) digest: String,
}

impl Record {
    /// Takes a record apart; `None` without an id. A time that cannot be read is the epoch.
    pub(in super::super) fn of(value: Value) -> Option<Self> {
        let text = |value: &Value, name: &str| {
            value.get(name).and_then(Value::as_str).map(str::to_ascii_lowercase)
        };
        let id = text(&value, "id")?;
        let (number, created_ms) = key_of(&value)?;
        let (supersedes, change_of) = (text(&value, "supersedes"), text(&value, CHANGE_OF));
        let digest = digest_of(&value);
        let (rest, changing) = taken_apart(value);
        Some(Self { number, id, created_ms, supersedes, change_of, rest, changing, digest })
    }

    /// The status, `active` without one.
    pub(in super::super) fn status(&self) -> &str {
        status_of(&self.changing)
    }

    /// The whole record.
    pub(in super::super) fn whole(&self) -> Value {
        joined_record(self.rest.clone(), &self.changing)
    }
}

/// The number of a record, and when it was created, in milliseconds; `None` without an id. A time that cannot be read
/// is the epoch.
pub(in super::super) fn key_of(record: &Value) -> Option<(u128, i64)> {
    let created_at = record.get("temporal").and_then(|times| times.get("created_at"));
    let created_ms = created_at.and_then(Value::as_str).and_then(milliseconds);
    let number = uuid_number(record.get("id")?.as_str()?)?;
    Some((number, created_ms.map_or(0, grainstore::EpochMs::get)))
}

/// The status in what changes of a record, `active` without one.
pub(in super::super) fn status_of(changing: &Value) -> &str {
    changing.get("status").and_then(Value::as_str).unwrap_or("active")
}

/// The number that a UUID is.
pub(in super::super) fn uuid_number(text: &str) -> Option<u128> {
    match super::super::schema::is_uuid(text) {
        true => u128::from_str_radix(&text.replace('-', ""), 16).ok(),
        false => None,
    }
}

/// Returns a number as the UUID that it is.
pub(in super::super) fn uuid_text(number: u128) -> String {
    let hex = format!("{number:032x}");
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    format!("{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
}

fn taken_apart(mut record: Value) -> (Value, Value) {
    let mut changing = Map::new();
    if let Some(members) = record.as_object_mut() {
        take(members, &CHANGING, &mut changing);
    }
    if let Some(times) = record.get_mut("temporal").and_then(Value::as_object_mut) {
        let mut changing_times = Map::new();
        take(times, &CHANGING_TIMES, &mut changing_times);
        if !changing_times.is_empty() {
            changing.insert("temporal".to_owned(), Value::Object(changing_times));
        }
    }
    (record, Value::Object(changing))
}

fn take(from: &mut Map<String, Value>, names: &[&str], to: &mut Map<String, Value>) {
    for name in names {
        if let Some((name, value)) = from.remove_entry(*name) {
            to.insert(name, value);
        }
    }
}

/// Puts a record together again.
pub(in super::super) fn joined_record(mut rest: Value, changing: &Value) -> Value {
    for (name, value) in changing.as_object().into_iter().flatten() {
        let Some(members) = rest.as_object_mut() else { break };
        match (name.as_str(), value, members.get_mut(name)) {
            ("temporal", Value::Object(times), Some(Value::Object(own))) => {
                own.extend(times.clone());
            }
            _ => drop(members.insert(name.clone(), value.clone())),
        }
    }
    rest
}
