//! A query as it was sent, in text or JSON, and the position of its errors in that form.

use crate::ast::{Statement, StatementType};
use crate::error::{Error, Result};
use crate::json::{self, TranslatedQuery};
use crate::limits;
use crate::parse::{self, RefusedEntry};
use crate::print;
use crate::scan::{SyntaxKind, scan};
use crate::span::Span;
use crate::tier::{Tier, tier_of};

/// One query: CAL in text, or in JSON if it starts with a brace.
///
/// It owns the text that a statement is parsed from, so that a [`Statement`] can borrow it in either form.
///
/// ```
/// let json = r#"{"cal_version": 1, "statement": "recall", "grain_type": "beliefs", "recent": 5}"#;
/// let source = grainstore_cal::QuerySource::read(json)?;
/// let statement = source.statement()?;
/// assert_eq!(statement.to_string(), "RECALL beliefs RECENT 5");
/// assert_eq!(statement.to_json(), json.replace(": ", ":").replace(", ", ","));
/// # Ok::<(), grainstore_cal::Error>(())
/// ```
#[derive(Debug)]
pub struct QuerySource<'a> {
    pub(crate) given: &'a str,
    /// The text form of a query in JSON.
    translated: Option<TranslatedQuery>,
}

/// Identification of a query without its text, taken from its [`QuerySource`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryIdentity {
    /// The type of statement.
    pub statement_type: StatementType,
    /// The tier it runs in.
    pub tier: u8,
    /// `sha256:` and the SHA-256 of its normal form, parameters unbound.
    pub query_hash: String,
}

impl<'a> QuerySource<'a> {
    /// Reads a query without suggesting corrected statements in errors.
    pub(crate) fn read_without_suggestion(given: &'a str) -> Result<Self> {
        if json::is_json(given) {
            return Ok(Self { given, translated: Some(json::translate(given)?) });
        }
        parse::check_length(given).map_err(|error| error.locate(given))?;
        Ok(Self { given, translated: None })
    }

    /// Reads a query given as bytes.
    ///
    /// # Errors
    /// E070 if they are not UTF-8, else those of [`QuerySource::read`].
    pub fn read_bytes(given: &'a [u8]) -> Result<Self> {
        Self::read_without_suggestion(parse::utf8(given, limits::MAX_JSON_BYTES)?)
    }

    /// Returns the query in text: as given, or as its JSON is written in text.
    #[must_use]
    pub fn text(&self) -> &str {
        self.translated.as_ref().map_or(self.given, |spelled| &spelled.text)
    }

    /// Parses the query without suggesting corrected statements in errors.
    pub(crate) fn statement_without_suggestion(&self) -> Result<Statement<'_>> {
        parse::parse_unlocated(self.text()).map_err(|error| self.locate(error))
    }

    /// Positions an error about the value bound to the parameter `name` at the first use of that parameter
    /// in the query; returns it unchanged if the query does not use it.
    #[must_use]
    pub fn at_parameter(&self, error: Error, name: &str) -> Error {
        let name = name.strip_prefix('$').unwrap_or(name);
        let text = self.text();
        let named = scan(text).into_iter().find(|piece| {
            let text = text.get(piece.range.clone()).and_then(|text| text.strip_prefix('$'));
            piece.kind == SyntaxKind::Parameter && text == Some(name)
        });
        match named {
            Some(piece) => self.locate(error.at(Span::new(piece.range.start, piece.range.end))),
            None => error,
        }
    }

    /// Returns its identification, as `_cal` of an answer has it: statement type, the tier it runs in if it
    /// may go up to `asked`, and its `query_hash`.
    ///
    /// # Errors
    /// Those of [`QuerySource::statement`], except errors that stay in a slot of a BATCH.
    pub fn identity(&self, asked: Tier) -> Result<QueryIdentity> {
        let (statement, refused) = self.statement_for_execution()?;
        Ok(QueryIdentity {
            statement_type: statement.statement_type(),
            tier: tier_of(&statement, asked),
            query_hash: print::query_hash(&statement, &refused),
        })
    }

    /// Parses the query for execution; see `parse::query_for_execution`.
    pub(crate) fn statement_for_execution(&self) -> Result<(Statement<'_>, Vec<RefusedEntry<'_>>)> {
        parse::parse_for_execution(self.text()).map_err(|error| self.locate(error))
    }

    /// Positions an error in the form that was given.
    pub(crate) fn locate(&self, error: Error) -> Error {
        match &self.translated {
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
            let error = QuerySource::read(query).unwrap().at_parameter(refused.clone(), "who");
            let covered = error.position().and_then(|at| query.get(at.start..at.end));
            assert_eq!((covered, error.pointer()), (place, pointer), "{query}");
            assert_eq!(error.code(), "CAL-E071");
        }
    }
}
