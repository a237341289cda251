//! RECALL: shortcuts desugared into one query (spec section 5).

use grainstore_format::GrainType;

use super::plan::RecallPlan;
use super::{Context, condition, options, stages};
use crate::ast::{Format, Recall, Stage, Within};
use crate::bounds::{Order, Reach, TimeRange, TypeSet, is_within};
use crate::codes::{self, ErrorKind};
use crate::error::{Error, Result};
use crate::memory::Scope;
use crate::predicate::Predicate;
use crate::query::Query;
use crate::span::{Span, Spanned};
use crate::types::{self, TypeName};

/// Checks a RECALL and desugars it.
pub(super) fn recall(recall: &Recall<'_>, context: &mut Context<'_>) -> Result<RecallPlan> {
    refuse_ambiguous_pairs(recall)?;
    let mut query = Query::default();
    let mut fields = Vec::new();
    let grain_type = named_type(recall, context)?;
    if let Some(grain_type) = grain_type {
        query.types = TypeSet::of(grain_type);
    }
    if let Some(within) = &recall.within {
        query.reach = reach(&within.node, within.span, context)?;
    }
    people(recall, context, &mut query, &mut fields)?;
    times(recall, context, &mut query, &mut fields)?;
    if let Some(conditions) = &recall.conditions {
        condition::conditions(&conditions.node, grain_type, context, &mut query, &mut fields)?;
    }
    let show = options::of_recall(recall.options.as_ref(), context)?;
    query.visibility.superseded |= show.state;
    let steps = stages::steps(recall, context, &mut query)?;
    let plan = RecallPlan {
        query,
        steps,
        matched_fields: distinct(fields),
        format: recall.format.map(|format| format.node),
        show,
    };
    refuse_format_of_number(&plan, recall.format)?;
    Ok(plan)
}

/// The pairs of shortcuts that could mean two things: E060.
fn refuse_ambiguous_pairs(recall: &Recall<'_>) -> Result<()> {
    let stage = |wanted: fn(&Stage<'_>) -> bool| {
        recall.stages.iter().find(|stage| wanted(&stage.node)).map(|stage| stage.span)
    };
    let condition = |name: &str| {
        let mut all = recall.conditions.iter().flat_map(|conditions| &conditions.node);
        all.find(|condition| condition.field.node.name == name).map(|found| found.field.span)
    };
    let recent = recall.recent.as_ref().map(|recent| recent.span);
    let since = recall.since.as_ref().map(|since| since.span);
    let my = recall.my.map(|my| my.span);
    let pairs = [
        ("RECENT", recent, "LIMIT", stage(|stage| matches!(stage, Stage::Limit(_)))),
        ("RECENT", recent, "ORDER BY", stage(|stage| matches!(stage, Stage::OrderBy { .. }))),
        ("SINCE", since, "WHERE time", condition("time")),
        ("SINCE", since, "BETWEEN", recall.between.as_ref().map(|between| between.span)),
        ("MY", my, "WHERE user_id", condition("user_id")),
    ];
    for (first, first_span, second, second_span) in pairs {
        if let (Some(span), Some(_)) = (first_span, second_span) {
            let message = format!("{first} and {second} together are ambiguous");
            return Err(Error::new(ErrorKind::WrongField, message).at(span));
        }
    }
    Ok(())
}

/// The type the statement is about; THREAD implies events.
fn named_type(recall: &Recall<'_>, context: &mut Context<'_>) -> Result<Option<GrainType>> {
    if let Some(name) = &recall.grain_type {
        hint_at_old_name(name.node, context);
    }
    let named = recall.grain_type.as_ref().map(|name| name.node.grain_type);
    match (&recall.thread, named) {
        (Some(thread), Some(other)) if other != GrainType::Event => {
            let message = format!("THREAD finds events, not {}", types::plural_of(other));
            let error = Error::new(ErrorKind::WrongField, message).at(thread.span);
            Err(error.suggest("write RECALL events THREAD \"session\""))
        }
        (Some(_), _) => Ok(Some(GrainType::Event)),
        (None, named) => Ok(named),
    }
}

/// W102 for an old name of a type.
pub(super) fn hint_at_old_name(name: &TypeName, context: &mut Context<'_>) {
    if name.old {
        let plural = types::plural_of(name.grain_type);
        let message = format!("{} are called {plural} since OMS 1.2", name.plural);
        context.warn(codes::OLD_TYPE_NAME, message);
    }
}

/// MY, ABOUT and THREAD.
fn people(
    recall: &Recall<'_>,
    context: &Context<'_>,
    query: &mut Query,
    fields: &mut Vec<&'static str>,
) -> Result<()> {
    if let Some(my) = &recall.my {
        let Some(user) = &context.memory.scope().user_id else {
            let error = Error::new(ErrorKind::UnboundParameter, "MY needs a session with a user");
            return Err(error.at(my.span).suggest("open the session for a user, or drop MY"));
        };
        query.predicates.push(Predicate::text_is("user_id", user.clone()));
        fields.push("user_id");
    }
    if let Some(about) = &recall.about {
        let subject = context.text(&about.node, about.span)?;
        query.predicates.push(Predicate::text_is("subject", subject));
        fields.push("subject");
    }
    if let Some(thread) = &recall.thread {
        let session = context.text(&thread.node, thread.span)?;
        query.predicates.push(Predicate::text_is("session_id", session));
        query.order = Order::Oldest;
        fields.push("session_id");
    }
    Ok(())
}

/// SINCE and BETWEEN.
fn times(
    recall: &Recall<'_>,
    context: &Context<'_>,
    query: &mut Query,
    fields: &mut Vec<&'static str>,
) -> Result<()> {
    if let Some(since) = &recall.since {
        let start = crate::ast::Literal::Text(context.text(&since.node, since.span)?.into());
        let range = TimeRange { from: context.time(&start, since.span)?.from, to: context.now };
        if range.from > range.to {
            let error = Error::new(ErrorKind::WrongType, "SINCE starts in the future");
            return Err(error.at(since.span).suggest("name a time before now"));
        }
        query.time = query.time.and(range);
        fields.push("time");
    }
    if let Some(between) = &recall.between {
        query.time = query.time.and(context.between(&between.node)?);
        fields.push("time");
    }
    Ok(())
}

/// IN: the namespaces to look at, never wider than the session.
pub(super) fn reach(within: &Within<'_>, span: Span, context: &mut Context<'_>) -> Result<Reach> {
    let namespace = context.text(&within.namespace, span)?.to_owned();
    if !allows(context.memory.scope(), &namespace) {
        overwrite(&namespace, context);
        return Ok(Reach::Session);
    }
    Ok(if within.scope { Reach::Subtree(namespace) } else { Reach::Exact(namespace) })
}

/// Whether the namespace is the session's or lies below it.
pub(super) fn allows(scope: &Scope, namespace: &str) -> bool {
    scope.namespace.as_ref().is_none_or(|own| is_within(namespace, own))
}

/// W101: a namespace outside the session.
pub(super) fn overwrite(namespace: &str, context: &mut Context<'_>) {
    let message = format!("namespace \"{namespace}\" is outside the session, whose own was used");
    context.warn(codes::NAMESPACE_REPLACED, message);
}

fn refuse_format_of_number(plan: &RecallPlan, format: Option<Spanned<Format>>) -> Result<()> {
    match format {
        Some(format) if plan.counts() => {
            let error =
                Error::new(ErrorKind::WrongStage, "COUNT answers a number, AS needs grains");
            Err(error.at(format.span).suggest("drop AS or COUNT"))
        }
        _ => Ok(()),
    }
}

fn distinct(names: Vec<&'static str>) -> Vec<&'static str> {
    let mut seen = Vec::with_capacity(names.len());
    for name in names {
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    seen
}
