//! Where a grain stands: its sequence in the log, its time, and the orders a scan can run in.

use std::cmp::{Ordering, Reverse};

use grainstore_format::EpochMs;

/// The position of a grain in the log. Later grains have greater sequences; gaps are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence(u64);

impl Sequence {
    /// The last sequence a posting has room for: 2^32 - 1.
    pub const MAX: Self = Self((1 << 32) - 1);

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

/// The start of an address: what orders grains of one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tie(pub(crate) [u8; Tie::BYTES]);

impl Tie {
    /// Bytes of an address that are kept. Grains of one time whose addresses start alike beyond
    /// them are put in order by whoever reads them.
    pub(crate) const BYTES: usize = 2;
    /// That of the smallest address.
    pub const FIRST: Self = Self([0; Self::BYTES]);
    /// That of the greatest address.
    pub const LAST: Self = Self([u8::MAX; Self::BYTES]);

    /// That of an address.
    #[must_use]
    pub const fn of([a, b, ..]: &[u8; 32]) -> Self {
        Self([*a, *b])
    }
}

/// One entry of an index: the time of a grain (`timestamp_ms`, else `created_at`), the start of its
/// address, and where its bytes are. Newest first is by descending time, then by ascending address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Posting {
    /// The time of the grain.
    pub time: EpochMs,
    /// How its address starts.
    pub tie: Tie,
    /// Its place in the log.
    pub sequence: Sequence,
}

impl Ord for Posting {
    /// The newest posting is the greatest; of one time, that with the smallest address.
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |posting: &Self| (posting.time, Reverse(posting.tie), posting.sequence);
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for Posting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
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
