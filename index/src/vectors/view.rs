//! All spaces as of one moment, and how they are asked. Knows nothing of what comes later.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::Error;
use crate::posting::Sequence;

use super::best::{Best, Judge};
use super::near::Near;
use super::query::Query;
use super::shelf::{Shelf, SpaceStats};
use super::space::{Space, Vector};

/// A snapshot of all spaces. It never changes, and a clone costs next to nothing.
#[derive(Debug, Clone, Default)]
pub struct View {
    pub(crate) shelves: Arc<BTreeMap<Space, Shelf>>,
}

/// What is looked for.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// The vector whose neighbours are looked for.
    pub vector: &'a Vector,
    /// Grains that are wanted, at most.
    pub limit: usize,
    /// Only these grains, ascending; none for all of them.
    pub within: Option<&'a [Sequence]>,
    /// How thorough.
    pub care: Care,
}

/// How thorough a search is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Care {
    /// A scan where it is fast enough, else a graph.
    #[default]
    Usual,
    /// Always a scan of all rows, or of those of the given grains: nothing is missed.
    Exact,
    /// The graph wherever there is one, with this many rows kept in mind.
    Width(usize),
}

/// What was found, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Nearest first, then by ascending address; each grain once, by its nearest part.
    pub near: Vec<Near>,
    /// How it was found.
    pub way: Way,
}

/// How an answer was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Among this many rows, none left out.
    Exact {
        /// Rows.
        rows: usize,
    },
    /// By the graph.
    Graph {
        /// Rows the search kept in mind.
        width: usize,
        /// Rows compared one by one, because the graph does not have them yet.
        beside: usize,
    },
}

impl View {
    /// The grains nearest to a vector. A space nobody wrote to has none.
    ///
    /// Every grain answered was accepted by `judge` in this call, and its score comes from its
    /// numbers. [`Way::Exact`] answers are those of a scan; a graph may miss some.
    ///
    /// # Errors
    /// `ERR_DIMENSION`, `ERR_SCHEMA`: the vector is not of this space. Whatever `judge` fails with.
    pub fn search<E: From<Error>>(
        &self,
        space: &Space,
        ask: &Ask<'_>,
        judge: Judge<'_, E>,
    ) -> Result<Found, E> {
        let query = Query::new(space, ask.vector)?;
        let Some(shelf) = self.shelves.get(space) else {
            return Ok(Found { near: Vec::new(), way: Way::Exact { rows: 0 } });
        };
        let mut best = Best::new(ask.limit, judge);
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
            Care::Width(width) => Some(width),
            _ => None,
        };
        let way = match (within, ask.care) {
            (None, Care::Exact) => shelf.scan(&query, &mut best, ask.limit)?,
            (None, _) => shelf.anywhere(&query, &mut best, (ask.limit, width))?,
            (Some(list), Care::Exact) => shelf.scan_within(list, &query, &mut best, ask.limit)?,
            (Some(list), _) => shelf.within(list, &query, &mut best, (ask.limit, width))?,
        };
        Ok(Found { near: best.into_near(), way })
    }

    /// Whether two parts of memory are near: the closeness of the nearest parts of two grains.
    ///
    /// None where either has no vector in this space.
    #[must_use]
    pub fn between(&self, space: &Space, a: Sequence, b: Sequence) -> Option<f32> {
        self.shelves.get(space)?.between(a, b)
    }

    /// Every space with vectors in it.
    pub fn spaces(&self) -> impl Iterator<Item = &Space> {
        self.shelves.keys()
    }

    /// What is known of a space; none where nobody wrote to it. An audit walks the whole graph.
    #[must_use]
    pub fn stats(&self, space: &Space) -> Option<SpaceStats> {
        Some(self.shelves.get(space)?.stats())
    }
}
