//! Reranking of the best answers: by age, by access, and for diversity.
//!
//! The best [`Rerank::POOL`] are considered, and no others are returned. Similarity is that of vectors if
//! both grains have one of the same model, else that of their terms.
//!
//! The order is chosen once, for the first page, and the rest of it is carried in the cursor: age, accesses
//! and an embedder may change between two pages, and the order would change with them.

use std::ops::ControlFlow;

use grainstore_cal::{Candidate, Diversity, RecallVisitor, Rerank, Score};
use grainstore_format::{ContentAddress, EpochMs, GrainRef, GrainType};
use grainstore_index::Sequence;

use super::cursor::{RankingKind, invalid_cursor};
use super::scan::{CandidateScan, ScanError};
use super::similarity::GrainSimilarity;
use crate::base::error::Result;
use crate::disk::blob::with_fields;

/// Share of its score that an old grain, or one never accessed, keeps.
const MIN_WEIGHT: f64 = 0.5;
/// Accesses that halve the distance to the full score; one an access half-life ago counts as half an access.
const ACCESSES_PER_HALVING: f64 = 4.0;
/// Leading bytes of a score that are kept in a cursor. The rest is cleared in every answer.
const SCORE_BYTES: usize = 4;
/// Time after which an access counts half.
const ACCESS_HALF_LIFE_MS: f64 = 30.0 * 86_400_000.0;

/// A candidate of the rerank.
struct RerankCandidate {
    address: ContentAddress,
    sequence: Sequence,
    score: Score,
}

/// Answers in their final order, with their scores; those read from a cursor have the total score only.
#[derive(Debug, Default)]
pub(super) struct RerankedOrder {
    answers: Vec<(Sequence, Score)>,
    /// For each answer that was returned, the number of answers up to and including it.
    returned: Vec<usize>,
}

impl CandidateScan<'_> {
    /// Passes the best answers of the scan to `visit` in reranked order.
    pub(super) fn reranked(
        &mut self,
        rerank: Rerank,
        visit: &mut RecallVisitor<'_>,
    ) -> Result<ControlFlow<()>, ScanError> {
        self.rank_by(RankingKind::Reranked)?;
        let left = self.rank().map(|rank| RerankedOrder::decode(&rank.statistics)).transpose()?;
        let goes_on = left.is_some();
        self.order = match left {
            Some(left) => left,
            None => self.chosen(rerank)?,
        };
        for at in 0..self.order.answers.len() {
            let Some((sequence, score)) = self.order.answers.get(at).copied() else { break };
            // Conditions on what may change without ending a grain are checked when its page is read.
            if goes_on && self.linked_by(None, sequence)?.is_none() {
                continue;
            }
            let Some(state) = self.state(sequence)? else { continue };
            self.order.returned.push(at.saturating_add(1));
            if self.show(sequence, Some((&state, score)), visit)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// State a cursor carries to the pages after the first `taken` answers: the rest of a chosen order, else
    /// the inputs of the scores.
    pub(super) fn carried(&mut self, taken: usize) -> Vec<u8> {
        match self.ranking {
            RankingKind::Reranked => self.order.encode_rest(taken),
            _ => std::mem::take(&mut self.statistics),
        }
    }

    /// Chooses the order of the best answers, without those below the minimum score.
    fn chosen(&mut self, rerank: Rerank) -> Result<RerankedOrder, ScanError> {
        let mut pool = self.pool()?;
        self.weigh(rerank, &mut pool)?;
        if let Some(diversity) = rerank.diversity {
            pool = diversify(pool, diversity, &mut GrainSimilarity::new(self)?)?;
        }
        let floor = self.query.floor();
        let mut answers = Vec::with_capacity(pool.len());
        for RerankCandidate { sequence, score, .. } in pool {
            let score = Score { value: truncate_score(score.value), ..score };
            if floor.is_none_or(|floor| floor.admits(score.value)) {
                answers.push((sequence, score));
            }
        }
        Ok(RerankedOrder { answers, returned: Vec::new() })
    }

    /// The best answers in their original order.
    fn pool(&mut self) -> Result<Vec<RerankCandidate>, ScanError> {
        let (given, floor) = (std::mem::take(&mut self.given), self.floorless);
        self.floorless = true;
        let mut found: Vec<(ContentAddress, Score)> = Vec::new();
        let _ = self.plain(&mut |candidate: Candidate<'_>| {
            found.push((candidate.address, candidate.score));
            match found.len() < Rerank::POOL {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        })?;
        (self.given, self.floorless) = (given, floor);
        self.matched = 0;
        self.scores.clear();
        let mut pool = Vec::with_capacity(found.len());
        for (address, score) in found {
            if let Some(sequence) = self.view.sequence_of(&address)? {
                pool.push(RerankCandidate { address, sequence, score });
            }
        }
        Ok(pool)
    }

    /// Weights the scores by age and access, and sorts by them.
    fn weigh(&self, rerank: Rerank, pool: &mut [RerankCandidate]) -> Result<()> {
        if rerank.recency_ms.is_none() && !rerank.access {
            return Ok(());
        }
        let now = self.session.now();
        for pooled in pool.iter_mut() {
            if let Some(half_life) = rerank.recency_ms {
                // A consent and its withdrawal do not lose weight with age (OMS 8.10).
                let fades = |grain: &GrainRef<'_>| grain.grain_type() != GrainType::Consent;
                let read =
                    |blob: &[u8]| with_fields(blob, |grain| Ok(fades(grain).then(|| grain.time())));
                if let Some(time) = self.view.with_live_blob(pooled.sequence, read)? {
                    let left = decay(now, time, half_life as f64);
                    pooled.score.value *= MIN_WEIGHT + (1.0 - MIN_WEIGHT) * left;
                }
            }
            if rerank.access {
                let inner = self.session.store().inner();
                let access = inner.access_of(self.view, pooled.sequence)?;
                let last = access.last_accessed_at.unwrap_or_default();
                let reads = access.count as f64 * decay(now, last, ACCESS_HALF_LIFE_MS);
                let wanted = 1.0 - (-reads / ACCESSES_PER_HALVING).exp2();
                pooled.score.value *= MIN_WEIGHT + (1.0 - MIN_WEIGHT) * wanted;
            }
        }
        pool.sort_by(|a, b| {
            b.score.value.total_cmp(&a.score.value).then(a.address.cmp(&b.address))
        });
        Ok(())
    }
}

impl RerankedOrder {
    /// Encodes the order after the first `taken` answers: a byte with the width of sequences, then for each
    /// answer its sequence and the first bytes of its score.
    fn encode_rest(&self, taken: usize) -> Vec<u8> {
        let from = taken.checked_sub(1).and_then(|last| self.returned.get(last)).copied();
        let left = self.answers.get(from.unwrap_or(0)..).unwrap_or_default();
        let last = left.iter().map(|(sequence, _)| sequence.get()).max().unwrap_or(0);
        let narrow = usize::try_from(last.leading_zeros() / 8).unwrap_or(0);
        let width = u64::BITS.div_ceil(8).saturating_sub(last.leading_zeros() / 8);
        let mut bytes = vec![u8::try_from(width).unwrap_or(u8::MAX)];
        for (sequence, score) in left {
            bytes.extend(sequence.get().to_be_bytes().iter().skip(narrow));
            bytes.extend(score.value.to_bits().to_be_bytes().iter().take(SCORE_BYTES));
        }
        bytes
    }

    /// Decodes what [`RerankedOrder::encode_rest`] wrote.
    ///
    /// # Errors
    /// `ERR_CURSOR` for other bytes.
    fn decode(bytes: &[u8]) -> Result<Self> {
        let (width, rows) = bytes.split_first().ok_or_else(invalid_cursor)?;
        let size = usize::from(*width).saturating_add(SCORE_BYTES);
        let number = |bytes: &[u8]| bytes.iter().fold(0, |all, byte| (all << 8) | u64::from(*byte));
        let rows = rows.chunks(size).map(|row| {
            let (place, score) =
                row.split_at_checked(usize::from(*width)).ok_or_else(invalid_cursor)?;
            let whole = score.len() == SCORE_BYTES && place.len() <= 8;
            let value = f64::from_bits(number(score) << 32);
            whole
                .then(|| (Sequence::new(number(place)), total_only(value)))
                .ok_or_else(invalid_cursor)
        });
        Ok(Self { answers: rows.collect::<Result<_>>()?, returned: Vec::new() })
    }
}

/// A score of which only the total is known.
fn total_only(value: f64) -> Score {
    Score { value, ..Score::STRUCTURAL }
}

/// A score rounded to the bytes a cursor keeps, so that all pages show the same.
fn truncate_score(value: f64) -> f64 {
    f64::from_bits(value.to_bits() & (u64::MAX << 32))
}

/// The share left now of something that is halved in each half-life.
fn decay(now: EpochMs, since: EpochMs, half_life_ms: f64) -> f64 {
    let age = now.get().saturating_sub(since.get()).max(0) as f64;
    if half_life_ms > 0.0 { (-age / half_life_ms).exp2() } else { 0.0 }
}

/// Selects answers so that none is too similar to an earlier one.
fn diversify(
    pool: Vec<RerankCandidate>,
    by: Diversity,
    like: &mut GrainSimilarity<'_>,
) -> Result<Vec<RerankCandidate>, ScanError> {
    let best = pool.first().map_or(0.0, |pooled| pooled.score.value);
    let mut left = pool;
    let mut chosen: Vec<RerankCandidate> = Vec::with_capacity(left.len());
    // For each remaining answer, its greatest similarity to a chosen one.
    let mut nearest = vec![0.0_f64; left.len()];
    while !left.is_empty() {
        let worth = |at: usize, pooled: &RerankCandidate| match by {
            Diversity::Mmr { lambda } => {
                let relevance = if best > 0.0 { pooled.score.value / best } else { 0.0 };
                lambda * relevance - (1.0 - lambda) * nearest.get(at).copied().unwrap_or(0.0)
            }
            Diversity::Threshold(_) => -(at as f64),
        };
        let worths = left.iter().enumerate().map(|(at, pooled)| (at, worth(at, pooled)));
        // Of equals the first, which is the better answer.
        let next = worths.reduce(|best, other| if other.1 > best.1 { other } else { best });
        let Some((next, _)) = next else { break };
        let pooled = left.remove(next);
        let likeness = nearest.remove(next);
        if matches!(by, Diversity::Threshold(most) if likeness > most) {
            continue;
        }
        let others: Vec<Sequence> = left.iter().map(|other| other.sequence).collect();
        for (near, nearest) in like.similarities(pooled.sequence, &others)?.iter().zip(&mut nearest)
        {
            *nearest = nearest.max(*near);
        }
        chosen.push(pooled);
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_an_order_is_read_as_it_was_written() {
        for last in [0, 255, 256, 70_000, u64::MAX] {
            let answers: Vec<(Sequence, Score)> = [(last, 0.7), (3, 0.123_456_789), (2, 0.0)]
                .map(|(at, value)| (Sequence::new(at), total_only(truncate_score(value))))
                .into();
            // One that no longer matched stood before the first that was shown.
            let order = RerankedOrder { answers: answers.clone(), returned: vec![2, 3] };
            assert_eq!(RerankedOrder::decode(&order.encode_rest(0)).unwrap().answers, answers);
            assert_eq!(RerankedOrder::decode(&order.encode_rest(1)).unwrap().answers, answers[2..]);
            assert_eq!(RerankedOrder::decode(&order.encode_rest(2)).unwrap().answers, []);
            let bytes = order.encode_rest(0);
            assert!(RerankedOrder::decode(&bytes[..bytes.len() - 1]).is_err());
        }
        assert!(RerankedOrder::decode(&[]).is_err() && RerankedOrder::decode(&[9; 40]).is_err());
        assert!(
            (truncate_score(0.7) - 0.7).abs() < 1e-6
                && truncate_score(0.7) <= 0.7
                && truncate_score(1.0) == 1.0
        );
    }

    #[test]
    fn a_cursor_has_room_for_the_longest_order() {
        let answers = vec![(Sequence::new(u64::MAX), total_only(0.5)); Rerank::POOL];
        let longest = RerankedOrder { answers, returned: vec![1] }.encode_rest(1).len();
        assert!(longest <= super::super::cursor::MAX_STATISTICS_BYTES, "{longest}");
    }
}
