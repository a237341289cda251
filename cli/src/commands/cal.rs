//! `grain cal`: runs one CAL statement.

use std::ffi::OsString;
use std::ops::ControlFlow;

use clap::Args;
use grainstore::EpochMs;
use grainstore::cal::{Answer, Event, Format, REFERENCE, TemplateOwner, Warning, schema};
use grainstore_rpc::{Converted, Following, Question};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::commands::export::stoppable;
use crate::context::Context;
use crate::error::Result;
use crate::input::Source;
use crate::interrupt::stop_at_signals;
use crate::names::{FORMATS, named};
use crate::output::Output;
use crate::reach::Told;
use crate::statement::{ask_formatted, show};
use crate::text::parse_time;

/// Most bytes read of a statement: CAL allows 8 KiB, or 64 in JSON, and refuses more itself.
const MAX_QUERY_BYTES: usize = 128 << 10;

/// The CAL code for a write where only reads are allowed.
pub(crate) const READ_ONLY_CODE: &str = "CAL-E044";

/// Note on a template that only lives in its session.
const SESSION_TEMPLATE_NOTE: &str = "the session of a command ends with it, and the template with the session: add --evolve to \
     keep it for the namespace, or define it in `grain repl` for the statements there";

/// Run one CAL statement: RECALL, ASSEMBLE, HISTORY, EXISTS, COALESCE, BATCH, set operations, EXPLAIN,
/// DESCRIBE, DEFINE TEMPLATE; with --evolve also ADD, SUPERSEDE and REVERT
///
/// Grains are text where the statement or --as asks for it (AS sml, ASSEMBLE), else JSON; values,
/// groups, counts, versions, differences, plans and descriptions are lines. With --json the answer is
/// always the machine envelope. The guide is docs/cal.md.
#[derive(Debug, Args)]
pub(crate) struct Cal {
    /// The statement, in text or as an object of the JSON form; without it and -f, stdin is read
    query: Option<OsString>,
    /// Read the statement from a file; - for stdin
    #[arg(short, long, value_name = "FILE", conflicts_with = "query")]
    file: Option<Source>,
    /// Print CAL on one page, for the prompt of a model; no store is opened
    #[arg(long, conflicts_with_all = ["query", "file", "schema"])]
    reference: bool,
    /// Print the JSON Schema of the JSON form, for a model's structured output; no store is opened
    #[arg(long, conflicts_with_all = ["query", "file"])]
    schema: bool,
    /// Print the statement in its JSON form, and run nothing; no store is opened
    #[arg(long, conflicts_with_all = ["reference", "schema", "stream", "to_text"])]
    to_json: bool,
    /// Print the statement in its normal text form, and run nothing; no store is opened
    #[arg(long, conflicts_with_all = ["reference", "schema", "stream"])]
    to_text: bool,
    /// Bind $NAME: JSON where VALUE is JSON (5, true, ["a"], {"hash": "sha256:..."}), else text
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parse_param)]
    params: Vec<(String, Value)>,
    /// The format of grains, in place of the statement's own
    ///
    /// It acts on an ASSEMBLE and on answers that are whole grains: RECALL, set operations, COALESCE,
    /// and those slots of a BATCH. It is refused where it cannot act.
    #[arg(long = "as", value_parser = named::<Format>(FORMATS), value_name = "FORMAT")]
    format: Option<Format>,
    /// Write an ASSEMBLE with a tight BUDGET and no FORMAT as toon, with a warning
    #[arg(long)]
    auto_toon: bool,
    /// Print the events of an ASSEMBLE while it is put together, a JSON object a line; Ctrl-C cancels it
    ///
    /// Which events, and how much text in each, its STREAM says; without STREAM all of them.
    #[arg(long, conflicts_with_all = ["evolve", "reference", "schema"])]
    stream: bool,
    /// Let the statement write
    #[arg(long)]
    evolve: bool,
    /// The present, for phrases like "last week": epoch milliseconds or RFC 3339
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    now: Option<EpochMs>,
}

impl Cal {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        if self.reference {
            return context.output.bytes(REFERENCE.as_bytes());
        }
        if self.schema {
            return context.output.document(&schema());
        }
        let query = match self.query {
            // Bytes that are not UTF-8 are refused by CAL, with their position.
            Some(query) => query.into_encoded_bytes(),
            None => self.file.unwrap_or_default().read(MAX_QUERY_BYTES, &mut context.output)?,
        };
        if self.to_json || self.to_text {
            let Converted { text, json, .. } = Converted::of(&query)?;
            let json = json.as_ref().filter(|_| self.to_json);
            let form = json.map_or(text.as_str(), |json| json.get());
            return context.output.bytes(format!("{form}\n").as_bytes());
        }
        let question = Question {
            query: &query,
            params: self.params,
            format: self.format,
            evolve: self.evolve,
            auto_toon: self.auto_toon,
            now: self.now,
            ..Question::default()
        };
        if self.stream {
            return stream(question, context);
        }
        let answer = ask_formatted(&question, &context.reach()?);
        let answer = answer.map_err(|error| error.with_hint_for(READ_ONLY_CODE, "add --evolve"))?;
        show(&answer, &mut context.output)?;
        if let Answer::Defined { kept: TemplateOwner::Session, .. } = &answer.response.answer {
            context.output.note(SESSION_TEMPLATE_NOTE);
        }
        Ok(())
    }
}

/// Prints each event as it comes. A closed stdout cancels the statement, and so does one that is not read.
fn stream(question: Question<'_>, context: &mut Context<'_>) -> Result<()> {
    let reach = context.reach()?;
    let output = &mut context.output;
    let patience = output.patience().clone();
    patience.begin();
    let mut written = Ok(());
    let ended = match reach.session() {
        Some(session) => {
            let mut listener = |event: Event| print_event(&event, &mut written, output);
            stoppable(|cancel| {
                stop_at_signals(&patience);
                Question { cancel, ..question }.run_streaming(&session, &mut listener)
            })?
            .map(|response| response.meta.warnings)
        }
        None => {
            let mut listener = |line: &RawValue| match serde_json::from_str::<Line>(line.get()) {
                Ok(line) => print_event(&line.params.event, &mut written, output),
                Err(_) => ControlFlow::Continue(()),
            };
            stoppable(|cancel| {
                stop_at_signals(&patience);
                let mut following =
                    Following { on_event: Some(&mut listener), cancel, ..Following::default() };
                let told =
                    reach.follow("cal_stream", &question.params_of("cal_stream"), &mut following);
                told.map_err(|error| error.of_query(question.query))?.read::<Streamed>()
            })?
            .map(|streamed| streamed.meta.warnings)
        }
    };
    written?;
    for warning in &ended? {
        output.note(&format!("warning: {}: {}", warning.code, warning.message));
    }
    Ok(())
}

/// Prints an event; what cannot be written ends the stream.
fn print_event(
    event: &impl Serialize,
    written: &mut Result<()>,
    output: &mut Output<'_>,
) -> ControlFlow<()> {
    *written = output.json_line(event).and_then(|()| output.flush());
    if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
}

/// A line about an event, of another process.
#[derive(Deserialize)]
struct Line {
    params: LineParams,
}

#[derive(Deserialize)]
struct LineParams {
    event: Told,
}

/// What is wanted of the answer to `cal_stream`.
#[derive(Deserialize)]
struct Streamed {
    #[serde(rename = "_cal")]
    meta: StreamedMeta,
}

#[derive(Deserialize)]
struct StreamedMeta {
    warnings: Vec<Warning>,
}

/// Parses a parameter of the command line.
pub(crate) fn parse_param(text: &str) -> Result<(String, Value), String> {
    let (name, value) = text.split_once('=').ok_or("write it as NAME=VALUE")?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
    Ok((name.to_owned(), value))
}
