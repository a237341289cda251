//! Grains in answers: of bounded size, with a mark where a text was cut. The whole grain is its resource.

use grainstore::EpochMs;
use grainstore_sml::{Clock, relative_time};
use serde_json::{Map, Value, json};

/// Most bytes of JSON of all grains in one answer.
pub(super) const MAX_BYTES: usize = 32 << 10;
/// Fewest bytes a grain gets, however many there are.
const LEAST_BYTES: usize = 512;

/// Fields of a grain that stay where it is cut, in this order.
const FIRST_FIELDS: &[&str] = &[
    "type",
    "subject",
    "relation",
    "object",
    "content",
    "created_at",
    "valid_from",
    "valid_to",
    "description",
    "title",
];

/// Members that are times in milliseconds, and read as ISO 8601 by a model.
const TIMES: &[&str] =
    &["created_at", "valid_from", "valid_to", "system_valid_from", "system_valid_to"];

/// Members of a grain's state that an agent may act on.
const STATE_FIELDS: &[&str] = &[
    "superseded_by",
    "system_valid_to",
    "verification_status",
    "contradicted",
    "needs_review",
    "held",
];

/// The schema of rows.
pub(super) fn schema() -> Value {
    json!({ "type": "array", "items": {
        "type": "object",
        "properties": {
            "address": { "type": "string" },
            "score": { "type": "number" },
            "grain": { "type": "object" },
            "clipped": { "type": "boolean" },
        },
        "required": ["address"],
    } })
}

/// Returns the bytes that each of so many grains may take.
pub(super) fn share(grains: usize) -> usize {
    (MAX_BYTES / grains.max(1)).max(LEAST_BYTES)
}

/// Returns a row of a method's answer in as many bytes, about: its address, grain and score.
pub(super) fn row(found: &Value, bytes: usize) -> Value {
    let mut row = Map::new();
    let address = found.get("content_address").or_else(|| found.get("address"));
    row.insert("address".to_owned(), address.cloned().unwrap_or_default());
    if let Some(score) = found.get("score").and_then(Value::as_f64) {
        row.insert("score".to_owned(), json!((score * 1_000.0).round() / 1_000.0));
    }
    let (mut grain, clipped) = grain(found.get("grain").unwrap_or(&Value::Null), bytes);
    show_times(&mut grain);
    row.insert("grain".to_owned(), grain);
    if clipped {
        row.insert("clipped".to_owned(), Value::Bool(true));
    }
    Value::Object(row)
}

/// Returns a version of `history` in as many bytes, about, with what its state says.
pub(super) fn version(found: &Value, bytes: usize) -> Value {
    let mut version = row(found, bytes);
    let state = found.get("state").unwrap_or(&Value::Null);
    let kept = STATE_FIELDS.iter().filter_map(|name| {
        let value = state.get(name)?;
        let told = !value.is_null() && *value != Value::Bool(false);
        told.then(|| ((*name).to_owned(), value.clone()))
    });
    if let Value::Object(fields) = &mut version {
        let mut state = Value::Object(kept.collect());
        show_times(&mut state);
        fields.insert("state".to_owned(), state);
    }
    version
}

/// Writes times in ISO 8601, in UTC.
fn show_times(fields: &mut Value) {
    for name in TIMES {
        if let Some(time) = fields.get_mut(*name)
            && let Some(ms) = time.as_i64()
        {
            let at = EpochMs::new(ms);
            *time = Value::from(relative_time(at, &Clock { now: at, iso_timestamps: true }));
        }
    }
}

/// Returns the address of a row.
pub(super) fn address(row: &Value) -> Option<&str> {
    row.get("address").and_then(Value::as_str)
}

/// Cuts a grain to as many bytes, about; whether something was cut.
fn grain(grain: &Value, bytes: usize) -> (Value, bool) {
    let Value::Object(fields) = grain else { return (grain.clone(), false) };
    if size(grain) <= bytes {
        return (grain.clone(), false);
    }
    let mut kept = Map::new();
    let mut left = bytes;
    let first = FIRST_FIELDS.iter().filter_map(|name| fields.get_key_value(*name));
    let rest = fields.iter().filter(|(name, _)| !FIRST_FIELDS.contains(&name.as_str()));
    for (name, value) in first.chain(rest) {
        let room = left.saturating_sub(name.len().saturating_add(4));
        let value = match value {
            value if size(value) <= room => value.clone(),
            Value::String(text) if room > 40 => Value::from(cut(text, room)),
            _ => continue,
        };
        left = room.saturating_sub(size(&value));
        kept.insert(name.clone(), value);
    }
    (Value::Object(kept), true)
}

/// Returns the beginning of a text in as many bytes of JSON.
pub(super) fn cut(text: &str, bytes: usize) -> String {
    let mut left = bytes.saturating_sub(6);
    let mut end = 0;
    for (at, character) in text.char_indices() {
        // The longest escape of JSON is six bytes.
        let cost = if character.is_control() || matches!(character, '"' | '\\') {
            6
        } else {
            character.len_utf8()
        };
        let Some(rest) = left.checked_sub(cost) else {
            return format!("{}...", text.get(..end).unwrap_or_default());
        };
        left = rest;
        end = at.saturating_add(character.len_utf8());
    }
    text.to_owned()
}

/// Returns the bytes of a value as JSON.
pub(super) fn size(value: &Value) -> usize {
    match value {
        Value::String(text) if text.len() < 16 => text.len().saturating_add(2),
        value => value.to_string().len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_keeps_to_its_bytes_and_says_that_it_was_cut() {
        let long = "é\n\"".repeat(4_000);
        let found = json!({
            "content_address": "ab", "score": 0.123_456,
            "grain": { "type": "event", "content": long, "created_at": 1, "context": { "a": long } },
        });
        for bytes in [512, 4_096] {
            let row = row(&found, bytes);
            assert!(row.to_string().len() < bytes + 100, "{}", row.to_string().len());
            assert_eq!(row["clipped"], true);
            assert_eq!(row["score"], 0.123);
            assert_eq!(row["grain"]["type"], "event");
            assert!(row["grain"]["content"].as_str().unwrap().ends_with("..."));
        }
    }

    #[test]
    fn a_short_row_is_whole() {
        let found = json!({ "address": "ab", "grain": { "type": "event", "content": "a", "created_at": 1_000 },
            "state": { "superseded_by": null, "contradicted": false, "held": true } });
        assert_eq!(
            version(&found, 512),
            json!({ "address": "ab", "state": { "held": true },
                "grain": { "type": "event", "content": "a", "created_at": "1970-01-01T00:00:01Z" } })
        );
    }
}
