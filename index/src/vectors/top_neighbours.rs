//! The best grains so far; each is filtered before it is kept. Knows nothing of vectors.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use crate::posting::Sequence;

use super::neighbour::Neighbour;
use super::rows::VectorKey;

/// Returns the address of a grain that may be in the result of a search in a
/// [`VectorIndex`](super::VectorIndex), by which equal scores are ordered, or `None` to reject it. Called once for each grain as long as the search remembers it, and always before the grain is
/// in the result.
pub type NeighbourFilter<'j, E> = &'j mut dyn FnMut(Sequence) -> Result<Option<[u8; 32]>, E>;

/// Greater scores first, then ascending addresses.
type NeighbourRank = (Reverse<TotalF32>, [u8; 32]);

/// The best `limit` grains of those offered, by score, then by address.
pub(crate) struct TopNeighbours<'j, E> {
    limit: usize,
    judge: NeighbourFilter<'j, E>,
    kept: BTreeMap<NeighbourRank, Neighbour>,
    /// The position of each grain seen; `None` if it was rejected.
    known: HashMap<Sequence, Option<NeighbourRank>>,
}

impl<'j, E> TopNeighbours<'j, E> {
    pub(crate) fn new(limit: usize, judge: NeighbourFilter<'j, E>) -> Self {
        Self { limit, judge, kept: BTreeMap::new(), known: HashMap::new() }
    }

    /// The least score that can still change the result; `None` while any can.
    pub(crate) fn floor(&self) -> Option<f32> {
        if self.kept.len() < self.limit {
            return None;
        }
        Some(self.kept.last_key_value().map_or(f32::INFINITY, |((Reverse(least), _), _)| least.0))
    }

    /// Returns `true` if `limit` grains are kept.
    pub(crate) fn is_full(&self) -> bool {
        self.kept.len() >= self.limit
    }

    /// Offers a row.
    pub(crate) fn offer(&mut self, key: VectorKey, score: f32) -> Result<(), E> {
        if self.floor().is_some_and(|floor| score < floor) {
            return Ok(());
        }
        let near = Neighbour { sequence: key.sequence, chunk: key.chunk, score };
        let address = match self.known.get(&key.sequence) {
            Some(None) => return Ok(()),
            Some(Some(place)) => {
                self.improve(*place, near);
                return Ok(());
            }
            None => (self.judge)(key.sequence)?,
        };
        let place = address.map(|address| (Reverse(TotalF32(score)), address));
        self.known.insert(key.sequence, place);
        if let Some(place) = place {
            self.kept.insert(place, near);
            if self.kept.len() > self.limit
                && let Some((_, out)) = self.kept.pop_last()
            {
                self.known.remove(&out.sequence);
            }
        }
        Ok(())
    }

    /// Considers another part of a grain that is kept: the nearer part counts, then the earlier one.
    fn improve(&mut self, place: NeighbourRank, near: Neighbour) {
        let better = |kept: &Neighbour| {
            (near.score, Reverse(near.chunk)) > (kept.score, Reverse(kept.chunk))
        };
        if self.kept.get(&place).is_some_and(better) {
            self.kept.remove(&place);
            let place = (Reverse(TotalF32(near.score)), place.1);
            self.kept.insert(place, near);
            self.known.insert(near.sequence, Some(place));
        }
    }

    /// The result, best first.
    pub(crate) fn into_near(self) -> Vec<Neighbour> {
        self.kept.into_values().collect()
    }
}

/// A score with a total order.
#[derive(Debug, Clone, Copy)]
struct TotalF32(f32);

impl Ord for TotalF32 {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for TotalF32 {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for TotalF32 {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for TotalF32 {}
