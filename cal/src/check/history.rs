//! HISTORY: of one grain, or of all grains with a subject and relation (CAL 8.4).

use super::comparison::note_unknown_relation;
use super::plan::HistoryPlan;
use super::resolve::text_of;
use super::{CheckContext, recall};
use crate::ast::{History, Literal};
use crate::bounds::Visibility;
use crate::error::Result;
use crate::fields;
use crate::predicate::Predicate;
use crate::query::Query;

/// Checks a HISTORY.
pub(super) fn history(
    history: &History<'_>,
    context: &mut CheckContext<'_>,
) -> Result<HistoryPlan> {
    let (within, subject, relation, as_of) = match history {
        History::ByHash { target, diff: None } => {
            return Ok(HistoryPlan::ByHash(context.hash(target)?));
        }
        History::ByHash { target, diff: Some(other) } => {
            return Ok(HistoryPlan::Diff(context.hash(target)?, context.hash(other)?));
        }
        History::Triple { within, subject, relation, as_of } => (within, subject, relation, as_of),
    };
    let mut query = Query { visibility: Visibility::EVERYTHING, ..Query::default() };
    if let Some(within) = within {
        query.reach = recall::namespace_scope(&within.node, within.span, context)?;
    }
    for (name, literal) in [("subject", subject), ("relation", relation)] {
        let text = text_of(context.value(literal)?, literal.span)?.into_owned();
        if let Some(field) = fields::by_name(name) {
            note_unknown_relation(field, &text, context);
        }
        query.require(Predicate::own_text(name, text));
    }
    if let Some(clause) = as_of {
        let text = Literal::Text(context.text(&clause.node, clause.span)?.into());
        query.known_at = Some(context.time(&text, clause.span)?.to);
    }
    Ok(HistoryPlan::Triple(Box::new(query)))
}
