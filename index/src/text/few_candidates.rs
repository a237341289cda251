//! Search of a part with few candidate documents: each is scored from its terms. For so few, compiling the
//! query for pruning would take longer, and so would a pass over the scores of all documents.

use super::cancel::CancelCheck;
use super::exact::PartPlan;
use super::part::TextPart;
use super::plan::{PartClause, ScoringPlan};
use super::top_hits::TopHits;
use crate::error::Result;

/// The most postings that are scored one by one, in a segment and in a tail.
#[cfg(not(test))]
const FEW: (u64, u64) = (256, 32);
#[cfg(test)]
const FEW: (u64, u64) = (6, 3);

/// The doc ids of a part that may match, ascending; `None` if there may be too many.
///
/// # Errors
/// `ERR_INTEGRITY` if the postings cannot be read.
pub(super) fn few_candidates(
    plan: &ScoringPlan,
    locals: &PartPlan<'_>,
    part: TextPart<'_>,
) -> Result<Option<Vec<u32>>> {
    let drivers_of = |local: &PartClause<'_>| {
        let mut drivers = Vec::new();
        local.add_drivers(part, &mut drivers);
        drivers.iter().map(|found| found.postings()).fold(0, u64::saturating_add)
    };
    let clauses = || plan.clauses.iter().zip(&locals.clauses);
    // What matches has every required clause, so that the documents of one of them will do.
    let required = clauses().filter(|(unit, _)| unit.must).map(|(_, local)| local);
    match required.min_by_key(|local| drivers_of(local)) {
        Some(rarest) => documents_of([rarest], part),
        None => {
            let found = clauses().filter(|(unit, _)| !unit.boosts).map(|(_, local)| local);
            documents_of(found, part)
        }
    }
}

/// The doc ids that may match a clause which is no single term, ascending; `None` if there may be too many.
///
/// # Errors
/// `ERR_INTEGRITY` if the postings cannot be read.
pub(super) fn candidates_beside_terms(
    locals: &PartPlan<'_>,
    part: TextPart<'_>,
) -> Result<Option<Vec<u32>>> {
    let others = locals.clauses.iter().filter(|local| !matches!(local, PartClause::Term(_)));
    documents_of(others, part)
}

fn documents_of<'l, 'p: 'l>(
    clauses: impl IntoIterator<Item = &'l PartClause<'p>>,
    part: TextPart<'_>,
) -> Result<Option<Vec<u32>>> {
    let most = match part {
        TextPart::Segment(..) => FEW.0,
        TextPart::Tail(_) => FEW.1,
    };
    let mut drivers = Vec::new();
    for local in clauses {
        local.add_drivers(part, &mut drivers);
    }
    let postings = drivers.iter().map(|found| found.postings()).fold(0, u64::saturating_add);
    if postings > most {
        return Ok(None);
    }
    let mut documents = Vec::with_capacity(usize::try_from(postings).unwrap_or_default());
    for found in drivers {
        part.cursor(found)?.visit_until(part.end(), |document, _| documents.push(document));
    }
    documents.sort_unstable();
    documents.dedup();
    Ok(Some(documents))
}

/// Scores these documents and offers the hits.
///
/// # Errors
/// `ERR_INTEGRITY` if they cannot be read; `ERR_TIMEOUT`.
pub(super) fn score_all(
    documents: &[u32],
    locals: &PartPlan<'_>,
    plan: &ScoringPlan,
    part: TextPart<'_>,
    best: &mut TopHits,
    watch: &CancelCheck<'_>,
) -> Result<()> {
    for document in documents.iter().copied().filter(|document| part.is_live(*document)) {
        if let Some(score) = locals.score(plan, part, document, watch)? {
            best.offer(score, part.sequence(document)?);
        }
    }
    Ok(())
}
