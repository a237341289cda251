//! TODO write.

pub(crate) mod access;
pub(crate) mod advice;
pub(crate) mod erasure;
pub(crate) mod offer;
pub(crate) mod plan;
pub(crate) mod reads;
pub(crate) mod writer;
