//! Postings: the sequence of a grain in the log, its time, and the orders of a scan.

use std::cmp::{Ordering, Reverse};

use grainstore_format::EpochMs;

/// The position of a grain in the log, as in its [`Posting`]. Later grains have greater sequences. An index
/// takes them with gaps; the log of the engine has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence(u64);

impl Sequence {
    /// The last sequence a posting has room for: 2^32 - 1.
    pub const MAX: Self = Self((1 << 32) - 1);

    /// Wraps a number.
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

/// The first bytes of an address, which order each [`Posting`] of equal time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TieBreaker(pub(crate) [u8; TieBreaker::BYTES]);

impl TieBreaker {
    /// The number of leading address bytes kept. Where grains of equal time also share these bytes, the
    /// reader orders them by their full addresses.
    pub(crate) const BYTES: usize = 2;
    /// The value of the smallest address.
    pub const FIRST: Self = Self([0; Self::BYTES]);
    /// The value of the greatest address.
    pub const LAST: Self = Self([u8::MAX; Self::BYTES]);

    /// The value of an address.
    #[must_use]
    pub const fn from_address([a, b, ..]: &[u8; 32]) -> Self {
        Self([*a, *b])
    }
}

/// The last grain an index contains; the log continues after it. A [`Tail`](crate::Tail) moves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Watermark {
    /// Its position in the log.
    pub sequence: Sequence,
    /// Its address as the log stores it (blinded in an encrypted store). It tells one log from another with
    /// the same sequences.
    pub address: [u8; 32],
}

/// One entry of a posting list: the time of a grain (`timestamp_ms`, else `created_at`), the first bytes of
/// its address, and its sequence. Newest first means descending time, then ascending address.
///
/// ```
/// use grainstore_format::EpochMs;
/// use grainstore_index::{Posting, Sequence, TieBreaker};
///
/// let posting = |ms, sequence| Posting {
///     time: EpochMs::new(ms),
///     tie: TieBreaker::FIRST,
///     sequence: Sequence::new(sequence),
/// };
/// assert!(posting(2_000, 0) > posting(1_000, 1));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Posting {
    /// The time of the grain.
    pub time: EpochMs,
    /// The first bytes of its address.
    pub tie: TieBreaker,
    /// Its position in the log.
    pub sequence: Sequence,
}

impl Ord for Posting {
    /// The newest posting is the greatest; at equal time, the one with the smallest address.
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

/// A range of times in which an [`IndexReader`](crate::IndexReader) looks, both ends inclusive; `None` is an
/// open end. The default is all of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct TimeRange {
    /// The earliest time in the range.
    pub from: Option<EpochMs>,
    /// The latest time in the range.
    pub to: Option<EpochMs>,
}

/// The direction of a scan of an [`IndexReader`](crate::IndexReader).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TimeOrder {
    /// Descending time; at equal time, ascending address.
    Newest,
    /// The exact reverse of [`TimeOrder::Newest`].
    Oldest,
}
