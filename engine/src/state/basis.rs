//! What the `processing_basis` of a grain is, as the rules of the store ask about it (ruling 39 of the
//! project's reading). Knows no rule.

use crate::base::error::Result;
use crate::rules::preset::Basis;
use crate::state::consent::{Standing, address_of};

/// What a basis is by what this state of the store says of consents: those count as their last version
/// says, wherever it lies.
///
/// # Errors
/// As [`Standing::consent_of`].
pub(crate) fn basis_in(state: &dyn Standing, said: Option<&str>) -> Result<Basis> {
    let Some(said) = said.filter(|said| !said.is_empty()) else { return Ok(Basis::Missing) };
    let Some(address) = address_of(said) else { return Ok(Basis::Word(said.to_owned())) };
    Ok(match state.consent_of(&address)? {
        None => Basis::Unknown,
        Some(consent) if consent.withdrawn => Basis::Withdrawn,
        Some(consent) => Basis::Consent(consent.scope.clone()),
    })
}
