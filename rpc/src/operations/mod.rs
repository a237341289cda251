//! The operations by what they do. `params` (with `vectors`, `embedder`) has their parameters.

pub(crate) mod agents;
pub(crate) mod calls;
pub(crate) mod codec;
pub(crate) mod embedder;
pub(crate) mod erasure;
pub(crate) mod graph;
pub(crate) mod maintain;
pub(crate) mod marks;
pub(crate) mod params;
pub(crate) mod policy;
pub(crate) mod portable;
pub(crate) mod query;
pub(crate) mod read;
pub(crate) mod signed;
pub(crate) mod store;
pub(crate) mod stream;
pub(crate) mod vectors;
pub(crate) mod write;
