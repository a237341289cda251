//! The rules of the store on the erasure of a grain: the minimum retention of all grains, and the rules for
//! erasures.

use grainstore_format::{EpochMs, GrainRef, VerificationStatus};
use grainstore_index::Sequence;

use crate::base::error::{Error, ErrorKind, Result};
use crate::rules::policy::PolicyRule;
use crate::rules::preset::{Action, RuleFacts, RuleSet};
use crate::state::basis::resolve_basis;
use crate::state::view::View;

use super::decide::ErasureRequest;
use super::retention::created_at;

/// Returns `true` if rules of the store must be checked for each grain.
pub(super) fn has_erasure_rules(rules: &RuleSet) -> bool {
    rules.settings.minimum_retention_years.value > 0 || rules.has_rules_on(Action::Erase)
}

/// Returns the rule that refuses the erasure of a grain, and the error.
///
/// # Errors
/// `ERR_INTEGRITY`, `ERR_IO`.
pub(super) fn rule_refusal(
    (view, at): (&View, Sequence),
    grain: &GrainRef<'_>,
    asked: &ErasureRequest<'_>,
) -> Result<Option<(&'static str, Error)>> {
    let rules = asked.active_rules.rules();
    if let Some(why) = minimum_retention_error(grain, &rules, asked.now) {
        return Ok(Some((PolicyRule::Retained.info().name, why)));
    }
    if !rules.has_rules_on(Action::Erase) {
        return Ok(None);
    }
    let basis = resolve_basis(view, grain.text("processing_basis"))?;
    let state = view.state_at(at)?;
    let facts = RuleFacts {
        grain,
        basis: &basis,
        purposes: &[],
        held: state.held,
        verified: state.verification_status == VerificationStatus::Verified,
        encrypted: asked.active_rules.encrypts(grain),
    };
    let refusal = rules.decide(Action::Erase, &facts).refusal;
    Ok(refusal.map(|refusal| (refusal.id, Error::from(refusal))))
}

/// Returns the refusal of an erasure within the minimum retention of the store.
fn minimum_retention_error(grain: &GrainRef<'_>, rules: &RuleSet, now: EpochMs) -> Option<Error> {
    let least = &rules.settings.minimum_retention_years;
    if least.value == 0 {
        return None;
    }
    let until = created_at(grain).plus_years(u64::from(least.value));
    if until.is_some_and(|until| until <= now) {
        return None;
    }
    let until = until.map_or_else(|| "for good".to_owned(), |until| format!("until {until}"));
    let message = format!("everything here has to be kept, this {until} ({})", least.article);
    Some(Error::new(ErrorKind::Policy, message).with_hint(
        "wait until the date; grain policy set --allow-weaker changes minimum_retention_years",
    ))
}
