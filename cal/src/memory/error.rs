//! Errors of a memory, and their conversion to CAL errors.

use std::borrow::Cow;

use crate::cancel::StopReason;
use crate::codes::ErrorKind;
use crate::error::Error;

/// A refusal or failure of a memory. Its stable code reaches the caller of CAL unchanged.
///
/// ```
/// use grainstore_cal::{Error, MemoryError, StopReason};
///
/// let refused: Error = MemoryError::new("ERR_POLICY", "alice is on hold", "lift the hold").into();
/// assert_eq!((refused.code(), refused.suggestion()), ("ERR_POLICY", "lift the hold"));
/// let stopped: Error = MemoryError::stopped(StopReason::Timeout).into();
/// assert!(stopped.code().starts_with("CAL-E"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct MemoryError {
    code: Cow<'static, str>,
    message: String,
    hint: String,
    stop: Option<StopReason>,
}

impl MemoryError {
    /// Creates an error from its stable code (`ERR_...`), a message and a hint, which may be empty.
    #[must_use]
    pub fn new(
        code: impl Into<Cow<'static, str>>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self { code: code.into(), message: message.into(), hint: hint.into(), stop: None }
    }

    /// The error of a loop that was stopped.
    #[must_use]
    pub fn stopped(stop: StopReason) -> Self {
        let mut error = Self::new("ERR_TIMEOUT", "stopped before the end", "narrow the query");
        error.stop = Some(stop);
        error
    }

    /// Returns the stable code.
    #[must_use]
    pub fn code(&self) -> &str {
        &self.code
    }

    /// Returns the message.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the hint, which may be empty.
    #[must_use]
    pub fn hint(&self) -> &str {
        &self.hint
    }
}

impl From<StopReason> for MemoryError {
    fn from(stop: StopReason) -> Self {
        Self::stopped(stop)
    }
}

/// Keeps the code of the memory; a stop becomes the timeout or cancellation error of CAL.
impl From<MemoryError> for Error {
    fn from(error: MemoryError) -> Self {
        match error.stop {
            Some(stop) => stop.into(),
            None => Self::memory(error.code, error.message, error.hint),
        }
    }
}

impl From<StopReason> for Error {
    fn from(stop: StopReason) -> Self {
        match stop {
            StopReason::Timeout => Self::new(ErrorKind::Timeout, "the query took too long"),
            StopReason::Cancelled => {
                Self::new(ErrorKind::Cancelled, "the host cancelled the statement")
            }
        }
    }
}

/// Keeps the code of the format for a grain that the format refuses.
impl From<grainstore_format::Error> for Error {
    fn from(error: grainstore_format::Error) -> Self {
        Self::memory(error.code().into(), error.to_string(), error.hint().to_owned())
    }
}
