//! The score of one document, from its terms: the sum over the clauses of a plan, in their order.

use super::cancel::CancelCheck;
use super::part::{PostingsCursor, TextPart};
use super::plan::{ClauseTerms, PartClause, ScoringPlan};
use crate::error::Result;

/// Filters the documents of a part by the postings of the scored terms.
pub(super) struct CandidateFilter(Vec<PostingsCursor>);

impl CandidateFilter {
    /// Returns `true` if a document may have any of them; must be called in ascending order.
    pub(super) fn may_match(&mut self, document: u32) -> bool {
        self.0.iter_mut().any(|cursor| cursor.has(document))
    }
}

/// A plan resolved to the terms of one part.
pub(super) struct PartPlan<'p> {
    /// The scored clauses, in their order.
    pub(super) clauses: Vec<PartClause<'p>>,
    /// The excluded clauses; one excludes a document that has all its members.
    pub(super) must_not: Vec<Vec<PartClause<'p>>>,
}

impl<'p> PartPlan<'p> {
    /// Resolves a plan for the part at this index.
    pub(super) fn of(plan: &'p ScoringPlan, part: usize) -> Self {
        let barred = plan.must_not.iter();
        Self {
            clauses: plan.clauses.iter().map(|unit| unit.what.resolve(part)).collect(),
            must_not: barred.map(|all| all.iter().map(|one| one.resolve(part)).collect()).collect(),
        }
    }

    /// Returns `true` if no document of the part can match.
    pub(super) fn is_empty(&self) -> bool {
        self.clauses.iter().all(|local| matches!(local, PartClause::NoMatch))
    }

    /// A filter for the documents that may match a scored clause, boosting ones included.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if the postings cannot be read.
    pub(super) fn candidate_filter(&self, part: TextPart<'_>) -> Result<CandidateFilter> {
        let mut drivers = Vec::new();
        self.clauses.iter().for_each(|local| local.add_drivers(part, &mut drivers));
        let cursors = drivers.into_iter().map(|found| part.cursor(found));
        Ok(CandidateFilter(cursors.collect::<Result<_>>()?))
    }

    /// The score of a document; `None` if it does not match.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if the terms of the document cannot be read; `ERR_TIMEOUT`.
    pub(super) fn score(
        &self,
        plan: &ScoringPlan,
        part: TextPart<'_>,
        document: u32,
        watch: &CancelCheck<'_>,
    ) -> Result<Option<f64>> {
        watch.step(1)?;
        let words = part.words(document)?;
        let code = part.length_code(document);
        let share = |local: &PartClause| local.tf(&words, (&plan.norms, code), watch);
        let mut score = 0.0;
        for (unit, local) in plan.clauses.iter().zip(&self.clauses) {
            if unit.boosts && score <= 0.0 {
                continue;
            }
            let share = share(local)?;
            if share > 0.0 {
                score += unit.value * share;
            } else if unit.must {
                return Ok(None);
            }
        }
        let is_barred = any_has_all(&self.must_not, share)?;
        Ok((score > 0.0 && !is_barred).then_some(score))
    }
}

/// Returns `true` if a document matches a plan, that is if [`PartPlan::score`] would return a score. Stops as
/// soon as that is known.
///
/// # Errors
/// Those of [`PartPlan::score`].
pub(super) fn is_match(
    plan: &ScoringPlan,
    (at, part): (usize, TextPart<'_>),
    document: u32,
    watch: &CancelCheck<'_>,
) -> Result<bool> {
    watch.step(1)?;
    let words = part.words(document)?;
    let code = part.length_code(document);
    let share = |what: &ClauseTerms| what.resolve(at).tf(&words, (&plan.norms, code), watch);
    let mut counts = false;
    for unit in plan.clauses.iter().filter(|unit| unit.must) {
        if share(&unit.what)? <= 0.0 {
            return Ok(false);
        }
        counts = true;
    }
    for unit in plan.clauses.iter().filter(|unit| !unit.boosts) {
        counts = counts || share(&unit.what)? > 0.0;
    }
    Ok(counts && !any_has_all(&plan.must_not, share)?)
}

/// Returns `true` if any list has only members with a positive tf.
fn any_has_all<T>(any: &[Vec<T>], share: impl Fn(&T) -> Result<f64>) -> Result<bool> {
    for all in any {
        let mut has = true;
        for one in all {
            has = has && share(one)? > 0.0;
        }
        if has {
            return Ok(true);
        }
    }
    Ok(false)
}
