//! Error messages for invalid parameters, in terms of JSON instead of Rust.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// Phrases of serde, and their replacements.
const SERDE_PHRASES: [(&str, &str); 12] = [
    ("expected a sequence", "expected a list"),
    ("expected f64", "expected a number"),
    ("expected i64", "expected a whole number"),
    ("expected u64", "expected a whole number from 0 on"),
    ("expected u32", "expected a whole number from 0 on"),
    ("expected u8", "expected a whole number from 0 on"),
    ("expected usize", "expected a whole number from 0 on"),
    ("expected a boolean", "expected true or false"),
    ("invalid type: sequence", "invalid type: a list"),
    ("invalid type: map", "invalid type: an object"),
    ("invalid type: floating point", "invalid type: the number"),
    ("unknown variant", "unknown value"),
];

/// Returns the message without its position, after the name of the parameter it is about.
pub(crate) fn describe_error(error: &serde_json::Error, params: &str) -> String {
    let message = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let mut message = message.strip_suffix(&place).unwrap_or(&message).to_owned();
    for (word, plain) in SERDE_PHRASES {
        message = message.replace(word, plain);
    }
    match member_at(params, error.line(), error.column()) {
        Some(name) => format!("{name}: {message}"),
        None => message,
    }
}

/// Returns the parameter whose value contains this position; parameters are on one line.
fn member_at(params: &str, line: usize, column: usize) -> Option<String> {
    if line != 1 {
        return None;
    }
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(params).ok()?;
    let start = params.as_ptr().addr();
    let is_within = |value: &RawValue| {
        let before = value.get().as_ptr().addr().checked_sub(start);
        before.is_some_and(|before| {
            before <= column && column <= before.saturating_add(value.get().len())
        })
    };
    members.into_iter().find(|(_, value)| is_within(value)).map(|(name, _)| name)
}
