//! One write, from a validated grain to a commit: plan, decide, apply, acknowledge. The writer thread lives here.
//!
//! Must not know sessions or CAL.

pub(crate) mod access_counters;
pub(crate) mod erasure;
pub(crate) mod offer;
pub(crate) mod plan;
pub(crate) mod read_log;
pub(crate) mod recommendations;
pub(crate) mod sensitivity;
pub(crate) mod writer;
