//! Notes about an answer, on stderr: warnings, failed sources, omitted grains, and parts of the answer that
//! its text does not show. The answer itself is printed elsewhere.

use grainstore::cal::{
    Answer, BatchSlot, RecallAnswer, Response, ResultRow, SourceAnswer, SourceAnswers,
};

use crate::output::Output;

/// Prints the warnings of an answer, and what is missing from it.
pub(crate) fn beside(response: &Response, output: &mut Output<'_>) {
    for warning in &response.meta.warnings {
        output.note(&format!("warning: {}: {}", warning.code, warning.message));
    }
    note_missing(&response.answer, output);
}

fn note_missing(answer: &Answer, output: &mut Output<'_>) {
    match answer {
        Answer::Grains(RecallAnswer { summarized, results, .. }) => {
            for sentence in summarized.iter().flatten() {
                output.note(&format!("in short: {sentence}"));
            }
            if results.is_empty() {
                output.note("nothing found");
            }
        }
        Answer::Coalesced { answer, .. } => note_missing(answer, output),
        Answer::Assembly { sources, .. } => note_sources(sources, output),
        _ => {}
    }
}

/// Prints which sources failed, and how many grains did not fit.
fn note_sources(SourceAnswers(sources): &SourceAnswers, output: &mut Output<'_>) {
    for (label, source) in sources {
        if let Some(error) = &source.error {
            let (code, message) = (error.code(), error.message());
            output.note(&format!("source {label} failed: {code}: {message}"));
        }
    }
    let sum = |count: fn(&SourceAnswer) -> u64| {
        sources.iter().fold(0_u64, |sum, (_, source)| sum.saturating_add(count(source)))
    };
    let omitted = sum(|source| source.omitted);
    if omitted > 0 {
        let shown = sum(|source| source.full)
            .saturating_add(sum(|source| source.standard))
            .saturating_add(sum(|source| source.summary));
        let all = shown.saturating_add(omitted);
        output.note(&format!("{omitted} of {all} grains did not fit the budget"));
    }
}

/// Prints the names of requested parts that only the JSON answer has: text has no place for them, a table
/// little.
pub(crate) fn note_hidden_parts(answer: &Answer, tabled: bool, output: &mut Output<'_>) {
    let mut names = Vec::new();
    hidden_parts(answer, tabled, &mut names);
    names.dedup();
    if !names.is_empty() {
        output.note(&format!("{}: in the JSON answer (--json)", names.join(", ")));
    }
}

fn hidden_parts(answer: &Answer, tabled: bool, names: &mut Vec<&'static str>) {
    match answer {
        Answer::Grains(grains) if tabled || grains.formatted.is_some() => {
            hidden_row_parts(&grains.results, tabled, names);
        }
        Answer::Coalesced { answer, .. } => hidden_parts(answer, tabled, names),
        Answer::Assembly { sources: SourceAnswers(sources), .. } => {
            let has = |held: fn(&SourceAnswer) -> bool| sources.iter().any(|(_, one)| held(one));
            if has(|source| source.formatted.is_some()) {
                names.push("the texts of sources");
            }
            if has(|source| source.summarized.is_some()) {
                names.push("the summaries of sources");
            }
        }
        Answer::Batch { batch } => {
            for (_, slot) in &batch.0 {
                if let BatchSlot::Answer(answer) = slot {
                    hidden_parts(answer, tabled, names);
                }
            }
        }
        _ => {}
    }
}

/// Adds the names of the extra parts of grains. A table shows the state of each.
fn hidden_row_parts(rows: &[ResultRow], tabled: bool, names: &mut Vec<&'static str>) {
    let Some(row) = rows.first() else { return };
    for (name, is_there) in [
        ("state", row.state.is_some() && !tabled),
        ("score_breakdown", row.score_breakdown.is_some()),
        ("explanation", row.explanation.is_some()),
        ("provenance", row.provenance.is_some()),
        ("contradictions", row.contradictions.is_some()),
    ] {
        if is_there {
            names.push(name);
        }
    }
}
