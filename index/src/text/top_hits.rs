//! The candidates of a search, with the score a new one must reach, and the best hits among them. Knows nothing of
//! terms.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashMap};

use crate::error::Result;
use crate::posting::Sequence;

/// A hit of a search in an [`InvertedIndex`](super::InvertedIndex). Hits rank by descending score, at equal
/// scores by ascending address.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// The grain.
    pub sequence: Sequence,
    /// Its address, as returned by the filter.
    pub address: [u8; 32],
    /// Its score, above 0 and at most the maximum score of the query.
    pub score: f64,
}

/// The last [`Hit`] of a page of a [`PreparedSearch`](super::PreparedSearch), after which the next page
/// starts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SearchAfter {
    /// Its score, bit for bit.
    pub score: f64,
    /// Its address.
    pub address: [u8; 32],
}

/// Returns the address of a candidate for a [`PreparedSearch`](super::PreparedSearch), or `None` to reject
/// it.
pub type HitFilter<'a> = dyn FnMut(Sequence) -> Result<Option<[u8; 32]>> + 'a;

/// Candidates beyond which those that were overtaken are removed.
const FIRST_COMPACTION: usize = if cfg!(test) { 8 } else { 1024 };

/// Hits kept beyond the limit, of which some may be rejected without another search.
const SPARE_HITS: usize = if cfg!(test) { 1 } else { 2 };

/// The candidates that may be among the best hits: all whose score is reached by less than a number of others.
/// They are not judged before the search ends, then in the order of their scores, so that few are. Of grains with
/// one score all are candidates, since their addresses decide: 16 bytes for each.
pub(super) struct TopHits {
    candidates: Vec<(f64, Sequence)>,
    /// The best scores, the worst of them on top.
    scores: BinaryHeap<Reverse<Ranked>>,
    /// The number of candidates to keep.
    most: usize,
    after: Option<SearchAfter>,
    /// The number of candidates at which those below the threshold are removed.
    compact_at: usize,
}

/// Candidates that were judged, so that none is judged twice.
pub(super) type Judged = HashMap<Sequence, Option<[u8; 32]>>;

impl TopHits {
    /// Collects candidates for the best `limit` hits after `after`, in the search of this number, from 0: a
    /// later one keeps more, the third all.
    pub(super) fn new(limit: usize, after: Option<SearchAfter>, round: u32) -> Self {
        let most = match round {
            0 => limit.saturating_add(SPARE_HITS),
            1 => limit.saturating_add(SPARE_HITS).saturating_mul(16),
            _ => usize::MAX,
        };
        let compact_at = most.saturating_mul(2).saturating_add(FIRST_COMPACTION);
        Self { candidates: Vec::new(), scores: BinaryHeap::new(), most, after, compact_at }
    }

    /// The number of candidates it keeps, beside those of equal scores.
    pub(super) fn most(&self) -> u64 {
        u64::try_from(self.most).unwrap_or(u64::MAX)
    }

    /// The score a candidate must reach; `None` while there is room.
    pub(super) fn threshold(&self) -> Option<f64> {
        let worst = self.scores.peek().filter(|_| self.scores.len() >= self.most)?;
        Some(worst.0.0)
    }

    /// Adds a candidate if it ranks high enough.
    pub(super) fn offer(&mut self, score: f64, sequence: Sequence) {
        if self.threshold().is_some_and(|floor| score < floor) {
            return;
        }
        match self.after {
            Some(after) if score > after.score => return,
            // It may be before the page: it takes no other's place.
            Some(after) if score == after.score => {}
            _ => self.add_score(score),
        }
        if self.candidates.len() >= self.compact_at {
            if let Some(floor) = self.threshold() {
                self.candidates.retain(|(score, _)| *score >= floor);
            }
            self.compact_at = self.compact_at.max(self.candidates.len().saturating_mul(2));
        }
        self.candidates.push((score, sequence));
    }

    fn add_score(&mut self, score: f64) {
        if self.scores.len() < self.most {
            self.scores.push(Reverse(Ranked(score)));
        } else if let Some(mut worst) = self.scores.peek_mut()
            && score > worst.0.0
        {
            *worst = Reverse(Ranked(score));
        }
    }

    /// The best hits, best first; `None` if so many candidates were rejected that some which were dropped may be
    /// among them. Candidates of one score are judged together, since their addresses decide.
    ///
    /// # Errors
    /// Those of the filter.
    pub(super) fn finish(
        mut self,
        limit: usize,
        judged: &mut Judged,
        judge: &mut HitFilter<'_>,
    ) -> Result<Option<Vec<Hit>>> {
        self.candidates.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        let floor = self.threshold();
        let mut hits = Vec::new();
        for equal in self.candidates.chunk_by(|a, b| a.0 == b.0) {
            let low = |(score, _): &(f64, Sequence)| floor.is_some_and(|floor| *score < floor);
            if hits.len() >= limit || equal.first().is_none_or(low) {
                break;
            }
            let first = hits.len();
            for (score, sequence) in equal {
                let address = match (judged.get(sequence), floor) {
                    (Some(known), _) => *known,
                    // There may be another round.
                    (None, Some(_)) => *judged.entry(*sequence).or_insert(judge(*sequence)?),
                    (None, None) => judge(*sequence)?,
                };
                let hit = |address| Hit { sequence: *sequence, address, score: *score };
                let is_after = |hit: &Hit| self.after.is_none_or(|after| ranks_after(hit, &after));
                hits.extend(address.map(hit).filter(is_after));
                if hits.len() >= limit.saturating_mul(2).saturating_add(FIRST_COMPACTION) {
                    sort_from(&mut hits, first);
                    hits.truncate(limit);
                }
            }
            sort_from(&mut hits, first);
        }
        let complete = hits.len() >= limit || floor.is_none();
        hits.truncate(limit);
        Ok(complete.then_some(hits))
    }
}

/// Sorts the hits from this one on, the best first.
fn sort_from(hits: &mut [Hit], first: usize) {
    if let Some(new) = hits.get_mut(first..) {
        new.sort_unstable_by(by_rank);
    }
}

fn ranks_after(hit: &Hit, after: &SearchAfter) -> bool {
    let by_score = after.score.total_cmp(&hit.score);
    by_score.then_with(|| hit.address.cmp(&after.address)) == Ordering::Greater
}

/// Orders hits from best to worst.
fn by_rank(a: &Hit, b: &Hit) -> Ordering {
    let by_score = b.score.total_cmp(&a.score);
    by_score.then_with(|| a.address.cmp(&b.address)).then_with(|| a.sequence.cmp(&b.sequence))
}

/// A score in a heap.
struct Ranked(f64);

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ranked {}
