//! The residue: what a document has beyond what its grain says, as a patch from one to the other.

use std::borrow::Cow;

use crate::error::{Error, Result};
use crate::json::{self, Value};

/// The byte order mark, which no text of a grain has (OMS 4.4).
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Returns text as a grain can have it. Its normal form is left to the grain.
pub(crate) fn grain_text(text: &str) -> Cow<'_, str> {
    match text.contains(BYTE_ORDER_MARK) {
        true => Cow::Owned(text.replace(BYTE_ORDER_MARK, "")),
        false => Cow::Borrowed(text),
    }
}

/// Returns the patch that makes the original of what a grain says, `None` if they are equal. It is applied once for
/// trial: what it makes is the original.
///
/// # Errors
/// `ERR_CORRUPT` if it does not, which would be a mistake of this crate.
pub(crate) fn residue_of(said: &Value, original: &Value) -> Result<Option<String>> {
    let Some(patch) = json::difference(said, original) else { return Ok(None) };
    let text = json::ascii(&patch);
    let again = restored(said.clone(), Some(&text))?;
    match json::equal(&again, original) {
        true => Ok(Some(text)),
        false => Err(Error::corrupt("the residue does not restore the document")),
    }
}

/// Applies the residue to what a grain says.
///
/// # Errors
/// `ERR_CORRUPT` for a residue that is none.
pub(crate) fn restored(said: Value, residue: Option<&str>) -> Result<Value> {
    match residue {
        None => Ok(said),
        Some(text) => json::apply(&json::parse(text.as_bytes())?, said),
    }
}
