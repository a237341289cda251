//! A query prepared for search on a text index, with one set of statistics for all its results.

use super::cancel::CancelCheck;
use super::exact::{PartPlan, is_match};
use super::few_candidates::{candidates_beside_terms, few_candidates, score_all};
use super::inverted_index::InvertedIndex;
use super::lookup::{SeenFilter, TermLookup};
use super::part::TextPart;
use super::plan::{ResolvedTerm, ScoredClause, ScoringPlan};
use super::prune::PrunedQuery;
use super::query::FullTextQuery;
use super::scan::scan;
use super::score::CollectionStats;
use super::top_hits::{Hit, HitFilter, Judged, SearchAfter, TopHits};
use crate::error::{Error, Result};
use crate::posting::Sequence;

/// Above this number, documents are filtered by postings before they are scored.
const MIN_PREFILTERED_DOCUMENTS: usize = 8;

/// A query with the weights of its terms among all live documents.
///
/// A query without positive clauses matches nothing.
///
/// ```
/// # use grainstore_format::{Encoding, EpochMs, EventBuilder, GrainRef};
/// # use grainstore_index::Sequence;
/// # use grainstore_index::text::{Document, IndexedDocument, InvertedIndex, Language, Settings};
/// # let settings = Settings::new(Language::English);
/// # let mut index = InvertedIndex::new(settings.fingerprint())?;
/// # for (sequence, text) in [(0, "Alice plans her travels"), (1, "the budget of the travel")] {
/// #     let grain = EventBuilder::new(EpochMs::new(1_768_471_200_000), text).build()?;
/// #     let blob = grain.encode(Encoding::MessagePack)?;
/// #     let document = Document::of(&GrainRef::new(blob.bytes())?, &settings);
/// #     index.set(Sequence::new(sequence), Some(IndexedDocument::join(&document, &[])))?;
/// # }
/// use grainstore_index::text::FullTextQuery;
///
/// // `index` holds two events: "Alice plans her travels" and "the budget of the travel".
/// let search = index.prepare(&FullTextQuery::parse("trav* +plans", Language::English)?)?;
/// assert!(search.is_match(Sequence::new(0))? && !search.is_match(Sequence::new(1))?);
/// let score = search.score_of(Sequence::new(0))?;
/// assert!(score.is_some_and(|score| 0.0 < score && score <= search.max_score()));
/// let mut nobody = |_: Sequence| Ok(None);
/// assert_eq!(search.count_matches(&mut nobody, 100)?, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PreparedSearch<'t> {
    texts: &'t InvertedIndex,
    /// One plan for each query; a document matches at most one of them.
    plans: Vec<ScoringPlan>,
    watch: CancelCheck<'t>,
}

impl InvertedIndex {
    /// Prepares a query.
    ///
    /// # Errors
    /// `ERR_LIMIT` if a required or excluded prefix or fuzzy term expands to more than
    /// [`MAX_STRICT_EXPANSIONS`](super::MAX_STRICT_EXPANSIONS) terms; `ERR_INTEGRITY` if a segment cannot be
    /// read.
    pub fn prepare(&self, question: &FullTextQuery) -> Result<PreparedSearch<'_>> {
        self.prepare_cancellable(std::slice::from_ref(question), None, None, || false)
    }

    /// Like [`prepare`](Self::prepare), but scores by the [`PreparedSearch::statistics`] of an earlier search
    /// for the same query, so that the scores of both agree although documents came or went in between.
    ///
    /// # Errors
    /// Those of [`prepare`](Self::prepare); `ERR_INTEGRITY` if the statistics are of another query.
    pub fn prepare_with_statistics(
        &self,
        question: &FullTextQuery,
        statistics: &[u8],
    ) -> Result<PreparedSearch<'_>> {
        self.prepare_cancellable(std::slice::from_ref(question), Some(statistics), None, || false)
    }

    /// Like [`prepare`](Self::prepare), or, with statistics, like
    /// [`prepare_with_statistics`](Self::prepare_with_statistics), until `stop` returns true. `stop` is
    /// polled here and during the search, which then ends with `ERR_TIMEOUT`.
    ///
    /// In an encrypted store a query is translated once for each key holder whose grains are searched. A document
    /// has the tokens of one holder, so it matches at most one of these queries.
    ///
    /// With a `seen` filter, a term that at most [`RARE`](super::RARE) documents have counts by those the filter
    /// accepts: neither the hits it accepts nor their scores, [`PreparedSearch::max_score`] included, tell of
    /// such a term in others.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if a segment cannot be read, or the statistics are of another query; `ERR_TIMEOUT`.
    pub fn prepare_cancellable<'t>(
        &'t self,
        questions: &[FullTextQuery],
        statistics: Option<&[u8]>,
        seen: Option<&SeenFilter<'_>>,
        stop: impl Fn() -> bool + 't,
    ) -> Result<PreparedSearch<'t>> {
        let watch = CancelCheck::new(stop);
        let parts: Vec<TextPart<'_>> = self.parts().collect();
        let lookup = TermLookup { parts: &parts, watch: &watch, seen };
        let plans = |extent| -> Result<Vec<ScoringPlan>> {
            questions.iter().map(|question| ScoringPlan::of(question, extent, &lookup)).collect()
        };
        let Some(statistics) = statistics else {
            let plans = plans(self.collection_stats())?;
            return Ok(PreparedSearch { texts: self, plans, watch });
        };
        let mut numbers =
            statistics.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
        let other = || Error::integrity("the statistics are of another question");
        let (Some(documents), Some(length)) = (numbers.next(), numbers.next()) else {
            return Err(other());
        };
        let mut plans = plans(CollectionStats { documents, total_length: length })?;
        for unit in plans.iter_mut().flat_map(|plan| &mut plan.clauses) {
            let value = f64::from_bits(numbers.next().ok_or_else(other)?);
            unit.value = Some(value).filter(|value| value.is_finite()).ok_or_else(other)?;
        }
        if numbers.next().is_some() {
            return Err(other());
        }
        Ok(PreparedSearch { texts: self, plans, watch })
    }
}

impl PreparedSearch<'_> {
    /// Returns the best hits, best first: by descending score, at equal scores by ascending address. `after`
    /// is the last hit of the page before. The filter is called for grains that could still enter the result,
    /// the best first, and for none twice; a grain it rejects is not a hit. That does not change the scores of
    /// others, whose statistics count all documents.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if a segment cannot be read; those of the filter; `ERR_TIMEOUT`.
    pub fn search(
        &self,
        limit: usize,
        after: Option<SearchAfter>,
        judge: &mut HitFilter<'_>,
    ) -> Result<Vec<Hit>> {
        Ok(self.search_counted(limit, after, judge)?.0)
    }

    /// Like [`search`](Self::search), and also returns the number of documents scored one by one.
    pub(super) fn search_counted(
        &self,
        limit: usize,
        after: Option<SearchAfter>,
        judge: &mut HitFilter<'_>,
    ) -> Result<(Vec<Hit>, u64)> {
        let (mut scored, mut judged) = (0_u64, Judged::new());
        if limit == 0 {
            return Ok((Vec::new(), 0));
        }
        for round in 0.. {
            let mut best = TopHits::new(limit, after, round);
            for plan in &self.plans {
                scored = scored.saturating_add(self.search_plan(plan, &mut best)?);
            }
            if let Some(hits) = best.finish(limit, &mut judged, judge)? {
                return Ok((hits, scored));
            }
        }
        Ok((Vec::new(), scored))
    }

    fn search_plan(&self, plan: &ScoringPlan, best: &mut TopHits) -> Result<u64> {
        let Self { texts, watch, .. } = self;
        let mut pruned = None;
        let mut scored = 0_u64;
        for (at, part) in texts.parts().enumerate() {
            let locals = PartPlan::of(plan, at);
            if let Some(documents) = few_candidates(plan, &locals, part)? {
                score_all(&documents, &locals, plan, part, best, watch)?;
                scored = scored.saturating_add(documents.len() as u64);
                continue;
            }
            match part {
                TextPart::Segment(segment, gone)
                    if plan.can_prune() && plan.is_worth_pruning(best.most()) =>
                {
                    // The library knows single terms alone: what may match another clause is scored first.
                    let Some(others) = candidates_beside_terms(&locals, part)? else {
                        scan_best(plan, at, part, best, watch)?;
                        continue;
                    };
                    score_all(&others, &locals, plan, part, best, watch)?;
                    if pruned.is_none() {
                        pruned = Some(PrunedQuery::of(plan, texts.searcher())?);
                    }
                    let Some(pruned) = &pruned else { continue };
                    let known = (segment, gone, others.as_slice());
                    let more = pruned.search(plan, &locals, known, best, watch)?;
                    scored = scored.saturating_add(more).saturating_add(others.len() as u64);
                }
                _ => scan_best(plan, at, part, best, watch)?,
            }
        }
        Ok(scored)
    }

    /// Counts the grains that match, up to `at_most`.
    ///
    /// # Errors
    /// Those of [`search`](Self::search).
    pub fn count_matches(&self, judge: &mut HitFilter<'_>, at_most: usize) -> Result<usize> {
        let mut count = 0;
        let parts = || self.texts.parts().enumerate();
        for (plan, (at, part)) in self.plans.iter().flat_map(|p| parts().map(move |at| (p, at))) {
            if count >= at_most {
                break;
            }
            scan(plan, at, part, &self.watch, &mut |document, _| {
                count += usize::from(judge(part.sequence(document)?)?.is_some());
                Ok(count >= at_most)
            })?;
        }
        Ok(count.min(at_most))
    }

    /// The score of one grain, bit for bit as in [`search`](Self::search); `None` if it does not match.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if a segment cannot be read.
    pub fn score_of(&self, sequence: Sequence) -> Result<Option<f64>> {
        Ok(self.scores_of(&[sequence])?.pop().flatten())
    }

    /// The scores of several grains, in their order. Fastest if the sequences ascend.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if a segment cannot be read.
    pub fn scores_of(&self, sequences: &[Sequence]) -> Result<Vec<Option<f64>>> {
        let mut scores = vec![None; sequences.len()];
        for plan in &self.plans {
            self.add_scores(plan, sequences, &mut scores)?;
        }
        Ok(scores)
    }

    /// Sets the scores of the grains that match this plan.
    fn add_scores(
        &self,
        plan: &ScoringPlan,
        sequences: &[Sequence],
        scores: &mut [Option<f64>],
    ) -> Result<()> {
        let ascend = sequences.is_sorted();
        for (at, part) in self.texts.parts().enumerate() {
            let locals = PartPlan::of(plan, at);
            if locals.is_empty() {
                continue;
            }
            let mut from = 0;
            let mut here = Vec::new();
            for (sequence, score) in sequences.iter().zip(scores.iter_mut()) {
                from = if ascend { from } else { 0 };
                let document = part.document_behind(*sequence, &mut from)?;
                here.extend(document.map(|document| (document, score)));
            }
            here.sort_unstable_by_key(|(document, _)| *document);
            let mut having = match here.len() > MIN_PREFILTERED_DOCUMENTS {
                true => Some(locals.candidate_filter(part)?),
                false => None,
            };
            for (document, score) in here {
                if having.as_mut().is_none_or(|having| having.may_match(document)) {
                    let by_this = locals.score(plan, part, document, &self.watch)?;
                    *score = by_this.or(*score);
                }
            }
        }
        Ok(())
    }

    /// An upper bound on the number of matching documents that are seen.
    #[must_use]
    pub fn max_matches(&self) -> u64 {
        let found = self.units().filter(|unit| !unit.boosts);
        found.map(|unit| unit.what.max_documents()).fold(0, u64::saturating_add)
    }

    /// Returns `true` if a grain matches; faster than scoring it.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if a segment cannot be read; `ERR_TIMEOUT`.
    pub fn is_match(&self, sequence: Sequence) -> Result<bool> {
        for (at, part) in self.texts.parts().enumerate() {
            let Some(document) = part.document(sequence)? else { continue };
            for plan in &self.plans {
                if is_match(plan, (at, part), document, &self.watch)? {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        Ok(false)
    }

    /// An upper bound on scores: that of a document with every term at unlimited frequency. Terms no document
    /// has count too, so that a query of mostly unknown words has no hit near it. 0 if the query has no
    /// positive clause.
    #[must_use]
    pub fn max_score(&self) -> f64 {
        self.plans.iter().map(ScoringPlan::max_score).fold(0.0, f64::max)
    }

    /// The statistics the scores are computed from, for
    /// [`prepare_with_statistics`](super::InvertedIndex::prepare_with_statistics): 16 bytes, and 8 for each scored clause.
    #[must_use]
    pub fn statistics(&self) -> Vec<u8> {
        let extent = self
            .plans
            .first()
            .map_or_else(|| self.texts.collection_stats(), |plan| plan.collection);
        let CollectionStats { documents, total_length: length } = extent;
        let mut bytes = [documents.to_le_bytes(), length.to_le_bytes()].concat();
        bytes.extend(self.units().flat_map(|unit| unit.value.to_bits().to_le_bytes()));
        bytes
    }

    /// The terms that find documents, each once with its document frequency, for people. A phrase is listed as its
    /// terms.
    #[must_use]
    pub fn terms(&self) -> Vec<(String, u64)> {
        let told = |sought: &ResolvedTerm| (sought.term.to_string(), sought.doc_frequency);
        let mut terms: Vec<(String, u64)> = Vec::new();
        for term in self.units().filter(|unit| !unit.boosts).flat_map(|unit| unit.what.terms()) {
            if !terms.iter().any(|(known, _)| **known == *term.term) {
                terms.push(told(term));
            }
        }
        terms
    }

    fn units(&self) -> impl Iterator<Item = &ScoredClause> {
        self.plans.iter().flat_map(|plan| &plan.clauses)
    }
}

/// Offers all matches of a part.
fn scan_best(
    plan: &ScoringPlan,
    at: usize,
    part: TextPart<'_>,
    best: &mut TopHits,
    watch: &CancelCheck<'_>,
) -> Result<()> {
    scan(plan, at, part, watch, &mut |document, score| {
        best.offer(score, part.sequence(document)?);
        Ok(false)
    })?;
    Ok(())
}
