//! The terms of words with a given prefix. Words are indexed without their suffixes, so a prefix that reaches
//! into a suffix is a prefix of no term: `activit` of `activity`, indexed as `activ`. Here the prefix is
//! completed with all suffixes that fit, and each resulting word is reduced to its term. Knows nothing of
//! queries.

use super::analysis::Analyser;
use super::language::Language;

/// The least number of letters before a suffix.
const MIN_STEM_LETTERS: usize = 3;
/// The most terms for one prefix, beside those that begin with it: the first in order.
const MAX_COMPLETED_TERMS: usize = 32;

/// Suffixes of English words, as written. Other languages have none here.
const ENGLISH_SUFFIXES: &str = "\
    able ables ability abilities ably al ally ality alities alism alist alists ance ances ancies ancy \
    ant antly ants ate ated ately ates ating ation ational ations ative atively ator ators e ed edly \
    ence ences encies ency ent ently ents er ers es est ful fully fulness ial ially ian ians ibilities \
    ibility ible ibly ic ical ically ics ied ier ies iest iest ily iness ing ingly ings ion ional ions \
    isation isations ise ised iser isers ises ish ising ism isms ist ists ities ity ive ively iveness \
    ives ization izations ize ized izer izers izes izing less lessly lessness ly ment mental ments ness \
    ous ously ousness s y";

/// The terms of words that begin with `word`, except those that begin with `prefix`.
pub(super) fn completed_terms(
    (word, term): (&str, &str),
    prefix: &str,
    language: Language,
    analyser: &mut Analyser,
) -> Vec<Box<str>> {
    let mut found: Vec<Box<str>> = vec![term.into()];
    let is_word = word.bytes().all(|byte| byte.is_ascii_lowercase());
    if language == Language::English && is_word {
        for whole in completions(word) {
            found.push(analyser.term_of(&whole).into());
        }
    }
    found.retain(|term| !term.starts_with(prefix));
    found.sort_unstable();
    found.dedup();
    found.truncate(MAX_COMPLETED_TERMS);
    found
}

/// The words that may continue a prefix, by every suffix it reaches into or stops before.
fn completions(word: &str) -> impl Iterator<Item = String> {
    let endings = || ENGLISH_SUFFIXES.split_ascii_whitespace();
    (MIN_STEM_LETTERS..=word.len()).filter_map(|at| word.split_at_checked(at)).flat_map(
        move |(base, begun)| {
            let fitting = endings().filter(move |ending| ending.starts_with(begun));
            fitting.map(move |ending| format!("{base}{ending}"))
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(word: &str, expected: &[&str]) {
        let mut analyser = Analyser::new(Language::English);
        let term = analyser.term_of(word).to_owned();
        let prefix = if word.starts_with(&term) { &term } else { word };
        let found = completed_terms((word, &term), prefix, Language::English, &mut analyser);
        for term in expected {
            assert!(found.iter().any(|found| **found == **term), "{word}: {found:?}");
        }
        assert_eq!(expected.is_empty(), found.is_empty(), "{word}: {found:?}");
    }

    #[test]
    fn a_beginning_that_reaches_into_an_ending_stands_for_what_is_before_it() {
        check("activit", &["activ"]);
        check("operat", &["oper"]);
        check("nationa", &["nation"]);
        check("memory", &["memori"]);
        check("city", &["citi"]);
        check("happines", &["happi"]);
        check("runn", &["run"]);
    }

    #[test]
    fn what_begins_like_the_terms_themselves_stands_for_nothing_else() {
        for word in ["universit", "develop", "car", "te", "x1", "norwa"] {
            check(word, &[]);
        }
    }

    #[test]
    fn no_beginning_stands_for_many_terms() {
        let mut analyser = Analyser::new(Language::English);
        for word in
            ["generat", "creat", "nation", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "sses"]
        {
            let found = completed_terms((word, word), word, Language::English, &mut analyser);
            assert!(found.len() <= 12, "{word}: {found:?}");
        }
    }
}
