//! Corrections of refused queries: a search for a whole valid statement close to the one that was written.
//!
//! Rewrites are pattern rules at the position of an error (`rules`, `whole`, `either`, `document`),
//! replacements of characters outside the language (`plain`), and the word that the error's own hint
//! suggests. Each rewrite is parsed and checked again and, if it still fails, rewritten in turn; so only a
//! statement that parses and checks is ever suggested. The search reads no memory, and leaves a query alone
//! that contains a word for what CAL never does (DELETE). `read` has the readers of queries that suggest.

mod characters;
mod either;
mod empty_memory;
mod json_document;
mod pattern;
mod read;
mod rules;
mod whole;

use std::cell::Cell;
use std::collections::BTreeSet;

use grainstore_format::EpochMs;

use crate::check::{self, CheckContext};
use crate::codes::ErrorKind;
use crate::error::{Error, Position, Result};
use crate::json;
use crate::params::Params;
use crate::parse::ELSEWHERE;
use crate::scan::{SyntaxKind, SyntaxSpan, scan};
use crate::source::QuerySource;
use crate::suggest;
pub use read::{parse, parse_bytes};

use empty_memory::EmptyMemory;
use pattern::QueryPieces;

/// The most rewrites applied one after the other.
const MAX_REWRITES: usize = 6;
/// The most statements parsed in one search.
const MAX_PARSES: usize = 60;
/// How many pieces are looked at on the way: so many that only long queries of many parts run out of them.
const LOOKS: usize = 1_000_000;
/// Size in bytes above which a query is not corrected.
const MAX_QUERY_BYTES: usize = 4096;

/// Size in bytes up to which a list of expected tokens is still worth showing.
const SHORT_LIST_BYTES: usize = 60;
/// A date later than any that a query names, used as the present: 2100, in milliseconds.
const FAR_FUTURE_MS: i64 = 4_102_444_800_000;

/// A rewrite: advice for a person, and the rewritten query.
struct Rewrite {
    advice: String,
    text: String,
}

/// Returns the error with the statement that was probably meant, if one is found.
pub(crate) fn with_correction(error: Error, source: &str) -> Error {
    if source.len() > MAX_QUERY_BYTES || error.is_corrected() || !is_correctable(error.kind()) {
        return error;
    }
    let mut search = RewriteSearch {
        tried: BTreeSet::from([source.to_owned()]),
        parses_left: MAX_PARSES,
        looks: Cell::new(LOOKS),
    };
    let found = search.find(source, &error, MAX_REWRITES);
    let is_stray = is_stray_keyword(source, &error);
    let Some((advice, text)) = found.filter(|(_, text)| asks_as_much(source, text)) else {
        return if is_stray { error.suggest_valid() } else { error };
    };
    let said = error.suggestion();
    let error = match !advice.is_empty() && (is_stray || is_vague(&error)) {
        // A short list of expected tokens is helpful beside the advice.
        true if said.starts_with("expected ") && said.len() <= SHORT_LIST_BYTES => {
            let both = format!("{advice}; {said}");
            error.suggest(both)
        }
        true => error.suggest(advice),
        false => error,
    };
    error.with_correction(text)
}

/// The words that begin statements that write.
const WRITES: [&str; 3] = ["ADD", "SUPERSEDE", "REVERT"];

/// Whether the keyword that the hint suggests makes no statement of the query, or a write of
/// what does not begin as one.
fn is_stray_keyword(source: &str, error: &Error) -> bool {
    if error.kind() != ErrorKind::UnexpectedToken {
        return false;
    }
    let Some((word, at)) = hinted(error) else { return false };
    let given = source.get(at.start..at.end).unwrap_or_default();
    let is_other_write = WRITES.contains(&word) && !suggest::is_misspelling(given, word);
    let stands = apply_hint(source, error).is_some_and(|put| parse_and_check(&put.text).is_ok());
    is_other_write || !stands
}

/// Whether a statement asks for no write where the one it stands for may have asked for none: a write is
/// suggested only in the place of what begins as one.
fn asks_as_much(source: &str, text: &str) -> bool {
    const BEFORE: [&str; 8] = ["CAL", "PLEASE", "NOW", "THEN", "RUN", "EXECUTE", "DO", "QUERY"];
    let writes = QuerySource::read_without_suggestion(text).and_then(|source| {
        source.statement_without_suggestion().map(|statement| statement.tier() > 0)
    });
    if !writes.unwrap_or(false) {
        return true;
    }
    let among = |words: &[&str], word: &str| words.iter().any(|one| one.eq_ignore_ascii_case(word));
    let words = source.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    let mut words = words.filter(|word| word.starts_with(char::is_alphabetic));
    match json::is_json(source) || source.trim_start().starts_with('[') {
        true => !words.any(|word| word.eq_ignore_ascii_case("explain")),
        false => words
            .find(|word| !among(&BEFORE, word))
            .is_some_and(|word| among(&WRITES, word) || among(&ELSEWHERE, word)),
    }
}

/// Returns `true` if the suggestion of the error does not say what was meant, so that advice may replace it.
fn is_vague(error: &Error) -> bool {
    if matches!(
        error.kind(),
        ErrorKind::WrongField | ErrorKind::TypeNotNamed | ErrorKind::BadGoalState
    ) {
        return false;
    }
    let said = error.suggestion();
    [
        "expected ",
        "choose another name",
        "names, keywords",
        "use one of",
        "use a field",
        "check the grammar",
        "mend the JSON",
        "give it a value of that kind",
        "add the key",
        "list at least one",
        "write {",
        "a number starts with",
    ]
    .iter()
    .any(|start| said.starts_with(start))
}

/// Returns `true` if the error is one of spelling or form, which a rewrite can correct.
fn is_correctable(kind: ErrorKind) -> bool {
    use ErrorKind::*;
    matches!(
        kind,
        UnexpectedToken
            | UnknownType
            | UnknownField
            | BadString
            | BadNumber
            | LimitTooLarge
            | BoundTwice
            | BadHash
            | UnknownSetField
            | MissingReason
            | MissingSet
            | WrongType
            | WrongStage
            | WrongField
            | TypeNotNamed
            | BadGoalState
            | UnknownVariable
    )
}

/// The state of a search for a valid statement: the texts tried, and the parses left.
struct RewriteSearch {
    tried: BTreeSet<String>,
    parses_left: usize,
    looks: Cell<usize>,
}

impl RewriteSearch {
    /// Returns the first valid statement that these rewrites lead to, with the advice of the first of them.
    fn find(&mut self, text: &str, error: &Error, steps: usize) -> Option<(String, String)> {
        for step in rewrites(text, error, &self.looks) {
            if self.parses_left == 0 {
                return None;
            }
            if !self.tried.insert(step.text.clone()) {
                continue;
            }
            self.parses_left -= 1;
            let Err(next) = parse_and_check(&step.text) else {
                return Some((step.advice, step.text));
            };
            if steps > 1
                && is_correctable(next.kind())
                && let Some((_, text)) = self.find(&step.text, &next, steps - 1)
            {
                return Some((step.advice, text));
            }
        }
        None
    }
}

/// Parses and checks a statement. Errors that depend on the host count as success.
fn parse_and_check(text: &str) -> Result<()> {
    let source = QuerySource::read_without_suggestion(text)?;
    let statement = source.statement_without_suggestion()?;
    let (memory, params) = (EmptyMemory::default(), Params::new());
    let mut context = CheckContext::new(&memory, &params, EpochMs::new(FAR_FUTURE_MS), false);
    let checked = check::check(&statement, &mut context);
    let (_, refused) = source.statement_for_execution()?;
    let slot = refused.into_iter().next().map_or(Ok(()), |refused| Err(refused.error));
    match checked.map(|_| ()).and(slot) {
        Err(error) if is_correctable(error.kind()) => {
            Err(source.locate(error.at_unless_memory(statement.keyword_span())))
        }
        _ => Ok(()),
    }
}

/// Returns the rewrites to try for an error, most likely first.
fn rewrites(text: &str, error: &Error, looks: &Cell<usize>) -> Vec<Rewrite> {
    if json::is_json(text) || text.trim_start().starts_with('[') {
        return json_document::rewrites(text, error);
    }
    let pieces = scan(text);
    if pieces.iter().any(|piece| piece.kind == SyntaxKind::Forbidden) {
        return Vec::new();
    }
    let mut steps: Vec<Rewrite> = characters::rewrite(text).into_iter().collect();
    let start = error.position().map_or(text.len(), |at| at.start);
    let place = piece_index(&pieces, start);
    steps.extend(qualify_variable(text, error));
    let query = QueryPieces { text, all: &pieces, steps: looks };
    steps.extend(whole::rewritings(query));
    steps.extend(rules::rewrites(query, place));
    steps.extend(apply_hint(text, error));
    steps
}

/// Qualifies a variable of a template with `grain.`.
fn qualify_variable(text: &str, error: &Error) -> Vec<Rewrite> {
    const OWNERS: [&str; 4] = ["grain", "assembly", "budget", "source"];
    let at = error.position().filter(|_| error.kind() == ErrorKind::UnknownVariable);
    let tag = at.and_then(|at| text.get(at.start..at.end));
    let Some(name) = tag.map(name_in_tag) else { return Vec::new() };
    let step = |owner: &str| {
        let full = format!("{owner}.{name}");
        error.valid_values().iter().any(|known| **known == full).then(|| Rewrite {
            advice: format!("what it shows is named {{{{{full}}}}}"),
            text: renamed(text, name, &full),
        })
    };
    OWNERS.into_iter().filter_map(step).collect()
}

/// The signs around the name in a tag of a template.
const TAG_SIGNS: [char; 8] = ['{', '}', ' ', '#', '^', '/', '\n', '\t'];

fn name_in_tag(tag: &str) -> &str {
    tag.trim_matches(TAG_SIGNS)
}

/// The text with another name in each tag that has this one.
fn renamed(text: &str, name: &str, new: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, tag)) = rest.split_once("{{") {
        let Some((tag, behind)) = tag.split_once("}}") else { break };
        let tag = match name_in_tag(tag) == name {
            true => tag.replacen(name, new, 1),
            false => tag.to_owned(),
        };
        out.extend([before, "{{", &tag, "}}"]);
        rest = behind;
    }
    out + rest
}

/// Returns the index of the piece at the position of an error.
fn piece_index(pieces: &[SyntaxSpan], start: usize) -> usize {
    pieces.iter().position(|piece| piece.range.end > start).unwrap_or(pieces.len())
}

/// The word that the hint of the error suggests, and the place for it.
fn hinted(error: &Error) -> Option<(&str, Position)> {
    let word = error.suggestion().strip_prefix("Did you mean \"")?.strip_suffix("\"?")?;
    Some((word, error.position()?))
}

/// Puts the word that the hint of the error suggests in the place of the error.
fn apply_hint(text: &str, error: &Error) -> Option<Rewrite> {
    let (word, at) = hinted(error)?;
    if error.kind() == ErrorKind::UnknownVariable {
        let text = renamed(text, name_in_tag(text.get(at.start..at.end)?), word);
        return Some(Rewrite { advice: String::new(), text });
    }
    let quoted = json::is_json(text) && text.get(at.start..)?.starts_with('"');
    let word = if quoted { format!("\"{word}\"") } else { word.to_owned() };
    let text = [text.get(..at.start)?, &word, text.get(at.end..)?].concat();
    Some(Rewrite { advice: String::new(), text })
}

/// Returns `true` if a token of this kind is a value.
fn is_value(kind: SyntaxKind) -> bool {
    matches!(kind, SyntaxKind::Text | SyntaxKind::Number | SyntaxKind::Hash | SyntaxKind::Parameter)
}

#[cfg(test)]
#[path = "mend_tests.rs"]
mod tests;
