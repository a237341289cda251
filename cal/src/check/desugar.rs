//! A RECALL without shortcuts, as shown by EXPLAIN (CAL 8.5, 9): a longer form with the same answer. The
//! extractor of a LET or an IN is at its end, as written.

use std::borrow::Cow;

use crate::ast::{
    Arg, BetweenClause, Condition, ConditionField, ConditionTest, Extractor, InSet, Literal,
    PipelineStage, Recall, SortDirection, TextArg, ThreadClause, WithOption,
};
use crate::fields;
use crate::limits;
use crate::predicate::Comparator;
use crate::span::{Span, Spanned};
use crate::types;

/// Returns the RECALL without shortcuts. `user` replaces MY; `extract` is the extractor of a LET or an IN,
/// which makes a default LIMIT unnecessary like any other end of a pipeline.
pub(super) fn desugar<'a>(
    recall: &Recall<'a>,
    extract: Option<Extractor>,
    user: Option<&str>,
) -> Recall<'a> {
    let mut plain = recall.clone();
    plain.stages.extend(extract.map(|extractor| at(PipelineStage::Extract(extractor))));
    let mut conditions = Vec::new();
    if plain.my.take().is_some() {
        let user = Literal::Text(Cow::Owned(user.unwrap_or("").to_owned()));
        conditions.extend(condition("user_id", equal(user)));
    }
    if let Some(about) = plain.about.take() {
        conditions.extend(condition("subject", equal(literal(about.node))));
    }
    if let Some(like) = plain.like.take() {
        conditions.extend(condition("query", equal(literal(like.node))));
    }
    thread(&mut plain, &mut conditions);
    if let Some(since) = plain.since.take() {
        let now = Literal::Text(Cow::Borrowed("now"));
        let between = BetweenClause { from: at(literal(since.node)), to: at(now) };
        conditions.extend(condition("time", ConditionTest::Between(between)));
    }
    if let Some(between) = plain.between.take() {
        conditions.extend(condition("time", ConditionTest::Between(between.node)));
    }
    if plain.contradictions.take().is_some() {
        conditions.extend(condition("contradicted", equal(Literal::Flag(true))));
        let options = plain.options.get_or_insert_with(|| at(Vec::new()));
        let detection = WithOption::ContradictionDetection;
        if !options.node.iter().any(|option| option.node == detection) {
            options.node.push(at(detection));
        }
    }
    conditions.extend(plain.conditions.take().into_iter().flat_map(|list| list.node));
    conditions.iter_mut().for_each(|condition| inner(condition, user));
    plain.conditions = (!conditions.is_empty()).then(|| at(conditions));
    stages(&mut plain);
    plain
}

/// Replaces THREAD "s" by a condition on events; THREAD FROM stays, as it has no other form.
fn thread<'a>(plain: &mut Recall<'a>, conditions: &mut Vec<Condition<'a>>) {
    let Some(thread) = plain.thread.take() else { return };
    plain.grain_type = types::by_plural("events").map(at);
    match thread.node {
        ThreadClause::Session(session) => {
            conditions.extend(condition("session_id", equal(literal(session))));
            if !sorts(plain) && plain.recent.is_none() {
                plain.stages.insert(0, at(order_by_time(SortDirection::Ascending)));
            }
            if !cuts(plain) && plain.recent.is_none() {
                plain.stages.push(at(PipelineStage::Limit(Arg::Given(
                    limits::DEFAULT_THREAD_LIMIT.into(),
                ))));
            }
        }
        from @ ThreadClause::From(_) => plain.thread = Some(at(from)),
    }
}

/// Adds RECENT before the stages, and the default LIMIT after them.
fn stages(plain: &mut Recall<'_>) {
    if let Some(recent) = plain.recent.take() {
        plain.stages.insert(0, at(PipelineStage::Limit(recent.node)));
        plain.stages.insert(0, at(order_by_time(SortDirection::Descending)));
    }
    if !cuts(plain) {
        let limit = if plain.thread.is_some() {
            limits::DEFAULT_THREAD_LIMIT
        } else {
            limits::DEFAULT_LIMIT
        };
        plain.stages.push(at(PipelineStage::Limit(Arg::Given(limit.into()))));
    }
}

/// Desugars a subquery. Its extractor is removed again, because the IN prints it.
fn inner(condition: &mut Condition<'_>, user: Option<&str>) {
    if let ConditionTest::In(InSet::Recall(recall, extractor)) = &mut condition.test.node {
        **recall = desugar(recall, Some(*extractor), user);
        recall.stages.pop();
    }
}

fn sorts(recall: &Recall<'_>) -> bool {
    matches!(recall.stages.first(), Some(stage) if matches!(stage.node, PipelineStage::OrderBy { .. }))
}

/// Returns `true` if a stage makes the default LIMIT unnecessary.
fn cuts(recall: &Recall<'_>) -> bool {
    let cuts = |stage: &PipelineStage<'_>| {
        !matches!(
            stage,
            PipelineStage::Select(_)
                | PipelineStage::OrderBy { .. }
                | PipelineStage::Offset(_)
                | PipelineStage::Project(_)
        )
    };
    recall.stages.iter().any(|stage| cuts(&stage.node))
}

fn order_by_time<'a>(direction: SortDirection) -> PipelineStage<'a> {
    let field = fields::by_name("time").map(at);
    match field {
        Some(field) => PipelineStage::OrderBy { field, direction: Some(direction) },
        None => PipelineStage::Offset(Arg::Given(0.into())),
    }
}

fn condition<'a>(name: &str, test: ConditionTest<'a>) -> Option<Condition<'a>> {
    let field = ConditionField::Table(fields::by_name(name)?);
    Some(Condition { field: at(field), test: at(test) })
}

fn equal(value: Literal<'_>) -> ConditionTest<'_> {
    ConditionTest::Compare(Comparator::Equal, at(value))
}

fn literal(arg: TextArg<'_>) -> Literal<'_> {
    match arg {
        Arg::Given(text) => Literal::Text(text),
        Arg::Param(name) => Literal::Param(name),
    }
}

/// Wraps generated syntax, which has no span.
fn at<T>(node: T) -> Spanned<T> {
    Spanned::new(node, Span::default())
}
