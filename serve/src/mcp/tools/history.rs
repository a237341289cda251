//! `history`: the versions of a fact, why each ended, and who may change it now.

use rmcp::model::JsonObject;
use serde::Deserialize;
use serde_json::{Value, json};

use super::recall::no_answer;
use super::search::{LIMIT, LIMITS};
use crate::mcp::answer::Answer;
use crate::mcp::arguments::{End, Moment, address, read, within, wrong};
use crate::mcp::connection::Setting;
use crate::mcp::failure::{Failure, Kind, Result};
use crate::mcp::rows;
use crate::memory::Calls;

pub(super) const DESCRIPTION: &str = "All versions of a fact, newest first: what it was, when and why it ended, \
and who may change it now. By address, or by subject and relation.";

/// Entries of the audit log that are looked through for reasons: the newest.
const AUDIT_ENTRIES: u64 = 1_000;

pub(super) fn input() -> Value {
    let text = json!({ "type": "string" });
    json!({ "type": "object", "properties": {
        "address": text, "subject": text, "relation": text, "namespace": text,
        "as_of": { "type": ["string", "integer"] },
        "limit": { "type": "integer", "minimum": LIMITS.0, "maximum": LIMITS.1, "default": LIMIT },
        "cursor": text,
    } })
}

pub(super) fn output() -> Value {
    json!({ "type": "object", "properties": {
        "rows": rows::schema(),
        "policy": { "type": ["object", "null"] },
        "next_cursor": { "type": ["string", "null"] },
    }, "required": ["rows", "policy", "next_cursor"] })
}

/// The arguments.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct History {
    address: Option<String>,
    subject: Option<String>,
    relation: Option<String>,
    namespace: Option<String>,
    as_of: Option<Moment>,
    limit: Option<u64>,
    cursor: Option<String>,
}

pub(super) fn run(_: &Setting, arguments: JsonObject, store: &Calls<'_>) -> Result<Answer> {
    let asked: History = read(arguments)?;
    let limit = within("limit", asked.limit, LIMIT, LIMITS)?;
    let skipped = asked.cursor.as_deref().map_or(Ok(0), skipped)?;
    let mut call = which(&asked)?;
    if let Value::Object(call) = &mut call {
        call.insert("limit".to_owned(), Value::from(limit.saturating_add(1)));
        call.insert("cursor".to_owned(), Value::from(skipped));
    }
    let answer = store.call("history", &call)?;
    let mut found =
        answer.get("versions").and_then(Value::as_array).ok_or_else(no_answer)?.as_slice();
    if found.is_empty() && skipped == 0 {
        let hint = "check the subject and the relation, or search for them";
        return Err(Failure::new(Kind::NotFound, "no such fact is known to this session", hint));
    }
    let more = found.len() as u64 > limit;
    if more {
        found = found.split_last().map_or(found, |(_, shown)| shown);
    }
    let bytes = rows::share(found.len());
    let mut shown: Vec<_> = found.iter().map(|found| rows::version(found, bytes)).collect();
    tell_reasons(&mut shown, store);
    let newest = shown.first().and_then(rows::address);
    let policy = newest.map(|address| policy(address, store)).transpose()?;
    let next = more.then(|| skipped.saturating_add(limit).to_string());
    let structured = json!({ "rows": shown, "policy": policy, "next_cursor": next });
    let links = shown.iter().filter_map(rows::address).take(1);
    Ok(Answer::of(structured.clone()).linked(links))
}

/// The parameters of the method `history` that name a fact.
fn which(asked: &History) -> Result<Value> {
    let mut call = match (&asked.address, &asked.subject, &asked.relation) {
        (Some(of), None, None) => {
            if asked.namespace.is_some() || asked.as_of.is_some() {
                let hint = "leave them out, or give subject and relation";
                return Err(wrong("namespace and as_of go with subject and relation", hint));
            }
            return Ok(json!({ "address": address(of)? }));
        }
        (None, Some(subject), Some(relation)) => {
            json!({ "subject": subject, "relation": relation })
        }
        _ => return Err(wrong("which fact?", "give address, or subject and relation")),
    };
    if let Value::Object(call) = &mut call {
        if let Some(namespace) = &asked.namespace {
            call.insert("namespace".to_owned(), Value::from(namespace.as_str()));
        }
        if let Some(time) = &asked.as_of {
            call.insert("as_of".to_owned(), Value::from(time.ms("as_of", End::Last)?));
        }
    }
    Ok(call)
}

/// Adds the `reason` why each version was replaced or ended, where it is found: in the version that replaced it, or
/// among the newest entries of the audit log.
fn tell_reasons(versions: &mut [Value], store: &Calls<'_>) {
    let given: Vec<_> = versions
        .iter()
        .map(|version| {
            let by = rows::address(version)?.to_owned();
            let grain = version.get("grain")?;
            let told = grain
                .get("supersession_justification")
                .or_else(|| grain.pointer("/context/reason"));
            let reason = told?.as_str()?.to_owned();
            Some((by, reason))
        })
        .collect();
    let ended = |version: &Value| version.pointer("/state/system_valid_to").is_some();
    let audited = if versions.iter().any(ended) { audited(store) } else { Vec::new() };
    for version in versions.iter_mut().filter(|version| ended(version)) {
        let by = version.pointer("/state/superseded_by").and_then(Value::as_str);
        let replaced = given.iter().flatten().find(|(address, _)| Some(address.as_str()) == by);
        let own = rows::address(version).unwrap_or_default();
        let entry = || {
            audited.iter().find(|entry| is_about(entry, own)).and_then(|entry| entry.get("reason"))
        };
        let reason = replaced.map(|(_, reason)| Value::from(reason.as_str()));
        if let (Some(reason), Value::Object(version)) =
            (reason.or_else(|| entry().cloned()), version)
        {
            version.insert("reason".to_owned(), reason);
        }
    }
}

/// The newest entries of the audit log, the newest first; none where this session is not shown them.
fn audited(store: &Calls<'_>) -> Vec<Value> {
    let head = store.call("audit", &json!({ "limit": 1 }));
    let head =
        head.ok().and_then(|answer| answer.pointer("/head/sequence").and_then(Value::as_u64));
    let Some(head) = head else { return Vec::new() };
    let call = json!({ "after": head.saturating_sub(AUDIT_ENTRIES), "limit": AUDIT_ENTRIES });
    let entries = store.call("audit", &call).ok();
    let entries = entries.and_then(|mut answer| answer.get_mut("entries").map(Value::take));
    match entries {
        Some(Value::Array(mut entries)) => {
            entries.reverse();
            entries
        }
        _ => Vec::new(),
    }
}

/// Whether an entry is about the end of a grain, and tells why.
fn is_about(entry: &Value, address: &str) -> bool {
    let ends = ["supersede", "contradict", "set_verification"];
    let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
    let subjects = entry.get("subjects").and_then(Value::as_array);
    ends.contains(&text("operation"))
        && text("decision") == "done"
        && !text("reason").is_empty()
        && subjects.is_some_and(|of| of.first().and_then(Value::as_str) == Some(address))
}

/// Who may change a grain.
fn policy(address: &str, store: &Calls<'_>) -> Result<Value> {
    let explained = store.call("policy_explain", &json!({ "address": address }))?;
    let policy = explained.get("policy").cloned().unwrap_or_default();
    Ok(match rows::size(&policy) {
        size if size <= rows::MAX_BYTES => policy,
        _ => json!({ "mode": policy.get("mode"), "open_to": policy.get("open_to") }),
    })
}

/// How many versions a cursor leaves out.
fn skipped(cursor: &str) -> Result<u64> {
    let hint = "give next_cursor as it was answered";
    cursor.parse().map_err(|_| Failure::new(Kind::Cursor, "this is no cursor of history", hint))
}
