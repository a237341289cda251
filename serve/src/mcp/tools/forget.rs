//! `forget`: takes one grain out of use, or erases it for good once a person agrees.

use rmcp::model::{CallToolResponse, CallToolResult, JsonObject};
use serde::Deserialize;
use serde_json::{Value, json};

use super::plain::plain;
use crate::mcp::answer::Answer;
use crate::mcp::arguments::{address, read, wrong};
use crate::mcp::confirm::{Asked, Person};
use crate::mcp::connection::Connection;
use crate::mcp::failure::{Failure, Kind, Result};
use crate::memory::{Calls, Ticket};

pub(super) const DESCRIPTION: &str = "Take one grain out of use for good (retract it); its history stays. \
With erase, delete it and its traces irrecoverably, once the person confirms. \
To change a fact use remember with replaces instead.";

/// Longest text of a grain in the question to the person, in bytes.
const MAX_SHOWN_BYTES: usize = 400;

/// Fields that are shown first, without their names.
const FIRST: &[&str] = &["subject", "relation", "object", "content"];
/// Fields that are not shown: what a grain is, not what it says.
const ASIDE: &[&str] = &["type", "created_at", "namespace", "user_id", "confidence", "author_did"];

pub(super) fn input() -> Value {
    json!({ "type": "object", "properties": {
        "address": { "type": "string" },
        "reason": { "type": "string" },
        "erase": { "type": "boolean" },
        "dry_run": { "type": "boolean", "description": "Only tell what would happen" },
    }, "required": ["address", "reason"] })
}

pub(super) fn output() -> Value {
    json!({ "type": "object", "properties": {
        "address": { "type": "string" },
        "outcome": { "enum": ["retracted", "erased", "nothing"] },
        "detail": { "type": "object" },
    }, "required": ["address", "outcome"] })
}

/// The arguments.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Forget {
    address: String,
    reason: String,
    #[serde(default)]
    erase: bool,
    #[serde(default)]
    dry_run: bool,
}

/// Forgets one grain; asks the person before it erases.
pub(in crate::mcp) async fn forget(
    connection: &Connection,
    arguments: JsonObject,
    person: Person,
    ticket: &Ticket,
) -> Result<CallToolResponse> {
    let mut given: Forget = read(arguments)?;
    given.address = address(&given.address)?;
    if given.reason.trim().is_empty() {
        return Err(wrong("forgetting needs a reason", "say why in a sentence"));
    }
    if !given.erase {
        let work = move |store: &Calls<'_>| match given.dry_run {
            true => explain(&given, store),
            false => retract(&given, store),
        };
        return connection
            .memory
            .with(ticket.clone(), work)
            .await
            .map(|answer| CallToolResult::from(answer).into());
    }
    if !connection.setting.allow_erase {
        let hint = "leave out erase to retract it; or have the server started with --allow-erase";
        return Err(Failure::new(Kind::Access, "this server erases nothing", hint));
    }
    let of = given.clone();
    let (question, tried) =
        connection.memory.with(ticket.clone(), move |store| question(&of, store)).await?;
    if given.dry_run {
        let answer = told(&given.address, "nothing", tried);
        return Ok(CallToolResult::from(answer).into());
    }
    let what = format!("{} {}", given.address, given.reason);
    match person.confirm(&connection.confirmations, &what, question).await? {
        Asked::CallAgain(result) => Ok((*result).into()),
        Asked::Agreed => {
            let answer =
                connection.memory.with(ticket.clone(), move |store| erase(&given, store)).await?;
            Ok(CallToolResult::from(answer).into())
        }
    }
}

/// Takes a grain out of use. One that is out of use already stays so.
fn retract(given: &Forget, store: &Calls<'_>) -> Result<Answer> {
    let call = json!({ "address": given.address, "status": "retracted", "reason": given.reason });
    match store.call("set_verification", &call).map_err(Failure::from) {
        Ok(_) => Ok(told(&given.address, "retracted", Value::Null)),
        Err(refused) if refused.has_code("ERR_CONFLICT") => {
            let stored = store.call("get", &json!({ "address": given.address }))?;
            let status = stored.pointer("/state/verification_status").and_then(Value::as_str);
            match status {
                Some("retracted") => Ok(told(
                    &given.address,
                    "retracted",
                    json!({ "note": "it was retracted before" }),
                )),
                _ => Err(refused),
            }
        }
        Err(refused) => Err(refused),
    }
}

/// Tells who may take a grain out of use.
fn explain(given: &Forget, store: &Calls<'_>) -> Result<Answer> {
    let explained = store.call("policy_explain", &json!({ "address": given.address }))?;
    let policy = explained.get("policy");
    let member = |name: &str| policy.and_then(|policy| policy.get(name));
    let detail = json!({ "open_to": member("open_to"), "demands": member("demands") });
    Ok(told(&given.address, "nothing", detail))
}

/// The question to the person, and what an erasure would do. A refusal that is known now is an error.
fn question(given: &Forget, store: &Calls<'_>) -> Result<(String, Value)> {
    let stored = store.call("get", &json!({ "address": given.address }))?;
    let call = json!({ "address": given.address, "reason": given.reason, "dry_run": true });
    let tried = store.call("erase", &call)?;
    if let Some(refusal) = tried.get("refusal").filter(|refusal| refusal.is_object()) {
        let text =
            |name: &str| refusal.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let hint = "the operator may do it on the command line, if anybody may";
        return Err(Failure::of(text("code").into(), text("message"), hint.to_owned()));
    }
    let grain = stored.get("grain").unwrap_or(&Value::Null);
    let kind = grain.get("type").and_then(Value::as_str).unwrap_or("grain");
    let question = format!(
        "Erase this {} for good? It cannot be brought back.\n\nAddress: {}\nReason given: \"{}\"\nIts text, as stored: \"{}\"",
        plain(kind, 40),
        given.address,
        plain(&given.reason, MAX_SHOWN_BYTES),
        plain(&said(grain), MAX_SHOWN_BYTES),
    );
    Ok((question, counts(&tried)))
}

/// Erases a grain.
fn erase(given: &Forget, store: &Calls<'_>) -> Result<Answer> {
    let call = json!({ "address": given.address, "reason": given.reason, "now": true });
    let erased = store.call("erase", &call)?;
    Ok(told(&given.address, "erased", counts(&erased)))
}

/// What of an erasure an agent may act on.
fn counts(erased: &Value) -> Value {
    let kept = ["counts", "scrubbed", "scrub_failure", "holds"];
    let kept = kept.iter().filter_map(|name| {
        let value = erased.get(name).filter(|value| !value.is_null())?;
        Some(((*name).to_owned(), value.clone()))
    });
    Value::Object(kept.collect())
}

fn told(address: &str, outcome: &str, detail: Value) -> Answer {
    let mut answer = json!({ "address": address, "outcome": outcome });
    if let (false, Value::Object(answer)) = (detail.is_null(), &mut answer) {
        answer.insert("detail".to_owned(), detail);
    }
    Answer::of(answer)
}

/// What a grain says: a fact or a content first, then its other fields by their names.
fn said(grain: &Value) -> String {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let first = FIRST.iter().filter_map(|name| grain.get(name).map(text));
    let rest = grain
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, _)| !FIRST.contains(&name.as_str()) && !ASIDE.contains(&name.as_str()));
    let rest = rest.map(|(name, value)| format!("{name}: {}", text(value)));
    first.chain(rest).collect::<Vec<_>>().join(" ")
}
