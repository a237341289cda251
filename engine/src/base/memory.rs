//! The memory of a store: one budget, and what each part may take of it.
//!
//! Knows the shares alone; whoever holds memory keeps to its own. Vectors are outside of it: they are read into
//! memory whole.

/// The budget unless the host names another.
pub(crate) const DEFAULT_MEMORY_BYTES: usize = 128 << 20;
/// The least budget of a store ([`OpenOptions::memory_bytes`](crate::OpenOptions::memory_bytes)).
pub const MIN_MEMORY_BYTES: usize = 16 << 20;
/// Parts of the budget: the shares below are so many of them, and a tail is there twice while it is folded. The rest
/// is for merges.
const PARTS: usize = 16;
/// Of each of truth and index.
const PAGE_CACHE: usize = 3;
const TEXT_CACHE: usize = 3;
/// A tail of the index or of the full text that is folded.
const TAIL: usize = 1;
/// What may grow with the data before the cache of the full text gives way.
const GROWING: usize = 2;
/// What is left to the cache of the full text in any case.
const LEAST_TEXT_CACHE: usize = 1;

/// The shares of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MemoryBudget {
    /// Bytes of all.
    pub(crate) total: usize,
    /// Bytes of the page cache of the truth, and of that of the index.
    pub(crate) page_cache: usize,
}

impl MemoryBudget {
    /// The shares of so many bytes.
    pub(crate) fn new(total: usize) -> Self {
        let share = |parts: usize| total / PARTS * parts;
        Self { total, page_cache: share(PAGE_CACHE) }
    }

    /// The same with these bytes for both page caches together, half for each.
    pub(crate) fn with_page_caches(self, bytes: usize) -> Self {
        Self { page_cache: bytes / 2, ..self }
    }

    /// Bytes at which a tail is folded, of the index or of the full text.
    pub(crate) fn tail(&self) -> usize {
        self.total / PARTS * TAIL
    }

    /// Bytes of the cache of pages of the full text, while so many are taken by what grows with the data.
    pub(crate) fn text_cache(&self, growing: usize) -> usize {
        let share = |parts: usize| self.total / PARTS * parts;
        let beyond = growing.saturating_sub(share(GROWING));
        share(TEXT_CACHE).saturating_sub(beyond).max(share(LEAST_TEXT_CACHE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_are_no_more_than_the_budget_and_growing_data_takes_from_the_text() {
        for total in [MIN_MEMORY_BYTES, DEFAULT_MEMORY_BYTES, 1 << 30] {
            let budget = MemoryBudget::new(total);
            // Two tails of the index, and two of the full text.
            let tails = 4 * budget.tail();
            for growing in [0, total / 8, total / 5] {
                let caches = 2 * budget.page_cache + budget.text_cache(growing);
                assert!(caches + growing + tails <= total, "{total} {growing}");
            }
            assert_eq!(budget.text_cache(usize::MAX), total / 16);
        }
        let budget = MemoryBudget::new(DEFAULT_MEMORY_BYTES).with_page_caches(10);
        assert_eq!(budget.page_cache, 5);
    }
}
