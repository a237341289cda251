//! Random numbers that are the same in every run: splitmix64. Not for anything secret.

/// A source of numbers; equal seeds give equal numbers.
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    /// The source of a stream and a number in it.
    pub(super) fn new(stream: u8, number: u32) -> Self {
        let mut start = Self(u64::from(stream) << 32 | u64::from(number));
        Self(start.next())
    }

    /// A number below `bound`; 0 where `bound` is 0.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next().checked_rem(bound).unwrap_or_default()
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

/// The item at a place, if there is one.
pub(super) fn nth<T: Copy>(items: &[T], place: u64) -> Option<T> {
    items.get(usize::try_from(place).ok()?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_numbers_and_a_bound_is_kept() {
        let drawn = |stream, number| {
            let mut random = Random::new(stream, number);
            (0..50).map(|_| random.below(1_000)).collect::<Vec<_>>()
        };
        assert_eq!(drawn(1, 7), drawn(1, 7));
        assert_ne!(drawn(1, 7), drawn(1, 8));
        assert_ne!(drawn(1, 7), drawn(2, 7));
        assert!(drawn(1, 7).iter().all(|number| *number < 1_000));
        assert_eq!(Random::new(1, 1).below(0), 0);
    }
}
