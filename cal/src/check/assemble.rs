//! ASSEMBLE: labels, priority and budget (CAL 8.2).

use grainstore_sml::Budget;

use super::plan::{AssemblePlan, SourceInput, SourcePlan};
use super::{CheckContext, options, recall, stream, template};
use crate::ast::{
    Assemble, AssembleSource, BudgetClause, BudgetUnit, Format, FormatClause, SourceOrigin,
};
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::limits;
use crate::span::Spanned;

/// Checks an ASSEMBLE and each of its sources.
pub(super) fn assemble(
    assemble: &Assemble<'_>,
    context: &mut CheckContext<'_>,
) -> Result<AssemblePlan> {
    let mut intent = None;
    if let Some(clause) = &assemble.intent {
        let text = context.text(&clause.node, clause.span)?;
        if text.chars().count() > limits::MAX_INTENT_CHARS {
            let message = format!("FOR has at most {} characters", limits::MAX_INTENT_CHARS);
            return Err(Error::new(ErrorKind::QueryTooLong, message).at(clause.span));
        }
        intent = Some(text.to_owned());
    }
    let mut sources: Vec<SourcePlan> = Vec::with_capacity(assemble.sources.len());
    for (at, source) in assemble.sources.iter().enumerate() {
        let label = label(&source.node, at);
        if sources.iter().any(|known| known.label == label) {
            let span = source.node.label.as_ref().map_or(source.span, |label| label.span);
            let error =
                Error::new(ErrorKind::BoundTwice, format!("two sources are called {label}"));
            return Err(error.at(span).suggest("give each source a label of its own"));
        }
        // A format chosen by the host replaces FORMAT; it does not render the sources one by one.
        let formats = std::mem::take(&mut context.host_renders_text);
        let explains = context.needs_desugared;
        context.needs_desugared |= options::asks_explanation(assemble.options.as_ref());
        let from = source_input(source, context);
        (context.host_renders_text, context.needs_desugared) = (formats, explains);
        sources.push(SourcePlan { label, from: from? });
    }
    let show = options::assemble_options(
        assemble.options.as_ref(),
        &sources.iter().map(|source| source.from.grain_type()).collect::<Vec<_>>(),
        context,
    )?;
    for source in &mut sources {
        if let SourceInput::Recall(plan) = &mut source.from {
            options::pass_to_source(&show, plan);
        }
    }
    Ok(AssemblePlan {
        name: assemble.name.as_ref().map(|name| name.node.to_owned()),
        intent,
        priority: priority(assemble.priority.as_ref(), &sources)?,
        sources,
        budget: budget(assemble.budget.as_ref(), context)?,
        has_budget_clause: assemble.budget.is_some(),
        stream: stream::stream(assemble.stream.as_ref(), context)?,
        format: assemble.format.as_ref().and_then(|format| format_of(&format.node)),
        template: match &assemble.format {
            Some(format) => template::format_template(&format.node, context)?,
            None => None,
        },
        show,
    })
}

/// Returns the format named by FORMAT; `None` for a template.
fn format_of(clause: &FormatClause<'_>) -> Option<Format> {
    match clause {
        FormatClause::Name(name) => Some(name.format()),
        FormatClause::Template(_) | FormatClause::Inline(_) => None,
    }
}

/// Returns the label as written, or `source1`, `source2` ... by position.
fn label(source: &AssembleSource<'_>, at: usize) -> String {
    source.label.as_ref().map_or_else(|| format!("source{}", at + 1), |label| label.node.to_owned())
}

/// Checks the origin of a source's grains.
fn source_input(
    source: &Spanned<AssembleSource<'_>>,
    context: &mut CheckContext<'_>,
) -> Result<SourceInput> {
    match &source.node.body {
        SourceOrigin::Recall(recall) => {
            let plan = recall::recall(recall, context)?;
            plan.require_whole_grains("a source", source.span)?;
            Ok(SourceInput::Recall(Box::new(plan)))
        }
        SourceOrigin::Let(name) => match context.bindings.find(name, false)? {
            Some(at) => Ok(SourceInput::Let(at, context.bindings.requested_grains(at))),
            None => {
                let message = format!("${} is not bound by a LET", name.node);
                let error = Error::new(ErrorKind::UnboundParameter, message).at(name.span);
                Err(error.suggest(format!("write LET ${} = RECALL ...; first", name.node)))
            }
        },
    }
}

/// Returns the index of every source once, highest priority first: those listed, then the others in FROM
/// order.
fn priority(
    clause: Option<&Spanned<Vec<Spanned<&str>>>>,
    sources: &[SourcePlan],
) -> Result<Vec<usize>> {
    let mut order: Vec<usize> = Vec::with_capacity(sources.len());
    for label in clause.iter().flat_map(|clause| &clause.node) {
        let Some(at) = sources.iter().position(|source| source.label == label.node) else {
            let message = format!("PRIORITY names \"{}\", which is no source", label.node);
            let error = Error::new(ErrorKind::UnexpectedToken, message).at(label.span);
            let labels = sources.iter().map(|source| source.label.clone());
            return Err(error.suggest("use the labels of FROM").valid(labels));
        };
        if order.contains(&at) {
            let message = format!("PRIORITY names \"{}\" twice", label.node);
            return Err(Error::new(ErrorKind::BoundTwice, message).at(label.span));
        }
        order.push(at);
    }
    for at in 0..sources.len() {
        if !order.contains(&at) {
            order.push(at);
        }
    }
    Ok(order)
}

fn budget(
    clause: Option<&Spanned<BudgetClause<'_>>>,
    context: &CheckContext<'_>,
) -> Result<Budget> {
    let unit = clause.map_or(BudgetUnit::Tokens, |clause| clause.node.unit);
    let (default, most) = match unit {
        BudgetUnit::Tokens => limits::TOKEN_BUDGET,
        BudgetUnit::Grains => limits::GRAIN_BUDGET,
    };
    let mut amount = default;
    if let Some(clause) = clause {
        amount = context.whole(&clause.node.amount.node, clause.node.amount.span)?;
        if amount == 0 {
            let error = Error::new(ErrorKind::BudgetExceeded, "BUDGET is at least 1");
            return Err(error.at(clause.node.amount.span));
        }
        if amount > most {
            let Spanned { node, span } = &clause.node.amount;
            let written = node.as_written(amount);
            let message = format!("BUDGET {written} is above the maximum of {most}");
            return Err(Error::new(ErrorKind::BudgetExceeded, message).at(*span));
        }
    }
    let amount = usize::try_from(amount).unwrap_or(usize::MAX);
    Ok(match unit {
        BudgetUnit::Tokens => Budget::Tokens(amount),
        BudgetUnit::Grains => Budget::Grains(amount),
    })
}
