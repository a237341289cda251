//! The tail of the full text: documents that are in no segment yet, with an inverted index of their own.
//!
//! Cheap to clone: a reader's copy does not change while documents are added and removed. Meant for up to
//! some thousands of documents, which are then folded into a segment.

use std::sync::Arc;

use super::indexed_document::{IndexedDocument, IndexedTerm};
use super::score::{CollectionStats, length_code};
use crate::posting::Sequence;

/// The documents and their postings.
#[derive(Debug, Clone, Default)]
pub(super) struct TextTail {
    /// The documents of each term, ascending by slot. Hashed, as it is looked up for every term of every new
    /// grain; sorted only by a fold.
    terms: imbl::HashMap<Arc<str>, Arc<Vec<TailPosting>>>,
    /// The slot of each grain.
    slots: imbl::OrdMap<Sequence, u32>,
    /// The documents by slot; the slot of a removed grain stays empty.
    entries: imbl::Vector<Option<TailDocument>>,
    /// The length codes, by slot.
    lengths: Arc<Vec<u8>>,
    /// The sum of their lengths.
    length: u64,
    /// The number of terms and positions.
    size: u64,
}

/// One document.
#[derive(Debug, Clone)]
pub(super) struct TailDocument {
    /// The grain.
    pub(super) sequence: Sequence,
    /// Its terms.
    pub(super) joined: Arc<IndexedDocument>,
}

/// A posting: a document with a term, and the term's weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TailPosting {
    /// The slot of the document, which is its doc id.
    pub(super) slot: u32,
    /// The weight of the term in it.
    pub(super) weight: u8,
}

impl TextTail {
    /// The number of documents and their total length.
    pub(super) fn collection_stats(&self) -> CollectionStats {
        CollectionStats { documents: self.slots.len() as u64, total_length: self.length }
    }

    /// The number of terms and positions, to which its memory is proportional.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// The upper bound of slots, exclusive.
    pub(super) fn end(&self) -> u32 {
        u32::try_from(self.entries.len()).unwrap_or(u32::MAX)
    }

    /// Sets the terms of a grain.
    pub(super) fn set(&mut self, sequence: Sequence, joined: Arc<IndexedDocument>) {
        let old = self.slots.get(&sequence).copied();
        let slot = old.unwrap_or_else(|| self.end());
        let before = old.and_then(|slot| self.entry(slot)).map(|entry| Arc::clone(&entry.joined));
        self.replace_terms(
            slot,
            before.as_deref().map_or(&[], IndexedDocument::terms),
            joined.terms(),
        );
        let code = length_code(joined.length());
        self.size = self.size.saturating_sub(before.as_ref().map_or(0, |joined| joined.size()));
        self.size = self.size.saturating_add(joined.size());
        self.length = self.length.saturating_sub(before.map_or(0, |joined| joined.length().into()));
        self.length = self.length.saturating_add(joined.length().into());
        let entry = Some(TailDocument { sequence, joined });
        let at = usize::try_from(slot).unwrap_or(usize::MAX);
        let lengths = Arc::make_mut(&mut self.lengths);
        match (self.entries.get_mut(at), lengths.get_mut(at)) {
            (Some(place), Some(length)) => (*place, *length) = (entry, code),
            _ => {
                self.entries.push_back(entry);
                lengths.push(code);
            }
        }
        self.slots.insert(sequence, slot);
    }

    /// Removes a grain. Returns `true` if it was there.
    pub(super) fn remove(&mut self, sequence: Sequence) -> bool {
        let Some(slot) = self.slots.remove(&sequence) else { return false };
        let at = usize::try_from(slot).unwrap_or(usize::MAX);
        if let Some(entry) = self.entries.get_mut(at).and_then(Option::take) {
            self.replace_terms(slot, entry.joined.terms(), &[]);
            self.length = self.length.saturating_sub(entry.joined.length().into());
            self.size = self.size.saturating_sub(entry.joined.size());
        }
        if self.slots.is_empty() {
            *self = Self::default();
        }
        true
    }

    /// The document of a grain, with its slot.
    pub(super) fn get(&self, sequence: Sequence) -> Option<(u32, &TailDocument)> {
        let slot = *self.slots.get(&sequence)?;
        Some((slot, self.entry(slot)?))
    }

    /// The document in a slot.
    pub(super) fn entry(&self, slot: u32) -> Option<&TailDocument> {
        self.entries.get(usize::try_from(slot).ok()?)?.as_ref()
    }

    /// The length codes, by slot.
    pub(super) fn lengths(&self) -> &[u8] {
        &self.lengths
    }

    /// The documents, with their slots, in the order of the slots.
    pub(super) fn entries(&self) -> impl Iterator<Item = (u32, &TailDocument)> {
        (0_u32..).zip(&self.entries).filter_map(|(slot, entry)| Some((slot, entry.as_ref()?)))
    }

    /// The postings of a term, ascending by slot.
    pub(super) fn term(&self, term: &str) -> Option<(&Arc<str>, &Arc<Vec<TailPosting>>)> {
        self.terms.get_key_value(term)
    }

    /// The terms with their postings, unordered.
    pub(super) fn terms(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<Vec<TailPosting>>)> {
        self.terms.iter()
    }

    /// Replaces the terms of a slot; both lists ascend by term.
    fn replace_terms(&mut self, slot: u32, old: &[IndexedTerm], new: &[IndexedTerm]) {
        let mut old = old.iter().peekable();
        for share in new {
            while let Some(gone) = old.next_if(|old| old.term < share.term) {
                self.take(&gone.term, slot);
            }
            let same = old.next_if(|old| old.term == share.term);
            if same.is_none_or(|same| same.weight != share.weight) {
                self.put(&share.term, TailPosting { slot, weight: share.weight });
            }
        }
        for gone in old {
            self.take(&gone.term, slot);
        }
    }

    /// Sets the weight of a term in a slot.
    fn put(&mut self, term: &str, posting: TailPosting) {
        let Some(postings) = self.terms.get_mut(term) else {
            self.terms.insert(term.into(), Arc::new(vec![posting]));
            return;
        };
        let postings = Arc::make_mut(postings);
        let at = postings.partition_point(|other| other.slot < posting.slot);
        match postings.get_mut(at) {
            Some(other) if other.slot == posting.slot => *other = posting,
            _ => postings.insert(at, posting),
        }
    }

    /// Removes a term from a slot.
    fn take(&mut self, term: &str, slot: u32) {
        let Some(postings) = self.terms.get_mut(term) else { return };
        let postings = Arc::make_mut(postings);
        if let Ok(at) = postings.binary_search_by_key(&slot, |posting| posting.slot) {
            postings.remove(at);
        }
        if postings.is_empty() {
            self.terms.remove(term);
        }
    }
}
