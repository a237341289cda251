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
mod effects;
mod evolve;
mod history;
mod options;
pub(crate) mod plan;
mod project;
mod recall;
mod resolve;
mod stages;
mod stream;
mod template;

use grainstore_format::EpochMs;

use crate::ast::{Asked, Body, Condition, Describe, Entry, Request, SetOp, Statement};
use crate::codes::{ErrorKind, Warning};
use crate::error::{Error, Result};
use crate::memory::Memory;
use crate::params::Params;
use crate::query::Query;
use crate::span::{Span, Spanned};
use bindings::Bindings;
use plan::{ExplainPlan, Plan, RecallPlan, RequestPlan, SetPlan};

pub(crate) use comparison::too_many_values;
pub(crate) use resolve::ambiguous;

/// The context of a request, and the warnings collected while checking it.
pub(crate) struct Context<'c> {
    pub(crate) memory: &'c dyn Memory,
    pub(crate) params: &'c Params,
    pub(crate) now: EpochMs,
    pub(crate) warnings: Vec<Warning>,
    /// The host's default LIMIT for a RECALL that states none, if it is lower than CAL's.
    pub(crate) few: Option<u64>,
    bindings: Bindings,
    /// True if the desugared form is needed, because the plan is only shown.
    explains: bool,
    /// True if the host renders grains as text even without AS.
    pub(crate) formats: bool,
    /// True if a consistency level was requested.
    pub(crate) consistency: bool,
    /// True if a cached answer was allowed.
    pub(crate) cache: bool,
}

/// Checks a query and turns it into a plan.
///
/// # Errors
/// The first rule broken, with its span.
pub(crate) fn check(asked: &Statement<'_>, context: &mut Context<'_>) -> Result<RequestPlan> {
    match &asked.0 {
        Asked::Statement(request) => check_request(request, context),
        Asked::Define(definition) => template::define(definition, context),
    }
}

/// Checks LETs and a statement.
fn check_request(request: &Request<'_>, context: &mut Context<'_>) -> Result<RequestPlan> {
    let mark = context.bindings.mark();
    let builds = match &request.body.node {
        Body::Explain(inner) => matches!(inner.node, Body::Assemble(_)),
        body => matches!(body, Body::Assemble(_)),
    };
    let checked = bindings::lets(&request.lets, builds, context).and_then(|lets| {
        let plan = statement(&request.body.node, request.body.span, context)?;
        Ok(RequestPlan { lets, plan })
    });
    context.bindings.leave(mark);
    checked
}

/// Turns conditions without a statement into a query. A condition on `type` names the type whose fields the
/// others may use.
///
/// # Errors
/// Those of [`check`]; E002 for a condition that needs the answer of another RECALL.
pub(crate) fn conditions(given: &[Condition<'_>], context: &mut Context<'_>) -> Result<Query> {
    let mut query = Query::default();
    let grain_type = condition::type_named(given, context)?;
    let found = condition::conditions(given, grain_type, context, &mut query)?;
    match found.feeds.is_empty() {
        true => Ok(query),
        false => Err(Error::new(ErrorKind::UnexpectedToken, "IN (RECALL ...) needs a statement")
            .suggest("list the values")),
    }
}

fn statement(body: &Body<'_>, place: Span, context: &mut Context<'_>) -> Result<Plan> {
    match body {
        Body::Recall(recall) => recall::recall(recall, context).map(Box::new).map(Plan::Recall),
        Body::Assemble(assemble) => assemble::assemble(assemble, context).map(Plan::Assemble),
        Body::Set(set) => set_operation(set, context).map(|plan| Plan::Set(Box::new(plan))),
        Body::Exists(target) => context.hash(target).map(Plan::Exists),
        Body::History(history) => history::history(history, context).map(Plan::History),
        Body::Explain(inner) => explain(&inner.node, place, context),
        Body::Describe(describe) => {
            if let Describe::Fields(Some(name)) = describe {
                recall::hint_at_old_name(name.node, context);
            }
            Ok(Plan::Describe(describe.clone()))
        }
        Body::Batch(entries) => Ok(Plan::Batch(batch(entries, context))),
        Body::Coalesce(branches) => {
            let plans = branches.iter().map(|branch| recall::recall(&branch.node, context));
            plans.collect::<Result<_>>().map(Plan::Coalesce)
        }
        Body::Add(add) => evolve::add(add, context).map(Plan::Add),
        Body::Supersede(supersede) => evolve::supersede(supersede, context).map(Plan::Supersede),
        Body::Revert(revert) => evolve::revert(revert, context).map(Plan::Revert),
    }
}

fn set_operation(set: &SetOp<'_>, context: &mut Context<'_>) -> Result<SetPlan> {
    let left = operand(&set.left, context)?;
    let right = operand(&set.right, context)?;
    Ok(SetPlan { left, operator: set.operator, right })
}

/// Checks an operand, which must yield grains.
fn operand(request: &Request<'_>, context: &mut Context<'_>) -> Result<RequestPlan> {
    let checked = check_request(request, context)?;
    let place = request.body.span;
    let yields = |plan: &RecallPlan| {
        plan.yields_grains("an operand", place)?;
        plan.is_not_shown("an operand", place)
    };
    match &checked.plan {
        Plan::Recall(plan) => yields(plan)?,
        Plan::Coalesce(branches) => branches.iter().try_for_each(yields)?,
        _ => {}
    }
    Ok(checked)
}

/// Checks the entries of a BATCH, each with the span of its statement; errors stay in their slot.
fn batch(entries: &[Entry<'_>], context: &mut Context<'_>) -> Vec<(Spanned<String>, Result<Plan>)> {
    let slot = |entry: &Entry<'_>| {
        let plan = statement(&entry.body.node, entry.body.span, context);
        (Spanned::new(entry.label.node.to_owned(), entry.body.span), plan)
    };
    entries.iter().map(slot).collect()
}

fn explain(body: &Body<'_>, place: Span, context: &mut Context<'_>) -> Result<Plan> {
    context.explains = true;
    Ok(Plan::Explain(Box::new(ExplainPlan {
        statement: body.to_string(),
        statement_type: body.statement_type(),
        tier: body.tier(),
        plan: statement(body, place, context)?,
    })))
}

impl<'c> Context<'c> {
    /// Returns the context of one request.
    pub(crate) fn new(
        memory: &'c dyn Memory,
        params: &'c Params,
        now: EpochMs,
        explains: bool,
    ) -> Self {
        let (warnings, bindings) = (Vec::new(), Bindings::default());
        let (few, formats, consistency, cache) = (None, false, false, false);
        Self { memory, params, now, warnings, few, bindings, explains, formats, consistency, cache }
    }

    /// Adds a warning, unless the same code and message is there already.
    pub(crate) fn warn(&mut self, code: &'static str, message: String) {
        let warning = Warning { code, message };
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }
}
