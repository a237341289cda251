//! What follows the truth to be searched: full text, vectors, and the embedders that make vectors.
//!
//! Must not know sessions or queries.

pub mod embed;
pub(crate) mod retrieval;
pub(crate) mod texts;
pub(crate) mod vectors;
