//! HISTORY (CAL 8.4): the newest versions of a chain or of a subject and relation, or the difference of two
//! versions.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use grainstore_format::ContentAddress;

use super::{Executor, collector, count, size};
use crate::check;
use crate::check::plan::HistoryPlan;
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::limits;
use crate::memory::{Candidate, HashPrefix, Hit, PrefixMatch};
use crate::query::Query;
use crate::response::{Answer, FieldChange, Version};
use crate::span::Spanned;

impl Executor<'_> {
    /// Runs a HISTORY statement.
    pub(super) fn history(&mut self, plan: HistoryPlan) -> Result<Answer> {
        let (versions, total) = match plan {
            HistoryPlan::ByHash(target) => self.chain(&target)?,
            HistoryPlan::Diff(from, to) => return self.diff(&from, &to),
            HistoryPlan::Triple(query) => self.versions(&query)?,
        };
        for version in &versions {
            self.check_whole_grain(&version.grain).map_err(suggest_select)?;
        }
        self.count_returned(versions.len());
        Ok(Answer::Versions { versions, total })
    }

    /// Returns the newest versions of a chain, and their number.
    fn chain(&mut self, target: &Spanned<HashPrefix>) -> Result<(Vec<Version>, u64)> {
        let address = self.find_target(target)?.ok_or_else(|| target_not_found(target))?;
        // One more than is shown tells whether there are more to count.
        let mut hits =
            self.memory.history(&address, limits::MAX_HISTORY_VERSIONS.saturating_add(1))?;
        if hits.is_empty() {
            return Err(target_not_found(target));
        }
        let total = match hits.len() > limits::MAX_HISTORY_VERSIONS {
            true => self.memory.count_versions(&address, &self.cancel)?,
            false => count(hits.len()),
        };
        hits.truncate(limits::MAX_HISTORY_VERSIONS);
        self.count_scanned(total);
        Ok((hits.into_iter().map(Version::from).collect(), total))
    }

    /// Returns the address of a target; `None` if the session does not see it.
    fn find_target(&self, target: &Spanned<HashPrefix>) -> Result<Option<ContentAddress>> {
        match self.memory.locate(&target.node)? {
            PrefixMatch::One(address) => Ok(Some(address)),
            PrefixMatch::Nothing | PrefixMatch::Elsewhere => Ok(None),
            PrefixMatch::Several => Err(check::ambiguous(target)),
        }
    }

    fn version(&mut self, target: &Spanned<HashPrefix>) -> Result<Hit> {
        let hit = match self.find_target(target)? {
            Some(address) => self.memory.get(&address)?,
            None => None,
        };
        self.count_scanned(1);
        hit.ok_or_else(|| target_not_found(target))
    }

    /// Returns the fields in which two grains differ, ordered by payload name.
    fn diff(&mut self, from: &Spanned<HashPrefix>, to: &Spanned<HashPrefix>) -> Result<Answer> {
        let (from, to) = (self.version(from)?, self.version(to)?);
        // The difference to an unrelated grain is the whole grain, so the gate must allow both.
        [&from, &to]
            .into_iter()
            .try_for_each(|hit| self.check_whole_grain(&hit.grain))
            .map_err(suggest_select)?;
        let awaits = |hit: &Hit| hit.grain.awaits_review(hit.state.verification_status);
        let requires_human_review = awaits(&from) || awaits(&to);
        let (from, to) = (from.grain.into_fields(), to.grain.into_fields());
        let names: BTreeSet<&String> = from.keys().chain(to.keys()).collect();
        let changed = names.into_iter().filter(|name| from.get(*name) != to.get(*name));
        let change = |name: &String| FieldChange {
            field: name.clone(),
            from: from.get(name).cloned(),
            to: to.get(name).cloned(),
        };
        Ok(Answer::Diff { diff: changed.map(change).collect(), requires_human_review })
    }

    /// Returns the newest versions of a subject and relation, and their number.
    ///
    /// # Errors
    /// E030 if the versions exceed what a statement may hold.
    fn versions(&mut self, query: &Query) -> Result<(Vec<Version>, u64)> {
        let (mut versions, mut bytes, room) = (Vec::new(), 0_usize, self.free_bytes());
        let (mut failed, mut total) = (None, 0_u64);
        if query.is_impossible() {
            return Ok((versions, total));
        }
        let recalled = self.memory.recall(query, &self.cancel, &mut |candidate| {
            total = total.saturating_add(1);
            if versions.len() == limits::MAX_HISTORY_VERSIONS {
                return ControlFlow::Continue(());
            }
            match candidate.grain.to_grain() {
                Ok(grain) => {
                    bytes = bytes.saturating_add(size::grain_bytes(&grain));
                    if bytes > room {
                        failed = Some(too_many());
                        return ControlFlow::Break(());
                    }
                    let Candidate { address, state, score, .. } = candidate;
                    versions.push(Version::from(Hit { address, grain, state: *state, score }));
                }
                Err(error) => {
                    failed = Some(error.into());
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        })?;
        self.count_scanned(recalled.scanned);
        match failed {
            Some(error) => Err(error),
            None => Ok((versions, total)),
        }
    }
}

/// Adds advice for a session that may not get whole grains: HISTORY has no stage that selects fields.
fn suggest_select(error: Error) -> Error {
    error.suggest(
        "a HISTORY gives whole grains: ask RECALL ... WITH superseded | SELECT object, time",
    )
}

fn too_many() -> Error {
    collector::memory_exceeded()
        .suggest("RECALL ... WITH superseded shows them in parts, with LIMIT and OFFSET")
}

fn target_not_found(target: &Spanned<HashPrefix>) -> Error {
    let message = format!("{} leads to no grain", target.node);
    Error::new(ErrorKind::TargetNotFound, message).at(target.span)
}
