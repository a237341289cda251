//! The graph as an index that a search asks: built, extended, searched, saved and audited.

use std::sync::Arc;

use super::approximate::{ApproximateIndex, BuildOptions, GraphAudit, RowFilter};
use super::graph::{HnswGraph, by_similarity};
use super::graph_file;
use super::layer::{Layer, ScoredNode};
use super::quantise::Probe;
use super::rows::VectorRows;

impl ApproximateIndex for HnswGraph {
    fn covers(&self) -> u32 {
        self.bottom().map_or(0, |bottom| bottom.nodes().end)
    }

    fn holes(&self) -> &[u32] {
        &self.holes
    }

    fn search(
        &self,
        rows: &VectorRows,
        probe: &Probe,
        width: usize,
        allow: Option<RowFilter<'_>>,
    ) -> Vec<u32> {
        let Some(bottom) = self.bottom() else { return Vec::new() };
        let width = width.clamp(1, bottom.len().max(1));
        let starts = self.descend(rows, probe, 0);
        let about = (rows, probe, self.max_squared_norm);
        let Some(allow) = allow else {
            let met = bottom.search(about, starts, width, |_, _| ());
            return met.into_iter().map(|met| met.node).collect();
        };
        let mut allowed = Vec::new();
        bottom.search(about, starts, width, |row, near| {
            if allow(row) {
                allowed.push(ScoredNode { similarity: near, node: row });
            }
        });
        allowed.sort_unstable_by(by_similarity);
        allowed.truncate(width);
        allowed.into_iter().map(|met| met.node).collect()
    }

    fn extended(
        &self,
        rows: &VectorRows,
        effort: &BuildOptions<'_>,
    ) -> Option<Arc<dyn ApproximateIndex>> {
        Some(Arc::new(self.with(rows, effort)?))
    }

    fn to_bytes(&self, rows: &VectorRows) -> Vec<u8> {
        graph_file::to_bytes(self, rows)
    }

    fn audit(&self, rows: &VectorRows) -> GraphAudit {
        let known = self.bottom().map_or(0..0, Layer::nodes);
        let is_known = |row: &u32| !rows.is_dead(*row) && self.holes.binary_search(row).is_err();
        GraphAudit { rows: known.filter(is_known).count(), orphans: self.orphans(rows).len() }
    }

    fn bytes(&self) -> usize {
        self.layers.iter().map(Layer::bytes).sum()
    }
}
