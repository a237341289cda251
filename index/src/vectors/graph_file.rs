//! The byte layout of a saved graph. Knows nothing of files, and validates everything it reads.
//!
//! ```text
//! magic:4 "GVG2"  space:32 SHA-256  reach:4 f32  rows:4  layers:4
//! keys:           rows x (sequence:8 chunk:4 check:4)
//! upper layers:   each count:4, then count x row:4
//! links:          for each layer, the bottom first, for each node count:1, then count x node:4
//! crc:4           CRC-32 of all before
//! ```
//! All numbers are little-endian. Rows are numbered as in the list of keys. Dead rows are not written: a link
//! to one is replaced by links to its neighbours. A row whose check ([`VectorRows::check`]) differs
//! from that of the vector with its key counts as removed, and the vector as added. So a file that is older
//! than the store, or of another copy of it, or of another store, is used as far as it is valid.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest, Sha256};

use crate::posting::Sequence;

use super::build;
use super::graph::{self, HnswGraph};
use super::layer::{Layer, ScoredNode};
use super::rows::{VectorKey, VectorRows};
use super::space::Space;

const MAGIC: &[u8; 4] = b"GVG2";
const STORED_KEY_BYTES: usize = 16;
/// A limit on layers: more than any graph has.
const MAX_LAYERS: u32 = 16;
/// A file that lacks more than one row in this many is not loaded.
const MAX_MISSING_DIVISOR: usize = 4;

/// The rows of one layer, each with its neighbours.
type AdjacencyLists = BTreeMap<u32, Vec<u32>>;

/// A graph that was loaded.
#[derive(Debug)]
pub(crate) struct LoadedGraph {
    pub(crate) graph: HnswGraph,
    /// The number of its vectors that have other numbers now.
    pub(crate) outdated: usize,
}

/// Identifies a space in file names and files.
pub(crate) fn digest(space: &Space) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(space.metric().name());
    hash.update([0]);
    hash.update(space.dimension().to_le_bytes());
    hash.update(space.model());
    hash.finalize().into()
}

/// Encodes a graph, without dead rows.
pub(crate) fn to_bytes(graph: &HnswGraph, rows: &VectorRows) -> Vec<u8> {
    let live = |row: u32| {
        let known = !rows.is_dead(row) && graph.holes.binary_search(&row).is_err();
        known.then_some(row)
    };
    let mut layers = remap_layers(graph, rows, &live);
    while layers.len() > 1 && layers.last().is_some_and(BTreeMap::is_empty) {
        layers.pop();
    }
    let numbers = |lists: &AdjacencyLists| -> BTreeMap<u32, u32> {
        lists.keys().zip(0_u32..).map(|(row, number)| (*row, number)).collect()
    };
    let bottom = layers.first().map(numbers).unwrap_or_default();
    let mut bytes = MAGIC.to_vec();
    bytes.extend(digest(rows.space()));
    bytes.extend(graph.max_squared_norm.to_le_bytes());
    put_count(&mut bytes, bottom.len());
    put_count(&mut bytes, layers.len());
    for (row, key) in bottom.keys().filter_map(|row| Some((*row, rows.key(*row)?))) {
        bytes.extend(key.sequence.get().to_le_bytes());
        bytes.extend(key.chunk.to_le_bytes());
        bytes.extend(rows.check(row).to_le_bytes());
    }
    for lists in layers.iter().skip(1) {
        put_count(&mut bytes, lists.len());
        for row in lists.keys().filter_map(|row| bottom.get(row)) {
            bytes.extend(row.to_le_bytes());
        }
    }
    for lists in &layers {
        let nodes = numbers(lists);
        for links in lists.values() {
            let links: Vec<u32> = links.iter().filter_map(|row| nodes.get(row)).copied().collect();
            bytes.push(u8::try_from(links.len()).unwrap_or(u8::MAX));
            bytes.extend(links.iter().take(u8::MAX.into()).flat_map(|node| node.to_le_bytes()));
        }
    }
    let crc = crc32fast::hash(&bytes);
    bytes.extend(crc.to_le_bytes());
    bytes
}

/// Decodes a graph over these rows, in their current order; `None` if the bytes are damaged, of another
/// space, or lack too many of the rows.
pub(crate) fn from_bytes(bytes: &[u8], rows: &VectorRows) -> Option<LoadedGraph> {
    let (body, crc) = bytes.split_last_chunk::<4>()?;
    if crc32fast::hash(body) != u32::from_le_bytes(*crc) {
        return None;
    }
    let mut input = ByteReader(body);
    if input.take(MAGIC.len())? != MAGIC || input.take(32)? != digest(rows.space()) {
        return None;
    }
    let reach = f32::from_le_bytes(*input.array()?);
    let (count, layers) = (input.number()?, input.number()?);
    if !reach.is_finite() || !(1..=MAX_LAYERS).contains(&layers) {
        return None;
    }
    let keys = input.take(usize::try_from(count).ok()?.checked_mul(STORED_KEY_BYTES)?)?;
    let (places, outdated) = map_rows(keys, rows)?;
    let stored = HnswGraph {
        layers: input.layers(count, layers)?,
        max_squared_norm: reach,
        holes: Vec::new(),
    };
    let place = |row: u32| *places.get(usize::try_from(row).ok()?)?;
    let lists = remap_layers(&stored, rows, &place);
    Some(LoadedGraph { graph: assemble(&lists, reach, rows)?, outdated })
}

/// Maps each stored row to its current row, if the vector is the same, and counts those whose vectors differ;
/// `None` if two stored rows map to one.
fn map_rows(keys: &[u8], rows: &VectorRows) -> Option<(Vec<Option<u32>>, usize)> {
    let (mut taken, mut outdated) = (BTreeSet::new(), 0);
    let mut places = Vec::with_capacity(keys.len() / STORED_KEY_BYTES);
    for key in keys.as_chunks::<STORED_KEY_BYTES>().0 {
        let mut input = ByteReader(key);
        let sequence = Sequence::new(u64::from_le_bytes(*input.array()?));
        let place = rows.find(VectorKey { sequence, chunk: input.number()? });
        if place.is_some_and(|place| !taken.insert(place)) {
            return None;
        }
        let check = input.number()?;
        let same = place.filter(|place| rows.check(*place) == check);
        outdated += usize::from(place.is_some() && same.is_none());
        places.push(same);
    }
    Some((places, outdated))
}

/// Builds a graph of adjacency lists over `rows`.
fn assemble(lists: &[AdjacencyLists], reach: f32, rows: &VectorRows) -> Option<HnswGraph> {
    let bottom = lists.first()?;
    let covers = bottom.keys().last().map_or(0, |last| last.saturating_add(1));
    let holes: Vec<u32> =
        (0..covers).filter(|row| !bottom.contains_key(row) && !rows.is_dead(*row)).collect();
    let missing = rows.live_count().saturating_sub(bottom.len());
    if missing > rows.live_count() / MAX_MISSING_DIVISOR {
        return None;
    }
    let mut layers = Vec::with_capacity(lists.len());
    for (level, lists) in lists.iter().enumerate() {
        if lists.is_empty() {
            break;
        }
        let (_, room) = build::degree_limits(level);
        let mut layer = if level == 0 { Layer::bottom(room) } else { Layer::upper(room) };
        for row in lists.keys() {
            layer.add(*row);
        }
        for (row, links) in lists {
            let links: Vec<u32> = links.iter().filter_map(|row| layer.node(*row)).collect();
            layer.set(layer.node(*row)?, links);
        }
        layers.push(layer);
    }
    let mut graph = HnswGraph { layers, max_squared_norm: reach, holes };
    build::link_orphans(&mut graph, rows);
    Some(graph)
}

/// The layers with only the rows that `place` maps, by their new numbers. A link to a row that is gone
/// becomes links to its neighbours, pruned.
fn remap_layers(
    graph: &HnswGraph,
    rows: &VectorRows,
    place: &dyn Fn(u32) -> Option<u32>,
) -> Vec<AdjacencyLists> {
    let carry = |(level, layer): (usize, &Layer)| -> AdjacencyLists {
        let at = |node: u32| place(layer.row(node));
        let node = |node: u32| {
            let own = at(node)?;
            let (mut links, mut gone) = (BTreeSet::new(), false);
            for link in layer.links(node) {
                match at(*link) {
                    Some(row) => _ = links.insert(row),
                    None => {
                        gone = true;
                        links.extend(layer.links(*link).iter().filter_map(|next| at(*next)));
                    }
                }
            }
            links.remove(&own);
            if !gone {
                let links = layer.links(node).iter().filter_map(|link| at(*link));
                return Some((own, links.filter(|link| *link != own).collect()));
            }
            let met = |row| ScoredNode {
                similarity: build::row_similarity(graph, rows, own, row),
                node: row,
            };
            let mut met: Vec<ScoredNode> = links.into_iter().map(met).collect();
            met.sort_unstable_by(graph::by_similarity);
            Some((own, build::select_neighbours(graph, rows, &met, build::degree_limits(level).0)))
        };
        layer.nodes().filter_map(node).collect()
    };
    graph.layers.iter().enumerate().map(carry).collect()
}

fn put_count(bytes: &mut Vec<u8>, count: usize) {
    bytes.extend(u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes());
}

/// A reader of bytes from the front.
struct ByteReader<'b>(&'b [u8]);

impl<'b> ByteReader<'b> {
    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<&'b [u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(*self.array()?))
    }

    /// Reads the layers and checks all links.
    fn layers(&mut self, count: u32, layers: u32) -> Option<Vec<Layer>> {
        let mut read = Vec::new();
        for level in 0..layers {
            let room = build::degree_limits(usize::try_from(level).ok()?).1;
            let mut layer = if level == 0 { Layer::bottom(room) } else { Layer::upper(room) };
            if level == 0 {
                if let Some(last) = count.checked_sub(1) {
                    layer.add(last);
                }
            } else {
                self.rows_of(&mut layer, count)?;
            }
            read.push(layer);
        }
        for layer in &mut read {
            for node in layer.nodes() {
                let links = self.links(layer)?;
                layer.set(node, links);
            }
        }
        self.0.is_empty().then_some(read)
    }

    /// Reads the rows of an upper layer; each may occur once.
    fn rows_of(&mut self, layer: &mut Layer, count: u32) -> Option<()> {
        let rows = self.number()?;
        let bytes = self.take(usize::try_from(rows).ok()?.checked_mul(4)?)?;
        for row in bytes.as_chunks::<4>().0 {
            let row = u32::from_le_bytes(*row);
            if row >= count {
                return None;
            }
            layer.add(row);
        }
        (layer.nodes().end == rows).then_some(())
    }

    /// Reads the links of the next node.
    fn links(&mut self, layer: &Layer) -> Option<Vec<u32>> {
        let [count] = *self.array()?;
        let bytes = self.take(usize::from(count).checked_mul(4)?)?;
        let links: Vec<u32> =
            bytes.as_chunks::<4>().0.iter().map(|link| u32::from_le_bytes(*link)).collect();
        let known = links.iter().all(|link| layer.nodes().contains(link));
        (known && links.len() <= layer.max_degree()).then_some(links)
    }
}

#[cfg(test)]
#[path = "graph_file_tests.rs"]
mod tests;
