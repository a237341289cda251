//! Literals: `v`, `h`, text and counts, each also as a parameter (CAL 3.4).

use std::borrow::Cow;

use grainstore_format::ContentAddress;

use super::cursor::TokenCursor;
use crate::ast::{
    BetweenClause, CountArg, HashArg, Literal, NumberArg, NumberLiteral, TextArg, WholeNumber,
};
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::lex::{self, Punctuation, TokenKind};
use crate::predicate::Comparator;
use crate::span::Spanned;
use crate::text;
use crate::words::{Keyword, WordClass};

/// `v := scalar | array` and `array := "[" (scalar,+ ","?)? "]"`.
pub(super) fn value<'a>(c: &mut TokenCursor<'a>) -> Result<Spanned<Literal<'a>>> {
    if c.peek().kind != TokenKind::Punctuation(Punctuation::LeftBracket) {
        return scalar(c);
    }
    let open = c.bump()?;
    let mut items = Vec::new();
    while c.peek().kind != TokenKind::Punctuation(Punctuation::RightBracket) {
        items.push(array_item(c)?);
        if !c.eat_mark(Punctuation::Comma)? {
            break;
        }
    }
    c.expect_mark(Punctuation::RightBracket, "]")?;
    Ok(Spanned::new(Literal::Array(items), c.span_from(open.span)))
}

/// Parses an item of an array. No operator takes nested arrays, and a flat list bounds the depth.
fn array_item<'a>(c: &mut TokenCursor<'a>) -> Result<Spanned<Literal<'a>>> {
    if c.peek().kind == TokenKind::Punctuation(Punctuation::LeftBracket) {
        let error = Error::new(ErrorKind::WrongType, "an array holds single values, not arrays");
        return Err(error.at(c.peek().span).suggest("write one flat list"));
    }
    scalar(c)
}

/// `scalar := STR | NUM | TRUE | FALSE | HASH | "$"ID`.
fn scalar<'a>(c: &mut TokenCursor<'a>) -> Result<Spanned<Literal<'a>>> {
    let token = c.peek();
    let literal = match token.kind {
        TokenKind::Str { .. } => Literal::Text(string(c)?.node),
        TokenKind::Number => Literal::Number(number(c)?),
        TokenKind::Hash => Literal::Hash(Cow::Borrowed(digits(c)?)),
        TokenKind::Param => Literal::Param(c.parameter()?.node),
        TokenKind::Word(WordClass::Keyword(Keyword::True)) => {
            c.bump()?;
            Literal::Flag(true)
        }
        TokenKind::Word(WordClass::Keyword(Keyword::False)) => {
            c.bump()?;
            Literal::Flag(false)
        }
        TokenKind::Word(WordClass::Name) => return Err(unquoted(c, "a value")),
        _ => return Err(c.unexpected(&["a value"])),
    };
    Ok(Spanned::new(literal, token.span))
}

/// Returns the error for a name where `what` is expected.
fn unquoted(c: &TokenCursor<'_>, what: &'static str) -> Error {
    let suggestion = format!("text stands in double quotes: \"{}\"", c.text(c.peek()));
    c.unexpected(&[what]).suggest(suggestion)
}

/// Parses `v` after `comparator`; a `numeric` field takes numbers only.
pub(super) fn comparison_value<'a>(
    c: &mut TokenCursor<'a>,
    comparator: Comparator,
    numeric: bool,
) -> Result<Spanned<Literal<'a>>> {
    match (comparator, c.peek().kind) {
        (Comparator::Equal, TokenKind::Punctuation(Punctuation::Equal)) => {
            Err(c.unexpected(&["a value"]).suggest("equality is one ="))
        }
        (Comparator::Less, TokenKind::Punctuation(Punctuation::Greater)) => {
            Err(c.unexpected(&["a value"]).suggest("inequality is !="))
        }
        (_, TokenKind::Word(WordClass::Name)) if numeric => Err(c.unexpected(&["a number"])),
        _ => value(c),
    }
}

/// Parses a string or a parameter.
pub(super) fn text_arg<'a>(c: &mut TokenCursor<'a>) -> Result<Spanned<TextArg<'a>>> {
    c.arg(string)
}

/// A hash or a parameter: `h := HASH | PARAM`.
pub(super) fn hash_arg<'a>(c: &mut TokenCursor<'a>) -> Result<Spanned<HashArg<'a>>> {
    c.arg(|c| {
        let token = c.peek();
        if token.kind != TokenKind::Hash {
            let error = c.unexpected(&["a hash (sha256:...)"]);
            let text = c.text(token).trim_matches('"');
            let meant = lex::hash_advice(ContentAddress::digits(text));
            return Err(match meant {
                Some(advice) => error.suggest(advice),
                None => error,
            });
        }
        Ok(Spanned::new(digits(c)?, token.span))
    })
}

/// Parses INT or a parameter.
pub(super) fn count_arg<'a>(c: &mut TokenCursor<'a>) -> Result<Spanned<CountArg<'a>>> {
    c.arg(|c| {
        let token = c.peek();
        if token.kind != TokenKind::Number {
            return Err(c.unexpected(&["a whole number"]));
        }
        let digits = c.text(token);
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            let error = Error::new(ErrorKind::BadNumber, format!("{digits} is no whole number"));
            return Err(error.at(token.span).suggest("write a whole number, such as 20"));
        }
        c.bump()?;
        let count = match digits.parse::<u64>() {
            Ok(value) => value.into(),
            Err(_) => WholeNumber { value: u64::MAX, beyond: Some(digits.trim_start_matches('0')) },
        };
        Ok(Spanned::new(count, token.span))
    })
}

/// Parses a whole number.
pub(super) fn whole_number(c: &mut TokenCursor<'_>) -> Result<Spanned<u64>> {
    let token = c.peek();
    if token.kind != TokenKind::Number {
        return Err(c.unexpected(&["a whole number"]));
    }
    let parsed = c.text(token).parse().map_err(|_| {
        Error::new(ErrorKind::BadNumber, "a version is a whole number").at(token.span)
    })?;
    c.bump()?;
    Ok(Spanned::new(parsed, token.span))
}

/// Parses `v AND v`, after BETWEEN.
pub(super) fn bounds<'a>(c: &mut TokenCursor<'a>) -> Result<BetweenClause<'a>> {
    let from = value(c)?;
    c.expect(Keyword::And)?;
    let to = value(c)?;
    Ok(BetweenClause { from, to })
}

/// Parses `"(" v,+ ")"`.
pub(super) fn value_list<'a>(c: &mut TokenCursor<'a>) -> Result<Vec<Spanned<Literal<'a>>>> {
    c.expect_mark(Punctuation::LeftParen, "(")?;
    values(c)
}

/// Parses `v,+ ")"`, after the opening parenthesis.
pub(super) fn values<'a>(c: &mut TokenCursor<'a>) -> Result<Vec<Spanned<Literal<'a>>>> {
    let mut values = vec![scalar(c)?];
    while c.eat_mark(Punctuation::Comma)? {
        values.push(scalar(c)?);
    }
    c.expect_mark(Punctuation::RightParen, ")")?;
    Ok(values)
}

fn string<'a>(c: &mut TokenCursor<'a>) -> Result<Spanned<Cow<'a, str>>> {
    let token = c.peek();
    let plain = match token.kind {
        TokenKind::Str { plain } => plain,
        TokenKind::Word(WordClass::Name) => return Err(unquoted(c, "a string")),
        _ => return Err(c.unexpected(&["a string"])),
    };
    let quoted = c.text(token);
    let inside = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or("");
    let text = if plain {
        Cow::Borrowed(inside)
    } else {
        text::decode(inside).map_err(|error| error.at(token.span))?
    };
    c.bump()?;
    Ok(Spanned::new(text, token.span))
}

/// Parses a finite number or a parameter.
pub(super) fn number_arg<'a>(c: &mut TokenCursor<'a>) -> Result<Spanned<NumberArg<'a>>> {
    c.arg(|c| {
        let place = c.peek().span;
        Ok(Spanned::new(number(c)?, place))
    })
}

/// Parses a finite number.
fn number<'a>(c: &mut TokenCursor<'a>) -> Result<NumberLiteral<'a>> {
    let token = c.peek();
    if token.kind != TokenKind::Number {
        return Err(c.unexpected(&["a number"]));
    }
    let text = c.text(token);
    let value = text.parse::<f64>().ok().filter(|value| value.is_finite());
    let Some(value) = value else {
        return Err(Error::new(ErrorKind::BadNumber, "the number is too large").at(token.span));
    };
    c.bump()?;
    Ok(NumberLiteral { text: without_zeros(text), value })
}

/// Removes redundant leading zeros, which JSON cannot write.
fn without_zeros(text: &str) -> Cow<'_, str> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let trimmed = digits.trim_start_matches('0');
    let fraction_alone = !trimmed.starts_with(|first: char| first.is_ascii_digit());
    let kept = digits.len().saturating_sub(trimmed.len() + usize::from(fraction_alone));
    match (digits.get(kept..), text.len() == digits.len()) {
        (Some(short), true) => Cow::Borrowed(short),
        (Some(short), false) if kept > 0 => Cow::Owned(format!("-{short}")),
        _ => Cow::Borrowed(text),
    }
}

fn digits<'a>(c: &mut TokenCursor<'a>) -> Result<&'a str> {
    let token = c.bump()?;
    Ok(c.text(token).strip_prefix("sha256:").unwrap_or(""))
}
