//! `search`: grains by words and by fields, with a cursor.

use rmcp::model::JsonObject;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::recall::{clipped, no_answer};
use crate::mcp::answer::Answer;
use crate::mcp::arguments::{End, Moment, read, within};
use crate::mcp::connection::Setting;
use crate::mcp::failure::Result;
use crate::mcp::rows;
use crate::memory::Calls;

pub(super) const DESCRIPTION: &str = "Find grains by words and exact fields, with their addresses: newest first, or best first with text.";

/// Rows of an answer, if nothing is said; and the bounds. Also those of `history`.
pub(super) const LIMIT: u64 = 10;
pub(super) const LIMITS: (u64, u64) = (1, 50);

pub(super) fn input() -> Value {
    let text = json!({ "type": "string" });
    let time = json!({ "type": ["string", "integer"] });
    json!({ "type": "object", "properties": {
        "text": text, "subject": text, "relation": text, "object": text,
        "type": { "type": "string", "description": "belief, event, goal ..." },
        "tags": { "type": "array", "items": text },
        "session_id": text,
        "from": { "type": ["string", "integer"], "description": "Created since: ISO 8601 or ms" },
        "to": time,
        "valid_at": { "type": ["string", "integer"], "description": "True at that time" },
        "as_of": { "type": ["string", "integer"], "description": "Known at that time" },
        "superseded": { "type": "boolean", "description": "Old versions too" },
        "namespace": text,
        "limit": { "type": "integer", "minimum": LIMITS.0, "maximum": LIMITS.1, "default": LIMIT },
        "cursor": text,
    } })
}

pub(super) fn output() -> Value {
    json!({ "type": "object", "properties": {
        "rows": rows::schema(),
        "next_cursor": { "type": ["string", "null"] },
    }, "required": ["rows", "next_cursor"] })
}

/// The arguments.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Search {
    text: Option<String>,
    subject: Option<String>,
    relation: Option<String>,
    object: Option<Value>,
    #[serde(rename = "type")]
    grain_type: Option<String>,
    tags: Option<Vec<String>>,
    session_id: Option<String>,
    from: Option<Moment>,
    to: Option<Moment>,
    valid_at: Option<Moment>,
    as_of: Option<Moment>,
    #[serde(default)]
    superseded: bool,
    namespace: Option<String>,
    limit: Option<u64>,
    cursor: Option<String>,
}

pub(super) fn run(_: &Setting, arguments: JsonObject, store: &Calls<'_>) -> Result<Answer> {
    let asked: Search = read(arguments)?;
    let limit = within("limit", asked.limit, LIMIT, LIMITS)?;
    let mut query = json!({ "where": conditions(&asked)?, "limit": limit });
    if let Value::Object(query) = &mut query {
        let given = [("text", asked.text), ("cursor", asked.cursor)];
        query.extend(given.into_iter().filter_map(|(name, text)| {
            let text = text.filter(|text| !text.trim().is_empty())?;
            Some((name.to_owned(), Value::from(text)))
        }));
        if asked.superseded {
            query.insert("include_superseded".to_owned(), Value::Bool(true));
        }
    }
    let answer = store.call("query", &query)?;
    let found = answer.get("results").and_then(Value::as_array).ok_or_else(no_answer)?;
    let bytes = rows::share(found.len());
    let shown: Vec<_> = found.iter().map(|found| rows::row(found, bytes)).collect();
    let structured = json!({ "rows": shown, "next_cursor": answer.get("next_cursor") });
    Ok(Answer::of(structured.clone()).linked(clipped(&shown)))
}

/// The member `where` of the method `query`.
fn conditions(asked: &Search) -> Result<Value> {
    let mut all = Map::new();
    let texts = [
        ("subject", &asked.subject),
        ("relation", &asked.relation),
        ("type", &asked.grain_type),
        ("session_id", &asked.session_id),
        ("namespace", &asked.namespace),
    ];
    for (name, text) in texts {
        if let Some(text) = text {
            all.insert(name.to_owned(), Value::from(text.as_str()));
        }
    }
    if let Some(object) = &asked.object {
        all.insert("object".to_owned(), object.clone());
    }
    if let Some(tags) = &asked.tags {
        all.insert("tags_all".to_owned(), json!(tags));
    }
    let times = [
        ("time_from", "from", &asked.from, End::First),
        ("time_to", "to", &asked.to, End::Last),
        ("valid_at", "valid_at", &asked.valid_at, End::First),
        ("as_of", "as_of", &asked.as_of, End::Last),
    ];
    for (name, argument, time, end) in times {
        if let Some(time) = time {
            all.insert(name.to_owned(), Value::from(time.ms(argument, end)?));
        }
    }
    Ok(Value::Object(all))
}
