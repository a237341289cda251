//! Error recovery in a BATCH: an entry with an error gets that error as the answer of its slot (CAL 8.7),
//! and the other entries are parsed.

use grainstore_format::GrainType;

use super::TokenCursor;
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::lex::{Lexer, Punctuation, Token, TokenKind};
use crate::span::Spanned;
use crate::words::{Keyword, WordClass};

/// An entry of a BATCH that does not parse, while the others do; its slot holds the error.
#[derive(Debug, Clone)]
pub(crate) struct RefusedEntry<'a> {
    /// Its index among all entries.
    pub(crate) at: usize,
    pub(crate) label: Spanned<&'a str>,
    /// The entry as written.
    pub(crate) text: &'a str,
    pub(crate) error: Error,
}

/// A position to return to.
#[derive(Clone, Copy)]
pub(in crate::parse) struct Bookmark<'a> {
    lexer: Lexer<'a>,
    token: Token,
    end: usize,
    subqueries: usize,
    about: Option<GrainType>,
}

impl<'a> TokenCursor<'a> {
    /// Returns a cursor that collects errors within entries of a BATCH.
    pub(in crate::parse) fn with_recovery(source: &'a str) -> Result<Self> {
        Ok(Self { refused: Some(Vec::new()), ..Self::new(source)? })
    }

    /// Returns the refused entries so far.
    pub(in crate::parse) fn refused(&self) -> &[RefusedEntry<'a>] {
        self.refused.as_deref().unwrap_or_default()
    }

    /// Makes the first error refuse the query from here on.
    pub(in crate::parse) fn disable_recovery(&mut self) {
        self.refused = None;
    }

    /// Returns the current position.
    pub(in crate::parse) fn bookmark(&self) -> Bookmark<'a> {
        let Self { lexer, token, end, subqueries, grain_type: about, .. } = self;
        let (lexer, token, end) = (*lexer, *token, *end);
        Bookmark { lexer, token, end, subqueries: *subqueries, about: *about }
    }

    /// Records the entry that starts at the bookmark as refused, and continues after it.
    ///
    /// # Errors
    /// `error` itself if it refuses the whole query: recovery is off, or the end of the entry cannot be
    /// determined.
    pub(in crate::parse) fn recover_entry(
        &mut self,
        start: Bookmark<'a>,
        at: usize,
        label: Spanned<&'a str>,
        error: Error,
    ) -> Result<()> {
        self.also_expected.clear();
        if self.refused.is_none() || error.kind() == ErrorKind::TooMany {
            return Err(error);
        }
        (self.lexer, self.token) = (start.lexer, start.token);
        (self.end, self.subqueries, self.grain_type) = (start.end, start.subqueries, start.about);
        if !self.skip_entry().unwrap_or(false) {
            return Err(error);
        }
        let ends = self.token.span.start();
        let text = self.source.get(start.token.span.start()..ends).unwrap_or("").trim_end();
        self.refused.get_or_insert_default().push(RefusedEntry { at, label, text, error });
        Ok(())
    }

    /// Skips to the end of an entry: the comma before `word :`, or the closing brace. `false` if neither
    /// comes, or if the start of another entry comes first: it is then unknown which slots were intended,
    /// and none may be lost.
    fn skip_entry(&mut self) -> Result<bool> {
        let mut open = 0_usize;
        loop {
            match self.token.kind {
                TokenKind::End => return Ok(false),
                TokenKind::Punctuation(Punctuation::Semicolon) if open == 0 => return Ok(false),
                TokenKind::Word(_) if open == 0 && self.starts_misplaced_entry() => {
                    return Ok(false);
                }
                TokenKind::Punctuation(Punctuation::RightBrace) if open == 0 => return Ok(true),
                TokenKind::Punctuation(Punctuation::Comma)
                    if open == 0 && self.second_starts_part() =>
                {
                    return Ok(true);
                }
                TokenKind::Punctuation(
                    Punctuation::LeftParen | Punctuation::LeftBracket | Punctuation::LeftBrace,
                ) => open += 1,
                TokenKind::Punctuation(
                    Punctuation::RightParen | Punctuation::RightBracket | Punctuation::RightBrace,
                ) => {
                    let Some(less) = open.checked_sub(1) else { return Ok(false) };
                    open = less;
                }
                _ => {}
            }
            self.skip_token()?;
        }
    }

    /// Skips the next token, and malformed hashes and numbers, whose end is known.
    fn skip_token(&mut self) -> Result<()> {
        while let Err(error) = self.bump() {
            if !matches!(error.kind(), ErrorKind::BadHash | ErrorKind::BadNumber) {
                return Err(error);
            }
        }
        Ok(())
    }

    /// Returns `true` if `word : statement` or `word = statement` is here.
    fn starts_misplaced_entry(&self) -> bool {
        use Keyword::{Coalesce, Describe, Exists, History, Recall};
        let mut ahead = self.lexer;
        let is_sign = ahead.next().is_ok_and(|token| {
            matches!(token.kind, TokenKind::Punctuation(Punctuation::Colon | Punctuation::Equal))
        });
        let statement = [Recall, Exists, History, Describe, Coalesce];
        let starts = |kind| matches!(kind, TokenKind::Word(WordClass::Keyword(word)) if statement.contains(&word));
        is_sign && ahead.next().is_ok_and(|token| starts(token.kind))
    }

    /// Returns `true` if `word :` follows the next token.
    fn second_starts_part(&self) -> bool {
        let mut ahead = self.lexer;
        let is_word = ahead.next().is_ok_and(|token| matches!(token.kind, TokenKind::Word(_)));
        is_word
            && ahead
                .next()
                .is_ok_and(|token| token.kind == TokenKind::Punctuation(Punctuation::Colon))
    }
}
