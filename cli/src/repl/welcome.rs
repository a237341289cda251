//! Opens the store of a prompt, and prints the greeting: the store, and a statement to try.

use std::io::{self, BufRead, Write};

use grainstore_serve::StoredValues as _;
use serde::Deserialize;
use serde_json::json;
use tempfile::TempDir;

use super::highlight::{BOLD, painted};
use super::prompt::Prompt;
use super::store_values::Newest;
use crate::commands::demo::create_week;
use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::reach::Reach;
use crate::text::escape_line;

/// The statement to try in the demo.
const DEMO_EXAMPLE: &str =
    r#"ASSEMBLE FOR "Monday morning" FROM (RECALL beliefs ABOUT "Clementine") BUDGET 300 tokens;"#;
/// The statement to try in an empty store.
const EMPTY_STORE_EXAMPLE: &str = r#"ADD belief SET subject = "alice" SET relation = "prefers" SET object = "tea" REASON "first";"#;

/// An open store.
pub(crate) struct Opened {
    pub(crate) reach: Reach,
    name: String,
    /// The temporary directory of the demo, deleted with the prompt.
    demo_dir: Option<TempDir>,
}

/// What is wanted of the figures of a store.
#[derive(Deserialize)]
struct Figures {
    grains: u64,
}

impl Opened {
    /// Whether it is encrypted. One of another process is where a key was given, which that process has checked.
    pub(crate) fn is_encrypted(&self, context: &Context<'_>) -> bool {
        match self.reach.session() {
            Some(session) => session.store().is_encrypted(),
            None => context.globals.key_file.is_some(),
        }
    }

    /// Number of grains; `None` if another process has the store open, and does not tell this session.
    fn grains(&self) -> Option<u64> {
        match self.reach.session() {
            Some(session) => session.store().stats().ok().map(|stats| stats.grains),
            None => self.reach.read("stats", &json!({})).ok().map(|of: Figures| of.grains),
        }
    }
}

/// Opens the store of the options, or the demo. On a terminal, the user is asked what to do if there is no
/// store.
pub(crate) fn open(context: &Context<'_>, demo: bool, interactive: bool) -> Result<Opened> {
    if demo {
        return open_week();
    }
    match context.reach() {
        Ok(reach) => Ok(named(context, reach)),
        Err(error) if interactive && error.has_code(Code::NotFound) => {
            ask_for_store(context, error)
        }
        Err(error) => Err(error),
    }
}

fn open_week() -> Result<Opened> {
    let week = tempfile::tempdir().map_err(|error| {
        let message = format!("no temporary directory: {error}");
        Error::new(Code::Io, message, "set TMPDIR")
    })?;
    let session = create_week(week.path())?;
    let reach = Reach::Here(session);
    Ok(Opened { reach, name: "the week of the demo".to_owned(), demo_dir: Some(week) })
}

fn named(context: &Context<'_>, reach: Reach) -> Opened {
    Opened { reach, name: context.globals.store.display().to_string(), demo_dir: None }
}

/// Asks what to do if there is no store.
fn ask_for_store(context: &Context<'_>, missing: Error) -> Result<Opened> {
    let mut out = io::stdout();
    let store = context.globals.store.display().to_string();
    writeln!(out, "There is no store at {}.", escape_line(&store))?;
    write!(
        out,
        "  c  create it\n  d  look around in the week of `grain demo`\n  q  leave\nType c, d or q, then Enter: "
    )?;
    out.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    match answer.trim().to_ascii_lowercase().as_str() {
        "c" | "create" => Ok(named(context, Reach::Shared(context.client(true)?))),
        "d" | "demo" => open_week(),
        _ => Err(missing),
    }
}

/// Prints the greeting: the store, and a statement to try.
pub(crate) fn greet(opened: &Opened, prompt: &Prompt) {
    let grains = opened.grains().map_or_else(String::new, |grains| format!(": {grains} grains"));
    let mut told = format!("grain {}, {}{grains}\n", env!("CARGO_PKG_VERSION"), opened.name);
    told.push_str("A statement ends with ;  Tab completes, .help helps, Ctrl-D leaves.\n");
    let subjects = Newest::of(&opened.reach).subjects();
    let is_plain =
        |subject: &&String| escape_line(subject) == **subject && !subject.contains(['"', '\\']);
    let tried = match subjects.iter().find(is_plain) {
        _ if opened.demo_dir.is_some() => DEMO_EXAMPLE.to_owned(),
        Some(subject) => format!("ASSEMBLE FROM (RECALL ABOUT \"{subject}\") BUDGET 300 tokens;"),
        None if prompt.settings.evolve => EMPTY_STORE_EXAMPLE.to_owned(),
        None => {
            told.push_str("It is empty: `grain put` adds to it, and so does ADD with --evolve.\n");
            "DESCRIBE grain_types;".to_owned()
        }
    };
    let tried = if prompt.screen.colours { painted(&tried, BOLD) } else { tried };
    // A terminal that cannot be written to needs no greeting.
    let _ = writeln!(io::stdout(), "{told}Try: {tried}");
}
