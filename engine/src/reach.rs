//! What a session sees: the one check that every read goes through (OMS 28.2).
//!
//! Whatever is shown to somebody, or decided by what they see, is asked of a [`Reach`] first: grains by
//! their address, candidates of queries, links, versions, neighbours, subjects of audit entries, claims
//! of a file. Knows nothing of queries, and nothing of what is done with a grain that is seen.

use grainstore_format::{GrainRef, SHARED};
use grainstore_index::{Scope, Sequence};

use crate::error::Result;
use crate::options::SessionOptions;
use crate::view::{View, with_fields};

/// Who looks, as far as it decides what they see.
#[derive(Debug, Clone, Default)]
pub(crate) struct Viewer {
    namespace: Option<String>,
}

/// What becomes of a grain that somebody asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reached {
    /// It is shown.
    Seen,
    /// It lies outside the session, which is told nothing of it.
    Outside,
    /// It was erased: nobody is shown it, and asking for it by address says so.
    Erased,
}

/// Somebody looking at a view.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reach<'r> {
    viewer: &'r Viewer,
    view: &'r View,
}

impl Viewer {
    /// Who works with these options.
    pub(crate) fn of(options: &SessionOptions) -> Self {
        Self { namespace: options.namespace.clone() }
    }

    /// The namespace it keeps to; nothing for all of them.
    pub(crate) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// Whether every grain lies within its reach.
    pub(crate) fn is_everyone(&self) -> bool {
        self.namespace.is_none()
    }

    /// Whether a partition lies in its namespace.
    pub(crate) fn reaches_partition(&self, partition: &str) -> bool {
        in_scope(partition, self.namespace())
    }

    /// Its namespaces, as the index asks for them.
    pub(crate) fn partitions(&self) -> Scope<'_> {
        match self.namespace() {
            None => Scope::All,
            Some("") => Scope::Subtree(SHARED),
            Some(own) => Scope::Subtree(own),
        }
    }
}

impl<'r> Reach<'r> {
    /// This viewer, looking at a view.
    pub(crate) fn new(viewer: &'r Viewer, view: &'r View) -> Self {
        Self { viewer, view }
    }

    /// What becomes of the grain at a place of the log.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn of(&self, at: Sequence, grain: &GrainRef<'_>) -> Result<Reached> {
        if self.view.has_erased_user(grain.text("user_id"), at)? {
            return Ok(Reached::Erased);
        }
        // namespace
        if !self.viewer.reaches_partition(grain.partition()) {
            return Ok(Reached::Outside);
        }
        Ok(Reached::Seen)
    }

    /// Whether the grain at a place of the log is shown.
    ///
    /// # Errors
    /// As [`Reach::of`].
    pub(crate) fn sees(&self, at: Sequence, grain: &GrainRef<'_>) -> Result<bool> {
        Ok(self.of(at, grain)? == Reached::Seen)
    }

    /// As [`Reach::of`], for a grain that is still packed.
    ///
    /// # Errors
    /// As [`Reach::of`].
    pub(crate) fn of_blob(&self, at: Sequence, blob: &[u8]) -> Result<Reached> {
        with_fields(blob, |grain| self.of(at, grain))
    }

    /// As [`Reach::sees`], for a grain that is still packed.
    ///
    /// # Errors
    /// As [`Reach::of`].
    pub(crate) fn sees_blob(&self, at: Sequence, blob: &[u8]) -> Result<bool> {
        Ok(self.of_blob(at, blob)? == Reached::Seen)
    }
}

/// Whether a partition lies in a namespace: the namespace itself or one below it. This says where
/// something lies, and not who sees it.
pub(crate) fn in_scope(partition: &str, namespace: Option<&str>) -> bool {
    let Some(namespace) = namespace else { return true };
    match named(partition).strip_prefix(named(namespace)) {
        Some(rest) => rest.is_empty() || rest.starts_with(':'),
        None => false,
    }
}

/// The partition a namespace names: none is the shared one (OMS 28.2).
fn named(namespace: &str) -> &str {
    if namespace.is_empty() { SHARED } else { namespace }
}
