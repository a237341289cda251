//! Resolution of a grain's `processing_basis` into the facts that preset rules test (ruling 39). Knows no
//! rule.

use crate::base::error::Result;
use crate::rules::preset::ProcessingBasis;
use crate::state::consent::{ConsentLookup, parse_basis_address};

/// Resolves a basis in this state of the store. A consent counts as its last version says, in whatever
/// namespace that is.
///
/// # Errors
/// The errors of [`ConsentLookup::consent_of`].
pub(crate) fn resolve_basis(
    state: &dyn ConsentLookup,
    said: Option<&str>,
) -> Result<ProcessingBasis> {
    let Some(said) = said.filter(|said| !said.is_empty()) else {
        return Ok(ProcessingBasis::Missing);
    };
    let Some(address) = parse_basis_address(said) else {
        return Ok(ProcessingBasis::Word(said.to_owned()));
    };
    Ok(match state.consent_of(&address)? {
        None => ProcessingBasis::Unknown,
        Some(consent) if consent.withdrawn => ProcessingBasis::Withdrawn,
        Some(consent) => ProcessingBasis::Consent(consent.scope.clone()),
    })
}
