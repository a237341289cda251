//! The parser: one file per part of the grammar, one function per production (CAL 4).
//!
//! Recursive descent over tokens made on demand; the limits of the grammar bound its depth. It handles
//! syntax only; the checker decides meaning and permission.

mod assemble;
mod clause;
mod compound;
mod condition;
mod cursor;
mod describe;
mod evolve;
mod history;
mod option;
mod project;
mod recall;
mod setop;
mod stage;
mod statement;
pub(crate) mod stream;
mod template;
mod value;
pub(crate) mod word_errors;

pub(crate) use cursor::RefusedEntry;
pub(crate) use describe::TARGETS as DESCRIBED;
pub(crate) use evolve::ELSEWHERE;
pub(crate) use option::names as option_names;

use crate::ast::{Condition, Statement};
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::limits;
use crate::span::Span;

/// Parses one query; errors have no line and column yet.
pub(crate) fn parse_unlocated(source: &str) -> Result<Statement<'_>> {
    check_length(source)?;
    statement::query(source)
}

/// Parses one query for execution: an error within an entry of a BATCH is the answer of its slot (CAL 8.7).
///
/// Those of [`parse_unlocated`]; for a BATCH entry only if its end cannot be determined.
pub(crate) fn parse_for_execution(source: &str) -> Result<(Statement<'_>, Vec<RefusedEntry<'_>>)> {
    check_length(source)?;
    statement::query_for_execution(source)
}

/// Parses the conditions of a WHERE without the keyword.
///
/// # Errors
/// Those of [`parse_unlocated`].
pub(crate) fn parse_conditions(source: &str) -> Result<Vec<Condition<'_>>> {
    check_length(source)?;
    condition::conditions_only(source)
}

/// Returns bytes as text.
///
/// # Errors
/// E070 at the first byte that is not UTF-8; E001 instead if there are more than `most` bytes.
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

/// Returns E001 for a query that is too long, with the span of the excess.
pub(crate) fn check_length(source: &str) -> Result<()> {
    if source.len() <= limits::MAX_QUERY_BYTES {
        return Ok(());
    }
    Err(too_long(source.len())
        .at(Span::new(source.floor_char_boundary(limits::MAX_QUERY_BYTES), source.len())))
}

fn too_long(bytes: usize) -> Error {
    let message =
        format!("a query is at most {} bytes, this one has {bytes}", limits::MAX_QUERY_BYTES);
    Error::new(ErrorKind::QueryTooLong, message)
}

#[cfg(test)]
mod grammar_tests;
#[cfg(test)]
mod hint_tests;
#[cfg(test)]
#[path = "parse_tests.rs"]
pub(crate) mod tests;
