//! A layer of a graph: nodes, their links, and the search along them. Knows nothing of levels, and not how
//! links are chosen.

use std::collections::HashMap;

use super::quantise::Probe;
use super::rows::{VectorRows, bit_of};

/// Pads a list of links.
const NO_LINK: u32 = u32::MAX;

/// Nodes and links. All lists of links have the same capacity.
#[derive(Debug, Clone)]
pub(crate) struct Layer {
    max_degree: usize,
    links: Vec<u32>,
    node_rows: NodeRows,
}

/// The rows of the nodes.
#[derive(Debug, Clone)]
enum NodeRows {
    /// Each node is the row of the same number: the bottom layer, which has all rows.
    Same,
    /// A subset of the rows.
    Some { rows: Vec<u32>, nodes: HashMap<u32, u32> },
}

/// A visited node, and its similarity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ScoredNode {
    pub(crate) similarity: f32,
    pub(crate) node: u32,
}

impl Layer {
    /// The bottom layer, which has all rows.
    pub(crate) fn bottom(room: usize) -> Self {
        Self { max_degree: room, links: Vec::new(), node_rows: NodeRows::Same }
    }

    /// An upper layer, which has some rows.
    pub(crate) fn upper(room: usize) -> Self {
        let names = NodeRows::Some { rows: Vec::new(), nodes: HashMap::new() };
        Self { max_degree: room, links: Vec::new(), node_rows: names }
    }

    /// The number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.links.len() / self.max_degree.max(1)
    }

    /// All nodes.
    pub(crate) fn nodes(&self) -> std::ops::Range<u32> {
        0..u32::try_from(self.len()).unwrap_or(u32::MAX)
    }

    /// The most links of a node.
    pub(crate) fn max_degree(&self) -> usize {
        self.max_degree
    }

    /// Approximate bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        let names = match &self.node_rows {
            NodeRows::Same => 0,
            NodeRows::Some { rows, .. } => rows.len().saturating_mul(3),
        };
        self.links.len().saturating_add(names).saturating_mul(size_of::<u32>())
    }

    /// The row of a node.
    pub(crate) fn row(&self, node: u32) -> u32 {
        match &self.node_rows {
            NodeRows::Same => node,
            NodeRows::Some { rows, .. } => get(rows, node).copied().unwrap_or(NO_LINK),
        }
    }

    /// The node of a row; `None` if the row is not in this layer.
    pub(crate) fn node(&self, row: u32) -> Option<u32> {
        match &self.node_rows {
            NodeRows::Same => self.nodes().contains(&row).then_some(row),
            NodeRows::Some { nodes, .. } => nodes.get(&row).copied(),
        }
    }

    /// Adds the node of a row, without links; in the bottom layer all rows below it are added, too.
    pub(crate) fn add(&mut self, row: u32) {
        let next = self.nodes().end;
        let nodes = match &mut self.node_rows {
            NodeRows::Same => row.saturating_add(1).saturating_sub(next),
            NodeRows::Some { rows, nodes } => {
                if nodes.insert(row, next).is_some() {
                    nodes.insert(row, next.saturating_sub(1));
                    return;
                }
                rows.push(row);
                1
            }
        };
        let more = usize::try_from(nodes).unwrap_or(0).saturating_mul(self.max_degree);
        self.links.extend(std::iter::repeat_n(NO_LINK, more));
    }

    /// The neighbours of a node.
    pub(crate) fn links(&self, node: u32) -> &[u32] {
        let from = usize::try_from(node).unwrap_or(usize::MAX).saturating_mul(self.max_degree);
        let list = self.links.get(from..from.saturating_add(self.max_degree)).unwrap_or_default();
        let end = list.iter().position(|link| *link == NO_LINK).unwrap_or(list.len());
        list.get(..end).unwrap_or_default()
    }

    /// Sets the links of a node, as far as there is room.
    pub(crate) fn set(&mut self, node: u32, links: impl IntoIterator<Item = u32>) {
        let from = usize::try_from(node).unwrap_or(usize::MAX).saturating_mul(self.max_degree);
        let list =
            self.links.get_mut(from..from.saturating_add(self.max_degree)).unwrap_or_default();
        let links = links.into_iter().chain(std::iter::repeat(NO_LINK));
        for (slot, link) in list.iter_mut().zip(links) {
            *slot = link;
        }
    }

    /// Searches from `starts` towards the probe (SEARCH-LAYER of the HNSW paper, with ef = `width`). Returns
    /// the `width` nearest nodes visited, nearest first; each visited node is passed to `meet` once.
    pub(crate) fn search(
        &self,
        (rows, probe, reach): (&VectorRows, &Probe, f32),
        starts: impl IntoIterator<Item = u32>,
        width: usize,
        mut meet: impl FnMut(u32, f32),
    ) -> Vec<ScoredNode> {
        let mut seen = VisitedSet::new(self.len());
        let mut pool = CandidatePool::new(width);
        let mut fresh: Vec<u32> = starts.into_iter().filter(|node| seen.visit(*node)).collect();
        loop {
            for node in fresh.drain(..) {
                let row = self.row(node);
                let (codes, head) = rows.codes(row);
                let near = probe.estimate(codes, head, reach);
                meet(row, near);
                pool.offer(ScoredNode { similarity: near, node });
            }
            let Some(open) = pool.expand_next() else { break };
            fresh.extend(self.links(open).iter().filter(|node| seen.visit(**node)));
        }
        pool.nodes.into_iter().map(|(met, _)| met).collect()
    }
}

/// The visited nodes: a bit each.
struct VisitedSet(Vec<u64>);

impl VisitedSet {
    fn new(nodes: usize) -> Self {
        Self(vec![0; nodes.div_ceil(64)])
    }

    /// Marks a node visited; returns `true` the first time. A node that does not exist is never new.
    fn visit(&mut self, node: u32) -> bool {
        let (word, bit) = bit_of(node);
        let Some(word) = self.0.get_mut(word) else { return false };
        let first = *word & bit == 0;
        *word |= bit;
        first
    }
}

/// The nearest nodes visited, nearest first, each with a flag if it was expanded.
struct CandidatePool {
    ef: usize,
    nodes: Vec<(ScoredNode, bool)>,
    /// All before this index were expanded.
    first_unexpanded: usize,
}

impl CandidatePool {
    fn new(width: usize) -> Self {
        Self { ef: width, nodes: Vec::with_capacity(width.saturating_add(1)), first_unexpanded: 0 }
    }

    fn offer(&mut self, met: ScoredNode) {
        if self.nodes.len() >= self.ef {
            if self.nodes.last().is_none_or(|(last, _)| met.similarity <= last.similarity) {
                return;
            }
            self.nodes.pop();
        }
        let place = self.nodes.partition_point(|(other, _)| other.similarity >= met.similarity);
        self.nodes.insert(place, (met, false));
        self.first_unexpanded = self.first_unexpanded.min(place);
    }

    /// The nearest node that was not expanded yet; it is marked as expanded.
    fn expand_next(&mut self) -> Option<u32> {
        loop {
            let (met, followed) = self.nodes.get_mut(self.first_unexpanded)?;
            self.first_unexpanded = self.first_unexpanded.saturating_add(1);
            if !*followed {
                *followed = true;
                return Some(met.node);
            }
        }
    }
}

fn get(list: &[u32], index: u32) -> Option<&u32> {
    list.get(usize::try_from(index).ok()?)
}
