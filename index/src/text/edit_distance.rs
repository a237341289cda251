//! The edit distance between a fuzzy term and an indexed term, up to a limit. An edit inserts, deletes or
//! replaces a character, or swaps two neighbours (optimal string alignment). Knows nothing of dictionaries.

/// The greatest edit distance that a [`FullTextQuery`](super::FullTextQuery) may ask for.
pub const MAX_EDITS: u8 = 2;

/// The width of the band around the diagonal that can stay within the limit.
const BAND: usize = 2 * MAX_EDITS as usize + 1;
/// Stands for any distance above the limit.
const TOO_MANY: u8 = MAX_EDITS + 1;

/// A fuzzy term, to be compared with many indexed terms.
#[derive(Debug)]
pub(super) struct EditMatcher {
    chars: Vec<char>,
    bytes: usize,
    letter_bits: u64,
    max_edits: u8,
}

/// An indexed term, to be compared with several fuzzy terms.
#[derive(Debug, Clone, Copy)]
pub(super) struct IndexedForm<'t> {
    term: &'t str,
    letters: u64,
}

impl<'t> IndexedForm<'t> {
    pub(super) fn of(term: &'t str) -> Self {
        Self { term, letters: letter_bits(term) }
    }
}

impl EditMatcher {
    /// Creates a matcher for terms within `edits` edits, at most [`MAX_EDITS`].
    pub(super) fn of(word: &str, edits: u8) -> Self {
        let (bytes, letters) = (word.len(), letter_bits(word));
        Self {
            chars: word.chars().collect(),
            bytes,
            letter_bits: letters,
            max_edits: edits.min(MAX_EDITS),
        }
    }

    /// The edit distance of a term; `None` if it is above the limit.
    pub(super) fn edits(&self, form: IndexedForm<'_>) -> Option<u8> {
        let most = u32::from(self.max_edits);
        // A prefilter: a character has at most four bytes, and an edit changes at most two letter bits.
        let is_near = form.term.len().abs_diff(self.bytes) <= 4 * usize::from(self.max_edits)
            && (form.letters ^ self.letter_bits).count_ones() <= 2 * most;
        is_near.then(|| self.banded_distance(form.term)).flatten()
    }

    /// The edit distances between prefixes of the term and of the word, one row for each prefix of the term.
    /// The cell `k` of row `i` is for the prefix of `i + k - MAX_EDITS` characters of the word.
    fn banded_distance(&self, term: &str) -> Option<u8> {
        let middle = usize::from(MAX_EDITS);
        let mut before = [TOO_MANY; BAND];
        let mut last: [u8; BAND] = std::array::from_fn(|k| match k.checked_sub(middle) {
            Some(inserted) => u8::try_from(inserted).unwrap_or(TOO_MANY),
            None => TOO_MANY,
        });
        let (mut previous, mut rows) = (None, 0);
        for letter in term.chars() {
            rows += 1;
            let mut row = [TOO_MANY; BAND];
            let mut left = TOO_MANY;
            for (k, cell) in row.iter_mut().enumerate() {
                let Some(length) = (rows + k).checked_sub(middle) else { continue };
                let of = |cells: &[u8; BAND], k: usize| cells.get(k).copied().unwrap_or(TOO_MANY);
                let own = |at: Option<usize>| at.and_then(|at| self.chars.get(at)).copied();
                let here = own(length.checked_sub(1));
                if length > self.chars.len() {
                    continue;
                }
                let same = here == Some(letter);
                let mut least = of(&last, k + 1).min(left).saturating_add(1);
                if here.is_some() {
                    least = least.min(of(&last, k).saturating_add(u8::from(!same)));
                }
                let exchanged = here.is_some()
                    && here == previous
                    && own(length.checked_sub(2)) == Some(letter);
                if exchanged {
                    least = least.min(of(&before, k).saturating_add(1));
                }
                left = least.min(TOO_MANY);
                *cell = left;
            }
            if row.iter().all(|edits| *edits > self.max_edits) {
                return None;
            }
            (before, last, previous) = (last, row, Some(letter));
        }
        let end = (self.chars.len() + middle).checked_sub(rows)?;
        last.get(end).copied().filter(|edits| *edits <= self.max_edits)
    }
}

/// A bitmap of the letters of a term; some letters share a bit.
fn letter_bits(term: &str) -> u64 {
    term.chars().fold(0, |letters, letter| letters | 1 << (u32::from(letter) % 64))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(word: &str, term: &str) {
        let truth = strsim::osa_distance(word, term);
        for most in 0..=MAX_EDITS {
            let expected = u8::try_from(truth).ok().filter(|edits| *edits <= most);
            assert_eq!(
                EditMatcher::of(word, most).edits(IndexedForm::of(term)),
                expected,
                "{word} {term} {most}"
            );
        }
    }

    #[test]
    fn edits_are_counted_from_both_ends_and_for_empty_words() {
        for (word, term) in [
            ("", ""),
            ("", "a"),
            ("", "ab"),
            ("", "abc"),
            ("abc", ""),
            ("ab", "ba"),
            ("abc", "ca"),
            ("ca", "abc"),
            ("abcd", "badc"),
            ("grün", "gurn"),
            ("東京都", "京都"),
            ("abcdefgh", "cdefgh"),
            ("abcdefgh", "abcdefghij"),
        ] {
            check(word, term);
            check(term, word);
        }
    }

    proptest! {
        #[test]
        fn edits_are_those_of_the_whole_table(word in "[abé]{0,9}", term in "[abé]{0,9}") {
            check(&word, &term);
        }
    }
}
