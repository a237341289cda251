//! What a session sees: the one check that every read goes through (OMS 28.2, 12.4).
//!
//! Whatever is shown to somebody, or decided by what they see, is asked of a [`Reach`] first: grains by
//! their address, candidates of queries, links, versions, neighbours, subjects of audit entries, claims
//! of a file. Knows nothing of queries, and nothing of what is done with a grain that is seen.

use grainstore_format::{
    ContentAddress, EpochMs, Grain, GrainRef, GrainState, SHARED, VerificationStatus,
};
use grainstore_index::{Scope, Sequence};

use crate::base::error::{Error, ErrorKind, Result};
use crate::handle::options::SessionOptions;
use crate::operate::erase::erased;
use crate::rules::preset::{Deed, Facts, Refusal, Regime};
use crate::state::basis::basis_in;
use crate::state::consent::{Standing, basis_of};
use crate::state::view::with_fields;

/// Who looks, as far as it decides what they see.
#[derive(Debug, Clone, Default)]
pub(crate) struct Viewer {
    namespace: Option<String>,
    user_id: Option<String>,
}

/// What becomes of a grain that somebody asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reached {
    /// It is shown.
    Seen,
    /// It lies outside the session, which is told nothing of it.
    Outside,
    /// The consent it rests on was withdrawn.
    Withdrawn,
    /// The consent it rests on does not hold now: its time is over, or has not come.
    Lapsed,
    /// A rule of the store keeps it.
    Ruled(Refusal),
    /// It was erased: nobody is shown it, and asking for it by address says so.
    Erased,
}

/// Somebody looking at a state of the store, at one moment.
#[derive(Clone, Copy)]
pub(crate) struct Reach<'r> {
    viewer: &'r Viewer,
    state: &'r dyn Standing,
    now: EpochMs,
    /// The rules of the store, and what the viewer looks for; nothing where they are not asked.
    rules: Option<(&'r Regime, &'r [String])>,
}

impl Viewer {
    /// Who works with these options.
    pub(crate) fn of(options: &SessionOptions) -> Self {
        Self { namespace: options.namespace.clone(), user_id: options.user_id.clone() }
    }

    /// The namespace it keeps to; nothing for all of them.
    pub(crate) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// Whether no grain lies outside its reach: it has no namespace, and no user.
    pub(crate) fn is_everyone(&self) -> bool {
        self.namespace.is_none() && self.user_id.is_none()
    }

    /// Whether it works for one user.
    pub(crate) fn has_user(&self) -> bool {
        self.user_id.is_some()
    }

    /// Whether a partition lies in its namespace.
    pub(crate) fn reaches_partition(&self, partition: &str) -> bool {
        in_scope(partition, self.namespace())
    }

    /// Whether it sees grains of this user: those of its own, and those of nobody.
    fn reaches_user(&self, of: Option<&str>) -> bool {
        match (self.user_id.as_deref(), of.filter(|user| !user.is_empty())) {
            (Some(own), Some(of)) => own == of,
            (None, _) | (_, None) => true,
        }
    }

    /// Refuses a grain that it may not write.
    ///
    /// # Errors
    /// `ERR_ACCESS` for one of another namespace or user.
    pub(crate) fn check_writes(&self, grain: &Grain) -> Result<()> {
        if !self.reaches_partition(grain.partition()) {
            let own = self.namespace().unwrap_or_default();
            let named = match grain.text("namespace") {
                None | Some("") => "a grain without a namespace belongs to \"shared\", which",
                Some(_) => "its namespace",
            };
            let message = format!("{named} is outside this session's {own:?}");
            return Err(Error::new(ErrorKind::Access, message).with_hint(
                "give the grain the session's namespace, or open a session that has it",
            ));
        }
        if !self.reaches_user(grain.text("user_id")) {
            let own = self.user_id.as_deref().unwrap_or_default();
            let message = format!("its user_id is not {own:?}, this session's user");
            return Err(Error::new(ErrorKind::Access, message)
                .with_hint("write what is another user's in a session of that user"));
        }
        Ok(())
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
    /// This viewer, looking now at a state of the store.
    pub(crate) fn new(viewer: &'r Viewer, state: &'r dyn Standing, now: EpochMs) -> Self {
        Self { viewer, state, now, rules: None }
    }

    /// The same, for these purposes in a store with these rules.
    pub(crate) fn under(self, regime: &'r Regime, purposes: &'r [String]) -> Self {
        Self { rules: Some((regime, purposes)), ..self }
    }

    /// The moment it is.
    pub(crate) fn now(&self) -> EpochMs {
        self.now
    }

    /// Whether rules of the store may keep a grain from being read.
    pub(crate) fn asks_rules(&self) -> bool {
        self.rules.is_some_and(|(regime, _)| regime.asks_reads())
    }

    /// What becomes of the grain at a place of the log.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn of(&self, at: Sequence, grain: &GrainRef<'_>) -> Result<Reached> {
        if self.state.has_erased_user(grain.text("user_id"), at)? {
            return Ok(Reached::Erased);
        }
        // namespace
        if self.viewer.namespace.is_some() && !self.viewer.reaches_partition(grain.partition()) {
            return Ok(Reached::Outside);
        }
        // user
        if self.viewer.has_user() && !self.viewer.reaches_user(grain.text("user_id")) {
            return Ok(Reached::Outside);
        }
        // basis of processing
        if let Some(basis) = basis_of(grain) {
            let resting = self.resting_on(&basis)?;
            if resting != Reached::Seen {
                return Ok(resting);
            }
        }
        // rules of the store
        Ok(self.refusal_of(at, grain)?.map_or(Reached::Seen, Reached::Ruled))
    }

    /// The rule of the store that keeps a grain from being read.
    fn refusal_of(&self, at: Sequence, grain: &GrainRef<'_>) -> Result<Option<Refusal>> {
        let Some((regime, purposes)) = self.rules.filter(|_| self.asks_rules()) else {
            return Ok(None);
        };
        let rules = regime.rules();
        let basis = basis_in(self.state, grain.text("processing_basis"))?;
        let GrainState { held, verification_status, .. } = self.state.state_of(at)?;
        let verified = verification_status == VerificationStatus::Verified;
        let encrypted = regime.encrypts(grain);
        let facts = Facts { grain, basis: &basis, purposes, held, verified, encrypted };
        Ok(rules.decide(Deed::Read, &facts).refusal)
    }

    /// What becomes of a grain that rests on this basis.
    ///
    /// # Errors
    /// As [`Reach::of`].
    pub(crate) fn resting_on(&self, basis: &ContentAddress) -> Result<Reached> {
        Ok(match self.state.consent_of(basis)? {
            Some(consent) if consent.withdrawn => Reached::Withdrawn,
            Some(consent) if consent.is_lapsed(self.now) => Reached::Lapsed,
            _ => Reached::Seen,
        })
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

impl Reached {
    /// Why a grain that was asked for by its address is not shown; nothing found there is outside.
    pub(crate) fn refusal(self, address: &ContentAddress) -> Error {
        if self == Self::Erased {
            return erased(address);
        }
        let what = format!("grain {address}");
        self.refused(&what).unwrap_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("no {what} in this session's reach"))
        })
    }

    /// The error of what rests on a consent that does not hold; nothing for what does not.
    pub(crate) fn refused(self, what: &str) -> Option<Error> {
        match self {
            Self::Withdrawn => {
                let message = format!("the consent that {what} rests on was withdrawn");
                Some(Error::new(ErrorKind::Withdrawn, message))
            }
            Self::Lapsed => {
                let message = format!("the consent that {what} rests on does not hold now");
                Some(Error::new(ErrorKind::Withdrawn, message).with_hint(
                    "have the consent renewed: supersede it by one whose time includes now",
                ))
            }
            Self::Ruled(refusal) => Some(Error::from(refusal)),
            Self::Seen | Self::Outside | Self::Erased => None,
        }
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
