//! Required fields of the ten types, phases of actions, structure of references (OMS 8, 27.1, 27.5).

use crate::error::{Error, ErrorKind, Result, schema};
use crate::fields::ELIDABLE;
use crate::grain_type::GrainType;
use crate::value::{Map, Value};

use super::{maps, missing, text};

/// The required fields of each type, besides `created_at`. `type` is checked before.
const REQUIRED: [(GrainType, &[&str]); 10] = [
    (GrainType::Belief, &["subject", "relation", "object", "confidence"]),
    (GrainType::Event, &[]),
    (GrainType::State, &["context"]),
    (GrainType::Workflow, &["steps", "trigger"]),
    (GrainType::Action, &[]),
    (GrainType::Observation, &["observer_id", "observer_type"]),
    (GrainType::Goal, &["description", "goal_state"]),
    (GrainType::Reasoning, &[]),
    (
        GrainType::Consensus,
        &["participating_observers", "threshold", "agreement_count", "dissent_count"],
    ),
    (GrainType::Consent, &["subject_did", "grantee_did", "scope", "is_withdrawal"]),
];

/// The fields one phase of an action requires and forbids (OMS 27.1).
struct ActionPhase {
    required: &'static [&'static str],
    forbidden: &'static [&'static str],
}

/// The fields of an outcome. Definitions and calls MUST NOT carry them.
const OUTCOME_FIELDS: [&str; 6] =
    ["content", "is_error", "stdout", "stderr", "exit_code", "duration_ms"];

const DEFINITION: ActionPhase = ActionPhase {
    required: &["tool_name", "tool_description", "input_schema"],
    forbidden: &["input", "content", "is_error", "stdout", "stderr", "exit_code", "duration_ms"],
};
const CALL: ActionPhase =
    ActionPhase { required: &["tool_name", "input"], forbidden: &OUTCOME_FIELDS };
const CODE_CALL: ActionPhase = ActionPhase { required: &["code"], forbidden: &OUTCOME_FIELDS };
const RESULT: ActionPhase = ActionPhase {
    required: &["tool_call_id", "content", "is_error", "derived_from"],
    forbidden: &[],
};
const CODE_RESULT: ActionPhase =
    ActionPhase { required: &["tool_call_id", "code", "is_error", "derived_from"], forbidden: &[] };
const COMPLETE: ActionPhase =
    ActionPhase { required: &["tool_name", "input", "content", "is_error"], forbidden: &[] };
const CODE_COMPLETE: ActionPhase = ActionPhase { required: &["code", "is_error"], forbidden: &[] };

/// The hint for a grain without `created_at`.
const CREATED_AT_HINT: &str = "say when it was made: \"created_at\" in epoch milliseconds, such as 1768471200000, \
                       in JSON also \"2026-01-15T10:00:00Z\"";

/// Checks required, forbidden and empty fields.
///
/// # Errors
/// `ERR_SCHEMA` for a missing or forbidden field, `ERR_EMPTY` for an empty one.
pub(super) fn check(grain_type: GrainType, fields: &Map) -> Result<()> {
    let by_type = REQUIRED.iter().find(|(t, _)| *t == grain_type).map_or(&[][..], |(_, r)| r);
    let phase = (grain_type == GrainType::Action).then(|| phase(fields));
    let by_phase = phase.as_ref().map_or(&[][..], |phase| phase.required);
    let required = || by_type.iter().chain(by_phase).chain(&["created_at"]);

    let assumed = |name: &str| name == "confidence" && is_ownership_belief(fields);
    if let Some(name) = required().find(|name| !present(fields, name) && !assumed(name)) {
        let missing = missing(name);
        return Err(if *name == "created_at" {
            missing.with_hint(CREATED_AT_HINT)
        } else {
            missing
        });
    }
    if let Some(name) = phase.iter().flat_map(|p| p.forbidden).find(|n| fields.contains_key(**n)) {
        let message = format!("an action of this phase must not carry {name}");
        return Err(schema(name, message));
    }
    match grain_type {
        GrainType::Event => check_event(fields)?,
        GrainType::Observation => check_observation(fields)?,
        GrainType::Consent => check_consent(fields)?,
        _ => {}
    }
    required().try_for_each(|name| check_not_empty(fields, name))
}

/// Returns `true` for an ownership belief, which OMS 12.5.3 shows without a confidence; readers assume
/// 1.0.
pub(crate) fn is_ownership_belief(fields: &Map) -> bool {
    text(fields, "namespace") == Some("agent:identity")
        && matches!(text(fields, "relation"), Some("mg:owned_by" | "owned_by"))
}

/// Returns `true` if a field is present, or elided: its hash then stands for it (OMS 10.1).
fn present(fields: &Map, name: &str) -> bool {
    let elided = || fields.get("_elided").and_then(Value::as_map);
    fields.contains_key(name)
        || (ELIDABLE.contains(&name) && elided().is_some_and(|elided| elided.contains_key(name)))
}

/// Checks that required text and lists are not empty. `object` may be empty, and `scope` of a withdrawal.
/// `content` is exempt here: `check_event` checks it on events.
fn check_not_empty(fields: &Map, name: &str) -> Result<()> {
    let empty = match fields.get(name) {
        Some(Value::Str(text)) => text.is_empty() && !matches!(name, "object" | "content"),
        Some(Value::Array(items)) => match name {
            "steps" => items.is_empty(),
            "scope" => items.is_empty() && !is_withdrawal(fields),
            _ => false,
        },
        _ => false,
    };
    if empty { Err(empty_field(name)) } else { Ok(()) }
}

fn phase(fields: &Map) -> ActionPhase {
    let code = text(fields, "execution_mode") == Some("code_exec");
    match text(fields, "action_phase") {
        Some("definition") => DEFINITION,
        Some("call") if code => CODE_CALL,
        Some("call") => CALL,
        Some("result") if code => CODE_RESULT,
        Some("result") => RESULT,
        _ if code => CODE_COMPLETE,
        _ => COMPLETE,
    }
}

/// Checks that an event has content, content blocks or a complete triple (OMS 8.2).
fn check_event(fields: &Map) -> Result<()> {
    let blocks = fields.get("content_blocks").and_then(Value::as_array).unwrap_or_default();
    for block in maps(fields, "content_blocks") {
        if text(block, "type").is_none() {
            return Err(schema("content_blocks", "each content block has a type"));
        }
    }
    let triple = ["subject", "relation", "object"].iter().all(|name| present(fields, name));
    if !blocks.is_empty() || triple {
        return Ok(());
    }
    match text(fields, "content") {
        Some("") => Err(empty_field("content")),
        Some(_) => Ok(()),
        None if present(fields, "content") => Ok(()),
        None => Err(missing("content")),
    }
}

/// Checks that a human observer has no model (OMS 24.2).
fn check_observation(fields: &Map) -> Result<()> {
    if text(fields, "observer_type") == Some("human") && fields.contains_key("observer_model") {
        let message = "observer_model must be absent when observer_type is human";
        return Err(schema("observer_model", message));
    }
    Ok(())
}

/// Checks that a withdrawal names the consent it withdraws (OMS 8.10).
fn check_consent(fields: &Map) -> Result<()> {
    if is_withdrawal(fields) && !present(fields, "prior_consent") {
        return Err(missing("prior_consent"));
    }
    Ok(())
}

fn is_withdrawal(fields: &Map) -> bool {
    fields.get("is_withdrawal").and_then(Value::as_bool) == Some(true)
}

/// Checks the structure of references, on opaque types too: OMS 7.1, 7.2, 12.5.1, 27.5.
///
/// # Errors
/// `ERR_SCHEMA`.
pub(super) fn check_references(fields: &Map) -> Result<()> {
    for entry in maps(fields, "content_refs") {
        let reference = entry.contains_key("uri") || entry.contains_key("modality");
        let citation = is_citation(entry);
        let whole = match (reference, citation) {
            (true, false) => has_all(entry, &["uri", "modality"]),
            (false, true) => has_all(entry, &["citation_type", "identifier"]),
            _ => false,
        };
        if !whole {
            let message = "an entry is a reference (uri and modality) or a citation \
                           (citation_type and identifier), not both";
            return Err(schema("content_refs", message));
        }
    }
    for entry in maps(fields, "derived_from") {
        if !has_all(entry, &["citation_type", "identifier"]) {
            return Err(schema("derived_from", "a citation has citation_type and identifier"));
        }
    }
    for entry in maps(fields, "embedding_refs") {
        if !has_all(entry, &["vector_id", "model", "dimensions"]) {
            let message = "an embedding reference has vector_id, model and dimensions";
            return Err(schema("embedding_refs", message));
        }
    }
    check_owner(fields)
}

fn is_citation(entry: &Map) -> bool {
    entry.contains_key("citation_type") || entry.contains_key("identifier")
}

fn has_all(map: &Map, names: &[&str]) -> bool {
    names.iter().all(|name| map.contains_key(*name))
}

/// Checks that a legal owner is `human` or `org` and has a name (OMS 12.5.1).
fn check_owner(fields: &Map) -> Result<()> {
    let Some(owner) = fields.get("owner").and_then(Value::as_map) else {
        return Ok(());
    };
    if !matches!(text(owner, "type"), Some("human" | "org")) {
        return Err(schema("owner", "owner.type is human or org"));
    }
    if text(owner, "name").is_none() {
        return Err(schema("owner", "owner.name is the registered legal name"));
    }
    Ok(())
}

fn empty_field(name: &str) -> Error {
    Error::new(ErrorKind::Empty, format!("{name} must not be empty")).at(name)
}
