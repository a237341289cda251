//! Normalisation of one word: case, width, accents and suffix are folded, and its length is limited. Knows
//! nothing of word boundaries.

use std::collections::HashMap;

use frostem::Stemmer;
use sha2::{Digest as _, Sha256};
use unicode_normalization::char::decompose_canonical;
use unicode_normalization::{IsNormalized, UnicodeNormalization as _, is_nfkc_quick};

use super::char_class::{
    ascii_digit, base_letter, is_accent, is_decomposed, is_ignored, is_in_word,
    is_normalization_stable,
};
use super::language::Language;

/// The most bytes of UTF-8 in a term of a [`Document`](super::Document).
pub const MAX_TERM_BYTES: usize = 64;

/// The bytes kept of a term that is cut, before the hash of the whole: `~` and 16 hexadecimal digits.
const CUT_TERM_BYTES: usize = MAX_TERM_BYTES - 17;

/// The most bytes of a word that is stemmed: longer than words of any language, and short enough for stemmers
/// that read a word more than once.
const MAX_STEMMED_BYTES: usize = 192;

/// The size of the stemmer cache in words, and the most bytes of a cached word. Text repeats its words, and
/// stemming costs more than all other steps. Together under 1 MiB.
const MAX_CACHED_WORDS: usize = 8192;
const MAX_CACHED_WORD_BYTES: usize = 24;

/// The word normaliser of one language.
pub(super) struct WordNormaliser {
    language: Language,
    stemmer: Option<Stemmer>,
    /// The current word in lower case with accents, as the stemmers expect it.
    lower: String,
    /// The word without accents.
    unaccented: String,
    /// The word without accents and suffix.
    term: String,
    /// The stemmer cache: terms by lower-case words.
    stem_cache: HashMap<Box<str>, Box<str>>,
}

/// A normalised word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NormalisedWord<'a> {
    /// The word without accents and case, not stemmed.
    pub(super) unstemmed: &'a str,
    /// The indexed term: stemmed as well.
    pub(super) term: &'a str,
}

impl WordNormaliser {
    pub(super) fn new(language: Language) -> Self {
        let (lower, plain, term) = (String::new(), String::new(), String::new());
        Self {
            language,
            stemmer: language.stemmer(),
            lower,
            unaccented: plain,
            term,
            stem_cache: HashMap::new(),
        }
    }

    /// Normalises a single word. The result may be empty, e.g. for an accent alone.
    pub(super) fn word(&mut self, raw: &str) -> NormalisedWord<'_> {
        self.lower(raw, |_| false);
        if self.language == Language::English {
            drop_apostrophes(&mut self.lower);
        }
        fold_accents(&self.lower, self.language, &mut self.unaccented);
        shorten(&mut self.unaccented);
        self.term.clear();
        if self.stemmer.is_some() && may_have_suffix(&self.lower) {
            self.stem();
        }
        let term = if self.term.is_empty() { &self.unaccented } else { &self.term };
        NormalisedWord { unstemmed: &self.unaccented, term }
    }

    /// Sets `term` to the stem of the word in `lower`.
    fn stem(&mut self) {
        if let Some(term) = self.stem_cache.get(&*self.lower) {
            self.term.push_str(term);
            return;
        }
        let Some(stemmer) = self.stemmer else { return };
        fold_accents(&stemmer.stem(&self.lower), self.language, &mut self.term);
        shorten(&mut self.term);
        if self.lower.len() <= MAX_CACHED_WORD_BYTES {
            if self.stem_cache.len() >= MAX_CACHED_WORDS {
                self.stem_cache.clear();
            }
            self.stem_cache.insert(self.lower.as_str().into(), self.term.as_str().into());
        }
    }

    /// Normalises an identifier, address or date, keeping the signs that join its words.
    pub(super) fn compound(&mut self, raw: &str) -> &str {
        self.lower(raw, |c| c.is_ascii_punctuation() && c != '\'');
        if self.language == Language::English {
            drop_apostrophes(&mut self.lower);
        }
        fold_accents(&self.lower, self.language, &mut self.unaccented);
        shorten(&mut self.unaccented);
        &self.unaccented
    }

    /// Normalises a part of a run of an unspaced script, or an emoji: only its length is limited.
    pub(super) fn cluster(&mut self, raw: &str) -> &str {
        self.unaccented.clear();
        self.unaccented.push_str(raw);
        shorten(&mut self.unaccented);
        &self.unaccented
    }

    /// Sets `lower`. Characters that are not part of a word are dropped, unless `kept` accepts them.
    fn lower(&mut self, raw: &str, kept: impl Fn(char) -> bool) {
        self.lower.clear();
        if raw.is_ascii() && self.language != Language::Turkish {
            self.lower.push_str(raw);
            self.lower.make_ascii_lowercase();
            if !raw.bytes().all(|b| b.is_ascii_alphanumeric()) {
                self.lower.retain(|c| c.is_ascii_alphanumeric() || c == '\'' || kept(c));
            }
            return;
        }
        // Most text is in NFKC already, and normalising it is expensive.
        if is_normalization_stable(raw) || is_nfkc_quick(raw.chars()) == IsNormalized::Yes {
            raw.chars().for_each(|c| self.push_lower(c, &kept));
        } else {
            let seen = raw.chars().filter(|c| !is_ignored(*c));
            let stays = |c: &char| is_in_word(*c) || is_joining_sign(*c) || kept(*c);
            // Marks that were separated may combine once the characters between them are dropped.
            seen.nfkc().filter(stays).nfc().for_each(|c| self.push_lower(c, &kept));
        }
    }

    fn push_lower(&mut self, c: char, kept: &impl Fn(char) -> bool) {
        match c {
            '\u{2019}' | '\'' => self.lower.push('\''),
            '\u{2010}' | '\u{2011}' if kept('-') => self.lower.push('-'),
            'I' if self.language == Language::Turkish => self.lower.push('ı'),
            'İ' => self.lower.push('i'),
            _ if kept(c) => self.lower.push(c),
            _ if !is_in_word(c) || is_ignored(c) => {}
            _ => match ascii_digit(c) {
                Some(digit) => self.lower.push(digit),
                None => self.lower.extend(c.to_lowercase()),
            },
        }
    }
}

/// Returns `true` for the signs that `push_lower` handles although they are in no word.
fn is_joining_sign(c: char) -> bool {
    matches!(c, '\u{2019}' | '\'' | '\u{2010}' | '\u{2011}')
}

/// Normalises a run of an unspaced script: width and composition are folded, invisible characters dropped.
pub(super) fn fold_run(raw: &str, folded: &mut String) {
    folded.clear();
    let seen = raw.chars().filter(|c| !is_ignored(*c));
    folded.extend(seen.nfkc().map(|c| ascii_digit(c).unwrap_or(c)));
}

/// Drops the possessive suffix, and the apostrophe of contractions, which are written with and without.
fn drop_apostrophes(word: &mut String) {
    if !word.contains('\'') {
        return;
    }
    if word.ends_with("'s") {
        word.truncate(word.len().saturating_sub(2));
    }
    word.retain(|c| c != '\'');
}

/// Returns `true` if a word may have a suffix: numbers and codes have none.
fn may_have_suffix(word: &str) -> bool {
    (3..=MAX_STEMMED_BYTES).contains(&word.len()) && !word.bytes().any(|b| b.is_ascii_digit())
}

fn fold_accents(word: &str, language: Language, folded: &mut String) {
    folded.clear();
    if word.is_ascii() {
        folded.push_str(word);
        return;
    }
    for c in word.chars() {
        if c.is_ascii() || language.is_own_letter(c) {
            folded.push(c);
        } else if is_decomposed(c) {
            decompose_canonical(c, |part| push_base_letter(part, folded));
        } else {
            push_base_letter(c, folded);
        }
    }
}

fn push_base_letter(c: char, folded: &mut String) {
    match base_letter(c) {
        _ if is_accent(c) => {}
        Some(text) => folded.push_str(text),
        None => folded.push(c),
    }
}

/// Shortens a term to [`MAX_TERM_BYTES`]. A hash of the whole keeps long words distinct.
fn shorten(term: &mut String) {
    if term.len() <= MAX_TERM_BYTES {
        return;
    }
    let hash = Sha256::digest(term.as_bytes());
    term.truncate(term.floor_char_boundary(CUT_TERM_BYTES));
    term.push('~');
    for byte in hash.iter().take(8) {
        term.extend(
            [byte >> 4, byte & 15].map(|digit| char::from_digit(digit.into(), 16).unwrap_or('0')),
        );
    }
}

#[cfg(test)]
#[path = "normalise_tests.rs"]
mod tests;
