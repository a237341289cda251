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

/// The doc ids with any term of a plain query, ascending; `None` if there may be too many, or if the query
/// has phrases or expansions.
///
/// # Errors
/// `ERR_INTEGRITY` if the postings cannot be read.
pub(super) fn few_candidates(
    locals: &PartPlan<'_>,
    part: TextPart<'_>,
) -> Result<Option<Vec<u32>>> {
    let most = match part {
        TextPart::Segment(..) => FEW.0,
        TextPart::Tail(_) => FEW.1,
    };
    let mut postings = 0_u64;
    for local in &locals.clauses {
        postings = postings.saturating_add(match local {
            PartClause::Term(found) => found.postings(),
            PartClause::NoMatch => 0,
            PartClause::Phrase(_) | PartClause::Group(_) => return Ok(None),
        });
    }
    if postings > most {
        return Ok(None);
    }
    let mut documents = Vec::with_capacity(usize::try_from(postings).unwrap_or_default());
    for local in &locals.clauses {
        if let PartClause::Term(found) = local {
            part.cursor(found)?.visit_until(part.end(), |document, _| documents.push(document));
        }
    }
    documents.sort_unstable();
    documents.dedup();
    Ok(Some(documents))
}

/// Scores these documents and offers the hits.
///
/// # Errors
/// `ERR_INTEGRITY` if they cannot be read; those of the filter; `ERR_TIMEOUT`.
pub(super) fn score_all(
    documents: &[u32],
    locals: &PartPlan<'_>,
    plan: &ScoringPlan,
    part: TextPart<'_>,
    best: &mut TopHits<'_, '_>,
    watch: &CancelCheck<'_>,
) -> Result<()> {
    for document in documents.iter().copied().filter(|document| part.is_live(*document)) {
        if let Some(score) = locals.score(plan, part, document, watch)? {
            best.offer(score, part.sequence(document)?)?;
        }
    }
    Ok(())
}
