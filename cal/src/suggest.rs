//! "Did you mean": the known word closest to a given one.

/// Words of other query languages, with their CAL equivalents.
const SYNONYMS: [(&str, &str); 6] = [
    ("SELECT", "RECALL"),
    ("GET", "RECALL"),
    ("FILTER", "WHERE"),
    ("SORT", "ORDER BY"),
    ("SKIP", "OFFSET"),
    ("FORMAT", "AS"),
];

/// Words that say something else elsewhere, near as they are to some of ours.
const STRANGERS: [&str; 3] = ["HTML", "XML", "JOIN"];

/// Returns the known word closest to `given` and its distance: an equivalent from another language
/// (distance 0), else the closest one within the distance limit.
///
/// Letter case is ignored. Input over 40 bytes is not measured. Words of up to three letters are near
/// everything, so a three-letter word matches only a word it is a prefix of, and shorter ones match none.
pub(crate) fn closest(
    given: &str,
    known: impl IntoIterator<Item = &'static str>,
) -> Option<(&'static str, usize)> {
    const LONGEST: usize = 40;
    if given.len() > LONGEST || STRANGERS.iter().any(|word| word.eq_ignore_ascii_case(given)) {
        return None;
    }
    let translated = SYNONYMS.iter().find(|(word, _)| word.eq_ignore_ascii_case(given));
    let translated = translated.map(|(_, ours)| *ours);
    let given = given.to_ascii_lowercase();
    let distance = |word: &'static str| match translated {
        Some(ours) if ours == word => Some(0),
        _ => distance(&given, &word.to_ascii_lowercase()),
    };
    let near = known.into_iter().filter_map(|word| Some((word, distance(word)?)));
    near.min_by_key(|(_, distance)| *distance)
}

/// Returns the edit distance between two names, or `None` if it is too large for a suggestion.
fn distance(given: &str, name: &str) -> Option<usize> {
    /// Words of at most this length are too short to compare.
    const SHORT: usize = 3;
    let is_word = name.contains(char::is_alphabetic);
    let begins = given.len() == SHORT && name.starts_with(given);
    if !is_word || (given.len() <= SHORT && !begins) {
        return None;
    }
    let distance = strsim::osa_distance(given, name);
    (distance <= given.len().div_ceil(3)).then_some(distance)
}

/// Whether a word is another one misspelt: it begins with the same two letters, and differs by
/// one edit, a long word by two.
pub(crate) fn is_misspelling(given: &str, word: &str) -> bool {
    /// Letters of a word that may have two edits.
    const LONG: usize = 7;
    let (given, word) = (given.to_ascii_lowercase(), word.to_ascii_lowercase());
    let most = if given.len() >= LONG { 2 } else { 1 };
    let begins = word.get(..2).is_some_and(|start| given.starts_with(start));
    begins && strsim::osa_distance(&given, &word) <= most
}

/// Returns the closest of these names, if one is close enough.
pub(crate) fn closest_of<'n>(
    given: &str,
    known: impl IntoIterator<Item = &'n str>,
) -> Option<&'n str> {
    let near = known.into_iter().filter_map(|name| Some((distance(given, name)?, name)));
    near.min().map(|(_, name)| name)
}

/// Returns `Did you mean "x"?` for the closest word, else `otherwise`.
pub(crate) fn did_you_mean(
    given: &str,
    known: impl IntoIterator<Item = &'static str>,
    otherwise: &str,
) -> String {
    match closest(given, known) {
        Some((word, _)) => format!("Did you mean \"{word}\"?"),
        None => otherwise.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_word_is_found_and_strangers_are_not() {
        for (given, expected) in [
            ("beleifs", Some("beliefs")),
            ("GOALS", Some("goals")),
            ("gaols", Some("goals")),
            ("xyzzy", None),
            ("", None),
            ("tag", Some("tags")),
            ("tgs", None),
            (".tmier", Some(".timer")),
            ("a", None),
            ("x", None),
            ("html", None),
        ] {
            let known = ["beliefs", "goals", "events", "tags", "sml", "AS", "|", ".timer"];
            let found = closest(given, known).map(|(word, _)| word);
            assert_eq!(found, expected, "{given}");
        }
    }

    #[test]
    fn a_misspelling_begins_as_the_word_does() {
        for (given, word, is_one) in [
            ("REVERTS", "REVERT", true),
            ("revret", "REVERT", true),
            ("SUPERCEED", "SUPERSEDE", true),
            ("RECENT", "REVERT", false),
            ("RESET", "REVERT", false),
            ("SUPERVISE", "SUPERSEDE", false),
            ("AND", "ADD", false),
            ("ADDS", "ADD", true),
            ("", "ADD", false),
        ] {
            assert_eq!(is_misspelling(given, word), is_one, "{given}");
        }
    }
}
