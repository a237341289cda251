//! The members of steps and packs as tables (AGES v1 section 9): each one is there, and there is no other.
//!
//! Knows no rule that takes two members; `rules` has those.

use grainstore::format::parse_datetime;
use serde_json::{Map, Value};

use super::{PACK_VERSION, STEP_VERSION};

/// What a member may be.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape {
    Text,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// An integer: no fraction and no exponent.
    Integer,
    Bool,
    /// 64 lower-case hex digits.
    Hash,
    /// ISO 8601 in UTC, ending in `Z`.
    Timestamp,
    Object(&'static [Member]),
    /// A list of objects.
    List(&'static [Member]),
    /// `null`, or this.
    Nullable(&'static Shape),
    /// A list that is checked item by item, elsewhere.
    Steps,
}

/// A member that has to be there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member(&'static str, Shape);

use Shape::{Bool, Hash, Integer, List, Nullable, Object, OneOf, Steps, Text, Timestamp};

/// The members of a pack but its version, which is checked before.
pub(super) const PACK: &[Member] = &[
    Member("schema_version", OneOf(&[PACK_VERSION])),
    Member("exported_at", Timestamp),
    Member("tenant_id", Text),
    Member("request_id", Text),
    Member("steps", Steps),
    Member("root_hash", Hash),
];

/// The members of a step (section 9.1).
pub(super) const STEP: &[Member] = &[
    Member("schema_version", OneOf(&[STEP_VERSION])),
    Member("tenant_id", Text),
    Member("request_id", Text),
    Member("step_id", Text),
    Member("step_index", Integer),
    Member("timestamp", Timestamp),
    Member("kind", OneOf(&["GENESIS", "GOVERNANCE_DECISION", "EXPORT"])),
    Member(
        "actor",
        Object(&[Member("type", OneOf(&["agent", "user", "system"])), Member("id", Text)]),
    ),
    Member(
        "subject",
        Object(&[Member("type", OneOf(&["prompt", "tool", "action"])), Member("name", Text)]),
    ),
    Member(
        "input",
        Object(&[
            Member("input_class", OneOf(&["raw", "sanitized", "redacted"])),
            Member("content_hash", Hash),
            Member("content_type", Text),
        ]),
    ),
    Member(
        "policy",
        Object(&[
            Member("mode", OneOf(&["enforcing", "monitoring"])),
            Member("policy_set_id", Text),
            Member("rules_evaluated", List(RULE)),
        ]),
    ),
    Member(
        "decision",
        Object(&[
            Member("outcome", OneOf(&["ALLOW", "BLOCK"])),
            Member("fail_closed", Bool),
            Member("latency_ms", Integer),
            Member("error", Nullable(&Object(ERROR))),
        ]),
    ),
    Member(
        "outputs",
        Object(&[Member("sanitized_output_hash", Nullable(&Hash)), Member("evidence_ref", Text)]),
    ),
    Member(
        "chain",
        Object(&[
            Member("prev_step_hash", Nullable(&Hash)),
            Member("step_hash", Hash),
            Member("genesis", Bool),
        ]),
    ),
];

const RULE: &[Member] = &[
    Member("rule_id", Text),
    Member("result", OneOf(&["PASS", "FAIL", "ERROR"])),
    Member("reason_code", Text),
    Member("reason_detail", Text),
];

const ERROR: &[Member] =
    &[Member("type", Text), Member("message", Text), Member("retryable", Bool)];

/// Checks that an object has these members, of their shapes, and no others. Says what differs.
pub(super) fn check(object: &Map<String, Value>, members: &[Member]) -> Result<(), String> {
    if let Some(unknown) = object.keys().find(|name| !members.iter().any(|of| of.0 == *name)) {
        return Err(format!("the member {unknown:?} is not known"));
    }
    for Member(name, shape) in members {
        let value = object.get(*name).ok_or_else(|| format!("the member {name} is missing"))?;
        check_value(value, shape).map_err(|why| format!("{name}: {why}"))?;
    }
    Ok(())
}

fn check_value(value: &Value, shape: &Shape) -> Result<(), String> {
    let fits = match shape {
        Text => value.is_string(),
        OneOf(texts) => value.as_str().is_some_and(|text| texts.contains(&text)),
        Integer => value.is_i64() || value.is_u64(),
        Bool => value.is_boolean(),
        Hash => value.as_str().is_some_and(is_hash),
        Timestamp => value.as_str().is_some_and(is_timestamp),
        Steps => value.as_array().is_some_and(|steps| !steps.is_empty()),
        Nullable(shape) => return if value.is_null() { Ok(()) } else { check_value(value, shape) },
        Object(members) => {
            let object = value.as_object().ok_or("it is no object")?;
            return check(object, members);
        }
        List(members) => return check_list(value, members),
    };
    if fits { Ok(()) } else { Err(format!("it is not {}", expected(shape))) }
}

fn check_list(value: &Value, members: &[Member]) -> Result<(), String> {
    for (at, item) in value.as_array().ok_or("it is no list")?.iter().enumerate() {
        let object = item.as_object().ok_or_else(|| format!("item {at} is no object"))?;
        check(object, members).map_err(|why| format!("item {at}: {why}"))?;
    }
    Ok(())
}

/// What a value should have been, for people.
fn expected(shape: &Shape) -> String {
    match shape {
        Text => "text".to_owned(),
        OneOf(texts) => texts.join(" or "),
        Integer => "an integer".to_owned(),
        Bool => "true or false".to_owned(),
        Hash => "64 lower-case hex digits".to_owned(),
        Timestamp => "a time in UTC that ends in Z".to_owned(),
        Steps => "a list with a step".to_owned(),
        Object(_) | List(_) | Nullable(_) => "of its form".to_owned(),
    }
}

fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_timestamp(text: &str) -> bool {
    text.ends_with('Z') && text.as_bytes().get(10) == Some(&b'T') && parse_datetime(text).is_ok()
}
