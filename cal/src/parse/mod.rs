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
mod recall;
pub(crate) mod refuse;
mod setop;
mod several;
mod stage;
mod statement;
mod value;

pub(crate) use describe::TARGETS as DESCRIBED;
pub(crate) use option::names as option_names;

use crate::ast::{Condition, Statement};
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::limits;

/// Parses one query.
///
/// # Errors
/// The first syntax error, with its place: E001 over 8,192 bytes, E014 when there is no statement,
/// E002 and the other parse codes of spec section 9.
pub fn parse(source: &str) -> Result<Statement<'_>> {
    check_length(source.len())?;
    statement::query(source).map_err(|error| error.locate(source))
}

/// Parses what may stand behind WHERE.
///
/// # Errors
/// As [`parse`].
pub(crate) fn parse_conditions(source: &str) -> Result<Vec<Condition<'_>>> {
    check_length(source.len())?;
    condition::alone(source)
}

/// Parses one query given as bytes.
///
/// # Errors
/// E070 when they are not UTF-8, else as [`parse`].
pub fn parse_bytes(source: &[u8]) -> Result<Statement<'_>> {
    check_length(source.len())?;
    match std::str::from_utf8(source) {
        Ok(text) => parse(text),
        Err(error) => {
            let message = format!("byte {} is not UTF-8", error.valid_up_to());
            Err(Error::new(ErrorKind::InvalidUtf8, message))
        }
    }
}

fn check_length(bytes: usize) -> Result<()> {
    if bytes <= limits::QUERY_BYTES {
        return Ok(());
    }
    let message = format!("a query is at most {} bytes", limits::QUERY_BYTES);
    Err(Error::new(ErrorKind::QueryTooLong, message))
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
