//! Rows and graph of one space. Knows nothing of other spaces.

use std::sync::Arc;

use super::approximate::{ApproximateIndex, GraphAudit};
use super::exact;
use super::neighbour::{self, SearchMethod};
use super::query::{QueryVector, similarity};
use super::rows::VectorRows;
use super::top_neighbours::TopNeighbours;
use crate::posting::Sequence;

/// The default ef of a search, and the least for each result requested.
const DEFAULT_EF: usize = 96;
const EF_PER_RESULT: usize = 1;
/// The growth of ef when too few results pass the filter, and its limit as a fraction of the rows.
const EF_GROWTH: usize = 4;
const MAX_EF_DIVISOR: usize = 8;

/// The index of one space. A clone is a cheap snapshot.
#[derive(Debug, Clone)]
pub(crate) struct SpaceIndex {
    pub(crate) rows: VectorRows,
    pub(crate) graph: Option<Arc<dyn ApproximateIndex>>,
    /// The number of rows up to which a full scan is as good as a graph.
    pub(crate) max_scanned: usize,
}

/// Statistics of a space.
///
/// ```
/// use grainstore_index::Sequence;
/// use grainstore_index::vectors::{Metric, Space, Vector, VectorIndex};
///
/// let space = Space::new("a-model", 2, Metric::Dot)?;
/// let mut index = VectorIndex::new();
/// index.add(&space, Sequence::new(0), 0, &Vector::new([1.0, 0.0])?)?;
/// let stats = index.view().stats(&space);
/// assert_eq!(stats.map(|stats| (stats.vectors, stats.audit.is_none())), Some((1, true)));
/// # Ok::<(), grainstore_index::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpaceStats {
    /// The number of vectors that can be found.
    pub vectors: usize,
    /// The number of removed vectors that still take memory.
    pub dead: usize,
    /// The number of vectors that the graph does not cover and that are compared one by one.
    pub unindexed: usize,
    /// Bytes of memory of the vectors and their codes.
    pub rows_bytes: usize,
    /// Bytes of memory of the graph.
    pub graph_bytes: usize,
    /// The audit of the graph; `None` without a graph.
    pub audit: Option<GraphAudit>,
}

impl SpaceIndex {
    pub(crate) fn new(rows: VectorRows, few: usize) -> Self {
        Self { rows, graph: None, max_scanned: few }
    }

    /// The rows the graph does not find.
    pub(crate) fn unindexed(&self) -> impl Iterator<Item = u32> + Clone + '_ {
        let (holes, covers) = match &self.graph {
            Some(graph) => (graph.holes(), graph.covers()),
            None => (&[][..], 0),
        };
        holes.iter().copied().chain(covers..self.rows.ids().end.max(covers))
    }

    pub(crate) fn stats(&self) -> SpaceStats {
        SpaceStats {
            vectors: self.rows.live_count(),
            dead: self.rows.dead_count(),
            unindexed: self.unindexed().count(),
            rows_bytes: self.rows.bytes(),
            graph_bytes: self.graph.as_ref().map_or(0, |graph| graph.bytes()),
            audit: self.graph.as_ref().map(|graph| graph.audit(&self.rows)),
        }
    }

    /// The closeness of the nearest parts of two grains; `None` if either has no vector here.
    pub(crate) fn closeness(&self, a: Sequence, b: Sequence) -> Option<f32> {
        let (a, b) = (self.rows.of(&[a]), self.rows.of(&[b]));
        let metric = self.rows.space().metric();
        let pairs = a.iter().flat_map(|a| b.iter().map(move |b| (*a, *b)));
        let ranks = pairs.filter_map(|(a, b)| {
            let (one, other) = (self.rows.values(a)?, self.rows.values(b)?);
            Some(neighbour::closeness(
                metric,
                neighbour::score(metric, similarity(metric, one, other)),
            ))
        });
        ranks.max_by(f32::total_cmp)
    }

    /// Scans all rows.
    pub(crate) fn scan<E>(
        &self,
        query: &QueryVector<'_>,
        best: &mut TopNeighbours<'_, E>,
        limit: usize,
    ) -> Result<SearchMethod, E> {
        exact::search(&self.rows, query, &self.rows.ids(), best, limit)?;
        Ok(SearchMethod::Exact { rows: self.rows.live_count() })
    }

    /// Searches the rows of some grains: by a scan, or by the graph if there are many. A list of m rows takes
    /// m steps, a graph of n rows some thousands divided by m / n.
    pub(crate) fn search_within<E>(
        &self,
        sequences: &[Sequence],
        query: &QueryVector<'_>,
        best: &mut TopNeighbours<'_, E>,
        (limit, width): (usize, Option<usize>),
    ) -> Result<SearchMethod, E> {
        let rows = self.rows.of(sequences);
        let cost = self.max_scanned.saturating_mul(self.rows.len());
        let many = width.is_some() || rows.len().saturating_mul(rows.len()) > cost;
        let Some(graph) = self.graph.as_ref().filter(|_| many) else {
            return self.scan_rows(&rows, query, best, limit);
        };
        let mut allowed = RowSet::new(self.rows.len());
        for row in &rows {
            allowed.set(*row);
        }
        let beside: Vec<u32> = self.unindexed().filter(|row| allowed.has(*row)).collect();
        let is_allowed = |row: u32| allowed.has(row);
        let room = (limit, width, rows.len());
        match self.search_graph(graph.as_ref(), query, best, room, &is_allowed, &beside)? {
            Some(way) => Ok(way),
            None => self.scan_rows(&rows, query, best, limit),
        }
    }

    /// Scans the rows of some grains.
    pub(crate) fn scan_within<E>(
        &self,
        sequences: &[Sequence],
        query: &QueryVector<'_>,
        best: &mut TopNeighbours<'_, E>,
        limit: usize,
    ) -> Result<SearchMethod, E> {
        self.scan_rows(&self.rows.of(sequences), query, best, limit)
    }

    fn scan_rows<E>(
        &self,
        rows: &[u32],
        query: &QueryVector<'_>,
        best: &mut TopNeighbours<'_, E>,
        limit: usize,
    ) -> Result<SearchMethod, E> {
        exact::search(&self.rows, query, &rows.iter().copied(), best, limit)?;
        Ok(SearchMethod::Exact { rows: rows.len() })
    }

    /// Searches all rows: by the graph if there is one and the rows are many.
    pub(crate) fn search_all<E>(
        &self,
        query: &QueryVector<'_>,
        best: &mut TopNeighbours<'_, E>,
        (limit, width): (usize, Option<usize>),
    ) -> Result<SearchMethod, E> {
        let few = self.rows.live_count() <= self.max_scanned && width.is_none();
        let Some(graph) = self.graph.as_ref().filter(|_| !few) else {
            return self.scan(query, best, limit);
        };
        let beside: Vec<u32> = self.unindexed().collect();
        let live = self.rows.live_count();
        let is_live = |row: u32| !self.rows.is_dead(row);
        let room = (limit, width, live);
        match self.search_graph(graph.as_ref(), query, best, room, &is_live, &beside)? {
            Some(way) => Ok(way),
            None => self.scan(query, best, limit),
        }
    }

    /// Searches by the graph with a growing ef; `None` if that would take longer than a scan.
    fn search_graph<E>(
        &self,
        graph: &dyn ApproximateIndex,
        query: &QueryVector<'_>,
        best: &mut TopNeighbours<'_, E>,
        (limit, width, may): (usize, Option<usize>, usize),
        allow: &dyn Fn(u32) -> bool,
        beside: &[u32],
    ) -> Result<Option<SearchMethod>, E> {
        let all = self.rows.len();
        let plain = may == all && self.rows.dead_count() == 0;
        let allow = (!plain).then_some(allow);
        // Scales ef so that as many allowed rows are visited as without a filter.
        let wide = |width: usize| width.saturating_mul(all) / may.max(1);
        let mut width = width.unwrap_or(DEFAULT_EF).max(limit.saturating_mul(EF_PER_RESULT));
        while wide(width) <= all / MAX_EF_DIVISOR {
            let found = graph.search(&self.rows, &query.probe, wide(width), allow);
            let among = found.iter().chain(beside).copied();
            exact::search(&self.rows, query, &among, best, limit)?;
            if best.is_full() {
                return Ok(Some(SearchMethod::Graph { width, beside: beside.len() }));
            }
            width = width.saturating_mul(EF_GROWTH);
        }
        Ok(None)
    }
}

/// A bitmap of rows.
struct RowSet(Vec<u64>);

impl RowSet {
    fn new(rows: usize) -> Self {
        Self(vec![0; rows.div_ceil(64)])
    }

    fn set(&mut self, row: u32) {
        let (word, bit) = super::rows::bit_of(row);
        if let Some(word) = self.0.get_mut(word) {
            *word |= bit;
        }
    }

    fn has(&self, row: u32) -> bool {
        let (word, bit) = super::rows::bit_of(row);
        self.0.get(word).is_some_and(|word| word & bit != 0)
    }
}
