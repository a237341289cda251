//! Reading of queries whose errors suggest the statement that was probably meant.

use super::with_correction;
use crate::ast::Statement;
use crate::error::{Error, Result};
use crate::limits;
use crate::parse::{parse_unlocated, utf8};
use crate::source::QuerySource;

/// Parses one query in text; [`QuerySource`] takes JSON too.
///
/// ```
/// use grainstore_cal::StatementType;
///
/// let statement = grainstore_cal::parse("RECALL goals ABOUT \"budget\" LIMIT 3")?;
/// assert_eq!((statement.statement_type(), statement.tier()), (StatementType::Recall, 0));
/// let again = statement.to_string();
/// assert_eq!(grainstore_cal::parse(&again)?, statement);
/// # Ok::<(), grainstore_cal::Error>(())
/// ```
///
/// # Errors
/// The first syntax error, with its position: E001 over 8,192 bytes, E014 if there is no statement, E002
/// and the other parse codes of CAL appendix C.
pub fn parse(source: &str) -> Result<Statement<'_>> {
    parse_unlocated(source).map_err(|error| with_correction(error.locate(source), source))
}

/// Parses one query given as bytes, as [`parse`] does a text.
///
/// # Errors
/// E070 if they are not UTF-8, else those of [`parse`].
pub fn parse_bytes(source: &[u8]) -> Result<Statement<'_>> {
    parse(utf8(source, limits::MAX_QUERY_BYTES)?)
}

impl<'a> QuerySource<'a> {
    /// Reads a query.
    ///
    /// # Errors
    /// For text, E001 over 8,192 bytes. For JSON, E002 for unknown, missing or duplicate keys, and the
    /// codes of its values.
    pub fn read(given: &'a str) -> Result<Self> {
        Self::read_without_suggestion(given).map_err(|error| with_correction(error, given))
    }

    /// Parses the query.
    ///
    /// # Errors
    /// Those of [`parse`](crate::parse()), positioned in the form that was given; the length limit of a
    /// query in JSON applies to its text.
    pub fn statement(&self) -> Result<Statement<'_>> {
        self.statement_without_suggestion().map_err(|error| self.mended(error))
    }

    /// Adds the statement that was probably meant to an error.
    pub(crate) fn mended(&self, error: Error) -> Error {
        with_correction(error, self.given)
    }
}
