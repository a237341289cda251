//! RECALL: one walk over the memory, then what is left of the pipeline.

use std::cmp::Ordering;
use std::ops::ControlFlow;

use grainstore_format::ContentAddress;

use super::sort::{self, SortValue};
use super::{Run, count};
use crate::check::plan::{RecallPlan, SortKey, Step};
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::limits;
use crate::memory::{Candidate, Counted, Hit};
use crate::query::Query;
use crate::response::{Answer, Grains, ResultRow};

/// The grains of a RECALL, and all matches where they are known.
pub(super) struct Found {
    pub(super) hits: Vec<Hit>,
    pub(super) total: Option<u64>,
}

impl Run<'_> {
    /// Runs a RECALL statement.
    pub(super) fn recall(&mut self, plan: &RecallPlan) -> Result<Answer> {
        if plan.counts() {
            return self.count(plan);
        }
        let mut found = self.find(plan)?;
        if found.total.is_none() && self.options.totals {
            found.total = self.total(&plan.query)?;
        }
        self.used.grains_returned = count(found.hits.len());
        let formatted = match self.options.as_format.or(plan.format) {
            Some(format) => {
                let text = self.show(&found.hits, format, plan)?;
                self.used.tokens_used = count(self.options.counter.count(&text));
                Some(text)
            }
            None => None,
        };
        let row = |hit: Hit| ResultRow {
            grain: hit.grain,
            score: 1.0,
            matched_fields: plan.matched_fields.clone(),
            content_address: hit.address,
            provenance_id: hit.address,
            state: plan.show.state.then_some(hit.state),
        };
        Ok(Answer::Grains(Grains {
            results: found.hits.into_iter().map(row).collect(),
            total: found.total,
            next_cursor: None,
            formatted,
        }))
    }

    /// All matches, unless there are so many that counting them would cost more than the answer.
    fn total(&mut self, query: &Query) -> Result<Option<u64>> {
        let mut matches = 0_u64;
        let mut visit = |_: Candidate<'_>| {
            matches += 1;
            match matches < limits::TOTAL_MATCHES {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        };
        let recalled = self.memory.recall(query, &self.cancel, &mut visit)?;
        self.used.grains_scanned = self.used.grains_scanned.saturating_add(recalled.scanned);
        Ok((matches < limits::TOTAL_MATCHES).then_some(matches))
    }

    /// COUNT: the matches, cut by the limits and offsets before it. Sorting changes no number.
    fn count(&mut self, plan: &RecallPlan) -> Result<Answer> {
        let counted = if plan.query.is_impossible() {
            Counted::default()
        } else {
            self.memory.count(&plan.query, &self.cancel)?
        };
        self.used.grains_scanned = counted.scanned;
        let cut = |left: u64, step: &Step| match step {
            Step::Skip(skipped) => left.saturating_sub(*skipped),
            Step::Take(taken) => left.min(*taken),
            Step::Sort(_) | Step::Count => left,
        };
        Ok(Answer::Count { count: plan.steps.iter().fold(counted.matches, cut) })
    }

    /// Finds the grains of a RECALL that is no COUNT.
    pub(super) fn find(&mut self, plan: &RecallPlan) -> Result<Found> {
        if plan.query.is_impossible() {
            return Ok(Found { hits: Vec::new(), total: Some(0) });
        }
        let (window, rest) = Window::cut(&plan.steps);
        let mut query = plan.query.clone();
        query.limit = if window.key.is_none() { window.end() } else { None };
        let mut found = self.walk(&query, &window)?;
        for step in rest {
            apply(*step, &mut found.hits);
        }
        Ok(found)
    }

    fn walk(&mut self, query: &Query, window: &Window) -> Result<Found> {
        let mut collected = Collected::new(window);
        let mut failed = None;
        let recalled = self.memory.recall(query, &self.cancel, &mut |candidate| {
            collected.take(&candidate).unwrap_or_else(|error| {
                failed = Some(error);
                ControlFlow::Break(())
            })
        })?;
        self.used.grains_scanned = self.used.grains_scanned.saturating_add(recalled.scanned);
        if let Some(error) = failed {
            return Err(error);
        }
        let total = recalled.total.or((!collected.stopped).then_some(collected.matches));
        Ok(Found { hits: collected.finish(), total })
    }
}

/// The first part of a pipeline: sorting, then one cut. It is done while walking.
struct Window {
    /// None leaves the order of the memory.
    key: Option<SortKey>,
    skip: usize,
    take: Option<usize>,
}

impl Window {
    /// Splits the steps into a window and the rest.
    fn cut(steps: &[Step]) -> (Self, &[Step]) {
        let mut window = Self { key: None, skip: 0, take: None };
        let mut rest = steps;
        while let [step, after @ ..] = rest {
            match step {
                Step::Sort(key) if window.key.is_none() && rest.len() == steps.len() => {
                    window.key = Some(*key);
                }
                Step::Sort(_) => break,
                Step::Skip(skipped) => {
                    let skipped = usize::try_from(*skipped).unwrap_or(usize::MAX);
                    window.skip = window.skip.saturating_add(skipped);
                    window.take = window.take.map(|take| take.saturating_sub(skipped));
                }
                Step::Take(taken) => {
                    let taken = usize::try_from(*taken).unwrap_or(usize::MAX);
                    window.take = Some(window.take.map_or(taken, |take| take.min(taken)));
                }
                Step::Count => break,
            }
            rest = after;
        }
        (window, rest)
    }

    /// How many matches are needed from the start.
    fn end(&self) -> Option<usize> {
        self.take.map(|take| take.saturating_add(self.skip))
    }

    /// The order of two matches: by the key, then by ascending address.
    fn order(&self, a: &Rank, b: &Rank) -> Ordering {
        let by_key = self.key.map_or(Ordering::Equal, |key| sort::order(&key, &a.value, &b.value));
        by_key.then_with(|| a.address.cmp(&b.address))
    }
}

/// Where a match stands in a sorted answer.
#[derive(Clone)]
struct Rank {
    value: SortValue,
    address: ContentAddress,
}

/// A match worth keeping.
struct Row {
    rank: Rank,
    /// Bytes of the encoded grain.
    size: usize,
    hit: Hit,
}

/// What a walk has collected so far: at most twice what the window needs.
struct Collected<'w> {
    window: &'w Window,
    rows: Vec<Row>,
    /// The last rank that still had a place; what ranks behind it is not even decoded.
    bar: Option<Rank>,
    matches: u64,
    /// Bytes of the encoded grains in `rows`.
    bytes: usize,
    stopped: bool,
}

impl<'w> Collected<'w> {
    fn new(window: &'w Window) -> Self {
        Self { window, rows: Vec::new(), bar: None, matches: 0, bytes: 0, stopped: false }
    }

    fn take(&mut self, candidate: &Candidate<'_>) -> Result<ControlFlow<()>> {
        if self.window.take == Some(0) {
            self.stopped = true;
            return Ok(ControlFlow::Break(()));
        }
        self.matches = self.matches.saturating_add(1);
        match self.window.key {
            None => self.in_order(candidate),
            Some(key) => self.ranked(&key, candidate),
        }
    }

    /// The memory's order is the answer's: skip, then take.
    fn in_order(&mut self, candidate: &Candidate<'_>) -> Result<ControlFlow<()>> {
        if self.matches <= count(self.window.skip) {
            return Ok(ControlFlow::Continue(()));
        }
        let rank = Rank { value: SortValue::Missing, address: candidate.address };
        self.keep(rank, candidate)?;
        if self.window.take.is_some_and(|take| self.rows.len() >= take) {
            self.stopped = true;
            return Ok(ControlFlow::Break(()));
        }
        Ok(ControlFlow::Continue(()))
    }

    fn keep(&mut self, rank: Rank, candidate: &Candidate<'_>) -> Result<()> {
        let size = candidate.grain.payload_len();
        self.bytes = self.bytes.saturating_add(size);
        if self.rows.len() >= 2 * limits::SORTED_ROWS || self.bytes > limits::ROW_BYTES {
            return Err(too_many());
        }
        self.rows.push(Row { rank, size, hit: hit(candidate)? });
        Ok(())
    }

    /// Every match must be seen; the best are kept.
    fn ranked(&mut self, key: &SortKey, candidate: &Candidate<'_>) -> Result<ControlFlow<()>> {
        let value = sort::value(key.field, candidate.grain, candidate.state);
        let rank = Rank { value, address: candidate.address };
        if self.bar.as_ref().is_some_and(|bar| self.window.order(&rank, bar).is_gt()) {
            return Ok(ControlFlow::Continue(()));
        }
        self.keep(rank, candidate)?;
        let most = self.window.end().unwrap_or(usize::MAX);
        if self.rows.len() >= most.saturating_mul(2).clamp(64, 2 * limits::SORTED_ROWS) {
            self.shrink(most)?;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Keeps the best `most` rows, all the window can still want.
    fn shrink(&mut self, most: usize) -> Result<()> {
        if most > limits::SORTED_ROWS {
            return Err(too_many());
        }
        self.sort();
        self.rows.truncate(most);
        self.bytes = self.rows.iter().map(|row| row.size).sum();
        self.bar = self.rows.last().map(|row| row.rank.clone());
        Ok(())
    }

    fn sort(&mut self) {
        let window = self.window;
        self.rows.sort_unstable_by(|a, b| window.order(&a.rank, &b.rank));
    }

    fn finish(mut self) -> Vec<Hit> {
        let mut skip = 0;
        if self.window.key.is_some() {
            self.sort();
            skip = self.window.skip;
        }
        let take = self.window.take.unwrap_or(usize::MAX);
        self.rows.into_iter().skip(skip).take(take).map(|row| row.hit).collect()
    }
}

fn hit(candidate: &Candidate<'_>) -> Result<Hit> {
    let grain = candidate.grain.to_grain()?;
    Ok(Hit { address: candidate.address, grain, state: *candidate.state })
}

fn too_many() -> Error {
    let message = format!(
        "more than {} grains or {} bytes would have to be held at once",
        limits::SORTED_ROWS,
        limits::ROW_BYTES
    );
    Error::new(ErrorKind::BudgetExceeded, message).suggest("narrow the query, or LIMIT it first")
}

/// A step after the window, on the few grains that are left.
fn apply(step: Step, hits: &mut Vec<Hit>) {
    match step {
        Step::Sort(key) => {
            let value = |hit: &Hit| sort::value(key.field, &hit.grain, &hit.state);
            hits.sort_by(|a, b| {
                sort::order(&key, &value(a), &value(b)).then_with(|| a.address.cmp(&b.address))
            });
        }
        Step::Skip(skipped) => {
            let skipped = usize::try_from(skipped).unwrap_or(usize::MAX).min(hits.len());
            hits.drain(..skipped);
        }
        Step::Take(taken) => hits.truncate(usize::try_from(taken).unwrap_or(usize::MAX)),
        Step::Count => {}
    }
}
