//! Insertion into a graph, in batches: first all rows of a batch search for their neighbours, then links are
//! set. Knows nothing of queries.
//!
//! No row of a batch sees the changes of another, so threads need no locks, and their number does not change
//! the graph. Rows of one batch are compared with each other directly.

use std::sync::atomic::Ordering;

use super::approximate::{ApproximateIndex, BuildOptions};
use super::graph::{self, DEGREE, HnswGraph, MAX_DEGREE, UPPER_DEGREE, UPPER_MAX_DEGREE};
use super::layer::{Layer, ScoredNode};
use super::quantise::{self, Probe};
use super::rows::VectorRows;

/// The ef of insertion: nodes kept in mind while a new row searches for its neighbours.
const CONSTRUCTION_EF: usize = 96;
/// The least and the most rows of a batch; in between it is one row for each `BATCH_DIVISOR` in the graph.
const MIN_BATCH_ROWS: usize = 64;
const MAX_BATCH_ROWS: usize = 512;
const BATCH_DIVISOR: usize = 8;
/// The most rounds of linking unreachable rows.
const MAX_REPAIR_ROUNDS: usize = 4;

/// A new row, with its neighbours in each of its layers, the bottom first.
struct NewNode {
    row: u32,
    neighbours: Vec<Vec<u32>>,
}

/// A link from a neighbour back to a new row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct BackLink {
    level: usize,
    to: u32,
    row: u32,
}

impl HnswGraph {
    /// Builds a graph of these rows; `None` if it was stopped.
    pub(crate) fn build(rows: &VectorRows, effort: &BuildOptions<'_>) -> Option<Self> {
        let squares = rows.ids().map(|row| rows.codes(row).1.square);
        let reach = squares.fold(0.0_f32, f32::max);
        let empty = Self {
            layers: vec![Layer::bottom(MAX_DEGREE)],
            max_squared_norm: reach,
            holes: Vec::new(),
        };
        empty.with(rows, effort)
    }

    /// Extends the graph by all rows it does not have; `None` if it was stopped.
    pub(crate) fn with(&self, rows: &VectorRows, effort: &BuildOptions<'_>) -> Option<Self> {
        let mut graph = self.clone();
        let fresh = rows.ids().skip(usize::try_from(self.covers()).unwrap_or(usize::MAX));
        let new: Vec<u32> =
            self.holes.iter().copied().chain(fresh).filter(|row| !rows.is_dead(*row)).collect();
        extend(&mut graph, rows, &new, effort)?;
        if let (Some(last), Some(bottom)) = (rows.ids().last(), graph.layers.first_mut()) {
            bottom.add(last);
        }
        graph.holes = Vec::new();
        link_orphans(&mut graph, rows);
        Some(graph)
    }
}

/// Adds rows. `None` if it was stopped; the graph is then unusable.
pub(crate) fn extend(
    graph: &mut HnswGraph,
    rows: &VectorRows,
    mut new: &[u32],
    effort: &BuildOptions<'_>,
) -> Option<()> {
    while !new.is_empty() {
        if effort.stop.load(Ordering::Relaxed) {
            return None;
        }
        let known = graph.bottom().map_or(0, Layer::len);
        let size = (known / BATCH_DIVISOR).clamp(MIN_BATCH_ROWS, MAX_BATCH_ROWS).min(new.len());
        let (batch, rest) = new.split_at_checked(size)?;
        let placed =
            parallel(batch, effort.threads, |row| find_neighbours(graph, rows, batch, *row));
        insert_batch(graph, rows, &placed, effort.threads);
        new = rest;
    }
    Some(())
}

/// Links unreachable rows: from the nearest node with room, else from the nearest node.
pub(crate) fn link_orphans(graph: &mut HnswGraph, rows: &VectorRows) {
    for _ in 0..MAX_REPAIR_ROUNDS {
        let orphans = graph.orphans(rows);
        if orphans.is_empty() {
            return;
        }
        for row in orphans {
            let probe = row_probe(graph, rows, row);
            let starts = graph.descend(rows, &probe, 0);
            let Some(bottom) = graph.layers.first_mut() else { return };
            let met = bottom.search(
                (rows, &probe, graph.max_squared_norm),
                starts,
                CONSTRUCTION_EF,
                |_, _| (),
            );
            let mut near =
                met.into_iter().map(|met| met.node).filter(|node| *node != row).peekable();
            let first = near.peek().copied();
            let has_room = |node: &u32| bottom.links(*node).len() < bottom.max_degree();
            let Some(from) = near.find(has_room).or(first) else { continue };
            let mut links = bottom.links(from).to_vec();
            links.truncate(bottom.max_degree().saturating_sub(1));
            if !links.contains(&row) {
                links.push(row);
            }
            bottom.set(from, links);
        }
    }
}

/// Searches for the neighbours of a row, in the graph as it is and in the batch.
fn find_neighbours(graph: &HnswGraph, rows: &VectorRows, batch: &[u32], row: u32) -> NewNode {
    let probe = row_probe(graph, rows, row);
    let level = graph::level(row);
    let mates: Vec<ScoredNode> = batch
        .iter()
        .filter(|mate| **mate != row)
        .map(|mate| ScoredNode { similarity: row_similarity(graph, rows, row, *mate), node: *mate })
        .collect();
    let mut starts = graph.descend(rows, &probe, level.min(graph.layers.len().saturating_sub(1)));
    let mut neighbours = Vec::with_capacity(level.saturating_add(1));
    for layer_level in (0..=level).rev() {
        let of_layer = |mate: &&ScoredNode| graph::level(mate.node) >= layer_level;
        let mut found: Vec<ScoredNode> = mates.iter().filter(of_layer).copied().collect();
        if let Some(layer) = graph.layers.get(layer_level) {
            let met = layer.search(
                (rows, &probe, graph.max_squared_norm),
                starts,
                CONSTRUCTION_EF,
                |_, _| (),
            );
            let named = met.iter().map(|met| ScoredNode { node: layer.row(met.node), ..*met });
            found.extend(named.filter(|met| met.node != row && !rows.is_dead(met.node)));
            let below = layer_level.checked_sub(1).and_then(|below| graph.layers.get(below));
            starts = below.map_or_else(Vec::new, |below| graph::nodes_below(layer, below, &met));
        } else {
            let below = layer_level.checked_sub(1).and_then(|below| graph.layers.get(below));
            starts = below.map_or_else(Vec::new, |below| below.nodes().take(1).collect());
        }
        found.sort_unstable_by(graph::by_similarity);
        found.truncate(CONSTRUCTION_EF);
        neighbours.push(select_neighbours(graph, rows, &found, degree_limits(layer_level).0));
    }
    neighbours.reverse();
    NewNode { row, neighbours }
}

/// Inserts the rows of a batch, and links their neighbours back to them.
fn insert_batch(graph: &mut HnswGraph, rows: &VectorRows, placed: &[NewNode], threads: usize) {
    let mut back = Vec::new();
    for NewNode { row, neighbours } in placed {
        for (level, neighbours) in neighbours.iter().enumerate() {
            if graph.layers.len() <= level {
                graph.layers.push(Layer::upper(degree_limits(level).1));
            }
            if let Some(layer) = graph.layers.get_mut(level) {
                layer.add(*row);
            }
            back.extend(neighbours.iter().map(|to| BackLink { level, to: *to, row: *row }));
        }
    }
    for NewNode { row, neighbours } in placed {
        for (layer, neighbours) in graph.layers.iter_mut().zip(neighbours) {
            let links: Vec<u32> = neighbours.iter().filter_map(|to| layer.node(*to)).collect();
            if let Some(node) = layer.node(*row) {
                layer.set(node, links);
            }
        }
    }
    back.sort_unstable();
    let lists: Vec<&[BackLink]> =
        back.chunk_by(|a, b| (a.level, a.to) == (b.level, b.to)).collect();
    let links = parallel(&lists, threads, |list| with_back_links(graph, rows, list));
    for (list, links) in lists.iter().zip(links) {
        if let Some(first) = list.first()
            && let Some(layer) = graph.layers.get_mut(first.level)
            && let Some(node) = layer.node(first.to)
        {
            layer.set(node, links);
        }
    }
}

/// The links of a node with the back links; pruned if there is no room for all.
fn with_back_links(graph: &HnswGraph, rows: &VectorRows, list: &[BackLink]) -> Vec<u32> {
    let Some(first) = list.first() else { return Vec::new() };
    let Some(layer) = graph.layers.get(first.level) else { return Vec::new() };
    let Some(node) = layer.node(first.to) else { return Vec::new() };
    let mut links = layer.links(node).to_vec();
    for back in list {
        if let Some(new) = layer.node(back.row)
            && !links.contains(&new)
        {
            links.push(new);
        }
    }
    if links.len() <= layer.max_degree() {
        return links;
    }
    let (limit, _) = degree_limits(first.level);
    let of = |link: u32| {
        let row = layer.row(link);
        ScoredNode { similarity: row_similarity(graph, rows, first.to, row), node: row }
    };
    let mut met: Vec<ScoredNode> = links.into_iter().map(of).collect();
    met.sort_unstable_by(graph::by_similarity);
    let kept = select_neighbours(graph, rows, &met, limit);
    kept.into_iter().filter_map(|row| layer.node(row)).collect()
}

/// Selects neighbours by the heuristic of the HNSW paper: of rows ordered nearest first, it takes those
/// nearer to the centre than to any row taken before. Links in all directions lead further than links into
/// one cluster.
pub(crate) fn select_neighbours(
    graph: &HnswGraph,
    rows: &VectorRows,
    near: &[ScoredNode],
    limit: usize,
) -> Vec<u32> {
    let mut taken: Vec<u32> = Vec::with_capacity(limit);
    for met in near {
        if taken.len() >= limit {
            break;
        }
        let is_new = |other: &u32| row_similarity(graph, rows, *other, met.node) <= met.similarity;
        if taken.iter().all(is_new) {
            taken.push(met.node);
        }
    }
    taken
}

/// The degree after pruning and the maximum degree of a layer.
pub(crate) fn degree_limits(level: usize) -> (usize, usize) {
    if level == 0 { (DEGREE, MAX_DEGREE) } else { (UPPER_DEGREE, UPPER_MAX_DEGREE) }
}

/// The estimated similarity of two rows.
pub(crate) fn row_similarity(graph: &HnswGraph, rows: &VectorRows, a: u32, b: u32) -> f32 {
    quantise::similarity(
        rows.space().metric(),
        rows.codes(a),
        rows.codes(b),
        graph.max_squared_norm,
    )
}

fn row_probe(graph: &HnswGraph, rows: &VectorRows, row: u32) -> Probe {
    let (codes, head) = rows.codes(row);
    Probe::row(rows.space().metric(), codes, head, graph.max_squared_norm)
}

/// Runs a function on all items; results are in the order of the items.
fn parallel<T: Sync, R: Send>(items: &[T], threads: usize, run: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let share = items.len().div_ceil(threads.max(1)).max(1);
    if share >= items.len() {
        return items.iter().map(run).collect();
    }
    let mut results: Vec<Option<R>> = Vec::new();
    results.resize_with(items.len(), || None);
    std::thread::scope(|scope| {
        for (items, results) in items.chunks(share).zip(results.chunks_mut(share)) {
            let run = &run;
            scope.spawn(move || {
                for (item, result) in items.iter().zip(results) {
                    *result = Some(run(item));
                }
            });
        }
    });
    results.into_iter().flatten().collect()
}
