//! Cycles of supersessions, which only an imported file can state: a grain names the grains it replaces by
//! their hashes, so at least one step of every cycle is a claim that its newer grain does not support.
//!
//! Each grain is visited once, whatever the file says.

use std::collections::HashMap;

use grainstore_format::{ContentAddress, GrainType};
use grainstore_index::Sequence;

use super::conflict::{ConflictSubject, Conflicts};
use super::roots::names_parent;
use super::supersede::supersession_record;
use super::{Principal, WritePlan};
use crate::base::error::Result;
use crate::disk::blob::is_withdrawal;

/// The support of a grain for the claim that it replaced another, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ClaimSupport {
    /// It does not name the other grain.
    Unnamed,
    /// It withdraws a consent, perhaps that of an older version.
    AsWithdrawal,
    /// It names the other grain.
    ByName,
}

impl WritePlan<'_> {
    /// Breaks every cycle that is reached from one of these grains, at the step with the weakest support. The
    /// replaced grain of that step stays current and is marked for review.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`; `ERR_IO`.
    pub(crate) fn break_cycles(
        &mut self,
        from: &[Sequence],
        author: &Principal,
        conflicts: &mut Conflicts,
    ) -> Result<()> {
        let mut seen: HashMap<Sequence, usize> = HashMap::new();
        for (walk, start) in from.iter().enumerate() {
            let mut at = *start;
            loop {
                if let Some(earlier) = seen.insert(at, walk) {
                    if earlier == walk {
                        self.break_cycle(at, author, conflicts)?;
                    }
                    seen.insert(at, earlier);
                    break;
                }
                let Some(next) = self.successor_of(at)? else { break };
                at = next;
            }
        }
        Ok(())
    }

    /// Breaks the cycle that this grain is in.
    fn break_cycle(
        &mut self,
        start: Sequence,
        author: &Principal,
        conflicts: &mut Conflicts,
    ) -> Result<()> {
        let mut weakest: Option<((bool, ClaimSupport), Sequence)> = None;
        let mut at = start;
        while let Some(next) = self.successor_of(at)? {
            let founded = (self.is_consent_of_before(at)?, self.claim_support(at, next)?);
            if weakest.is_none_or(|(least, _)| founded < least) {
                weakest = Some((founded, at));
            }
            at = next;
            if at == start {
                break;
            }
        }
        let Some((_, at)) = weakest else { return Ok(()) };
        let mut state = self.state(at)?;
        let Some(by) = state.superseded_by.take() else { return Ok(()) };
        if state.is_current() {
            state.system_valid_to = None;
        }
        state.needs_review = true;
        self.states.insert(at, state);
        let address = self.with_grain(at, |address, _| Ok(address))?;
        let why = format!("its supersession by {by} would run in a circle");
        conflicts.record(address, ConflictSubject::Supersession, why);
        self.audit.push(supersession_record(&address, &by, author, Vec::new(), true));
        Ok(())
    }

    /// Returns `true` if the successor of a consent is what it was before the import: no file undoes that.
    fn is_consent_of_before(&self, at: Sequence) -> Result<bool> {
        let was_so = at <= self.view.last_sequence()?
            && self.view.state_at(at)?.superseded_by == self.state(at)?.superseded_by;
        Ok(was_so
            && self.with_grain(at, |_, grain| Ok(grain.grain_type() == GrainType::Consent))?)
    }

    /// Returns the sequence of the grain that superseded this one.
    fn successor_of(&self, at: Sequence) -> Result<Option<Sequence>> {
        match self.state(at)?.superseded_by {
            Some(by) => self.locate(&by),
            None => Ok(None),
        }
    }

    fn claim_support(&self, old: Sequence, new: Sequence) -> Result<ClaimSupport> {
        let digits = self.with_grain(old, |address: ContentAddress, _| Ok(address.to_string()))?;
        self.with_grain(new, |_, grain| {
            let is_named = names_parent(grain, &digits)
                || grain.text("prior_consent").map(ContentAddress::digits) == Some(&digits);
            Ok(match (is_named, is_withdrawal(grain)) {
                (true, _) => ClaimSupport::ByName,
                (false, true) => ClaimSupport::AsWithdrawal,
                (false, false) => ClaimSupport::Unnamed,
            })
        })
    }
}
