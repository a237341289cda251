//! Vectors: search for the nearest neighbours of a vector.
//!
//! The truth holds the vectors; here they are in memory, with an HNSW graph beside them once there are many.
//! The graph only proposes: every result was compared by its full numbers and passed the caller's filter.
//!
//! Modules, in the order data flows:
//! - `space`, `neighbour`: spaces, vectors, scores
//! - `quantise`: codes of eight bits a number, with proven error bounds
//! - `rows`: all vectors of a space
//! - `query`, `top_neighbours`, `exact`: exact search
//! - `approximate`: the interface of an approximate index
//! - `layer`, `graph`, `build`, `graph_file`: its HNSW implementation
//! - `space_index`, `view`: rows and graph of each space, as snapshots
//! - `work`, `vector_index`: updates, and building in the background

mod neighbour;
mod space;

mod quantise;

mod rows;

mod exact;
mod query;
mod top_neighbours;

mod approximate;

mod build;
mod graph;
mod graph_file;
mod hnsw;
mod layer;

mod space_index;
mod view;

mod vector_index;
mod work;

#[cfg(test)]
mod churn_tests;
#[cfg(test)]
mod test_kit;

pub use approximate::{BuildOptions, GraphAudit};
pub use neighbour::{Neighbour, SearchMethod};
pub use space::{MAX_DIMENSION, Metric, Space, Vector};
pub use space_index::SpaceStats;
pub use top_neighbours::NeighbourFilter;
pub use vector_index::VectorIndex;
pub use view::{NearestAnswer, NearestQuery, SearchEffort, VectorView};
pub use work::{SavedGraph, SpaceWork, WorkOutcome, WorkResult};
