//! The shortest paths between two nodes.
//!
//! The search is bidirectional and always continues on the side with fewer edges ahead, so that a hub in the
//! middle is reached from both sides and not walked through. Each side takes one whole level at a time: every
//! shortest path has a node where the sides first meet.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use grainstore_format::ContentAddress;
use grainstore_index::Sequence;

use super::edges::{Edge, EdgeQuery, EdgeStep};
use super::reader::{GraphReader, normalised};
use super::{BoundedList, BoundedListBuilder};
use crate::base::error::{Error, ErrorKind, Result, catch_storage_panic};
use crate::handle::session::Session;

/// Most edges in one path of [`Session::paths`]; `ERR_LIMIT` beyond.
pub const MAX_HOPS: usize = 6;
/// Most paths of one answer of [`Session::paths`]; `ERR_LIMIT` for a limit beyond.
pub const MAX_PATHS: usize = 1_000;
/// Most nodes one search of [`Session::paths`] holds; `ERR_LIMIT` beyond.
pub const MAX_NODES: usize = 100_000;
/// Most bytes of their texts.
const MAX_NODE_BYTES: usize = 64 << 20;
/// Number of edges up to which the two sides are compared.
const ESTIMATE_CAP: usize = 1_000;

impl Session {
    /// All shortest paths from one node to another, at most `query.limit` of them, each as its edges in order;
    /// empty if the nodes are more than `max_hops` edges apart. Paths are in the order of the addresses of
    /// their edges. A node has one path of no edges to itself.
    ///
    /// ```
    /// use grainstore::graph::EdgeQuery;
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    ///
    /// for (from, to) in [("ann", "alice"), ("alice", "carol")] {
    ///     session.put(BeliefBuilder::new(session.now(), from, "knows", to, 0.9).build()?)?;
    /// }
    /// let found = session.paths("ann", "carol", 3, &EdgeQuery::default())?;
    /// let nodes: Vec<_> = found.items[0].iter().map(|edge| edge.object.as_str()).collect();
    /// assert_eq!(nodes, ["alice", "carol"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_LIMIT` for more than [`MAX_HOPS`] or [`MAX_PATHS`], and if more than [`MAX_NODES`] nodes or
    /// [`MAX_GRAPH_STEPS`](super::MAX_GRAPH_STEPS) grains had to be read; `ERR_TIMEOUT`; `ERR_INTEGRITY`;
    /// `ERR_IO`.
    pub fn paths(
        &self,
        from: &str,
        to: &str,
        max_hops: usize,
        query: &EdgeQuery,
    ) -> Result<BoundedList<Vec<Edge>>> {
        if max_hops > MAX_HOPS {
            let message = format!("a path has {MAX_HOPS} edges at most, not {max_hops}");
            return Err(Error::new(ErrorKind::Limit, message));
        }
        let paths = BoundedListBuilder::new(query.limit, MAX_PATHS)?;
        let step = EdgeStep::of(query)?;
        let (from, to) = (normalised(from)?, normalised(to)?);
        let view = self.view()?;
        catch_storage_panic(|| {
            let reader = GraphReader::new(self, &view, &query.options);
            let mut search = PathSearch { reader, names: NodeNames::default() };
            let back = step.reversed();
            let mut near = SearchSide::new(search.names.id(&from)?, step);
            let mut far = SearchSide::new(search.names.id(&to)?, back);
            match search.meet(&mut near, &mut far, max_hops)? {
                Some(met) => {
                    let ways = search.trace_paths(&near, &far, &met)?;
                    search.enumerate_paths(near.start, far.start, &ways, paths)
                }
                None => Ok(paths.end()),
            }
        })
    }
}

/// A node by its number in [`NodeNames`].
type NodeId = u32;

/// The texts of the nodes found so far.
#[derive(Default)]
struct NodeNames {
    texts: Vec<Arc<str>>,
    ids: HashMap<Arc<str>, NodeId>,
    bytes: usize,
}

impl NodeNames {
    /// The number of a node.
    ///
    /// # Errors
    /// `ERR_LIMIT` beyond [`MAX_NODES`].
    fn id(&mut self, text: &str) -> Result<NodeId> {
        if let Some(id) = self.ids.get(text) {
            return Ok(*id);
        }
        self.bytes = self.bytes.saturating_add(text.len());
        let id = NodeId::try_from(self.texts.len()).ok();
        let id = id.filter(|_| self.texts.len() < MAX_NODES && self.bytes <= MAX_NODE_BYTES);
        let Some(id) = id else {
            let message = format!("more than {MAX_NODES} nodes or {MAX_NODE_BYTES} bytes of them");
            let hint = "ask for fewer hops, name a relation or a direction";
            return Err(Error::new(ErrorKind::Limit, message).with_hint(hint));
        };
        let text: Arc<str> = text.into();
        self.texts.push(Arc::clone(&text));
        self.ids.insert(text, id);
        Ok(id)
    }

    fn text(&self, node: NodeId) -> Arc<str> {
        let text = usize::try_from(node).ok().and_then(|node| self.texts.get(node));
        text.cloned().unwrap_or_default()
    }
}

/// The part of the search that starts at one end.
struct SearchSide {
    start: NodeId,
    step: EdgeStep,
    /// Whole levels taken.
    hops: usize,
    /// Every node found, with its distance from the start.
    distances: HashMap<NodeId, usize>,
    /// The nodes of the last level.
    frontier: Vec<NodeId>,
    /// The edges to each node from those one hop nearer to the start.
    incoming: HashMap<NodeId, Vec<PathEdge>>,
}

/// An edge of the search: the grain, and the node at its other end.
#[derive(Clone, Copy)]
struct PathEdge {
    sequence: Sequence,
    node: NodeId,
}

impl SearchSide {
    fn new(start: NodeId, step: EdgeStep) -> Self {
        let met = HashMap::from([(start, 0)]);
        Self {
            start,
            step,
            hops: 0,
            distances: met,
            frontier: vec![start],
            incoming: HashMap::new(),
        }
    }
}

/// The edges that lead on from each node of a shortest path, by address.
type PathEdges = HashMap<NodeId, BTreeMap<ContentAddress, PathEdge>>;

struct PathSearch<'s> {
    reader: GraphReader<'s>,
    names: NodeNames,
}

impl PathSearch<'_> {
    /// Advances the two sides until they meet. Returns the nodes where they do; `None` beyond `max_hops`.
    fn meet(
        &mut self,
        near: &mut SearchSide,
        far: &mut SearchSide,
        max_hops: usize,
    ) -> Result<Option<Vec<NodeId>>> {
        loop {
            let ahead: HashSet<&NodeId> = far.frontier.iter().collect();
            let common = near.frontier.iter().filter(|node| ahead.contains(node));
            let common: Vec<NodeId> = common.copied().collect();
            if !common.is_empty() {
                return Ok(Some(common));
            }
            let dead = near.frontier.is_empty() || far.frontier.is_empty();
            if dead || near.hops.saturating_add(far.hops) >= max_hops {
                return Ok(None);
            }
            if self.edges_ahead(near)? <= self.edges_ahead(far)? {
                self.advance(near)?;
            } else {
                self.advance(far)?;
            }
        }
    }

    /// Estimate of the edges that the next level of a side reads, up to `ESTIMATE_CAP`.
    fn edges_ahead(&mut self, side: &SearchSide) -> Result<usize> {
        let mut count = 0_usize;
        for node in &side.frontier {
            if count >= ESTIMATE_CAP {
                break;
            }
            self.reader.tick()?;
            let text = self.names.text(*node);
            let left = ESTIMATE_CAP.saturating_sub(count);
            count = count.saturating_add(self.reader.estimate(&side.step.lookups(&text), left)?);
        }
        Ok(count)
    }

    /// Takes one level of a side.
    fn advance(&mut self, side: &mut SearchSide) -> Result<()> {
        side.hops = side.hops.saturating_add(1);
        for node in std::mem::take(&mut side.frontier) {
            let text = self.names.text(node);
            for posting in self.reader.postings(&side.step.lookups(&text))? {
                let sequence = posting?.sequence;
                let names = &mut self.names;
                let other = self.reader.read_current(sequence, |seen| {
                    let other = side.step.target_from(seen.grain, &text);
                    other.map(|other| names.id(other)).transpose()
                })?;
                let Some(other) = other else { continue };
                let hops = *side.distances.entry(other).or_insert_with(|| {
                    side.frontier.push(other);
                    side.hops
                });
                if hops == side.hops {
                    side.incoming.entry(other).or_default().push(PathEdge { sequence, node });
                }
            }
        }
        Ok(())
    }

    /// The edges of all shortest paths, traced from the meeting nodes back to both ends.
    fn trace_paths(
        &mut self,
        near: &SearchSide,
        far: &SearchSide,
        met: &[NodeId],
    ) -> Result<PathEdges> {
        let mut ways = PathEdges::new();
        for (side, is_near) in [(near, true), (far, false)] {
            let mut reached: HashSet<NodeId> = met.iter().copied().collect();
            let mut open: Vec<NodeId> = met.to_vec();
            while let Some(node) = open.pop() {
                for link in side.incoming.get(&node).into_iter().flatten() {
                    let address =
                        self.reader.read_any(link.sequence, |seen| Ok(Some(seen.address())))?;
                    let Some(address) = address else { continue };
                    let (start, end) = if is_near { (link.node, node) } else { (node, link.node) };
                    let way = PathEdge { sequence: link.sequence, node: end };
                    ways.entry(start).or_default().insert(address, way);
                    if reached.insert(link.node) {
                        open.push(link.node);
                    }
                }
            }
        }
        Ok(ways)
    }

    /// Enumerates the paths in order. Every edge leads to the end, so there is no backtracking from a dead
    /// end.
    fn enumerate_paths(
        &mut self,
        from: NodeId,
        to: NodeId,
        ways: &PathEdges,
        mut paths: BoundedListBuilder<Vec<Edge>>,
    ) -> Result<BoundedList<Vec<Edge>>> {
        if from == to {
            return Ok(paths.push(Vec::new(), 0).unwrap_or_else(|| paths.end()));
        }
        let next = |node: &NodeId| ways.get(node).into_iter().flat_map(BTreeMap::values);
        let mut open = vec![next(&from)];
        let mut taken: Vec<Edge> = Vec::new();
        while let Some(ahead) = open.last_mut() {
            let Some(link) = ahead.next() else {
                open.pop();
                taken.pop();
                continue;
            };
            let Some(edge) = self.reader.read_any(link.sequence, |seen| Ok(Edge::of(seen)))? else {
                continue;
            };
            taken.push(edge);
            if link.node != to {
                open.push(next(&link.node));
                continue;
            }
            let size = taken.iter().map(Edge::size).fold(0, usize::saturating_add);
            if let Some(full) = paths.push(taken.clone(), size) {
                return Ok(full);
            }
            taken.pop();
        }
        Ok(paths.end())
    }
}
