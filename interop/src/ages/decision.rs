//! Which step an entry of the audit log is: who asked for what, the rules, the outcome, and hashes of what it was about.
//!
//! A step is made of the entry alone, so that each export of a segment gives the same ones. Nothing that an erasure removes
//! goes in: no reason, no text, no name.

use grainstore::{AppliedRule, AuditEntry, ContentAddress, RuleResult};
use serde_json::{Value, json};

use super::chain::{StepParts, hash};
use super::segments::Segment;

/// Content type of grains.
const GRAIN_TYPE: &str = "application/vnd.mg+msgpack";

/// Operations whose name in a step is not that in the log.
const NAMES: &[(&str, &str)] =
    &[("preset_changed", "policy_change"), ("read", "recall"), ("cal", "recall")];

/// How entries of a store become steps.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mapping {
    /// True if addresses in the log are tokens, from which no grain can be guessed.
    pub(super) has_tokens: bool,
}

/// The first step of a segment, which binds it to the segment before.
pub(super) fn genesis(segment: &Segment, before: Option<(&str, &str)>) -> StepParts {
    let (request, root) = before.unzip();
    let binding = json!({ "prev_request_id": request, "prev_root": root });
    StepParts {
        timestamp: segment.since.to_string(),
        kind: "GENESIS",
        actor: json!({ "type": "system", "id": "grainstore" }),
        name: "log_open".to_owned(),
        input: sanitized(&binding),
        policy: policy(segment, &[]),
        decision: decision(true, 0, false),
        output: None,
    }
}

impl Mapping {
    /// The step of an entry. `before` is the hash of the step before, `index` that of the step.
    pub(super) fn step(
        self,
        entry: &AuditEntry,
        segment: &Segment,
        (before, index): (&str, u64),
    ) -> StepParts {
        let is_allowed = entry.decision == "done";
        let is_export = entry.operation == "export_evidence" && is_allowed;
        let input = if is_export {
            let last = index.saturating_sub(1);
            let op = "export_evidence";
            sanitized(&json!({ "op": op, "first": 0, "last": last, "last_hash": before }))
        } else {
            self.input(entry, is_allowed)
        };
        let rules = if is_export { Vec::new() } else { rules(entry, is_allowed) };
        let has_error = entry.results.contains(&RuleResult::Error);
        StepParts {
            timestamp: entry.time.to_string(),
            kind: if is_export { "EXPORT" } else { "GOVERNANCE_DECISION" },
            actor: actor(&entry.actor),
            name: name(&entry.operation).to_owned(),
            input,
            policy: policy(segment, &rules),
            decision: decision(is_allowed, entry.latency_ms, has_error),
            output: self.output(entry).filter(|_| is_allowed),
        }
    }

    /// What was decided about: the grain itself if it is one that was put, else a description of the request.
    fn input(self, entry: &AuditEntry, is_allowed: bool) -> Value {
        if let ("put", [grain], false) =
            (entry.operation.as_str(), entry.subjects.as_slice(), self.has_tokens)
        {
            let hash = grain.to_string();
            return json!({ "input_class": "raw", "content_hash": hash, "content_type": GRAIN_TYPE });
        }
        let shown = |address: &ContentAddress| match self.has_tokens {
            true => format!("hmac:{address}"),
            false => address.to_string(),
        };
        let mut request = json!({ "op": name(&entry.operation) });
        let mut add = |name: &str, value: Value| {
            if let Some(members) = request.as_object_mut() {
                members.insert(name.to_owned(), value);
            }
        };
        match entry.subjects.as_slice() {
            [] => {}
            [old, new] if entry.operation == "supersede" => {
                add("old", shown(old).into());
                add("new", shown(new).into());
            }
            // The token of a user says nothing of them.
            [user] if entry.operation == "erase_user" => add("user", format!("hmac:{user}").into()),
            [one] => add("addr", shown(one).into()),
            several => add("addrs", several.iter().map(shown).collect()),
        }
        let counts = [
            ("repeats", entry.count),
            ("count", entry.import.as_ref().map(|import| import.added)),
            ("count", entry.transfer.as_ref().map(|transfer| transfer.items)),
            ("rows", entry.application.as_ref().map(|counts| counts.rows)),
            ("blobs", entry.application.as_ref().map(|counts| counts.blobs)),
            ("results", entry.call.as_ref().and_then(|call| call.result_count)),
        ];
        for (name, count) in counts {
            if let Some(count) = count {
                add(name, count.into());
            }
        }
        if let Some(transfer) = &entry.transfer {
            add("format", transfer.format.as_str().into());
        }
        if !is_allowed && let Some(by) = &entry.refused_by {
            add("refused_by", shown(by).into());
        }
        sanitized(&request)
    }

    /// The hash of what a put or a supersession stored, or of the file of an export.
    fn output(self, entry: &AuditEntry) -> Option<String> {
        match (entry.operation.as_str(), entry.subjects.as_slice()) {
            ("put", [new]) | ("supersede", [_, new]) => Some(new.to_string()),
            ("put", several) if !several.is_empty() => {
                let all: Vec<_> = several.iter().map(ContentAddress::to_string).collect();
                Some(hash(&json!({ "addrs": all })))
            }
            _ => {
                let digest = entry.transfer.as_ref()?.digest?;
                Some(data_encoding::HEXLOWER.encode(&digest))
            }
        }
    }
}

/// The name of an operation in a step.
fn name(operation: &str) -> &str {
    NAMES.iter().find(|(own, _)| *own == operation).map_or(operation, |(_, name)| name)
}

fn sanitized(request: &Value) -> Value {
    json!({
        "input_class": "sanitized",
        "content_hash": hash(request),
        "content_type": "application/json",
    })
}

/// The log has pseudonyms of actors, and no names.
fn actor(of: &str) -> Value {
    match of {
        "operator" => json!({ "type": "system", "id": "operator" }),
        pseudonym => json!({ "type": "agent", "id": format!("hmac:{pseudonym}") }),
    }
}

fn policy(segment: &Segment, rules: &[Value]) -> Value {
    let set = segment.policy_set.as_deref().unwrap_or("unknown");
    json!({
        "mode": "enforcing",
        "policy_set_id": format!("polset_{set}"),
        "rules_evaluated": rules,
    })
}

fn decision(is_allowed: bool, latency_ms: u64, has_error: bool) -> Value {
    let error = has_error.then(|| {
        json!({ "type": "EXCEPTION", "message": "a rule could not be evaluated", "retryable": false })
    });
    json!({
        "outcome": if is_allowed { "ALLOW" } else { "BLOCK" },
        "fail_closed": true,
        "latency_ms": latency_ms,
        "error": error.filter(|_| !is_allowed),
    })
}

/// The rules in their order. A refusal by none of them has one that says with which code it was refused.
fn rules(entry: &AuditEntry, is_allowed: bool) -> Vec<Value> {
    let code = entry.code.as_deref().unwrap_or("ERR_POLICY");
    let last = entry.rules.len().saturating_sub(1);
    let mut told: Vec<_> = entry
        .rules
        .iter()
        .enumerate()
        .map(|(at, rule)| {
            let decided = at == last && !is_allowed;
            let usual = if decided { RuleResult::Fail } else { RuleResult::Pass };
            rule_evaluated(rule, *entry.results.get(at).unwrap_or(&usual), code)
        })
        .collect();
    if told.is_empty() && !is_allowed {
        told.push(json!({
            "rule_id": "store.refusal",
            "result": "FAIL",
            "reason_code": code,
            "reason_detail": "the store refused it with this code",
        }));
    }
    told
}

fn rule_evaluated(rule: &str, result: RuleResult, code: &str) -> Value {
    let known = AppliedRule::named(rule);
    let (word, reason) = match result {
        RuleResult::Pass => ("PASS", "OK"),
        RuleResult::Fail => ("FAIL", code),
        _ => ("ERROR", code),
    };
    json!({
        "rule_id": known.map_or_else(|| format!("policy.{rule}"), |known| format!("oms.{}.{rule}", known.section)),
        "result": word,
        "reason_code": reason,
        "reason_detail": known.map_or("a rule of the store", |known| known.text),
    })
}
