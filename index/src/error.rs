//! The error type of the crate. It does not record which table or key was being read.

use std::error::Error as StdError;
use std::fmt;

/// The kind of an [`Error`]; each variant has a stable code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// `ERR_IO`: the database could not be read or written.
    Io,
    /// `ERR_INTEGRITY`: the derived tables contradict themselves; they have to be rebuilt.
    Integrity,
    /// `ERR_LIMIT`: a query asks for more than one search may look for.
    Limit,
    /// `ERR_DIMENSION`: a vector whose length differs from its space's, or exceeds what a space can have.
    Dimension,
    /// `ERR_SCHEMA`: a vector with unusable numbers (not finite, or all zero), or a space without a model.
    Vector,
    /// `ERR_TIMEOUT`: the caller's deadline passed, or the caller cancelled.
    Stopped,
    /// `ERR_KEY`: the lookup concerns encrypted grains, and their users were not named.
    Key,
}

impl ErrorKind {
    /// All kinds, for tables and for checks of the documentation.
    pub const ALL: [Self; 7] = [
        Self::Io,
        Self::Integrity,
        Self::Limit,
        Self::Dimension,
        Self::Vector,
        Self::Stopped,
        Self::Key,
    ];

    /// The stable code, e.g. `ERR_IO`.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Io => "ERR_IO",
            Self::Integrity => "ERR_INTEGRITY",
            Self::Limit => "ERR_LIMIT",
            Self::Dimension => "ERR_DIMENSION",
            Self::Vector => "ERR_SCHEMA",
            Self::Stopped => "ERR_TIMEOUT",
            Self::Key => "ERR_KEY",
        }
    }

    /// A sentence on how to fix it, for people.
    #[must_use]
    pub const fn hint(self) -> &'static str {
        match self {
            Self::Io => "check the disk, its free space and the rights to the store",
            Self::Integrity => "rebuild the indexes from the log; no memory is lost by that",
            Self::Limit => "ask for less, or in several questions",
            Self::Dimension => {
                "embed with the model whose vectors are stored, or name another space"
            }
            Self::Vector => {
                "give finite numbers, not all of them zero where directions are compared"
            }
            Self::Stopped => "narrow the query, or allow more time",
            Self::Key => "name the person: open a session with a user_id, or ask for that user_id",
        }
    }
}

/// An error of the index: its kind, a message for people, and the underlying error.
///
/// ```
/// use grainstore_index::{ErrorKind, vectors::Vector};
///
/// let refused = Vector::new([f32::NAN]);
/// let kind = refused.as_ref().map_err(|error| (error.kind(), error.code())).err();
/// assert_eq!(kind, Some((ErrorKind::Vector, "ERR_SCHEMA")));
/// assert!(refused.is_err_and(|error| !error.hint().is_empty()));
/// ```
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// The result type of this crate, with its [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error for stored bytes that no version of this crate writes.
    pub(crate) fn integrity(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Integrity, message: message.into(), source: None }
    }

    /// The error for a sum that the engine could not encrypt.
    #[must_use]
    pub fn of_seal(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Io, message: message.into(), source: None }
    }

    /// The error for a lookup in encrypted grains that names no user.
    pub(crate) fn key() -> Self {
        let message = "this question is about encrypted grains, and names nobody they are of";
        Self { kind: ErrorKind::Key, message: message.to_owned(), source: None }
    }

    /// An error for a query that is too large.
    pub(crate) fn limit(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Limit, message: message.into(), source: None }
    }

    /// The error for work that timed out or was cancelled.
    pub(crate) fn stopped() -> Self {
        let message = "the search took too long, or was cancelled".to_owned();
        Self { kind: ErrorKind::Stopped, message, source: None }
    }

    /// The error for an index that has no room for another sequence, namespace or term.
    pub(crate) fn full() -> Self {
        Self::integrity("the index is full")
    }

    /// An error for a segment of the full text that cannot be read.
    pub(crate) fn text(source: impl StdError + Send + Sync + 'static) -> Self {
        let message = "a segment of the full text cannot be read".to_owned();
        Self { kind: ErrorKind::Integrity, message, source: Some(Box::new(source)) }
    }

    /// An error for a segment of the full text that cannot be read: an error of the system passes, a file that is missing
    /// or short is damage. What a file of ours told the search library keeps its kind.
    pub(crate) fn input(source: std::io::Error) -> Self {
        let kind = kind_of_input(&source);
        Self { kind, ..Self::text(source) }
    }

    /// An error for a segment of the full text that cannot be written.
    pub(crate) fn output(source: std::io::Error) -> Self {
        let message = "a segment of the full text cannot be written".to_owned();
        Self { kind: ErrorKind::Io, message, source: Some(Box::new(source)) }
    }

    /// An error for a vector or query whose length differs from its space's.
    pub(crate) fn dimension(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Dimension, message: message.into(), source: None }
    }

    /// An error for a vector or a space that cannot be used.
    pub(crate) fn vector(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Vector, message: message.into(), source: None }
    }

    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The stable code, e.g. `ERR_INTEGRITY`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.kind.code()
    }

    /// A sentence on how to fix it, for people.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        self.kind.hint()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &self.source {
            Some(source) => Some(source.as_ref()),
            None => None,
        }
    }
}

impl From<redb::StorageError> for Error {
    fn from(source: redb::StorageError) -> Self {
        let kind = match source {
            redb::StorageError::Corrupted(_) => ErrorKind::Integrity,
            _ => ErrorKind::Io,
        };
        let message = "an index table cannot be read or written".to_owned();
        Self { kind, message, source: Some(Box::new(redb::Error::from(source))) }
    }
}

impl From<tantivy::TantivyError> for Error {
    fn from(source: tantivy::TantivyError) -> Self {
        let kind = match &source {
            tantivy::TantivyError::IoError(source) => kind_of_input(source),
            _ => ErrorKind::Integrity,
        };
        Self { kind, ..Self::text(source) }
    }
}

/// The kind of an error of reading a segment.
fn kind_of_input(source: &std::io::Error) -> ErrorKind {
    let own = source.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    let is_of_system = source.raw_os_error().is_some();
    match own {
        Some(own) => own.kind,
        None if is_of_system && source.kind() != std::io::ErrorKind::NotFound => ErrorKind::Io,
        None => ErrorKind::Integrity,
    }
}

impl From<redb::TableError> for Error {
    fn from(source: redb::TableError) -> Self {
        match source {
            redb::TableError::Storage(storage) => storage.into(),
            other => Self {
                kind: ErrorKind::Integrity,
                message: "an index table is missing or of another shape".to_owned(),
                source: Some(Box::new(redb::Error::from(other))),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_failures_keep_their_source_and_their_code() {
        let broken = redb::StorageError::Corrupted("page".to_owned());
        for (source, code) in [
            (redb::StorageError::Io(std::io::Error::other("disk")), "ERR_IO"),
            (broken, "ERR_INTEGRITY"),
        ] {
            let error = Error::from(source);
            assert_eq!(error.code(), code);
            assert!(error.source().is_some());
        }
        let missing = redb::TableError::TableDoesNotExist("index.terms".to_owned());
        assert_eq!(Error::from(missing).code(), "ERR_INTEGRITY");
    }
}
