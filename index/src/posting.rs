//! Where a grain stands: its sequence in the log, its time, and the orders a scan can run in.

use grainstore_format::EpochMs;

/// The position of a grain in the log. Later grains have greater sequences; gaps are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence(u64);

impl Sequence {
    /// A sequence from its number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// One entry of an index: the time of a grain (`timestamp_ms`, else `created_at`) and where its
/// bytes are. The newest posting is the greatest: later time, then later sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Posting {
    /// The time of the grain.
    pub time: EpochMs,
    /// Its place in the log.
    pub sequence: Sequence,
}

/// A range of times, both ends inclusive; an absent end is open. The default is all of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct TimeRange {
    /// The earliest time wanted.
    pub from: Option<EpochMs>,
    /// The latest time wanted.
    pub to: Option<EpochMs>,
}

/// The order of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// Later times first, then later sequences.
    Newest,
    /// The exact reverse.
    Oldest,
}
