//! Options without effect on the answer: an error (E021), or a warning (W004) if the statement still
//! answers what was meant. No option is ignored silently.

use super::CheckContext;
use super::plan::{PipelineOutput, RecallPlan};
use crate::ast::{Recall, WithOption};
use crate::codes::{self, ErrorKind};
use crate::error::{Error, Result};
use crate::span::Span;

/// Checks the options of a RECALL against the form of its answer.
///
/// # Errors
/// E021 for an option that has no effect.
pub(super) fn check(
    plan: &RecallPlan,
    recall: &Recall<'_>,
    context: &mut CheckContext<'_>,
) -> Result<()> {
    for option in recall.options.iter().flat_map(|options| &options.node) {
        match &option.node {
            WithOption::Total => {
                check_grain_option(plan, &option.node, option.span)?;
                warn_total_not_counted(plan, context);
            }
            WithOption::Diversity(_)
            | WithOption::Explanation
            | WithOption::Provenance
            | WithOption::ScoreBreakdown => check_grain_option(plan, &option.node, option.span)?,
            WithOption::ContradictionDetection => warn_contradictions_not_listed(plan, context),
            WithOption::ProgressiveDisclosure(_) | WithOption::IsoTimestamps => {
                check_text_option(plan, &option.node, option.span, context)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Checks an option that adds data to each grain: E021 if the answer has no grains.
fn check_grain_option(plan: &RecallPlan, option: &WithOption<'_>, place: Span) -> Result<()> {
    let Some(end) = non_grain_output(plan.output) else { return Ok(()) };
    let message = format!("{option} is told of grains, and {end}");
    let error = Error::new(ErrorKind::WrongStage, message).at(place);
    Err(error.suggest("drop the option, or the last stage"))
}

/// Warns with W004 if a total is asked for that is counted only where the answer has all matches.
fn warn_total_not_counted(plan: &RecallPlan, context: &mut CheckContext<'_>) {
    if plan.show.dedup.is_some() {
        let message = "total is not counted with dedup, and null where there may be more";
        context.warn(codes::IGNORED_OPTION, message.to_owned());
    }
}

/// Warns with W004 if contradicted grains are included but the contradictions are not listed.
fn warn_contradictions_not_listed(plan: &RecallPlan, context: &mut CheckContext<'_>) {
    if let Some(end) = non_grain_output(plan.output) {
        let message =
            format!("contradicted grains are in, but {end}: what contradicts is not listed");
        context.warn(codes::IGNORED_OPTION, message);
    }
}

/// Checks an option that shapes text: E021 if the answer has no text; W004 if no text was requested.
fn check_text_option(
    plan: &RecallPlan,
    option: &WithOption<'_>,
    place: Span,
    context: &mut CheckContext<'_>,
) -> Result<()> {
    let end = non_grain_output(plan.output)
        .or(plan.select.as_ref().map(|_| "SELECT shows parts of grains"));
    if let Some(end) = end {
        let message = format!("{option} shapes the text of AS, and {end}");
        let error = Error::new(ErrorKind::WrongStage, message).at(place);
        return Err(error.suggest("drop the option, or the stage"));
    }
    if plan.format.is_none() && !context.host_renders_text {
        let message = format!("{option} shapes the text of AS, which is not asked for");
        context.warn(codes::IGNORED_OPTION, message);
    }
    Ok(())
}

/// Returns the form of an answer that has no grains.
fn non_grain_output(end: PipelineOutput) -> Option<&'static str> {
    match end {
        PipelineOutput::Grains => None,
        PipelineOutput::Count => Some("COUNT answers a number"),
        PipelineOutput::Values(_) => Some("an extractor answers values"),
        PipelineOutput::Groups(_) => Some("GROUP BY answers groups"),
    }
}
