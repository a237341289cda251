//! `add`, `supersede`, `revert` and `set`: the statements that write grains.

use super::cursor::TokenCursor;
use super::value;
use crate::ast::{Add, HashArg, Revert, SetClause, Supersede, TextArg};
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::lex::{Punctuation, TokenKind};
use crate::span::Spanned;
use crate::types::{self, TypeName};
use crate::words::{Keyword, WordClass};

/// Words of other languages for what SUPERSEDE does.
pub(crate) const ELSEWHERE: [&str; 5] = ["UPDATE", "REPLACE", "MODIFY", "CHANGE", "EDIT"];
/// Advice for who names what to replace otherwise than SUPERSEDE does.
pub(super) const BY_ADDRESS: &str = "SUPERSEDE replaces one grain and keeps the old one; it takes its address, SET for each field and a \
     REASON: RECALL it first, then name its content_address";

/// `add := ADD singular set+ REASON STR`.
pub(super) fn add<'a>(c: &mut TokenCursor<'a>) -> Result<Add<'a>> {
    c.expect(Keyword::Add)?;
    let grain_type = singular(c)?;
    let sets = sets(c)?;
    if sets.is_empty() && ends_sets(c) {
        let error = Error::new(ErrorKind::MissingField, "ADD sets no field").at(c.peek().span);
        return Err(error.valid(["subject", "relation", "object"]));
    }
    Ok(Add { grain_type, reason: reason(c, after_sets(&sets))?, sets })
}

/// `supersede := SUPERSEDE h set+ REASON STR`.
pub(super) fn supersede<'a>(c: &mut TokenCursor<'a>) -> Result<Supersede<'a>> {
    c.expect(Keyword::Supersede)?;
    let target = target(c)?;
    let sets = sets(c)?;
    if sets.is_empty() && ends_sets(c) {
        let error = Error::new(ErrorKind::MissingSet, "SUPERSEDE sets no field").at(c.peek().span);
        return Err(error.valid(["object", "confidence", "importance", "tags"]));
    }
    Ok(Supersede { target, reason: reason(c, after_sets(&sets))?, sets })
}

/// `revert := REVERT h REASON STR`.
pub(super) fn revert<'a>(c: &mut TokenCursor<'a>) -> Result<Revert<'a>> {
    c.expect(Keyword::Revert)?;
    let target = target(c)?;
    if c.keyword() == Some(Keyword::Set) {
        let error = Error::new(ErrorKind::UnexpectedToken, "REVERT sets nothing").at(c.peek().span);
        return Err(error.suggest("use SUPERSEDE to set fields, or drop SET"));
    }
    Ok(Revert { target, reason: reason(c, &["REASON"])? })
}

/// The grain that is replaced: one, by its address. Whoever names it by conditions is told where addresses come from.
fn target<'a>(c: &mut TokenCursor<'a>) -> Result<Spanned<HashArg<'a>>> {
    let word = c.text(c.peek());
    let by_conditions = c.keyword() == Some(Keyword::Where)
        || types::by_singular(word).is_some()
        || types::by_plural(word).is_some();
    value::hash_arg(c).map_err(|error| match by_conditions {
        true => error.suggest(BY_ADDRESS),
        false => error,
    })
}

/// `singular := belief | event | ...`: the type after ADD; `consent` is accepted as a type although it is a
/// forbidden word.
fn singular(c: &mut TokenCursor<'_>) -> Result<Spanned<&'static TypeName>> {
    let token = c.peek();
    let TokenKind::Word(word) = token.kind else { return Err(c.unexpected(&["a grain type"])) };
    let text = c.text(token);
    if let Some(found) = types::by_singular(text) {
        c.bump()?;
        return Ok(Spanned::new(found, token.span));
    }
    if word != WordClass::Name {
        return Err(c.unexpected(&["a grain type"]));
    }
    Err(types::unknown_singular(text).at(token.span))
}

/// `set := SET field "=" v`, repeated.
fn sets<'a>(c: &mut TokenCursor<'a>) -> Result<Vec<SetClause<'a>>> {
    let mut sets = Vec::new();
    while c.eat(Keyword::Set)? {
        let name = c.name("a field")?;
        c.expect_mark(Punctuation::Equal, "=")?;
        let value = value::value(c)?;
        sets.push(SetClause { name, value });
    }
    Ok(sets)
}

/// Returns `true` if the SET clauses end here, so that a missing one can be reported as such.
fn ends_sets(c: &TokenCursor<'_>) -> bool {
    c.peek().kind == TokenKind::End || c.keyword() == Some(Keyword::Reason)
}

/// Returns the clauses that may follow these SET clauses.
fn after_sets(sets: &[SetClause<'_>]) -> &'static [&'static str] {
    if sets.is_empty() { &["SET"] } else { &["SET", "REASON"] }
}

/// Parses `REASON STR`; errors list `expected`.
fn reason<'a>(c: &mut TokenCursor<'a>, expected: &[&'static str]) -> Result<Spanned<TextArg<'a>>> {
    match c.keyword() {
        Some(Keyword::Reason) => {
            c.bump()?;
            value::text_arg(c)
        }
        _ if c.peek().kind == TokenKind::End && expected.contains(&"REASON") => {
            let error = Error::new(ErrorKind::MissingReason, "a write needs its REASON");
            Err(error.at(c.peek().span))
        }
        _ => Err(c.unexpected(expected)),
    }
}
