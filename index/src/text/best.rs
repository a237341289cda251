//! The best answers so far, and who may still become one. Knows nothing of words.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::error::Result;
use crate::posting::Sequence;

/// An answer: the better, the higher its score; of one score, the smaller its address.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// The grain.
    pub sequence: Sequence,
    /// Its address, as the judge gave it.
    pub address: [u8; 32],
    /// Its score, above 0 and at most the ceiling of the question.
    pub score: f64,
}

/// The last answer of a page: the next page goes on after it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct After {
    /// Its score, bit for bit.
    pub score: f64,
    /// Its address.
    pub address: [u8; 32],
}

/// Says of a grain that could be an answer what its address is, or `None` if it is to be left out.
pub type Judge<'a> = dyn FnMut(Sequence) -> Result<Option<[u8; 32]>> + 'a;

/// The best answers so far.
pub(super) struct Best<'a, 'b> {
    /// The worst at the top.
    heap: BinaryHeap<Worst>,
    limit: usize,
    after: Option<After>,
    judge: &'a mut Judge<'b>,
}

impl<'a, 'b> Best<'a, 'b> {
    /// The best `limit` after a mark.
    pub(super) fn new(limit: usize, after: Option<After>, judge: &'a mut Judge<'b>) -> Self {
        Self { heap: BinaryHeap::new(), limit, after, judge }
    }

    /// The score an answer must reach to come in; `None` while there is room for any. Of this
    /// score itself, some come in and some do not.
    pub(super) fn floor(&self) -> Option<f64> {
        let worst = self.heap.peek().filter(|_| self.heap.len() >= self.limit)?;
        Some(worst.0.score)
    }

    /// Takes an answer in if it belongs there. The judge is asked only if it might.
    ///
    /// # Errors
    /// Those of the judge.
    pub(super) fn offer(&mut self, score: f64, sequence: Sequence) -> Result<()> {
        if self.limit == 0 || self.floor().is_some_and(|floor| score < floor) {
            return Ok(());
        }
        if self.after.is_some_and(|after| score > after.score) {
            return Ok(());
        }
        let Some(address) = (self.judge)(sequence)? else { return Ok(()) };
        let hit = Hit { sequence, address, score };
        if self.after.is_some_and(|after| !is_behind(&hit, &after)) {
            return Ok(());
        }
        if self.heap.len() < self.limit {
            self.heap.push(Worst(hit));
        } else if let Some(mut worst) = self.heap.peek_mut()
            && rank(&hit, &worst.0) == Ordering::Less
        {
            *worst = Worst(hit);
        }
        Ok(())
    }

    /// The answers, best first.
    pub(super) fn finish(self) -> Vec<Hit> {
        self.heap.into_sorted_vec().into_iter().map(|worst| worst.0).collect()
    }
}

fn is_behind(hit: &Hit, after: &After) -> bool {
    let by_score = after.score.total_cmp(&hit.score);
    by_score.then_with(|| hit.address.cmp(&after.address)) == Ordering::Greater
}

/// The better answer is the lesser.
fn rank(a: &Hit, b: &Hit) -> Ordering {
    let by_score = b.score.total_cmp(&a.score);
    by_score.then_with(|| a.address.cmp(&b.address)).then_with(|| a.sequence.cmp(&b.sequence))
}

/// An answer in a heap whose greatest is the worst.
struct Worst(Hit);

impl Ord for Worst {
    fn cmp(&self, other: &Self) -> Ordering {
        rank(&self.0, &other.0)
    }
}

impl PartialOrd for Worst {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Worst {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Worst {}
