//! `stages` and `stage`: the pipeline, with or without its pipes (ruling 1).

use super::cursor::Cursor;
use super::{condition, value};
use crate::ast::{Direction, Stage};
use crate::error::Result;
use crate::span::Spanned;
use crate::words::Keyword;

const STAGES: [&str; 5] = ["ORDER BY", "LIMIT", "OFFSET", "COUNT", "FIRST"];

/// `"|" stage`.
pub(super) fn piped<'a>(c: &mut Cursor<'a>) -> Result<Spanned<Stage<'a>>> {
    c.bump()?;
    stage(c)
}

/// `stage := ORDER BY field (ASC|DESC)? | LIMIT INT | OFFSET (INT|PARAM) | COUNT | FIRST`, and those
/// refused by name.
pub(super) fn stage<'a>(c: &mut Cursor<'a>) -> Result<Spanned<Stage<'a>>> {
    let start = c.peek().span;
    let stage = match c.keyword() {
        Some(Keyword::Order) => order_by(c)?,
        Some(Keyword::Limit) => {
            c.bump()?;
            Stage::Limit(value::count_arg(c)?.node)
        }
        Some(Keyword::Offset) => {
            c.bump()?;
            Stage::Offset(value::count_arg(c)?.node)
        }
        Some(Keyword::Count) => {
            c.bump()?;
            Stage::Count
        }
        Some(Keyword::First) => {
            c.bump()?;
            Stage::First
        }
        _ => return Err(c.unexpected(&STAGES)),
    };
    Ok(Spanned::new(stage, c.since(start)))
}

fn order_by<'a>(c: &mut Cursor<'a>) -> Result<Stage<'a>> {
    c.bump()?;
    c.expect(Keyword::By)?;
    let field = condition::field(c)?;
    let direction = if c.eat(Keyword::Asc)? {
        Some(Direction::Ascending)
    } else if c.eat(Keyword::Desc)? {
        Some(Direction::Descending)
    } else {
        None
    };
    Ok(Stage::OrderBy { field, direction })
}
