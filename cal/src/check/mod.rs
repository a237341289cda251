//! The checker: syntax tree to plan, with parameters bound, shortcuts desugared and the rules of the
//! language enforced.
//!
//! A plan runs without its syntax tree. Errors keep the spans of the tree.

mod assemble;
mod bindings;
mod comparison;
pub(crate) mod complexity;
mod condition;
mod desugar;
pub(crate) mod domain;
mod evolve;
mod history;
mod ineffective_options;
mod options;
pub(crate) mod plan;
mod project;
mod recall;
mod resolve;
mod stages;
mod stream;
mod template;

use grainstore_format::EpochMs;

use crate::ast::{
    BatchEntry, Condition, Describe, ParsedQuery, SetOp, Statement, StatementBody,
    StatementWithLets,
};
use crate::codes::{ErrorKind, Warning};
use crate::error::{Error, Result};
use crate::memory::Memory;
use crate::params::Params;
use crate::query::Query;
use crate::span::{Span, Spanned};
use bindings::Bindings;
use plan::{ExplainPlan, PlanWithLets, RecallPlan, SetPlan, StatementPlan};

pub(crate) use resolve::ambiguous;
pub(crate) use resolve::too_many_values;

/// The context of a request, and the warnings collected while checking it.
pub(crate) struct CheckContext<'c> {
    pub(crate) memory: &'c dyn Memory,
    pub(crate) params: &'c Params,
    pub(crate) now: EpochMs,
    pub(crate) warnings: Vec<Warning>,
    /// The host's default LIMIT for a RECALL that states none, if it is lower than CAL's.
    pub(crate) default_limit_cap: Option<u64>,
    bindings: Bindings,
    /// True if the desugared form is needed, because the plan is only shown.
    needs_desugared: bool,
    /// True if the host renders grains as text even without AS.
    pub(crate) host_renders_text: bool,
    /// True if a consistency level was requested.
    pub(crate) consistency_requested: bool,
    /// True if a cached answer was allowed.
    pub(crate) cache_allowed: bool,
}

/// Checks a query and turns it into a plan.
///
/// # Errors
/// The first rule broken, with its span.
pub(crate) fn check(asked: &Statement<'_>, context: &mut CheckContext<'_>) -> Result<PlanWithLets> {
    match &asked.0 {
        ParsedQuery::Statement(request) => check_request(request, context),
        ParsedQuery::Define(definition) => template::define(definition, context),
    }
}

/// Checks LETs and a statement.
fn check_request(
    request: &StatementWithLets<'_>,
    context: &mut CheckContext<'_>,
) -> Result<PlanWithLets> {
    let mark = context.bindings.mark();
    let builds = match &request.body.node {
        StatementBody::Explain(inner) => matches!(inner.node, StatementBody::Assemble(_)),
        body => matches!(body, StatementBody::Assemble(_)),
    };
    let checked = bindings::lets(&request.lets, builds, context).and_then(|lets| {
        let plan = statement(&request.body.node, request.body.span, context)?;
        Ok(PlanWithLets { lets, plan })
    });
    context.bindings.leave(mark);
    checked
}

/// Turns conditions without a statement into a query. A condition on `type` names the type whose fields the
/// others may use.
///
/// # Errors
/// Those of [`check`]; E002 for a condition that needs the answer of another RECALL.
pub(crate) fn conditions(given: &[Condition<'_>], context: &mut CheckContext<'_>) -> Result<Query> {
    let mut query = Query::default();
    let grain_type = condition::type_named(given, context)?;
    let found = condition::conditions(given, grain_type, context, &mut query)?;
    match found.feeds.is_empty() {
        true => Ok(query),
        false => Err(Error::new(ErrorKind::UnexpectedToken, "IN (RECALL ...) needs a statement")
            .suggest("list the values")),
    }
}

fn statement(
    body: &StatementBody<'_>,
    place: Span,
    context: &mut CheckContext<'_>,
) -> Result<StatementPlan> {
    match body {
        StatementBody::Recall(recall) => {
            recall::recall(recall, context).map(Box::new).map(StatementPlan::Recall)
        }
        StatementBody::Assemble(assemble) => {
            assemble::assemble(assemble, context).map(StatementPlan::Assemble)
        }
        StatementBody::Set(set) => {
            set_operation(set, context).map(|plan| StatementPlan::Set(Box::new(plan)))
        }
        StatementBody::Exists(target) => context.hash(target).map(StatementPlan::Exists),
        StatementBody::History(history) => {
            history::history(history, context).map(StatementPlan::History)
        }
        StatementBody::Explain(inner) => explain(&inner.node, place, context),
        StatementBody::Describe(describe) => {
            if let Describe::Fields(Some(name)) = describe {
                resolve::hint_at_old_name(name.node, context);
            }
            Ok(StatementPlan::Describe(describe.clone()))
        }
        StatementBody::Batch(entries) => Ok(StatementPlan::Batch(batch(entries, context))),
        StatementBody::Coalesce(branches) => {
            let plans = branches.iter().map(|branch| recall::recall(&branch.node, context));
            plans.collect::<Result<_>>().map(StatementPlan::Coalesce)
        }
        StatementBody::Add(add) => evolve::add(add, context).map(StatementPlan::Add),
        StatementBody::Supersede(supersede) => {
            evolve::supersede(supersede, context).map(StatementPlan::Supersede)
        }
        StatementBody::Revert(revert) => evolve::revert(revert, context).map(StatementPlan::Revert),
    }
}

fn set_operation(set: &SetOp<'_>, context: &mut CheckContext<'_>) -> Result<SetPlan> {
    let left = operand(&set.left, context)?;
    let right = operand(&set.right, context)?;
    Ok(SetPlan { left, operator: set.operator, right })
}

/// Checks an operand, which must yield grains.
fn operand(
    request: &StatementWithLets<'_>,
    context: &mut CheckContext<'_>,
) -> Result<PlanWithLets> {
    let checked = check_request(request, context)?;
    let place = request.body.span;
    let yields = |plan: &RecallPlan| {
        plan.require_whole_grains("an operand", place)?;
        plan.require_no_display("an operand", place)
    };
    match &checked.plan {
        StatementPlan::Recall(plan) => yields(plan)?,
        StatementPlan::Coalesce(branches) => branches.iter().try_for_each(yields)?,
        _ => {}
    }
    Ok(checked)
}

/// Checks the entries of a BATCH, each with the span of its statement; errors stay in their slot.
fn batch(
    entries: &[BatchEntry<'_>],
    context: &mut CheckContext<'_>,
) -> Vec<(Spanned<String>, Result<StatementPlan>)> {
    let slot = |entry: &BatchEntry<'_>| {
        let plan = statement(&entry.body.node, entry.body.span, context);
        (Spanned::new(entry.label.node.to_owned(), entry.body.span), plan)
    };
    entries.iter().map(slot).collect()
}

fn explain(
    body: &StatementBody<'_>,
    place: Span,
    context: &mut CheckContext<'_>,
) -> Result<StatementPlan> {
    context.needs_desugared = true;
    Ok(StatementPlan::Explain(Box::new(ExplainPlan {
        statement: body.to_string(),
        statement_type: body.statement_type(),
        tier: body.tier(),
        plan: statement(body, place, context)?,
    })))
}

impl<'c> CheckContext<'c> {
    /// Returns the context of one request.
    pub(crate) fn new(
        memory: &'c dyn Memory,
        params: &'c Params,
        now: EpochMs,
        explains: bool,
    ) -> Self {
        let (warnings, bindings) = (Vec::new(), Bindings::default());
        let (few, formats, consistency, cache) = (None, false, false, false);
        Self {
            memory,
            params,
            now,
            warnings,
            default_limit_cap: few,
            bindings,
            needs_desugared: explains,
            host_renders_text: formats,
            consistency_requested: consistency,
            cache_allowed: cache,
        }
    }

    /// Adds a warning, unless the same code and message is there already.
    pub(crate) fn warn(&mut self, code: &'static str, message: String) {
        let warning = Warning { code, message };
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }
}
