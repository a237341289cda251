//! What makes one value another, as a JSON Patch (RFC 6902) of `add`, `remove` and `replace`.

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, Patch, PatchOperation, RemoveOperation, ReplaceOperation};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::equal::equal;
use crate::error::{Error, Result};

/// Returns the patch that makes `from` equal to `to`, `None` if it is. Members of objects are compared one by one,
/// arrays as a whole.
///
/// ```
/// use grainstore_interop::json::{apply, difference, equal, parse};
///
/// let (from, to) = (parse(br#"{"a": 1, "b": [1]}"#)?, parse(br#"{"a": 1.0, "b": [], "c": null}"#)?);
/// let patch = difference(&from, &to).unwrap_or_default();
/// assert!(equal(&apply(&patch, from)?, &to));
/// assert_eq!(difference(&to, &to), None);
/// # Ok::<(), grainstore_interop::Error>(())
/// ```
#[must_use]
pub fn difference(from: &Value, to: &Value) -> Option<Value> {
    let mut operations = Vec::new();
    compare(&PointerBuf::new(), from, to, &mut operations);
    let patch = Patch(operations);
    (!patch.0.is_empty()).then(|| serde_json::to_value(patch).unwrap_or_default())
}

fn compare(at: &PointerBuf, from: &Value, to: &Value, operations: &mut Vec<PatchOperation>) {
    match (from, to) {
        (Value::Object(from), Value::Object(to)) => compare_members(at, from, to, operations),
        _ if equal(from, to) => {}
        _ => operations.push(PatchOperation::Replace(ReplaceOperation {
            path: at.clone(),
            value: to.clone(),
        })),
    }
}

fn compare_members(
    at: &PointerBuf,
    from: &Map<String, Value>,
    to: &Map<String, Value>,
    operations: &mut Vec<PatchOperation>,
) {
    let member = |name: &str| {
        let mut path = at.clone();
        path.push_back(name);
        path
    };
    for name in from.keys().filter(|name| !to.contains_key(*name)) {
        operations.push(PatchOperation::Remove(RemoveOperation { path: member(name) }));
    }
    for (name, value) in to {
        match from.get(name) {
            Some(old) => compare(&member(name), old, value, operations),
            None => operations.push(PatchOperation::Add(AddOperation {
                path: member(name),
                value: value.clone(),
            })),
        }
    }
}

/// Applies a patch of [`difference`] to a value.
///
/// # Errors
/// `ERR_CORRUPT` if it is no patch, or does not fit the value.
pub fn apply(patch: &Value, mut to: Value) -> Result<Value> {
    let operations = Patch::deserialize(patch)
        .map_err(|error| Error::corrupt(format!("no JSON Patch: {error}")))?;
    json_patch::patch(&mut to, &operations)
        .map_err(|error| Error::corrupt(format!("a patch does not fit: {error}")))?;
    Ok(to)
}
