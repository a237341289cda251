//! The error type of the crate: a code of the store, a message, a hint, and the entry or line it is about.
//!
//! It has no codes of its own.

use std::fmt;
use std::path::Path;

use grainstore::{ErrorKind, format};

/// Results of this crate, with its [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of reading or writing a neighbouring format, or of the store meanwhile.
///
/// ```
/// use grainstore::{ErrorKind, format};
/// use grainstore_interop::json;
///
/// let error = json::parse(br#"{"a": 1, "a": 2}"#).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Format(format::ErrorKind::Corrupt));
/// assert_eq!(error.code(), "ERR_CORRUPT");
/// assert_eq!(error.in_entry("manifest.json").entry(), Some("manifest.json"));
/// ```
#[derive(Debug, Clone)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    hint: Option<&'static str>,
    /// The file, the entry of an archive, or the line that it is about.
    entry: Option<String>,
    /// An error of the store, told by the store.
    of_store: Option<Box<grainstore::Error>>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, entry: None, of_store: None }
    }

    /// The input cannot be read at all: `ERR_CORRUPT`.
    pub(crate) fn corrupt(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Format(format::ErrorKind::Corrupt), message)
            .with_hint("ask for the file again; nothing of it was taken")
    }

    /// The input is not what the format says it must be: `ERR_SCHEMA`.
    pub(crate) fn schema(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Format(format::ErrorKind::Schema), message)
            .with_hint("validate the file; the message names what differs from its format")
    }

    /// The input differs from its own checksums: `ERR_INTEGRITY`.
    pub(crate) fn integrity(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Format(format::ErrorKind::Integrity), message)
            .with_hint("it was changed since it was written; ask for it again")
    }

    /// The input is of a version that is not known: `ERR_VERSION`.
    pub(crate) fn version(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Format(format::ErrorKind::Version), message)
            .with_hint("a newer Grainstore may read it")
    }

    /// The input is larger than what is read: `ERR_LIMIT`.
    pub(crate) fn limit(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Limit, message)
            .with_hint("divide it, or raise the limit if you trust where it comes from")
    }

    /// Replaces the hint.
    #[must_use]
    pub(crate) fn with_hint(self, hint: &'static str) -> Self {
        Self { hint: Some(hint), ..self }
    }

    /// Says which entry of an archive, file or line the error is about. One that is said already stays, behind it.
    #[must_use]
    pub fn in_entry(self, name: &str) -> Self {
        let entry = match self.entry {
            None => name.to_owned(),
            Some(inner) => format!("{name}: {inner}"),
        };
        Self { entry: Some(entry), ..self }
    }

    pub(crate) fn at_path(self, path: &Path) -> Self {
        self.in_entry(&path.display().to_string())
    }

    /// What it says, without the entry.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// The kind, by which a program decides.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The stable code, such as `ERR_CORRUPT`; the codes are those of the store.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.kind.code()
    }

    /// What to do about it, in one sentence.
    #[must_use]
    pub fn hint(&self) -> &str {
        match (self.hint, &self.of_store) {
            (Some(hint), _) => hint,
            (None, Some(error)) => error.hint(),
            (None, None) => self.kind.hint(),
        }
    }

    /// The file, the entry of an archive, or the line that it is about.
    #[must_use]
    pub fn entry(&self) -> Option<&str> {
        self.entry.as_deref()
    }

    /// The error of the store that it was, if it was one.
    #[must_use]
    pub fn store_error(&self) -> Option<&grainstore::Error> {
        self.of_store.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.entry {
            Some(entry) => write!(f, "{entry}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.of_store.as_deref().map(|error| error as _)
    }
}

impl From<grainstore::Error> for Error {
    fn from(error: grainstore::Error) -> Self {
        Self {
            of_store: Some(Box::new(error.clone())),
            ..Self::new(error.kind(), error.to_string())
        }
    }
}

impl From<format::Error> for Error {
    fn from(error: format::Error) -> Self {
        grainstore::Error::from(error).into()
    }
}

/// A file that is not there is `ERR_NOT_FOUND`.
impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::NotFound => {
                Self::new(ErrorKind::NotFound, "there is no such file or directory")
                    .with_hint("check the name")
            }
            _ => grainstore::Error::from(error).into(),
        }
    }
}
