//! Text for values: relations in plain words, numbers as short decimals, values of any type.
//!
//! It knows values, not grains: the table decides which field is shown where.

use std::borrow::Cow;
use std::io;

use grainstore_format::Value;
use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

/// Returns a relation in plain words: without the prefix up to the last colon, with spaces for
/// underscores.
///
/// `mg:works_at` becomes `works at` (CAL 10.3.3).
///
/// ```
/// assert_eq!(grainstore_sml::humanize("mg:works_at"), "works at");
/// ```
#[must_use]
pub fn humanize(relation: &str) -> String {
    relation.rsplit_once(':').map_or(relation, |(_, name)| name).replace('_', " ")
}

/// Returns the shortest decimal that parses to the same float64, such as `0.9` or `1`, without an
/// exponent.
pub(crate) fn number(x: f64) -> String {
    if x == 0.0 { "0".to_owned() } else { x.to_string() }
}

/// Returns a value as text: strings unchanged, lists and maps as compact JSON with sorted keys.
pub(crate) fn value(value: &Value) -> Cow<'_, str> {
    match value {
        Value::Str(text) => Cow::Borrowed(text),
        Value::Float(x) => Cow::Owned(number(*x)),
        Value::Null | Value::Bool(_) | Value::Int(_) => Cow::Owned(json(value)),
        Value::Bytes(_) | Value::Array(_) | Value::Map(_) => Cow::Owned(json(value)),
    }
}

/// Joins the items of a list as text, or returns `None` for an empty list.
pub(crate) fn join(items: &[Value], separator: &str) -> Option<String> {
    let words: Vec<_> = items.iter().map(value).collect();
    (!words.is_empty()).then(|| words.join(separator))
}

fn json(value: &Value) -> String {
    let mut bytes = Vec::new();
    let written = value.serialize(&mut Serializer::with_formatter(&mut bytes, ShortFloats));
    written.ok().and_then(|()| String::from_utf8(bytes).ok()).unwrap_or_default()
}

/// Compact JSON with numbers written as in the rest of the text: `1`, not `1.0`.
struct ShortFloats;

impl Formatter for ShortFloats {
    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, x: f64) -> io::Result<()> {
        writer.write_all(number(x).as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use grainstore_format::{Int, Map};

    use super::*;

    #[test]
    fn relations_lose_prefix_and_underscores() {
        for (relation, words) in [
            ("prefers", "prefers"),
            ("mg:prefers", "prefers"),
            ("works_at", "works at"),
            ("acme:hr:reports_to", "reports to"),
            ("mg:", ""),
            (":x", "x"),
            ("", ""),
            ("größer_als", "größer als"),
        ] {
            assert_eq!(humanize(relation), words, "{relation}");
        }
    }

    #[test]
    fn numbers_are_shortest_decimals() {
        for (x, text) in [
            (0.9, "0.9"),
            (1.0, "1"),
            (0.0, "0"),
            (-0.0, "0"),
            (-1.5, "-1.5"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1e-7, "0.0000001"),
            (1e21, "1000000000000000000000"),
        ] {
            assert_eq!(number(x), text);
        }
    }

    #[test]
    fn values_of_every_shape_become_text() {
        let map = Map::from([
            ("z".to_owned(), Value::from(1.0)),
            ("a".to_owned(), Value::from(vec![Value::Null, Value::from("q\"\n")])),
        ]);
        for (input, text) in [
            (Value::from("as is"), "as is"),
            (Value::from(true), "true"),
            (Value::from(-3_i64), "-3"),
            (Value::from(u64::MAX), "18446744073709551615"),
            (Value::Int(Int::from(i64::MIN)), "-9223372036854775808"),
            (Value::from(2.50), "2.5"),
            (Value::from(vec!["a", "b"]), r#"["a","b"]"#),
            (Value::from(map), r#"{"a":[null,"q\"\n"],"z":1}"#),
            (Value::from(Map::new()), "{}"),
        ] {
            assert_eq!(value(&input), text);
        }
    }

    #[test]
    fn lists_are_joined_and_empty_ones_are_nothing() {
        let items = [Value::from("a"), Value::from(2.0)];
        assert_eq!(join(&items, "; ").as_deref(), Some("a; 2"));
        assert_eq!(join(&[], "; "), None);
    }
}
