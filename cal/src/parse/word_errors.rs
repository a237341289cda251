//! Errors for words that are not allowed at their position: reserved words, keywords of other positions or
//! without a production, and forbidden words.

use crate::codes::ErrorKind;
use crate::error::Error;
use crate::lex::{Token, TokenKind};
use crate::span::Span;
use crate::words::{Keyword, WordClass};

/// Keywords that belong elsewhere, with advice.
const MISPLACED_KEYWORDS: [(Keyword, &str); 6] = [
    (Keyword::Union, "put both queries in parentheses: (RECALL ...) UNION (RECALL ...)"),
    (Keyword::Intersect, "put both queries in parentheses: (RECALL ...) INTERSECT (RECALL ...)"),
    (Keyword::Except, "put both queries in parentheses: (RECALL ...) EXCEPT (RECALL ...)"),
    (Keyword::Let, "a LET stands before the statement and ends with ;"),
    (Keyword::Explain, "EXPLAIN stands before the statement"),
    (Keyword::Define, "DEFINE TEMPLATE is a request by itself: nothing explains it or holds it"),
];

/// Keywords without a production, with advice (ruling 8).
const NO_PRODUCTION: [(Keyword, &str); 4] = [
    (
        Keyword::Or,
        "use IN (...) for several values of one field, or a set operation: (RECALL ...) UNION (RECALL ...)",
    ),
    (Keyword::Not, "use != or EXCLUDE"),
    (Keyword::Null, "a grain without a field never matches a condition on it"),
    (Keyword::Undefine, "templates stay; choose another name"),
];

/// Returns the error for `name`, a part of CAL/1 that this version does not support.
pub(crate) fn unsupported(name: &str, span: Span, instead: &str) -> Error {
    let message = format!("{name} is CAL/1 but not in this version");
    Error::new(ErrorKind::UnexpectedToken, message).at(span).suggest(instead)
}

/// Returns the error specific to a word, if it has one: forbidden, reserved, without a production, or
/// belonging elsewhere. `text` is the word as written.
pub(super) fn word_error(token: Token, text: &str) -> Option<Error> {
    let error = |message: String| Error::new(ErrorKind::UnexpectedToken, message).at(token.span);
    match token.kind {
        TokenKind::Word(WordClass::Forbidden) => {
            let message = format!("\"{text}\" is not a word of CAL");
            let advice = "CAL reads, assembles and adds; put the word in quotes if it is data";
            Some(error(message).suggest(advice))
        }
        TokenKind::Word(WordClass::Reserved) => {
            let message = format!("\"{text}\" is reserved for later versions of CAL");
            Some(error(message).suggest("choose another name, or put it in quotes if it is data"))
        }
        TokenKind::Word(WordClass::Keyword(keyword)) => keyword_alone(keyword, token.span),
        _ => None,
    }
}

fn keyword_alone(keyword: Keyword, span: Span) -> Option<Error> {
    if let Some((_, instead)) = NO_PRODUCTION.iter().find(|(known, _)| *known == keyword) {
        let message = format!("{} has no meaning in CAL/1", keyword.text());
        return Some(Error::new(ErrorKind::UnexpectedToken, message).at(span).suggest(*instead));
    }
    if let Some((_, where_to)) = MISPLACED_KEYWORDS.iter().find(|(known, _)| *known == keyword) {
        let message = format!("unexpected \"{}\"", keyword.text());
        return Some(Error::new(ErrorKind::UnexpectedToken, message).at(span).suggest(*where_to));
    }
    None
}
