//! The rules of a step that take two members (AGES v1 sections 9.13 to 9.15).

use serde_json::Value;

/// Checks a step whose members have their shapes. Says which rule it breaks.
pub(super) fn check(step: &Value) -> Result<(), &'static str> {
    let text = |path: &str| step.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let is_true = |path: &str| step.pointer(path).and_then(Value::as_bool).unwrap_or_default();
    let is_null = |path: &str| step.pointer(path).is_none_or(Value::is_null);
    let blocks = text("/decision/outcome") == "BLOCK";
    if text("/policy/mode") == "enforcing" && !is_true("/decision/fail_closed") {
        Err("an enforcing policy fails closed")
    } else if !is_null("/decision/error") && !blocks {
        Err("a decision with an error blocks")
    } else if blocks && !is_null("/outputs/sanitized_output_hash") {
        Err("what was blocked has no output")
    } else if is_true("/chain/genesis") != (text("/kind") == "GENESIS") {
        Err("genesis is said of the step GENESIS, and of no other")
    } else {
        Ok(())
    }
}
