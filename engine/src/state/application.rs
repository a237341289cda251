//! Blobs and rows that applications keep beside grains: what names them, whom they belong to, and their bounds.
//!
//! Knows the forms that callers use, not where rows lie.

use std::ops::RangeInclusive;

use grainstore_format::{ContentAddress, normalise_text};
use serde::Serialize;

use crate::base::error::{Error, ErrorKind, Result};
use crate::disk::truth_tables::TruthTable;

/// Most bytes of a side blob ([`Session::put_side_blob`](crate::Session::put_side_blob)); `ERR_TOO_LARGE` beyond.
pub const MAX_SIDE_BLOB_BYTES: usize = 64 << 20;
/// Most bytes of the name of an application ([`Session::put_row`](crate::Session::put_row)); `ERR_TOO_LARGE` beyond.
pub const MAX_APPLICATION_BYTES: usize = 255;
/// Most bytes of the key of a row ([`Session::put_row`](crate::Session::put_row)); `ERR_TOO_LARGE` beyond.
pub const MAX_KEY_BYTES: usize = 1024;
/// Most bytes of the value of a row ([`Session::put_row`](crate::Session::put_row)); `ERR_TOO_LARGE` beyond.
pub const MAX_VALUE_BYTES: usize = 1 << 20;
/// Most changes of one [`Session::write_rows`](crate::Session::write_rows); `ERR_LIMIT` beyond.
pub const MAX_ROW_CHANGES: usize = 100_000;
/// Most bytes of the values of one [`Session::write_rows`](crate::Session::write_rows); `ERR_LIMIT` beyond.
pub const MAX_ROW_CHANGE_BYTES: usize = 32 << 20;
/// Most rows of one answer of [`Session::rows`](crate::Session::rows); `ERR_LIMIT` for a larger page.
pub const MAX_ROW_PAGE: usize = 10_000;
/// Bytes of values after which a page of [`Session::rows`](crate::Session::rows) ends, without an error.
pub const MAX_ROW_PAGE_BYTES: usize = 8 << 20;

/// Whom a row ([`Session::put_row`](crate::Session::put_row)) or a side blob belongs to: it is erased with them, and in an
/// encrypted store lies under their key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Owner {
    /// Nobody: it stays until it is removed.
    #[default]
    Store,
    /// A user, by their `user_id`. It is erased with the user.
    User(String),
    /// A stored grain. It is erased with the grain, and with the grain's user.
    Grain(ContentAddress),
}

/// The key of a row ([`Session::put_row`](crate::Session::put_row)).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ApplicationKey {
    /// A number. It lies on disk as it is, also in an encrypted store, and rows are in the order of it.
    Number(u64),
    /// Text or other bytes, of which the disk has a hash, or in an encrypted store a token.
    Bytes(Vec<u8>),
}

/// A row of an application ([`Session::rows`](crate::Session::rows)).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApplicationRow {
    /// The key.
    pub key: ApplicationKey,
    /// The value.
    pub value: Vec<u8>,
}

/// A change of [`Session::write_rows`](crate::Session::write_rows): a row to be written or removed.
///
/// ```
/// use grainstore::{Owner, RowChange};
///
/// let written = RowChange::put("notes", 1, "color", b"red").owner(Owner::User("ann".into()));
/// let removed = RowChange::remove("notes", 2, 77);
/// assert_ne!(written, removed);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowChange {
    pub(crate) application: String,
    pub(crate) table: u8,
    pub(crate) key: ApplicationKey,
    /// `None` to remove the row.
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) owner: Owner,
}

/// The rows that [`Session::rows`](crate::Session::rows) reads.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RowRange {
    /// Those whose keys are these numbers, ascending.
    Numbers(RangeInclusive<u64>),
    /// Those whose keys are bytes, behind this key, in an order that says nothing; `None` from the first.
    BytesAfter(Option<Vec<u8>>),
}

/// A page of rows: [`Session::rows`](crate::Session::rows).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RowPage {
    /// The rows.
    pub rows: Vec<ApplicationRow>,
    /// The range of the next page; `None` at the end.
    pub next: Option<RowRange>,
}

/// Numbers of rows and blobs, in an [`AuditEntry`](crate::AuditEntry) or an [`EraseOutcome`](crate::EraseOutcome) of
/// [`Session::erase_user`](crate::Session::erase_user).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct ApplicationCounts {
    /// Rows of applications.
    pub rows: u64,
    /// Blobs.
    pub blobs: u64,
}

impl ApplicationCounts {
    pub(crate) fn new(rows: u64, blobs: u64) -> Self {
        Self { rows, blobs }
    }

    /// Counts a row of this table.
    pub(crate) fn add(&mut self, table: TruthTable) {
        let count = match table {
            TruthTable::Blobs => &mut self.blobs,
            _ => &mut self.rows,
        };
        *count = count.saturating_add(1);
    }

    /// The counts of both together.
    pub(crate) fn plus(self, other: Self) -> Self {
        let Self { rows, blobs } = self;
        Self::new(rows.saturating_add(other.rows), blobs.saturating_add(other.blobs))
    }

    /// Returns the counts, `None` if both are 0.
    pub(crate) fn if_any(self) -> Option<Self> {
        (self != Self::default()).then_some(self)
    }
}

impl From<u64> for ApplicationKey {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for ApplicationKey {
    fn from(text: &str) -> Self {
        Self::Bytes(text.as_bytes().to_vec())
    }
}

impl From<&[u8]> for ApplicationKey {
    fn from(bytes: &[u8]) -> Self {
        Self::Bytes(bytes.to_vec())
    }
}

impl From<Vec<u8>> for ApplicationKey {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

impl RowChange {
    /// The bytes of its names, key and value.
    pub(crate) fn bytes(&self) -> usize {
        let key = match &self.key {
            ApplicationKey::Number(_) => 8,
            ApplicationKey::Bytes(key) => key.len(),
        };
        let owner = match &self.owner {
            Owner::User(user) => user.len(),
            _ => 32,
        };
        [self.application.len(), key, owner, self.value.as_ref().map_or(0, Vec::len)]
            .into_iter()
            .fold(0, usize::saturating_add)
    }

    /// Writes a row; one that is there under this key is replaced, with its owner.
    pub fn put(
        application: impl Into<String>,
        table: u8,
        key: impl Into<ApplicationKey>,
        value: impl AsRef<[u8]>,
    ) -> Self {
        let value = Some(value.as_ref().to_vec());
        let (application, key, owner) = (application.into(), key.into(), Owner::Store);
        Self { application, table, key, value, owner }
    }

    /// Removes a row, if it is there.
    pub fn remove(
        application: impl Into<String>,
        table: u8,
        key: impl Into<ApplicationKey>,
    ) -> Self {
        let (application, key, owner) = (application.into(), key.into(), Owner::Store);
        Self { application, table, key, value: None, owner }
    }

    /// Sets whom the row belongs to. Without a call it belongs to nobody.
    #[must_use]
    pub fn owner(self, owner: Owner) -> Self {
        Self { owner, ..self }
    }

    /// Checks a change against the bounds, and brings the name of its owner into normal form.
    ///
    /// # Errors
    /// `ERR_EMPTY`, `ERR_TOO_LARGE`.
    pub(crate) fn checked(self) -> Result<Self> {
        check_table(&self.application)?;
        self.key.check()?;
        if self.value.as_ref().is_some_and(|value| value.len() > MAX_VALUE_BYTES) {
            return Err(too_large("the value of a row", MAX_VALUE_BYTES));
        }
        Ok(Self { owner: self.owner.normalised()?, ..self })
    }
}

impl ApplicationKey {
    /// Checks a key against the bounds.
    ///
    /// # Errors
    /// `ERR_EMPTY`, `ERR_TOO_LARGE`.
    pub(crate) fn check(&self) -> Result<()> {
        match self {
            Self::Number(_) => Ok(()),
            Self::Bytes(bytes) if bytes.is_empty() => Err(empty("the key of a row is empty")),
            Self::Bytes(bytes) if bytes.len() > MAX_KEY_BYTES => {
                Err(too_large("the key of a row", MAX_KEY_BYTES))
            }
            Self::Bytes(_) => Ok(()),
        }
    }
}

impl Owner {
    /// Returns the owner with its name in NFC, as `user_id` is in grains (OMS 4.4).
    ///
    /// # Errors
    /// `ERR_EMPTY` for a user without a name; those of text that no grain can have.
    pub(crate) fn normalised(self) -> Result<Self> {
        match self {
            Self::User(user) => match normalise_text(&user)?.into_owned() {
                user if user.is_empty() => Err(empty("the user is empty")),
                user => Ok(Self::User(user)),
            },
            owner => Ok(owner),
        }
    }
}

/// Checks the name of an application.
///
/// # Errors
/// `ERR_EMPTY`, `ERR_TOO_LARGE`.
pub(crate) fn check_table(application: &str) -> Result<()> {
    match application.len() {
        0 => Err(empty("the name of the application is empty")),
        1..=MAX_APPLICATION_BYTES => Ok(()),
        _ => Err(too_large("the name of an application", MAX_APPLICATION_BYTES)),
    }
}

pub(crate) fn too_large(what: &str, most: usize) -> Error {
    let kind = ErrorKind::Format(grainstore_format::ErrorKind::TooLarge);
    Error::new(kind, format!("{what} has {most} bytes at most")).with_hint("divide it")
}

fn empty(message: &str) -> Error {
    let kind = ErrorKind::Format(grainstore_format::ErrorKind::Empty);
    Error::new(kind, message).with_hint("name it")
}
