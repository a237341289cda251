//! The indexed form of a grain: its own terms and those shared by its neighbours in a conversation. Knows
//! nothing of how it is stored.

use super::document::{Document, DocumentTerm};

/// The greatest weight of a term in an [`IndexedDocument`]. A grain that repeats a word more often is no
/// better a hit: at this weight, its tf is within a few hundredths of the limit.
pub const MAX_TERM_WEIGHT: u8 = u8::MAX;

/// The terms of a grain as indexed.
///
/// ```
/// use grainstore_index::text::{Document, DocumentTerm, IndexedDocument};
///
/// let term = |term: &str, lent| {
///     DocumentTerm { term: term.into(), weight: 2, lent, places: [0].into() }
/// };
/// let own: Document = [term("plan", 0)].into_iter().collect();
/// let neighbour: Document = [term("travel", 1)].into_iter().collect();
/// let joined = IndexedDocument::join(&own, &[&neighbour]);
/// assert!(!joined.is_empty() && joined.size() > IndexedDocument::join(&own, &[]).size());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IndexedDocument {
    /// Ascending by term, without duplicates, none with weight 0.
    terms: Box<[IndexedTerm]>,
    /// The sum of the weights.
    length: u32,
    /// The number of terms and positions.
    size: u64,
}

/// One term of a grain as indexed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IndexedTerm {
    /// The term.
    pub(super) term: Box<str>,
    /// Its weighted frequency, at least 1.
    pub(super) weight: u8,
    /// Its positions in the grain itself, ascending.
    pub(super) positions: Box<[u32]>,
}

impl IndexedDocument {
    /// Joins a document with the terms its neighbours share: the shared weights are added to those of its own
    /// terms. Only its own terms have positions, so no phrase spans a neighbour. Weights are capped at
    /// [`MAX_TERM_WEIGHT`].
    #[must_use]
    pub fn join(own: &Document, neighbours: &[&Document]) -> Self {
        let lent = neighbours.iter().flat_map(|neighbour| neighbour.terms());
        let mut parts: Vec<(&str, u32, &[u32])> = lent
            .filter(|word| word.lent > 0)
            .map(|word| (word.term.as_ref(), word.lent, [].as_slice()))
            .chain(own.terms().iter().map(own_part))
            .collect();
        parts.sort_by_key(|part| part.0);
        let mut shares: Vec<IndexedTerm> = Vec::new();
        for group in parts.chunk_by(|a, b| a.0 == b.0) {
            let weight = group.iter().fold(0_u32, |sum, part| sum.saturating_add(part.1));
            let weight = u8::try_from(weight).unwrap_or(MAX_TERM_WEIGHT);
            let Some((term, ..)) = group.first() else { continue };
            if weight > 0 {
                let places = group.iter().flat_map(|part| part.2).copied().collect();
                shares.push(IndexedTerm { term: (*term).into(), weight, positions: places });
            }
        }
        let length =
            shares.iter().fold(0_u32, |sum, share| sum.saturating_add(share.weight.into()));
        let places: usize = shares.iter().map(|share| share.positions.len()).sum();
        let size = shares.len().saturating_add(places) as u64;
        Self { terms: shares.into_boxed_slice(), length, size }
    }

    /// Returns `true` if the document has no terms.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// The number of terms and positions, to which its memory is proportional.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The sum of all weights.
    pub(super) fn length(&self) -> u32 {
        self.length
    }

    /// The terms, ascending.
    pub(super) fn terms(&self) -> &[IndexedTerm] {
        &self.terms
    }

    /// Looks up a term.
    pub(super) fn term(&self, term: &str) -> Option<&IndexedTerm> {
        let at = self.terms.binary_search_by(|share| share.term.as_ref().cmp(term)).ok()?;
        self.terms.get(at)
    }
}

fn own_part(word: &DocumentTerm) -> (&str, u32, &[u32]) {
    (&word.term, word.weight, &word.places)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(term: &str, weight: u32, lent: u32, places: &[u32]) -> DocumentTerm {
        DocumentTerm { term: term.into(), weight, lent, places: places.into() }
    }

    #[test]
    fn neighbours_lend_frequencies_and_no_places() {
        let own = Document::from_terms(vec![word("cat", 6, 1, &[3]), word("dog", 600, 2, &[1, 9])]);
        let one = Document::from_terms(vec![word("cat", 6, 2, &[0]), word("eel", 6, 1, &[1])]);
        let other = Document::from_terms(vec![word("cat", 1, 1, &[7]), word("fox", 6, 0, &[2])]);
        let joined = IndexedDocument::join(&own, &[&one, &other]);
        let seen: Vec<(&str, u8, &[u32])> = joined
            .terms()
            .iter()
            .map(|s| (s.term.as_ref(), s.weight, s.positions.as_ref()))
            .collect();
        assert_eq!(
            seen,
            [("cat", 9, [3].as_slice()), ("dog", 255, &[1, 9]), ("eel", 1, [].as_slice())]
        );
        assert_eq!(joined.length(), 265);
    }

    #[test]
    fn a_word_that_comes_twice_counts_for_both() {
        let words = vec![word("a", 1, 1, &[4]), word("b", 1, 0, &[]), word("a", 2, 0, &[1, 4])];
        let document = Document::from_terms(words);
        assert_eq!(document.terms(), [word("a", 3, 1, &[1, 4]), word("b", 1, 0, &[])]);
    }
}
