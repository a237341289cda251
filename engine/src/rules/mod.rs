//! TODO rules.

pub(crate) mod policy;
pub(crate) mod preset;
