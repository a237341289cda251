//! The uncommitted rows of an import, as the base of a plan's own staged rows.
//!
//! The interface between deciding and the transaction of an import: a plan knows neither tables nor files.

use grainstore_format::{ContentAddress, GrainState};
use grainstore_index::Sequence;

use crate::base::error::Result;

/// A log that extends that of the view.
pub(crate) trait UncommittedLog {
    /// The last sequence of the log.
    fn last_sequence(&self) -> Sequence;

    /// Returns the sequence of a grain that is not in the view.
    fn sequence_of(&self, address: &ContentAddress) -> Result<Option<Sequence>>;

    /// Returns the blob at a sequence of the whole log.
    fn blob_at(&self, sequence: Sequence) -> Result<Vec<u8>>;

    /// Returns the state at a sequence of the whole log.
    fn state_at(&self, sequence: Sequence) -> Result<GrainState>;

    /// Returns the roots at a sequence of the whole log.
    fn roots_at(&self, sequence: Sequence) -> Result<Vec<Sequence>>;

    /// Returns the valid signer of a grain that is not in the view.
    fn signer_at(&self, sequence: Sequence) -> Result<Option<String>>;

    /// Returns up to `limit` grains that derive from this one and are not in the view.
    fn children_of(&self, address: &ContentAddress, limit: usize) -> Result<Vec<Sequence>>;
}
