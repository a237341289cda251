//! Whether the standing of each grain (contradicted, verified, held, and by which roots protected) is
//! what the audit log and the grain itself make of it, whatever checksums say.
//!
//! What the chain tells is folded into a few bits a place while it is walked.

use grainstore_format::{EpochMs, GrainState, VerificationStatus};
use grainstore_index::Sequence;

use super::Check;
use super::audit::Told;
use super::findings::{Fault, Findings, Place};
use super::places::Places;
use crate::base::error::Result;
use crate::disk::keys;
use crate::rules::policy::{Rule, Terms};
use crate::state::audit::AuditEntry;
use crate::state::truth::whole;
use crate::state::view::with_fields;
use crate::write::plan::Plan;

const STATE: &str = "state";
const ROOTS: &str = "roots";

/// What the audit log tells of the standing of the grains in a log.
pub(super) struct Marks {
    contradicted: Places,
    /// Those that a file stated the end of.
    ended: Places,
    /// Those whose status is verified or retracted, and contested or retracted.
    verified: Places,
    contested: Places,
    status_told: Places,
    /// Those whose hold is decided by a call, whatever their policy was born with, and how.
    hold_told: Places,
    held: Places,
    /// Those that were written with a signature that a policy asked for.
    signed_for: Places,
}

impl Marks {
    /// Of a log of so many places, before the first entry.
    pub(super) fn none_of(places: u64) -> Self {
        let none = || Places::none_of(places);
        Self {
            contradicted: none(),
            ended: none(),
            verified: none(),
            contested: none(),
            status_told: none(),
            hold_told: none(),
            held: none(),
            signed_for: none(),
        }
    }

    /// Takes in an entry about a mark that was set on the grain at a place.
    pub(super) fn note(&mut self, entry: &AuditEntry, at: Sequence) {
        match entry.operation.as_str() {
            "contradict" => self.contradicted.set(at, true),
            "end" => self.ended.set(at, true),
            "set_verification" => {
                self.status_told.set(at, true);
                let status = entry.status.unwrap_or_default();
                self.verified.set(at, is_either(status, VerificationStatus::Verified));
                self.contested.set(at, is_either(status, VerificationStatus::Contested));
            }
            "hold" | "lift_hold" => {
                self.hold_told.set(at, true);
                self.held.set(at, entry.operation == "hold");
            }
            _ => {}
        }
    }

    /// Takes in a supersession by the grain at a place.
    pub(super) fn note_successor(&mut self, entry: &AuditEntry, new: Sequence) {
        let mut rules = entry.rules.iter().filter_map(|name| Rule::named(name));
        if rules.any(Rule::is_signed) {
            self.signed_for.set(new, true);
        }
    }

    /// Whether the chain tells anything of the grain at a place.
    fn tells_of(&self, at: Sequence) -> bool {
        [&self.contradicted, &self.ended, &self.status_told, &self.hold_told]
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

/// Retracted is both bits together.
fn is_either(status: VerificationStatus, one: VerificationStatus) -> bool {
    status == one || status == VerificationStatus::Retracted
}

/// Holds the grains without a state record against what the chain tells: those that were marked, and
/// those that are looked at closely. The walk over the records sees to the others.
pub(super) fn check_unwritten(
    check: &Check<'_>,
    told: &Told,
    places: u64,
    findings: &mut Findings,
) -> Result<()> {
    findings.part(Fault::State, Place::All(STATE), |findings| {
        let written = check.view.transaction().open_table(keys::STATE)?;
        for at in (1..=places).map(Sequence::new) {
            let is_asked = told.marks.tells_of(at) || check.takes(at.get());
            if is_asked && written.get(at.get())?.is_none() && !check.is_erased(at)? {
                compare(check, told, at, &GrainState::default(), findings)?;
            }
        }
        Ok(())
    })
}

/// Holds a state against what the chain and the grain tell. With what a file stated the chain has to
/// agree only where it tells of a change since.
pub(super) fn compare(
    check: &Check<'_>,
    told: &Told,
    at: Sequence,
    state: &GrainState,
    findings: &mut Findings,
) -> Result<()> {
    let mut wrong = |fault, detail: String| {
        findings.add(fault, Place::Row(STATE, at.get()), detail);
    };
    let Told { marks, stated, .. } = told;
    let stated = stated.has(at);
    let (said, is) = (marks.contradicted.has(at), state.contradicted);
    if said != is && (said || !stated) {
        wrong(Fault::Unaudited, format!("contradicted: {is}, by the audit log {said}"));
    }
    let (said, is) = (marks.status(at), state.verification_status);
    if said != is && (marks.status_told.has(at) || !stated) {
        wrong(Fault::Unaudited, format!("{}, by the audit log {}", is.name(), said.name()));
    }
    let ends = state.system_valid_to.is_some();
    if ends == state.is_current() && !stated && !(ends && marks.ended.has(at)) {
        let detail = "known without end and not current, or current and known to an end";
        wrong(Fault::State, detail.to_owned());
    }
    let said = match (marks.hold_told.has(at), stated) {
        (true, _) => Some(marks.held.has(at)),
        (false, true) => None,
        (false, false) => born_held(check, at)?,
    };
    if let Some(said) = said.filter(|said| *said != state.held) {
        let detail = format!("held: {}, by its policy and the audit log {said}", state.held);
        wrong(Fault::Unaudited, detail);
    }
    Ok(())
}

/// Whether a grain is under hold from the moment it is stored, where it can be read.
fn born_held(check: &Check<'_>, at: Sequence) -> Result<Option<bool>> {
    let Some(blob) = check.readable(at)? else { return Ok(None) };
    // Damage was found by the walks over the tables.
    whole(with_fields(&blob, |grain| Ok(Terms::of(grain).holds)))
}

/// Holds the rows of roots of the grains that are looked at closely against what protects them.
pub(super) fn check_roots(
    check: &Check<'_>,
    told: Option<&Told>,
    places: u64,
    findings: &mut Findings,
) -> Result<()> {
    findings.part(Fault::Roots, Place::All(ROOTS), |findings| {
        let plan = Plan::new(check.view, EpochMs::default())?;
        for at in (1..=places).filter(|at| check.takes(*at)).map(Sequence::new) {
            if check.is_erased(at)? {
                continue;
            }
            let place = Place::Row(ROOTS, at.get());
            for root in whole(plan.missing_roots(at))?.unwrap_or_default() {
                let detail = match root.get() {
                    u64::MAX => "more ancestors protect it than a row holds".to_owned(),
                    root => format!("place {root} protects it, and is not among its roots"),
                };
                findings.add(Fault::Roots, place, detail);
            }
            if let Some(told) = told
                && whole(plan.is_released(at))?.unwrap_or_default()
                && !told.marks.signed_for.has(at)
            {
                let detail =
                    "no audit entry tells that it was released from the policies before it";
                findings.add(Fault::Unaudited, place, detail);
            }
        }
        Ok(())
    })
}

#[cfg(test)]
#[path = "standing_tests.rs"]
mod tests;
