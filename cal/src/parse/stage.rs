//! `stages` and `stage`: the pipeline, with or without pipes (ruling 1).

use super::cursor::Cursor;
use super::{condition, project, value};
use crate::ast::{Direction, Extractor, Stage};
use crate::error::Result;
use crate::fields;
use crate::span::Spanned;
use crate::words::Keyword;

const STAGES: [&str; 11] = [
    "SELECT", "ORDER BY", "LIMIT", "OFFSET", "COUNT", "FIRST", "SUBJECTS", "OBJECTS", "HASHES",
    "GROUP BY", "PROJECT",
];

/// Returns `true` if a stage starts with this keyword; `extractor := SUBJECTS | OBJECTS | HASHES` is one.
pub(super) fn starts(keyword: Keyword) -> bool {
    matches!(
        keyword,
        Keyword::Select
            | Keyword::Order
            | Keyword::Limit
            | Keyword::Offset
            | Keyword::Count
            | Keyword::First
            | Keyword::Subjects
            | Keyword::Objects
            | Keyword::Hashes
            | Keyword::Group
            | Keyword::Project
    )
}

/// `stages := ("|"? stage)*`: one stage after its pipe.
pub(super) fn piped<'a>(c: &mut Cursor<'a>) -> Result<Spanned<Stage<'a>>> {
    c.bump()?;
    stage(c)
}

/// `stage := SELECT field,+ | ORDER BY field (ASC|DESC)? | LIMIT INT | OFFSET (INT|PARAM) | COUNT |
/// FIRST | extractor | GROUP BY field | project`.
pub(super) fn stage<'a>(c: &mut Cursor<'a>) -> Result<Spanned<Stage<'a>>> {
    let start = c.peek().span;
    let stage = match c.keyword() {
        Some(Keyword::Select) => select(c)?,
        Some(Keyword::Order) => order_by(c)?,
        Some(Keyword::Limit) => {
            c.bump()?;
            Stage::Limit(value::count_arg(c)?.node)
        }
        Some(Keyword::Offset) => {
            c.bump()?;
            Stage::Offset(value::count_arg(c)?.node)
        }
        Some(Keyword::Count) => word(c, Stage::Count)?,
        Some(Keyword::First) => word(c, Stage::First)?,
        Some(Keyword::Subjects) => word(c, Stage::Extract(Extractor::Subjects))?,
        Some(Keyword::Objects) => word(c, Stage::Extract(Extractor::Objects))?,
        Some(Keyword::Hashes) => word(c, Stage::Extract(Extractor::Hashes))?,
        Some(Keyword::Group) => {
            c.bump()?;
            c.expect(Keyword::By)?;
            Stage::GroupBy(condition::field_among(c, fields::GROUPABLE)?)
        }
        Some(Keyword::Project) => Stage::Project(project::project(c)?),
        _ => return Err(c.unexpected(&STAGES)),
    };
    Ok(Spanned::new(stage, c.since(start)))
}

fn word<'a>(c: &mut Cursor<'a>, stage: Stage<'a>) -> Result<Stage<'a>> {
    c.bump()?;
    Ok(stage)
}

fn select<'a>(c: &mut Cursor<'a>) -> Result<Stage<'a>> {
    c.bump()?;
    let shown = |c: &mut Cursor<'a>| {
        let names = fields::projectable_names(c.about());
        condition::field_among(c, names)
    };
    let mut fields = vec![shown(c)?];
    while c.eat_list_comma()? {
        fields.push(shown(c)?);
    }
    if c.domain_follows()? {
        // The domain field is reported as the error, not the comma before it.
        c.bump()?;
        fields.push(shown(c)?);
    }
    Ok(Stage::Select(fields))
}

fn order_by<'a>(c: &mut Cursor<'a>) -> Result<Stage<'a>> {
    c.bump()?;
    c.expect(Keyword::By)?;
    let field = condition::field_among(c, fields::sortable_names())?;
    let direction = if c.eat(Keyword::Asc)? {
        Some(Direction::Ascending)
    } else if c.eat(Keyword::Desc)? {
        Some(Direction::Descending)
    } else {
        None
    };
    Ok(Stage::OrderBy { field, direction })
}
