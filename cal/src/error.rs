//! The one error type of the crate, in the shape of spec section 7.
//!
//! An error carries byte offsets while it travels and learns line and column at the end, from the
//! source. This module knows neither grammar nor memory.

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;

use crate::codes::ErrorKind;
use crate::span::Span;

/// Results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of CAL: stable code, message, place, and what to do.
///
/// Serialises as the inner object of spec section 7; [`ErrorEnvelope`] adds the outer one.
#[derive(Debug, Clone, PartialEq)]
pub struct Error(Box<Detail>);

/// Where in the query it happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Position {
    /// First byte, from 0.
    pub start: usize,
    /// Byte after the last.
    pub end: usize,
    /// Line of the first byte, from 1.
    pub line: usize,
    /// Column of the first byte in characters, from 1.
    pub col: usize,
}

/// `{"error": {...}}`, the answer of a request that failed.
#[derive(Debug, Serialize)]
pub struct ErrorEnvelope<'e> {
    /// The error itself.
    pub error: &'e Error,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Detail {
    #[serde(skip)]
    kind: ErrorKind,
    code: Cow<'static, str>,
    message: String,
    #[serde(skip)]
    span: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<Position>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pointer: Option<String>,
    suggestion: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    example: Option<Cow<'static, str>>,
    /// Whether the example is the statement that was refused, mended.
    #[serde(skip)]
    mended: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    valid_values: Vec<Cow<'static, str>>,
}

impl Error {
    /// An error without a place; the suggestion is the general advice of the code.
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Detail {
            kind,
            code: Cow::Borrowed(kind.code()),
            message: message.into(),
            span: None,
            position: None,
            pointer: None,
            suggestion: kind.advice().to_owned(),
            example: None,
            mended: false,
            valid_values: Vec::new(),
        }))
    }

    /// A refusal of the memory, under the memory's own code.
    pub(crate) fn memory(code: Cow<'static, str>, message: String, hint: String) -> Self {
        let mut error = Self::new(ErrorKind::Memory, message);
        error.0.code = code;
        if !hint.is_empty() {
            error.0.suggestion = hint;
        }
        error
    }

    /// The same error at a place, unless it has one already.
    #[must_use]
    pub(crate) fn at(mut self, span: Span) -> Self {
        self.0.span.get_or_insert(span);
        self
    }

    /// The same error at a place, unless it has one or is the memory's, which knows of no query.
    #[must_use]
    pub(crate) fn within(self, span: Span) -> Self {
        if self.0.kind == ErrorKind::Memory { self } else { self.at(span) }
    }

    /// The same error with a better suggestion.
    #[must_use]
    pub(crate) fn suggest(mut self, suggestion: impl Into<String>) -> Self {
        self.0.suggestion = suggestion.into();
        self
    }

    /// The same error under the words of a host that knows why, and what to do.
    #[must_use]
    pub fn because(mut self, message: impl Into<String>, suggestion: impl Into<String>) -> Self {
        self.0.message = message.into();
        self.suggest(suggestion)
    }

    /// The same error with a query that works.
    #[must_use]
    pub(crate) fn example(mut self, example: &'static str) -> Self {
        self.0.example = Some(Cow::Borrowed(example));
        self
    }

    /// The same error with the statement that was probably meant.
    #[must_use]
    pub(crate) fn correct(mut self, statement: String) -> Self {
        self.0.example = Some(Cow::Owned(statement));
        self.0.mended = true;
        self
    }

    /// Whether its example is the refused statement, mended.
    pub(crate) fn is_mended(&self) -> bool {
        self.0.mended
    }

    /// The same error with the values that would have been accepted.
    #[must_use]
    pub(crate) fn valid<V: Into<Cow<'static, str>>>(
        mut self,
        values: impl IntoIterator<Item = V>,
    ) -> Self {
        self.0.valid_values = values.into_iter().map(Into::into).collect();
        self
    }

    /// The same error with line and column counted in `source`.
    #[must_use]
    pub(crate) fn locate(mut self, source: &str) -> Self {
        self.0.position = self.0.span.map(|span| position(source, span));
        self
    }

    /// The same error where `place` says its place is; without one where it says none.
    #[must_use]
    pub(crate) fn moved(mut self, place: impl FnOnce(Span) -> Option<Span>) -> Self {
        self.0.span = self.0.span.and_then(place);
        self
    }

    /// The same error with the JSON Pointer of its place.
    #[must_use]
    pub(crate) fn pointing(mut self, pointer: String) -> Self {
        self.0.pointer = Some(pointer);
        self
    }

    /// Where it happened, in bytes of what was parsed.
    pub(crate) fn span(&self) -> Option<Span> {
        self.0.span
    }

    /// What went wrong.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The stable code: `CAL-E...`, or the memory's own `ERR_...`.
    #[must_use]
    pub fn code(&self) -> &str {
        &self.0.code
    }

    /// Where it happened, before lines were counted.
    pub(crate) fn place(&self) -> Option<Span> {
        self.0.span
    }

    /// What happened, for a person.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Where it happened, if it has a place in the query.
    #[must_use]
    pub fn position(&self) -> Option<Position> {
        self.0.position
    }

    /// The JSON Pointer (RFC 6901) of the value it is about, for a query in JSON.
    #[must_use]
    pub fn pointer(&self) -> Option<&str> {
        self.0.pointer.as_deref()
    }

    /// What to do about it.
    #[must_use]
    pub fn suggestion(&self) -> &str {
        &self.0.suggestion
    }

    /// A query that works, where one helps: the refused one as it was probably meant, where that can be told.
    #[must_use]
    pub fn example_query(&self) -> Option<&str> {
        self.0.example.as_deref()
    }

    /// The values that would have been accepted; empty where they are not a list.
    #[must_use]
    pub fn valid_values(&self) -> &[Cow<'static, str>] {
        &self.0.valid_values
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code(), self.message())
    }
}

impl std::error::Error for Error {}

impl Serialize for Error {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

fn position(source: &str, span: Span) -> Position {
    let (start, end) = (span.start(), span.end());
    let before = source.get(..start).unwrap_or(source);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let col = before.get(line_start..).unwrap_or("").chars().count() + 1;
    Position { start, end, line, col }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_from_one_and_columns_in_characters() {
        let source = "ab\ncé x";
        let error = Error::new(ErrorKind::UnexpectedToken, "m").at(Span::new(7, 8)).locate(source);
        let expected = Position { start: 7, end: 8, line: 2, col: 4 };
        assert_eq!(error.position(), Some(expected));
    }

    #[test]
    fn an_error_serialises_in_the_shape_of_the_specification() {
        let error = Error::new(ErrorKind::UnknownType, "no such type")
            .at(Span::new(0, 2))
            .valid(["belief"])
            .example("RECALL beliefs")
            .locate("xy");
        let json = serde_json::to_value(ErrorEnvelope { error: &error }).unwrap();
        let expected = serde_json::json!({"error": {
            "code": "CAL-E003", "message": "no such type",
            "position": {"start": 0, "end": 2, "line": 1, "col": 1},
            "suggestion": "use one of the ten grain types",
            "example": "RECALL beliefs", "valid_values": ["belief"],
        }});
        assert_eq!(json, expected);
    }
}
