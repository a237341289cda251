//! TODO write.

pub(crate) mod access;
pub(crate) mod advice;
pub(crate) mod noting;
pub(crate) mod offer;
pub(crate) mod plan;
pub(crate) mod reads;
pub(crate) mod rule_changes;
pub(crate) mod writer;
