//! The best hits so far, with the score a new hit must reach. Knows nothing of terms.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

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

/// The best hits so far.
pub(super) struct TopHits<'a, 'b> {
    /// A heap with the worst hit on top.
    heap: BinaryHeap<WorstFirst>,
    limit: usize,
    after: Option<SearchAfter>,
    judge: &'a mut HitFilter<'b>,
}

impl<'a, 'b> TopHits<'a, 'b> {
    /// Collects the best `limit` hits after `after`.
    pub(super) fn new(
        limit: usize,
        after: Option<SearchAfter>,
        judge: &'a mut HitFilter<'b>,
    ) -> Self {
        Self { heap: BinaryHeap::new(), limit, after, judge }
    }

    /// The score a hit must reach to enter the result; `None` while there is room. At exactly this score the
    /// address decides.
    pub(super) fn threshold(&self) -> Option<f64> {
        let worst = self.heap.peek().filter(|_| self.heap.len() >= self.limit)?;
        Some(worst.0.score)
    }

    /// Adds a hit if it ranks high enough. The filter is called only if it might.
    ///
    /// # Errors
    /// Those of the filter.
    pub(super) fn offer(&mut self, score: f64, sequence: Sequence) -> Result<()> {
        if self.limit == 0 || self.threshold().is_some_and(|floor| score < floor) {
            return Ok(());
        }
        if self.after.is_some_and(|after| score > after.score) {
            return Ok(());
        }
        let Some(address) = (self.judge)(sequence)? else { return Ok(()) };
        let hit = Hit { sequence, address, score };
        if self.after.is_some_and(|after| !ranks_after(&hit, &after)) {
            return Ok(());
        }
        if self.heap.len() < self.limit {
            self.heap.push(WorstFirst(hit));
        } else if let Some(mut worst) = self.heap.peek_mut()
            && by_rank(&hit, &worst.0) == Ordering::Less
        {
            *worst = WorstFirst(hit);
        }
        Ok(())
    }

    /// The hits, best first.
    pub(super) fn finish(self) -> Vec<Hit> {
        self.heap.into_sorted_vec().into_iter().map(|worst| worst.0).collect()
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

/// A hit in a max-heap, where the worst is the greatest.
struct WorstFirst(Hit);

impl Ord for WorstFirst {
    fn cmp(&self, other: &Self) -> Ordering {
        by_rank(&self.0, &other.0)
    }
}

impl PartialOrd for WorstFirst {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for WorstFirst {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for WorstFirst {}
