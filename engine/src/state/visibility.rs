//! Visibility of grains to a session: the one check that every read goes through (OMS 28.2, 12.4).
//!
//! Whatever is shown to a caller, or decided by what the caller sees, is checked by a [`Visibility`] first:
//! grains by their address, candidates of queries, links, versions, neighbours, subjects of audit entries,
//! claims of an imported file. Knows nothing of queries, or of what is done with a visible grain.

use grainstore_cal::is_within;
use grainstore_format::{
    ContentAddress, EpochMs, Grain, GrainRef, GrainState, SHARED_PARTITION, VerificationStatus,
};
use grainstore_index::{Scope, Sequence};

use crate::base::error::{Error, ErrorKind, Result};
use crate::disk::blob::with_fields;
use crate::rules::preset::{Action, ActiveRules, RuleFacts, RuleRefusal};
use crate::state::basis::resolve_basis;
use crate::state::consent::{ConsentLookup, consent_basis};
use crate::state::erasure::erased_error;
use crate::state::session_options::SessionOptions;

/// The namespace and the user of a session, which limit what it sees.
#[derive(Debug, Clone, Default)]
pub(crate) struct Viewer {
    namespace: Option<String>,
    user_id: Option<String>,
}

/// The outcome of a visibility check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VisibilityOutcome {
    /// The grain is shown.
    Seen,
    /// The grain lies outside the session, which must not learn that it exists.
    Outside,
    /// The consent it rests on was withdrawn.
    Withdrawn,
    /// The consent it rests on is not valid now: it has ended, or not begun.
    Lapsed,
    /// A rule of the store refuses the read.
    Ruled(RuleRefusal),
    /// The grain was erased: it is never shown, but a read by address reports the erasure.
    Erased,
}

/// The visibility check for one viewer, on one state of the store, at one time.
#[derive(Clone, Copy)]
pub(crate) struct Visibility<'r> {
    viewer: &'r Viewer,
    state: &'r dyn ConsentLookup,
    now: EpochMs,
    /// The rules of the store and the purposes of the session; `None` if rules are not checked.
    rules: Option<(&'r ActiveRules, &'r [String])>,
}

impl Viewer {
    /// The viewer of a session with these options.
    pub(crate) fn from_options(options: &SessionOptions) -> Self {
        Self { namespace: options.namespace.clone(), user_id: options.user_id.clone() }
    }

    /// The namespace it is limited to; `None` for all of them.
    pub(crate) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// The user it is limited to; `None` for all of them.
    pub(crate) fn user_id(&self) -> Option<&str> {
        self.user_id.as_deref()
    }

    /// Returns `true` if the viewer is limited to no namespace and no user.
    pub(crate) fn is_unrestricted(&self) -> bool {
        self.namespace.is_none() && self.user_id.is_none()
    }

    /// Returns `true` if the viewer is limited to a user.
    pub(crate) fn has_user(&self) -> bool {
        self.user_id.is_some()
    }

    /// Returns `true` if a partition lies in the viewer's namespace.
    pub(crate) fn includes_partition(&self, partition: &str) -> bool {
        is_in_namespace(partition, self.namespace())
    }

    /// Returns `true` if grains of this user are visible: the viewer's own, and those without a user.
    fn includes_user(&self, of: Option<&str>) -> bool {
        match (self.user_id.as_deref(), of.filter(|user| !user.is_empty())) {
            (Some(own), Some(of)) => own == of,
            (None, _) | (_, None) => true,
        }
    }

    /// Refuses a grain that the session may not write.
    ///
    /// # Errors
    /// `ERR_ACCESS` for one of another namespace or user.
    pub(crate) fn check_writes(&self, grain: &Grain) -> Result<()> {
        if !self.includes_partition(grain.partition()) {
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
        if !self.includes_user(grain.text("user_id")) {
            let own = self.user_id.as_deref().unwrap_or_default();
            let message = format!("its user_id is not {own:?}, this session's user");
            return Err(Error::new(ErrorKind::Access, message)
                .with_hint("write what is another user's in a session of that user"));
        }
        Ok(())
    }

    /// Refuses a namespace that does not lie in the viewer's.
    ///
    /// # Errors
    /// `ERR_ACCESS`.
    pub(crate) fn check_namespace(&self, namespace: &str) -> Result<()> {
        if self.includes_partition(namespace) {
            return Ok(());
        }
        let message = format!("namespace {namespace:?} is outside this session's");
        Err(Error::new(ErrorKind::Access, message).with_hint("open a session that contains it"))
    }

    /// Refuses an identity that reaches further than this one.
    ///
    /// # Errors
    /// `ERR_ACCESS` for one of another namespace or user.
    pub(crate) fn check_part(&self, part: &SessionOptions) -> Result<()> {
        if let Some(namespace) = &part.namespace {
            self.check_namespace(namespace)?;
        }
        if let Some(user) = &part.user_id
            && self.user_id.as_ref().is_some_and(|own| own != user)
        {
            let message = format!("user {user:?} is not this session's");
            return Err(
                Error::new(ErrorKind::Access, message).with_hint("open a session of that user")
            );
        }
        Ok(())
    }

    /// The viewer's namespaces, as a scope of the index.
    pub(crate) fn index_scope(&self) -> Scope<'_> {
        match self.namespace() {
            None => Scope::All,
            Some("") => Scope::Subtree(SHARED_PARTITION),
            Some(own) => Scope::Subtree(own),
        }
    }
}

impl<'r> Visibility<'r> {
    /// The check for this viewer at `now` on a state of the store.
    pub(crate) fn new(viewer: &'r Viewer, state: &'r dyn ConsentLookup, now: EpochMs) -> Self {
        Self { viewer, state, now, rules: None }
    }

    /// Adds the rules of the store and the purposes of the session.
    pub(crate) fn with_rules(self, active_rules: &'r ActiveRules, purposes: &'r [String]) -> Self {
        Self { rules: Some((active_rules, purposes)), ..self }
    }

    /// The time of the check.
    pub(crate) fn now(&self) -> EpochMs {
        self.now
    }

    /// Returns `true` if rules of the store can refuse reads.
    pub(crate) fn has_read_rules(&self) -> bool {
        self.rules.is_some_and(|(active_rules, _)| active_rules.restricts_reads())
    }

    /// Checks the grain at a sequence of the log.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn check(&self, at: Sequence, grain: &GrainRef<'_>) -> Result<VisibilityOutcome> {
        if self.state.has_erased_user(grain, at)? {
            return Ok(VisibilityOutcome::Erased);
        }
        if self.viewer.namespace.is_some() && !self.viewer.includes_partition(grain.partition()) {
            return Ok(VisibilityOutcome::Outside);
        }
        if self.viewer.has_user() && !self.viewer.includes_user(grain.text("user_id")) {
            return Ok(VisibilityOutcome::Outside);
        }
        if let Some(basis) = consent_basis(grain) {
            let resting = self.check_consent(&basis)?;
            if resting != VisibilityOutcome::Seen {
                return Ok(resting);
            }
        }
        Ok(self.read_refusal(at, grain)?.map_or(VisibilityOutcome::Seen, VisibilityOutcome::Ruled))
    }

    /// Returns the refusal of a rule of the store, if one refuses to read the grain.
    fn read_refusal(&self, at: Sequence, grain: &GrainRef<'_>) -> Result<Option<RuleRefusal>> {
        let Some((active_rules, purposes)) = self.rules.filter(|_| self.has_read_rules()) else {
            return Ok(None);
        };
        let rules = active_rules.rules();
        let basis = resolve_basis(self.state, grain.text("processing_basis"))?;
        let GrainState { held, verification_status, .. } = self.state.state_of(at)?;
        let verified = verification_status == VerificationStatus::Verified;
        let encrypted = active_rules.encrypts(grain);
        let facts = RuleFacts { grain, basis: &basis, purposes, held, verified, encrypted };
        Ok(rules.decide(Action::Read, &facts).refusal)
    }

    /// Checks the consent that a grain names as its basis.
    ///
    /// # Errors
    /// The errors of [`Visibility::check`].
    pub(crate) fn check_consent(&self, basis: &ContentAddress) -> Result<VisibilityOutcome> {
        Ok(match self.state.consent_of(basis)? {
            Some(consent) if consent.withdrawn => VisibilityOutcome::Withdrawn,
            Some(consent) if consent.is_lapsed(self.now) => VisibilityOutcome::Lapsed,
            _ => VisibilityOutcome::Seen,
        })
    }

    /// Returns `true` if the grain at a sequence of the log is visible.
    ///
    /// # Errors
    /// The errors of [`Visibility::check`].
    pub(crate) fn is_visible(&self, at: Sequence, grain: &GrainRef<'_>) -> Result<bool> {
        Ok(self.check(at, grain)? == VisibilityOutcome::Seen)
    }

    /// Like [`Visibility::check`], for an encoded grain.
    ///
    /// # Errors
    /// The errors of [`Visibility::check`].
    pub(crate) fn check_blob(&self, at: Sequence, blob: &[u8]) -> Result<VisibilityOutcome> {
        with_fields(blob, |grain| self.check(at, grain))
    }

    /// Like [`Visibility::is_visible`], for an encoded grain.
    ///
    /// # Errors
    /// The errors of [`Visibility::check`].
    pub(crate) fn is_blob_visible(&self, at: Sequence, blob: &[u8]) -> Result<bool> {
        Ok(self.check_blob(at, blob)? == VisibilityOutcome::Seen)
    }
}

impl VisibilityOutcome {
    /// The error for a grain that was requested by its address. A grain out of scope is reported as not
    /// found.
    pub(crate) fn refusal(self, address: &ContentAddress) -> Error {
        if self == Self::Erased {
            return erased_error(address);
        }
        let what = format!("grain {address}");
        self.refused(&what).unwrap_or_else(|| Error::new(ErrorKind::NotFound, format!("no {what}")))
    }

    /// The error for a withdrawn or lapsed consent or a refusing rule; `None` for other outcomes.
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

/// Returns `true` if a partition is a namespace or lies below it. This is about location, not visibility.
pub(crate) fn is_in_namespace(partition: &str, namespace: Option<&str>) -> bool {
    let Some(namespace) = namespace else { return true };
    is_within(partition_name(partition), partition_name(namespace))
}

/// The partition that a namespace names: an empty one names the shared partition (OMS 28.2).
fn partition_name(namespace: &str) -> &str {
    if namespace.is_empty() { SHARED_PARTITION } else { namespace }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_contains_itself_and_what_is_below_it() {
        for (namespace, outer, expected) in [
            ("a", None, true),
            ("a", Some("a"), true),
            ("a:b", Some("a"), true),
            ("ab", Some("a"), false),
            ("a", Some("a:b"), false),
            ("", Some("shared"), true),
            ("shared:a", Some(""), true),
        ] {
            assert_eq!(is_in_namespace(namespace, outer), expected, "{namespace:?} in {outer:?}");
        }
    }
}
