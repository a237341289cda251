//! Analysis: text into terms. Knows nothing of grains, fields or queries.
//!
//! The terms of a text are:
//! - each word, without case, accents and suffix;
//! - for an identifier, path, date, address, version, hyphenated word or name like `C++`: the whole, its
//!   words, the parts between its stronger separators (`main.rs` in `src/main.rs`), and the parts its
//!   capitals and digits show (`user` in `userName`); if longer than a kibibyte without a space, the whole
//!   alone;
//! - for a run of Han, kana, Hangul, Thai, Lao, Khmer, Myanmar ...: every pair of neighbouring characters,
//!   and the last character alone, so that each character begins some term;
//! - an emoji, without its skin tone.
//!
//! Words have consecutive positions. A whole identifier has the position of its first word, and parts shown
//! by capitals that of their word, so that phrases match however their words are joined or written.

use std::ops::ControlFlow;

use unicode_segmentation::UnicodeSegmentation as _;

use super::char_class::{is_ignored, is_number, is_skin_tone};
use super::language::Language;
use super::normalise::{WordNormaliser, fold_run};
use super::word_break::{TextRun, WordBreaker, WordSpan, inner_parts};

/// Bytes of the longest identifier that is split. Longer ones are encoded data, whose parts are words by
/// chance.
const MAX_SPAN_BYTES: usize = 1024;

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// A word, a pair of characters, or an emoji.
    Word,
    /// Several words joined into one, e.g. an identifier.
    Whole,
    /// A part of a word.
    Inner,
    /// A character that is a run by itself.
    Lone,
    /// The last character of a run of pairs.
    Last,
}

/// A term with its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token<'a> {
    /// The indexed term: at most [`MAX_TERM_BYTES`](super::MAX_TERM_BYTES), never empty.
    pub(super) term: &'a str,
    /// The term before stemming.
    pub(super) unstemmed: &'a str,
    pub(super) kind: TokenKind,
    /// Its position in the text.
    pub(super) position: u32,
    /// The number of the identifier, run, word or emoji it belongs to, from 0.
    pub(super) unit: u32,
}

/// The analyser of one language. Reuses its buffers between texts.
pub(super) struct Analyser {
    language: Language,
    folder: WordNormaliser,
    words: Vec<WordSpan>,
    run: String,
}

/// Receives the tokens of a text; may break off.
pub(super) type TokenSink<'s> = dyn FnMut(&Token<'_>) -> ControlFlow<()> + 's;

impl Analyser {
    pub(super) fn new(language: Language) -> Self {
        let folder = WordNormaliser::new(language);
        Self { language, folder, words: Vec::new(), run: String::new() }
    }

    /// The term of a single word.
    pub(super) fn term_of(&mut self, word: &str) -> &str {
        self.folder.word(word).term
    }

    /// Passes every token of a text to `sink`, in ascending position from 0.
    pub(super) fn analyse(&mut self, text: &str, sink: &mut TokenSink<'_>) -> ControlFlow<()> {
        // In other languages an apostrophe separates an article or a suffix from its word.
        let apostrophes = self.language == Language::English;
        let mut segments = WordBreaker::of(text, apostrophes, std::mem::take(&mut self.words));
        let mut tokens = TokenEmitter { folder: &mut self.folder, sink, position: 0, unit: 0 };
        let mut flow = ControlFlow::Continue(());
        while let Some(segment) = segments.next() {
            flow = match segment {
                TextRun::Words(span) => tokens.words(span, &segments),
                TextRun::Unspaced(run) => tokens.run(run, &mut self.run),
                TextRun::Emoji(cluster) => tokens.emoji(cluster, &mut self.run),
            };
            if flow.is_break() {
                break;
            }
            tokens.unit = tokens.unit.saturating_add(1);
        }
        self.words = segments.into_words();
        flow
    }
}

/// Emits the tokens of a text to a sink.
struct TokenEmitter<'a, 's> {
    folder: &'a mut WordNormaliser,
    sink: &'a mut TokenSink<'s>,
    position: u32,
    unit: u32,
}

impl TokenEmitter<'_, '_> {
    fn words(&mut self, span: &str, segments: &WordBreaker<'_>) -> ControlFlow<()> {
        let words = segments.words();
        if let [WordSpan { start, end, .. }] = *words
            && end - start == span.len()
        {
            return self.word(span);
        }
        if span.len() > MAX_SPAN_BYTES {
            return self.encoded_data(span);
        }
        self.compound(span)?;
        let divided = words.iter().skip(1).any(|word| word.divided);
        let mut rest = words;
        while let Some((first, after)) = rest.split_first() {
            let more = after.iter().take_while(|word| !word.divided).count();
            let (inside, beyond) = after.split_at_checked(more).unwrap_or((after, &[]));
            if let (true, Some(last)) = (divided, inside.last()) {
                self.compound(segments.slice(first.start, last.end))?;
            }
            for word in std::iter::once(first).chain(inside) {
                self.word(segments.slice(word.start, word.end))?;
            }
            rest = beyond;
        }
        ControlFlow::Continue(())
    }

    fn encoded_data(&mut self, span: &str) -> ControlFlow<()> {
        let (place, unit) = (self.position, self.unit);
        let term = self.folder.compound(span);
        (self.sink)(&Token {
            term,
            unstemmed: term,
            kind: TokenKind::Word,
            position: place,
            unit,
        })?;
        self.position = place.saturating_add(1);
        ControlFlow::Continue(())
    }

    fn compound(&mut self, span: &str) -> ControlFlow<()> {
        let (place, unit) = (self.position, self.unit);
        let term = self.folder.compound(span);
        (self.sink)(&Token { term, unstemmed: term, kind: TokenKind::Whole, position: place, unit })
    }

    fn word(&mut self, word: &str) -> ControlFlow<()> {
        let (place, unit) = (self.position, self.unit);
        let folded = self.folder.word(word);
        if folded.term.is_empty() {
            return ControlFlow::Continue(());
        }
        let (term, plain) = (folded.term, folded.unstemmed);
        (self.sink)(&Token {
            term,
            unstemmed: plain,
            kind: TokenKind::Word,
            position: place,
            unit,
        })?;
        self.position = place.saturating_add(1);
        if may_have_subwords(word) { self.subwords(word, place) } else { ControlFlow::Continue(()) }
    }

    fn subwords(&mut self, word: &str, place: u32) -> ControlFlow<()> {
        let Self { folder, sink, unit, .. } = self;
        let mut flow = ControlFlow::Continue(());
        inner_parts(word, |part| {
            let folded = folder.word(part);
            if flow.is_continue() && !folded.term.is_empty() {
                let (term, plain) = (folded.term, folded.unstemmed);
                flow = sink(&Token {
                    term,
                    unstemmed: plain,
                    kind: TokenKind::Inner,
                    position: place,
                    unit: *unit,
                });
            }
        });
        flow
    }

    /// Emits the pairs of neighbouring grapheme clusters of a run.
    fn run(&mut self, run: &str, folded: &mut String) -> ControlFlow<()> {
        fold_run(run, folded);
        let mut clusters = folded.grapheme_indices(true).peekable();
        let mut pairs = false;
        while let Some((start, cluster)) = clusters.next() {
            let end = start + cluster.len();
            let next = clusters.peek().map(|(at, next)| at + next.len());
            let kind = match next {
                Some(_) => TokenKind::Word,
                None if pairs => TokenKind::Last,
                None => TokenKind::Lone,
            };
            pairs = next.is_some();
            self.cluster(folded.get(start..next.unwrap_or(end)).unwrap_or_default(), kind)?;
        }
        ControlFlow::Continue(())
    }

    fn emoji(&mut self, cluster: &str, folded: &mut String) -> ControlFlow<()> {
        // The zero-width joiner, which makes one emoji of several, is invisible too but stays.
        let shown = |c: &char| *c == '\u{200d}' || !(is_ignored(*c) || is_skin_tone(*c));
        folded.clear();
        folded.extend(cluster.chars().filter(shown));
        self.cluster(folded, TokenKind::Word)
    }

    fn cluster(&mut self, cluster: &str, kind: TokenKind) -> ControlFlow<()> {
        let (place, unit) = (self.position, self.unit);
        let term = self.folder.cluster(cluster);
        if term.is_empty() {
            return ControlFlow::Continue(());
        }
        (self.sink)(&Token { term, unstemmed: term, kind, position: place, unit })?;
        self.position = place.saturating_add(1);
        ControlFlow::Continue(())
    }
}

/// Returns `true` if a word has capitals after its first letter, or digits; most have neither.
fn may_have_subwords(word: &str) -> bool {
    if word.is_ascii() {
        return word.bytes().skip(1).any(|b| b.is_ascii_uppercase())
            || word.bytes().any(|b| b.is_ascii_digit());
    }
    word.chars().any(|c| c.is_uppercase() || is_number(c))
}

#[cfg(test)]
#[path = "analysis_tests.rs"]
mod tests;
