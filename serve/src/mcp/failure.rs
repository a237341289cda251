//! What a tool refuses or fails with: a code of docs/errors.md, a message, and the way out.

use std::borrow::Cow;

use rmcp::model::ErrorData;
use serde_json::json;

/// Results of tools, with their [`Failure`].
pub(super) type Result<T, E = Failure> = std::result::Result<T, E>;

/// Why a tool did not do what it was called for.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) code: Cow<'static, str>,
    pub(super) message: String,
    pub(super) hint: String,
    /// The error of the protocol in its place, where the protocol asks for one.
    pub(super) protocol: Option<Box<ErrorData>>,
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
        Self::of(Cow::Borrowed(kind.code()), message.into(), hint.into())
    }

    /// A refusal of the store.
    pub(super) fn of(code: Cow<'static, str>, message: String, hint: String) -> Self {
        Self { code, message, hint, protocol: None }
    }

    /// Sets the error of the protocol.
    pub(super) fn or_by_protocol(self, error: ErrorData) -> Self {
        Self { protocol: Some(Box::new(error)), ..self }
    }

    /// An error of the protocol, where there is no result that could tell it.
    pub(super) fn into_error(self) -> ErrorData {
        let data = json!({ "code": self.code, "hint": self.hint });
        match &*self.code {
            "ERR_IO" | "ERR_BUSY" | "ERR_INTEGRITY" => {
                ErrorData::internal_error(self.message, Some(data))
            }
            _ => ErrorData::invalid_params(self.message, Some(data)),
        }
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
                Self::of(refusal.code, refusal.message, refusal.hint)
            }
            other => Self::new(Kind::Io, other.to_string(), ""),
        }
    }
}
