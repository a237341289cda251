//! Splits any text, valid CAL or not, into classified spans: for highlighting and for finding the context
//! of a cursor.
//!
//! It uses the parser's lexer, so colours and errors never disagree. Text that is no token is a span as
//! well: scanning never fails.

use std::ops::Range;

use crate::codes::ErrorKind;
use crate::error::Error;
use crate::lex::{Lexer, Punctuation, TokenKind};
use crate::words::WordClass;

/// A classified span of a query, found by [`scan`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxSpan {
    /// Its byte range.
    pub range: Range<usize>,
    /// Its class.
    pub kind: SyntaxKind,
}

/// The class of a span that [`scan`] finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SyntaxKind {
    /// A keyword of the grammar.
    Keyword,
    /// Any other word: a field, a type, a label, an option.
    Name,
    /// A word that CAL excludes, such as DELETE.
    Forbidden,
    /// A string literal.
    Text,
    /// A string literal without its closing quote.
    UnterminatedText,
    /// A number.
    Number,
    /// A content address.
    Hash,
    /// `$name`.
    Parameter,
    /// Punctuation or an operator.
    Punctuation,
    /// A semicolon.
    Semicolon,
    /// A comment.
    Comment,
    /// The text of a template section, between its braces, closed or not.
    Template,
    /// Text that is no token.
    Invalid,
}

/// Returns the spans of a text, in order; whitespace is left out.
///
/// ```
/// use grainstore_cal::{SyntaxKind, scan};
///
/// let source = "RECALL goals -- mine";
/// let spans = scan(source);
/// let keyword = spans.first().map(|span| (&source[span.range.clone()], span.kind));
/// assert_eq!(keyword, Some(("RECALL", SyntaxKind::Keyword)));
/// assert_eq!(spans.last().map(|span| span.kind), Some(SyntaxKind::Comment));
/// ```
#[must_use]
pub fn scan(source: &str) -> Vec<SyntaxSpan> {
    let mut pieces = Vec::new();
    let mut from = 0;
    let mut lexer = Lexer::new(source);
    while from < source.len() {
        let (token, end) = match lexer.next() {
            Ok(token) if token.kind == TokenKind::End => (None, source.len()),
            Ok(token) => (Some((token.span.start(), kind(token.kind))), token.span.end()),
            Err(error) => {
                let (start, end) = match error.place() {
                    // The span is the brace before the text.
                    Some(at) if error.kind() == ErrorKind::TemplateSyntax => {
                        (at.end(), source.len())
                    }
                    Some(at) => (at.start(), at.end()),
                    None => (from, from),
                };
                let end = end.max(start + 1);
                let end = (end..).find(|end| source.is_char_boundary(*end)).unwrap_or(source.len());
                lexer = Lexer::at(source, end.min(source.len()));
                (Some((start, invalid_kind(&error, source.get(start..)))), end)
            }
        };
        let end = end.min(source.len());
        let blank = token.map_or(end, |(start, _)| start);
        // The text of a template holds no comments.
        if token.is_none_or(|(_, kind)| kind != SyntaxKind::Template) {
            comments(source.get(from..blank).unwrap_or_default(), from, &mut pieces);
        }
        if let Some((start, kind)) = token.filter(|(start, _)| *start < end) {
            pieces.push(SyntaxSpan { range: start..end, kind });
        }
        from = end;
    }
    pieces
}

/// Returns the class of text that the lexer rejects.
fn invalid_kind(error: &Error, rest: Option<&str>) -> SyntaxKind {
    match error.kind() {
        ErrorKind::TemplateSyntax => SyntaxKind::Template,
        _ if rest.is_some_and(|text| text.starts_with('"')) => SyntaxKind::UnterminatedText,
        _ => SyntaxKind::Invalid,
    }
}

/// Adds the comments between two tokens.
fn comments(between: &str, at: usize, pieces: &mut Vec<SyntaxSpan>) {
    let mut from = at;
    for line in between.split_inclusive('\n') {
        if let Some(dashes) = line.find("--") {
            let range = from + dashes..from + line.trim_end().len();
            pieces.push(SyntaxSpan { range, kind: SyntaxKind::Comment });
        }
        from += line.len();
    }
}

fn kind(kind: TokenKind) -> SyntaxKind {
    match kind {
        TokenKind::Word(WordClass::Keyword(_)) => SyntaxKind::Keyword,
        TokenKind::Word(WordClass::Forbidden) => SyntaxKind::Forbidden,
        TokenKind::Word(WordClass::Name | WordClass::Reserved) => SyntaxKind::Name,
        TokenKind::Str { .. } => SyntaxKind::Text,
        TokenKind::Number => SyntaxKind::Number,
        TokenKind::Hash => SyntaxKind::Hash,
        TokenKind::Param => SyntaxKind::Parameter,
        TokenKind::RawText => SyntaxKind::Template,
        TokenKind::Punctuation(Punctuation::Semicolon) => SyntaxKind::Semicolon,
        TokenKind::Punctuation(_) | TokenKind::End => SyntaxKind::Punctuation,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(source: &str) -> Vec<(&str, SyntaxKind)> {
        let pieces = scan(source).into_iter();
        pieces.map(|piece| (source.get(piece.range).unwrap_or_default(), piece.kind)).collect()
    }

    #[test]
    fn pieces_are_what_the_lexer_reads() {
        use SyntaxKind::*;
        let source = "-- all\nRECALL beliefs WHERE x = \"a;b\" LIMIT $n; DELETE 0.5 -- end";
        let expected = [
            ("-- all", Comment),
            ("RECALL", Keyword),
            ("beliefs", Name),
            ("WHERE", Keyword),
            ("x", Name),
            ("=", Punctuation),
            ("\"a;b\"", Text),
            ("LIMIT", Keyword),
            ("$n", Parameter),
            (";", Semicolon),
            ("DELETE", Forbidden),
            ("0.5", Number),
            ("-- end", Comment),
        ];
        assert_eq!(shown(source), expected);
    }

    #[test]
    fn the_text_of_a_template_is_one_piece() {
        use SyntaxKind::*;
        let source = "DEFINE TEMPLATE header { HEADER {} ELEMENT { -- {{x}}; DROP \" } } -- end";
        let expected = [
            ("DEFINE", Keyword),
            ("TEMPLATE", Keyword),
            ("header", Keyword),
            ("{", Punctuation),
            ("HEADER", Keyword),
            ("{", Punctuation),
            ("}", Punctuation),
            ("ELEMENT", Keyword),
            ("{", Punctuation),
            (" -- {{x}}; DROP \" ", Template),
            ("}", Punctuation),
            ("}", Punctuation),
            ("-- end", Comment),
        ];
        assert_eq!(shown(source), expected);
        assert_eq!(shown("FOOTER { a; é")[2..], [(" a; é", Template)]);
    }

    #[test]
    fn what_is_no_token_is_a_piece_and_scanning_goes_on() {
        use SyntaxKind::*;
        assert_eq!(shown("a é ' b"), [("a", Name), ("é", Invalid), ("'", Invalid), ("b", Name)]);
        assert_eq!(shown("x \"open é"), [("x", Name), ("\"open é", UnterminatedText)]);
        assert_eq!(shown("sha256:XY 1e5 "), [("sha256:XY", Invalid), ("1e5", Invalid)]);
        assert_eq!(shown(" \n"), []);
    }

    proptest! {
        #[test]
        fn any_text_is_scanned_in_order_and_to_its_end(source in "(?s).{0,200}") {
            let mut end = 0;
            for piece in scan(&source) {
                prop_assert!(piece.range.start >= end && piece.range.end > piece.range.start);
                prop_assert!(source.get(piece.range.clone()).is_some());
                end = piece.range.end;
            }
            prop_assert!(end <= source.len());
        }
    }
}
