//! CAL answers for people: text if there is some, lines for lists, else JSON. Does not know how they were
//! asked for.

use std::borrow::Cow;

use grainstore::cal::{
    AccessPlan, Answer, BatchSlot, FieldChange, GroupCount, PlanReport, RecallAnswer, RecallReport,
    TemplateOwner,
};
use grainstore::format::{REVIEW_FLAG, Value};

use super::describe;
use super::notes::{beside, note_hidden_parts};
use crate::error::Result;
use crate::output::Output;
use crate::reach::Answered;
use crate::told::{content_line, version_line};

/// Suffix of a value that only grains awaiting their review have.
pub(crate) const UNREVIEWED_SUFFIX: &str = "  (requires_human_review)";

/// Prints an answer: the envelope with --json; otherwise its text, if it has one.
pub(crate) fn show(answered: &Answered, output: &mut Output<'_>) -> Result<()> {
    if output.is_json() {
        return output.json_line(answered);
    }
    let response = &answered.response;
    beside(response, output);
    if is_unformatted(&response.answer) {
        return match answered.told() {
            Some(told) => output.told_document(told),
            None => output.document(response),
        };
    }
    note_hidden_parts(&response.answer, false, output);
    write_answer_text(&response.answer, output)
}

/// Prints one line for each grain of an answer: the score, the address, and the content of the grain. Other
/// answers, and all with --json, are printed like [`show`] does.
pub(crate) fn write_scores(answered: &Answered, output: &mut Output<'_>) -> Result<()> {
    let response = &answered.response;
    let Answer::Grains(grains) = &response.answer else { return show(answered, output) };
    if output.is_json() {
        return show(answered, output);
    }
    beside(response, output);
    for row in &grains.results {
        let (score, address) = (row.score, row.content_address);
        output.line(&format!(
            "{score:.3}  {address}  {}",
            content_line(row.grain.clone(), row.verification_status())
        ))?;
    }
    Ok(())
}

/// Returns `true` if an answer is a list of grains, or of fields chosen from them, without a text.
fn is_unformatted(answer: &Answer) -> bool {
    match answer {
        Answer::Grains(grains) => grains.formatted.is_none(),
        Answer::Coalesced { answer, .. } => is_unformatted(answer),
        _ => false,
    }
}

/// Prints an answer for people, without the notes about it.
pub(crate) fn write_answer_text(shown: &Answer, output: &mut Output<'_>) -> Result<()> {
    lines(shown, output)?;
    note_truncation(shown, output);
    Ok(())
}

fn lines(shown: &Answer, output: &mut Output<'_>) -> Result<()> {
    match shown {
        Answer::Grains(RecallAnswer { formatted: Some(shown), .. })
        | Answer::Count { formatted: Some(shown), .. }
        | Answer::Values { formatted: Some(shown), .. }
        | Answer::Groups { formatted: Some(shown), .. } => text(shown, output),
        Answer::Assembly { formatted_context, .. } => text(&formatted_context.text, output),
        Answer::Count { count, .. } => output.line(&count.to_string()),
        Answer::Exists { exists } => output.line(&exists.to_string()),
        Answer::Values { values, .. } => values.iter().try_for_each(|one| output.line(&value(one))),
        Answer::Groups { groups, .. } => counted(groups, output),
        Answer::Versions { versions, .. } => versions
            .iter()
            .try_for_each(|one| output.line(&version_line(&one.address, &one.grain, &one.state))),
        Answer::Diff { diff, requires_human_review } => {
            differences(diff, output)?;
            if *requires_human_review {
                output.line(&format!("{REVIEW_FLAG}: one of the two waits for its review"))?;
            }
            Ok(())
        }
        Answer::Plan { plan: report } => write_plan(report, output),
        Answer::Description { description } => describe::write_description(description, output),
        Answer::Coalesced { answer: found, .. } => write_answer_text(found, output),
        Answer::Batch { batch } => write_slots(&batch.0, output),
        Answer::Added { content_address } | Answer::Superseded { content_address, .. } => {
            output.line(&content_address.to_string())
        }
        Answer::Defined { template, kept, .. } => {
            let keeper = match kept {
                TemplateOwner::Session => "this session",
                TemplateOwner::Namespace => "its namespace",
            };
            output.line(&format!("template {template} is kept for {keeper}"))
        }
        other => output.document(other),
    }
}

/// Prints a formatted text as it is, with a newline at its end; an empty text is not printed.
fn text(text: &str, output: &mut Output<'_>) -> Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    output.text(text)?;
    if !text.ends_with('\n') {
        output.bytes(b"\n")?;
    }
    Ok(())
}

/// Prints the groups of GROUP BY, with counts aligned right.
fn counted(groups: &[GroupCount], output: &mut Output<'_>) -> Result<()> {
    let most = groups.iter().map(|group| group.count).max().unwrap_or_default();
    let width = most.to_string().len();
    for GroupCount { key, count, requires_human_review, .. } in groups {
        let flag = if *requires_human_review { UNREVIEWED_SUFFIX } else { "" };
        output.line(&format!("{count:>width$}  {}{flag}", value(key)))?;
    }
    Ok(())
}

/// Notes that a list was cut off.
pub(crate) fn note_truncation(answer: &Answer, output: &mut Output<'_>) {
    let (shown, total, what) = match answer {
        Answer::Values { values, total, .. } => (values.len(), *total, "values"),
        Answer::Groups { groups, total, .. } => (groups.len(), Some(*total), "groups"),
        Answer::Versions { versions, total } => (versions.len(), Some(*total), "versions"),
        _ => return,
    };
    match total {
        Some(total) if total > shown as u64 => {
            output.note(&format!("the first {shown} of {total} {what}"));
        }
        None => output.note(&format!("the first {shown} {what}; there are more")),
        Some(_) => {}
    }
}

fn differences(diff: &[FieldChange], output: &mut Output<'_>) -> Result<()> {
    let side =
        |side: &Option<Value>| side.as_ref().map_or("(none)".into(), |one| value(one).into_owned());
    for FieldChange { field, from, to, .. } in diff {
        output.line(&format!("{field}: {} -> {}", side(from), side(to)))?;
    }
    Ok(())
}

/// Prints the plan of EXPLAIN: the statement, then each of its recalls.
fn write_plan(plan: &PlanReport, output: &mut Output<'_>) -> Result<()> {
    output.line(&plan.statement)?;
    output.line(&format!("  tier {}, about {} tokens", plan.tier, plan.estimated_tokens))?;
    for effect in &plan.side_effects {
        output.line(&format!("  changes: {effect}"))?;
    }
    for refusal in &plan.refusals {
        output.line(&format!("  would be refused: {refusal}"))?;
    }
    if !plan.checked_later.is_empty() {
        let checks = plan.checked_later.join(", ");
        output.line(&format!("  looked at only when it runs: {checks}"))?;
    }
    for report in &plan.recalls {
        recall(report, output)?;
    }
    Ok(())
}

fn recall(report: &RecallReport, output: &mut Output<'_>) -> Result<()> {
    output.line(&format!("  {}", report.part))?;
    told("runs", &report.desugared, output)?;
    memory_plan(&report.plan, output)?;
    for waited in &report.waits_for {
        told("waits for", waited, output)?;
    }
    if let (Some(otherwise), Some(plan)) = (&report.otherwise, &report.otherwise_plan) {
        told("otherwise", otherwise, output)?;
        memory_plan(plan, output)?;
    }
    Ok(())
}

/// Prints the memory's plan of one query.
fn memory_plan(plan: &AccessPlan, output: &mut Output<'_>) -> Result<()> {
    let lookups = match plan.lookups.is_empty() {
        true => "none: all of the index".to_owned(),
        false => plan.lookups.join("; "),
    };
    let most =
        plan.scans_at_most.map_or("not known beforehand".to_owned(), |most| most.to_string());
    told("index", &plan.index, output)?;
    told("lookups", &lookups, output)?;
    told("estimated", &plan.estimated.to_string(), output)?;
    told("at most", &most, output)?;
    plan.search.iter().try_for_each(|sought| told("search", sought, output))
}

fn told(name: &str, what: &str, output: &mut Output<'_>) -> Result<()> {
    output.line(&format!("    {name:<10} {what}"))
}

/// Prints the slots of a BATCH, each under its label, with an empty line between them.
fn write_slots(slots: &[(String, BatchSlot)], output: &mut Output<'_>) -> Result<()> {
    for (at, (label, slot)) in slots.iter().enumerate() {
        if at > 0 {
            output.line("")?;
        }
        output.line(&format!("{label}:"))?;
        match slot {
            BatchSlot::Answer(found) => write_answer_text(found, output)?,
            BatchSlot::Failed { error } => failed(error, output)?,
        }
    }
    Ok(())
}

/// Prints a failed slot of a BATCH.
pub(crate) fn failed(error: &grainstore::cal::Error, output: &mut Output<'_>) -> Result<()> {
    output.line(&format!("error: {}: {}", error.code(), error.message()))?;
    output.line(&format!("  hint: {}", error.suggestion()))
}

/// Formats a value for a line: text as it is, any other value as JSON.
fn value(value: &Value) -> Cow<'_, str> {
    match value {
        Value::Str(text) => Cow::Borrowed(text),
        other => Cow::Owned(serde_json::to_string(other).unwrap_or_default()),
    }
}
