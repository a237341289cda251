//! Invalidation policies and compliance presets: pure decisions over facts. Nothing here reads the store.

pub(crate) mod policy;
pub(crate) mod preset;
