//! Verifies the marks of each grain (contradicted, verification status, held, and its roots) against the
//! audit log and the grain itself, independently of checksums.
//!
//! The marks that the chain states are collected in a few bits for each sequence.

use grainstore_format::{EpochMs, GrainState, VerificationStatus};
use grainstore_index::Sequence;

use super::VerifyContext;
use super::audit::AuditedFacts;
use super::problems::{ProblemCollector, ProblemKind, ProblemLocation};
use super::sequence_set::SequenceSet;
use crate::base::error::Result;
use crate::disk::blob::with_fields;
use crate::disk::layout;
use crate::rules::policy::{PolicyRule, PolicyTerms};
use crate::state::audit::AuditEntry;
use crate::state::truth::ok_if_readable;
use crate::write::plan::WritePlan;

const STATE: &str = "state";
const ROOTS: &str = "roots";

/// Marks of the grains in a log, as the audit log states them.
pub(super) struct AuditedMarks {
    contradicted: SequenceSet,
    /// Grains whose end a file stated.
    ended: SequenceSet,
    /// One bit for verified or retracted, one for contested or retracted.
    verified: SequenceSet,
    contested: SequenceSet,
    status_set: SequenceSet,
    /// Grains whose hold was set or lifted by a call, whatever their policy declares, and the last of these.
    hold_set: SequenceSet,
    held: SequenceSet,
    /// Grains that were stored with a signature that a policy asked for.
    signed_for: SequenceSet,
}

impl AuditedMarks {
    /// No marks, for a log of `places` entries.
    pub(super) fn with_length(places: u64) -> Self {
        let none = || SequenceSet::with_length(places);
        Self {
            contradicted: none(),
            ended: none(),
            verified: none(),
            contested: none(),
            status_set: none(),
            hold_set: none(),
            held: none(),
            signed_for: none(),
        }
    }

    /// Adds an entry about a mark of the grain at a sequence.
    pub(super) fn add_entry(&mut self, entry: &AuditEntry, at: Sequence) {
        match entry.operation.as_str() {
            "contradict" => self.contradicted.set(at, true),
            "end" => self.ended.set(at, true),
            "set_verification" => {
                self.status_set.set(at, true);
                let status = entry.status.unwrap_or_default();
                self.verified.set(at, has_status_bit(status, VerificationStatus::Verified));
                self.contested.set(at, has_status_bit(status, VerificationStatus::Contested));
            }
            "hold" | "lift_hold" => {
                self.hold_set.set(at, true);
                self.held.set(at, entry.operation == "hold");
            }
            _ => {}
        }
    }

    /// Adds a supersession by the grain at a sequence.
    pub(super) fn add_supersession(&mut self, entry: &AuditEntry, new: Sequence) {
        let mut rules = entry.rules.iter().filter_map(|name| PolicyRule::from_name(name));
        if rules.any(PolicyRule::rests_on_signature) {
            self.signed_for.set(new, true);
        }
    }

    /// Returns `true` if the chain states a mark of the grain.
    fn has_any(&self, at: Sequence) -> bool {
        [&self.contradicted, &self.ended, &self.status_set, &self.hold_set]
            .into_iter()
            .any(|places| places.has(at))
    }

    fn status(&self, at: Sequence) -> VerificationStatus {
        match (self.verified.has(at), self.contested.has(at)) {
            (false, false) => VerificationStatus::Unverified,
            (true, false) => VerificationStatus::Verified,
            (false, true) => VerificationStatus::Contested,
            (true, true) => VerificationStatus::Retracted,
        }
    }
}

/// Retracted sets both bits.
fn has_status_bit(status: VerificationStatus, one: VerificationStatus) -> bool {
    status == one || status == VerificationStatus::Retracted
}

/// Checks the grains without a state record against the chain: those it states marks of, and those of the
/// sample. The check of the state records covers the others.
pub(super) fn check_without_record(
    check: &VerifyContext<'_>,
    told: &AuditedFacts,
    places: u64,
    findings: &mut ProblemCollector,
) -> Result<()> {
    findings.run_part(ProblemKind::State, ProblemLocation::All(STATE), |findings| {
        let written = check.view.transaction().open_table(layout::STATE)?;
        for at in (1..=places).map(Sequence::new) {
            let is_asked = told.marks.has_any(at) || check.takes(at.get());
            if is_asked && written.get(at.get())?.is_none() && !check.is_erased(at)? {
                compare_state(check, told, at, &GrainState::default(), findings)?;
            }
        }
        Ok(())
    })
}

/// Compares a state with the chain and the grain. If a file stated the state, the chain has to agree only if
/// it states a later change.
pub(super) fn compare_state(
    check: &VerifyContext<'_>,
    told: &AuditedFacts,
    at: Sequence,
    state: &GrainState,
    findings: &mut ProblemCollector,
) -> Result<()> {
    let mut wrong = |fault, detail: String| {
        findings.add(fault, ProblemLocation::Row(STATE, at.get()), detail);
    };
    let AuditedFacts { marks, imported: stated, .. } = told;
    let stated = stated.has(at);
    let (said, is) = (marks.contradicted.has(at), state.contradicted);
    if said != is && (said || !stated) {
        wrong(ProblemKind::Unaudited, format!("contradicted: {is}, by the audit log {said}"));
    }
    let (said, is) = (marks.status(at), state.verification_status);
    if said != is && (marks.status_set.has(at) || !stated) {
        wrong(ProblemKind::Unaudited, format!("{}, by the audit log {}", is.name(), said.name()));
    }
    let ends = state.system_valid_to.is_some();
    if ends == state.is_current() && !stated && !(ends && marks.ended.has(at)) {
        let detail = "known without end and not current, or current and known to an end";
        wrong(ProblemKind::State, detail.to_owned());
    }
    let said = match (marks.hold_set.has(at), stated) {
        (true, _) => Some(marks.held.has(at)),
        (false, true) => None,
        (false, false) => is_held_from_start(check, at)?,
    };
    if let Some(said) = said.filter(|said| *said != state.held) {
        let detail = format!("held: {}, by its policy and the audit log {said}", state.held);
        wrong(ProblemKind::Unaudited, detail);
    }
    Ok(())
}

/// Returns `true` if a grain is under hold from the moment it is stored, `None` if it cannot be read.
fn is_held_from_start(check: &VerifyContext<'_>, at: Sequence) -> Result<Option<bool>> {
    let Some(blob) = check.readable(at)? else { return Ok(None) };
    // Damage was reported by the checks of the tables.
    ok_if_readable(with_fields(&blob, |grain| Ok(PolicyTerms::of(grain).holds)))
}

/// Checks the rows of roots of the grains in the sample against what protects them.
pub(super) fn check_roots(
    check: &VerifyContext<'_>,
    told: Option<&AuditedFacts>,
    places: u64,
    findings: &mut ProblemCollector,
) -> Result<()> {
    findings.run_part(ProblemKind::Roots, ProblemLocation::All(ROOTS), |findings| {
        let plan = WritePlan::new(check.view, EpochMs::default())?;
        for at in (1..=places).filter(|at| check.takes(*at)).map(Sequence::new) {
            if check.is_erased(at)? {
                continue;
            }
            let place = ProblemLocation::Row(ROOTS, at.get());
            for root in ok_if_readable(plan.missing_roots(at))?.unwrap_or_default() {
                let detail = match root.get() {
                    u64::MAX => "more ancestors protect it than a row holds".to_owned(),
                    root => format!("place {root} protects it, and is not among its roots"),
                };
                findings.add(ProblemKind::Roots, place, detail);
            }
            if let Some(told) = told
                && ok_if_readable(plan.is_released(at))?.unwrap_or_default()
                && !told.marks.signed_for.has(at)
            {
                let detail =
                    "no audit entry tells that it was released from the policies before it";
                findings.add(ProblemKind::Unaudited, place, detail);
            }
        }
        Ok(())
    })
}

#[cfg(test)]
#[path = "marks_tests.rs"]
mod tests;
