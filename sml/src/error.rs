//! The one error of the crate: a kind with its stable code, a message, and what to do.

use std::fmt;

/// What went wrong, one variant a stable code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// `CAL-E030`: a budget below what the empty envelope takes (`cal.md` section 5).
    Budget,
    /// `CAL-E082`: the caller's [`Watch`](crate::Watch) stopped it.
    Stopped,
}

impl ErrorKind {
    /// Every kind, for tables and checks of the documentation.
    pub const ALL: [Self; 2] = [Self::Budget, Self::Stopped];

    /// The stable code, such as `CAL-E030`.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Budget => "CAL-E030",
            Self::Stopped => "CAL-E082",
        }
    }

    /// What to do about it.
    #[must_use]
    pub const fn hint(self) -> &'static str {
        match self {
            Self::Budget => "raise the budget, or shorten the intent",
            Self::Stopped => "write the text again if it is still wanted",
        }
    }
}

/// An error of this crate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

impl Error {
    /// The budget does not hold the empty envelope, which takes this many `tokens`.
    pub(crate) fn budget(budget: usize, tokens: usize) -> Self {
        let message = format!(
            "a budget of {budget} tokens is below the empty envelope, which takes {tokens}"
        );
        Self { kind: ErrorKind::Budget, message }
    }

    /// The caller did not want it any longer.
    pub(crate) fn stopped() -> Self {
        Self { kind: ErrorKind::Stopped, message: "the text was stopped by its caller".to_owned() }
    }

    /// What went wrong.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The stable code, such as `CAL-E030`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.kind.code()
    }

    /// What to do about it.
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

impl std::error::Error for Error {}
