//! RECALL: shortcuts desugared into one query (CAL 8.1, 9).

use std::borrow::Cow;

use grainstore_format::GrainType;
use grainstore_sml::{Format, RowFormat};

use super::desugar::desugar;
use super::plan::{PipelineOutput, RecallPlan, ThreadTarget};
use super::resolve::{hint_at_old_name, own_or};
use super::{CheckContext, comparison, condition, ineffective_options, options, stages};
use crate::ast::{
    Arg, AsFormat, ConditionField, Extractor, NamespaceClause, PipelineStage, Recall, ThreadClause,
};
use crate::bounds::{Reach, TimeRange, TypeSet};
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::predicate::Predicate;
use crate::query::Query;
use crate::search::Rerank;
use crate::span::{Span, Spanned};
use crate::types;

/// Checks a RECALL and desugars it.
pub(super) fn recall(recall: &Recall<'_>, context: &mut CheckContext<'_>) -> Result<RecallPlan> {
    recall_for(recall, None, context)
}

/// Checks a RECALL from which a LET or an IN takes `extract`.
pub(super) fn recall_for(
    recall: &Recall<'_>,
    extract: Option<Extractor>,
    context: &mut CheckContext<'_>,
) -> Result<RecallPlan> {
    refuse_ambiguous_pairs(recall)?;
    let mut query = Query::default();
    let mut fields = Vec::new();
    let grain_type = named_type(recall, context)?;
    if let Some(grain_type) = grain_type {
        query.types = TypeSet::of(grain_type);
    }
    if let Some(within) = &recall.within {
        query.reach = namespace_scope(&within.node, within.span, context)?;
    }
    let about = my_and_about(recall, context, &mut query, &mut fields)?;
    like(recall, context, &mut query)?;
    let thread = thread(recall, context, &mut query, &mut fields)?;
    times(recall, context, &mut query, &mut fields)?;
    let mut feeds = Vec::new();
    if let Some(conditions) = &recall.conditions {
        let found = condition::conditions(&conditions.node, grain_type, context, &mut query)?;
        fields.extend(found.matched);
        feeds = found.feeds;
    }
    let mut show = options::recall_options(recall.options.as_ref(), grain_type, context)?;
    if recall.contradictions.is_some() {
        show.contradictions = true;
        query.require(Predicate::contradicted(true));
        fields.push("contradicted".into());
    }
    query.visibility.superseded |= show.state;
    query.visibility.contradicted |= show.contradictions;
    query.rerank = show.diversity.map(|of| Rerank { diversity: Some(of), ..Rerank::default() });
    let pipeline = stages::pipeline(recall, grain_type, show.dedup, context, &mut query)?;
    let shown = context.needs_desugared || show.explanation;
    let user = context.memory.scope().user_id.as_deref();
    let mut desugared = shown.then(|| desugar(recall, extract, user));
    if let (Some(plain), true) = (&mut desugared, pipeline.limited_by_default)
        && let Some(PipelineStage::Limit(limit)) =
            plain.stages.last_mut().map(|last| &mut last.node)
    {
        *limit = Arg::Given(stages::default_limit(recall, context).into());
    }
    let whole = pipeline.end == PipelineOutput::Grains && pipeline.select.is_none();
    let format = recall.format.map(|format| format.node);
    let plan = RecallPlan {
        fallback_search: about.filter(|_| query.search.is_none()),
        query,
        feeds,
        thread,
        steps: pipeline.steps,
        limited_by_default: pipeline.limited_by_default,
        output: pipeline.end,
        select: pipeline.select,
        project: pipeline.project,
        grain_type,
        matched_fields: distinct(fields),
        format: format.filter(|_| whole).and_then(AsFormat::of_grains),
        rows: format.filter(|_| !whole).and_then(AsFormat::of_rows),
        show,
        desugared: desugared.map(|recall| recall.to_string()),
    };
    ineffective_options::check(&plan, recall, context)?;
    refuse_conflicting_output(&plan, recall)?;
    Ok(plan)
}

/// Refuses pairs of shortcuts that would be ambiguous: E060 (CAL 9.8).
fn refuse_ambiguous_pairs(recall: &Recall<'_>) -> Result<()> {
    let stage = |wanted: fn(&PipelineStage<'_>) -> bool| {
        recall.stages.iter().find(|stage| wanted(&stage.node)).map(|stage| stage.span)
    };
    let condition = |name: &str| {
        let mut all = recall.conditions.iter().flat_map(|conditions| &conditions.node);
        let named = |condition: &&crate::ast::Condition<'_>| matches!(condition.field.node, ConditionField::Table(field) if field.name == name);
        all.find(named).map(|found| found.field.span)
    };
    let recent = recall.recent.as_ref().map(|recent| recent.span);
    let since = recall.since.as_ref().map(|since| since.span);
    let my = recall.my.map(|my| my.span);
    let about = recall.about.as_ref().map(|about| about.span);
    let pairs = [
        ("ABOUT", about, "LIKE", recall.like.as_ref().map(|like| like.span)),
        ("RECENT", recent, "LIMIT", stage(|stage| matches!(stage, PipelineStage::Limit(_)))),
        (
            "RECENT",
            recent,
            "ORDER BY",
            stage(|stage| matches!(stage, PipelineStage::OrderBy { .. })),
        ),
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

/// Returns the type the statement is about; THREAD implies events.
fn named_type(recall: &Recall<'_>, context: &mut CheckContext<'_>) -> Result<Option<GrainType>> {
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

/// Adds MY and ABOUT; returns the text of ABOUT.
fn my_and_about(
    recall: &Recall<'_>,
    context: &CheckContext<'_>,
    query: &mut Query,
    fields: &mut Vec<Cow<'static, str>>,
) -> Result<Option<String>> {
    if let Some(my) = &recall.my {
        let Some(user) = &context.memory.scope().user_id else {
            let error = Error::new(ErrorKind::UnboundParameter, "MY needs a session with a user");
            return Err(error.at(my.span).suggest("open the session for a user, or drop MY"));
        };
        query.require(Predicate::own_text("user_id", user.clone()));
        fields.push("user_id".into());
    }
    let Some(about) = &recall.about else { return Ok(None) };
    let subject = context.text(&about.node, about.span)?;
    query.require(Predicate::own_text("subject", subject));
    fields.push("subject".into());
    Ok(Some(subject.to_owned()))
}

/// Adds LIKE.
fn like(recall: &Recall<'_>, context: &CheckContext<'_>, query: &mut Query) -> Result<()> {
    if let Some(like) = &recall.like {
        let text = context.text(&like.node, like.span)?;
        query.require_search(comparison::text_query(text, None, like.span)?);
    }
    Ok(())
}

/// Adds THREAD: the events of a session, or returns the message whose thread is resolved later.
fn thread(
    recall: &Recall<'_>,
    context: &CheckContext<'_>,
    query: &mut Query,
    fields: &mut Vec<Cow<'static, str>>,
) -> Result<Option<ThreadTarget>> {
    let Some(thread) = &recall.thread else { return Ok(None) };
    match &thread.node {
        ThreadClause::Session(session) => {
            let session = context.text(session, thread.span)?;
            query.require(Predicate::own_text("session_id", session));
            fields.push("session_id".into());
            Ok(None)
        }
        ThreadClause::From(message) => {
            let message = context.hash(&Spanned::new(message.clone(), thread.span))?;
            let address = context.address(&message)?;
            fields.push("parent_message_id".into());
            Ok(Some(ThreadTarget { message, address }))
        }
    }
}

/// Adds SINCE and BETWEEN. SINCE ends now (ruling 9).
fn times(
    recall: &Recall<'_>,
    context: &CheckContext<'_>,
    query: &mut Query,
    fields: &mut Vec<Cow<'static, str>>,
) -> Result<()> {
    if let Some(since) = &recall.since {
        let start = crate::ast::Literal::Text(context.text(&since.node, since.span)?.into());
        let range = TimeRange { from: context.time(&start, since.span)?.from, to: context.now };
        if range.from > range.to {
            let error = Error::new(ErrorKind::WrongType, "SINCE starts in the future");
            return Err(error.at(since.span).suggest("name a time before now"));
        }
        query.time = query.time.and(range);
        fields.push("time".into());
    }
    if let Some(between) = &recall.between {
        query.time = query.time.and(context.between(&between.node)?);
        fields.push("time".into());
    }
    Ok(())
}

/// Returns the namespaces of IN, never wider than the session's.
pub(super) fn namespace_scope(
    within: &NamespaceClause<'_>,
    span: Span,
    context: &mut CheckContext<'_>,
) -> Result<Reach> {
    let namespace = context.text(&within.namespace, span)?.to_owned();
    let namespace = own_or(namespace, context);
    Ok(if within.include_descendants { Reach::Subtree(namespace) } else { Reach::Exact(namespace) })
}

/// Refuses clauses that contradict the end of the pipeline (E021) and extractors of a type without the
/// field (E022).
fn refuse_conflicting_output(plan: &RecallPlan, recall: &Recall<'_>) -> Result<()> {
    let last = recall.stages.last().map_or_else(Span::default, |stage| stage.span);
    let whole = plan.output == PipelineOutput::Grains && plan.select.is_none();
    if plan.show.summarize && !whole {
        let error = Error::new(ErrorKind::WrongStage, "summarize is about whole grains");
        return Err(error.at(last).suggest("drop summarize, or the stage"));
    }
    if let PipelineOutput::Values(extractor) = plan.output {
        check_extractor(extractor, plan, last)?;
    }
    let what = match plan.output {
        PipelineOutput::Count => "COUNT answers a number",
        PipelineOutput::Values(_) => "an extractor answers values",
        PipelineOutput::Groups(_) => "GROUP BY answers groups",
        PipelineOutput::Grains if plan.select.is_some() => "SELECT shows parts of grains",
        PipelineOutput::Grains => {
            return recall.format.map_or(Ok(()), |format| holds_grains(&format));
        }
    };
    if let Some(project) = &plan.project {
        let message = format!("{what}, PROJECT needs whole grains");
        let error = Error::new(ErrorKind::WrongStage, message).at(project.place);
        return Err(error.suggest("drop PROJECT, or the stage"));
    }
    recall.format.map_or(Ok(()), |format| holds_rows(&format, plan, what))
}

/// E021: the formats of rows alone hold no grains.
fn holds_grains(format: &Spanned<AsFormat>) -> Result<()> {
    if format.node.of_grains().is_some() {
        return Ok(());
    }
    let message = format!("{} holds values, and the answer is whole grains", format.node.name());
    let error = Error::new(ErrorKind::WrongStage, message).at(format.span);
    let advice = "name what to show by SELECT, or use one of the listed formats";
    Err(error.suggest(advice).valid(Format::ALL.map(Format::name)))
}

/// E021: the other formats hold grains alone, and no text shows addresses.
fn holds_rows(format: &Spanned<AsFormat>, plan: &RecallPlan, what: &str) -> Result<()> {
    let refused = |message: String| Error::new(ErrorKind::WrongStage, message).at(format.span);
    if plan.output == PipelineOutput::Values(Extractor::Hashes) {
        let error = refused("HASHES answers addresses, which no formatted text shows".to_owned());
        return Err(error.suggest("drop AS"));
    }
    if plan.rows.is_some() {
        return Ok(());
    }
    let error = refused(format!("{what}, and {} holds whole grains", format.node.name()));
    let names = RowFormat::ALL.map(RowFormat::name);
    Err(error.suggest("use one of the listed formats, or drop AS").valid(names))
}

/// Checks an extractor: E022, because only beliefs are sure to have subjects and objects.
pub(super) fn check_extractor(extractor: Extractor, plan: &RecallPlan, place: Span) -> Result<()> {
    match plan.grain_type {
        Some(other) if other != GrainType::Belief && extractor != Extractor::Hashes => {
            let plural = types::plural_of(other);
            let message = format!("{} of {plural} are not defined", extractor.text());
            Err(Error::new(ErrorKind::WrongExtractor, message).at(place))
        }
        _ => Ok(()),
    }
}

fn distinct(names: Vec<Cow<'static, str>>) -> Vec<Cow<'static, str>> {
    let mut seen = Vec::with_capacity(names.len());
    for name in names {
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    seen
}
