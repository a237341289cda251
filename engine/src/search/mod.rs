//! TODO search.

pub mod embed;
pub(crate) mod retrieval;
pub(crate) mod texts;
pub(crate) mod vectors;
