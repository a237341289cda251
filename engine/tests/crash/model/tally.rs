//! How often each kind of operation came to be done, and was refused.

use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(crate) struct Tally(BTreeMap<&'static str, (u64, u64)>);

impl Tally {
    pub(crate) fn note(&mut self, kind: &'static str, done: bool) {
        let (taken, refused) = self.0.entry(kind).or_default();
        *(if done { taken } else { refused }) += 1;
    }

    /// Prints all, and asserts that each of these came out both ways.
    pub(crate) fn assert_both(&self, kinds: &[&str], is_long_enough: bool) {
        for (kind, (done, refused)) in &self.0 {
            println!("model: {kind}: {done} done, {refused} refused");
        }
        for kind in kinds.iter().filter(|_| is_long_enough) {
            let (done, refused) = self.0.get(kind).copied().unwrap_or_default();
            assert!(done > 0 && refused > 0, "{kind}: {done} done, {refused} refused");
        }
    }
}
