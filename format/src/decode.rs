//! Decodes payload bytes into fields with full names, rejecting any form that is not canonical (OMS 4,
//! 6.12).

use crate::error::{Error, ErrorKind, Result, corrupt};
use crate::fields::{self, FieldKind, NestedFields};
use crate::grain_type::GrainType;
use crate::profile::DeviceProfile;
use crate::text;
use crate::value::{Map, Value};
use crate::wire::{Encoding, Token, TokenReader};

/// Decodes a whole payload.
///
/// # Errors
/// `ERR_NOT_MAP`, `ERR_CORRUPT` (grammar, order, names, depth, trailing bytes),
/// `ERR_FLOAT_INVALID`.
pub(crate) fn payload(
    bytes: &[u8],
    encoding: Encoding,
    grain_type: GrainType,
    max_depth: usize,
) -> Result<Map> {
    let mut reader = TokenReader::new(bytes, encoding);
    if !reader.at_map() {
        return Err(Error::new(ErrorKind::NotMap, "the payload must be a map"));
    }
    let mut tree = TreeDecoder { reader: &mut reader, max_depth };
    let Value::Map(compact) = tree.value(1)? else {
        return Err(corrupt("the payload must be a map"));
    };
    if !reader.rest().is_empty() {
        return Err(corrupt(format!("{} bytes after the payload", reader.rest().len())));
    }
    expand(compact, grain_type)
}

/// Decodes one canonical value that is not part of a grain, such as an audit entry, written by
/// [`encode_value`](crate::encode_value).
///
/// # Errors
/// `ERR_CORRUPT`, `ERR_FLOAT_INVALID`.
pub fn decode_value(bytes: &[u8], encoding: Encoding) -> Result<Value> {
    let mut reader = TokenReader::new(bytes, encoding);
    let value = TreeDecoder { reader: &mut reader, max_depth: DeviceProfile::EXTENDED.max_depth }
        .value(1)?;
    if reader.rest().is_empty() {
        return Ok(value);
    }
    Err(corrupt("bytes after the value"))
}

struct TreeDecoder<'r, 'a> {
    reader: &'r mut TokenReader<'a>,
    max_depth: usize,
}

impl TreeDecoder<'_, '_> {
    fn value(&mut self, depth: usize) -> Result<Value> {
        Ok(match self.reader.token()? {
            Token::Null => Value::Null,
            Token::Bool(b) => Value::Bool(b),
            Token::Int(n) => Value::Int(n),
            Token::Float(x) => Value::Float(x),
            Token::Str(given) => {
                text::check(given)?;
                Value::Str(given.to_owned())
            }
            Token::Bytes(bytes) => Value::Bytes(bytes.to_vec()),
            Token::Array(items) => {
                self.check_depth(depth)?;
                let items = (0..items).map(|_| self.value(depth + 1));
                Value::Array(items.collect::<Result<_>>()?)
            }
            Token::Map(entries) => {
                self.check_depth(depth)?;
                Value::Map(self.map(entries, depth)?)
            }
        })
    }

    fn map(&mut self, entries: usize, depth: usize) -> Result<Map> {
        let encoding = self.reader.encoding();
        let mut map = Map::new();
        let mut last: Option<&str> = None;
        for _ in 0..entries {
            let key = self.reader.key()?;
            text::check(key)?;
            if last.is_some_and(|last| encoding.compare_keys(last, key).is_ge()) {
                return Err(corrupt("map keys are not in order, or one occurs twice").at(key));
            }
            last = Some(key);
            let value = self.value(depth + 1)?;
            if matches!(value, Value::Null) {
                return Err(corrupt("a null map entry must be left out").at(key));
            }
            map.insert(key.to_owned(), value);
        }
        Ok(map)
    }

    fn check_depth(&self, depth: usize) -> Result<()> {
        if depth <= self.max_depth {
            return Ok(());
        }
        Err(corrupt(format!("nested deeper than the profile's {} levels", self.max_depth)))
    }
}

/// Expands short keys into full names, at the top level and in the three nested maps.
fn expand(compact: Map, grain_type: GrainType) -> Result<Map> {
    let mut fields = Map::new();
    for (key, mut value) in compact {
        let def = fields::by_key(&key, grain_type);
        if def.is_none() && fields::by_name(&key, grain_type).is_some() {
            return Err(uncompacted_key(&key));
        }
        let Some(def) = def else {
            fields.insert(key, value);
            continue;
        };
        if def.section.covers(grain_type) {
            check_float(def, &value)?;
        }
        if let (Some(nested), Value::Array(entries)) = (NestedFields::under(def.name), &mut value) {
            for entry in entries {
                if let Value::Map(map) = entry {
                    *map = expand_nested(std::mem::take(map), nested)?;
                }
            }
        }
        fields.insert(def.name.to_owned(), value);
    }
    Ok(fields)
}

fn expand_nested(compact: Map, nested: &'static NestedFields) -> Result<Map> {
    let mut map = Map::new();
    for (key, value) in compact {
        let def = nested.by_key(&key);
        if def.is_none() && nested.by_name(&key).is_some() {
            return Err(uncompacted_key(&key));
        }
        if let Some(def) = def {
            check_float(def, &value)?;
        }
        map.insert(def.map_or(key, |def| def.name.to_owned()), value);
    }
    Ok(map)
}

/// Checks that a float64 field holds a float64, not an integer.
fn check_float(def: &fields::FieldDef, value: &Value) -> Result<()> {
    if def.kind == FieldKind::Float && matches!(value, Value::Int(_)) {
        return Err(corrupt("an integer in a float64 field").at(def.name));
    }
    Ok(())
}

fn uncompacted_key(key: &str) -> Error {
    corrupt(format!("{key:?} must be compacted to its short key")).at(key)
}
