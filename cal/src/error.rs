//! The error type of the crate, in the shape of CAL 22.1.
//!
//! An error carries byte offsets while it is passed up; line and column are computed at the end, from the
//! source. This module knows neither the grammar nor the memory.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::codes::ErrorKind;
use crate::span::Span;

/// Result type of this crate, with its [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of CAL: stable code, message, position and suggestion.
///
/// Serialises as the inner object of CAL 22.1; [`ErrorEnvelope`] adds the outer one.
///
/// ```
/// if let Err(error) = grainstore_cal::parse("RECALL beleifs | LIMIT 5") {
///     assert_eq!((error.code(), error.suggestion()), ("CAL-E003", "Did you mean \"beliefs\"?"));
///     assert_eq!(error.position().map(|at| (at.line, at.col)), Some((1, 8)));
///     assert_eq!(error.example_query(), Some("RECALL beliefs | LIMIT 5"));
///     assert!(error.valid_values().contains(&"goals".into()));
/// }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Error(Box<ErrorDetail>);

/// Position of an [`Error`] in the query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// First byte, from 0.
    pub start: usize,
    /// End offset in bytes, exclusive.
    pub end: usize,
    /// Line of the first byte, from 1.
    pub line: usize,
    /// Column of the first byte in characters, from 1.
    pub col: usize,
}

/// `{"error": {...}}`, the answer to a request that failed with an [`Error`].
#[derive(Debug, Serialize)]
pub struct ErrorEnvelope<'e> {
    /// The error.
    pub error: &'e Error,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct ErrorDetail {
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
    /// True if `example` is the refused statement, corrected.
    #[serde(skip)]
    mended: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    valid_values: Vec<Cow<'static, str>>,
}

impl Error {
    /// Returns an error without a position; its suggestion is the general advice for the code.
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(ErrorDetail {
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

    /// Returns a refusal by the memory, under the memory's own code.
    pub(crate) fn memory(code: Cow<'static, str>, message: String, hint: String) -> Self {
        let mut error = Self::new(ErrorKind::Memory, message);
        error.0.code = code;
        if !hint.is_empty() {
            error.0.suggestion = hint;
        }
        error
    }

    /// Sets the span, unless one is set already.
    #[must_use]
    pub(crate) fn at(mut self, span: Span) -> Self {
        self.0.span.get_or_insert(span);
        self
    }

    /// Sets the span, unless one is set already or the error is the memory's, which knows no query.
    #[must_use]
    pub(crate) fn at_unless_memory(self, span: Span) -> Self {
        if self.0.kind == ErrorKind::Memory { self } else { self.at(span) }
    }

    /// Replaces the suggestion.
    #[must_use]
    pub(crate) fn suggest(mut self, suggestion: impl Into<String>) -> Self {
        self.0.suggestion = suggestion.into();
        self
    }

    /// Replaces message and suggestion with those of a host that knows the cause and the remedy.
    #[must_use]
    pub fn with_message(
        mut self,
        message: impl Into<String>,
        suggestion: impl Into<String>,
    ) -> Self {
        self.0.message = message.into();
        self.suggest(suggestion)
    }

    /// Sets an example query that works.
    #[must_use]
    pub(crate) fn example(mut self, example: &'static str) -> Self {
        self.0.example = Some(Cow::Borrowed(example));
        self
    }

    /// Sets the statement that was probably meant as the example.
    #[must_use]
    pub(crate) fn with_correction(mut self, statement: String) -> Self {
        self.0.example = Some(Cow::Owned(statement));
        self.0.mended = true;
        self
    }

    /// Returns `true` if the example is the refused statement, corrected.
    pub(crate) fn is_corrected(&self) -> bool {
        self.0.mended
    }

    /// Sets the values that would have been accepted.
    #[must_use]
    pub(crate) fn valid<V: Into<Cow<'static, str>>>(
        mut self,
        values: impl IntoIterator<Item = V>,
    ) -> Self {
        self.0.valid_values = values.into_iter().map(Into::into).collect();
        self
    }

    /// Replaces the suggestion by the list of the valid values.
    pub(crate) fn suggest_valid(self) -> Self {
        let suggestion = match self.0.valid_values.as_slice() {
            [] => self.kind().advice().to_owned(),
            [one] => format!("expected {one}"),
            [most @ .., last] => format!("expected {} or {last}", most.join(", ")),
        };
        self.suggest(suggestion)
    }

    /// Computes line and column of the span in `source`.
    #[must_use]
    pub(crate) fn locate(mut self, source: &str) -> Self {
        self.0.position = self.0.span.map(|span| position(source, span));
        self
    }

    /// Maps the span through `place`, which may drop it.
    #[must_use]
    pub(crate) fn map_span(mut self, place: impl FnOnce(Span) -> Option<Span>) -> Self {
        self.0.span = self.0.span.and_then(place);
        self
    }

    /// Sets the JSON Pointer of the value the error is about.
    #[must_use]
    pub(crate) fn with_pointer(mut self, pointer: String) -> Self {
        self.0.pointer = Some(pointer);
        self
    }

    /// Returns the span in the text that was parsed.
    pub(crate) fn span(&self) -> Option<Span> {
        self.0.span
    }

    /// Returns the kind of error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the stable code: `CAL-E...`, or the memory's own `ERR_...`.
    #[must_use]
    pub fn code(&self) -> &str {
        &self.0.code
    }

    /// Returns the span, before line and column are computed.
    pub(crate) fn place(&self) -> Option<Span> {
        self.0.span
    }

    /// Returns a description for people.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the position, if the error has one in the query.
    #[must_use]
    pub fn position(&self) -> Option<Position> {
        self.0.position
    }

    /// Returns the JSON Pointer (RFC 6901) of the value the error is about, for a query in JSON.
    #[must_use]
    pub fn pointer(&self) -> Option<&str> {
        self.0.pointer.as_deref()
    }

    /// Returns advice on how to correct it.
    #[must_use]
    pub fn suggestion(&self) -> &str {
        &self.0.suggestion
    }

    /// Returns a query that works: the refused one, corrected, where the correction can be told; else an
    /// example or `None`.
    #[must_use]
    pub fn example_query(&self) -> Option<&str> {
        self.0.example.as_deref()
    }

    /// Returns the values that would have been accepted; empty if they cannot be listed.
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

/// Reads an error as it is [serialized](Serialize), of another process for instance. Members that it does not know are
/// passed over.
impl<'de> Deserialize<'de> for Error {
    fn deserialize<D: serde::Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Told {
            code: String,
            message: String,
            position: Option<Position>,
            pointer: Option<String>,
            suggestion: String,
            example: Option<String>,
            #[serde(default)]
            valid_values: Vec<String>,
        }
        let told = Told::deserialize(source)?;
        let kind = ErrorKind::ALL.iter().copied().find(|kind| kind.code() == told.code);
        let mut error = Self::new(kind.unwrap_or(ErrorKind::Memory), told.message);
        error.0.code = Cow::Owned(told.code);
        error.0.position = told.position;
        error.0.pointer = told.pointer;
        error.0.suggestion = told.suggestion;
        error.0.example = told.example.map(Cow::Owned);
        Ok(error.valid(told.valid_values))
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
