//! Requests whose answer was lost with the process that was asked: which are asked again, and how to look after
//! the others.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::{Error, process};

/// Methods that change nothing, or that change what they change once, however often they are asked.
const REPEATABLE: &[&str] = &[
    "hello",
    "encode",
    "decode",
    "resolve",
    "get",
    "get_batch",
    "exists",
    "sign",
    "prove",
    "verify_signature",
    "disclose",
    "check_view",
    "restore_view",
    "policy_explain",
    "policy_show",
    "subject_report",
    "history",
    "query",
    "neighbours",
    "paths",
    "ancestry",
    "children",
    "related",
    "versions",
    "latest",
    "thread",
    "owner",
    "capabilities",
    "handoffs",
    "cal_convert",
    "prepare",
    "audit",
    "checkpoint",
    "verify",
    "stats",
    "doctor",
    "wait_for_vectors",
    "position",
    "wait_for",
    "ages_segments",
    "saga_validate",
];

/// The members that decide whether a request may be asked again.
#[derive(Debug, Default, Deserialize)]
struct Members {
    tier: Option<serde_json::Value>,
    same_fact: Option<serde_json::Value>,
}

/// The members that decide what a request does.
fn members(params: Option<&RawValue>) -> Members {
    let members = params.map(|params| serde_json::from_str(params.get()));
    // What cannot be read is refused by the owner.
    members.and_then(Result::ok).unwrap_or_default()
}

/// Returns `true` if a request changes nothing, or the same however often it is asked.
pub(super) fn is_reading(method: &str, params: Option<&RawValue>) -> bool {
    match method {
        "cal" => members(params).tier.is_none_or(|tier| tier == 0),
        // An ASSEMBLE, which reads; it is not asked again, since its events would come twice.
        "cal_stream" => true,
        _ => REPEATABLE.contains(&method),
    }
}

/// Returns `true` if a request may be asked again though it may have been answered: a put of the same bytes is one
/// grain, by its address.
pub(super) fn is_repeatable(method: &str, params: Option<&RawValue>) -> bool {
    match method {
        "put" => members(params).same_fact.is_none_or(|fact| fact == "add"),
        "put_batch" => true,
        "cal_stream" => false,
        _ => is_reading(method, params),
    }
}

/// The error of a request that may have been done or not.
pub(super) fn in_doubt(method: &str, pid: u32, what: &str) -> Error {
    let look = match method {
        "supersede" => {
            "look at `history` of the grain: its successor is there, or it is current still"
        }
        "put" => "look for the grain by its address, and at `history` of what it states",
        "erase" | "erase_user" | "sweep" => "look at `audit`, and whether the grain `exists`",
        "hold" | "lift_hold" | "contradict" | "set_verification" => {
            "look at the state that `get` tells"
        }
        "policy_set" | "cal_switch" => "look at `policy_show` and `audit`",
        "embed" => "give the vectors again: they replace those of the same spaces",
        "import" | "alf_import" | "alf_apply" | "saga_import" | "migrate" => {
            "run it again: what is stored already is not stored twice"
        }
        "export" | "backup" | "alf_export" | "alf_delta" | "saga_export" | "ages_export" => {
            "look at the file, and write it again under another name"
        }
        "compact" | "reindex" | "remove_vectors" => "run it again",
        "rotate_keys" => "see with which of both keys the store opens",
        _ => "look at the last entries of `audit`: they tell whether it was done",
    };
    let who = process(pid);
    let message = format!("{who}, which had the store open, {what}: {method} was done, or was not");
    Error::refused("ERR_IN_DOUBT", message, look)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_only_reads_and_a_put_by_address_are_asked_again() {
        let asked = |method: &str, params: serde_json::Value| {
            let params = serde_json::value::to_raw_value(&params).unwrap();
            is_repeatable(method, Some(&params))
        };
        assert!(is_repeatable("get", None) && is_repeatable("cal", None));
        assert!(
            asked("put", json!({ "grain": {} })) && asked("put", json!({ "same_fact": "add" }))
        );
        assert!(asked("cal", json!({ "query": "RECALL", "tier": 0 })));
        assert!(!asked("put", json!({ "same_fact": "supersede" })));
        assert!(!asked("cal", json!({ "query": "ADD", "tier": 1 })));
        for method in ["supersede", "execute", "erase", "hold", "import", "unheard of"] {
            assert!(!asked(method, json!({})), "{method}");
        }
    }
}
