//! The token reader shared by all productions: one token of lookahead, more on request.

mod recovery;

use grainstore_format::GrainType;

use crate::ast::Arg;
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::lex::{Lexer, Punctuation, Token, TokenKind};
use crate::limits;
use crate::parse::word_errors;
use crate::span::{Span, Spanned};
use crate::suggest;
use crate::words::{Keyword, WordClass};

pub(crate) use recovery::RefusedEntry;

/// Position and state of the parser in a query.
pub(super) struct TokenCursor<'a> {
    source: &'a str,
    lexer: Lexer<'a>,
    token: Token,
    /// End offset of the last token taken.
    end: usize,
    /// Distinct parameters so far.
    parameters: Vec<&'a str>,
    /// Number of LETs so far.
    lets: usize,
    /// Number of set operations so far.
    sets: usize,
    /// Number of subqueries open at this position.
    subqueries: usize,
    /// The grain type of the enclosing RECALL.
    grain_type: Option<GrainType>,
    /// Words that could have stood at the next token, for error messages.
    also_expected: Vec<&'static str>,
    /// Refused BATCH entries; `None` if the first error refuses the whole query.
    refused: Option<Vec<RefusedEntry<'a>>>,
}

impl<'a> TokenCursor<'a> {
    /// Returns a cursor before the first token.
    pub(super) fn new(source: &'a str) -> Result<Self> {
        let mut lexer = Lexer::new(source);
        let token = lexer.next()?;
        let parameters = Vec::new();
        let (lets, sets, subqueries) = (0, 0, 0);
        let (end, about, tried, refused) = (0, None, Vec::new(), None);
        #[rustfmt::skip]
        let new = Self { source, lexer, token, end, parameters, lets, sets, subqueries, grain_type: about, also_expected: tried, refused };
        Ok(new)
    }

    /// Returns the next token.
    pub(super) fn peek(&self) -> Token {
        self.token
    }

    /// Returns the next token if it is a keyword.
    pub(super) fn keyword(&self) -> Option<Keyword> {
        match self.token.kind {
            TokenKind::Word(WordClass::Keyword(keyword)) => Some(keyword),
            _ => None,
        }
    }

    /// Returns the token after the next.
    pub(super) fn second(&self) -> Result<Token> {
        let mut ahead = self.lexer;
        ahead.next()
    }

    /// Takes a comma if it continues the current list: not before `word :` and not before a statement,
    /// which belong to an enclosing list.
    pub(super) fn eat_list_comma(&mut self) -> Result<bool> {
        if self.token.kind != TokenKind::Punctuation(Punctuation::Comma) {
            self.also_expect(&[","]);
            return Ok(false);
        }
        let mut ahead = self.lexer;
        let next = ahead.next()?;
        let starts_part = match next.kind {
            TokenKind::Word(WordClass::Keyword(Keyword::Recall | Keyword::Assemble)) => true,
            TokenKind::Word(_) => ahead.next()?.kind == TokenKind::Punctuation(Punctuation::Colon),
            _ => false,
        };
        if !starts_part {
            self.bump()?;
        }
        Ok(!starts_part)
    }

    /// Returns `true` if a comma and a domain field `prefix:name` follow. A label differs: a statement or a
    /// parenthesis follows its colon.
    pub(super) fn domain_follows(&self) -> Result<bool> {
        if self.token.kind != TokenKind::Punctuation(Punctuation::Comma) {
            return Ok(false);
        }
        let mut ahead = self.lexer;
        let kinds = [ahead.next()?.kind, ahead.next()?.kind, ahead.next()?.kind];
        let [
            TokenKind::Word(_),
            TokenKind::Punctuation(Punctuation::Colon),
            TokenKind::Word(WordClass::Name),
        ] = kinds
        else {
            return Ok(false);
        };
        Ok(true)
    }

    /// Takes the next token.
    pub(super) fn bump(&mut self) -> Result<Token> {
        let taken = self.token;
        self.end = taken.span.end();
        self.token = self.lexer.next()?;
        self.also_expected.clear();
        Ok(taken)
    }

    /// Records words that could stand next although the parser goes on without them, so that an error at
    /// this token lists them.
    pub(super) fn also_expect(&mut self, words: &[&'static str]) {
        self.also_expected.extend(words);
    }

    /// Returns the source text of a token.
    pub(super) fn text(&self, token: Token) -> &'a str {
        self.source.get(token.span.start()..token.span.end()).unwrap_or("")
    }

    /// Returns the span from `start` to the end of the last token taken.
    pub(super) fn span_from(&self, start: Span) -> Span {
        start.to(Span::new(self.end, self.end))
    }

    /// Takes the keyword if it is next.
    pub(super) fn eat(&mut self, keyword: Keyword) -> Result<bool> {
        let found = self.keyword() == Some(keyword);
        if found {
            self.bump()?;
        } else {
            self.also_expect(&[keyword.text()]);
        }
        Ok(found)
    }

    /// Takes the punctuation if it is next.
    pub(super) fn eat_mark(&mut self, mark: Punctuation) -> Result<bool> {
        let found = self.token.kind == TokenKind::Punctuation(mark);
        match mark {
            _ if found => {
                self.bump()?;
            }
            Punctuation::Comma => self.also_expect(&[","]),
            Punctuation::Greater => self.also_expect(&[">"]),
            Punctuation::LeftBrace => self.also_expect(&["{"]),
            _ => {}
        }
        Ok(found)
    }

    /// Takes the keyword; an error if it is not next.
    pub(super) fn expect(&mut self, keyword: Keyword) -> Result<Token> {
        if self.keyword() == Some(keyword) {
            self.bump()
        } else {
            Err(self.unexpected(&[keyword.text()]))
        }
    }

    /// Takes the punctuation; an error if it is not next. `shown` is its spelling in the message.
    pub(super) fn expect_mark(&mut self, mark: Punctuation, shown: &'static str) -> Result<Token> {
        if self.token.kind == TokenKind::Punctuation(mark) {
            self.bump()
        } else {
            Err(self.unexpected(&[shown]))
        }
    }

    /// Takes a word as a name, even a keyword or reserved word; forbidden words are refused.
    pub(super) fn name(&mut self, what: &'static str) -> Result<Spanned<&'a str>> {
        match self.token.kind {
            TokenKind::Word(word) if word != WordClass::Forbidden => {
                let token = self.bump()?;
                Ok(Spanned::new(self.text(token), token.span))
            }
            _ => Err(self.unexpected(&[what])),
        }
    }

    /// Takes a parameter and returns its name.
    ///
    /// # Errors
    /// E013 for the 21st distinct one.
    pub(super) fn parameter(&mut self) -> Result<Spanned<&'a str>> {
        let token = self.bump()?;
        let name = self.text(token).strip_prefix('$').unwrap_or("");
        if !self.parameters.contains(&name) {
            if self.parameters.len() == limits::MAX_PARAMETERS {
                let message = format!("a query has at most {} parameters", limits::MAX_PARAMETERS);
                return Err(Error::new(ErrorKind::TooMany, message).at(token.span));
            }
            self.parameters.push(name);
        }
        Ok(Spanned::new(name, token.span))
    }

    /// Takes the name of a LET, without its dollar.
    pub(super) fn variable(&mut self) -> Result<Spanned<&'a str>> {
        if self.token.kind != TokenKind::Param {
            return Err(self.unexpected(&["a name with its dollar, such as $name"]));
        }
        let token = self.bump()?;
        let name = self.text(token).strip_prefix('$').unwrap_or("");
        Ok(Spanned::new(name, token.span))
    }

    /// Counts a LET of the query.
    ///
    /// # Errors
    /// E013 for the sixth.
    pub(super) fn count_let(&mut self) -> Result<()> {
        self.lets += 1;
        self.at_most(self.lets, limits::MAX_LETS, "LETs")
    }

    /// Counts a set operation, which adds an operand.
    ///
    /// # Errors
    /// E013 where the sixth operand starts; this also bounds the nesting.
    pub(super) fn count_set(&mut self) -> Result<()> {
        self.sets += 1;
        self.at_most(self.sets + 1, limits::MAX_OPERANDS, "operands of set operations")
    }

    fn at_most(&self, count: usize, most: usize, what: &str) -> Result<()> {
        if count <= most {
            return Ok(());
        }
        let message = format!("a query has at most {most} {what}");
        Err(Error::new(ErrorKind::TooMany, message).at(self.token.span))
    }

    /// Reads a subquery with `read`.
    ///
    /// # Errors
    /// E007 for the fourth level of nesting.
    pub(super) fn subquery<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.subqueries == limits::MAX_SUBQUERY_DEPTH {
            let message = format!("subqueries nest at most {} deep", limits::MAX_SUBQUERY_DEPTH);
            return Err(Error::new(ErrorKind::TooDeep, message).at(self.token.span));
        }
        self.subqueries += 1;
        let inside = read(self)?;
        self.subqueries -= 1;
        Ok(inside)
    }

    /// Returns the type whose fields can be named here beside the common ones.
    pub(super) fn grain_type(&self) -> Option<GrainType> {
        self.grain_type
    }

    /// Sets the type of the current RECALL and returns that of the enclosing one.
    pub(super) fn set_grain_type(&mut self, grain_type: Option<GrainType>) -> Option<GrainType> {
        std::mem::replace(&mut self.grain_type, grain_type)
    }

    /// Takes a parameter if one is next, else reads the value with `given`.
    pub(super) fn arg<T>(
        &mut self,
        given: impl FnOnce(&mut Self) -> Result<Spanned<T>>,
    ) -> Result<Spanned<Arg<'a, T>>> {
        if self.token.kind == TokenKind::Param {
            let name = self.parameter()?;
            return Ok(Spanned::new(Arg::Param(name.node), name.span));
        }
        let value = given(self)?;
        Ok(Spanned::new(Arg::Given(value.node), value.span))
    }

    /// Returns the error for the next token, which is none of `expected`: words of the language, or
    /// descriptions that begin with an article.
    pub(super) fn unexpected(&self, expected: &[&'static str]) -> Error {
        let mut all = expected.to_vec();
        for tried in &self.also_expected {
            if !all.contains(tried) {
                all.push(tried);
            }
        }
        let expected = all.as_slice();
        let found = self.text(self.token);
        if let Some(error) = word_errors::word_error(self.token, found) {
            return error;
        }
        let shown = match self.token.kind {
            TokenKind::End => "the end of the query".to_owned(),
            TokenKind::Str { .. } => "a string".to_owned(),
            _ => format!("\"{found}\""),
        };
        let known = expected.iter().copied().filter(|word| !is_description(word));
        // A word that is expected here fails for another reason, so it is not suggested.
        let others = known.clone().filter(|word| !word.eq_ignore_ascii_case(found));
        let suggestion = match self.token.kind {
            TokenKind::Word(_) => suggest::did_you_mean(found, others, &list(expected)),
            _ => list(expected),
        };
        Error::new(ErrorKind::UnexpectedToken, format!("unexpected {shown}"))
            .at(self.token.span)
            .suggest(suggestion)
            .valid(known)
    }
}

/// Returns `true` for a keyword that follows a name and therefore cannot be one.
pub(super) fn is_no_name(keyword: Option<Keyword>) -> bool {
    matches!(keyword, Some(Keyword::For | Keyword::From | Keyword::Extends))
}

/// Returns `true` if `word :` is next, which starts the next part of an enclosing list.
pub(super) fn is_name_then_colon(c: &TokenCursor<'_>) -> Result<bool> {
    Ok(matches!(c.peek().kind, TokenKind::Word(_))
        && c.second()?.kind == TokenKind::Punctuation(Punctuation::Colon))
}

/// Returns `true` for a description, which cannot be typed as it is.
fn is_description(expected: &str) -> bool {
    ["a ", "an ", "the "].iter().any(|article| expected.starts_with(article))
}

/// Returns `expected a, b or c`.
fn list(expected: &[&'static str]) -> String {
    match expected {
        [] => "nothing more is expected here".to_owned(),
        [one] => format!("expected {one}"),
        [most @ .., last] => format!("expected {} or {last}", most.join(", ")),
    }
}
