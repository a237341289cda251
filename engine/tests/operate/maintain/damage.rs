//! Bits flipped anywhere in the truth: the store does not open, or verification finds it, or it lay
//! where nothing is kept.

use std::fs;

use crate::maintain::kit::{answers, copy, filled, is_full, try_open};

/// A stretch of numbers that is the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }
}

#[test]
fn a_flipped_bit_anywhere_in_the_truth_is_found_or_harmless() {
    let (dir, store) = filled(60);
    store.compact().unwrap();
    let before = answers(&store);
    store.close().unwrap();
    drop(store);
    let whole = fs::read(dir.path().join("grains.redb")).unwrap();
    let mut numbers = Numbers(7);
    let (mut refused, mut found, mut harmless) = (0, 0, 0);
    for _ in 0..if is_full() { 5_000 } else { 60 } {
        let harmed = copy(dir.path());
        let bit = numbers.below(whole.len() * 8);
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        fs::write(harmed.path().join("grains.redb"), &bytes).unwrap();
        let store = match try_open(harmed.path()) {
            Ok(store) => store,
            Err(error) => {
                assert!(["ERR_INTEGRITY", "ERR_STORE_VERSION", "ERR_IO"].contains(&error.code()));
                refused += 1;
                continue;
            }
        };
        if store.verify(true).is_ok_and(|verified| verified.ok) {
            assert_eq!(answers(&store), before, "bit {bit} changes an answer and is not found");
            harmless += 1;
        } else {
            found += 1;
        }
    }
    println!("{refused} not opened, {found} found, {harmless} harmless");
    assert!(found > 0);
}
