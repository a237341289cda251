//! `stages` and `stage`: the pipeline, with or without pipes (ruling 1).

use super::cursor::TokenCursor;
use super::{condition, project, value};
use crate::ast::{Extractor, PipelineStage, SortDirection};
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
pub(super) fn piped<'a>(c: &mut TokenCursor<'a>) -> Result<Spanned<PipelineStage<'a>>> {
    c.bump()?;
    stage(c)
}

/// `stage := SELECT field,+ | ORDER BY field (ASC|DESC)? | LIMIT INT | OFFSET (INT|PARAM) | COUNT |
/// FIRST | extractor | GROUP BY field | project`.
pub(super) fn stage<'a>(c: &mut TokenCursor<'a>) -> Result<Spanned<PipelineStage<'a>>> {
    let start = c.peek().span;
    let stage = match c.keyword() {
        Some(Keyword::Select) => select(c)?,
        Some(Keyword::Order) => order_by(c)?,
        Some(Keyword::Limit) => {
            c.bump()?;
            PipelineStage::Limit(value::count_arg(c)?.node)
        }
        Some(Keyword::Offset) => {
            c.bump()?;
            PipelineStage::Offset(value::count_arg(c)?.node)
        }
        Some(Keyword::Count) => word(c, PipelineStage::Count)?,
        Some(Keyword::First) => word(c, PipelineStage::First)?,
        Some(Keyword::Subjects) => word(c, PipelineStage::Extract(Extractor::Subjects))?,
        Some(Keyword::Objects) => word(c, PipelineStage::Extract(Extractor::Objects))?,
        Some(Keyword::Hashes) => word(c, PipelineStage::Extract(Extractor::Hashes))?,
        Some(Keyword::Group) => {
            c.bump()?;
            c.expect(Keyword::By)?;
            PipelineStage::GroupBy(condition::field_among(c, fields::GROUPABLE)?)
        }
        Some(Keyword::Project) => PipelineStage::Project(project::project(c)?),
        _ => return Err(c.unexpected(&STAGES)),
    };
    Ok(Spanned::new(stage, c.span_from(start)))
}

fn word<'a>(c: &mut TokenCursor<'a>, stage: PipelineStage<'a>) -> Result<PipelineStage<'a>> {
    c.bump()?;
    Ok(stage)
}

fn select<'a>(c: &mut TokenCursor<'a>) -> Result<PipelineStage<'a>> {
    c.bump()?;
    let shown = |c: &mut TokenCursor<'a>| {
        let names = fields::projectable_names(c.grain_type());
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
    Ok(PipelineStage::Select(fields))
}

fn order_by<'a>(c: &mut TokenCursor<'a>) -> Result<PipelineStage<'a>> {
    c.bump()?;
    c.expect(Keyword::By)?;
    let field = condition::field_among(c, fields::sortable_names())?;
    let direction = if c.eat(Keyword::Asc)? {
        Some(SortDirection::Ascending)
    } else if c.eat(Keyword::Desc)? {
        Some(SortDirection::Descending)
    } else {
        None
    };
    Ok(PipelineStage::OrderBy { field, direction })
}
