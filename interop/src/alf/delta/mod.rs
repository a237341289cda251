//! Deltas (ALF 4.3): what changed of an agent since a sequence number, out of one store and into another.

mod apply;
mod export;

pub use apply::{ApplyReport, apply_delta};
pub use export::{DeltaOptions, DeltaReport, export_delta};
