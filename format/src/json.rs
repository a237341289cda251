//! Parses JSON text into values: strict where OMS is (duplicate keys, number ranges), and bounded in
//! depth.
//!
//! It knows no field names; [`crate::normalise`] brings the values into canonical form afterwards.

use std::collections::btree_map::Entry;

use jiter::{Jiter, JiterError, Peek};

use crate::error::{Error, ErrorKind, Result, corrupt};
use crate::profile::DeviceProfile;
use crate::text::excerpt;
use crate::value::{Int, Map, Value};

/// Bytes of JSON allowed per byte of blob: JSON may spell one byte as `\u00XX`, and its names are
/// longer.
const JSON_BYTES_PER_BLOB_BYTE: usize = 8;

const NO_JSON_HINT: &str = "give a grain as one JSON object";
const SYNTAX_HINT: &str = "mend the JSON at that line and column: names and texts stand in double quotes, and \
                      no comma before a closing bracket";

/// Parses one JSON document.
///
/// Nulls are kept and text is not normalised. An integer literal stays an integer; one with a point or
/// an exponent becomes a float.
///
/// ```
/// use grainstore_format::{DeviceProfile, Map, Value, parse_json};
///
/// let value = parse_json(r#"{"size": 1, "weight": 1.0}"#, &DeviceProfile::EXTENDED)?;
/// let expected = Map::from([
///     ("size".to_owned(), Value::from(1)),
///     ("weight".to_owned(), Value::from(1.0)),
/// ]);
/// assert_eq!(value, Value::Map(expected));
/// assert!(parse_json(r#"{"a": 1, "a": 2}"#, &DeviceProfile::EXTENDED).is_err());
/// # Ok::<(), grainstore_format::Error>(())
/// ```
///
/// # Errors
/// `ERR_TOO_LARGE` beyond eight times the blob size of the profile, `ERR_CORRUPT` for malformed JSON,
/// duplicate keys and nesting beyond the profile, `ERR_RANGE` for integers beyond 64 bits,
/// `ERR_FLOAT_INVALID` for floats beyond float64.
pub fn parse_json(text: &str, profile: &DeviceProfile) -> Result<Value> {
    let limit = profile.max_blob_bytes.saturating_mul(JSON_BYTES_PER_BLOB_BYTE);
    if text.len() > limit {
        let message = format!("JSON of {} bytes is over the limit of {limit}", text.len());
        return Err(Error::new(ErrorKind::TooLarge, message));
    }
    if text.trim().is_empty() {
        return Err(corrupt("there is no JSON: the text is empty").with_hint(NO_JSON_HINT));
    }
    let mut parser = Parser { jiter: Jiter::new(text.as_bytes()), max_depth: profile.max_depth };
    let first = parser.jiter.peek().map_err(|e| parser.malformed(&e))?;
    let value = parser.value(first, 1)?;
    parser.jiter.finish().map_err(|e| parser.malformed(&e))?;
    Ok(value)
}

struct Parser<'t> {
    jiter: Jiter<'t>,
    max_depth: usize,
}

impl Parser<'_> {
    fn value(&mut self, peek: Peek, depth: usize) -> Result<Value> {
        match peek {
            Peek::Null => {
                self.jiter.known_null().map(|()| Value::Null).map_err(|e| self.malformed(&e))
            }
            Peek::True | Peek::False => {
                self.jiter.known_bool(peek).map(Value::Bool).map_err(|e| self.malformed(&e))
            }
            Peek::String => match self.jiter.known_str() {
                Ok(text) => Ok(Value::Str(text.to_owned())),
                Err(e) => Err(self.malformed(&e)),
            },
            Peek::Array => self.array(depth),
            Peek::Object => self.object(depth),
            number => self.number(number),
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value> {
        self.check_depth(depth)?;
        let mut items = Vec::new();
        let mut next = self.jiter.known_array().map_err(|e| self.malformed(&e))?;
        while let Some(peek) = next {
            items.push(self.value(peek, depth + 1)?);
            next = self.jiter.array_step().map_err(|e| self.malformed(&e))?;
        }
        Ok(Value::Array(items))
    }

    fn object(&mut self, depth: usize) -> Result<Value> {
        self.check_depth(depth)?;
        let mut map = Map::new();
        let mut next = match self.jiter.known_object() {
            Ok(key) => key.map(str::to_owned),
            Err(e) => return Err(self.malformed(&e)),
        };
        while let Some(key) = next {
            let peek = self.jiter.peek().map_err(|e| self.malformed(&e))?;
            let value = self.value(peek, depth + 1)?;
            match map.entry(key) {
                Entry::Vacant(slot) => slot.insert(value),
                Entry::Occupied(slot) => {
                    let twice = corrupt("a key occurs twice").at(slot.key().clone());
                    return Err(twice.with_hint("keep one of the two: a name occurs once in a map"));
                }
            };
            next = match self.jiter.next_key() {
                Ok(key) => key.map(str::to_owned),
                Err(e) => return Err(self.malformed(&e)),
            };
        }
        Ok(Value::Map(map))
    }

    fn number(&mut self, peek: Peek) -> Result<Value> {
        let digits = match self.jiter.known_number_bytes(peek) {
            Ok(digits) => digits,
            Err(e) => return Err(self.malformed(&e)),
        };
        let literal = std::str::from_utf8(digits).map_err(|_| corrupt("JSON is not UTF-8"))?;
        if literal.contains(['.', 'e', 'E']) {
            let x: f64 = literal.parse().map_err(|_| corrupt("a malformed number"))?;
            if !x.is_finite() {
                let message = format!("{} is past float64", excerpt(literal));
                return Err(Error::new(ErrorKind::FloatInvalid, message));
            }
            return Ok(Value::Float(x));
        }
        // i128 holds 38 digits; a literal that does not fit is beyond 64 bits as well.
        let n = literal.parse::<i128>().ok().and_then(Int::new);
        n.map(Value::Int).ok_or_else(|| {
            Error::new(ErrorKind::Range, format!("{} does not fit 64 bits", excerpt(literal)))
        })
    }

    fn check_depth(&self, depth: usize) -> Result<()> {
        if depth <= self.max_depth {
            return Ok(());
        }
        let message = format!("JSON is nested deeper than {} levels", self.max_depth);
        Err(corrupt(message).with_hint("put less into each other, or text in the place of maps"))
    }

    fn malformed(&self, error: &JiterError) -> Error {
        let position = self.jiter.error_position(error.index);
        let message = format!("malformed JSON: {}", error.error_type);
        corrupt(message).at(position.to_string()).with_hint(SYNTAX_HINT)
    }
}
