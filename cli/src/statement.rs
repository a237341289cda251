//! CAL answers for people: `show` prints them, `describe` those of DESCRIBE, `beside` the notes on stderr.

mod answer_text;
mod describe;
mod notes;

use grainstore::cal::QuerySource;
use grainstore_rpc::Question;

use crate::error::{Code, Error, Result};
use crate::reach::{Answered, Reach};

pub(crate) use answer_text::{
    UNREVIEWED_SUFFIX, failed, note_truncation, show, write_answer_text, write_scores,
};
pub(crate) use notes::{beside, note_hidden_parts};

/// Runs a statement for a terminal, where a format that has no effect is refused rather than ignored: before
/// the statement runs if its kind never gives text, else once the answer turns out to have none.
pub(crate) fn ask_formatted(question: &Question<'_>, reach: &Reach) -> Result<Answered> {
    if question.format.is_some()
        && let Ok(source) = QuerySource::read_bytes(question.query)
        && let Ok(statement) = source.statement()
        && !statement.renders_text()
    {
        return Err(format_without_effect());
    }
    let answered = reach.ask(question)?;
    if question.format.is_some() && !answered.response.answer.has_text() {
        return Err(format_without_effect());
    }
    Ok(answered)
}

fn format_without_effect() -> Error {
    let message = "--as cannot act here: the answer is no list of whole grains";
    let hint = "leave --as out, or drop SELECT, COUNT, GROUP BY and the like; --json gives any answer as JSON";
    Error::new(Code::Schema, message, hint)
}
