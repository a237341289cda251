//! Completion of a statement in CAL while somebody types it: words of the language, names in the statement, and values
//! of the store. For prompts and pages; knows neither.

mod cursor;

use std::collections::BTreeSet;

use grainstore::cal::{NextWord, NextWordKind, next_words, vocabulary};

use serde::Deserialize;
use serde_json::Value;

use cursor::{Wanted, place};

/// The most candidates returned.
const MAX_CANDIDATES: usize = 200;

/// Values of a store that can be completed, read with bounded work.
pub trait StoredValues {
    /// Subjects of the newest grains.
    fn subjects(&self) -> BTreeSet<String>;
    /// Relations of the newest grains.
    fn relations(&self) -> BTreeSet<String>;
}

/// Values of some grains, which the answer to the method `query` is read as.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(from = "Page")]
pub struct ValuesOfGrains {
    /// Subjects.
    pub subjects: BTreeSet<String>,
    /// Relations.
    pub relations: BTreeSet<String>,
}

impl StoredValues for ValuesOfGrains {
    fn subjects(&self) -> BTreeSet<String> {
        self.subjects.clone()
    }

    fn relations(&self) -> BTreeSet<String> {
        self.relations.clone()
    }
}

/// What is read of an answer to `query`.
#[derive(Deserialize)]
struct Page {
    results: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    grain: Names,
}

#[derive(Deserialize)]
struct Names {
    subject: Option<Value>,
    relation: Option<Value>,
}

impl From<Page> for ValuesOfGrains {
    fn from(page: Page) -> Self {
        let text = |value: Option<Value>| value.and_then(|value| Some(value.as_str()?.to_owned()));
        let mut values = Self::default();
        for Row { grain: Names { subject, relation } } in page.results {
            values.subjects.extend(text(subject));
            values.relations.extend(text(relation));
        }
        values
    }
}

/// A completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Its text in the list.
    pub display: String,
    /// The text it inserts.
    pub replacement: String,
}

impl Candidate {
    /// The words with the typed prefix, in any case, each followed by `then`.
    pub fn fitting<'w>(
        words: impl IntoIterator<Item = &'w str>,
        typed: &str,
        then: &str,
    ) -> Vec<Self> {
        let fitting = words.into_iter().filter(|word| starts_with(word, typed));
        let candidate =
            |word: &str| Self { display: word.to_owned(), replacement: format!("{word}{then}") };
        fitting.map(candidate).collect()
    }
}

/// Returns the completions at the end of `before`, a statement up to the cursor, and the byte offset of the word they
/// replace. `bound` has the names of the bound parameters.
///
/// ```
/// use grainstore_serve::{ValuesOfGrains, complete_statement};
///
/// let (start, found) = complete_statement("RECALL bel", &[], &ValuesOfGrains::default());
/// assert_eq!((start, found[0].replacement.as_str()), (7, "beliefs "));
/// ```
#[must_use]
pub fn complete_statement(
    before: &str,
    bound: &[&str],
    values: &dyn StoredValues,
) -> (usize, Vec<Candidate>) {
    let place = place(before);
    let (before, typed) = before.split_at_checked(place.start).unwrap_or((before, ""));
    let mut found = match &place.wanted {
        Wanted::Nothing => Vec::new(),
        Wanted::Word => {
            next_words(before, typed).into_iter().map(|word| of_word(&word, typed)).collect()
        }
        Wanted::Parameter(lets) => {
            let bound = bound.iter().map(|name| format!("${name}"));
            let all: BTreeSet<String> = lets.iter().cloned().chain(bound).collect();
            Candidate::fitting(all.iter().map(String::as_str), typed, "")
        }
        Wanted::Variable => Candidate::fitting(grainstore_sml::template_variables(), typed, ""),
        Wanted::ValueOf(field) => complete_value(field, typed, values),
    };
    found.truncate(MAX_CANDIDATES);
    (place.start, found)
}

/// The completion to a word of the language; keywords in the case that was typed.
fn of_word(word: &NextWord, typed: &str) -> Candidate {
    let lower = typed.chars().any(|c| c.is_ascii_lowercase());
    let display = match word.kind {
        NextWordKind::Keyword if lower => word.text.to_ascii_lowercase(),
        _ => word.text.clone().into_owned(),
    };
    let then = if word.kind == NextWordKind::Bare { "" } else { " " };
    Candidate { replacement: format!("{display}{then}"), display }
}

/// Completes a string in quotes, with its closing quote.
fn complete_value(field: &str, typed: &str, stored: &dyn StoredValues) -> Vec<Candidate> {
    let values: BTreeSet<String> = match field {
        "subject" => stored.subjects(),
        "relation" => {
            let known = vocabulary::relations().map(str::to_owned);
            stored.relations().into_iter().chain(known).collect()
        }
        "type" => vocabulary::singulars().map(str::to_owned).collect(),
        field => vocabulary::values_of(field).iter().map(|value| (*value).to_owned()).collect(),
    };
    let is_shown = |value: &&String| is_displayable(value);
    let offered = values.iter().filter(is_shown).map(|value| (value, escaped(value)));
    let fits = |(_, written): &(&String, String)| starts_with(written, typed);
    let candidate = |(value, written): (&String, String)| Candidate {
        display: value.clone(),
        replacement: format!("{written}\""),
    };
    offered.filter(fits).map(candidate).collect()
}

/// Returns `true` if a stored text can be shown in a list, and edited in a line, unchanged: nothing of it steers a
/// terminal or the direction of text.
fn is_displayable(value: &str) -> bool {
    const LONGEST: usize = 80;
    let steers = |c: char| {
        c.is_control()
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{2028}' | '\u{2029}')
    };
    !value.is_empty() && value.chars().count() <= LONGEST && !value.chars().any(steers)
}

/// Escapes a text for a string in quotes.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"")
}

fn starts_with(word: &str, typed: &str) -> bool {
    word.get(..typed.len()).is_some_and(|head| head.eq_ignore_ascii_case(typed))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A store with a few values.
    struct Few;

    impl StoredValues for Few {
        fn subjects(&self) -> BTreeSet<String> {
            ["alice", "alan \"al\"", "bob", "al\u{1b}[2J", "al\nine"].map(str::to_owned).into()
        }

        fn relations(&self) -> BTreeSet<String> {
            ["prefers".to_owned()].into()
        }
    }

    fn shown(before: &str) -> Vec<String> {
        complete_statement(before, &["city"], &Few).1.into_iter().map(|one| one.display).collect()
    }

    fn written(before: &str) -> Vec<String> {
        let (start, found) = complete_statement(before, &["city"], &Few);
        let head = before.get(..start).unwrap();
        found.into_iter().map(|one| format!("{head}{}", one.replacement)).collect()
    }

    #[test]
    fn words_are_completed_in_the_case_they_are_written_in() {
        for (before, after) in [
            ("REC", &["RECALL "][..]),
            ("rec", &["recall "]),
            ("RECALL beli", &["RECALL beliefs "]),
            ("RECALL goals wh", &["RECALL goals where "]),
            ("RECALL goals WHERE goal", &["RECALL goals WHERE goal_state "]),
            ("RECALL beliefs WHERE goal", &[]),
            ("RECALL beliefs WHERE h", &["RECALL beliefs WHERE hash ", "RECALL beliefs WHERE hc:"]),
            ("RECALL beliefs WITH div", &["RECALL beliefs WITH diversity"]),
            (
                "RECALL beliefs WHERE relation IS PREF",
                &["RECALL beliefs WHERE relation IS PREFERENCE "],
            ),
            ("DESCRIBE fields obs", &["DESCRIBE fields observation "]),
            ("RECALL beliefs AS sm", &["RECALL beliefs AS sml"]),
            ("RECALL beliefs LIMIT $", &["RECALL beliefs LIMIT $city"]),
            ("RECALL beliefs dele", &[]),
            // AND is not offered before a condition exists that it could follow.
            ("RECALL an", &[]),
            ("RECALL uni", &[]),
            ("ASSEMBLE FROM ", &["ASSEMBLE FROM (RECALL "]),
            (
                "ASSEMBLE FROM (RECALL) STREAM { chu",
                &[
                    "ASSEMBLE FROM (RECALL) STREAM { chunks",
                    "ASSEMBLE FROM (RECALL) STREAM { chunk_size",
                ],
            ),
            ("DEFINE TEMPLATE t ELEMENT { rec", &[]),
            (
                "DEFINE TEMPLATE t ELEMENT { {{#grain.conf",
                &["DEFINE TEMPLATE t ELEMENT { {{#grain.confidence"],
            ),
        ] {
            assert_eq!(written(before), after, "{before}");
        }
    }

    #[test]
    fn texts_of_the_store_are_offered_with_their_quote_and_steer_no_terminal() {
        assert_eq!(
            written("RECALL ABOUT \"al"),
            ["RECALL ABOUT \"alan \\\"al\\\"\"", "RECALL ABOUT \"alice\""]
        );
        assert_eq!(shown("RECALL WHERE subject IN (\"bob\", \"a"), ["alan \"al\"", "alice"]);
        assert_eq!(shown("RECALL WHERE relation = \"pre"), ["prefers"]);
        assert!(shown("RECALL WHERE relation = \"mg:").len() > 10);
        assert_eq!(shown("RECALL goals WHERE goal_state = \"ac"), ["active"]);
        assert!(shown("RECALL WHERE object = \"").is_empty());
    }
}
