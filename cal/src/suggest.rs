//! "Did you mean": the word of a list that was probably meant.

/// Words of other query languages and what CAL calls them.
const ELSEWHERE: [(&str, &str); 7] = [
    ("SELECT", "RECALL"),
    ("GET", "RECALL"),
    ("UPDATE", "SUPERSEDE"),
    ("FILTER", "WHERE"),
    ("SORT", "ORDER BY"),
    ("SKIP", "OFFSET"),
    ("FORMAT", "AS"),
];

/// Words that say something else elsewhere, near as they are to some of ours.
const STRANGERS: [&str; 3] = ["HTML", "XML", "JOIN"];

/// The known word that is meant, with its distance: the one another language spells like `given`,
/// else the closest one that is close enough.
///
/// Letter case is ignored. Long input has no near word and is not measured; of a short word any other is
/// near, so that only one it is the beginning of is meant by it, and by a single letter nothing.
pub(crate) fn closest(
    given: &str,
    known: impl IntoIterator<Item = &'static str>,
) -> Option<(&'static str, usize)> {
    const LONGEST: usize = 40;
    if given.len() > LONGEST || STRANGERS.iter().any(|word| word.eq_ignore_ascii_case(given)) {
        return None;
    }
    let translated = ELSEWHERE.iter().find(|(word, _)| word.eq_ignore_ascii_case(given));
    let translated = translated.map(|(_, ours)| *ours);
    let given = given.to_ascii_lowercase();
    let distance = |word: &'static str| match translated {
        Some(ours) if ours == word => Some(0),
        _ => distance(&given, &word.to_ascii_lowercase()),
    };
    let near = known.into_iter().filter_map(|word| Some((word, distance(word)?)));
    near.min_by_key(|(_, distance)| *distance)
}

/// How far two names are from each other, where the one could be meant by the other.
fn distance(given: &str, name: &str) -> Option<usize> {
    /// Letters of a word that is too short to tell what it is near.
    const SHORT: usize = 3;
    let is_word = name.contains(char::is_alphabetic);
    let begins = given.len() == SHORT && name.starts_with(given);
    if !is_word || (given.len() <= SHORT && !begins) {
        return None;
    }
    let distance = strsim::osa_distance(given, name);
    (distance <= given.len().div_ceil(3)).then_some(distance)
}

/// The one of these names that is close enough, and closest.
pub(crate) fn closest_of<'n>(
    given: &str,
    known: impl IntoIterator<Item = &'n str>,
) -> Option<&'n str> {
    let near = known.into_iter().filter_map(|name| Some((distance(given, name)?, name)));
    near.min().map(|(_, name)| name)
}

/// `Did you mean "x"?` for the word that is meant, else `otherwise`.
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
}
