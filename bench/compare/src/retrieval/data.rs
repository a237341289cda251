//! Grains with a text each, and words to look for.
//!
//! Words are spread as in texts: the n-th most frequent is about 1/n as frequent as the first.

use std::fmt::Display;
use std::ops::Range;

use grainstore::format::{BeliefBuilder, EpochMs, Grain};

use crate::Result;
use compare_facts::Random;

/// Different words.
const VOCABULARY: f64 = 200_000.0;
/// Subjects, so that one of them keeps one grain in a hundred.
pub(crate) const SUBJECTS: usize = 100;
/// Steps in which a random number is drawn.
const STEPS: u32 = 1 << 31;

/// Texts of 8 to 31 words at random, always the same.
pub(crate) fn texts(count: usize) -> Vec<String> {
    let mut random = Random::new(1);
    let text = |random: &mut Random| {
        let words = 8 + random.below(24);
        let one = |random: &mut Random| {
            let step = u32::try_from(random.below(STEPS as usize)).unwrap_or(0);
            word(format_args!("{:.0}", VOCABULARY.powf(f64::from(step) / f64::from(STEPS))))
        };
        (0..words).map(|_| one(random)).collect::<Vec<_>>().join(" ")
    };
    (0..count).map(|_| text(&mut random)).collect()
}

/// The word of a rank: letters alone, with no ending that a stemmer would take.
pub(crate) fn word(rank: impl Display) -> String {
    const LETTERS: [char; 10] = ['b', 'c', 'd', 'f', 'g', 'k', 'm', 'n', 'p', 't'];
    let digits = rank.to_string();
    let letter = |digit: u8| LETTERS.get(usize::from(digit - b'0')).copied().unwrap_or('z');
    format!("x{}x", digits.bytes().map(letter).collect::<String>())
}

/// The grain at a place, with its text.
pub(crate) fn grain(at: usize, text: &str) -> Result<Grain> {
    let time = EpochMs::new(1_700_000_000_000 + i64::try_from(at)?);
    Ok(BeliefBuilder::new(time, subject(at), "says", text, 0.9).build()?)
}

/// The subject of the grain at a place.
pub(crate) fn subject(at: usize) -> String {
    format!("subject {}", at % SUBJECTS)
}

/// Two words, each of a range of ranks.
pub(crate) struct Pairs {
    pub(crate) name: &'static str,
    first: Range<usize>,
    second: Range<usize>,
}

/// The kinds of questions. Of 100,000 grains a rare word is in some four to eight, a common one in
/// one to three of a hundred, one of everywhere in every fourth or more.
pub(crate) const KINDS: [Pairs; 4] = [
    Pairs { name: "two rare words", first: 20_000..40_000, second: 20_000..40_000 },
    Pairs { name: "two common words", first: 50..150, second: 50..150 },
    Pairs { name: "a rare and a common word", first: 20_000..40_000, second: 50..150 },
    Pairs { name: "two words of everywhere", first: 2..8, second: 2..8 },
];

impl Pairs {
    /// So many pairs, the same in every run. No word is beside itself.
    pub(crate) fn draw(&self, count: usize) -> Vec<[String; 2]> {
        let mut random = Random::new(11);
        let mut pairs = Vec::with_capacity(count);
        while pairs.len() < count {
            let mut of = |ranks: &Range<usize>| ranks.start + random.below(ranks.len());
            let (first, second) = (of(&self.first), of(&self.second));
            if first != second {
                pairs.push([word(first), word(second)]);
            }
        }
        pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_the_same_in_every_run_and_words_are_spread() {
        assert_eq!(texts(3), texts(3));
        let texts = texts(2_000);
        let has =
            |word: &str| texts.iter().filter(|text| text.split(' ').any(|w| w == word)).count();
        let [often, some, seldom] = [2, 30, 3_000].map(|rank| has(&word(rank)));
        assert!(often > 4 * some && some > 4 * seldom, "{often}, {some}, {seldom}");
        assert!(texts.iter().all(|text| (8..32).contains(&text.split(' ').count())));
    }

    #[test]
    fn pairs_are_of_their_ranks() {
        for kind in &KINDS {
            let pairs = kind.draw(20);
            assert_eq!(pairs.len(), 20);
            for [first, second] in pairs {
                let is_of = |word_given: &str, ranks: &Range<usize>| {
                    ranks.clone().any(|rank| word(rank) == word_given)
                };
                assert!(is_of(&first, &kind.first) && is_of(&second, &kind.second));
                assert_ne!(first, second);
            }
        }
    }
}
