//! The access count of a grain in the truth (OMS 22.10).

use grainstore_format::EpochMs;
use serde::Serialize;

/// The number of reads of a grain, and the time of the last. [`Session::get`](crate::Session::get) counts
/// one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct AccessCounts {
    /// Times it was in an answer of `get` or of a query.
    #[serde(rename = "access_count")]
    pub count: u64,
    /// Time of the last read, `None` for a grain that was never read.
    pub last_accessed_at: Option<EpochMs>,
}

impl AccessCounts {
    /// Adds later counts.
    #[must_use]
    pub(crate) fn and(self, later: Self) -> Self {
        Self {
            count: self.count.saturating_add(later.count),
            last_accessed_at: self.last_accessed_at.max(later.last_accessed_at),
        }
    }
}
