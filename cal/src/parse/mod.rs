//! Tokens to syntax tree: one file a part of the grammar, one function a production (spec section 3).
//!
//! A recursive descent whose depth is bounded by the limits of the grammar, over tokens made on demand. It decides
//! what was written; what it means, and whether that is allowed, is the checker's business.

mod assemble;
mod condition;
mod cursor;
mod describe;
mod evolve;
mod history;
mod option;
mod project;
mod recall;
pub(crate) mod refuse;
mod setop;
mod several;
mod stage;
mod statement;
pub(crate) mod stream;
mod template;
mod value;

pub(crate) use cursor::Refused;
pub(crate) use describe::TARGETS as DESCRIBED;
pub(crate) use option::names as option_names;

use crate::ast::{Condition, Statement};
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::limits;
use crate::mend;
use crate::span::Span;

/// Parses one query in text; [`Source`](crate::Source) takes JSON too.
///
/// # Errors
/// The first syntax error, with its place: E001 over 8,192 bytes, E014 when there is no statement,
/// E002 and the other parse codes of spec section 9.
pub fn parse(source: &str) -> Result<Statement<'_>> {
    unplaced(source).map_err(|error| mend::mended(error.locate(source), source))
}

/// The same, with errors that have no line and column yet.
pub(crate) fn unplaced(source: &str) -> Result<Statement<'_>> {
    check_length(source)?;
    statement::query(source)
}

/// Parses one query to be run: what is wrong within an entry of a BATCH is that slot's answer (spec
/// section 5).
///
/// # Errors
/// As [`unplaced`], and as there for entries whose end nobody can tell.
pub(crate) fn forgiving(source: &str) -> Result<(Statement<'_>, Vec<Refused<'_>>)> {
    check_length(source)?;
    statement::forgiving(source)
}

/// Parses what may stand behind WHERE.
///
/// # Errors
/// As [`parse`].
pub(crate) fn parse_conditions(source: &str) -> Result<Vec<Condition<'_>>> {
    check_length(source)?;
    condition::alone(source)
}

/// Parses one query given as bytes.
///
/// # Errors
/// E070 when they are not UTF-8, else as [`parse`].
pub fn parse_bytes(source: &[u8]) -> Result<Statement<'_>> {
    parse(utf8(source, limits::QUERY_BYTES)?)
}

/// Bytes as text.
///
/// # Errors
/// E001 for more bytes than `most` that are none; E070 at the first that is not.
pub(crate) fn utf8(source: &[u8], most: usize) -> Result<&str> {
    let error = match std::str::from_utf8(source) {
        Ok(text) => return Ok(text),
        Err(error) => error,
    };
    if source.len() > most {
        return Err(too_long(source.len()));
    }
    let start = error.valid_up_to();
    let wrong = error.error_len().unwrap_or(source.len().saturating_sub(start));
    let before = source.get(..start).and_then(|before| std::str::from_utf8(before).ok());
    let error = Error::new(ErrorKind::InvalidUtf8, format!("byte {start} is not UTF-8"));
    Err(error.at(Span::new(start, start + wrong)).locate(before.unwrap_or("")))
}

/// E001, placed at what is too much.
pub(crate) fn check_length(source: &str) -> Result<()> {
    if source.len() <= limits::QUERY_BYTES {
        return Ok(());
    }
    Err(too_long(source.len())
        .at(Span::new(source.floor_char_boundary(limits::QUERY_BYTES), source.len())))
}

fn too_long(bytes: usize) -> Error {
    let message = format!("a query is at most {} bytes, this one has {bytes}", limits::QUERY_BYTES);
    Error::new(ErrorKind::QueryTooLong, message)
}

#[cfg(test)]
mod grammar_tests;
#[cfg(test)]
mod hint_tests;
#[cfg(test)]
#[path = "parse_tests.rs"]
pub(crate) mod tests;
