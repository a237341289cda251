//! The one error type of the crate: a kind with a stable code, a place, a message and a hint.
//!
//! Codes are the strings of OMS section 19 verbatim, and the project's own where the standard has none.
//! This module knows no other module of the crate.

use std::fmt;

/// The kind of an [`Error`], one variant per stable code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// `ERR_TOO_SHORT`: fewer than 10 bytes (OMS 19.1).
    TooShort,
    /// `ERR_VERSION`: a version byte this reader does not know (OMS 19.1).
    Version,
    /// `ERR_CORRUPT`: malformed or non-canonical bytes (OMS 4, 19.1).
    Corrupt,
    /// `ERR_NOT_MAP`: the payload is not a map (OMS 19.1).
    NotMap,
    /// `ERR_NO_TYPE`: the payload names no type (OMS 19.1).
    NoType,
    /// `ERR_UNKNOWN_TYPE`: a type name or byte outside the table (OMS 19.1).
    UnknownType,
    /// `ERR_SCHEMA`: a missing, forbidden or wrongly typed field (OMS 19.1).
    Schema,
    /// `ERR_INTEGRITY`: bytes that do not hash to their address (OMS 19.2).
    Integrity,
    /// `ERR_HASH_FORMAT`: an address that is not lowercase hex (OMS 19.2).
    HashFormat,
    /// `ERR_HASH_LENGTH`: an address that is not 64 characters (OMS 19.2).
    HashLength,
    /// `ERR_RANGE`: a number outside its range (OMS 19.3).
    Range,
    /// `ERR_EMPTY`: an empty required string or list (OMS 19.3).
    Empty,
    /// `ERR_FLOAT_INVALID`: NaN or an infinity (OMS 4.3, 19.3).
    FloatInvalid,
    /// `ERR_SIGNED_MISMATCH`: the signed flag and the wrapper disagree (OMS 9.2).
    SignedMismatch,
    /// `ERR_SENSITIVITY_MISMATCH`: header bits lower than the tags require (OMS 13.4).
    SensitivityMismatch,
    /// `ERR_TOO_LARGE`: more bytes than the device profile allows.
    TooLarge,
    /// `ERR_KEY`: an encrypted payload without its key, or a key that does not open it.
    Key,
    /// `ERR_IO`: a container or stream that cannot be read or written.
    Io,
}

impl ErrorKind {
    /// Every kind, for tables and for checks of the documentation.
    pub const ALL: [Self; 18] = [
        Self::TooShort,
        Self::Version,
        Self::Corrupt,
        Self::NotMap,
        Self::NoType,
        Self::UnknownType,
        Self::Schema,
        Self::Integrity,
        Self::HashFormat,
        Self::HashLength,
        Self::Range,
        Self::Empty,
        Self::FloatInvalid,
        Self::SignedMismatch,
        Self::SensitivityMismatch,
        Self::TooLarge,
        Self::Key,
        Self::Io,
    ];

    /// Returns the stable code, e.g. `ERR_CORRUPT`.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::TooShort => "ERR_TOO_SHORT",
            Self::Version => "ERR_VERSION",
            Self::Corrupt => "ERR_CORRUPT",
            Self::NotMap => "ERR_NOT_MAP",
            Self::NoType => "ERR_NO_TYPE",
            Self::UnknownType => "ERR_UNKNOWN_TYPE",
            Self::Schema => "ERR_SCHEMA",
            Self::Integrity => "ERR_INTEGRITY",
            Self::HashFormat => "ERR_HASH_FORMAT",
            Self::HashLength => "ERR_HASH_LENGTH",
            Self::Range => "ERR_RANGE",
            Self::Empty => "ERR_EMPTY",
            Self::FloatInvalid => "ERR_FLOAT_INVALID",
            Self::SignedMismatch => "ERR_SIGNED_MISMATCH",
            Self::SensitivityMismatch => "ERR_SENSITIVITY_MISMATCH",
            Self::TooLarge => "ERR_TOO_LARGE",
            Self::Key => "ERR_KEY",
            Self::Io => "ERR_IO",
        }
    }

    /// Returns one sentence on what the user can do about it.
    #[must_use]
    pub const fn hint(self) -> &'static str {
        match self {
            Self::TooShort => "a blob is a 9-byte header and a payload; check that it was not cut",
            Self::Version => "only .mg version 1 is known; a newer reader may understand it",
            Self::Corrupt => "encode the grain again with a canonical encoder (OMS section 4)",
            Self::NotMap => "the payload must be one MessagePack or CBOR map",
            Self::NoType => "add a type, such as \"belief\"",
            Self::UnknownType => {
                "use belief, event, state, workflow, action, observation, goal, reasoning, \
                 consensus or consent"
            }
            Self::Schema => "compare the fields with the schema of the type (OMS section 8)",
            Self::Integrity => "the bytes changed after they were addressed; fetch them again",
            Self::HashFormat => "write the address as 64 lowercase hex digits",
            Self::HashLength => "an address has exactly 64 hex digits and no prefix",
            Self::Range => "bring the number into its range",
            Self::Empty => "give the field a value",
            Self::FloatInvalid => "NaN and infinities have no canonical form; leave the field out",
            Self::SignedMismatch => "deliver a signed grain in its COSE_Sign1 wrapper, others bare",
            Self::SensitivityMismatch => "let the encoder set the sensitivity bits from the tags",
            Self::TooLarge => "split the grain into several, each within the limit",
            Self::Key => "give the key the payload was encrypted with",
            Self::Io => "check the disk, the path and the permissions",
        }
    }
}

/// An error of the format: its kind, the place in the grain, a message and a hint.
///
/// ```
/// use grainstore_format::{ErrorKind, Grain};
///
/// let refused = Grain::from_json(r#"{"type": "event", "created_at": 1768471200000}"#);
/// if let Err(error) = refused {
///     assert_eq!(error.kind(), ErrorKind::Schema);
///     assert_eq!((error.code(), error.place()), ("ERR_SCHEMA", "content"));
///     assert!(!error.hint().is_empty());
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    place: String,
    message: String,
    hint: Option<&'static str>,
}

/// The result type of this crate, with its [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Creates an error without a place.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, place: String::new(), message: message.into(), hint: None }
    }

    /// Sets the field or byte the error concerns.
    #[must_use]
    pub fn at(mut self, place: impl Into<String>) -> Self {
        self.place = place.into();
        self
    }

    /// Prefixes the place with an outer one, such as the grain or file the error was found in.
    #[must_use]
    pub(crate) fn in_context(mut self, outer: &str) -> Self {
        self.place = match self.place.is_empty() {
            true => outer.to_owned(),
            false => format!("{outer}, {}", self.place),
        };
        self
    }

    /// Replaces the hint of the kind with a more specific one.
    #[must_use]
    pub(crate) fn with_hint(mut self, hint: &'static str) -> Self {
        self.hint = Some(hint);
        self
    }

    /// Returns the kind.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the stable code, e.g. `ERR_SCHEMA`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.kind.code()
    }

    /// Returns the field name or byte position it concerns, or an empty string for the grain as a
    /// whole.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Returns one sentence on what the user can do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        self.hint.unwrap_or(self.kind.hint())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message)?;
        if !self.place.is_empty() {
            write!(f, " (at {})", self.place)?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

/// Creates an `ERR_CORRUPT` error, the most frequent kind.
pub(crate) fn corrupt(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Corrupt, message)
}

/// Creates an `ERR_SCHEMA` error about one field.
pub(crate) fn schema(field: &str, message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Schema, message).at(field)
}
