//! The words that may stand next in a query that is being written, for editors and prompts.
//!
//! The parser is asked: a word may stand where the parser goes on behind it. Where any name may stand, only the
//! words are offered that lead on in another way than a name. Knows no memory.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::ast::{AsFormat, StreamOption};
use crate::check::domain::DOMAINS;
use crate::error::Error;
use crate::fields;
use crate::parse;
use crate::scan::{SyntaxKind, SyntaxSpan, scan};
use crate::types;
use crate::vocabulary;
use crate::words;

/// A word that may stand next, found by [`next_words`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NextWord {
    /// Its text; keywords are in upper case.
    pub text: Cow<'static, str>,
    /// Its class.
    pub kind: NextWordKind,
}

/// The class of a word that may stand next, found by [`next_words`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum NextWordKind {
    /// A keyword of the grammar.
    Keyword,
    /// A grain type, a field or a target of DESCRIBE.
    Name,
    /// What takes no space behind it: an option, a format, a label, a LET, or the prefix of a domain with its colon.
    Bare,
}

/// What a source of an ASSEMBLE begins with.
const SUBQUERY: &str = "(RECALL";
/// A name that is nowhere a word of the language.
const ANY_NAME: &str = "zzzz";

/// Returns the words that begin with `typed` and may stand at the end of `before`, a text whose last word is
/// complete. Empty in a string, a comment or a template, and where `before` cannot become a query.
///
/// ```
/// use grainstore_cal::next_words;
///
/// assert_eq!(next_words("RECALL goals ", "wh")[0].text, "WHERE");
/// assert_eq!(next_words("RECALL goals WHERE ", "goal")[0].text, "goal_state");
/// ```
#[must_use]
pub fn next_words(before: &str, typed: &str) -> Vec<NextWord> {
    let spans = scan(before);
    let inside = [
        SyntaxKind::Comment,
        SyntaxKind::UnterminatedText,
        SyntaxKind::Template,
        SyntaxKind::Invalid,
    ];
    let reaches_end = |span: &&SyntaxSpan| span.range.end == before.len();
    if spans.last().filter(reaches_end).is_some_and(|last| inside.contains(&last.kind)) {
        return Vec::new();
    }
    let whole = Position::new(before, &spans);
    let found = whole.words(typed);
    // Behind a semicolon another statement may begin: the parser takes one at a time, with the LETs before it.
    let semicolon = spans.iter().rposition(|span| span.kind == SyntaxKind::Semicolon);
    match semicolon.and_then(|at| before.get(spans.get(at)?.range.end..)) {
        Some(rest) if found.is_empty() => {
            Position { lets: whole.lets, ..Position::new(rest, &scan(rest)) }.words(typed)
        }
        _ => found,
    }
}

/// The end of a text, and the names the text has.
struct Position<'b> {
    before: &'b str,
    /// What the parser advises behind a name of any kind; `None` if only some may stand here.
    behind_any: Option<Advice>,
    lets: BTreeSet<String>,
    /// The labels, where PRIORITY lists them.
    labels: BTreeSet<String>,
    /// The fields of the type that the text is about, or those that its last clause takes.
    fields: Vec<&'static str>,
    /// True if the last clause takes fields that the parser does not compare with a list.
    takes_fields: bool,
}

/// What the parser advises to write next; `None` where the query may end.
type Advice = Option<(String, Vec<String>)>;

impl<'b> Position<'b> {
    fn new(before: &'b str, spans: &[SyntaxSpan]) -> Self {
        let words: Vec<&str> =
            spans.iter().filter_map(|span| before.get(span.range.clone())).collect();
        let is = |word: &&str, keyword: &str| word.eq_ignore_ascii_case(keyword);
        let pairs = || words.iter().zip(words.iter().skip(1));
        let lets = pairs().filter(|(one, _)| is(one, "LET")).map(|(_, name)| (*name).to_owned());
        let is_ranked = words.last().is_some_and(|word| is(word, "PRIORITY") || *word == ">");
        let labels = pairs().filter(|(_, colon)| is_ranked && **colon == ":");
        let labels = labels.map(|(name, _)| (*name).to_owned());
        let is_keyword = |span: &&SyntaxSpan| span.kind == SyntaxKind::Keyword;
        let clauses =
            spans.iter().filter(is_keyword).filter_map(|span| before.get(span.range.clone()));
        let mut clauses = clauses.rev().map(str::to_ascii_uppercase);
        let (last, one_before) = (clauses.next().unwrap_or_default(), clauses.next());
        let goes_on = words.last().is_some_and(|word| is(word, &last) || *word == ",");
        let by_clause: Option<Vec<_>> = match (last.as_str(), one_before.as_deref()) {
            ("BY", Some("ORDER")) => Some(fields::sortable_names().collect()),
            ("BY", Some("GROUP")) => Some(fields::GROUPABLE.to_vec()),
            _ => None,
        };
        let takes_fields = goes_on && (by_clause.is_some() || last == "SET");
        let fields =
            by_clause.unwrap_or_else(|| vocabulary::fields_of(named_type(&words)).collect());
        Self {
            before,
            behind_any: advice_behind(before, ANY_NAME),
            lets: lets.collect(),
            labels: labels.collect(),
            fields,
            takes_fields,
        }
    }

    /// The words that may stand here and begin with `typed`.
    fn words(&self, typed: &str) -> Vec<NextWord> {
        if self.takes_fields {
            let names = self.fields.iter().filter(|name| begins(name, typed));
            return names.map(|name| word(*name, NextWordKind::Name)).collect();
        }
        let fits = |candidate: &NextWord| {
            begins(&candidate.text, typed) && self.may_stand(&candidate.text)
        };
        let mut found: Vec<NextWord> = Vec::new();
        for candidate in self.candidates().filter(fits) {
            if !found.iter().any(|known| known.text == candidate.text) {
                found.push(candidate);
            }
        }
        // A few words are keywords and names. Among other names they are names.
        let same = |one: &NextWord, other: &NextWord| {
            one.kind != other.kind && one.text.eq_ignore_ascii_case(&other.text)
        };
        let twice = |one: &NextWord| found.iter().any(|other| same(one, other));
        let has_names = found.iter().any(|one| one.kind != NextWordKind::Keyword && !twice(one));
        let keeps =
            |one: &NextWord| !twice(one) || (one.kind == NextWordKind::Keyword) != has_names;
        found.iter().filter(|one| keeps(one)).cloned().collect()
    }

    /// Everything that may stand anywhere.
    fn candidates(&self) -> impl Iterator<Item = NextWord> {
        let names = types::plurals().chain(types::singulars()).chain(parse::DESCRIBED);
        let names = names.chain(self.fields.iter().copied()).chain([SUBQUERY]);
        let bare = parse::option_names().chain(StreamOption::NAMES);
        let bare = bare.chain(AsFormat::all().map(AsFormat::name));
        let domains = DOMAINS.into_iter().map(|(prefix, _)| format!("{prefix}:"));
        let own = self.lets.iter().chain(&self.labels).cloned();
        let keywords = words::keywords().map(|text| word(text, NextWordKind::Keyword));
        names
            .map(|text| word(text, NextWordKind::Name))
            .chain(keywords)
            .chain(bare.map(|text| word(text, NextWordKind::Bare)))
            .chain(domains.chain(own).map(|text| word(text, NextWordKind::Bare)))
    }

    fn may_stand(&self, text: &str) -> bool {
        if self.labels.contains(text) {
            return true;
        }
        if text == SUBQUERY && advice_behind(self.before, "RECALL").is_some() {
            return false;
        }
        let Some(advice) = advice_behind(self.before, text) else { return false };
        match &self.behind_any {
            // A prefix with its colon would be a label.
            Some(_) if text.ends_with(':') => false,
            Some(of_any) => advice != *of_any || text.starts_with(['$', '(']),
            None => true,
        }
    }
}

/// The type named behind the last RECALL or ADD.
fn named_type<'b>(words: &[&'b str]) -> Option<&'b str> {
    let names = |word: &&str| ["RECALL", "ADD"].iter().any(|head| word.eq_ignore_ascii_case(head));
    let at = words.iter().rposition(names)?;
    let mut behind = words.iter().skip(at.saturating_add(1));
    let named = behind.find(|word| !word.eq_ignore_ascii_case("MY"))?;
    vocabulary::is_type(named).then_some(*named)
}

fn word(text: impl Into<Cow<'static, str>>, kind: NextWordKind) -> NextWord {
    NextWord { text: text.into(), kind }
}

fn begins(word: &str, typed: &str) -> bool {
    word.get(..typed.len()).is_some_and(|head| head.eq_ignore_ascii_case(typed))
}

/// What the parser advises behind a word at the end of a text; `None` if the word may not stand there.
fn advice_behind(before: &str, word: &str) -> Option<Advice> {
    let query = format!("{before}{word} ");
    let end = before.len().saturating_add(word.len());
    let goes_on = |error: &Error| error.span().is_some_and(|span| span.start() >= end);
    match parse::parse_unlocated(&query) {
        Ok(_) => Some(None),
        Err(error) if goes_on(&error) => {
            let valid = error.valid_values().iter().map(|value| value.as_ref().to_owned());
            Some(Some((error.suggestion().to_owned(), valid.collect())))
        }
        Err(_) => None,
    }
}

#[cfg(test)]
#[path = "next_words_tests.rs"]
mod tests;
