//! A sample of all postings, by which long ranges are measured without being counted.
//!
//! One grain in 64 has its postings a second time here, one in 512 a third, and so on, drawn by
//! its sequence. Counting some dozens of rows at one of these levels tells how long a range is,
//! whatever its prefix, namespace and times. What is drawn depends on the log alone: folding
//! again, or in other portions, changes nothing. Exact counts are the reader's.

use redb::{ReadOnlyTable, TableDefinition, WriteTransaction};

use crate::error::Result;
use crate::keys::{self, KEY_BYTES, Key};

const SAMPLE_BYTES: usize = KEY_BYTES + 1;

/// `level:1 list:1 row:32`, shorter rows with zeros to the end.
pub(crate) const SAMPLE: TableDefinition<'static, &'static [u8; SAMPLE_BYTES], ()> =
    TableDefinition::new("index.sample");

pub(crate) type SampleRows = ReadOnlyTable<&'static [u8; SAMPLE_BYTES], ()>;

/// A level of the sample.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Level {
    byte: u8,
    /// One grain is drawn of two to the power of this.
    bits: u32,
}

/// Every level, the fullest first.
pub(crate) const LEVELS: [Level; 5] = [
    Level { byte: 1, bits: 6 },
    Level { byte: 2, bits: 9 },
    Level { byte: 3, bits: 12 },
    Level { byte: 4, bits: 15 },
    Level { byte: 5, bits: 18 },
];

impl Level {
    /// Grains of the log for each one drawn.
    pub(crate) const fn rate(self) -> u64 {
        1 << self.bits
    }

    /// Whether a grain is drawn.
    fn draws(self, mixed: u64) -> bool {
        mixed.trailing_zeros() >= self.bits
    }
}

/// Spreads consecutive numbers over all bits.
fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}

/// Adds the keys of drawn grains to the sample.
pub(crate) fn fold(txn: &WriteTransaction, sorted: &[Key]) -> Result<()> {
    let with_number = |key| Some((key, mixed(keys::rank_of(key)?.posting().sequence.get())));
    let mut drawn: Vec<(&Key, u64)> = sorted.iter().filter_map(with_number).collect();
    let mut table = txn.open_table(SAMPLE)?;
    for level in LEVELS {
        drawn.retain(|(_, mixed)| level.draws(*mixed));
        for (key, _) in &drawn {
            table.insert(&sample_key(level, key), ())?;
        }
    }
    Ok(())
}

/// Rows of a level from a key to another, both included.
pub(crate) fn count(rows: &SampleRows, level: Level, (first, last): (&Key, &Key)) -> Result<u64> {
    let (first, last) = (sample_key(level, first), sample_key(level, last));
    let mut rows = rows.range::<&[u8; SAMPLE_BYTES]>(&first..=&last)?;
    Ok(rows.try_fold(0_u64, |count, row| row.map(|_| count.saturating_add(1)))?)
}

fn sample_key(level: Level, key: &Key) -> [u8; SAMPLE_BYTES] {
    let mut sampled = [level.byte; SAMPLE_BYTES];
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
            let drawn = (0..1_u64 << 22).filter(|at| level.draws(mixed(*at))).count() as u64;
            let expected = (1 << 22) / level.rate();
            assert!(drawn.abs_diff(expected) <= expected / 2, "{level:?}: {drawn}");
        }
    }
}
