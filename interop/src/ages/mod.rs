//! Evidence of the decisions of a store, for auditors: Canonical Agent Steps in Evidence Packs (AGES v1).
//!
//! The audit log is the source: one segment of it is one chain of steps, and a pack is a chain in a file. [`export`] writes
//! packs, [`verify`] checks one with nothing but its bytes. `decision` says which step an entry of the log is, `chain` links
//! steps, `shape` and `rules` say what a step must be. docs/ages.md has the mapping.

mod chain;
mod decision;
mod export;
mod rules;
mod segments;
mod shape;
mod verify;

pub use export::{ExportOptions, ExportReport, ExportedPack, export};
pub use segments::{Segment, segments};
pub use verify::{MAX_PACK_BYTES, Tampering, Verdict, verify, verify_file};

/// `schema_version` of a step.
const STEP_VERSION: &str = "ages.v1";
/// `schema_version` of a pack.
const PACK_VERSION: &str = "ages.evidence.v1";
