//! The words of one grain, before its neighbours lend it theirs. Knows nothing of how they are
//! kept.

use std::collections::HashMap;
use std::ops::ControlFlow;

use grainstore_format::GrainRef;

use super::analysis::{Analyser, Token};
use super::fields::{Text, texts};
use super::settings::Settings;

/// Occurrences of words that are indexed of one grain, in the order of its fields; what comes
/// after them is not found. Prose of 300 KiB has as many.
pub const MAX_OCCURRENCES: usize = 50_000;

/// Places between two texts of a grain: more than the longest phrase has terms.
const GAP: u32 = 128;

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
    /// The words of a grain. What is said in an event is lent to its neighbours.
    ///
    /// At most [`MAX_OCCURRENCES`] occurrences are read. To index many grains, a [`Reader`] keeps
    /// its buffers from one to the next.
    #[must_use]
    pub fn of(grain: &GrainRef<'_>, settings: &Settings) -> Self {
        Reader::new(*settings).document(grain)
    }

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

    /// The word of a term.
    #[must_use]
    pub fn word(&self, term: &str) -> Option<&Word> {
        let at = self.words.binary_search_by(|word| (*word.term).cmp(term)).ok()?;
        self.words.get(at)
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

/// Reads the words of grains, one after the other.
pub struct Reader {
    pub(super) settings: Settings,
    pub(super) analyser: Analyser,
}

impl Reader {
    /// A reader of grains that are indexed in one way.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self { settings, analyser: Analyser::new(settings.language) }
    }

    /// The words of a grain, as [`Document::of`].
    #[must_use]
    pub fn document(&mut self, grain: &GrainRef<'_>) -> Document {
        let mut tally = Tally::default();
        texts(grain, &self.settings, &mut |text| {
            let _full = tally.read(&text, &mut self.analyser);
        });
        tally.into_document()
    }

    /// The words of each field of a grain, in the order of the table of fields.
    pub(super) fn by_field<'a>(&mut self, grain: &GrainRef<'a>) -> Vec<(&'a str, Document)> {
        let mut fields: Vec<(usize, &'a str, Tally)> = Vec::new();
        let mut occurrences = 0;
        texts(grain, &self.settings, &mut |text| {
            if fields.last().is_none_or(|(_, name, _)| *name != text.field) {
                let tally = Tally { occurrences, ..Tally::default() };
                fields.push((text.rank, text.field, tally));
            }
            if let Some((_, _, tally)) = fields.last_mut() {
                let _full = tally.read(&text, &mut self.analyser);
                occurrences = tally.occurrences;
            }
        });
        fields.sort_by_key(|(rank, name, _)| (*rank, *name));
        fields.into_iter().map(|(_, name, tally)| (name, tally.into_document())).collect()
    }
}

/// The words read so far.
#[derive(Default)]
struct Tally {
    entries: HashMap<Box<str>, Entry>,
    occurrences: usize,
    /// The first place of the next text.
    place: u32,
}

#[derive(Default)]
struct Entry {
    weight: u32,
    lent: u32,
    places: Vec<u32>,
}

impl Tally {
    /// Breaks off where the grain has as many words as are indexed of one.
    fn read(&mut self, text: &Text<'_>, analyser: &mut Analyser) -> ControlFlow<()> {
        if self.occurrences >= MAX_OCCURRENCES {
            return ControlFlow::Break(());
        }
        let (first, mut next) = (self.place, None);
        let flow = analyser.analyse(text.text, &mut |token| {
            let place = first.saturating_add(token.place);
            next = Some(place.saturating_add(GAP));
            self.add(token, text, place);
            match self.occurrences {
                MAX_OCCURRENCES.. => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        });
        self.place = next.unwrap_or(first);
        flow
    }

    fn add(&mut self, token: &Token<'_>, text: &Text<'_>, place: u32) {
        self.occurrences += 1;
        let entry = match self.entries.get_mut(token.term) {
            Some(entry) => entry,
            None => self.entries.entry(token.term.into()).or_default(),
        };
        entry.weight = entry.weight.saturating_add(text.weight);
        entry.lent = entry.lent.saturating_add(u32::from(text.said));
        // A word can be its own part: `a1-1` has its `1` twice, at one place and the next.
        entry.places.push(place);
    }

    fn into_document(self) -> Document {
        self.entries.into_iter().map(|(term, entry)| word(term, entry)).collect()
    }
}

fn word(term: Box<str>, entry: Entry) -> Word {
    let Entry { weight, lent, mut places } = entry;
    places.sort_unstable();
    places.dedup();
    Word { term, weight, lent, places: places.into() }
}

#[cfg(test)]
#[path = "document_tests.rs"]
mod tests;
