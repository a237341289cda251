//! Obstacles to an erasure: litigation holds and retention periods.
//!
//! Held grains are found by their states, retained ones by the index, so that no other grain of a user is
//! read. Reads one view and decides; nothing here writes.

use std::collections::HashSet;

use grainstore_format::{ContentAddress, EpochMs, GrainRef, GrainType};
use grainstore_index::{Field, IndexLookup, Scope, Sequence, TimeOrder, TimeRange};

use super::erasure_rules;
use super::retention::{self, RetentionPeriod};
use crate::base::error::{Error, ErrorKind, Result};
use crate::disk::blob::with_fields;
use crate::rules::policy::{PolicyRule, PolicyTerms, RuleResult};
use crate::rules::preset::ActiveRules;
use crate::state::view::View;

/// Maximum number of held grains named in the message of a refusal; the verdict lists all.
const MAX_NAMED_HOLDS: usize = 8;

/// The circumstances of an erasure, apart from the grains themselves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ErasureRequest<'a> {
    pub(crate) now: EpochMs,
    pub(crate) reason: &'a str,
    /// True if a malformed retention policy is overridden.
    pub(crate) overrides: bool,
    /// The rules of the store.
    pub(crate) active_rules: &'a ActiveRules,
}

/// The outcome of the checks before an erasure.
#[derive(Debug, Default)]
pub(crate) struct ErasureVerdict {
    /// The grains under hold.
    pub(crate) holds: Vec<ContentAddress>,
    /// The rules that were applied; if it is refused, the last of them refused.
    pub(crate) rules: Vec<&'static str>,
    /// The first grain that prevents the erasure.
    pub(crate) refused_by: Option<ContentAddress>,
    pub(crate) refusal: Option<Error>,
}

/// The parts of a grain that can prevent its erasure.
struct ErasureTerms {
    retention: RetentionPeriod,
    terms: PolicyTerms,
}

impl ErasureTerms {
    fn from_grain(grain: &GrainRef<'_>) -> Self {
        Self { retention: RetentionPeriod::from_grain(grain), terms: PolicyTerms::of(grain) }
    }
}

impl ErasureVerdict {
    fn add_hold(&mut self, address: ContentAddress) {
        self.holds.push(address);
    }

    fn check_terms(
        &mut self,
        address: ContentAddress,
        duty: &ErasureTerms,
        asked: &ErasureRequest<'_>,
    ) {
        let ErasureTerms { retention, terms } = duty;
        if terms.is_held_since(asked.now) && !self.holds.contains(&address) {
            self.add_hold(address);
        }
        let overridden = PolicyRule::RetentionOverridden.info().name;
        if *retention == RetentionPeriod::Malformed
            && asked.overrides
            && !self.rules.contains(&overridden)
        {
            self.rules.push(overridden);
        }
        let Some((rule, why)) = retention.forbids((asked.now, asked.reason), asked.overrides)
        else {
            return;
        };
        if self.refusal.is_none() {
            self.refused_by = Some(address);
            self.refusal =
                Some(retention::retention_error(format!("{address} is not erased: {why}")));
            self.rules.push(rule.info().name);
        }
    }

    /// Checks the rules of the store for a grain, unless the erasure is refused already.
    fn check_rules(
        &mut self,
        (view, at): (&View, Sequence),
        asked: &ErasureRequest<'_>,
    ) -> Result<()> {
        if self.refusal.is_some() {
            return Ok(());
        }
        let refused = view.with_blob(at, |blob| {
            with_fields(blob, |grain| {
                let refused = erasure_rules::rule_refusal((view, at), grain, asked)?;
                Ok(refused.map(|refused| (ContentAddress::of(blob), refused)))
            })
        })?;
        if let Some((address, (rule, refusal))) = refused {
            self.refused_by = Some(address);
            self.refusal = Some(refusal);
            self.rules.push(rule);
        }
        Ok(())
    }

    /// What each of the rules came to, if the erasure is refused.
    pub(crate) fn results(&self) -> Vec<RuleResult> {
        let overridden = PolicyRule::RetentionOverridden.info().name;
        let result = |rule: &&str| match *rule == overridden {
            true => RuleResult::Pass,
            false => RuleResult::Fail,
        };
        match self.refusal {
            Some(_) => self.rules.iter().map(result).collect(),
            None => Vec::new(),
        }
    }

    /// Holds take precedence over all other refusals.
    fn finish(mut self) -> Self {
        if let Some(first) = self.holds.first() {
            let named: Vec<_> =
                self.holds.iter().take(MAX_NAMED_HOLDS).map(ToString::to_string).collect();
            let more = match self.holds.len().saturating_sub(MAX_NAMED_HOLDS) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let message = format!("under litigation hold: {}{more}", named.join(", "));
            let denied = Error::new(ErrorKind::InvalidationDenied, message);
            self.refused_by = Some(*first);
            self.refusal =
                Some(denied.with_hint("a hold is lifted by lift_hold, by those who may"));
            self.rules = vec![PolicyRule::Hold.info().name];
        }
        self
    }
}

/// Checks the erasure of all grains of a user.
///
/// # Errors
/// `ERR_INTEGRITY`, `ERR_IO`.
pub(crate) fn check_user_erasure(
    view: &View,
    user: &str,
    asked: &ErasureRequest<'_>,
) -> Result<ErasureVerdict> {
    let mut verdict = ErasureVerdict::default();
    for at in view.held_sequences()? {
        if !view.is_erased(at)? && read(view, at, |grain| belongs_to_user(grain, user))?.1 {
            verdict.add_hold(read(view, at, |_| ())?.0);
        }
    }
    for at in postings_of_user(view, Field::Retained, user)? {
        let (address, duty) = read(view, at, |grain| {
            belongs_to_user(grain, user).then(|| ErasureTerms::from_grain(grain))
        })?;
        if let Some(duty) = duty {
            verdict.check_terms(address, &duty, asked);
        }
    }
    if erasure_rules::has_erasure_rules(&asked.active_rules.rules()) {
        for at in user_sequences(view, user)? {
            verdict.check_rules((view, at), asked)?;
        }
    }
    Ok(verdict.finish())
}

/// Checks the erasure of the grain at a sequence.
///
/// # Errors
/// `ERR_INTEGRITY`, `ERR_IO`.
pub(crate) fn check_grain_erasure(
    view: &View,
    at: Sequence,
    asked: &ErasureRequest<'_>,
) -> Result<ErasureVerdict> {
    let mut verdict = ErasureVerdict::default();
    let (address, duty) = read(view, at, ErasureTerms::from_grain)?;
    if view.state_at(at)?.held {
        verdict.add_hold(address);
    }
    verdict.check_terms(address, &duty, asked);
    if erasure_rules::has_erasure_rules(&asked.active_rules.rules()) {
        verdict.check_rules((view, at), asked)?;
    }
    Ok(verdict.finish())
}

/// Returns the sequences of a user's grains that were not erased, newest first.
///
/// # Errors
/// `ERR_INTEGRITY`, `ERR_IO`.
pub(crate) fn user_sequences(view: &View, user: &str) -> Result<Vec<Sequence>> {
    postings_of_user(view, Field::User, user)
}

/// Returns the sequences of a user's consents that were not erased.
///
/// # Errors
/// `ERR_INTEGRITY`, `ERR_IO`.
pub(crate) fn consents_of(view: &View, user: &str) -> Result<Vec<Sequence>> {
    let theirs: HashSet<Sequence> = user_sequences(view, user)?.into_iter().collect();
    let shape = IndexLookup::Type(GrainType::Consent);
    let mut found = Vec::new();
    for posting in
        view.index().scan(&Scope::All, &shape, TimeRange::default(), TimeOrder::Oldest)?
    {
        found.push(posting?.sequence);
    }
    found.retain(|at| theirs.contains(at));
    Ok(found)
}

/// Returns `true` if a grain belongs to a user.
pub(crate) fn belongs_to_user(grain: &GrainRef<'_>, user: &str) -> bool {
    grain.text("user_id") == Some(user)
}

fn postings_of_user(view: &View, field: Field<'_>, user: &str) -> Result<Vec<Sequence>> {
    let shape = IndexLookup::Value(field, user.into());
    let mut found = Vec::new();
    for posting in
        view.index().scan(&Scope::All, &shape, TimeRange::default(), TimeOrder::Newest)?
    {
        let at = posting?.sequence;
        if !view.is_erased(at)? {
            found.push(at);
        }
    }
    Ok(found)
}

fn read<T>(
    view: &View,
    at: Sequence,
    read: impl FnOnce(&GrainRef<'_>) -> T,
) -> Result<(ContentAddress, T)> {
    view.with_blob(at, |blob| {
        with_fields(blob, |grain| Ok((ContentAddress::of(blob), read(grain))))
    })
}
