//! What a memory refuses or fails with, and how that becomes an error of CAL.

use std::borrow::Cow;

use crate::cancel::Stop;
use crate::codes::ErrorKind;
use crate::error::Error;

/// A refusal or failure of a memory; its stable code reaches the caller of CAL unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct MemoryError {
    code: Cow<'static, str>,
    message: String,
    hint: String,
    stop: Option<Stop>,
}

impl MemoryError {
    /// A refusal: stable code (`ERR_...`), what happened, what to do (may be empty).
    #[must_use]
    pub fn new(
        code: impl Into<Cow<'static, str>>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self { code: code.into(), message: message.into(), hint: hint.into(), stop: None }
    }

    /// The answer of a loop that was told to stop.
    #[must_use]
    pub fn stopped(stop: Stop) -> Self {
        let mut error = Self::new("ERR_TIMEOUT", "stopped before the end", "narrow the query");
        error.stop = Some(stop);
        error
    }

    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &str {
        &self.code
    }

    /// What happened.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What to do about it; may be empty.
    #[must_use]
    pub fn hint(&self) -> &str {
        &self.hint
    }
}

impl From<Stop> for MemoryError {
    fn from(stop: Stop) -> Self {
        Self::stopped(stop)
    }
}

/// The memory's code reaches the caller; a stop becomes the code of CAL.
impl From<MemoryError> for Error {
    fn from(error: MemoryError) -> Self {
        match error.stop {
            Some(stop) => stop.into(),
            None => Self::memory(error.code, error.message, error.hint),
        }
    }
}

impl From<Stop> for Error {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Timeout => Self::new(ErrorKind::Timeout, "the query took too long"),
            Stop::Cancelled => Self::new(ErrorKind::Cancelled, "the host cancelled the statement"),
        }
    }
}

/// A grain the format refuses is refused under the format's code.
impl From<grainstore_format::Error> for Error {
    fn from(error: grainstore_format::Error) -> Self {
        Self::memory(error.code().into(), error.to_string(), error.hint().to_owned())
    }
}
