//! Validation of the fields of a grain (OMS 8, 19, 24-27), in a fixed order: index-layer fields, value
//! types, required fields, empty fields, ranges, closed vocabularies. The first failure is returned.
//!
//! The input is canonical values by full name. No bytes are read or written here.

mod ranges;
mod required;
mod types;
mod vocabulary;

pub(crate) use required::is_ownership_belief;

use crate::error::{Error, Result, corrupt, schema};
use crate::fields;
use crate::grain_type::GrainType;
use crate::profile::DeviceProfile;
use crate::value::{Map, Value};

/// What a grain that is read may say of its own state, to no effect: the standard does not list it among
/// what a blob never has.
const STATED_IN_VAIN: &str = "contradicted";

/// Checks the fields of a grain that is read.
///
/// # Errors
/// `ERR_CORRUPT` (bytes out of place), `ERR_SCHEMA`, `ERR_EMPTY`, `ERR_RANGE`, `ERR_HASH_LENGTH`,
/// `ERR_HASH_FORMAT`.
pub(crate) fn check(grain_type: GrainType, fields: &Map, profile: &DeviceProfile) -> Result<()> {
    check_byte_strings(fields)?;
    check_index_fields(grain_type, fields, &[STATED_IN_VAIN])?;
    check_profile_fields(fields, profile)?;
    types::check(grain_type, fields)?;
    if grain_type.is_standard() {
        required::check(grain_type, fields)?;
    }
    required::check_references(fields)?;
    ranges::check(grain_type, fields)?;
    if grain_type.is_standard() {
        vocabulary::check(grain_type, fields)?;
    }
    Ok(())
}

/// As [`check`], for a grain that is written.
///
/// # Errors
/// As [`check`].
pub(crate) fn check_written(
    grain_type: GrainType,
    fields: &Map,
    profile: &DeviceProfile,
) -> Result<()> {
    check_byte_strings(fields)?;
    check_index_fields(grain_type, fields, &[])?;
    check(grain_type, fields, profile)
}

/// Checks that byte strings occur only in the two places that allow them.
fn check_byte_strings(fields: &Map) -> Result<()> {
    for (name, value) in fields {
        let misplaced = match (name.as_str(), value) {
            ("supersession_auth", Value::Array(entries)) => {
                entries.iter().any(|entry| !matches!(entry, Value::Bytes(_)) && has_bytes(entry))
            }
            ("trusted_timestamp", Value::Map(map)) => map.iter().any(|(key, value)| {
                !(key == "tsp_response" && matches!(value, Value::Bytes(_))) && has_bytes(value)
            }),
            _ => has_bytes(value),
        };
        if misplaced {
            let message = "byte strings occur in supersession_auth and \
                           trusted_timestamp.tsp_response only";
            return Err(corrupt(message).at(name));
        }
    }
    Ok(())
}

/// Recursion is bounded: the profile has limited the depth before this is called.
fn has_bytes(value: &Value) -> bool {
    match value {
        Value::Bytes(_) => true,
        Value::Array(items) => items.iter().any(has_bytes),
        Value::Map(map) => map.values().any(has_bytes),
        _ => false,
    }
}

/// The store's own fields never lie in a blob (OMS 5.6, 28.3), but for those that are passed over.
fn check_index_fields(grain_type: GrainType, fields: &Map, but: &[&str]) -> Result<()> {
    let kept_by_store = |name: &&String| {
        !but.contains(&name.as_str())
            && fields::by_name(name, grain_type).is_some_and(|def| def.index_layer)
    };
    match fields.keys().find(kept_by_store) {
        None => Ok(()),
        Some(name) => Err(schema(name, format!("{name} is kept by the store, never in a grain"))),
    }
}

fn check_profile_fields(fields: &Map, profile: &DeviceProfile) -> Result<()> {
    let allowed = |name: &str| DeviceProfile::LIGHTWEIGHT_FIELDS.contains(&name);
    if !profile.lightweight_fields_only {
        return Ok(());
    }
    match fields.keys().find(|name| !allowed(name)) {
        None => Ok(()),
        Some(name) => Err(schema(name, "the lightweight profile has no such field")),
    }
}

/// Iterates over the maps of a list field. Other items were rejected before.
fn maps<'a>(fields: &'a Map, name: &str) -> impl Iterator<Item = &'a Map> {
    let items = fields.get(name).and_then(Value::as_array).unwrap_or_default();
    items.iter().filter_map(Value::as_map)
}

fn text<'a>(fields: &'a Map, name: &str) -> Option<&'a str> {
    fields.get(name).and_then(Value::as_str)
}

fn missing(field: &str) -> Error {
    schema(field, format!("missing required field: {field}"))
}
