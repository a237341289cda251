//! JSON as neighbouring formats need it: read strictly, compared by value, written in one form.
//!
//! Knows no format and no store.

mod equal;
mod lines;
mod parse;
mod patch;
mod write;

pub use equal::equal;
pub use lines::{Line, Lines, MAX_LINE_BYTES};
pub use parse::parse;
pub use patch::{apply, difference};
pub use serde_json::{Map, Value};
pub use write::{ascii, canonical, line};

/// Sets a member of an object; of another value it does nothing.
pub(crate) fn set(object: &mut Value, name: &str, value: Value) {
    if let Value::Object(members) = object {
        members.insert(name.to_owned(), value);
    }
}
