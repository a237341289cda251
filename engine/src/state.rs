//! What the store keeps of one grain beside its blob: the state of the standard, and a note of its own.

use grainstore_format::GrainState;
use grainstore_index::Sequence;

/// The state of a grain, as its record holds it. The default has no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Record {
    /// The index-layer state (OMS 28.3).
    pub(crate) state: GrainState,
    /// The nearest ancestor whose protection reaches this grain (OMS 23.6).
    pub(crate) protected_root: Option<Sequence>,
}
