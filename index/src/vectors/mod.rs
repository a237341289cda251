//! Vectors: which grains are nearest to a given one.
//!
//! The truth holds the vectors; here they stand in memory, with a graph beside them once there are
//! many. The graph only proposes. What is answered was compared by its numbers, and judged.
//!
//! In the order data flows:
//! - `space`, `near`: the words: spaces, vectors, scores
//! - `code`: eight bits a number, and what they say for sure
//! - `rows`: all vectors of a space
//! - `query`, `best`, `exact`: the answer without a graph
//! - `approximate`: what a graph has to offer
//! - `layer`, `graph`, `build`, `saved`: the one there is
//! - `shelf`, `view`: rows and graph of each space, as of one moment
//! - `work`, `keeper`: how they come to be

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

pub use approximate::{Audit, Effort};
pub use best::Judge;
pub use keeper::Keeper;
pub use near::Near;
pub use shelf::SpaceStats;
pub use space::{MAX_DIMENSION, Metric, Space, Vector};
pub use view::{Ask, Care, Found, View, Way};
pub use work::{Done, Outcome, Saved, Work};
