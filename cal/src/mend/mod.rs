//! What a refused query was meant to be: a whole statement that is CAL, for who wrote one that nearly is.
//!
//! Rules rewrite the place of an error ([`rules`]), or characters that no CAL has ([`plain`]); what a hint says is
//! meant is put in. Each outcome is read again, and what is wrong with it mended in turn, so that only a statement
//! that parses and checks is ever suggested. Nothing is asked of a memory, and a query that begins as what CAL never
//! does (DELETE ...) is left alone.

mod document;
mod either;
mod nobody;
mod pattern;
mod plain;
mod rules;
mod whole;

use std::cell::Cell;
use std::collections::BTreeSet;

use grainstore_format::EpochMs;

use crate::check::{self, Context};
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::json;
use crate::params::Params;
use crate::scan::{Piece, PieceKind, scan};
use crate::source::Source;
use nobody::Nobody;
use pattern::Pieces;

/// How many rewritings may follow each other.
const STEPS: usize = 6;
/// How many statements are read on the way.
const READS: usize = 60;
/// How many pieces are looked at on the way: so many that only long queries of many parts run out of them.
const LOOKS: usize = 1_000_000;
/// Bytes beyond which a query is not mended.
const LONGEST: usize = 4096;

/// Bytes of a list of what may stand somewhere that is still read.
const SHORT: usize = 60;
/// A present in which no date that is written is yet to come: 2100.
const LATE: i64 = 4_102_444_800_000;

/// A rewriting: what to do, for a person, and the query after it.
struct Step {
    advice: String,
    text: String,
}

/// The same error with the statement that was probably meant, if one is found.
pub(crate) fn mended(error: Error, source: &str) -> Error {
    if source.len() > LONGEST || error.is_mended() || !is_mendable(error.kind()) {
        return error;
    }
    let mut search =
        Search { seen: BTreeSet::from([source.to_owned()]), reads: READS, looks: Cell::new(LOOKS) };
    let found = search.find(source, &error, STEPS);
    let Some((advice, text)) = found.filter(|(_, text)| asks_as_much(source, text)) else {
        return error;
    };
    let said = error.suggestion();
    let error = match !advice.is_empty() && is_vague(&error) {
        // A short list of what may stand there helps as well.
        true if said.starts_with("expected ") && said.len() <= SHORT => {
            let both = format!("{advice}; {said}");
            error.suggest(both)
        }
        true => error.suggest(advice),
        false => error,
    };
    error.correct(text)
}

/// Whether a statement asks for no write where the one it stands for may have asked for none: a write is suggested only
/// in the place of what begins as one.
fn asks_as_much(source: &str, text: &str) -> bool {
    const WRITES: [&str; 7] =
        ["ADD", "SUPERSEDE", "REVERT", "UPDATE", "REPLACE", "MODIFY", "CHANGE"];
    const BEFORE: [&str; 8] = ["CAL", "PLEASE", "NOW", "THEN", "RUN", "EXECUTE", "DO", "QUERY"];
    let writes = Source::plain_read(text)
        .and_then(|source| source.plain_statement().map(|statement| statement.tier() > 0));
    if !writes.unwrap_or(false) {
        return true;
    }
    let among = |words: &[&str], word: &str| words.iter().any(|one| one.eq_ignore_ascii_case(word));
    let words = source.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    let mut words = words.filter(|word| word.starts_with(char::is_alphabetic));
    match json::is_json(source) || source.trim_start().starts_with('[') {
        true => !words.any(|word| word.eq_ignore_ascii_case("explain")),
        false => words.find(|word| !among(&BEFORE, word)).is_some_and(|word| among(&WRITES, word)),
    }
}

/// Whether what the error suggests says nothing of what was meant.
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

/// Whether what is wrong is how the query is written.
fn is_mendable(kind: ErrorKind) -> bool {
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

/// What was tried on the way to a statement that is CAL.
struct Search {
    seen: BTreeSet<String>,
    reads: usize,
    looks: Cell<usize>,
}

impl Search {
    /// The first statement without an error that these rewritings lead to, and what the first of them does.
    fn find(&mut self, text: &str, error: &Error, steps: usize) -> Option<(String, String)> {
        for step in rewritings(text, error, &self.looks) {
            if self.reads == 0 {
                return None;
            }
            if !self.seen.insert(step.text.clone()) {
                continue;
            }
            self.reads -= 1;
            let Err(next) = read(&step.text) else { return Some((step.advice, step.text)) };
            if steps > 1
                && is_mendable(next.kind())
                && let Some((_, text)) = self.find(&step.text, &next, steps - 1)
            {
                return Some((step.advice, text));
            }
        }
        None
    }
}

/// Reads and checks a statement; what only a host could know is taken as right.
fn read(text: &str) -> Result<()> {
    let source = Source::plain_read(text)?;
    let statement = source.plain_statement()?;
    let (memory, params) = (Nobody::default(), Params::new());
    let mut context = Context::new(&memory, &params, EpochMs::new(LATE), false);
    let checked = check::check(&statement, &mut context);
    let (_, refused) = source.forgiving()?;
    let slot = refused.into_iter().next().map_or(Ok(()), |refused| Err(refused.error));
    match checked.map(|_| ()).and(slot) {
        Err(error) if is_mendable(error.kind()) => {
            Err(source.locate(error.within(statement.place())))
        }
        _ => Ok(()),
    }
}

/// What may be done about the error, the likeliest first.
fn rewritings(text: &str, error: &Error, looks: &Cell<usize>) -> Vec<Step> {
    if json::is_json(text) || text.trim_start().starts_with('[') {
        return document::rewritings(text, error);
    }
    let pieces = scan(text);
    if pieces.iter().any(|piece| piece.kind == PieceKind::Forbidden) {
        return Vec::new();
    }
    let mut steps: Vec<Step> = plain::rewriting(text).into_iter().collect();
    let start = error.position().map_or(text.len(), |at| at.start);
    let place = place_of(&pieces, start);
    steps.extend(variable(text, error));
    let query = Pieces { text, all: &pieces, steps: looks };
    steps.extend(whole::rewritings(query));
    steps.extend(rules::rewritings(query, place));
    steps.extend(meant(text, error));
    steps
}

/// A variable of a template with the name of what has it.
fn variable(text: &str, error: &Error) -> Vec<Step> {
    const OWNERS: [&str; 4] = ["grain", "assembly", "budget", "source"];
    let at = error.position().filter(|_| error.kind() == ErrorKind::UnknownVariable);
    let tag = at.and_then(|at| text.get(at.start..at.end));
    let Some(name) = tag.map(name_in_tag) else { return Vec::new() };
    let step = |owner: &str| {
        let full = format!("{owner}.{name}");
        error.valid_values().iter().any(|known| **known == full).then(|| Step {
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

/// The piece an error stands at.
fn place_of(pieces: &[Piece], start: usize) -> usize {
    pieces.iter().position(|piece| piece.range.end > start).unwrap_or(pieces.len())
}

/// What a hint says is meant, put in the place of the error.
fn meant(text: &str, error: &Error) -> Option<Step> {
    let word = error.suggestion().strip_prefix("Did you mean \"")?.strip_suffix("\"?")?;
    let at = error.position()?;
    if error.kind() == ErrorKind::UnknownVariable {
        let text = renamed(text, name_in_tag(text.get(at.start..at.end)?), word);
        return Some(Step { advice: String::new(), text });
    }
    let quoted = json::is_json(text) && text.get(at.start..)?.starts_with('"');
    let word = if quoted { format!("\"{word}\"") } else { word.to_owned() };
    let text = [text.get(..at.start)?, &word, text.get(at.end..)?].concat();
    Some(Step { advice: String::new(), text })
}

/// Whether a token of this kind is a value.
fn is_value(kind: PieceKind) -> bool {
    matches!(kind, PieceKind::Text | PieceKind::Number | PieceKind::Hash | PieceKind::Parameter)
}

#[cfg(test)]
#[path = "mend_tests.rs"]
mod tests;
