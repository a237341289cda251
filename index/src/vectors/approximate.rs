//! What a search that may miss something has to offer. Knows nothing of how it is done.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::code::Probe;
use super::rows::Rows;

/// Which rows may be answered.
pub(crate) type Allow<'a> = &'a dyn Fn(u32) -> bool;

/// A cache that finds most of the nearest rows without looking at all.
///
/// It never decides: whoever asks compares the numbers of what was found, and asks about each grain.
pub(crate) trait Approximate: Debug + Send + Sync {
    /// Rows from 0 to here are known, but for the holes.
    fn covers(&self) -> u32;

    /// Rows below `covers` that a search does not find, ascending.
    fn holes(&self) -> &[u32];

    /// About the `width` nearest rows that are allowed, nearest first. A greater width misses less
    /// and takes longer.
    fn search(
        &self,
        rows: &Rows,
        probe: &Probe,
        width: usize,
        allow: Option<Allow<'_>>,
    ) -> Vec<u32>;

    /// The same with all of these rows; none where it was stopped.
    fn extended(&self, rows: &Rows, effort: &Effort<'_>) -> Option<Arc<dyn Approximate>>;

    /// As bytes, without its dead rows.
    fn to_bytes(&self, rows: &Rows) -> Vec<u8>;

    /// Whether every live row can be reached.
    fn audit(&self, rows: &Rows) -> Audit;

    /// Bytes of memory, about.
    fn bytes(&self) -> usize;
}

/// What background work may take.
#[derive(Debug, Clone, Copy)]
pub struct Effort<'e> {
    /// Threads that build, 1 at least.
    pub threads: usize,
    /// Work ends soon after this is set, without a result.
    pub stop: &'e AtomicBool,
}

/// What an audit of a graph found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Audit {
    /// Live rows of the graph.
    pub rows: usize,
    /// Those of them that no path from the entry reaches.
    pub orphans: usize,
}
