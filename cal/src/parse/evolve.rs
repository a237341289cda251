//! `add`, `supersede` and `set`: the statements that write new grains.

use super::cursor::Cursor;
use super::value;
use crate::ast::{Add, SetClause, Supersede, TextArg};
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::lex::{Kind, Mark};
use crate::span::Spanned;
use crate::types::{self, TypeName};
use crate::words::{Keyword, Word};

/// `add := ADD singular set+ REASON STR`.
pub(super) fn add<'a>(c: &mut Cursor<'a>) -> Result<Add<'a>> {
    c.expect(Keyword::Add)?;
    let grain_type = singular(c)?;
    let sets = sets(c)?;
    if sets.is_empty() && ends_sets(c) {
        let error = Error::new(ErrorKind::MissingField, "ADD sets no field").at(c.peek().span);
        return Err(error.valid(["subject", "relation", "object"]));
    }
    Ok(Add { grain_type, reason: reason(c, sets.is_empty())?, sets })
}

/// `supersede := SUPERSEDE h set+ REASON STR`.
pub(super) fn supersede<'a>(c: &mut Cursor<'a>) -> Result<Supersede<'a>> {
    c.expect(Keyword::Supersede)?;
    let target = value::hash_arg(c)?;
    let sets = sets(c)?;
    if sets.is_empty() && ends_sets(c) {
        let error = Error::new(ErrorKind::MissingSet, "SUPERSEDE sets no field").at(c.peek().span);
        return Err(error.valid(["object", "confidence", "importance", "tags"]));
    }
    Ok(Supersede { target, reason: reason(c, sets.is_empty())?, sets })
}

/// `singular := belief | event | ...`: the type ADD names; `consent` is a type here although it is no word of CAL.
fn singular(c: &mut Cursor<'_>) -> Result<Spanned<&'static TypeName>> {
    let token = c.peek();
    let Kind::Word(word) = token.kind else { return Err(c.unexpected(&["a grain type"])) };
    let text = c.text(token);
    if let Some(found) = types::by_singular(text) {
        c.bump()?;
        return Ok(Spanned::new(found, token.span));
    }
    if word != Word::Name {
        return Err(c.unexpected(&["a grain type"]));
    }
    Err(types::unknown_singular(text).at(token.span))
}

/// `set := SET field "=" v`, as many as stand here.
fn sets<'a>(c: &mut Cursor<'a>) -> Result<Vec<SetClause<'a>>> {
    let mut sets = Vec::new();
    while c.eat(Keyword::Set)? {
        let name = c.name("a field")?;
        c.expect_mark(Mark::Equal, "=")?;
        let value = value::value(c)?;
        sets.push(SetClause { name, value });
    }
    Ok(sets)
}

/// Whether the SET clauses are over in a way that leaves no doubt about what is missing.
fn ends_sets(c: &Cursor<'_>) -> bool {
    c.peek().kind == Kind::End || c.keyword() == Some(Keyword::Reason)
}

/// `REASON STR`.
fn reason<'a>(c: &mut Cursor<'a>, sets_expected: bool) -> Result<Spanned<TextArg<'a>>> {
    match c.keyword() {
        Some(Keyword::Reason) => {
            c.bump()?;
            value::text_arg(c)
        }
        _ if sets_expected => Err(c.unexpected(&["SET"])),
        _ if c.peek().kind == Kind::End => {
            let error = Error::new(ErrorKind::MissingReason, "a write needs its REASON");
            Err(error.at(c.peek().span))
        }
        _ => Err(c.unexpected(&["SET", "REASON"])),
    }
}
