//! Strict reading: UTF-8, no name twice in an object, no lone surrogates, no number beyond a double.

use std::fmt;

use serde::Deserialize;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::{Map, Number, Value};

use super::budget::Budget;
use crate::error::{Error, Result};

/// Reads one JSON value, which may be 128 objects and arrays deep.
///
/// Integers that fit 64 bits are exact, other numbers are doubles (RFC 8259 section 6). A byte order mark is no JSON.
///
/// ```
/// use grainstore_interop::json::parse;
///
/// assert_eq!(parse(b"[1, 1.5, 18446744073709551615]")?[2], u64::MAX);
/// for bad in [&br#"{"a": 1, "a": 1}"#[..], br#""\ud800""#, b"\"\xff\"", b"1e400", b"1 2"] {
///     assert_eq!(parse(bad).unwrap_err().code(), "ERR_CORRUPT");
/// }
/// # Ok::<(), grainstore_interop::Error>(())
/// ```
///
/// # Errors
/// `ERR_CORRUPT`, with line and column.
pub fn parse(bytes: &[u8]) -> Result<Value> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let budget = Budget::unlimited();
    let read =
        Strict(&budget).deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    read.map_err(|error| Error::corrupt(format!("not JSON: {error}")))
}

/// Reads a value like [`parse`] that takes this much memory at most.
///
/// # Errors
/// `ERR_LIMIT` if it takes more; those of [`parse`].
pub(crate) fn parse_within(bytes: &[u8], most_bytes: u64) -> Result<Value> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let budget = Budget::of(most_bytes);
    let read =
        Strict(&budget).deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    let value = read.map_err(|error| Error::corrupt(format!("not JSON: {error}")))?;
    match budget.is_over() {
        true => Err(Error::limit(format!("it takes more than {most_bytes} bytes of memory"))),
        false => Ok(value),
    }
}

/// Reads a value whose objects have no name twice. What goes beyond the budget is passed over; what was read of the
/// value is of no use then.
#[derive(Clone, Copy)]
pub(super) struct Strict<'b>(pub(super) &'b Budget);

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<Value, D::Error> {
        self.0.spend_value();
        self.0.begin_token();
        if self.0.is_over() {
            IgnoredAny::deserialize(source)?;
            return Ok(Value::Null);
        }
        source.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("a number without a value"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        self.0.spend_text(value);
        Ok(Value::from(value))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        self.0.spend_text(&value);
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element_seed(self)? {
            if !self.0.is_over() {
                items.push(item);
            }
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        self.0.spend_map();
        let mut members = Map::new();
        while let Some(name) = object.next_key::<String>()? {
            if members.contains_key(&name) {
                return Err(A::Error::custom(format_args!(
                    "the name {name:?} is twice in an object"
                )));
            }
            self.0.spend_text(&name);
            let value = object.next_value_seed(self)?;
            if !self.0.is_over() {
                members.insert(name, value);
            }
        }
        Ok(Value::Object(members))
    }
}
