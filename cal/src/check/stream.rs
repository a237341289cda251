//! STREAM: the event classes and chunk size (CAL 11.2).

use super::CheckContext;
use super::plan::StreamPlan;
use crate::ast::{StreamClause, StreamOption};
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::limits;
use crate::span::Spanned;

/// Checks STREAM. If it names no events, or is absent, all are sent.
pub(super) fn stream(
    clause: Option<&Spanned<StreamClause<'_>>>,
    context: &CheckContext<'_>,
) -> Result<StreamPlan> {
    let mut plan = StreamPlan { has_stream_clause: clause.is_some(), ..StreamPlan::default() };
    let mut seen: Vec<&str> = Vec::new();
    for option in clause.iter().flat_map(|clause| &clause.node) {
        let name = option.node.name();
        if seen.contains(&name) {
            let error = Error::new(ErrorKind::UnexpectedToken, format!("{name} stands twice"));
            return Err(error.at(option.span).suggest("write each option once"));
        }
        seen.push(name);
        match &option.node {
            StreamOption::Progress => plan.progress = true,
            StreamOption::Budget => plan.budget = true,
            StreamOption::Chunks => plan.chunks = true,
            StreamOption::All => plan.select_all(),
            StreamOption::ChunkSize(size) => {
                let tokens = context.whole(size, option.span)?;
                if !limits::CHUNK_TOKEN_RANGE.contains(&tokens) {
                    let (least, most) = limits::CHUNK_TOKEN_RANGE.into_inner();
                    let written = size.as_written(tokens);
                    let message = format!("chunk_size {written} is not from {least} to {most}");
                    return Err(Error::new(ErrorKind::ChunkSize, message).at(option.span));
                }
                plan.chunk_tokens = usize::try_from(tokens).unwrap_or(usize::MAX);
            }
        }
    }
    if !(plan.progress || plan.budget || plan.chunks) {
        plan.select_all();
    }
    Ok(plan)
}
