//! Strict reading: UTF-8, no name twice in an object, no lone surrogates, no number beyond a double.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

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
    let read = Strict.deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    read.map_err(|error| Error::corrupt(format!("not JSON: {error}")))
}

/// Reads a value whose objects have no name twice.
struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<Value, D::Error> {
        source.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
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
        Ok(Value::from(value))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element_seed(Strict)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(name) = object.next_key::<String>()? {
            if members.contains_key(&name) {
                return Err(A::Error::custom(format_args!(
                    "the name {name:?} is twice in an object"
                )));
            }
            members.insert(name, object.next_value_seed(Strict)?);
        }
        Ok(Value::Object(members))
    }
}
