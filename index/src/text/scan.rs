//! Exhaustive search of a part: the postings of all clauses are read, one window of documents at a time. Used
//! for the tail, and for queries that cannot be pruned.

use super::cancel::CancelCheck;
use super::exact::PartPlan;
use super::part::{PostingsCursor, TextPart};
use super::plan::{PartClause, ScoredClause, ScoringPlan};
use crate::error::Result;

/// The number of documents whose scores are accumulated at once.
#[cfg(not(test))]
const WINDOW: u32 = 1 << 16;
#[cfg(test)]
const WINDOW: u32 = 1 << 9;

/// Visits the matches of a part in ascending doc id, until the visitor returns `true`. Returns `true` if it
/// did.
///
/// # Errors
/// `ERR_INTEGRITY` if the part cannot be read; those of the visitor; `ERR_TIMEOUT`.
pub(super) fn scan(
    plan: &ScoringPlan,
    at: usize,
    part: TextPart<'_>,
    watch: &CancelCheck<'_>,
    visit: &mut dyn FnMut(u32, f64) -> Result<bool>,
) -> Result<bool> {
    let locals = PartPlan::of(plan, at);
    if locals.is_empty() {
        return Ok(false);
    }
    let mut units = ClausePostings::all(part, &locals.clauses)?;
    let mut barred = Vec::with_capacity(locals.must_not.len());
    for all in &locals.must_not {
        barred.push(ClausePostings::all(part, all)?);
    }
    let musts = plan.clauses.iter().filter(|unit| unit.must).count();
    let mut window = ScoreWindow::new(part.end().min(WINDOW), musts, !barred.is_empty());
    let mut first = 0;
    while first < part.end() {
        let end = part.end().min(first.saturating_add(WINDOW));
        window.start(first);
        for (unit, walk) in plan.clauses.iter().zip(&mut units) {
            walk.accumulate((plan, watch), part, end, first, &mut window.tfs)?;
            window.add_clause(unit);
        }
        for all in &mut barred {
            for walk in all.iter_mut() {
                walk.accumulate((plan, watch), part, end, first, &mut window.tfs)?;
                window.count_excluded();
            }
            window.exclude(all.len());
        }
        for (document, score) in window.matches() {
            if part.is_live(document) && visit(document, score)? {
                return Ok(true);
            }
        }
        first = end;
    }
    Ok(false)
}

/// The accumulators of a window of documents.
struct ScoreWindow {
    first: u32,
    scores: Vec<f64>,
    /// The number of required clauses.
    required_clauses: usize,
    /// The number of required clauses each document matches; empty if there are none.
    matched_clauses: Vec<usize>,
    /// The number of members of the current excluded clause each document has; empty if there are none.
    excluded_members: Vec<usize>,
    /// The tf values of the current clause; cleared as they are read.
    tfs: TfAccumulator,
}

/// The tf of a clause, for the documents of a window that match it.
struct TfAccumulator {
    of: Vec<f64>,
    touched: Vec<u32>,
}

impl TfAccumulator {
    /// Records a tf; of several for one document the greatest counts.
    #[inline]
    fn record(&mut self, at: u32, share: f64) {
        let Some(slot) = usize::try_from(at).ok().and_then(|at| self.of.get_mut(at)) else {
            return;
        };
        if *slot == 0.0 {
            self.touched.push(at);
        }
        if share > *slot {
            *slot = share;
        }
    }

    /// Takes all values, in any order.
    #[inline]
    fn drain(&mut self, mut take: impl FnMut(usize, f64)) {
        for at in self.touched.drain(..) {
            let at = usize::try_from(at).unwrap_or(usize::MAX);
            if let Some(share) = self.of.get_mut(at) {
                take(at, std::mem::take(share));
            }
        }
    }
}

impl ScoreWindow {
    fn new(size: u32, musts: usize, bars: bool) -> Self {
        let size = usize::try_from(size).unwrap_or_default();
        Self {
            first: 0,
            scores: vec![0.0; size],
            required_clauses: musts,
            matched_clauses: vec![0; if musts > 0 { size } else { 0 }],
            excluded_members: vec![0; if bars { size } else { 0 }],
            tfs: TfAccumulator { of: vec![0.0; size], touched: Vec::new() },
        }
    }

    /// Moves to the window that starts at this doc id.
    fn start(&mut self, first: u32) {
        if first != self.first {
            self.first = first;
            self.scores.fill(0.0);
            self.matched_clauses.fill(0);
        }
    }

    /// Adds a clause to the scores. One that boosts adds to those that there are.
    fn add_clause(&mut self, &ScoredClause { value, must, boosts, .. }: &ScoredClause) {
        let (scores, have) = (&mut self.scores, &mut self.matched_clauses);
        self.tfs.drain(|at, share| {
            if let Some(score) = scores.get_mut(at).filter(|score| !boosts || **score > 0.0) {
                *score += value * share;
            }
            if must && let Some(have) = have.get_mut(at) {
                *have += 1;
            }
        });
    }

    /// Counts a member of an excluded clause.
    fn count_excluded(&mut self) {
        let counts = &mut self.excluded_members;
        self.tfs.drain(|at, _| {
            if let Some(count) = counts.get_mut(at) {
                *count += 1;
            }
        });
    }

    /// Excludes the documents that have all members.
    fn exclude(&mut self, all: usize) {
        for (count, score) in self.excluded_members.iter_mut().zip(&mut self.scores) {
            if std::mem::take(count) >= all {
                *score = 0.0;
            }
        }
    }

    /// The documents that match all required clauses and have a score.
    fn matches(&self) -> impl Iterator<Item = (u32, f64)> {
        let rows = (self.first..).zip(&self.scores).enumerate();
        rows.filter(|(at, (_, score))| {
            **score > 0.0
                && (self.required_clauses == 0
                    || self.matched_clauses.get(*at) == Some(&self.required_clauses))
        })
        .map(|(_, (document, score))| (document, *score))
    }
}

/// The postings of a clause.
enum ClausePostings<'l, 'p> {
    Terms(Vec<(PostingsCursor, f64)>),
    Phrase(PostingsCursor, &'l PartClause<'p>),
    Spellings(Vec<ClausePostings<'l, 'p>>),
}

impl<'l, 'p> ClausePostings<'l, 'p> {
    fn all(part: TextPart<'_>, locals: &'l [PartClause<'p>]) -> Result<Vec<Self>> {
        locals.iter().map(|local| Self::of(part, local)).collect()
    }

    fn of(part: TextPart<'_>, local: &'l PartClause<'p>) -> Result<Self> {
        Ok(match local {
            PartClause::NoMatch => Self::Terms(Vec::new()),
            PartClause::Term(found) => Self::Terms(vec![(part.cursor(found)?, 1.0)]),
            PartClause::Group(members) => {
                let mut cursors = Vec::with_capacity(members.len());
                for (found, worth) in members {
                    cursors.push((part.cursor(found)?, *worth));
                }
                Self::Terms(cursors)
            }
            PartClause::Phrase(_) => {
                let mut drivers = Vec::new();
                local.add_drivers(part, &mut drivers);
                match drivers.first() {
                    Some(rarest) => Self::Phrase(part.cursor(rarest)?, local),
                    None => Self::Terms(Vec::new()),
                }
            }
            PartClause::Spellings(members) => Self::Spellings(Self::all(part, members)?),
        })
    }

    /// Records the tf of the remaining documents below `end`.
    fn accumulate(
        &mut self,
        (plan, watch): (&ScoringPlan, &CancelCheck<'_>),
        part: TextPart<'_>,
        end: u32,
        first: u32,
        shares: &mut TfAccumulator,
    ) -> Result<()> {
        match self {
            Self::Terms(cursors) => {
                for (cursor, worth) in cursors {
                    let mut postings = 1;
                    cursor.visit_until(end, |document, weight| {
                        postings += 1;
                        let share = plan.norms.tf(weight, part.length_code(document));
                        shares.record(document.saturating_sub(first), *worth * share);
                    });
                    watch.step(postings)?;
                }
                Ok(())
            }
            Self::Spellings(members) => members
                .iter_mut()
                .try_for_each(|member| member.accumulate((plan, watch), part, end, first, shares)),
            Self::Phrase(cursor, local) => {
                let mut documents = Vec::new();
                cursor.visit_until(end, |document, _| documents.push(document));
                for document in documents.into_iter().filter(|document| part.is_live(*document)) {
                    watch.step(1)?;
                    let words = part.words(document)?;
                    let norm = (&plan.norms, part.length_code(document));
                    let share = local.tf(&words, norm, watch)?;
                    if share > 0.0 {
                        shares.record(document.saturating_sub(first), share);
                    }
                }
                Ok(())
            }
        }
    }
}
