//! `remember`: stores a fact or an event, which may replace an earlier fact.

use std::time::{SystemTime, UNIX_EPOCH};

use rmcp::model::JsonObject;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::latest::Fact;
use super::recall::no_answer;
use crate::mcp::answer::Answer;
use crate::mcp::arguments::{End, Moment, address, read, wrong};
use crate::mcp::connection::Setting;
use crate::mcp::failure::{Failure, Kind, Result};
use crate::memory::Calls;

pub(super) const DESCRIPTION: &str = "Store one fact (subject, relation, object) or one event (text), durable when answered. \
To change a fact give the old address in replaces, or \"latest\" for the current one of its subject and relation. \
The same fact again is not stored twice.";

/// How sure a fact is, if nothing is said: as that of ADD in CAL.
const CONFIDENCE: f64 = 0.8;
/// What `replaces` says for the current fact of the same subject and relation.
const LATEST: &str = "latest";

pub(super) fn input() -> Value {
    let text = json!({ "type": "string" });
    let time = json!({ "type": ["string", "integer"] });
    json!({ "type": "object", "properties": {
        "subject": text,
        "relation": { "type": "string", "description": "Such as prefers, works_at" },
        "object": text,
        "text": { "type": "string", "description": "An event, instead of a fact" },
        "grain": { "type": "object", "description": "A whole grain of any type, instead" },
        "confidence": { "type": "number", "minimum": 0, "maximum": 1 },
        "tags": { "type": "array", "items": text },
        "valid_from": { "type": ["string", "integer"], "description": "True since: ISO 8601 or ms" },
        "valid_to": time,
        "session_id": text,
        "namespace": text,
        "replaces": { "type": "string", "description": "Address, or latest" },
        "reason": { "type": "string", "description": "Why it replaces that" },
        "same_fact": { "enum": ["keep", "add", "supersede"], "description": "If it is known already: keep" },
    } })
}

pub(super) fn output() -> Value {
    json!({ "type": "object", "properties": {
        "address": { "type": "string" },
        "duplicate": { "type": "boolean" },
        "superseded": { "type": ["string", "null"] },
        "warnings": { "type": "array", "items": { "type": "string" } },
    }, "required": ["address", "duplicate"] })
}

/// The arguments.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Remember {
    subject: Option<String>,
    relation: Option<String>,
    object: Option<Value>,
    text: Option<String>,
    grain: Option<Map<String, Value>>,
    confidence: Option<f64>,
    tags: Option<Vec<String>>,
    valid_from: Option<Moment>,
    valid_to: Option<Moment>,
    session_id: Option<String>,
    namespace: Option<String>,
    replaces: Option<String>,
    reason: Option<String>,
    same_fact: Option<String>,
}

pub(super) fn run(setting: &Setting, arguments: JsonObject, store: &Calls<'_>) -> Result<Answer> {
    let given: Remember = read(arguments)?;
    if given.replaces.is_some() && given.same_fact.is_some() {
        return Err(wrong("replaces and same_fact do not go together", "leave one out"));
    }
    let write = |old: Option<&str>, same_fact: &str| {
        let grain = grain(&given, setting, old.is_some())?;
        let Some(old) = old else {
            return Ok(store.call("put", &json!({ "grain": grain, "same_fact": same_fact }))?);
        };
        let mut call = json!({ "old": old, "grain": grain });
        if let (Some(reason), Value::Object(call)) = (&given.reason, &mut call) {
            call.insert("justification".to_owned(), Value::from(reason.as_str()));
        }
        Ok(store.call("supersede", &call)?)
    };
    let (old, stored) = match given.replaces.as_deref() {
        Some(LATEST) => latest(&given, setting)?.replace(store, |old| write(old, "unique"))?,
        Some(old) => {
            let old = address(old)?;
            let stored = write(Some(&old), "keep")?;
            (Some(old), stored)
        }
        None => (None, write(None, given.same_fact.as_deref().unwrap_or("keep"))?),
    };
    let address = stored.get("address").and_then(Value::as_str).ok_or_else(no_answer)?;
    let mut answer = json!({
        "address": address,
        "duplicate": stored.get("duplicate").and_then(Value::as_bool).unwrap_or_default(),
        "superseded": old.map(Value::from).or_else(|| stored.get("superseded").cloned()),
    });
    if let (Some(warnings), Value::Object(answer)) = (stored.get("warnings"), &mut answer) {
        answer.insert("warnings".to_owned(), warnings.clone());
    }
    Ok(Answer::of(answer).linked([address]))
}

/// The fact that `latest` means.
fn latest<'g>(given: &'g Remember, setting: &'g Setting) -> Result<Fact<'g>> {
    let (Some(subject), Some(relation)) = (&given.subject, &given.relation) else {
        return Err(wrong("latest needs the subject and the relation", "give both, or an address"));
    };
    let namespace = given.namespace.as_deref();
    // As the grain gets it.
    let stored_in = namespace.filter(|named| !named.is_empty()).or(setting.namespace.as_deref());
    Ok(Fact { subject, relation, namespace, stored_in })
}

/// The grain that is stored.
fn grain(given: &Remember, setting: &Setting, replaces: bool) -> Result<Value> {
    let mut grain = said(given)?;
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            grain.insert(name.to_owned(), value);
        }
    };
    set("structural_tags", given.tags.as_ref().map(|tags| json!(tags)));
    set("session_id", given.session_id.as_deref().map(Value::from));
    set("namespace", given.namespace.as_deref().map(Value::from));
    let times =
        [("valid_from", &given.valid_from, End::First), ("valid_to", &given.valid_to, End::Last)];
    for (name, time, end) in times {
        set(name, time.as_ref().map(|time| time.ms(name, end)).transpose()?.map(Value::from));
    }
    if let (Some(reason), None, false) = (&given.reason, &given.grain, replaces) {
        // As ADD in CAL keeps it. A grain that replaces another gets its justification from the store.
        set("context", Some(json!({ "reason": reason })));
    }
    let session = [("namespace", &setting.namespace), ("user_id", &setting.user_id)];
    for (name, value) in session {
        if let (Some(value), false) = (value, names_somebody(grain.get(name))) {
            grain.insert(name.to_owned(), Value::from(value.as_str()));
        }
    }
    let now = Value::from(now_ms()?);
    grain.entry("created_at").or_insert(now);
    Ok(Value::Object(grain))
}

/// Whether a grain names its namespace or its user. One that is null or empty would be everybody's.
fn names_somebody(given: Option<&Value>) -> bool {
    match given {
        None | Some(Value::Null) => false,
        Some(Value::String(text)) => !text.is_empty(),
        // The store refuses it.
        Some(_) => true,
    }
}

/// What is said, without what goes with it: a fact, an event, or a grain as it was given.
fn said(given: &Remember) -> Result<Map<String, Value>> {
    let fact = [
        ("subject", given.subject.clone().map(Value::from)),
        ("relation", given.relation.clone().map(Value::from)),
        ("object", given.object.clone()),
    ];
    let named = fact.iter().filter(|(_, value)| value.is_some()).count();
    let hint = "give subject, relation and object; or text; or grain";
    match (named, &given.text, &given.grain) {
        (3, None, None) => {
            let fields =
                fact.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
            let mut grain: Map<_, _> = fields.collect();
            grain.insert("type".to_owned(), "belief".into());
            grain.insert("confidence".to_owned(), json!(given.confidence.unwrap_or(CONFIDENCE)));
            Ok(grain)
        }
        (0, Some(text), None) => {
            let mut grain = Map::new();
            grain.insert("type".to_owned(), "event".into());
            grain.insert("content".to_owned(), Value::from(text.as_str()));
            if given.confidence.is_some() {
                return Err(wrong("an event has no confidence", "leave it out"));
            }
            Ok(grain)
        }
        (0, None, Some(grain)) => {
            let mut grain = grain.clone();
            if let Some(confidence) = given.confidence {
                grain.insert("confidence".to_owned(), json!(confidence));
            }
            Ok(grain)
        }
        (1 | 2, None, None) => {
            let missing: Vec<_> =
                fact.iter().filter(|(_, value)| value.is_none()).map(|(name, _)| *name).collect();
            Err(wrong(format!("a fact also has {}", missing.join(" and ")), hint))
        }
        (0, None, None) => Err(wrong("there is nothing to remember", hint)),
        _ => Err(wrong("a fact, an event or a grain, and one of them at a time", hint)),
    }
}

/// The time, in epoch milliseconds.
fn now_ms() -> Result<i64> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).ok();
    let now = since.and_then(|since| i64::try_from(since.as_millis()).ok());
    now.ok_or_else(|| Failure::new(Kind::Io, "this machine's clock is before 1970", "set it"))
}
