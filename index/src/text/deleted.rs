//! The documents deleted from a segment since it was written, and their share of the statistics. Cheap to
//! clone, and never changes under a reader.

use super::segment::Segment;
use crate::error::Result;

/// The deleted documents of one segment.
#[derive(Debug, Clone, Default)]
pub(super) struct DeletedDocs {
    /// A bitmap of doc ids in 64-bit words; words beyond the last deleted document are missing.
    bits: imbl::Vector<u64>,
    /// The number of deleted documents.
    documents: u32,
    /// The sum of their lengths.
    length: u64,
    /// The number of deleted documents with each term, by ordinal.
    frequencies: imbl::OrdMap<u32, u32>,
    /// True if one of them was erased, so that the segment must be rewritten.
    erased: bool,
}

impl DeletedDocs {
    /// Deletes a document and its share of the statistics. Deleting it again changes nothing.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if the segment has no terms for it.
    pub(super) fn remove(&mut self, segment: &Segment, document: u32) -> Result<()> {
        if self.contains(document) {
            return Ok(());
        }
        let stored = segment.record(document)?;
        let record = stored.record();
        let (word, bit) = bit_of(document);
        while self.bits.len() <= word {
            self.bits.push_back(0);
        }
        if let Some(bits) = self.bits.get_mut(word) {
            *bits |= bit;
        }
        self.documents = self.documents.saturating_add(1);
        self.length = self.length.saturating_add(record.length());
        for ordinal in record.ordinals() {
            match self.frequencies.get_mut(&ordinal) {
                Some(frequency) => *frequency = frequency.saturating_add(1),
                None => {
                    self.frequencies.insert(ordinal, 1);
                }
            }
        }
        Ok(())
    }

    /// Requests that the segment be rewritten at the next fold.
    pub(super) fn mark_erased(&mut self) {
        self.erased = true;
    }

    /// Returns `true` if a deleted document must be removed from the segment.
    pub(super) fn is_erased(&self) -> bool {
        self.erased
    }

    /// Returns `true` if a document is deleted.
    #[inline]
    pub(super) fn contains(&self, document: u32) -> bool {
        if self.documents == 0 {
            return false;
        }
        let (word, bit) = bit_of(document);
        self.bits.get(word).is_some_and(|bits| bits & bit != 0)
    }

    /// The number of deleted documents.
    pub(super) fn documents(&self) -> u32 {
        self.documents
    }

    /// The sum of their lengths.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// The number of deleted documents with a term.
    pub(super) fn frequency(&self, ordinal: u32) -> u32 {
        self.frequencies.get(&ordinal).copied().unwrap_or(0)
    }

    /// The deleted doc ids, ascending.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> {
        (0_u32..).step_by(64).zip(self.bits.iter()).flat_map(|(first, bits)| {
            (0..64).filter(move |bit| bits & (1 << bit) != 0).map(move |bit| first + bit)
        })
    }
}

fn bit_of(document: u32) -> (usize, u64) {
    (usize::try_from(document / 64).unwrap_or(usize::MAX), 1 << (document % 64))
}
