//! Vectors: search for the nearest neighbours of a vector.
//!
//! The truth holds the vectors; here they are in memory, with an HNSW graph beside them once there are many.
//! The graph only proposes: every result was compared by its full numbers and passed the caller's filter.
//!
//! Modules, in the order data flows:
//! - `space`, `near`: spaces, vectors, scores
//! - `code`: codes of eight bits a number, with proven error bounds
//! - `rows`: all vectors of a space
//! - `query`, `best`, `exact`: exact search
//! - `approximate`: the interface of an approximate index
//! - `layer`, `graph`, `build`, `saved`: its HNSW implementation
//! - `shelf`, `view`: rows and graph of each space, as snapshots
//! - `work`, `keeper`: updates, and building in the background

mod near;
mod space;

mod code;

mod rows;

mod best;
mod exact;
mod query;

mod approximate;

mod build;
mod graph;
mod hnsw;
mod layer;
mod saved;

mod shelf;
mod view;

mod keeper;
mod work;

#[cfg(test)]
mod churn_tests;
#[cfg(test)]
mod test_kit;

pub use approximate::{BuildOptions, GraphAudit};
pub use best::NeighbourFilter;
pub use keeper::VectorIndex;
pub use near::{Neighbour, SearchMethod};
pub use shelf::SpaceStats;
pub use space::{MAX_DIMENSION, Metric, Space, Vector};
pub use view::{NearestAnswer, NearestQuery, SearchEffort, VectorView};
pub use work::{SavedGraph, SpaceWork, WorkOutcome, WorkResult};
