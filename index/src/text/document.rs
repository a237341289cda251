//! The words of one grain, before its neighbours lend it theirs. Knows nothing of how they are
//! kept.

use grainstore_format::GrainRef;

use super::reader::Reader;
use super::settings::Settings;

/// The words of one grain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Document {
    /// Ascending by term, each term once.
    words: Box<[Word]>,
}

/// One word of a grain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// As the index keeps it: folded, stemmed. At most 64 bytes of UTF-8.
    pub term: Box<str>,
    /// How often it occurs, each time weighted by the field it stands in.
    pub weight: u32,
    /// How often it occurs in what the grain lends to its neighbours in a conversation: 0 where it
    /// is no turn of one.
    pub lent: u32,
    /// Where it stands, ascending, for phrases. Fields lie far apart, so that no phrase spans two.
    pub places: Box<[u32]>,
}

impl Document {
    /// A document of words in any order. A word that comes twice counts for both.
    pub(crate) fn from_words(mut words: Vec<Word>) -> Self {
        words.sort_by(|a, b| a.term.cmp(&b.term));
        let mut merged: Vec<Word> = Vec::with_capacity(words.len());
        for word in words {
            match merged.last_mut() {
                Some(last) if last.term == word.term => last.join(word),
                _ => merged.push(word),
            }
        }
        Self { words: merged.into_boxed_slice() }
    }

    /// The words, ascending by term.
    #[must_use]
    pub fn words(&self) -> &[Word] {
        &self.words
    }

    /// The words of a grain. What is said in an event is lent to its neighbours.
    ///
    /// At most [`MAX_OCCURRENCES`](super::MAX_OCCURRENCES) occurrences are read. To index many
    /// grains, a [`Reader`] keeps its buffers from one to the next.
    #[must_use]
    pub fn of(grain: &GrainRef<'_>, settings: &Settings) -> Self {
        Reader::new(*settings).document(grain)
    }

    /// A document of words that ascend by term, each once.
    pub(super) fn from_ascending(words: Box<[Word]>) -> Self {
        Self { words }
    }

    /// The word of a term.
    #[must_use]
    pub fn word(&self, term: &str) -> Option<&Word> {
        let at = self.words.binary_search_by(|word| (*word.term).cmp(term)).ok()?;
        self.words.get(at)
    }

    /// How many words and places it holds: what its memory grows with.
    #[must_use]
    pub fn size(&self) -> usize {
        self.words.iter().map(|word| word.places.len().saturating_add(1)).sum()
    }

    /// Whether nothing in the grain can be found by its words.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }
}

impl FromIterator<Word> for Document {
    fn from_iter<I: IntoIterator<Item = Word>>(words: I) -> Self {
        Self::from_words(words.into_iter().collect())
    }
}

impl Word {
    /// Takes in another occurrence of the same term.
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
