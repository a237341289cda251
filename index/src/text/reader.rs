//! Reads a grain into its terms: analyses the texts of its fields and counts the occurrences of each term.
//! Knows nothing of how the terms are used.

use std::ops::ControlFlow;

use grainstore_format::GrainRef;

use super::analysis::Analyser;
use super::document::{Document, DocumentTerm};
use super::fields::{FieldText, for_each_text};
use super::settings::Settings;

/// The most occurrences that a [`DocumentReader`] indexes of one grain, in the order of its fields; later
/// text is not found. Prose of 300 KiB has as many.
pub const MAX_OCCURRENCES: usize = 50_000;

/// The gap in positions between two texts of a grain: more than the longest phrase has terms.
const POSITION_GAP: u32 = 128;

/// Reads the terms of grains, reusing its buffers.
///
/// ```
/// # use grainstore_format::{Encoding, EpochMs, EventBuilder, GrainRef};
/// # let time = EpochMs::new(1_768_471_200_000);
/// # let grain = EventBuilder::new(time, "Alice plans her travels").build()?;
/// # let blob = grain.encode(Encoding::Cbor)?;
/// # let grain = GrainRef::new(blob.bytes())?;
/// use grainstore_index::text::{Document, DocumentReader, Language, Settings};
///
/// // `grain` is an event: "Alice plans her travels".
/// let settings = Settings::new(Language::English);
/// let mut reader = DocumentReader::new(settings);
/// let (read, once) = (reader.document(&grain), Document::of(&grain, &settings));
/// assert_eq!(read.terms().len(), once.terms().len());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DocumentReader {
    pub(super) settings: Settings,
    pub(super) analyser: Analyser,
    tally: TermCounter,
}

impl Document {
    /// The terms of a grain. The utterance of an event is marked as shared with its neighbours.
    ///
    /// At most [`MAX_OCCURRENCES`] occurrences are read. To index many grains, use a
    /// [`DocumentReader`], which reuses its buffers.
    #[must_use]
    pub fn of(grain: &GrainRef<'_>, settings: &Settings) -> Self {
        DocumentReader::new(*settings).document(grain)
    }
}

impl DocumentReader {
    /// Creates a reader with these settings.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let analyser = Analyser::new(settings.language);
        Self { settings, analyser, tally: TermCounter::default() }
    }

    /// The terms of a grain, like [`Document::of`].
    #[must_use]
    pub fn document(&mut self, grain: &GrainRef<'_>) -> Document {
        let Self { settings, analyser, tally } = self;
        tally.clear();
        for_each_text(grain, settings, &mut |text| {
            let _full = tally.read(&text, analyser, MAX_OCCURRENCES);
        });
        tally.document()
    }

    /// The terms of each field of a grain, in the order of the table of fields.
    pub(super) fn by_field<'a>(&mut self, grain: &GrainRef<'a>) -> Vec<(&'a str, Document)> {
        let mut fields: Vec<(usize, &'a str, TermCounter)> = Vec::new();
        let mut left = MAX_OCCURRENCES;
        for_each_text(grain, &self.settings, &mut |text| {
            if fields.last().is_none_or(|(_, name, _)| *name != text.field) {
                let before = fields.last().map_or(0, |(_, _, tally)| tally.occurrences.len());
                left = left.saturating_sub(before);
                fields.push((text.field_index, text.field, TermCounter::default()));
            }
            if let Some((_, _, tally)) = fields.last_mut() {
                let _full = tally.read(&text, &mut self.analyser, left);
            }
        });
        fields.sort_by_key(|(rank, name, _)| (*rank, *name));
        fields.into_iter().map(|(_, name, mut tally)| (name, tally.document())).collect()
    }
}

/// The occurrences read so far.
#[derive(Default)]
struct TermCounter {
    /// The terms of all occurrences, concatenated.
    terms: String,
    occurrences: Vec<Occurrence>,
    /// The first position of the next text.
    position: u32,
}

/// An occurrence of a term.
#[derive(Clone, Copy)]
struct Occurrence {
    /// The first 8 bytes of the term, which distinguish most terms, in the same order.
    head: u64,
    /// The byte range of the term in `terms`.
    start: usize,
    end: usize,
    position: u32,
    weight: u32,
    is_utterance: bool,
}

impl TermCounter {
    fn clear(&mut self) {
        self.terms.clear();
        self.occurrences.clear();
        self.position = 0;
    }

    /// Reads a text; breaks off at `most` occurrences.
    fn read(
        &mut self,
        text: &FieldText<'_>,
        analyser: &mut Analyser,
        most: usize,
    ) -> ControlFlow<()> {
        if self.occurrences.len() >= most {
            return ControlFlow::Break(());
        }
        let (first, mut next) = (self.position, None);
        let flow = analyser.analyse(text.text, &mut |token| {
            let place = first.saturating_add(token.position);
            next = Some(place.saturating_add(POSITION_GAP));
            self.add(token.term, text, place);
            if self.occurrences.len() >= most {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        self.position = next.unwrap_or(first);
        flow
    }

    fn add(&mut self, term: &str, text: &FieldText<'_>, place: u32) {
        let start = self.terms.len();
        self.terms.push_str(term);
        let (end, weight, said) = (self.terms.len(), text.weight, text.is_utterance);
        self.occurrences.push(Occurrence {
            head: head(term),
            start,
            end,
            position: place,
            weight,
            is_utterance: said,
        });
    }

    fn document(&mut self) -> Document {
        let terms = &self.terms;
        let term = |at: &Occurrence| terms.get(at.start..at.end).unwrap_or_default();
        self.occurrences.sort_unstable_by(|a, b| {
            let by_term = a.head.cmp(&b.head).then_with(|| term(a).cmp(term(b)));
            by_term.then(a.position.cmp(&b.position))
        });
        let same = |a: &Occurrence, b: &Occurrence| a.head == b.head && term(a) == term(b);
        let words = self.occurrences.chunk_by(same).map(|all| DocumentTerm {
            term: all.first().map(term).unwrap_or_default().into(),
            weight: all.iter().fold(0, |sum: u32, one| sum.saturating_add(one.weight)),
            lent: all
                .iter()
                .fold(0, |sum: u32, one| sum.saturating_add(u32::from(one.is_utterance))),
            places: distinct_positions(all),
        });
        Document::from_ascending(words.collect())
    }
}

/// The positions, without duplicates: a word and one of its parts can be the same term at one position, as in
/// `1-1a`.
fn distinct_positions(all: &[Occurrence]) -> Box<[u32]> {
    let mut places: Vec<u32> = all.iter().map(|one| one.position).collect();
    places.dedup();
    places.into()
}

fn head(term: &str) -> u64 {
    let mut bytes = [0; 8];
    bytes.iter_mut().zip(term.bytes()).for_each(|(to, from)| *to = from);
    u64::from_be_bytes(bytes)
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
