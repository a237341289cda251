//! `with` and `option`: option names take precedence over other meanings of the word.

use super::cursor::TokenCursor;
use super::{condition, value};
use crate::ast::{ConsistencyLevel, CountArg, DiversityOption, LevelName, Literal, WithOption};
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::fields;
use crate::lex::{Punctuation, TokenKind};
use crate::parse::word_errors;
use crate::span::Spanned;
use crate::suggest;
use crate::words::{Keyword, WordClass};

/// The options of CAL/1; those marked `false` are not in this version.
const OPTIONS: [(&str, bool); 14] = [
    ("superseded", true),
    ("progressive_disclosure", true),
    ("dedup", true),
    ("iso_timestamps", true),
    ("locale", true),
    ("score_breakdown", true),
    ("explanation", true),
    ("total", true),
    ("provenance", true),
    ("contradiction_detection", true),
    ("summarize", true),
    ("diversity", true),
    ("consistency", true),
    ("cache", true),
];

/// Returns the options that this version supports.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    OPTIONS.iter().filter(|(_, acts)| *acts).map(|(name, _)| *name)
}

/// The levels of progressive disclosure.
pub(crate) const LEVELS: [(&str, LevelName); 4] = [
    ("summary", LevelName::Summary),
    ("headlines", LevelName::Headlines),
    ("standard", LevelName::Standard),
    ("full", LevelName::Full),
];

/// `with := WITH option,+`.
pub(super) fn options<'a>(c: &mut TokenCursor<'a>) -> Result<Vec<Spanned<WithOption<'a>>>> {
    c.expect(Keyword::With)?;
    let mut options = vec![option(c)?];
    while c.eat_list_comma()? {
        options.push(option(c)?);
    }
    let token = c.peek();
    let text = c.text(token);
    if names().any(|name| name.eq_ignore_ascii_case(text)) {
        let message = format!("unexpected \"{text}\"");
        let error = Error::new(ErrorKind::UnexpectedToken, message).at(token.span);
        return Err(error
            .suggest(format!("a comma stands between options: , {text}"))
            .valid([","]));
    }
    Ok(options)
}

/// `option := superseded | score_breakdown | ... | x_ID ("(" v,+ ")")?`.
fn option<'a>(c: &mut TokenCursor<'a>) -> Result<Spanned<WithOption<'a>>> {
    let token = c.peek();
    let text = c.text(token);
    if !matches!(token.kind, TokenKind::Word(word) if word != WordClass::Forbidden) {
        return Err(c.unexpected(&["an option"]).valid(names()));
    }
    if text.get(..2).is_some_and(|head| head.eq_ignore_ascii_case("x_")) && text.len() > 2 {
        c.bump()?;
        let arguments = arguments(c)?;
        return Ok(Spanned::new(WithOption::Extension(text, arguments), c.span_from(token.span)));
    }
    let lower = text.to_ascii_lowercase();
    let option = match lower.as_str() {
        "superseded" => bare(c, WithOption::Superseded)?,
        "score_breakdown" => bare(c, WithOption::ScoreBreakdown)?,
        "explanation" => bare(c, WithOption::Explanation)?,
        "total" => bare(c, WithOption::Total)?,
        "provenance" => bare(c, WithOption::Provenance)?,
        "contradiction_detection" => bare(c, WithOption::ContradictionDetection)?,
        "summarize" => bare(c, WithOption::Summarize)?,
        "iso_timestamps" => bare(c, WithOption::IsoTimestamps)?,
        "progressive_disclosure" => {
            c.bump()?;
            WithOption::ProgressiveDisclosure(level(c)?)
        }
        "dedup" => {
            c.bump()?;
            let field = |c: &mut TokenCursor<'a>| {
                condition::field_among(c, fields::names_for(c.grain_type()))
            };
            parenthesised(c, field).map(WithOption::Dedup)?
        }
        "diversity" => {
            c.bump()?;
            WithOption::Diversity(parenthesised(c, diversity)?)
        }
        "consistency" => {
            c.bump()?;
            WithOption::Consistency(parenthesised(c, consistency)?)
        }
        "cache" => {
            c.bump()?;
            WithOption::Cache(parenthesised(c, ttl)?)
        }
        "locale" => {
            c.bump()?;
            WithOption::Locale(parenthesised(c, value::text_arg)?.node)
        }
        _ => return Err(unknown(c, text)),
    };
    Ok(Spanned::new(option, c.span_from(token.span)))
}

fn bare<'a>(c: &mut TokenCursor<'a>, option: WithOption<'a>) -> Result<WithOption<'a>> {
    c.bump()?;
    Ok(option)
}

/// Parses `"(" (summary|headlines|standard|full) ")"` if a parenthesis is next.
fn level(c: &mut TokenCursor<'_>) -> Result<Option<LevelName>> {
    if c.peek().kind != TokenKind::Punctuation(Punctuation::LeftParen) {
        return Ok(None);
    }
    parenthesised(c, |c| {
        let text = c.text(c.peek());
        let found = LEVELS.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
        let Some((_, level)) = found else {
            return Err(c.unexpected(&LEVELS.map(|(name, _)| name)));
        };
        c.bump()?;
        Ok(Some(*level))
    })
}

/// `eventual | bounded "(" NUM ")" | linearizable`.
fn consistency<'a>(c: &mut TokenCursor<'a>) -> Result<ConsistencyLevel<'a>> {
    let demand = match c.text(c.peek()).to_ascii_lowercase().as_str() {
        "eventual" => ConsistencyLevel::Eventual,
        "linearizable" => ConsistencyLevel::Linearizable,
        "bounded" => {
            c.bump()?;
            return parenthesised(c, value::number_arg).map(ConsistencyLevel::Bounded);
        }
        _ => return Err(c.unexpected(&["eventual", "bounded", "linearizable"])),
    };
    c.bump()?;
    Ok(demand)
}

/// `ttl "=" INT`.
fn ttl<'a>(c: &mut TokenCursor<'a>) -> Result<CountArg<'a>> {
    if !c.text(c.peek()).eq_ignore_ascii_case("ttl") {
        return Err(c.unexpected(&["ttl"]));
    }
    c.bump()?;
    c.expect_mark(Punctuation::Equal, "=")?;
    Ok(value::count_arg(c)?.node)
}

/// `mmr ("," lambda "=" NUM)? | threshold "," NUM`.
fn diversity<'a>(c: &mut TokenCursor<'a>) -> Result<DiversityOption<'a>> {
    let is_mmr = match c.text(c.peek()).to_ascii_lowercase().as_str() {
        "mmr" => true,
        "threshold" => false,
        _ => return Err(c.unexpected(&["mmr", "threshold"])),
    };
    c.bump()?;
    if is_mmr && c.peek().kind == TokenKind::Punctuation(Punctuation::RightParen) {
        return Ok(DiversityOption::Mmr(None));
    }
    c.expect_mark(Punctuation::Comma, ",")?;
    if is_mmr {
        if !c.text(c.peek()).eq_ignore_ascii_case("lambda") {
            return Err(c.unexpected(&["lambda"]));
        }
        c.bump()?;
        c.expect_mark(Punctuation::Equal, "=")?;
    }
    let number = value::number_arg(c)?;
    Ok(if is_mmr { DiversityOption::Mmr(Some(number)) } else { DiversityOption::Threshold(number) })
}

fn parenthesised<'a, T>(
    c: &mut TokenCursor<'a>,
    inside: impl FnOnce(&mut TokenCursor<'a>) -> Result<T>,
) -> Result<T> {
    c.expect_mark(Punctuation::LeftParen, "(")?;
    let inside = inside(c)?;
    c.expect_mark(Punctuation::RightParen, ")")?;
    Ok(inside)
}

/// Parses `("(" v,+ ")")?` of an extension option.
fn arguments<'a>(c: &mut TokenCursor<'a>) -> Result<Vec<Spanned<Literal<'a>>>> {
    if c.peek().kind == TokenKind::Punctuation(Punctuation::LeftParen) {
        value::value_list(c)
    } else {
        Ok(Vec::new())
    }
}

fn unknown(c: &TokenCursor<'_>, text: &str) -> Error {
    let span = c.peek().span;
    let known = OPTIONS.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
    if known.is_some() {
        let name = format!("WITH {}", text.to_ascii_lowercase());
        return word_errors::unsupported(&name, span, "leave the option out");
    }
    let ready = || OPTIONS.iter().filter(|(_, ready)| *ready).map(|(name, _)| *name);
    let advice = suggest::did_you_mean(text, ready(), "use one of the listed options");
    let error = Error::new(ErrorKind::UnexpectedToken, format!("unknown option \"{text}\""));
    error.at(span).suggest(advice).valid(ready())
}
