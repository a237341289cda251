//! Brings values from users and programs into canonical form (OMS 4.4, 4.5, 4.8).
//!
//! Text becomes NFC, null map entries are dropped, numbers take the form of the field table, RFC 3339
//! text becomes milliseconds, base64 becomes bytes. [`crate::validate`] decides whether the result is a
//! valid grain.

use std::collections::btree_map::Entry;

use data_encoding::BASE64;

use crate::error::{Error, ErrorKind, Result, corrupt, schema};
use crate::fields::{self, CITATION, FieldDef, FieldKind, NestedFields};
use crate::grain_type::GrainType;
use crate::text;
use crate::time::parse_datetime;
use crate::value::{Int, Map, Value};

/// Returns the type and the canonical form of all fields, by full name.
///
/// # Errors
/// `ERR_CORRUPT` (BOM, keys equal after NFC, too deep), `ERR_FLOAT_INVALID`, `ERR_NO_TYPE`,
/// `ERR_UNKNOWN_TYPE`, `ERR_SCHEMA` (a short key as name, a bad date or base64).
pub(crate) fn fields(given: Map, max_depth: usize) -> Result<(GrainType, Map)> {
    let mut fields = canonical_map(given, 1, max_depth)?;
    let grain_type = grain_type(&fields)?;
    check_names(&fields, |name| match fields::by_name(name, grain_type) {
        Some(_) => None,
        None => fields::by_key(name, grain_type),
    })?;
    for (name, value) in &mut fields {
        let Some(def) = fields::by_name(name, grain_type) else {
            continue;
        };
        if def.section.covers(grain_type) {
            coerce_field(def, value).map_err(|e| e.at(def.name))?;
        }
        if let Some(nested) = NestedFields::under(def.name) {
            coerce_nested(nested, value)?;
        }
    }
    Ok((grain_type, fields))
}

/// Returns the type named by `type` (OMS section 8 and its aliases).
pub(crate) fn grain_type(fields: &Map) -> Result<GrainType> {
    match fields.get("type") {
        None => Err(Error::new(ErrorKind::NoType, "missing required field: type")),
        Some(Value::Str(name)) => GrainType::from_name(name).ok_or_else(|| {
            let message = format!("unknown memory type: {:?}", text::excerpt(name));
            Error::new(ErrorKind::UnknownType, message).at("type")
        }),
        Some(other) => Err(schema("type", format!("type is a string, not {}", other.type_name()))),
    }
}

fn canonical(value: Value, depth: usize, max_depth: usize) -> Result<Value> {
    match value {
        Value::Str(given) => Ok(Value::Str(canonical_text(given)?)),
        Value::Float(x) if !x.is_finite() => {
            Err(Error::new(ErrorKind::FloatInvalid, "a float is NaN or infinite"))
        }
        Value::Array(items) => {
            check_depth(depth, max_depth)?;
            let items = items.into_iter().map(|item| canonical(item, depth + 1, max_depth));
            items.collect::<Result<_>>().map(Value::Array)
        }
        Value::Map(map) => canonical_map(map, depth, max_depth).map(Value::Map),
        scalar => Ok(scalar),
    }
}

fn canonical_map(map: Map, depth: usize, max_depth: usize) -> Result<Map> {
    check_depth(depth, max_depth)?;
    let mut out = Map::new();
    for (key, value) in map {
        let key = canonical_text(key)?;
        // Null entries are dropped at the end, so a duplicate key is rejected even if one of its values
        // is null.
        let value = canonical(value, depth + 1, max_depth).map_err(|e| add_place(e, &key))?;
        match out.entry(key) {
            Entry::Vacant(slot) => slot.insert(value),
            Entry::Occupied(slot) => {
                return Err(corrupt("two keys are equal after NFC").at(slot.key().clone()));
            }
        };
    }
    out.retain(|_, value| !matches!(value, Value::Null));
    Ok(out)
}

fn canonical_text(given: String) -> Result<String> {
    match text::normalise(&given)? {
        std::borrow::Cow::Borrowed(_) => Ok(given),
        std::borrow::Cow::Owned(nfc) => Ok(nfc),
    }
}

fn check_depth(depth: usize, max_depth: usize) -> Result<()> {
    if depth <= max_depth {
        return Ok(());
    }
    Err(corrupt(format!("nested deeper than the profile's {max_depth} levels")))
}

/// Adds the key as place, unless a more deeply nested place is set already.
fn add_place(error: Error, key: &str) -> Error {
    if error.place().is_empty() { error.at(key) } else { error }
}

/// Rejects short keys used as names, which would bypass the schema of their field.
fn check_names(map: &Map, meant: impl Fn(&str) -> Option<&'static FieldDef>) -> Result<()> {
    match map.keys().find_map(|key| Some((key, meant(key)?))) {
        None => Ok(()),
        Some((key, FieldDef { name, .. })) => {
            let message = format!("{key:?} is a short key; write the full name, {name}");
            Err(schema(key, message).with_hint(FULL_NAMES_HINT))
        }
    }
}

/// The hint for a short key used as a name.
const FULL_NAMES_HINT: &str = "write fields by their full names, such as structural_tags for tags (docs/fields.md lists them)";

fn coerce_nested(nested: &'static NestedFields, list: &mut Value) -> Result<()> {
    let Value::Array(entries) = list else {
        return Ok(());
    };
    for entry in entries {
        let Value::Map(map) = entry else { continue };
        check_names(map, |name| match nested.by_name(name) {
            Some(_) => None,
            None => nested.by_key(name),
        })
        .map_err(|e| e.at(nested.parent))?;
        coerce_map(nested.fields, map).map_err(|e| e.at(nested.parent))?;
        if nested.parent == "content_refs" {
            coerce_map(&CITATION, map).map_err(|e| e.at(nested.parent))?;
        }
    }
    Ok(())
}

fn coerce_map(defs: &[FieldDef], map: &mut Map) -> Result<()> {
    for def in defs {
        if let Some(value) = map.get_mut(def.name) {
            coerce_field(def, value)?;
        }
    }
    Ok(())
}

/// Converts a value to the type of its field where a conversion is defined. Validation rejects the
/// rest.
fn coerce_field(def: &FieldDef, value: &mut Value) -> Result<()> {
    match (def.kind, &mut *value) {
        (FieldKind::Float, Value::Int(n)) => *value = Value::Float(n.to_f64()),
        (FieldKind::Int | FieldKind::Byte | FieldKind::Datetime, Value::Float(x)) => {
            if let Some(n) = float_to_int(*x) {
                *value = Value::Int(n);
            }
        }
        (FieldKind::Datetime, Value::Str(text)) => {
            *value = Value::from(parse_datetime(text)?.get());
        }
        (FieldKind::ByteList, Value::Array(items)) => {
            for item in items {
                if let Value::Float(x) = item
                    && let Some(n) = float_to_int(*x)
                {
                    *item = Value::Int(n);
                }
            }
        }
        (FieldKind::BytesList, Value::Array(items)) => {
            for item in items {
                base64(item)?;
            }
        }
        (FieldKind::Parents, Value::Array(items)) => {
            for item in items {
                if let Value::Map(citation) = item {
                    coerce_map(&CITATION, citation)?;
                }
            }
        }
        (FieldKind::Map, Value::Map(map)) if def.name == "trusted_timestamp" => {
            if let Some(token) = map.get_mut("tsp_response") {
                base64(token)?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn base64(value: &mut Value) -> Result<()> {
    if let Value::Str(text) = value {
        let bytes = BASE64.decode(text.as_bytes());
        *value = Value::Bytes(bytes.map_err(|_| {
            Error::new(ErrorKind::Schema, "bytes are written as base64 with padding")
        })?);
    }
    Ok(())
}

/// Returns a float without a fraction as an integer, if it is in the range of [`Int`].
#[expect(clippy::cast_possible_truncation, reason = "a float to i128 saturates; Int checks")]
fn float_to_int(x: f64) -> Option<Int> {
    (x.fract() == 0.0).then(|| Int::new(x as i128)).flatten()
}
