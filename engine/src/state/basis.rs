//! Resolution of a grain's `processing_basis` into the facts that preset rules test (ruling 39). Knows no
//! rule.

use crate::base::error::Result;
use crate::rules::preset::Basis;
use crate::state::consent::{Standing, address_of};

/// Resolves a basis in this state of the store. A consent counts as its last version says, in whatever
/// namespace that is.
///
/// # Errors
/// The errors of [`ConsentLookup::consent_of`].
pub(crate) fn basis_in(state: &dyn Standing, said: Option<&str>) -> Result<Basis> {
    let Some(said) = said.filter(|said| !said.is_empty()) else { return Ok(Basis::Missing) };
    let Some(address) = address_of(said) else { return Ok(Basis::Word(said.to_owned())) };
    Ok(match state.consent_of(&address)? {
        None => Basis::Unknown,
        Some(consent) if consent.withdrawn => Basis::Withdrawn,
        Some(consent) => Basis::Consent(consent.scope.clone()),
    })
}
