//! A hierarchical navigable small world graph (HNSW, Malkov and Yashunin 2016) over the codes of rows. Knows
//! nothing of files or grains.
//!
//! The graph is a function of the rows and their order; the number of threads does not change it.

use super::layer::{Layer, ScoredNode};
use super::quantise::Probe;
use super::rows::{VectorRows, bit_of};

/// The links kept when a node's list is pruned.
pub(crate) const DEGREE: usize = 32;
/// The links a list has room for before it is pruned: pruning dominates the build time.
pub(crate) const MAX_DEGREE: usize = 48;
/// The two limits for the layers above the bottom.
pub(crate) const UPPER_DEGREE: usize = 16;
pub(crate) const UPPER_MAX_DEGREE: usize = 24;
/// One row in 2^4 is also in the layer above.
const LEVEL_BITS: u32 = 4;
/// The most levels: more than 2^32 rows need.
const MAX_LEVEL: u32 = 8;
/// The ef of the descent through the upper layers.
const DESCENT_EF: usize = 4;

/// The layers, the bottom first.
#[derive(Debug, Clone)]
pub(crate) struct HnswGraph {
    pub(crate) layers: Vec<Layer>,
    /// The greatest squared length among the first rows, for inner products.
    pub(crate) max_squared_norm: f32,
    pub(crate) holes: Vec<u32>,
}

impl HnswGraph {
    /// The bottom layer, which has all rows.
    pub(crate) fn bottom(&self) -> Option<&Layer> {
        self.layers.first()
    }

    /// Descends from the top to `level`, and returns the entry points into that layer.
    pub(crate) fn descend(&self, rows: &VectorRows, probe: &Probe, level: usize) -> Vec<u32> {
        let mut starts: Vec<u32> = Vec::new();
        let mut above: Option<&Layer> = None;
        for layer in self.layers.iter().skip(level).rev() {
            starts = match above {
                None => layer.nodes().take(1).collect(),
                Some(above) => {
                    let met = above.search(
                        (rows, probe, self.max_squared_norm),
                        starts,
                        DESCENT_EF,
                        |_, _| (),
                    );
                    nodes_below(above, layer, &met)
                }
            };
            above = Some(layer);
        }
        starts
    }

    /// The live rows that no path from the entry point reaches.
    pub(crate) fn orphans(&self, rows: &VectorRows) -> Vec<u32> {
        let Some(bottom) = self.bottom() else { return Vec::new() };
        let mut reached = vec![0_u64; bottom.len().div_ceil(64)];
        let mut open = Vec::new();
        let mut reach = |node: u32, open: &mut Vec<u32>| {
            let (word, bit) = bit_of(node);
            if let Some(word) = reached.get_mut(word)
                && *word & bit == 0
            {
                *word |= bit;
                open.push(node);
            }
        };
        if let Some(entry) = self.entry_point() {
            reach(entry, &mut open);
        }
        while let Some(node) = open.pop() {
            for link in bottom.links(node) {
                reach(*link, &mut open);
            }
        }
        let is_reached = |row: &u32| {
            let (word, bit) = bit_of(*row);
            reached.get(word).is_some_and(|word| word & bit != 0)
        };
        let known = bottom.nodes().filter(|row| self.holes.binary_search(row).is_err());
        known.filter(|row| !rows.is_dead(*row) && !is_reached(row)).collect()
    }

    /// The entry point: the row every search starts at.
    fn entry_point(&self) -> Option<u32> {
        let top = self.layers.last()?;
        Some(top.row(top.nodes().next()?))
    }
}

/// Orders nearest first, then by ascending node.
pub(crate) fn by_similarity(a: &ScoredNode, b: &ScoredNode) -> std::cmp::Ordering {
    b.similarity.total_cmp(&a.similarity).then(a.node.cmp(&b.node))
}

/// The nodes of the same rows in the layer below.
pub(crate) fn nodes_below(above: &Layer, layer: &Layer, met: &[ScoredNode]) -> Vec<u32> {
    met.iter().filter_map(|met| layer.node(above.row(met.node))).collect()
}

/// The highest layer of a row, drawn from a hash of its number alone.
pub(crate) fn level(row: u32) -> usize {
    let zeros = hash(row.into()).leading_zeros() / LEVEL_BITS;
    usize::try_from(zeros.min(MAX_LEVEL)).unwrap_or(0)
}

/// Hashes a number: spreads consecutive numbers over all bits.
fn hash(number: u64) -> u64 {
    let number = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}

#[cfg(test)]
#[path = "graph_tests.rs"]
mod tests;
