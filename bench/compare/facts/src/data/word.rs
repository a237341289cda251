//! Words that are made up: letters alone, so that each is one term to every store.

/// The word of a rank: two syllables or more, without an ending that a stemmer would take.
pub(super) fn word(rank: u32) -> String {
    const CONSONANTS: [char; 8] = ['b', 'd', 'k', 'm', 'n', 'p', 't', 'v'];
    const VOWELS: [char; 3] = ['a', 'o', 'u'];
    let mut left = usize::try_from(rank).unwrap_or(0) + 23;
    let mut word = String::new();
    while left > 0 {
        let syllable = left % 24;
        word.extend(CONSONANTS.get(syllable / 3));
        word.extend(VOWELS.get(syllable % 3));
        left /= 24;
    }
    word
}
