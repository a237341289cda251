//! What a consent is worth now: the basis that a grain names for being processed (OMS 6.1, 8.10).
//!
//! A grain whose `processing_basis` names a stored consent is judged by the last version of it, a renewal
//! or a withdrawal. What names no address, or one that no consent is stored under, is judged by nobody
//! here. Knows nothing of sessions.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use grainstore_format::{ContentAddress, EpochMs, GrainRef, GrainState, GrainType};
use grainstore_index::Sequence;

use crate::base::error::{Error, Result};
use crate::state::view::{Row, is_withdrawal, with_fields};

/// Versions of one consent that are followed at most.
const MAX_VERSIONS: usize = 1 << 20;

/// A consent as its last version says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Consent {
    /// The last version that is here.
    pub(crate) head: ContentAddress,
    /// Whether that takes it back.
    pub(crate) withdrawn: bool,
    /// What it is a consent to.
    pub(crate) scope: Vec<String>,
    /// From when to when it holds, both included; nothing for an open end.
    window: (Option<i64>, Option<i64>),
}

impl Consent {
    fn of(head: ContentAddress, grain: &GrainRef<'_>) -> Self {
        let window = (grain.int("valid_from"), grain.int("valid_to"));
        let scope = grain.get("scope").and_then(|scope| scope.as_array());
        let scope = scope.into_iter().flat_map(|scope| scope.iter());
        let scope = scope.filter_map(|one| one.as_str().map(str::to_owned)).collect();
        Self { head, withdrawn: is_withdrawal(grain), scope, window }
    }

    /// One that nobody can show any more.
    fn erased(head: ContentAddress) -> Self {
        Self { head, withdrawn: true, scope: Vec::new(), window: (None, None) }
    }

    /// Whether it is outside the time it was given for.
    pub(crate) fn is_lapsed(&self, now: EpochMs) -> bool {
        let (from, to) = self.window;
        from.is_some_and(|from| now.get() < from) || to.is_some_and(|to| now.get() > to)
    }
}

/// A state of the store that says what a consent is worth, and whose grains were erased.
pub(crate) trait Standing {
    /// The consent that a basis names; nothing where none is stored under it.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    fn consent_of(&self, basis: &ContentAddress) -> Result<Option<Arc<Consent>>>;

    /// Whether a grain of this user at a place of the log was erased with all of the user, and still lies
    /// there.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    fn has_erased_user(&self, user_id: Option<&str>, at: Sequence) -> Result<bool>;

    /// What has become of the grain at a place of the log.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    fn state_of(&self, at: Sequence) -> Result<GrainState>;
}

/// Where the versions of a consent are looked up.
pub(crate) trait Versions {
    /// The version with this address.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    fn version(&self, address: &ContentAddress) -> Result<Option<Row>>;

    /// Whether it was here and was erased.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    fn was_erased(&self, address: &ContentAddress) -> Result<bool>;
}

/// The consent a grain names as the basis of its processing. A consent rests on none: what was agreed,
/// and that it was taken back, must stay to be seen.
pub(crate) fn basis_of(grain: &GrainRef<'_>) -> Option<ContentAddress> {
    if grain.grain_type() == GrainType::Consent {
        return None;
    }
    address_of(grain.text("processing_basis")?)
}

/// Whether the consent a grain rests on was withdrawn.
///
/// # Errors
/// As [`Standing::consent_of`].
pub(crate) fn is_withdrawn(consents: &dyn Standing, grain: &GrainRef<'_>) -> Result<bool> {
    let Some(basis) = basis_of(grain) else { return Ok(false) };
    Ok(consents.consent_of(&basis)?.is_some_and(|consent| consent.withdrawn))
}

/// The address that a basis is, with or without `sha256:`; nothing for the name of a legal basis.
pub(crate) fn address_of(basis: &str) -> Option<ContentAddress> {
    basis.strip_prefix("sha256:").unwrap_or(basis).parse().ok()
}

/// The last version of what is stored under an address, if that is a consent. A successor that a file
/// has stated and not brought is none. One that was erased counts as a withdrawal: nobody can show any
/// more that there is consent.
///
/// # Errors
/// `ERR_INTEGRITY` for versions without an end, and as [`Versions::version`].
pub(crate) fn last_version(
    basis: ContentAddress,
    versions: &dyn Versions,
) -> Result<Option<Consent>> {
    let Some(mut row) = versions.version(&basis)? else {
        return Ok(versions.was_erased(&basis)?.then(|| Consent::erased(basis)));
    };
    let mut head = basis;
    for _ in 0..MAX_VERSIONS {
        let next = match row.state.superseded_by {
            Some(next) => match versions.version(&next)? {
                Some(row) => Some((next, row)),
                None if versions.was_erased(&next)? => return Ok(Some(Consent::erased(next))),
                None => None,
            },
            None => None,
        };
        match next {
            Some(version) => (head, row) = version,
            None => {
                return with_fields(&row.blob, |grain| {
                    let is_consent = grain.grain_type() == GrainType::Consent;
                    Ok(is_consent.then(|| Consent::of(head, grain)))
                });
            }
        }
    }
    Err(Error::integrity("the versions of a consent have no end"))
}

/// Consents that were looked up in one state of the store, which does not change.
#[derive(Debug, Default)]
pub(crate) struct Known(RwLock<HashMap<ContentAddress, Option<Arc<Consent>>>>);

impl Known {
    /// What is known of a basis, looked up if that was not done before.
    ///
    /// # Errors
    /// As `look_up`.
    pub(crate) fn or_else(
        &self,
        basis: &ContentAddress,
        look_up: impl FnOnce() -> Result<Option<Consent>>,
    ) -> Result<Option<Arc<Consent>>> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner).get(basis).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let found = look_up()?.map(Arc::new);
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(*basis, found.clone());
        Ok(found)
    }
}
