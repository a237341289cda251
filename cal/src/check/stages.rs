//! The pipeline: RECENT first, stages as written, the default LIMIT last (spec section 5).

use super::Context;
use super::plan::{SortKey, Step};
use crate::ast::{CountArg, Direction, Recall, Stage};
use crate::bounds::Order;
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::fields::{self, FieldRef};
use crate::limits;
use crate::query::Query;
use crate::span::{Span, Spanned};
use crate::suggest;

/// The steps of a RECALL. A leading sort by time becomes the order of the query.
pub(super) fn steps(
    recall: &Recall<'_>,
    context: &Context<'_>,
    query: &mut Query,
) -> Result<Vec<Step>> {
    if let Some(extra) = recall.stages.get(limits::STAGES) {
        let message = format!("a pipeline has at most {} stages", limits::STAGES);
        return Err(Error::new(ErrorKind::TooManyStages, message).at(extra.span));
    }
    let mut steps = Vec::new();
    if let Some(recent) = &recall.recent {
        query.order = Order::Newest;
        steps.push(Step::Take(limit(&recent.node, recent.span, "RECENT", context)?));
    }
    let mut ended: Option<&str> = None;
    for stage in &recall.stages {
        if let Some(end) = ended {
            let error = Error::new(ErrorKind::WrongStage, format!("{end} ends the pipeline"));
            return Err(error.at(stage.span).suggest(format!("write {end} last")));
        }
        let (step, ends) = step(stage, context)?;
        steps.push(step);
        ended = ends;
    }
    if !steps.iter().any(|step| matches!(step, Step::Take(_) | Step::Count)) {
        let default =
            if recall.thread.is_some() { limits::THREAD_LIMIT } else { limits::DEFAULT_LIMIT };
        steps.push(Step::Take(default));
    }
    settle_order(&mut steps, query);
    Ok(steps)
}

/// The step of a stage, and the stage's name if nothing may follow it.
fn step(stage: &Spanned<Stage<'_>>, context: &Context<'_>) -> Result<(Step, Option<&'static str>)> {
    Ok(match &stage.node {
        Stage::OrderBy { field, direction } => {
            let field = sortable(field)?;
            let descending = *direction == Some(Direction::Descending);
            (Step::Sort(SortKey { field, descending }), None)
        }
        Stage::Limit(count) => (Step::Take(limit(count, stage.span, "LIMIT", context)?), None),
        Stage::Offset(count) => (Step::Skip(context.whole(count, stage.span)?), None),
        Stage::Count => (Step::Count, Some("COUNT")),
        Stage::First => (Step::Take(1), Some("FIRST")),
    })
}

/// A LIMIT or RECENT: E006 for 0, E010 above the maximum.
fn limit(count: &CountArg<'_>, span: Span, name: &str, context: &Context<'_>) -> Result<u64> {
    match context.whole(count, span)? {
        0 => Err(Error::new(ErrorKind::BadNumber, format!("{name} is at least 1")).at(span)),
        count if count > limits::MAX_LIMIT => {
            let message = format!("{name} {count} is above the maximum of {}", limits::MAX_LIMIT);
            Err(Error::new(ErrorKind::LimitTooLarge, message).at(span))
        }
        count => Ok(count),
    }
}

/// E021: ORDER BY takes the sortable fields.
fn sortable(field: &Spanned<FieldRef>) -> Result<FieldRef> {
    if field.node.sortable {
        return Ok(field.node);
    }
    let name = field.node.name;
    let advice =
        suggest::did_you_mean(name, fields::sortable_names(), "use one of the listed fields");
    let error = Error::new(ErrorKind::WrongStage, format!("ORDER BY does not take {name}"));
    Err(error.at(field.span).suggest(advice).valid(fields::sortable_names()))
}

/// A sort right after another makes that one vain: ties go by address, not by what was before. A
/// leading sort by time is the order a memory visits in anyway.
fn settle_order(steps: &mut Vec<Step>, query: &mut Query) {
    let both_sort = |a: &mut Step, b: &mut Step| matches!((a, b), (Step::Sort(_), Step::Sort(_)));
    steps.reverse();
    steps.dedup_by(both_sort);
    steps.reverse();
    if let Some(Step::Sort(key)) = steps.first()
        && key.field.name == "time"
    {
        query.order = if key.descending { Order::Newest } else { Order::Oldest };
        steps.remove(0);
    }
}
