//! A sample of all postings, from which the length of a long range is estimated without counting it.
//!
//! One grain in 64 has its postings copied here at the first level, one in 512 also at the second, and so on,
//! selected by a hash of its sequence. Counting some dozens of rows at one level tells the length of a range,
//! for any prefix, namespace and time range. The selection depends on the log alone: folding again, or in
//! other batches, changes nothing. Exact counts are the reader's.

use std::sync::Arc;

use crate::error::Result;
use crate::keys::{self, PostingKey, SAMPLE_ROW_BYTES};
use crate::run::cursor::RunCursor;
use crate::run::lists::RunList;
use crate::run::table::Run;

/// A row of the sample.
pub(crate) type SampleRow = [u8; SAMPLE_ROW_BYTES];

/// A level of the sample.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SampleLevel {
    byte: u8,
    /// One grain in 2^bits is selected.
    bits: u32,
}

/// All levels, the largest first.
pub(crate) const LEVELS: [SampleLevel; 5] = [
    SampleLevel { byte: 1, bits: 6 },
    SampleLevel { byte: 2, bits: 9 },
    SampleLevel { byte: 3, bits: 12 },
    SampleLevel { byte: 4, bits: 15 },
    SampleLevel { byte: 5, bits: 18 },
];

impl SampleLevel {
    /// The number of grains of the log for each one selected.
    pub(crate) const fn rate(self) -> u64 {
        1 << self.bits
    }

    /// Returns `true` if a grain with this hash is in the level.
    fn selects(self, mixed: u64) -> bool {
        mixed.trailing_zeros() >= self.bits
    }
}

/// Hashes a sequence: spreads consecutive numbers over all bits.
fn hash(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}

/// The rows of the selected grains, in order; `sorted` are all keys of a run.
pub(crate) fn draw(sorted: &[PostingKey]) -> Vec<SampleRow> {
    let with_number = |key| Some((key, hash(keys::order_key_of(key)?.posting().sequence.get())));
    let mut drawn: Vec<(&PostingKey, u64)> = sorted.iter().filter_map(with_number).collect();
    let mut rows = Vec::new();
    for level in LEVELS {
        drawn.retain(|(_, mixed)| level.selects(*mixed));
        rows.extend(drawn.iter().map(|(key, _)| sample_key(level, key)));
    }
    rows
}

/// Counts the rows of a level of a run from one key to another, both included.
pub(crate) fn count(
    run: &Arc<Run>,
    level: SampleLevel,
    (first, last): (&PostingKey, &PostingKey),
) -> Result<u64> {
    let (first, last) = (sample_key(level, first), sample_key(level, last));
    let mut cursor = RunCursor::new(run, RunList::SAMPLE);
    let (mut count, mut more) = (0_u64, cursor.seek(&first)?);
    while more && *cursor.key() <= last[..] {
        count = count.saturating_add(1);
        more = cursor.advance()?;
    }
    Ok(count)
}

fn sample_key(level: SampleLevel, key: &PostingKey) -> SampleRow {
    let mut sampled = [level.byte; SAMPLE_ROW_BYTES];
    if let Some((_, slot)) = sampled.split_first_mut() {
        slot.copy_from_slice(key);
    }
    sampled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_level_draws_its_share_of_the_one_before() {
        for level in LEVELS {
            let drawn = (0..1_u64 << 22).filter(|at| level.selects(hash(*at))).count() as u64;
            let expected = (1 << 22) / level.rate();
            assert!(drawn.abs_diff(expected) <= expected / 2, "{level:?}: {drawn}");
        }
    }
}
