//! What the `processing_basis` of a grain is, asked of whoever knows the grains. A consent counts as its
//! chain stands now, by its head (ruling 39 of the project's reading).

use grainstore_format::{ContentAddress, Grain, GrainRef, GrainType};

use super::facts::Basis;
use crate::error::{Error, ErrorKind, Result};

/// Versions of a consent that are followed to its head.
const MAX_RENEWALS: usize = 100_000;

/// A grain that a basis names, as far as it matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    is_consent: bool,
    withdraws: bool,
    scope: Vec<String>,
    successor: Option<ContentAddress>,
}

impl Named {
    /// As [`Named::of`], of a grain that is open.
    pub(crate) fn of_grain(grain: &Grain, successor: Option<ContentAddress>) -> Self {
        Self {
            is_consent: grain.grain_type() == GrainType::Consent,
            withdraws: grain.flag("is_withdrawal") == Some(true),
            scope: grain.texts("scope").map(str::to_owned).collect(),
            successor,
        }
    }

    /// The same grain, with what took its place.
    pub(crate) fn succeeded_by(&mut self, successor: Option<ContentAddress>) {
        self.successor = successor;
    }

    pub(crate) fn of(grain: &GrainRef<'_>, successor: Option<ContentAddress>) -> Self {
        let scope = grain.get("scope").and_then(|scope| scope.as_array());
        let scope = scope.into_iter().flat_map(|scope| scope.iter());
        Self {
            is_consent: grain.grain_type() == GrainType::Consent,
            withdraws: crate::view::is_withdrawal(grain),
            scope: scope.filter_map(|one| one.as_str().map(str::to_owned)).collect(),
            successor,
        }
    }
}

/// What a basis is. `find` gives the grain of an address.
///
/// # Errors
/// Those of `find`; `ERR_LIMIT` for a consent that was renewed too often.
pub(crate) fn basis_of(
    said: Option<&str>,
    find: &mut dyn FnMut(&ContentAddress) -> Result<Option<Named>>,
) -> Result<Basis> {
    let Some(said) = said.filter(|said| !said.is_empty()) else { return Ok(Basis::Missing) };
    let Some(address) = Basis::address(said) else { return Ok(Basis::Word(said.to_owned())) };
    let Some(mut head) = find(&address)? else { return Ok(Basis::Unknown) };
    if !head.is_consent || head.withdraws {
        return Ok(Basis::Other);
    }
    for _ in 0..MAX_RENEWALS {
        let Some(next) = head.successor else { return Ok(Basis::Consent(head.scope)) };
        match find(&next)? {
            Some(next) if next.withdraws => return Ok(Basis::Withdrawn),
            Some(next) => head = next,
            // A file may state a successor that it does not bring.
            None => return Ok(Basis::Consent(head.scope)),
        }
    }
    let message = format!("the consent {address} was renewed more than {MAX_RENEWALS} times");
    Err(Error::new(ErrorKind::Limit, message)
        .with_hint("name the last version of the consent in processing_basis"))
}
