//! Which blocks of a run were compared with their tags, so that a block is hashed once and not at each look-up.
//!
//! Of a block is kept where its bytes lay in memory when they were compared. The same bytes are not compared again; when
//! redb has dropped the page and reads it again, it lies elsewhere as a rule, and is. Nothing promises that: a page
//! that comes to lie in the same place again is taken for the one that was compared.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The blocks of a run that were compared.
#[derive(Debug)]
pub(crate) struct ComparedBlocks {
    /// Where each lay in memory; 0 for one that was not compared.
    places: Box<[AtomicUsize]>,
}

impl ComparedBlocks {
    /// So many blocks, of which none was compared.
    pub(crate) fn none_of(blocks: usize) -> Self {
        Self { places: std::iter::repeat_with(AtomicUsize::default).take(blocks).collect() }
    }

    /// Returns `true` if these bytes of a block were compared.
    pub(crate) fn has(&self, block: usize, bytes: &[u8]) -> bool {
        // Nothing else is read because of it: the bytes came through locks of redb.
        self.places
            .get(block)
            .is_some_and(|place| place.load(Ordering::Relaxed) == bytes.as_ptr().addr())
    }

    /// Notes that these bytes of a block fit their tag.
    pub(crate) fn note(&self, block: usize, bytes: &[u8]) {
        if let Some(place) = self.places.get(block) {
            place.store(bytes.as_ptr().addr(), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
#[path = "compared_tests.rs"]
mod tests;
