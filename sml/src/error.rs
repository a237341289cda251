//! The one error of the crate: a kind with its stable code, a message, and what to do.

use std::fmt;

/// What went wrong, one variant a stable code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// `CAL-E030`: a budget below what the empty envelope takes (`cal.md` section 5).
    Budget,
}

impl ErrorKind {
    /// Every kind, for tables and checks of the documentation.
    pub const ALL: [Self; 1] = [Self::Budget];

    /// The stable code, such as `CAL-E030`.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Budget => "CAL-E030",
        }
    }

    /// What to do about it.
    #[must_use]
    pub const fn hint(self) -> &'static str {
        match self {
            Self::Budget => "raise the budget, or shorten the intent",
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
