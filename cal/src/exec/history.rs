//! HISTORY: the chain of a grain, or every version of a subject and relation.

use std::ops::ControlFlow;

use grainstore_format::{EpochMs, Grain, GrainState};

use super::{Run, count};
use crate::check;
use crate::check::plan::HistoryPlan;
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::limits;
use crate::memory::{HashPrefix, Hit, Located};
use crate::query::Query;
use crate::response::{Answer, Version};
use crate::span::Spanned;

impl Run<'_> {
    /// Runs a HISTORY statement.
    pub(super) fn history(&mut self, plan: HistoryPlan) -> Result<Answer> {
        let versions = match plan {
            HistoryPlan::Of(target) => self.chain(&target)?,
            HistoryPlan::Triple { query, as_of } => self.versions(&query, as_of)?,
        };
        self.used.grains_returned = count(versions.len());
        Ok(Answer::Versions { versions })
    }

    fn chain(&mut self, target: &Spanned<HashPrefix>) -> Result<Vec<Version>> {
        let unknown = || {
            let message = format!("{} leads to no grain", target.node);
            Err(Error::new(ErrorKind::TargetNotFound, message).at(target.span))
        };
        let address = match self.memory.locate(&target.node)? {
            Located::One(address) => address,
            Located::Nothing | Located::Elsewhere => return unknown(),
            Located::Several => return Err(check::ambiguous(target)),
        };
        let versions = self.memory.history(&address, limits::VERSIONS)?;
        if versions.is_empty() {
            return unknown();
        }
        self.used.grains_scanned = count(versions.len());
        Ok(versions.into_iter().take(limits::VERSIONS).map(Version::from).collect())
    }

    fn versions(&mut self, query: &Query, as_of: Option<EpochMs>) -> Result<Vec<Version>> {
        let mut versions = Vec::new();
        let mut failed = None;
        let recalled = self.memory.recall(query, &self.cancel, &mut |candidate| {
            match candidate.grain.to_grain() {
                Ok(grain) if as_of.is_none_or(|at| was_current(&grain, candidate.state, at)) => {
                    let (address, state) = (candidate.address, *candidate.state);
                    versions.push(Version::from(Hit { address, grain, state }));
                }
                Ok(_) => {}
                Err(error) => failed = Some(error),
            }
            if failed.is_some() || versions.len() == limits::VERSIONS {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        })?;
        self.used.grains_scanned = recalled.scanned;
        match failed {
            Some(error) => Err(error.into()),
            None => Ok(versions),
        }
    }
}

/// Whether the store held this version to be current at that time (system time).
fn was_current(grain: &Grain, state: &GrainState, at: EpochMs) -> bool {
    let from = grain.int("system_valid_from").map_or_else(|| grain.created_at(), EpochMs::new);
    from <= at && state.system_valid_to.is_none_or(|until| at < until)
}
