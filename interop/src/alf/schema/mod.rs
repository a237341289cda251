//! The shapes of the documents of ALF, as tables, and the check of a value against one.
//!
//! What a newer version may add is no error: members that are not known, and words that are not known where a table
//! lists some, are warnings (ALF 8.2).

mod check;
mod documents;
mod record;

pub(super) use check::{check, is_uuid};
pub(super) use documents::{
    ATTACHMENTS, CREDENTIALS, DELTA_MANIFEST, IDENTITY, MANIFEST, PRINCIPALS,
};
pub(super) use record::RECORD;

/// The shape of a value.
#[derive(Debug)]
pub(super) enum Shape {
    Text,
    /// Text that must not be empty.
    Solid,
    /// Text that should not be empty.
    Filled,
    Uuid,
    /// The id of a record, which should be a UUID of version 7 in lower case.
    RecordId,
    Date,
    DateTime,
    /// A time that the reader needs.
    Instant,
    /// An integer of at least this.
    Integer(i64),
    Number,
    /// A number from 0 to 1.
    Unit,
    Flag,
    Base64,
    Hex,
    Version,
    Checksum,
    /// One of these words; others are kept.
    Words(&'static [&'static str]),
    List(&'static Shape),
    /// An object whose members all have this shape.
    Each(&'static Shape),
    Object(&'static [Member]),
    /// An object of any members.
    Open,
    Nullable(&'static Shape),
}

/// A member of an object.
#[derive(Debug)]
pub(super) struct Member {
    name: &'static str,
    shape: Shape,
    required: bool,
}

const fn must(name: &'static str, shape: Shape) -> Member {
    Member { name, shape, required: true }
}

const fn may(name: &'static str, shape: Shape) -> Member {
    Member { name, shape, required: false }
}
