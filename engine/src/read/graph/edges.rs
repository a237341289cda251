//! Triples as edges of a graph: a grain with a subject, a relation and a text as object is an edge from its
//! subject to its object.

use grainstore_cal::Direction;
use grainstore_format::{ContentAddress, GrainRef};
use grainstore_index::{IndexLookup, Object};
use serde::Serialize;

use super::reader::{GraphReader, VisibleGrain, normalised};
use super::{BoundedList, BoundedListBuilder, GraphOptions};
use crate::base::error::{Result, catch_storage_panic};
use crate::handle::session::Session;

/// Most edges of one answer of [`Session::neighbours`]; `ERR_LIMIT` for a limit beyond.
pub const MAX_EDGES: usize = 10_000;

/// Options of [`Session::neighbours`] and [`Session::paths`]: the ones followed, and how many are returned.
#[derive(Debug, Clone)]
pub struct EdgeQuery {
    /// The direction followed.
    pub direction: Direction,
    /// Only edges of this relation.
    pub relation: Option<String>,
    /// Most edges, or paths, to return.
    pub limit: usize,
    /// Options of the read.
    pub options: GraphOptions,
}

impl Default for EdgeQuery {
    /// A hundred edges of any relation, in both directions.
    fn default() -> Self {
        Self {
            direction: Direction::Both,
            relation: None,
            limit: 100,
            options: GraphOptions::default(),
        }
    }
}

/// A grain as an edge: [`Session::neighbours`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Edge {
    /// The node it starts from.
    pub subject: String,
    /// Its relation.
    pub relation: String,
    /// The node it leads to.
    pub object: String,
    /// The grain.
    pub address: ContentAddress,
    /// True if it is a reasoning that waits for the review it requires (OMS 6.1).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub requires_human_review: bool,
}

impl Edge {
    /// A grain as an edge; `None` if it is not one.
    pub(super) fn of(seen: &VisibleGrain<'_>) -> Option<Self> {
        let EdgeTexts { subject, relation, object } = EdgeTexts::of(seen.grain)?;
        Some(Self {
            subject: subject.to_owned(),
            relation: relation.to_owned(),
            object: object.to_owned(),
            address: seen.address(),
            requires_human_review: seen.awaits_review(),
        })
    }

    /// Bytes of its texts.
    pub(super) fn size(&self) -> usize {
        let Self { subject, relation, object, .. } = self;
        subject.len().saturating_add(relation.len()).saturating_add(object.len())
    }
}

impl Session {
    /// The edges at a node, newest first. A loop is one edge.
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
    /// let edges = session.neighbours("alice", &EdgeQuery::default())?;
    /// assert_eq!((edges.items.len(), edges.more), (2, false));
    /// let knows = EdgeQuery { direction: grainstore::cal::Direction::Out, ..Default::default() };
    /// assert_eq!(session.neighbours("alice", &knows)?.items[0].object, "carol");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_LIMIT` for a limit beyond [`MAX_EDGES`], and if more than
    /// [`MAX_GRAPH_STEPS`](super::MAX_GRAPH_STEPS) grains had to be read; `ERR_TIMEOUT`; `ERR_INTEGRITY`;
    /// `ERR_IO`.
    pub fn neighbours(&self, node: &str, query: &EdgeQuery) -> Result<BoundedList<Edge>> {
        let mut edges = BoundedListBuilder::new(query.limit, MAX_EDGES)?;
        let step = EdgeStep::of(query)?;
        let node = normalised(node)?;
        let view = self.view()?;
        catch_storage_panic(|| {
            let mut reader = GraphReader::new(self, &view, &query.options);
            for posting in reader.postings(&step.lookups(&node))? {
                let edge = reader.read_current(posting?.sequence, |seen| {
                    Ok(step.target_from(seen.grain, &node).and_then(|_| Edge::of(seen)))
                })?;
                let Some(edge) = edge else { continue };
                let size = edge.size();
                if let Some(full) = edges.push(edge, size) {
                    return Ok(full);
                }
            }
            Ok(edges.end())
        })
    }
}

/// Direction and relation of one step along edges.
pub(super) struct EdgeStep {
    pub(super) direction: Direction,
    relation: Option<String>,
}

impl EdgeStep {
    pub(super) fn of(query: &EdgeQuery) -> Result<Self> {
        let relation = query.relation.as_deref().map(normalised).transpose()?;
        Ok(Self { direction: query.direction, relation })
    }

    /// This step taken from the other end.
    pub(super) fn reversed(&self) -> Self {
        Self { direction: self.direction.reversed(), relation: self.relation.clone() }
    }

    /// Index lookups that find the edges at a node.
    pub(super) fn lookups<'a>(&'a self, node: &'a str) -> Vec<IndexLookup<'a>> {
        let relation = self.relation.as_deref().map(Into::into);
        let out = IndexLookup::Triple { subject: Some(node.into()), relation, object: None };
        let object = Some(Object::Text(node.into()));
        let back = IndexLookup::Triple { subject: None, relation, object };
        match self.direction {
            Direction::Out => vec![out],
            Direction::In => vec![back],
            Direction::Both => vec![out, back],
        }
    }

    /// The node a grain leads to from this node; `None` if it is no edge of this step.
    pub(super) fn target_from<'g>(&self, grain: &GrainRef<'g>, node: &str) -> Option<&'g str> {
        let EdgeTexts { subject, relation, object } = EdgeTexts::of(grain)?;
        if self.relation.as_ref().is_some_and(|only| only != relation) {
            return None;
        }
        if self.direction.goes_out() && subject == node {
            return Some(object);
        }
        (self.direction.goes_in() && object == node).then_some(subject)
    }
}

/// The texts of an edge.
struct EdgeTexts<'g> {
    subject: &'g str,
    relation: &'g str,
    object: &'g str,
}

impl<'g> EdgeTexts<'g> {
    fn of(grain: &GrainRef<'g>) -> Option<Self> {
        Some(Self {
            subject: grain.text("subject")?,
            relation: grain.text("relation")?,
            object: grain.text("object")?,
        })
    }
}
