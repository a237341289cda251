//! Grains that end with the consent they rest on (OMS 23.2 `consent_cascade`; rulings 20, 39 and 40 of the
//! project's reading): which of them are due, and their erasure.

use grainstore_format::{ContentAddress, EpochMs, GrainType};
use grainstore_index::{Field, Order, Scope, Sequence, Shape, TimeRange};
use serde::Serialize;

use super::Session;
use crate::error::{Error, Result, guarded};
use crate::policy::{Rule, Terms};
use crate::view::{View, is_withdrawal, with_fields};
use crate::writer::{Order as Erase, Target};

/// Grains that are erased in one transaction.
const AT_ONCE: usize = 1000;
/// Milliseconds of a day.
const DAY_MS: i64 = 86_400_000;
/// What the audit log is told.
const REASON: &str = "the consent it rests on was withdrawn";

/// What a sweep came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Swept {
    /// Grains that were erased.
    pub erased: u64,
    /// Grains that are due and stay: under hold, or to be kept.
    pub skipped: u64,
}

impl Session {
    /// Erases what is due: grains of mode `consent_cascade` whose `processing_basis` names a consent that
    /// was withdrawn long enough ago
    /// ([`OpenOptions::cascade_after_days`](crate::OpenOptions::cascade_after_days)). What is held or has
    /// to be kept stays, and so does consent itself.
    ///
    /// # Errors
    /// `ERR_ACCESS` unless it is the operator who asks, without a namespace and a user; `ERR_IO`,
    /// `ERR_INTEGRITY`.
    pub fn sweep(&self) -> Result<Swept> {
        let author = self.author_to_erase(None, REASON)?;
        let view = self.view()?;
        let grace = i64::from(self.store().inner().cascade_after_days()).saturating_mul(DAY_MS);
        let by = EpochMs::new(self.now().get().saturating_sub(grace));
        let due = guarded(|| due(&view, by, self.now()))?;
        drop(view);
        let mut swept = Swept::default();
        for chunk in due.chunks(AT_ONCE) {
            let order = Erase {
                target: Target::Due(chunk.to_vec()),
                author: author.clone(),
                overrides: false,
                rule: Some(Rule::ConsentCascade.row().name),
            };
            let done = self.store().alone(move |writer| writer.erase(&order))?;
            let erased = done.map_or(0, |done| done.grains);
            swept.erased = swept.erased.saturating_add(erased);
            let kept = (chunk.len() as u64).saturating_sub(erased);
            swept.skipped = swept.skipped.saturating_add(kept);
        }
        Ok(swept)
    }
}

/// The grains that end with consents that were withdrawn by this time.
fn due(view: &View, by: EpochMs, now: EpochMs) -> Result<Vec<ContentAddress>> {
    let mut found = Vec::new();
    let consents = Shape::Type(GrainType::Consent);
    for posting in view.index().scan(&Scope::All, &consents, TimeRange::default(), Order::Oldest)? {
        let at = posting?.sequence;
        if view.is_erased(at)? {
            continue;
        }
        if let Some(withdrawn) = withdrawn_at(view, at)?
            && withdrawn <= by
        {
            let grant = view.with_blob(at, |blob| Ok(ContentAddress::of(blob)))?;
            found.extend(dependents(view, &grant, now)?);
        }
    }
    Ok(found)
}

/// When the grant at a place, or the last version it was renewed as, was withdrawn; nothing where that
/// holds still.
fn withdrawn_at(view: &View, grant: Sequence) -> Result<Option<EpochMs>> {
    let (mut at, most) = (grant, view.last_sequence()?.get());
    for _ in 0..=most {
        let state = view.state_at(at)?;
        let Some(by) = state.superseded_by else { return Ok(None) };
        // A withdrawal that was erased since has ended the grant all the same, and nobody knows that it
        // was one.
        let Some(next) = view.sequence_of(&by)? else { return Ok(None) };
        if view.with_blob(next, |blob| with_fields(blob, |grain| Ok(is_withdrawal(grain))))? {
            return Ok(state.system_valid_to);
        }
        at = next;
    }
    Err(Error::integrity("a supersession chain runs in a circle"))
}

/// The grains that rest on this consent, and end with it.
fn dependents(view: &View, grant: &ContentAddress, now: EpochMs) -> Result<Vec<ContentAddress>> {
    let digits = grant.to_string();
    let shape = Shape::Value(Field::Basis, digits.as_str().into());
    let mut found = Vec::new();
    for posting in view.index().scan(&Scope::All, &shape, TimeRange::default(), Order::Oldest)? {
        let at = posting?.sequence;
        if view.is_erased(at)? {
            continue;
        }
        let ends = view.with_blob(at, |blob| {
            with_fields(blob, |grain| {
                let basis = grain.text("processing_basis").unwrap_or_default();
                let rests = basis.strip_prefix("sha256:").unwrap_or(basis) == digits;
                let cascades = Terms::of(grain).ends_with_consent(now);
                let ends = rests && cascades && grain.grain_type() != GrainType::Consent;
                Ok(ends.then(|| ContentAddress::of(blob)))
            })
        })?;
        found.extend(ends);
    }
    Ok(found)
}
