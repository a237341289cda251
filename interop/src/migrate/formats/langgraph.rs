//! LangGraph and LangMem: the rows of the table `store`.
//!
//! A row is what is known under a key; its prefix is the namespace, from the widest label to the narrowest.

use serde_json::{Map, Value};

use crate::error::Result;
use crate::json;
use crate::migrate::format::Ask;
use crate::migrate::record::{Body, KNOWS, Record, Sink, Who, rest, text};
use crate::migrate::rows::{self, Row};
use crate::migrate::time::{Dated, Unit, instant};

/// Fields of a row that have a place. How long it lives is told by when it ends.
const USED: [&str; 9] = [
    "prefix",
    "namespace",
    "key",
    "value",
    "created_at",
    "updated_at",
    "expires_at",
    "ttl_minutes",
    "score",
];
/// Members of a value that are its text, where it has one.
const TEXTS: [&str; 4] = ["content", "text", "memory", "data"];

pub(crate) fn read(ask: &Ask<'_>, sink: &mut dyn Sink) -> Result<()> {
    for file in rows::files(ask.source, sink)? {
        rows::read(ask.source, file, &["store", "items", "rows"], sink, &mut |row, sink| {
            item(ask, &row, sink)
        })?;
    }
    Ok(())
}

fn item(ask: &Ask<'_>, row: &Row, sink: &mut dyn Sink) -> Result<()> {
    let Row { place, members, .. } = row;
    let Some(labels) = labels(members) else {
        return sink.misshapen(place, "the row has no prefix of labels with points between them");
    };
    let Some(key) = text(members, "key") else {
        return sink.misshapen(place, "the row has no key");
    };
    let value = match members.get("value") {
        // A column of a table has it as text.
        Some(Value::String(text)) => json::parse_within(text.as_bytes(), json::MAX_ELEMENT_BYTES),
        Some(value) => Ok(value.clone()),
        None => return sink.misshapen(place, "the row has no value"),
    };
    let value = match value {
        Ok(Value::Object(value)) => value,
        Ok(_) => return sink.misshapen(place, "the value of the row is no object"),
        Err(error) => return sink.refuse(place, error.in_entry("value")),
    };
    let (object, left) = object_of(value);
    let date = |name: &str| Dated::of(members.get(name), Unit::Seconds);
    let subject = ask.user.map_or_else(|| labels.join(":"), str::to_owned);
    let mut kept = rest(members, &USED);
    if !left.is_empty() {
        kept.insert("value".to_owned(), Value::Object(left));
    }
    kept.insert("key".to_owned(), Value::from(key));
    let body = Body::Fact { subject, relation: KNOWS.to_owned(), object, confidence: None };
    let record = Record {
        updated: date("updated_at").time(),
        valid_to: members.get("expires_at").and_then(|at| instant(at, Unit::Seconds)),
        who: Who { user: ask.user.map(str::to_owned), ..Who::default() },
        namespace: Some(labels.join(":")).filter(|namespace| !namespace.is_empty()),
        rest: kept,
        ..Record::new(place, "item", body, date("created_at").or(|| date("updated_at")))
    };
    let mut id = labels;
    id.push(key.to_owned());
    sink.record(Value::from(id).to_string(), record)
}

/// The labels of a namespace: of a column they are joined by points, of an API a list.
fn labels(members: &Map<String, Value>) -> Option<Vec<String>> {
    let given = members.get("prefix").or_else(|| members.get("namespace"))?;
    let labels: Vec<&str> = match given {
        Value::String(labels) => labels.split('.').collect(),
        Value::Array(labels) => labels.iter().map(Value::as_str).collect::<Option<_>>()?,
        _ => return None,
    };
    // A colon divides the namespaces of the store.
    let labels: Vec<_> = labels.iter().map(|label| label.trim().replace(':', "_")).collect();
    labels.iter().all(|label| !label.is_empty()).then_some(labels)
}

/// What a value says: its text and what is left, or all of it. LangMem has the text one level deeper, beside its kind.
fn object_of(mut value: Map<String, Value>) -> (Value, Map<String, Value>) {
    for name in TEXTS {
        match value.get(name) {
            Some(Value::String(said)) if !said.trim().is_empty() => {
                let said = value.remove(name).unwrap_or_default();
                return (said, value);
            }
            Some(Value::Object(inner)) if text(inner, name).is_some() && inner.len() == 1 => {
                let inner = value.remove(name).unwrap_or_default();
                let said = inner.get(name).cloned().unwrap_or_default();
                return (said, value);
            }
            _ => {}
        }
    }
    (Value::Object(value), Map::new())
}
