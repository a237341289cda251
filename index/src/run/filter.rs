//! A Bloom filter over the addresses and terms of a run: a run that does not have one is seldom read for it.
//!
//! Bytes: the bits, a multiple of 64. A term is found by XXH64 of its key. Ten bits for each entry and six probes: one in a hundred is read in vain.

use twox_hash::XxHash64;

/// Bits for each entry.
const BITS: usize = 10;
const PROBES: usize = 6;

/// What a filter is asked for: the places of its bits, as fractions of 2^32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FilterKey([u32; PROBES]);

impl FilterKey {
    /// Of an address, which is a hash.
    pub(crate) fn of_address(address: &[u8; 32]) -> Self {
        let mut parts = [0; PROBES];
        for (part, bytes) in parts.iter_mut().zip(address.as_chunks::<4>().0) {
            *part = u32::from_be_bytes(*bytes);
        }
        Self(parts)
    }

    /// Of the key of a term.
    pub(crate) fn of_term(key: &[u8]) -> Self {
        // Double hashing (Kirsch and Mitzenmacher): as good as six hashes.
        let [a, b, c, d, rest @ ..] = XxHash64::oneshot(0, key).to_be_bytes();
        let (first, step) = (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes(rest) | 1);
        let mut parts = [first; PROBES];
        for (number, part) in (0_u32..).zip(&mut parts) {
            *part = first.wrapping_add(number.wrapping_mul(step));
        }
        Self(parts)
    }

    /// The bits of a filter of so many.
    fn bits(self, count: usize) -> impl Iterator<Item = usize> {
        self.0.into_iter().map(move |part| {
            let place = u64::from(part).saturating_mul(count as u64) >> 32;
            usize::try_from(place).unwrap_or_default()
        })
    }
}

/// Returns `true` if what the filter was made of may have this key.
pub(crate) fn may_have(filter: &[u8], key: FilterKey) -> bool {
    key.bits(filter.len().saturating_mul(8))
        .all(|bit| filter.get(bit / 8).is_some_and(|byte| byte & (1 << (bit % 8)) != 0))
}

/// A filter that is being made.
#[derive(Debug)]
pub(crate) struct FilterBuilder(Vec<u8>);

impl FilterBuilder {
    /// A filter for so many entries.
    pub(crate) fn for_entries(entries: u64) -> Self {
        let entries = usize::try_from(entries).unwrap_or(usize::MAX);
        let words = entries.saturating_mul(BITS).div_ceil(64).max(1);
        Self(vec![0; words.saturating_mul(8)])
    }

    /// Adds an entry.
    pub(crate) fn add(&mut self, key: FilterKey) {
        for bit in key.bits(self.0.len().saturating_mul(8)) {
            if let Some(byte) = self.0.get_mut(bit / 8) {
                *byte |= 1 << (bit % 8);
            }
        }
    }

    /// The bytes.
    pub(crate) fn finish(self) -> Vec<u8> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_is_there_and_little_else() {
        let key = |n: u32| FilterKey::of_term(&n.to_be_bytes());
        let mut filter = FilterBuilder::for_entries(1_000);
        (0..1_000).for_each(|n| filter.add(key(n)));
        let filter = filter.finish();
        assert_eq!(filter.len(), 1_256);
        assert!((0..1_000).all(|n| may_have(&filter, key(n))));
        let in_vain = (1_000..11_000).filter(|n| may_have(&filter, key(*n))).count();
        assert!(in_vain < 200, "{in_vain} of 10,000");
        assert!(!may_have(&[], key(1)) && !may_have(&[0; 8], key(1)));
        assert_eq!(FilterBuilder::for_entries(0).finish().len(), 8);
    }

    #[test]
    fn a_filter_has_these_bits() {
        let mut filter = FilterBuilder::for_entries(1);
        let mut address = [0; 32];
        address[..8].copy_from_slice(&[0x80, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]);
        filter.add(FilterKey::of_address(&address));
        assert_eq!(filter.finish(), [1, 0, 0, 0, 1, 0, 0, 0x80]);
    }
}
