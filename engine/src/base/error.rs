//! The one error type of the engine: a kind with its stable code, a message and a hint.
//!
//! Codes of the format pass through unchanged; the store's own are listed in [`ErrorKind::STORE_KINDS`].

use std::fmt;

use grainstore_format as format;

/// The kind of an [`Error`], one variant for each stable code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A code of OMS section 19: the grain or blob itself is at fault.
    Format(format::ErrorKind),
    /// `ERR_NOT_FOUND`: no such grain, or none visible to this session; or no such store.
    NotFound,
    /// `ERR_CONFLICT`: the grain is superseded already, or the store exists already.
    Conflict,
    /// `ERR_SUPERSEDE_REQUIRED`: a put that would replace a stored grain in disguise (OMS 17.2).
    SupersedeRequired,
    /// `ERR_INVALIDATION_DENIED`: the grain's invalidation policy refuses (OMS 19.3, 23).
    InvalidationDenied,
    /// `ERR_SIGNATURE`: the signature around a grain is invalid (OMS 9.3).
    Signature,
    /// `ERR_EVIDENCE_REQUIRED`: closing a protected goal without the evidence it requires (OMS 19.3, 23.5).
    EvidenceRequired,
    /// `ERR_DEPENDENCY`: an active goal depends on a goal that is not satisfied (OMS 8.7).
    Dependency,
    /// `ERR_POLICY`: a rule of the store about what may be written or read refuses (OMS 12.5.3).
    Policy,
    /// `ERR_ERASED`: the grain, or the user it is about, was erased and cannot be restored (OMS 8.10).
    Erased,
    /// `ERR_ACCESS`: outside the session's namespace or rights.
    Access,
    /// `ERR_WITHDRAWN`: the consent the grain rests on was withdrawn, or does not apply now (OMS 8.10).
    Withdrawn,
    /// `ERR_LIMIT`: over a limit of size or count.
    Limit,
    /// `ERR_CURSOR`: not a cursor of this query on this store.
    Cursor,
    /// `ERR_BUSY`: the store is open in another process, or by another handle.
    Busy,
    /// `ERR_IO`: the storage failed, or the store is closed.
    Io,
    /// `ERR_STORE_VERSION`: not a store, or one of an unsupported format version.
    StoreVersion,
    /// `ERR_TIMEOUT`: the deadline passed.
    Timeout,
    /// `ERR_DIMENSION`: a vector whose length differs from that of the vectors it is compared with.
    Dimension,
    /// `ERR_EMBEDDER`: the embedder failed, or gave an unusable answer.
    Embedder,
    /// `ERR_TOKEN`: a capability token that is invalid, expired, used up, or does not cover the statement.
    Token,
    /// `ERR_DISABLED`: the operator switched CAL off.
    Disabled,
    /// `ERR_READ_ONLY`: a write to a store that was opened read-only.
    ReadOnly,
    /// `ERR_NOT_LEADER`: a write to a node that follows another.
    NotLeader,
    /// `ERR_FENCED`: another node leads by now, and this write was not made.
    Fenced,
    /// `ERR_IN_DOUBT`: the journal did not say whether it took this write.
    InDoubt,
    /// `ERR_DIVERGED`: this copy of a store has what its journal has not.
    Diverged,
}

impl ErrorKind {
    /// The store's own kinds, for tables and for the check of docs/errors.md.
    pub const STORE_KINDS: [Self; 26] = [
        Self::NotFound,
        Self::Conflict,
        Self::SupersedeRequired,
        Self::InvalidationDenied,
        Self::Signature,
        Self::EvidenceRequired,
        Self::Dependency,
        Self::Policy,
        Self::Erased,
        Self::Access,
        Self::Withdrawn,
        Self::Limit,
        Self::Cursor,
        Self::Busy,
        Self::Io,
        Self::StoreVersion,
        Self::Timeout,
        Self::Dimension,
        Self::Embedder,
        Self::Token,
        Self::Disabled,
        Self::ReadOnly,
        Self::NotLeader,
        Self::Fenced,
        Self::InDoubt,
        Self::Diverged,
    ];

    /// The stable code, e.g. `ERR_CONFLICT`.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Format(kind) => kind.code(),
            Self::NotFound => "ERR_NOT_FOUND",
            Self::Conflict => "ERR_CONFLICT",
            Self::SupersedeRequired => "ERR_SUPERSEDE_REQUIRED",
            Self::InvalidationDenied => "ERR_INVALIDATION_DENIED",
            Self::Signature => "ERR_SIGNATURE",
            Self::EvidenceRequired => "ERR_EVIDENCE_REQUIRED",
            Self::Dependency => "ERR_DEPENDENCY",
            Self::Policy => "ERR_POLICY",
            Self::Erased => "ERR_ERASED",
            Self::Access => "ERR_ACCESS",
            Self::Withdrawn => "ERR_WITHDRAWN",
            Self::Limit => "ERR_LIMIT",
            Self::Cursor => "ERR_CURSOR",
            Self::Busy => "ERR_BUSY",
            Self::Io => "ERR_IO",
            Self::StoreVersion => "ERR_STORE_VERSION",
            Self::Timeout => "ERR_TIMEOUT",
            Self::Dimension => "ERR_DIMENSION",
            Self::Embedder => "ERR_EMBEDDER",
            Self::Token => "ERR_TOKEN",
            Self::Disabled => "ERR_DISABLED",
            Self::ReadOnly => "ERR_READ_ONLY",
            Self::NotLeader => "ERR_NOT_LEADER",
            Self::Fenced => "ERR_FENCED",
            Self::InDoubt => "ERR_IN_DOUBT",
            Self::Diverged => "ERR_DIVERGED",
        }
    }

    /// Returns what a user can do about it, in one sentence.
    #[must_use]
    pub const fn hint(self) -> &'static str {
        match self {
            Self::Format(kind) => kind.hint(),
            Self::NotFound => "check the address or path, and the namespace of the session",
            Self::Conflict => "read the history and supersede its head",
            Self::SupersedeRequired => "use supersede, which checks the invalidation policy",
            Self::InvalidationDenied => {
                "the grain's invalidation_policy says who may replace it and how"
            }
            Self::Signature => "ask the signer for the envelope as it was signed",
            Self::EvidenceRequired => {
                "name stored grains in satisfaction_evidence, as many as evidence_required says"
            }
            Self::Dependency => {
                "satisfy the goals in depends_on first, or store this one as suspended"
            }
            Self::Policy => "the message says which rule; store what it asks for",
            Self::Erased => {
                "nothing can bring it back; write what was learned since as a new grain"
            }
            Self::Access => "open a session whose namespace contains the grain's",
            Self::Withdrawn => {
                "ask for consent anew: a grant in the place of the withdrawal restores it"
            }
            Self::Limit => "ask for less at a time",
            Self::Cursor => "ask the query again from its start, without a cursor",
            Self::Busy => "close the other process, or wait longer (wait_ms)",
            Self::Io => "check the disk; reopening the store recovers every acknowledged write",
            Self::StoreVersion => "open it with the version that wrote it, or create a new store",
            Self::Timeout => "narrow the query, or allow more time",
            Self::Dimension => {
                "embed with the model whose vectors are stored, or name another space"
            }
            Self::Embedder => "run the embedder by hand on one line; the memory itself is stored",
            Self::Token => "prepare the statement again, and execute it once within five minutes",
            Self::Disabled => "ask the operator of the store to switch CAL on",
            Self::ReadOnly => "open the store to write, without read_only",
            Self::NotLeader => "write to the node that leads the shard",
            Self::Fenced => "write again, to the node that leads the shard now",
            Self::InDoubt => {
                "read whether it is there once the journal is reached; writing a grain again adds no second one"
            }
            Self::Diverged => {
                "compare the copies before one is discarded: a journal restored from a backup lacks what came later"
            }
        }
    }
}

/// An error of the store.
///
/// A program decides by the [`kind`](Self::kind), and shows people the message and the [`hint`](Self::hint).
///
/// ```
/// use grainstore::prelude::*;
///
/// # let dir = tempfile::tempdir()?;
/// match Store::open(dir.path(), &OpenOptions::new()) {
///     Err(error) if error.kind() == ErrorKind::NotFound => {
///         assert_eq!(error.code(), "ERR_NOT_FOUND");
///         assert!(!error.hint().is_empty());
///     }
///     other => return Err(format!("not what was expected: {other:?}").into()),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    batch_index: Option<usize>,
    hint: Option<&'static str>,
    /// True if the damage is in the truth rather than in something derived from it.
    is_truth_damage: bool,
    /// True if the error is about the input, not about stored data.
    is_input_error: bool,
    source: Option<std::sync::Arc<dyn std::error::Error + Send + Sync>>,
}

/// Results of this crate, with its [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            batch_index: None,
            hint: None,
            is_truth_damage: false,
            is_input_error: false,
            source: None,
        }
    }

    /// `ERR_EMBEDDER`: what an [`Embedder`](crate::embed::Embedder) of a host answers that cannot embed.
    ///
    /// ```
    /// # use grainstore::Error;
    /// assert_eq!(Error::embedder("the model is not loaded").code(), "ERR_EMBEDDER");
    /// ```
    #[must_use]
    pub fn embedder(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Embedder, message)
    }

    /// `ERR_TIMEOUT`: what an [`Embedder`](crate::embed::Embedder) of a host answers that gave up waiting. Searches
    /// do not ask it for a while then.
    ///
    /// ```
    /// # use grainstore::Error;
    /// assert_eq!(Error::timeout("no answer within 10 s").code(), "ERR_TIMEOUT");
    /// ```
    #[must_use]
    pub fn timeout(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Timeout, message)
    }

    /// Stored bytes are damaged: `ERR_INTEGRITY`.
    pub(crate) fn integrity(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Format(format::ErrorKind::Integrity), message)
    }

    /// A row of the truth is damaged: `ERR_INTEGRITY` that a rebuild of the index cannot mend.
    pub(crate) fn truth_damaged(message: impl Into<String>) -> Self {
        Self { is_truth_damage: true, ..Self::integrity(message) }
    }

    /// The entry of the log was erased: `ERR_ERASED`.
    pub(crate) fn log_entry_erased(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Erased, message)
    }

    /// Returns `true` if the data was erased.
    pub(crate) fn is_erased(&self) -> bool {
        self.kind == ErrorKind::Erased
    }

    /// Returns `true` if a row of the truth is damaged.
    pub(crate) fn is_truth_damage(&self) -> bool {
        self.is_truth_damage
    }

    /// Marks the error as one about an input file or grain.
    pub(crate) fn about_input(self) -> Self {
        Self { is_input_error: true, ..self }
    }

    /// Returns `true` if the error is about a file that was given to
    /// [`Session::import`](crate::Session::import), so that `ERR_INTEGRITY` says nothing about the store.
    #[must_use]
    pub fn is_input_error(&self) -> bool {
        self.is_input_error
    }

    /// Returns `true` if stored bytes are damaged.
    pub(crate) fn is_integrity(&self) -> bool {
        self.kind == ErrorKind::Format(format::ErrorKind::Integrity)
    }

    /// Returns `true` if the damaged bytes are derived, and can be rebuilt.
    pub(crate) fn is_index_damage(&self) -> bool {
        self.is_integrity() && !self.is_truth_damage
    }

    fn with_source(
        kind: ErrorKind,
        message: String,
        source: impl std::error::Error + Send + Sync + 'static,
    ) -> Self {
        Self {
            kind,
            message,
            batch_index: None,
            hint: None,
            is_truth_damage: false,
            is_input_error: false,
            source: Some(std::sync::Arc::new(source)),
        }
    }

    /// Adds the position of the grain in its batch.
    pub(crate) fn with_batch_index(mut self, at: usize) -> Self {
        self.batch_index = Some(at);
        self
    }

    /// Position of the refused grain in its batch ([`Session::put_batch`](crate::Session::put_batch)), from
    /// 0.
    #[must_use]
    pub fn batch_index(&self) -> Option<usize> {
        self.batch_index
    }

    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The stable code, e.g. `ERR_INVALIDATION_DENIED`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.kind.code()
    }

    /// Returns what to do about it: a hint of its own, else that of its kind.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        self.hint.unwrap_or(self.kind.hint())
    }

    /// Replaces the hint of the kind by a more specific one.
    pub(crate) fn with_hint(mut self, hint: &'static str) -> Self {
        self.hint = Some(hint);
        self
    }

    /// Gives a hint to an error that has only that of its kind.
    pub(crate) fn or_hint(mut self, hint: &'static str) -> Self {
        self.hint.get_or_insert(hint);
        self
    }

    /// Appends to the message.
    pub(crate) fn with_suffix(mut self, more: &str) -> Self {
        self.message.push_str(more);
        self
    }

    /// Puts the path of the store before the message.
    pub(crate) fn at_path(mut self, path: &std::path::Path) -> Self {
        self.message = format!("{}: {}", path.display(), self.message);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source.as_ref() as _)
    }
}

impl From<format::Error> for Error {
    fn from(error: format::Error) -> Self {
        let kind = match error.kind() {
            format::ErrorKind::Io => ErrorKind::Io,
            kind => ErrorKind::Format(kind),
        };
        let hint = error.hint();
        Self::with_source(kind, error.to_string(), error).with_hint(hint)
    }
}

impl From<grainstore_index::Error> for Error {
    fn from(error: grainstore_index::Error) -> Self {
        let kind = match error.kind() {
            grainstore_index::ErrorKind::Integrity => {
                ErrorKind::Format(format::ErrorKind::Integrity)
            }
            grainstore_index::ErrorKind::Limit => ErrorKind::Limit,
            grainstore_index::ErrorKind::Key => ErrorKind::Format(format::ErrorKind::Key),
            grainstore_index::ErrorKind::Dimension => ErrorKind::Dimension,
            grainstore_index::ErrorKind::Vector => ErrorKind::Format(format::ErrorKind::Schema),
            grainstore_index::ErrorKind::Stopped => ErrorKind::Timeout,
            _ => ErrorKind::Io,
        };
        let hint = error.hint();
        Self::with_source(kind, error.to_string(), error).with_hint(hint)
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::with_source(ErrorKind::Io, format!("I/O: {error}"), error)
    }
}

macro_rules! storage {
    ($($source:ty),+ $(,)?) => {$(
        impl From<$source> for Error {
            fn from(error: $source) -> Self {
                Self::from(redb::Error::from(error))
            }
        }
    )+};
}

storage!(
    redb::StorageError,
    redb::TableError,
    redb::TransactionError,
    redb::CommitError,
    redb::CompactionError,
    redb::DatabaseError,
    redb::SetDurabilityError,
);

impl From<redb::Error> for Error {
    fn from(error: redb::Error) -> Self {
        let kind = match &error {
            redb::Error::DatabaseAlreadyOpen => ErrorKind::Busy,
            redb::Error::UpgradeRequired(_) => ErrorKind::StoreVersion,
            redb::Error::TableTypeMismatch { .. } => ErrorKind::StoreVersion,
            redb::Error::TableDoesNotExist(_)
            | redb::Error::TypeDefinitionChanged { .. }
            | redb::Error::Corrupted(_) => ErrorKind::Format(format::ErrorKind::Integrity),
            redb::Error::Io(error) if is_damage(error) => {
                ErrorKind::Format(format::ErrorKind::Integrity)
            }
            _ => ErrorKind::Io,
        };
        Self::with_source(kind, format!("storage: {error}"), error)
    }
}

/// Returns `true` for a file that is no database or that is truncated: damage, not a failing disk.
fn is_damage(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::InvalidData | std::io::ErrorKind::UnexpectedEof)
}

/// Runs a read of stored bytes and turns a panic into an error. redb may panic on damaged pages; that must
/// not end the host process.
///
/// # Errors
/// Those of `run`; `ERR_INTEGRITY` if it panicked.
pub(crate) fn catch_storage_panic<T>(run: impl FnOnce() -> Result<T>) -> Result<T> {
    GUARDS.set(GUARDS.get().saturating_add(1));
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
    GUARDS.set(GUARDS.get().saturating_sub(1));
    done.unwrap_or_else(|_| Err(Error::integrity("the storage failed on damaged data")))
}

/// Whether a panic of this thread becomes an error (`ERR_INTEGRITY`): for the panic hook of a host, which need
/// not tell of it as of a failure of the program.
///
/// ```
/// std::panic::set_hook(Box::new(|panic| {
///     if !grainstore::is_guarded() {
///         eprintln!("{panic}");
///     }
/// }));
/// assert!(!grainstore::is_guarded(), "this thread is in no call of the store");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn is_guarded() -> bool {
    GUARDS.get() > 0
}

thread_local! {
    /// Guards around what this thread does.
    static GUARDS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guard_is_told_until_it_is_left_also_by_a_panic() {
        let failed: Result<()> = catch_storage_panic(|| {
            catch_storage_panic(|| Ok(()))?;
            assert!(is_guarded());
            std::panic::resume_unwind(Box::new("a damaged page"))
        });
        assert_eq!(failed.map_err(|error| error.code()), Err("ERR_INTEGRITY"));
        assert!(!is_guarded());
    }
}
