//! The lexer: words, strings, numbers, hashes, parameters and punctuation (CAL 3).
//!
//! It returns byte ranges and allocates nothing. `text` decodes string literals; the parser decides the
//! meaning of words.

use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::span::Span;
use crate::words::{self, Keyword, WordClass};

/// A token and its span.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) span: Span,
}

/// The kinds of token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// A letter followed by letters, digits and `_`.
    Word(WordClass),
    /// A string, span with quotes; `plain` if it is ASCII without a backslash.
    Str { plain: bool },
    /// Digits with an optional minus and fraction.
    Number,
    /// `sha256:` and 8 to 64 lowercase hex digits.
    Hash,
    /// `$name`, span with the dollar.
    Param,
    /// Punctuation or an operator.
    Punctuation(Punctuation),
    /// The text between the braces of a template section, unprocessed; it may be empty.
    RawText,
    /// The end of the query.
    End,
}

/// Punctuation and operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Punctuation {
    LeftParen,
    RightParen,
    LeftBracket,
    RightBracket,
    LeftBrace,
    RightBrace,
    Comma,
    Colon,
    Semicolon,
    Pipe,
    Slash,
    Equal,
    NotEqual,
    GreaterEqual,
    LessEqual,
    Greater,
    Less,
}

/// The state of the lexer; a copy of it looks ahead.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lexer<'a> {
    source: &'a str,
    at: usize,
    before: LexContext,
}

/// The context that earlier tokens give the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LexContext {
    Default,
    /// After a keyword that is followed by a name: `TEMPLATE header { ... }`.
    NameExpected,
    /// After the keyword of a template section.
    Section,
    /// After the opening brace of a section: raw text follows.
    RawTextExpected,
}

impl<'a> Lexer<'a> {
    /// Returns a lexer at the start of `source`.
    pub(crate) fn new(source: &'a str) -> Self {
        Self::at(source, 0)
    }

    /// Returns a lexer at byte `at` of `source`.
    pub(crate) fn at(source: &'a str, at: usize) -> Self {
        Self { source, at, before: LexContext::Default }
    }

    /// Returns the next token; at the end, `End` every time.
    ///
    /// # Errors
    /// E002 for a character of no token, E005, E006 and E015 for malformed literals, E094 for the text of a
    /// template without a closing brace.
    pub(crate) fn next(&mut self) -> Result<Token> {
        if self.before == LexContext::RawTextExpected {
            self.before = LexContext::Default;
            return self.raw();
        }
        let token = self.cal_token()?;
        self.before = self.before.then(token.kind);
        Ok(token)
    }

    /// Reads the raw text up to the brace that closes the section.
    fn raw(&mut self) -> Result<Token> {
        let start = self.at;
        let text = self.source.get(start..).unwrap_or("");
        let Some(length) = grainstore_sml::body_end(text.as_bytes()) else {
            self.at = self.source.len();
            let message = "the text of the template is never closed: no } belongs to this {";
            let error = Error::new(ErrorKind::TemplateSyntax, message);
            let advice = "close it with }; single braces in it balance, and tags end with }}";
            return Err(error.at(Span::new(start.saturating_sub(1), start)).suggest(advice));
        };
        self.at += length;
        Ok(self.token(start, TokenKind::RawText))
    }

    fn cal_token(&mut self) -> Result<Token> {
        self.skip_blank();
        let start = self.at;
        let Some(byte) = self.byte(0) else { return Ok(self.token(start, TokenKind::End)) };
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => self.word(start),
            b'"' => self.string(start),
            b'0'..=b'9' => self.number(start),
            b'-' if self.byte(1).is_some_and(|next| next.is_ascii_digit()) => self.number(start),
            b'$' => self.parameter(start),
            _ => self.mark(start),
        }
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.source.as_bytes().get(self.at + ahead).copied()
    }

    fn token(&self, start: usize, kind: TokenKind) -> Token {
        Token { kind, span: Span::new(start, self.at) }
    }

    /// Skips the bytes for which `wanted` holds.
    fn skip(&mut self, wanted: impl Fn(u8) -> bool) {
        while self.byte(0).is_some_and(&wanted) {
            self.at += 1;
        }
    }

    fn skip_blank(&mut self) {
        loop {
            self.skip(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
            if self.byte(0) != Some(b'-') || self.byte(1) != Some(b'-') {
                return;
            }
            self.skip(|byte| byte != b'\n');
        }
    }

    fn word(&mut self, start: usize) -> Result<Token> {
        self.skip(is_name_byte);
        let text = self.source.get(start..self.at).unwrap_or("");
        if text.eq_ignore_ascii_case("sha256") && self.byte(0) == Some(b':') && !self.is_label() {
            return self.hash(start);
        }
        Ok(self.token(start, TokenKind::Word(words::classify(text))))
    }

    /// Returns `true` if the colon ends a label (`sha256: (RECALL ...)`) and does not start a hash.
    fn is_label(&self) -> bool {
        matches!(self.byte(1), Some(b'(' | b' ' | b'\t' | b'\n' | b'\r'))
    }

    fn hash(&mut self, start: usize) -> Result<Token> {
        self.at += 1;
        let digits_at = self.at;
        self.skip(|byte| byte.is_ascii_alphanumeric());
        let digits = self.source.get(digits_at..self.at).unwrap_or("");
        let head = self.source.get(start..digits_at);
        if head == Some("sha256:") && is_hash_digits(digits) {
            return Ok(self.token(start, TokenKind::Hash));
        }
        let message = "a hash is sha256: and 8 to 64 lowercase hex digits";
        Err(Error::new(ErrorKind::BadHash, message).at(Span::new(start, self.at)))
    }

    fn string(&mut self, start: usize) -> Result<Token> {
        let mut plain = true;
        self.at += 1;
        loop {
            match self.byte(0) {
                None => {
                    let error = Error::new(ErrorKind::BadString, "the string is never closed");
                    return Err(error.at(Span::new(start, self.at)));
                }
                Some(b'"') => break,
                Some(b'\\') => {
                    plain = false;
                    self.at += 1 + usize::from(self.byte(1).is_some());
                }
                Some(byte) => {
                    plain &= byte.is_ascii();
                    self.at += 1;
                }
            }
        }
        self.at += 1;
        Ok(self.token(start, TokenKind::Str { plain }))
    }

    fn number(&mut self, start: usize) -> Result<Token> {
        self.at += 1;
        self.skip(|byte| byte.is_ascii_digit());
        if self.byte(0) == Some(b'.') && self.byte(1).is_some_and(|next| next.is_ascii_digit()) {
            self.at += 1;
            self.skip(|byte| byte.is_ascii_digit());
        }
        if self.byte(0).is_none_or(|byte| !is_name_byte(byte) && byte != b'.') {
            return Ok(self.token(start, TokenKind::Number));
        }
        self.skip(|byte| is_name_byte(byte) || byte == b'.');
        let message = "a number is digits with an optional minus and fraction, without exponent";
        let error = Error::new(ErrorKind::BadNumber, message).at(Span::new(start, self.at));
        let text = self.source.get(start..self.at).unwrap_or("");
        Err(match number_advice(text) {
            Some(advice) => error.suggest(advice),
            None => error,
        })
    }

    fn parameter(&mut self, start: usize) -> Result<Token> {
        self.at += 1;
        if self.byte(0).is_none_or(|byte| !byte.is_ascii_alphabetic()) {
            let error = Error::new(ErrorKind::UnexpectedToken, "a parameter is $ and a name");
            return Err(error.at(Span::new(start, self.at)));
        }
        self.skip(is_name_byte);
        Ok(self.token(start, TokenKind::Param))
    }

    fn mark(&mut self, start: usize) -> Result<Token> {
        let pair = [self.byte(0).unwrap_or(0), self.byte(1).unwrap_or(0)];
        let (mark, length) = match &pair {
            b"!=" => (Punctuation::NotEqual, 2),
            b">=" => (Punctuation::GreaterEqual, 2),
            b"<=" => (Punctuation::LessEqual, 2),
            [b'(', _] => (Punctuation::LeftParen, 1),
            [b')', _] => (Punctuation::RightParen, 1),
            [b'[', _] => (Punctuation::LeftBracket, 1),
            [b']', _] => (Punctuation::RightBracket, 1),
            [b'{', _] => (Punctuation::LeftBrace, 1),
            [b'}', _] => (Punctuation::RightBrace, 1),
            [b',', _] => (Punctuation::Comma, 1),
            [b':', _] => (Punctuation::Colon, 1),
            [b';', _] => (Punctuation::Semicolon, 1),
            [b'|', _] => (Punctuation::Pipe, 1),
            [b'/', _] => (Punctuation::Slash, 1),
            [b'=', _] => (Punctuation::Equal, 1),
            [b'>', _] => (Punctuation::Greater, 1),
            [b'<', _] => (Punctuation::Less, 1),
            _ => return Err(self.unexpected_character(start)),
        };
        self.at += length;
        Ok(self.token(start, TokenKind::Punctuation(mark)))
    }

    fn unexpected_character(&self, start: usize) -> Error {
        let found = self.source.get(start..).and_then(|rest| rest.chars().next());
        let end = start + found.map_or(1, char::len_utf8);
        let shown = found.map_or_else(String::new, |c| c.escape_debug().to_string());
        let error =
            Error::new(ErrorKind::UnexpectedToken, format!("unexpected character '{shown}'"));
        let error = error.at(Span::new(start, end));
        match found {
            Some('\'') => error.suggest("strings stand in double quotes"),
            Some('.') => error.suggest("a number starts with a digit, such as 0.5"),
            _ => error.suggest("names, keywords and operators are ASCII; text stands in quotes"),
        }
    }
}

impl LexContext {
    /// Returns the context after a token of this kind.
    fn then(self, kind: TokenKind) -> Self {
        match kind {
            TokenKind::Word(WordClass::Keyword(Keyword::Template | Keyword::Extends)) => {
                Self::NameExpected
            }
            TokenKind::Word(WordClass::Keyword(word))
                if self != Self::NameExpected && word.section().is_some() =>
            {
                Self::Section
            }
            TokenKind::Punctuation(Punctuation::LeftBrace) if self == Self::Section => {
                Self::RawTextExpected
            }
            _ => Self::Default,
        }
    }
}

/// Returns `true` if `digits` are those of a hash literal: 8 to 64, lowercase hex.
pub(crate) fn is_hash_digits(digits: &str) -> bool {
    (8..=64).contains(&digits.len())
        && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Returns advice for an address without its prefix.
pub(crate) fn hash_advice(digits: &str) -> Option<String> {
    is_hash_digits(digits).then(|| format!("an address stands as sha256:{digits}, without quotes"))
}

/// Returns advice for text that begins as a number: an address, or a number and its unit.
fn number_advice(text: &str) -> Option<String> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_unit = ["tokens", "grains"].iter().any(|known| known.eq_ignore_ascii_case(unit));
    let amount = text.get(..text.len().saturating_sub(unit.len())).unwrap_or("");
    let spaced = is_unit.then(|| format!("put a space behind the number: {amount} {unit}"));
    spaced.or_else(|| hash_advice(text))
}

/// Returns `true` if `text` is one word: a letter, then letters, digits and `_`.
pub(crate) fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.bytes().all(is_name_byte)
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
