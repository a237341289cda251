//! The terms of one grain alone, without those of its neighbours. Knows nothing of how they are stored.

/// The terms of one grain.
///
/// ```
/// # use grainstore_format::{Encoding, EpochMs, EventBuilder, GrainRef};
/// # let time = EpochMs::new(1_768_471_200_000);
/// # let grain = EventBuilder::new(time, "Alice plans her travels").build()?;
/// # let blob = grain.encode(Encoding::Cbor)?;
/// # let grain = GrainRef::new(blob.bytes())?;
/// use grainstore_index::text::{Document, Language, Settings};
///
/// // `grain` is an event: "Alice plans her travels".
/// let document = Document::of(&grain, &Settings::new(Language::English));
/// assert!(document.term("travel").is_some() && document.term("travels").is_none());
/// assert_eq!(document.term("plan").map(|term| term.places.len()), Some(1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Document {
    /// Ascending by term, without duplicates.
    terms: Box<[DocumentTerm]>,
}

/// One term of a grain, in its [`Document`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentTerm {
    /// The indexed term: normalised, stemmed, at most 64 bytes of UTF-8.
    pub term: Box<str>,
    /// The number of its occurrences, each weighted by its field.
    pub weight: u32,
    /// The number of its occurrences in text that the grain shares with its neighbours in a conversation: 0
    /// unless the grain is a turn of one.
    pub lent: u32,
    /// Its positions, ascending, for phrases. Fields are far apart, so that no phrase spans two.
    pub places: Box<[u32]>,
}

impl Document {
    /// Builds a document from terms in any order. Repeated terms are added up.
    pub(crate) fn from_terms(mut words: Vec<DocumentTerm>) -> Self {
        words.sort_by(|a, b| a.term.cmp(&b.term));
        let mut merged: Vec<DocumentTerm> = Vec::with_capacity(words.len());
        for word in words {
            match merged.last_mut() {
                Some(last) if last.term == word.term => last.join(word),
                _ => merged.push(word),
            }
        }
        Self { terms: merged.into_boxed_slice() }
    }

    /// The terms, ascending.
    #[must_use]
    pub fn terms(&self) -> &[DocumentTerm] {
        &self.terms
    }

    /// Builds a document from ascending terms without duplicates.
    pub(super) fn from_ascending(words: Box<[DocumentTerm]>) -> Self {
        Self { terms: words }
    }

    /// Looks up a term.
    #[must_use]
    pub fn term(&self, term: &str) -> Option<&DocumentTerm> {
        let at = self.terms.binary_search_by(|word| (*word.term).cmp(term)).ok()?;
        self.terms.get(at)
    }

    /// The number of terms and positions, to which its memory is proportional.
    #[must_use]
    pub fn size(&self) -> usize {
        self.terms.iter().map(|word| word.places.len().saturating_add(1)).sum()
    }

    /// Returns `true` if the grain has no terms.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }
}

impl FromIterator<DocumentTerm> for Document {
    fn from_iter<I: IntoIterator<Item = DocumentTerm>>(words: I) -> Self {
        Self::from_terms(words.into_iter().collect())
    }
}

impl DocumentTerm {
    /// Adds another occurrence of the same term.
    fn join(&mut self, other: Self) {
        self.weight = self.weight.saturating_add(other.weight);
        self.lent = self.lent.saturating_add(other.lent);
        let mut places = std::mem::take(&mut self.places).into_vec();
        places.extend(other.places);
        places.sort_unstable();
        places.dedup();
        self.places = places.into_boxed_slice();
    }
}
