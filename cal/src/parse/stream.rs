//! `stream`: option names of STREAM take precedence over other meanings of the word.

use super::cursor::TokenCursor;
use super::value;
use crate::ast::{StreamClause, StreamOption};
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::lex::{Punctuation, TokenKind};
use crate::span::Spanned;
use crate::suggest;
use crate::words::{Keyword, WordClass};

/// `stream := STREAM ("{" streamed,+ "}")?`.
pub(super) fn stream<'a>(c: &mut TokenCursor<'a>) -> Result<StreamClause<'a>> {
    c.expect(Keyword::Stream)?;
    let mut options = Vec::new();
    if c.eat_mark(Punctuation::LeftBrace)? {
        options.push(streamed(c)?);
        while c.eat_mark(Punctuation::Comma)? {
            options.push(streamed(c)?);
        }
        c.expect_mark(Punctuation::RightBrace, "}")?;
    }
    Ok(options)
}

/// `streamed := progress | budget | chunks | all | chunk_size "=" INT`.
fn streamed<'a>(c: &mut TokenCursor<'a>) -> Result<Spanned<StreamOption<'a>>> {
    let token = c.peek();
    if !matches!(token.kind, TokenKind::Word(word) if word != WordClass::Forbidden) {
        return Err(c.unexpected(&StreamOption::NAMES));
    }
    let text = c.text(token);
    let option = match text.to_ascii_lowercase().as_str() {
        "progress" => StreamOption::Progress,
        "budget" => StreamOption::Budget,
        "chunks" => StreamOption::Chunks,
        "all" => StreamOption::All,
        "chunk_size" => {
            c.bump()?;
            c.expect_mark(Punctuation::Equal, "=")?;
            let size = value::count_arg(c)?.node;
            return Ok(Spanned::new(StreamOption::ChunkSize(size), c.span_from(token.span)));
        }
        _ => return Err(unknown(text).at(token.span)),
    };
    c.bump()?;
    Ok(Spanned::new(option, token.span))
}

/// Returns E077 for an unknown option of STREAM.
pub(crate) fn unknown(name: &str) -> Error {
    let known = StreamOption::NAMES.into_iter();
    let advice = suggest::did_you_mean(name, known.clone(), "use one of the listed options");
    let message = format!("unknown stream option {name:?}");
    Error::new(ErrorKind::UnknownStreamOption, message).suggest(advice).valid(known)
}
