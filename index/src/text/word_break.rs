//! Word breaking: the boundaries of words, and the words that an identifier joins. Reads every character a
//! bounded number of times. Knows nothing of terms.

use unicode_segmentation::UnicodeSegmentation as _;

use super::char_class::{CharClass, class, is_number};

/// A run of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextRun<'t> {
    /// A word, or several joined by `-`, `/` and the like: the span includes the signs between them, and
    /// after them in `C++`. [`WordBreaker::words`] has the words.
    Words(&'t str),
    /// A run of a script that does not separate its words.
    Unspaced(&'t str),
    /// One emoji with its modifiers.
    Emoji(&'t str),
}

/// A word within [`TextRun::Words`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WordSpan {
    /// The byte offset of its start in the text.
    pub(super) start: usize,
    /// The byte offset of its end in the text.
    pub(super) end: usize,
    /// True if the sign before it separates more strongly than `-`, `_` and `.`: in `src/main.rs`, `main.rs`
    /// is one unit and `src` another.
    pub(super) divided: bool,
}

/// Iterates over the runs of a text.
pub(super) struct WordBreaker<'t> {
    text: &'t str,
    at: usize,
    /// True if an apostrophe is part of the word around it.
    apostrophes: bool,
    words: Vec<WordSpan>,
}

/// A sign that joins two words.
#[derive(Clone, Copy)]
struct Joiner {
    len: usize,
    separates: bool,
}

impl<'t> WordBreaker<'t> {
    pub(super) fn of(text: &'t str, apostrophes: bool, mut words: Vec<WordSpan>) -> Self {
        words.clear();
        Self { text, at: 0, apostrophes, words }
    }

    /// The words of the last run.
    pub(super) fn words(&self) -> &[WordSpan] {
        &self.words
    }

    /// Returns the buffer for reuse.
    pub(super) fn into_words(self) -> Vec<WordSpan> {
        self.words
    }

    /// The text between two byte offsets.
    pub(super) fn slice(&self, start: usize, end: usize) -> &'t str {
        self.text.get(start..end).unwrap_or_default()
    }

    pub(super) fn next(&mut self) -> Option<TextRun<'t>> {
        loop {
            let start = self.at;
            let (class, len) = self.class_at(start)?;
            match class {
                CharClass::Gap | CharClass::Ignored => self.at = start + len,
                CharClass::Word => {
                    self.at = self.joined_words_end(start);
                    return Some(TextRun::Words(self.slice(start, self.at)));
                }
                CharClass::Unspaced => {
                    self.at = self.run_end(start);
                    return Some(TextRun::Unspaced(self.slice(start, self.at)));
                }
                CharClass::Emoji => {
                    let cluster = self.text.get(start..)?.graphemes(true).next()?;
                    self.at = start + cluster.len();
                    return Some(TextRun::Emoji(cluster));
                }
            }
        }
    }

    /// The end of the joined words that begin here; sets `words`.
    fn joined_words_end(&mut self, start: usize) -> usize {
        self.words.clear();
        let (mut at, mut divided, mut locator) = (start, false, false);
        loop {
            let end = self.word_end(at);
            self.words.push(WordSpan { start: at, end, divided });
            let Some(joiner) = self.joiner(end, locator) else {
                return end + self.name_suffix_len(end);
            };
            locator |= joiner.separates && joiner.len == 3;
            divided = joiner.separates;
            at = end + joiner.len;
        }
    }

    /// The end of the word that begins here.
    fn word_end(&self, start: usize) -> usize {
        let bytes = self.text.as_bytes();
        let mut at = start;
        let mut digits_since = start;
        let mut only_digits = true;
        while let Some(&byte) = bytes.get(at) {
            if byte.is_ascii_alphanumeric() {
                if only_digits && byte == b'T' && self.begins_time(start, at) {
                    return at;
                }
                only_digits &= byte.is_ascii_digit();
                at += 1;
            } else if byte == b',' && only_digits && self.is_digit_group(at, digits_since) {
                digits_since = at + 1;
                at += 1;
            } else if byte == b'\'' && self.apostrophes && self.is_word(at + 1) {
                only_digits = false;
                at += 1;
            } else if byte.is_ascii() {
                return at;
            } else {
                match self.class_at(at) {
                    Some((CharClass::Word | CharClass::Ignored, len)) => at += len,
                    Some((_, len)) if self.is_quote(at, len) => at += len,
                    _ => return at,
                }
                only_digits = false;
            }
        }
        at
    }

    /// The sign that joins the word ending here to one that begins after it. In a `locator`, a URL with
    /// `://`, more signs join.
    fn joiner(&self, end: usize, locator: bool) -> Option<Joiner> {
        let bytes = self.text.as_bytes();
        let rest = bytes.get(end..end.saturating_add(3).min(bytes.len()))?;
        let (len, divides) = match rest {
            [b':', b'/', b'/'] => (3, true),
            [b':', b':' | b'\\', ..] => (2, true),
            [b'_', b'_', ..] => (2, false),
            [b'T', ..] => (1, true),
            [b'-' | b'_' | b'.' | b'+', ..] => (1, false),
            [b'/' | b'\\' | b'@' | b':', ..] => (1, true),
            [b'?' | b'=' | b'&' | b'%' | b'#', ..] if locator => (1, true),
            // The Unicode hyphens U+2010 and U+2011.
            [0xe2, 0x80, 0x90 | 0x91] => (3, false),
            _ => return None,
        };
        self.is_word(end + len).then_some(Joiner { len, separates: divides })
    }

    /// The length of the signs that belong to a one-letter name: `C++`, `F#`.
    fn name_suffix_len(&self, end: usize) -> usize {
        let bytes = self.text.as_bytes();
        let [WordSpan { start, .. }] = *self.words else { return 0 };
        let letter = bytes
            .get(start..end)
            .is_some_and(|word| word.len() == 1 && word.iter().all(u8::is_ascii_alphabetic));
        let len = match bytes.get(end..).unwrap_or_default() {
            [b'+', b'+', ..] => 2,
            [b'#', ..] => 1,
            _ => return 0,
        };
        if letter && !self.is_word(end + len) { len } else { 0 }
    }

    /// Returns `true` if the `T` here separates the date and the time: `2024-05-07T10:30`.
    fn begins_time(&self, start: usize, at: usize) -> bool {
        let hour = self.text.as_bytes().get(at + 1..at + 3);
        at == start + 2
            && self.words.len() >= 2
            && hour.is_some_and(|hour| hour.iter().all(u8::is_ascii_digit))
    }

    /// Returns `true` if the comma here groups the digits of one number: `1,000`.
    fn is_digit_group(&self, comma: usize, digits_since: usize) -> bool {
        let bytes = self.text.as_bytes();
        let next = bytes.get(comma + 1..comma + 4);
        (1..=3).contains(&comma.saturating_sub(digits_since))
            && next.is_some_and(|next| next.iter().all(u8::is_ascii_digit))
            && !bytes.get(comma + 4).is_some_and(u8::is_ascii_alphanumeric)
    }

    /// Returns `true` if there is a curly apostrophe here, within a word.
    fn is_quote(&self, at: usize, len: usize) -> bool {
        self.apostrophes && self.slice(at, at + len) == "\u{2019}" && self.is_word(at + len)
    }

    fn is_word(&self, at: usize) -> bool {
        self.class_at(at).is_some_and(|(class, _)| class == CharClass::Word)
    }

    /// The end of the run of an unspaced script that begins here.
    fn run_end(&self, start: usize) -> usize {
        let mut at = start;
        while let Some((CharClass::Unspaced | CharClass::Ignored, len)) = self.class_at(at) {
            at += len;
        }
        at
    }

    fn class_at(&self, at: usize) -> Option<(CharClass, usize)> {
        let byte = *self.text.as_bytes().get(at)?;
        if byte.is_ascii() {
            let class = if byte.is_ascii_alphanumeric() { CharClass::Word } else { CharClass::Gap };
            return Some((class, 1));
        }
        let c = self.text.get(at..)?.chars().next()?;
        Some((class(c), c.len_utf8()))
    }
}

/// Passes the parts of a word that its capitals and digits show: `getUserName`, `HTTPServer`, `sha256`. No
/// parts if it is one part, or changes so often that it is a code and not a name.
pub(super) fn inner_parts(word: &str, mut part: impl FnMut(&str)) {
    const MAX_CUTS: usize = 8;
    const MAX_DIGIT_SWITCHES: usize = 3;
    let mut cuts = [0; MAX_CUTS];
    let (mut len, mut switches) = (0, 0);
    let mut chars = word.char_indices().peekable();
    let mut before: Option<CharKind> = None;
    while let Some((at, c)) = chars.next() {
        let kind = CharKind::of(c);
        let next = chars.peek().map(|(_, c)| CharKind::of(*c));
        let Some(previous) = before.replace(kind) else { continue };
        let digits = (previous == CharKind::Digit) != (kind == CharKind::Digit);
        // The last of several capitals begins the next word, except in plurals of acronyms (`URLs`).
        let last_capital =
            previous == CharKind::Upper && next == Some(CharKind::Lower) && !ends_in_s(word, at);
        let capital = kind == CharKind::Upper && (previous == CharKind::Lower || last_capital);
        if !(digits || capital) {
            continue;
        }
        switches += usize::from(digits);
        let Some(cut) = cuts.get_mut(len) else { return };
        (*cut, len) = (at, len + 1);
    }
    if len == 0 || switches > MAX_DIGIT_SWITCHES {
        return;
    }
    let mut start = 0;
    for end in cuts.into_iter().take(len).chain([word.len()]) {
        part(word.get(start..end).unwrap_or_default());
        start = end;
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CharKind {
    Upper,
    Lower,
    Digit,
}

impl CharKind {
    fn of(c: char) -> Self {
        if c.is_uppercase() {
            Self::Upper
        } else if is_number(c) || c == ',' {
            // A comma in a word groups its digits.
            Self::Digit
        } else {
            Self::Lower
        }
    }
}

/// Returns `true` if exactly one `s` follows the character here.
fn ends_in_s(word: &str, at: usize) -> bool {
    word.len() == at + 2 && word.ends_with('s')
}

#[cfg(test)]
#[path = "word_break_tests.rs"]
mod tests;
