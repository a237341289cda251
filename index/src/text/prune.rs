//! Search of a segment by the block-max pruning of the search library: blocks of postings are skipped if
//! their best document cannot enter the result.
//!
//! The library computes in `f32`, in its own order, with bounds chosen when the segment was written. So it
//! only proposes candidates: each is scored again from its terms, and the threshold passed to the library is
//! lowered to allow for these three errors.
//!
//! *Rounding.* A sum of at most [`MAX_PRUNABLE_CLAUSES`](super::plan::MAX_PRUNABLE_CLAUSES) positive terms in `f32`, each of a few operations, is
//! off by less than a hundred times 2^-24 of itself: [`MARGIN`] is more than ten times that.
//!
//! *Bounds of blocks.* For each block the library keeps the weight w and length of the document m with the
//! greatest tf, where tf is w / (w + n) with n the norm under the average length `a` of the segment. We score
//! under the average `A` of all live documents, where another document d of the block may be the best. A norm
//! is K1 (1 - B + B l / average), so from a to A it changes by a factor between 1 and a / A. If A < a, norms
//! grow, by at most a / A: the tf of d under A is at most its tf under a, which is at most that of m under a,
//! which is at most a / A times that of m under A. If A > a, norms shrink, by at most A / a: the tf of d
//! under A is at most A / a times its tf under a, which is at most that of m under a, which is at most that
//! of m under A. Either way the best tf is at most max(a / A, A / a) times what the library takes for the
//! best.
//!
//! *Bound of a term.* For a whole term the library takes the tf of the greatest weight in the longest
//! document it can represent. Lengths are rounded down when they are encoded, so a real tf can be above it;
//! by how much is computed from all codes.

use tantivy::fieldnorm::FieldNormReader;
use tantivy::query::Bm25StatisticsProvider;
use tantivy::query::{BooleanQuery, BoostQuery, EnableScoring, Occur, Query, TermQuery, Weight};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, Score, Searcher, Term};

use super::cancel::CancelCheck;
use super::deleted::DeletedDocs;
use super::exact::PartPlan;
use super::part::TextPart;
use super::plan::{ClauseTerms, ScoredClause, ScoringPlan};
use super::score::{CollectionStats, K1, idf, norm};
use super::segment::{Segment, field};
use super::top_hits::TopHits;
use crate::error::Result;

/// The relative error allowed for the scores of the library.
const MARGIN: f64 = 1e-4;

/// A query compiled for the library, for all segments.
pub(super) struct PrunedQuery {
    weight: Box<dyn Weight>,
    /// The factor from a score of the library to ours.
    scale: f64,
    /// The factor by which the bound of a term may be too low.
    slack: f64,
    average: f64,
}

impl PrunedQuery {
    /// Compiles a plan that can be pruned.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if the library refuses it.
    pub(super) fn of(plan: &ScoringPlan, searcher: &Searcher) -> Result<Self> {
        // The library's own idf is useless near 0, where `f32` has no digits left. All terms get the idf of a
        // term no document has, and a boost that turns it into ours.
        let common = idf(plan.collection.documents, 0) * (K1 + 1.0);
        let mut clauses: Vec<(Occur, Box<dyn Query>)> = Vec::with_capacity(plan.clauses.len());
        let mut scale = 1.0;
        let is_term = |unit: &&ScoredClause| matches!(unit.what, ClauseTerms::Term(_));
        let terms = plan.clauses.iter().filter(is_term).count();
        for unit in &plan.clauses {
            let ClauseTerms::Term(term) = &unit.what else { continue };
            let term = Term::from_field_text(field(), &term.term);
            let query = TermQuery::new(term, IndexRecordOption::WithFreqs);
            let occur = if unit.must { Occur::Must } else { Occur::Should };
            let factor = unit.value / common;
            if terms == 1 {
                scale = factor;
                clauses.push((occur, Box::new(query)));
            } else {
                clauses.push((occur, Box::new(BoostQuery::new(Box::new(query), to_f32(factor)))));
            }
        }
        let scoring = EnableScoring::enabled_from_statistics_provider(&plan.collection, searcher);
        let weight = match clauses.as_slice() {
            [(_, query)] => query.weight(scoring)?,
            _ => BooleanQuery::new(clauses).weight(scoring)?,
        };
        let average = plan.collection.average_length();
        Ok(Self { weight, scale, slack: term_slack(average), average })
    }

    /// Offers the documents of a segment that can be among the best, except those in `known` (ascending), which
    /// were offered before. No other document may match a clause that is no single term. Returns the number of
    /// documents scored.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if the segment cannot be read; `ERR_TIMEOUT`.
    pub(super) fn search(
        &self,
        plan: &ScoringPlan,
        locals: &PartPlan<'_>,
        (segment, gone, known): (&Segment, &DeletedDocs, &[u32]),
        best: &mut TopHits,
        watch: &CancelCheck<'_>,
    ) -> Result<u64> {
        let part = TextPart::Segment(segment, gone);
        let slack = self.slack.max(block_slack(segment, self.average));
        // Scores the library may skip: the threshold, lowered by all possible errors.
        let threshold = |best: &TopHits| match best.threshold() {
            Some(floor) => to_f32(floor / self.scale / slack * (1.0 - MARGIN)),
            None => Score::MIN,
        };
        let mut failed = None;
        let mut scored = 0_u64;
        let mut offer = |document: DocId, score: Score, best: &mut TopHits| -> Result<()> {
            let at_most = f64::from(score) * self.scale * (1.0 + MARGIN);
            if gone.contains(document)
                || best.threshold().is_some_and(|floor| at_most < floor)
                || known.binary_search(&document).is_ok()
            {
                return Ok(());
            }
            scored = scored.saturating_add(1);
            if let Some(score) = locals.score(plan, part, document, watch)? {
                best.offer(score, part.sequence(document)?);
            }
            Ok(())
        };
        let first = threshold(best);
        self.weight.for_each_pruning(
            first,
            segment.reader(),
            &mut |document, score| match offer(document, score, best) {
                Ok(()) => threshold(best),
                Err(error) => {
                    failed = Some(error);
                    Score::INFINITY
                }
            },
        )?;
        failed.map_or(Ok(scored), Err)
    }
}

/// The factor by which the bound of a block may be too low, see the module documentation.
#[expect(clippy::cast_precision_loss, reason = "lengths are far below 2^52")]
fn block_slack(segment: &Segment, average: f64) -> f64 {
    let own = segment.length() as f64 / f64::from(segment.documents().max(1));
    (own / average).max(average / own).max(1.0)
}

/// The factor by which the bound of a term may be too low, see the module documentation.
fn term_slack(average: f64) -> f64 {
    let share = |weight: f64, code: u8| weight / (weight + norm(code, average));
    let bound = share(f64::from(FieldNormReader::id_to_fieldnorm(u8::MAX)), u8::MAX);
    let codes = 0..=u8::MAX;
    let greatest = codes.map(|code| {
        // No document with this code is longer, and no weight is greater than the document's length.
        let longest = code.checked_add(1).map_or(u32::MAX, FieldNormReader::id_to_fieldnorm);
        share(f64::from(longest.min(u8::MAX.into())), code)
    });
    (greatest.fold(0.0, f64::max) / bound).max(1.0)
}

#[expect(clippy::cast_possible_truncation, reason = "the margin has room for it")]
fn to_f32(value: f64) -> Score {
    value as Score
}

/// The average length is ours; the idf of each term is set by a boost.
impl Bm25StatisticsProvider for CollectionStats {
    fn total_num_tokens(&self, _: Field) -> tantivy::Result<u64> {
        Ok(self.total_length)
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        Ok(self.documents)
    }

    fn doc_freq(&self, _: &Term) -> tantivy::Result<u64> {
        Ok(0)
    }
}
