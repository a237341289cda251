//! HISTORY: the chain of a grain, every version of a subject and relation, or what two versions
//! differ in.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use grainstore_format::ContentAddress;

use super::{Run, count, size, walk};
use crate::check;
use crate::check::plan::HistoryPlan;
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::limits;
use crate::memory::{Candidate, HashPrefix, Hit, Located};
use crate::query::Query;
use crate::response::{Answer, Change, Version};
use crate::span::Spanned;

impl Run<'_> {
    /// Runs a HISTORY statement.
    pub(super) fn history(&mut self, plan: HistoryPlan) -> Result<Answer> {
        let mut versions = match plan {
            HistoryPlan::Of(target) => self.chain(&target)?,
            HistoryPlan::Diff(from, to) => return self.diff(&from, &to),
            HistoryPlan::Triple(query) => {
                let versions = self.versions(&query)?;
                return self.told(versions, true);
            }
        };
        let all = versions.len() <= limits::VERSIONS;
        versions.truncate(limits::VERSIONS);
        self.told(versions, all)
    }

    /// The answer: these versions, and whether they are all there are.
    fn told(&mut self, versions: Vec<Version>, all: bool) -> Result<Answer> {
        versions.iter().try_for_each(|version| self.gives_whole(&version.grain))?;
        self.returned(versions.len());
        let total = all.then_some(count(versions.len()));
        Ok(Answer::Versions { versions, total })
    }

    /// The newest versions of a chain: one more than are answered, where there are so many.
    fn chain(&mut self, target: &Spanned<HashPrefix>) -> Result<Vec<Version>> {
        let versions = match self.located(target)? {
            Some(address) => self.memory.history(&address, limits::VERSIONS.saturating_add(1))?,
            None => Vec::new(),
        };
        if versions.is_empty() {
            return Err(unknown(target));
        }
        self.scanned(count(versions.len()));
        Ok(versions.into_iter().map(Version::from).collect())
    }

    /// The address of a target, if the session sees one.
    fn located(&self, target: &Spanned<HashPrefix>) -> Result<Option<ContentAddress>> {
        match self.memory.locate(&target.node)? {
            Located::One(address) => Ok(Some(address)),
            Located::Nothing | Located::Elsewhere => Ok(None),
            Located::Several => Err(check::ambiguous(target)),
        }
    }

    fn version(&mut self, target: &Spanned<HashPrefix>) -> Result<Hit> {
        let hit = match self.located(target)? {
            Some(address) => self.memory.get(&address)?,
            None => None,
        };
        self.scanned(1);
        hit.ok_or_else(|| unknown(target))
    }

    /// The fields two grains differ in, by payload name, ascending.
    fn diff(&mut self, from: &Spanned<HashPrefix>, to: &Spanned<HashPrefix>) -> Result<Answer> {
        let (from, to) = (self.version(from)?, self.version(to)?);
        // What differs from a grain with nothing in common is all of it.
        [&from, &to].into_iter().try_for_each(|hit| self.gives_whole(&hit.grain))?;
        let (from, to) = (from.grain.into_fields(), to.grain.into_fields());
        let names: BTreeSet<&String> = from.keys().chain(to.keys()).collect();
        let changed = names.into_iter().filter(|name| from.get(*name) != to.get(*name));
        let change = |name: &String| Change {
            field: name.clone(),
            from: from.get(name).cloned(),
            to: to.get(name).cloned(),
        };
        Ok(Answer::Diff { diff: changed.map(change).collect() })
    }

    /// Every version of a subject and relation.
    ///
    /// # Errors
    /// E030 when they are more than a statement may hold.
    fn versions(&mut self, query: &Query) -> Result<Vec<Version>> {
        let (mut versions, mut bytes, room) = (Vec::new(), 0_usize, self.room());
        let mut failed = None;
        if query.is_impossible() {
            return Ok(versions);
        }
        let recalled = self.memory.recall(query, &self.cancel, &mut |candidate| {
            match candidate.grain.to_grain() {
                Ok(grain) => {
                    bytes = bytes.saturating_add(size::of_grain(&grain));
                    if versions.len() == limits::SORTED_ROWS || bytes > room {
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
        self.scanned(recalled.scanned);
        match failed {
            Some(error) => Err(error),
            None => Ok(versions),
        }
    }
}

fn too_many() -> Error {
    walk::too_many()
        .suggest("RECALL ... WITH superseded shows them in parts, with LIMIT and OFFSET")
}

fn unknown(target: &Spanned<HashPrefix>) -> Error {
    let message = format!("{} leads to no grain", target.node);
    Error::new(ErrorKind::TargetNotFound, message).at(target.span)
}
