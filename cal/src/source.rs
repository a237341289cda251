//! A query as it was sent, in either wire form, and where its errors stand in it.

use crate::ast::{Statement, StatementType};
use crate::error::{Error, Result};
use crate::exec::{Tier, tier_of};
use crate::json::{self, Spelled};
use crate::limits;
use crate::mend;
use crate::parse::{self, Refused};
use crate::print;
use crate::scan::{PieceKind, scan};
use crate::span::Span;

/// One query: CAL in text, or in JSON where it starts with a brace.
///
/// It keeps what a statement is read from, so that a [`Statement`] need own no text whichever form it
/// came in.
///
/// ```
/// let json = r#"{"cal_version": 1, "statement": "recall", "grain_type": "beliefs", "recent": 5}"#;
/// let source = grainstore_cal::Source::read(json)?;
/// let statement = source.statement()?;
/// assert_eq!(statement.to_string(), "RECALL beliefs RECENT 5");
/// assert_eq!(statement.to_json(), json.replace(": ", ":").replace(", ", ","));
/// # Ok::<(), grainstore_cal::Error>(())
/// ```
#[derive(Debug)]
pub struct Source<'a> {
    given: &'a str,
    /// The text a query in JSON stands for.
    spelled: Option<Spelled>,
}

/// A query without its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Which statement it is.
    pub statement_type: StatementType,
    /// The tier it runs in.
    pub tier: u8,
    /// `sha256:` and the SHA-256 of its normal form, parameters unbound.
    pub query_hash: String,
}

impl<'a> Source<'a> {
    /// Takes a query in.
    ///
    /// # Errors
    /// For text E001 over 8,192 bytes; for JSON what keeps it from being CAL: E002 for keys that are
    /// unknown, missing or twice there, and the codes of its values.
    pub fn read(given: &'a str) -> Result<Self> {
        Self::plain_read(given).map_err(|error| mend::mended(error, given))
    }

    /// The same, whose errors suggest no other statement.
    pub(crate) fn plain_read(given: &'a str) -> Result<Self> {
        if json::is_json(given) {
            return Ok(Self { given, spelled: Some(json::spell(given)?) });
        }
        parse::check_length(given).map_err(|error| error.locate(given))?;
        Ok(Self { given, spelled: None })
    }

    /// The same for a query given as bytes.
    ///
    /// # Errors
    /// E070 when they are not UTF-8, else as [`Source::read`].
    pub fn read_bytes(given: &'a [u8]) -> Result<Self> {
        Self::plain_read(parse::utf8(given, limits::JSON_BYTES)?)
    }

    /// The query in text: as given, or as its JSON is spelled.
    #[must_use]
    pub fn text(&self) -> &str {
        self.spelled.as_ref().map_or(self.given, |spelled| &spelled.text)
    }

    /// Parses it.
    ///
    /// # Errors
    /// As [`parse`](crate::parse()), placed in the form that was given; a query in JSON is measured
    /// as text.
    pub fn statement(&self) -> Result<Statement<'_>> {
        self.plain_statement().map_err(|error| self.mended(error))
    }

    /// The same, whose errors suggest no other statement.
    pub(crate) fn plain_statement(&self) -> Result<Statement<'_>> {
        parse::unplaced(self.text()).map_err(|error| self.locate(error))
    }

    /// The same error with the statement that was probably meant.
    pub(crate) fn mended(&self, error: Error) -> Error {
        mend::mended(error, self.given)
    }

    /// The same error, of the value that the parameter `name` was to be bound to, at the first place where
    /// the query names it; as it is where the query does not.
    #[must_use]
    pub fn at_parameter(&self, error: Error, name: &str) -> Error {
        let name = name.strip_prefix('$').unwrap_or(name);
        let text = self.text();
        let named = scan(text).into_iter().find(|piece| {
            let text = text.get(piece.range.clone()).and_then(|text| text.strip_prefix('$'));
            piece.kind == PieceKind::Parameter && text == Some(name)
        });
        match named {
            Some(piece) => self.locate(error.at(Span::new(piece.range.start, piece.range.end))),
            None => error,
        }
    }

    /// What tells of it without its text, as an answer's `_cal` does: which statement it is, the tier it runs
    /// in where it may go as far as `asked`, and its `query_hash`.
    ///
    /// # Errors
    /// As [`Source::statement`], but for what stays in a slot of a BATCH.
    pub fn identity(&self, asked: Tier) -> Result<Identity> {
        let (statement, refused) = self.forgiving()?;
        Ok(Identity {
            statement_type: statement.statement_type(),
            tier: tier_of(&statement, asked),
            query_hash: print::query_hash(&statement, &refused),
        })
    }

    /// Parses it to be run; see [`parse::forgiving`].
    pub(crate) fn forgiving(&self) -> Result<(Statement<'_>, Vec<Refused<'_>>)> {
        parse::forgiving(self.text()).map_err(|error| self.locate(error))
    }

    /// The same error with its place in the form that was given.
    pub(crate) fn locate(&self, error: Error) -> Error {
        match &self.spelled {
            Some(spelled) => json::locate(error, spelled, self.given),
            None => error.locate(self.given),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::params::Params;

    #[test]
    fn an_error_of_a_parameter_stands_where_the_query_names_it() {
        let refused = Params::new().bind("$who", &json!("a\u{202E}b")).unwrap_err();
        for (query, place, pointer) in [
            ("RECALL -- $who\n ABOUT $whom LIKE $who", Some("$who"), None),
            (
                r#"{"statement": "recall", "about": {"param": "who"}}"#,
                Some(r#"{"param": "who"}"#),
                Some("/about"),
            ),
            ("RECALL", None, None),
        ] {
            let error = Source::read(query).unwrap().at_parameter(refused.clone(), "who");
            let covered = error.position().and_then(|at| query.get(at.start..at.end));
            assert_eq!((covered, error.pointer()), (place, pointer), "{query}");
            assert_eq!(error.code(), "CAL-E071");
        }
    }
}
