//! What an import has written and not committed, as a plan sees it beneath what it stages itself.
//!
//! The seam between deciding and the transaction of an import: a plan knows of neither tables nor files.

use grainstore_format::{ContentAddress, GrainState};
use grainstore_index::Sequence;

use crate::base::error::Result;

/// A log that goes on behind that of the view.
pub(crate) trait Beneath {
    /// The last place of the log.
    fn last(&self) -> Sequence;

    /// Where a grain lies that the view does not have.
    fn sequence_of(&self, address: &ContentAddress) -> Result<Option<Sequence>>;

    /// The blob at a place of the whole log.
    fn blob_at(&self, sequence: Sequence) -> Result<Vec<u8>>;

    /// The state at a place of the whole log.
    fn state_at(&self, sequence: Sequence) -> Result<GrainState>;

    /// The roots at a place of the whole log.
    fn roots_at(&self, sequence: Sequence) -> Result<Vec<Sequence>>;

    /// Up to so many grains that derive from this one and that the view does not have.
    fn children_of(&self, address: &ContentAddress, limit: usize) -> Result<Vec<Sequence>>;
}
