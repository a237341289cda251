//! HISTORY: of one grain, or of everything ever said about a subject and relation.

use super::plan::HistoryPlan;
use super::resolve::text_of;
use super::{Context, recall};
use crate::ast::{History, Literal};
use crate::bounds::Visibility;
use crate::error::Result;
use crate::limits;
use crate::predicate::Predicate;
use crate::query::Query;

/// Checks a HISTORY.
pub(super) fn history(history: &History<'_>, context: &mut Context<'_>) -> Result<HistoryPlan> {
    let (within, subject, relation, as_of) = match history {
        History::Of(target) => return Ok(HistoryPlan::Of(context.hash(target)?)),
        History::Triple { within, subject, relation, as_of } => (within, subject, relation, as_of),
    };
    let mut query = Query { visibility: Visibility::EVERYTHING, ..Query::default() };
    if let Some(within) = within {
        query.reach = recall::reach(&within.node, within.span, context)?;
    }
    for (name, literal) in [("subject", subject), ("relation", relation)] {
        let text = text_of(context.value(literal)?, literal.span)?;
        query.predicates.push(Predicate::text_is(name, text));
    }
    if as_of.is_none() {
        query.limit = Some(limits::VERSIONS);
    }
    let as_of = match as_of {
        Some(clause) => {
            let text = Literal::Text(context.text(&clause.node, clause.span)?.into());
            Some(context.time(&text, clause.span)?.to)
        }
        None => None,
    };
    Ok(HistoryPlan::Triple { query, as_of })
}
