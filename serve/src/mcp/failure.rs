//! What a tool refuses or fails with: a code of docs/errors.md, a message, and the way out.

use std::borrow::Cow;

/// Results of tools, with their [`Failure`].
pub(super) type Result<T, E = Failure> = std::result::Result<T, E>;

/// Why a tool did not do what it was called for.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) code: Cow<'static, str>,
    pub(super) message: String,
    pub(super) hint: String,
}

/// The codes that this crate raises itself.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    /// Arguments that cannot be.
    Schema,
    /// Something this server, or the person, does not allow.
    Access,
    /// No such grain.
    NotFound,
    /// A larger answer than one may be.
    Limit,
    /// A cursor of another question.
    Cursor,
    /// A confirmation that is not open.
    Token,
    /// A call that was cancelled, or that nobody answered in time.
    Cancelled,
    /// Something the system did not do.
    Io,
}

impl Kind {
    const fn code(self) -> &'static str {
        match self {
            Self::Schema => "ERR_SCHEMA",
            Self::Access => "ERR_ACCESS",
            Self::NotFound => "ERR_NOT_FOUND",
            Self::Limit => "ERR_LIMIT",
            Self::Cursor => "ERR_CURSOR",
            Self::Token => "ERR_TOKEN",
            Self::Cancelled => "ERR_TIMEOUT",
            Self::Io => "ERR_IO",
        }
    }
}

impl Failure {
    pub(super) fn new(kind: Kind, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { code: Cow::Borrowed(kind.code()), message: message.into(), hint: hint.into() }
    }

    /// Returns `true` if it has this code.
    pub(super) fn has_code(&self, code: &str) -> bool {
        self.code == code
    }
}

impl From<grainstore_rpc::Error> for Failure {
    fn from(error: grainstore_rpc::Error) -> Self {
        match error {
            grainstore_rpc::Error::Refused(refusal) => {
                let refusal = *refusal;
                Self { code: refusal.code, message: refusal.message, hint: refusal.hint }
            }
            other => Self::new(Kind::Io, other.to_string(), ""),
        }
    }
}
