//! The JSON form of CAL, `application/json+cal` (CAL 15).
//!
//! Both forms are one language: a document is translated to text, by a table of its keys, and parsed as
//! that text; errors are mapped back to the value they come from. The modules: `node` reads JSON, `table`
//! is the form as data, `read` translates it to text, `write` writes a statement, `schema` is the JSON
//! Schema for models.

mod node;
mod read;
mod schema;
mod table;
mod write;

use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::limits;
use crate::types;

pub(crate) use read::TranslatedQuery;
pub use schema::schema;

/// Returns `true` if a query is in the JSON form: no query in text starts with a brace.
pub(crate) fn is_json(source: &str) -> bool {
    source.trim_start_matches([' ', '\t', '\n', '\r']).starts_with('{')
}

/// Translates a query in JSON to text.
///
/// # Errors
/// E001 over 65,536 bytes, and those of the JSON form, positioned in the document.
pub(crate) fn translate(source: &str) -> Result<TranslatedQuery> {
    if source.len() > limits::MAX_JSON_BYTES {
        let message = format!("a query in JSON is at most {} bytes", limits::MAX_JSON_BYTES);
        return Err(Error::new(ErrorKind::QueryTooLong, message));
    }
    let root = node::document(source).map_err(|error| error.locate(source))?;
    read::translate(&root, source).map_err(|error| with_pointer_in(error, &root).locate(source))
}

/// Positions an error of a query that was translated from `source` in that document.
pub(crate) fn locate(error: Error, spelled: &TranslatedQuery, source: &str) -> Error {
    let error = spelled.map_error(error);
    let error = match error.kind() {
        ErrorKind::MissingReason => error.suggest("add the key \"reason\", which says why"),
        ErrorKind::TypeNotNamed => named_by_key(error),
        _ => error,
    };
    match node::document(source) {
        Ok(root) => with_pointer_in(error, &root).locate(source),
        Err(_) => error.locate(source),
    }
}

/// The advice to name a type, in the spelling of this form.
fn named_by_key(error: Error) -> Error {
    let plural = error.suggestion().split(' ').find_map(types::by_plural).map(|name| name.plural);
    match plural {
        Some(plural) => error.suggest(format!("name the type: \"grain_type\": \"{plural}\"")),
        None => error,
    }
}

fn with_pointer_in(error: Error, root: &node::JsonNode) -> Error {
    match error.span() {
        Some(span) => error.with_pointer(root.pointer(span)),
        None => error,
    }
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
