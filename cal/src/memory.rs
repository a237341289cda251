//! The seam to whatever holds the grains: what CAL may ask of a memory, and nothing else.
//!
//! There is no method here that erases, reads keys or changes policies, so no statement can reach
//! one (spec section 1). The engine implements [`Memory`] on its session.

use std::borrow::Cow;
use std::fmt;
use std::ops::ControlFlow;

use grainstore_format::{ContentAddress, Grain, GrainRef, GrainState};

use crate::cancel::{Cancel, Stop};
use crate::codes::ErrorKind;
use crate::error::Error;
use crate::query::Query;

/// A memory as one session sees it. Everything outside the session (namespace, policy, withdrawn
/// consent, erasure) is absent from every answer.
pub trait Memory {
    /// Who asks, and from where.
    fn scope(&self) -> &Scope;

    /// Hands every visible grain for which [`Query::matches`] holds to `visit`, in the order of
    /// [`Query::order`] (by time, ties by ascending address), until it answers `Break`. Never asked
    /// for a query that [`Query::is_impossible`].
    ///
    /// [`Query::limit`] says how many grains the visitor will take at most; it is a hint.
    ///
    /// # Errors
    /// The memory's own, and [`MemoryError::stopped`] once `cancel` says so.
    fn recall(
        &self,
        query: &Query,
        cancel: &Cancel,
        visit: &mut Visit<'_>,
    ) -> Result<Recalled, MemoryError>;

    /// How many visible grains match. Override where an index knows without looking at each.
    ///
    /// # Errors
    /// As [`Memory::recall`].
    fn count(&self, query: &Query, cancel: &Cancel) -> Result<Counted, MemoryError> {
        let mut matches = 0;
        let recalled = self.recall(query, cancel, &mut |_| {
            matches += 1;
            ControlFlow::Continue(())
        })?;
        Ok(Counted { matches, scanned: recalled.scanned })
    }

    /// The visible grain whose address starts with these digits.
    ///
    /// # Errors
    /// The memory's own.
    fn locate(&self, prefix: &HashPrefix) -> Result<Located, MemoryError>;

    /// Whether the session sees this grain; true exactly when [`Memory::get`] would answer.
    ///
    /// # Errors
    /// The memory's own.
    fn exists(&self, address: &ContentAddress) -> Result<bool, MemoryError>;

    /// A visible grain with its state, superseded ones included.
    ///
    /// # Errors
    /// The memory's own.
    fn get(&self, address: &ContentAddress) -> Result<Option<Hit>, MemoryError>;

    /// The visible versions of the chain `address` belongs to, newest first, at most `limit`;
    /// empty when the grain itself is not visible.
    ///
    /// # Errors
    /// The memory's own.
    fn history(&self, address: &ContentAddress, limit: usize) -> Result<Vec<Hit>, MemoryError>;

    /// Adds a new grain, complete but for nothing; `reason` goes into the audit entry.
    ///
    /// # Errors
    /// A refusal under the memory's own code.
    fn add(&self, grain: Grain, reason: &str) -> Result<ContentAddress, MemoryError>;

    /// Writes `grain`, whose `derived_from` names `old`, as the successor of `old`. The memory
    /// checks the invalidation policy of `old`; `reason` goes into the audit entry.
    ///
    /// # Errors
    /// A refusal under the memory's own code, such as `ERR_INVALIDATION_DENIED`.
    fn supersede(
        &self,
        old: &ContentAddress,
        grain: Grain,
        reason: &str,
    ) -> Result<ContentAddress, MemoryError>;
}

/// Takes the grains of a recall one by one; `Break` ends it.
pub type Visit<'v> = dyn FnMut(Candidate<'_>) -> ControlFlow<()> + 'v;

/// The session behind a memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scope {
    /// The namespace it is bound to, with all below it; none sees every namespace.
    pub namespace: Option<String>,
    /// The user it serves: MY, and the owner of what it adds.
    pub user_id: Option<String>,
    /// The DID it acts as: the author of what it adds.
    pub actor: Option<String>,
    /// The agent that speaks: the default observer.
    pub agent_id: Option<String>,
}

/// A matching grain while a recall runs.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'c> {
    /// Its address.
    pub address: ContentAddress,
    /// The grain, still encoded.
    pub grain: &'c GrainRef<'c>,
    /// What the index layer knows about it.
    pub state: &'c GrainState,
}

/// A grain with its address and state.
#[derive(Debug, Clone)]
pub struct Hit {
    /// Its address.
    pub address: ContentAddress,
    /// The grain.
    pub grain: Grain,
    /// What the index layer knows about it.
    pub state: GrainState,
}

/// What a recall did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recalled {
    /// Grains looked at, matching or not.
    pub scanned: u64,
    /// All matches, where the recall ran to its end or an index knows; none otherwise.
    pub total: Option<u64>,
}

/// What a count found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counted {
    /// Grains that match.
    pub matches: u64,
    /// Grains looked at, matching or not.
    pub scanned: u64,
}

/// The first 8 to 64 hex digits of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HashPrefix(String);

impl HashPrefix {
    /// The prefix of these digits, if they are 8 to 64 lowercase hex digits.
    #[must_use]
    pub fn new(digits: &str) -> Option<Self> {
        crate::lex::is_hash_digits(digits).then(|| Self(digits.to_owned()))
    }

    /// The digits.
    #[must_use]
    pub fn digits(&self) -> &str {
        &self.0
    }

    /// The address, when all its digits are there.
    #[must_use]
    pub fn whole(&self) -> Option<ContentAddress> {
        self.0.parse().ok()
    }
}

impl fmt::Display for HashPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.0)
    }
}

/// What a prefix led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Located {
    /// No visible grain.
    Nothing,
    /// Exactly one visible grain.
    One(ContentAddress),
    /// More than one visible grain.
    Several,
    /// A whole address of a grain in a namespace outside the session.
    Elsewhere,
}

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
