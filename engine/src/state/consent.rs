//! Validity of consents: the basis that a grain names for being processed (OMS 6.1, 8.10).
//!
//! A grain whose `processing_basis` names a stored consent is judged by the last version of it, a renewal or
//! a withdrawal. A basis that is no address, or the address of no stored consent, restricts nothing here.
//! Knows nothing of sessions.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use grainstore_format::{ContentAddress, EpochMs, GrainRef, GrainState, GrainType};
use grainstore_index::Sequence;

use crate::base::error::{Error, Result};
use crate::disk::blob::{is_withdrawal, with_fields};
use crate::state::view::GrainRow;

/// Maximum number of versions of one consent that are followed.
const MAX_VERSIONS: usize = 1 << 20;

/// A consent according to its last version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Consent {
    /// Address of the last stored version.
    pub(crate) head: ContentAddress,
    /// True if that version is a withdrawal.
    pub(crate) withdrawn: bool,
    /// The scopes that are consented to.
    pub(crate) scope: Vec<String>,
    /// Start and end of validity, both inclusive; `None` is open.
    window: (Option<i64>, Option<i64>),
}

impl Consent {
    fn from_grain(head: ContentAddress, grain: &GrainRef<'_>) -> Self {
        let window = (grain.int("valid_from"), grain.int("valid_to"));
        let scope = grain.get("scope").and_then(|scope| scope.as_array());
        let scope = scope.into_iter().flat_map(|scope| scope.iter());
        let scope = scope.filter_map(|one| one.as_str().map(str::to_owned)).collect();
        Self { head, withdrawn: is_withdrawal(grain), scope, window }
    }

    /// An erased consent: it can no longer be proven, so it counts as withdrawn.
    fn erased(head: ContentAddress) -> Self {
        Self { head, withdrawn: true, scope: Vec::new(), window: (None, None) }
    }

    /// Returns `true` if `now` is outside the validity of the consent.
    pub(crate) fn is_lapsed(&self, now: EpochMs) -> bool {
        let (from, to) = self.window;
        from.is_some_and(|from| now.get() < from) || to.is_some_and(|to| now.get() > to)
    }
}

/// A state of the store in which consents, erased users and grain states are looked up.
pub(crate) trait ConsentLookup {
    /// Returns the consent that a basis names; `None` if no consent is stored there.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    fn consent_of(&self, basis: &ContentAddress) -> Result<Option<Arc<Consent>>>;

    /// Returns `true` if the grain at this sequence was erased together with its user and is still in the log.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    fn has_erased_user(&self, grain: &GrainRef<'_>, at: Sequence) -> Result<bool>;

    /// Returns the index-layer state of the grain at a sequence.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    fn state_of(&self, at: Sequence) -> Result<GrainState>;
}

/// Lookup of the versions of a consent.
pub(crate) trait ConsentVersions {
    /// Returns the version with this address.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    fn version(&self, address: &ContentAddress) -> Result<Option<GrainRow>>;

    /// Returns `true` if a grain with this address was stored and erased.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    fn was_erased(&self, address: &ContentAddress) -> Result<bool>;
}

/// Returns the consent that a grain names as its processing basis. A consent itself rests on none: what was
/// agreed, and its withdrawal, must stay visible.
pub(crate) fn consent_basis(grain: &GrainRef<'_>) -> Option<ContentAddress> {
    if grain.grain_type() == GrainType::Consent {
        return None;
    }
    parse_basis_address(grain.text("processing_basis")?)
}

/// Returns `true` if the consent a grain rests on was withdrawn.
///
/// # Errors
/// The errors of [`ConsentLookup::consent_of`].
pub(crate) fn is_withdrawn(consents: &dyn ConsentLookup, grain: &GrainRef<'_>) -> Result<bool> {
    let Some(basis) = consent_basis(grain) else { return Ok(false) };
    Ok(consents.consent_of(&basis)?.is_some_and(|consent| consent.withdrawn))
}

/// Parses a basis as an address, with or without `sha256:`; `None` for the name of a legal basis.
pub(crate) fn parse_basis_address(basis: &str) -> Option<ContentAddress> {
    ContentAddress::digits(basis).parse().ok()
}

/// Returns the last version of the consent stored under an address; `None` if it is no consent. A successor
/// that an imported file states but does not contain is ignored. An erased version counts as a withdrawal:
/// the consent can no longer be proven.
///
/// # Errors
/// `ERR_INTEGRITY` for a chain of more than [`MAX_VERSIONS`] versions, and the errors of
/// [`ConsentVersions::version`].
pub(crate) fn last_version(
    basis: ContentAddress,
    versions: &dyn ConsentVersions,
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
                    Ok(is_consent.then(|| Consent::from_grain(head, grain)))
                });
            }
        }
    }
    Err(Error::integrity("the versions of a consent have no end"))
}

/// A cache of consent lookups in one immutable state of the store.
#[derive(Debug, Default)]
pub(crate) struct ConsentCache(RwLock<HashMap<ContentAddress, Option<Arc<Consent>>>>);

impl ConsentCache {
    /// Returns the cached consent of a basis, and calls `look_up` if there is none.
    ///
    /// # Errors
    /// The errors of `look_up`.
    pub(crate) fn get_or_load(
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
