//! Snapshots of all spaces, and searches in them. Knows nothing of later changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::Error;
use crate::posting::Sequence;

use super::neighbour::{Neighbour, SearchMethod};
use super::query::QueryVector;
use super::space::{Space, Vector};
use super::space_index::{SpaceIndex, SpaceStats};
use super::top_neighbours::{NeighbourFilter, TopNeighbours};

/// An immutable snapshot of all spaces of a [`VectorIndex`](super::VectorIndex); cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct VectorView {
    pub(crate) spaces: Arc<BTreeMap<Space, SpaceIndex>>,
}

/// A query for nearest neighbours in a [`VectorIndex`](super::VectorIndex).
#[derive(Debug, Clone, Copy)]
pub struct NearestQuery<'a> {
    /// The vector whose neighbours are wanted.
    pub vector: &'a Vector,
    /// The most grains to return.
    pub limit: usize,
    /// The grains to search among, in any order; `None` for all.
    pub within: Option<&'a [Sequence]>,
    /// The thoroughness of the search.
    pub care: SearchEffort,
}

/// The thoroughness of a search in a [`VectorIndex`](super::VectorIndex).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SearchEffort {
    /// A scan where it is fast enough, else the graph.
    #[default]
    Usual,
    /// Always a scan of all rows, or of those of the given grains: the result is exact.
    Exact,
    /// The graph wherever there is one, with this ef (the number of rows kept in mind).
    Ef(usize),
}

/// The result of a search in a [`VectorIndex`](super::VectorIndex), and the method used.
#[derive(Debug, Clone, PartialEq)]
pub struct NearestAnswer {
    /// Nearest first, then by ascending address; each grain once, by its nearest part.
    pub near: Vec<Neighbour>,
    /// The method used.
    pub way: SearchMethod,
}

impl VectorView {
    /// Returns the grains nearest to a vector. A space without vectors has none.
    ///
    /// Every grain returned was accepted by `judge` in this call, and its score is computed from its full
    /// numbers. Results by [`SearchMethod::Exact`] are those of a scan; a graph may miss some.
    ///
    /// # Errors
    /// `ERR_DIMENSION`, `ERR_SCHEMA`: the vector does not fit this space. The errors of `judge`.
    pub fn search<E: From<Error>>(
        &self,
        space: &Space,
        ask: &NearestQuery<'_>,
        judge: NeighbourFilter<'_, E>,
    ) -> Result<NearestAnswer, E> {
        let query = QueryVector::new(space, ask.vector)?;
        let Some(shelf) = self.spaces.get(space) else {
            return Ok(NearestAnswer { near: Vec::new(), way: SearchMethod::Exact { rows: 0 } });
        };
        let mut best = TopNeighbours::new(ask.limit, judge);
        let sorted: Vec<Sequence>;
        let within = match ask.within {
            Some(list) if !list.is_sorted_by(|a, b| a < b) => {
                let set: std::collections::BTreeSet<Sequence> = list.iter().copied().collect();
                sorted = set.into_iter().collect();
                Some(sorted.as_slice())
            }
            given => given,
        };
        let width = match ask.care {
            SearchEffort::Ef(width) => Some(width),
            _ => None,
        };
        let way = match (within, ask.care) {
            (None, SearchEffort::Exact) => shelf.scan(&query, &mut best, ask.limit)?,
            (None, _) => shelf.search_all(&query, &mut best, (ask.limit, width))?,
            (Some(list), SearchEffort::Exact) => {
                shelf.scan_within(list, &query, &mut best, ask.limit)?
            }
            (Some(list), _) => shelf.search_within(list, &query, &mut best, (ask.limit, width))?,
        };
        Ok(NearestAnswer { near: best.into_near(), way })
    }

    /// The closeness of two grains: that of their nearest parts.
    ///
    /// `None` if either has no vector in this space.
    ///
    /// ```
    /// use grainstore_index::Sequence;
    /// use grainstore_index::vectors::{Metric, Space, Vector, VectorIndex};
    ///
    /// let space = Space::new("a-model", 2, Metric::L2)?;
    /// let mut index = VectorIndex::new();
    /// index.add(&space, Sequence::new(0), 0, &Vector::new([0.0, 0.0])?)?;
    /// index.add(&space, Sequence::new(1), 0, &Vector::new([3.0, 0.0])?)?;
    /// let close = |a, b| index.view().closeness(&space, Sequence::new(a), Sequence::new(b));
    /// assert_eq!((close(0, 1), close(0, 2)), (Some(0.25), None));
    /// # Ok::<(), grainstore_index::Error>(())
    /// ```
    #[must_use]
    pub fn closeness(&self, space: &Space, a: Sequence, b: Sequence) -> Option<f32> {
        self.spaces.get(space)?.closeness(a, b)
    }

    /// Iterates over the spaces that have vectors.
    pub fn spaces(&self) -> impl Iterator<Item = &Space> {
        self.spaces.keys()
    }

    /// Statistics of a space; `None` if it has no vectors. The audit visits the whole graph.
    #[must_use]
    pub fn stats(&self, space: &Space) -> Option<SpaceStats> {
        Some(self.spaces.get(space)?.stats())
    }
}
