//! The interface of an approximate index. Knows nothing of its implementation.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::quantise::Probe;
use super::rows::VectorRows;

/// Returns `true` for rows that may be in the result.
pub(crate) type RowFilter<'a> = &'a dyn Fn(u32) -> bool;

/// A cache that finds most of the nearest rows without reading all.
///
/// It never decides: the caller compares the full numbers of the rows found, and filters each grain.
pub(crate) trait ApproximateIndex: Debug + Send + Sync {
    /// The upper bound, exclusive, of the rows it covers, except for the holes.
    fn covers(&self) -> u32;

    /// Rows below `covers` that a search does not find, ascending.
    fn holes(&self) -> &[u32];

    /// Searches for about the `width` nearest allowed rows, nearest first. `width` is the parameter ef: a
    /// greater one misses less and takes longer.
    fn search(
        &self,
        rows: &VectorRows,
        probe: &Probe,
        width: usize,
        allow: Option<RowFilter<'_>>,
    ) -> Vec<u32>;

    /// Extends the graph by the rows it does not have; `None` if it was stopped.
    fn extended(
        &self,
        rows: &VectorRows,
        effort: &BuildOptions<'_>,
    ) -> Option<Arc<dyn ApproximateIndex>>;

    /// Encodes the graph, without its dead rows.
    fn to_bytes(&self, rows: &VectorRows) -> Vec<u8>;

    /// Checks that every live row can be reached.
    fn audit(&self, rows: &VectorRows) -> GraphAudit;

    /// Approximate bytes of memory.
    fn bytes(&self) -> usize;
}

/// The resources of background work, given to a [`SpaceWork`](super::SpaceWork).
#[derive(Debug, Clone, Copy)]
pub struct BuildOptions<'e> {
    /// The number of threads, at least 1.
    pub threads: usize,
    /// Set by the host to stop the work, which then soon ends without a result.
    pub stop: &'e AtomicBool,
}

/// The result of an audit of a graph, in [`SpaceStats`](super::SpaceStats).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GraphAudit {
    /// The number of live rows in the graph.
    pub rows: usize,
    /// The number of those that no path from the entry point reaches.
    pub orphans: usize,
}
