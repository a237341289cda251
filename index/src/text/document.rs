//! The words of one grain, before its neighbours lend it theirs. Knows nothing of how they are
//! kept.

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
    /// The words, ascending by term.
    #[must_use]
    pub fn words(&self) -> &[Word] {
        &self.words
    }

    /// Whether nothing in the grain can be found by its words.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }
}
