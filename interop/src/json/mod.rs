//! JSON as neighbouring formats need it: read strictly, compared by value, written in one form.
//!
//! Knows no format and no store.

mod budget;
mod elements;
mod equal;
mod lines;
mod outline;
mod parse;
mod patch;
mod write;

pub(crate) use budget::{Budget, MAX_TOKEN_BYTES, Metered};
pub(crate) use elements::{Document, Element, MAX_ELEMENT_BYTES, elements};
pub use equal::equal;
pub use lines::{Line, Lines, MAX_LINE_BYTES};
pub(crate) use outline::outline;
pub use parse::parse;
pub(crate) use parse::parse_within;
pub use patch::{apply, difference};
pub use serde_json::{Map, Value};
pub use write::{ascii, canonical, line};

/// Sets a member of an object; of another value it does nothing.
pub(crate) fn set(object: &mut Value, name: &str, value: Value) {
    if let Value::Object(members) = object {
        members.insert(name.to_owned(), value);
    }
}
