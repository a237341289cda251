//! One word as the index keeps it: case, width, accents and endings folded, and short. Knows
//! nothing of where words begin and end.

use std::collections::HashMap;

use frostem::Stemmer;
use sha2::{Digest as _, Sha256};
use unicode_normalization::char::decompose_canonical;
use unicode_normalization::{IsNormalized, UnicodeNormalization as _, is_nfkc_quick};

use super::chars::{
    ascii_digit, bare, is_accent, is_decomposed, is_ignored, is_in_word, is_stable,
};
use super::language::Language;

/// Bytes of UTF-8 a term has at most.
pub const MAX_TERM_BYTES: usize = 64;

/// Bytes of a cut term before what stands for the rest of it: `~` and 16 hexadecimal digits.
const KEPT_BYTES: usize = MAX_TERM_BYTES - 17;

/// Bytes of the longest word whose ending is looked at: longer than words of any language, and
/// short enough for stemmers that look at a word more than once.
const MAX_STEMMED_BYTES: usize = 192;

/// Words whose terms are remembered, and the bytes of the longest: text says the same words again
/// and again, and taking off an ending costs more than all else. Together under a mebibyte.
const REMEMBERED: usize = 8192;
const MAX_REMEMBERED_BYTES: usize = 24;

/// Folds the words of one language.
pub(super) struct Folder {
    language: Language,
    stemmer: Option<Stemmer>,
    /// The word at hand in lower case, with its accents: what the stemmers expect.
    lower: String,
    /// Without its accents.
    plain: String,
    /// Without accents and ending.
    term: String,
    /// Terms by words in lower case.
    known: HashMap<Box<str>, Box<str>>,
}

/// A word, folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Folded<'a> {
    /// Without accents and case, with its ending.
    pub(super) plain: &'a str,
    /// Without its ending as well: the term it is kept under.
    pub(super) term: &'a str,
}

impl Folder {
    pub(super) fn new(language: Language) -> Self {
        let (lower, plain, term) = (String::new(), String::new(), String::new());
        Self { language, stemmer: language.stemmer(), lower, plain, term, known: HashMap::new() }
    }

    /// A single word. Empty where nothing of it is left, e.g. of an accent alone.
    pub(super) fn word(&mut self, raw: &str) -> Folded<'_> {
        self.lower(raw, |_| false);
        if self.language == Language::English {
            drop_apostrophes(&mut self.lower);
        }
        fold_accents(&self.lower, self.language, &mut self.plain);
        cut(&mut self.plain);
        self.term.clear();
        if self.stemmer.is_some() && has_ending(&self.lower) {
            self.stem();
        }
        let term = if self.term.is_empty() { &self.plain } else { &self.term };
        Folded { plain: &self.plain, term }
    }

    /// Sets `term` to the word in `lower` without its ending.
    fn stem(&mut self) {
        if let Some(term) = self.known.get(&*self.lower) {
            self.term.push_str(term);
            return;
        }
        let Some(stemmer) = self.stemmer else { return };
        fold_accents(&stemmer.stem(&self.lower), self.language, &mut self.term);
        cut(&mut self.term);
        if self.lower.len() <= MAX_REMEMBERED_BYTES {
            if self.known.len() >= REMEMBERED {
                self.known.clear();
            }
            self.known.insert(self.lower.as_str().into(), self.term.as_str().into());
        }
    }

    /// An identifier, address or date with the signs that hold it together.
    pub(super) fn whole(&mut self, raw: &str) -> &str {
        self.lower(raw, |c| c.is_ascii_punctuation() && c != '\'');
        if self.language == Language::English {
            drop_apostrophes(&mut self.lower);
        }
        fold_accents(&self.lower, self.language, &mut self.plain);
        cut(&mut self.plain);
        &self.plain
    }

    /// Part of a run of an unspaced script, or an emoji: only its form is folded.
    pub(super) fn cluster(&mut self, raw: &str) -> &str {
        self.plain.clear();
        self.plain.push_str(raw);
        cut(&mut self.plain);
        &self.plain
    }

    /// Sets `lower`. What is no part of a word is left out, unless it is to be kept.
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
        // Most text is in the form already, and bringing it there is dear.
        if is_stable(raw) || is_nfkc_quick(raw.chars()) == IsNormalized::Yes {
            raw.chars().for_each(|c| self.push_lower(c, &kept));
        } else {
            let seen = raw.chars().filter(|c| !is_ignored(*c));
            let stays = |c: &char| is_in_word(*c) || is_joint(*c) || kept(*c);
            // Marks that stood apart may stand together once what was between them is left out.
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

/// Signs that `push_lower` looks at though they are in no word.
fn is_joint(c: char) -> bool {
    matches!(c, '\u{2019}' | '\'' | '\u{2010}' | '\u{2011}')
}

/// The form of a run of an unspaced script: width and composition folded, nothing invisible.
pub(super) fn fold_run(raw: &str, folded: &mut String) {
    folded.clear();
    let seen = raw.chars().filter(|c| !is_ignored(*c));
    folded.extend(seen.nfkc().map(|c| ascii_digit(c).unwrap_or(c)));
}

/// The possessive is the word without it, and a contraction is written without its apostrophe as
/// often as with it.
fn drop_apostrophes(word: &mut String) {
    if !word.contains('\'') {
        return;
    }
    if word.ends_with("'s") {
        word.truncate(word.len().saturating_sub(2));
    }
    word.retain(|c| c != '\'');
}

/// Whether a word may have an ending: numbers and codes have none.
fn has_ending(word: &str) -> bool {
    (3..=MAX_STEMMED_BYTES).contains(&word.len()) && !word.bytes().any(|b| b.is_ascii_digit())
}

fn fold_accents(word: &str, language: Language, folded: &mut String) {
    folded.clear();
    if word.is_ascii() {
        folded.push_str(word);
        return;
    }
    for c in word.chars() {
        if c.is_ascii() || language.keeps(c) {
            folded.push(c);
        } else if is_decomposed(c) {
            decompose_canonical(c, |part| push_bare(part, folded));
        } else {
            push_bare(c, folded);
        }
    }
}

fn push_bare(c: char, folded: &mut String) {
    match bare(c) {
        _ if is_accent(c) => {}
        Some(text) => folded.push_str(text),
        None => folded.push(c),
    }
}

/// Shortens a term to what the index takes. A hash of the whole keeps long words apart.
fn cut(term: &mut String) {
    if term.len() <= MAX_TERM_BYTES {
        return;
    }
    let hash = Sha256::digest(term.as_bytes());
    term.truncate(term.floor_char_boundary(KEPT_BYTES));
    term.push('~');
    for byte in hash.iter().take(8) {
        term.extend(
            [byte >> 4, byte & 15].map(|digit| char::from_digit(digit.into(), 16).unwrap_or('0')),
        );
    }
}

#[cfg(test)]
#[path = "folding_tests.rs"]
mod tests;
