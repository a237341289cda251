//! Graph reads: statements of grains about each other, followed step by step, each read bounded and on one
//! view.
//!
//! - `reader`: the grains one read may see, and how many.
//! - `edges`: triples as edges. `paths`: the shortest paths between two nodes.
//! - `lineage`: derivation in both directions. `related`: cross-links.
//! - `thread`: messages and their replies as a tree. `replies`: lookup of replies.
//! - `identity`: owners and capabilities of agents. `handoff`: conversations passed between agents.
//!
//! Every grain on the way is rechecked: a grain of another namespace is never a stepping stone, and the index
//! only proposes. Reads of this kind are not accesses in the sense of OMS 22.10.

mod edges;
mod handoff;
mod identity;
mod lineage;
mod paths;
mod reader;
mod related;
mod replies;
mod thread;

use std::time::Duration;

use grainstore_cal::CancelHandle;
use serde::Serialize;

use crate::base::error::{Error, ErrorKind, Result};

pub use edges::{Edge, EdgeQuery, MAX_EDGES};
pub use grainstore_cal::Direction;
pub use handoff::{Handoff, MAX_HANDOFFS};
pub use identity::{Capability, MAX_CAPABILITIES, MAX_CLAIMS, Owner, Ownership};
pub use lineage::{MAX_RELATIVES, Relative};
pub use paths::{MAX_HOPS, MAX_NODES, MAX_PATHS};
pub(crate) use reader::{GraphReader, VisibleGrain, addresses_in, normalised};
pub use reader::{MAX_ANSWER_BYTES, MAX_GRAPH_STEPS};
pub use related::CrossLink;
pub(crate) use related::cross_links;
pub use thread::{MAX_MESSAGES, Message, Thread};

/// Options of a graph read, such as [`Session::ancestry`](crate::Session::ancestry).
#[derive(Debug, Clone)]
pub struct GraphOptions {
    /// True to include superseded grains. Contradicted and retracted ones are never included.
    pub include_superseded: bool,
    /// Cancels the read, by a deadline or on request of the host.
    pub cancel: CancelHandle,
}

impl Default for GraphOptions {
    /// Current grains, within five seconds.
    fn default() -> Self {
        let cancel = CancelHandle::default().with_deadline(Duration::from_secs(5));
        Self { include_superseded: false, cancel }
    }
}

/// A list that may have been cut off, such as that of [`Session::neighbours`](crate::Session::neighbours).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct BoundedList<T> {
    /// The first items, up to the limit.
    pub items: Vec<T>,
    /// True if there are more.
    pub more: bool,
}

/// Builder of a list bounded by number and bytes.
struct BoundedListBuilder<T> {
    items: Vec<T>,
    limit: usize,
    bytes: usize,
}

impl<T> BoundedListBuilder<T> {
    /// # Errors
    /// `ERR_LIMIT` for a limit beyond `most`.
    fn new(limit: usize, most: usize) -> Result<Self> {
        if limit > most {
            let message = format!("an answer holds {most} at most, not {limit}");
            return Err(Error::new(ErrorKind::Limit, message));
        }
        Ok(Self { items: Vec::new(), limit, bytes: 0 })
    }

    /// Adds an item of so many bytes; returns the list once the item does not fit.
    fn push(&mut self, item: T, bytes: usize) -> Option<BoundedList<T>> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.items.len() >= self.limit || self.bytes > MAX_ANSWER_BYTES {
            return Some(BoundedList { items: std::mem::take(&mut self.items), more: true });
        }
        self.items.push(item);
        None
    }

    fn end(self) -> BoundedList<T> {
        BoundedList { items: self.items, more: false }
    }
}
