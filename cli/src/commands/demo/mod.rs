//! `grain demo`: a week of an assistant's memory in a new store, and CAL queries on it.
//!
//! Uses only the public calls of the engine. The context is printed on stdout; the story, timings, the
//! refusal and the history on stderr.

mod week_script;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use grainstore::cal::Response;
use grainstore::{EpochMs, ManualClock, OpenOptions, Session, SessionOptions, Store};
use grainstore_rpc::{Question, Version};
use serde::Serialize;
use serde_json::json;

use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::statement::show;
use crate::told::version_line;
use week_script::{Played, play};

/// Name of the store in its directory.
const STORE_NAME: &str = "week.grains";
/// The namespace of the week.
const NAMESPACE: &str = "demo:studio";
/// The user it is about.
const USER: &str = "marisol";
/// The assistant that writes it. The audit log has its pseudonym, by which `grain audit --by` finds it.
const ACTOR: &str = "did:web:example.com:agents:quill";
/// Time of the queries: Sunday 15 March 2026, 20:00 UTC, after the last grain.
pub(super) const QUERY_TIME: EpochMs = EpochMs::new(1_773_604_800_000);

/// The statement that assembles the context.
const CONTEXT_STATEMENT: &str = r#"ASSEMBLE monday FOR "what an assistant should know on Monday morning"
FROM rules: (RECALL beliefs WHERE tags INCLUDE ["mg:protected"]),
     clementine: (RECALL beliefs ABOUT "Clementine"),
     people: (RECALL beliefs WHERE subject IN ("Bertram Oke", "Tomo Varga", "marisol")),
     goals: (RECALL goals LIMIT 6),
     said: (RECALL events RECENT 4)
BUDGET 600 tokens
PRIORITY rules > clementine > people > goals > said"#;

/// Subject and relation whose history is printed.
const HISTORY_OF: (&str, &str) = ("open day", "seats");

/// Show what this is: a week of memory, a context for a model, a refused change, a history
///
/// Builds a fresh store in a temporary directory, which is removed afterwards. The context (SML) goes
/// to stdout, the rest to stderr.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Build the store here and leave it for `grain --store DIR ...`
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

/// The JSON answer of the demo.
#[derive(Serialize)]
struct Told<'t> {
    #[serde(flatten)]
    played: &'t Played,
    context: &'t Response,
    history: Vec<Version>,
}

impl Demo {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let temporary = tempfile::tempdir().map_err(|error| {
            let message = format!("no temporary directory: {error}");
            Error::new(Code::Io, message, "set TMPDIR, or use --keep DIR")
        })?;
        let path = self.keep.clone().unwrap_or_else(|| temporary.path().join(STORE_NAME));
        let (session, played) = play_week(&path)?;
        write_demo(&played, &session, context)?;
        session.store().close()?;
        if let Some(path) = &self.keep {
            context.output.note(&format!("The store is left at {}.", path.display()));
        }
        Ok(())
    }
}

/// Creates the week in a new store, for a session at the prompt.
pub(crate) fn create_week(directory: &Path) -> Result<Session> {
    play_week(&directory.join(STORE_NAME)).map(|(session, _)| session)
}

/// Plays the week into a new store.
fn play_week(path: &Path) -> Result<(Session, Played)> {
    // The store's clock follows the week, so that its history reads as if it had happened then.
    let clock = Arc::new(ManualClock::following());
    let options = OpenOptions::new().create(true).clock(Arc::<ManualClock>::clone(&clock));
    let store = Store::open(path, &options)?;
    if !store.was_created() {
        let message = format!("there is a store at {} already", path.display());
        return Err(Error::new(Code::Conflict, message, "name another directory with --keep"));
    }
    let session = store.session(SessionOptions {
        namespace: Some(NAMESPACE.to_owned()),
        user_id: Some(USER.to_owned()),
        actor: Some(ACTOR.to_owned()),
        ..SessionOptions::default()
    });
    let played = play(&session, &clock)?;
    clock.set(QUERY_TIME);
    Ok((session, played))
}

/// Prints what happened, and runs the queries.
fn write_demo(played: &Played, session: &Session, context: &mut Context<'_>) -> Result<()> {
    let asked = Instant::now();
    let answer =
        Question { query: CONTEXT_STATEMENT.as_bytes(), ..Question::default() }.ask(session)?;
    let took = asked.elapsed();
    let (subject, relation) = HISTORY_OF;
    let history = session.history_of(subject, relation, None, None)?;
    let history = history.into_iter().map(Version::try_from).collect::<Result<Vec<_>>>()?;
    let output = &mut context.output;
    if output.is_json() {
        return output.document(&json!(Told { played, context: &answer, history }));
    }
    output.note("A week at a museum workshop, remembered by its assistant:");
    output.note(&format!(
        "  {} grains put and {} superseded in {} ms, each synced to disk before the next",
        played.puts, played.supersessions, played.elapsed_ms
    ));
    output.note("");
    output.note("What a model is given on Monday, assembled by this CAL statement:");
    for line in CONTEXT_STATEMENT.lines() {
        output.note(&format!("  {line}"));
    }
    let used = answer.meta.budget;
    output.note(&format!(
        "  ({} tokens of 600, {} grains of {} seen, {} us)",
        used.tokens_used,
        used.grains_returned,
        used.grains_scanned,
        took.as_micros()
    ));
    output.note("");
    show(&answer.into(), output)?;
    output.flush()?;
    output.note("");
    output.note("What was refused, and stands in the audit log:");
    for refused in &played.refused {
        output.note(&format!("  {}: {}: {}", refused.what, refused.code, refused.message));
    }
    output.note("");
    output.note(&format!("What is known of the {subject}'s {relation}, newest first:"));
    for version in history {
        output.note(&format!(
            "  {}",
            version_line(&version.address, &version.grain, &version.state.state)
        ));
    }
    Ok(())
}
