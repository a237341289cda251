//! One write, from a validated grain to a commit: plan, decide, apply, acknowledge. The writer thread lives here.
//!
//! Must not know sessions or CAL.

pub(crate) mod access;
pub(crate) mod advice;
pub(crate) mod erasure;
pub(crate) mod offer;
pub(crate) mod plan;
pub(crate) mod reads;
pub(crate) mod writer;
