//! `grain repl`, and `grain` alone on a terminal: runs statements and dot commands one after the other.
//!
//! Modules in the order an entry goes through them:
//!
//! - `welcome`: opens the store and prints the greeting. `history_file`: the history file.
//! - `editor`: the line editor, with `complete` (completion), `store_values` (values of the
//!   store), `highlight`.
//! - `split`: text to entries; `dot`: the table of dot commands.
//! - `prompt`: runs an entry.
//! - `table`, `screen`, `pager`: output of the answer.

mod complete;
mod dot;
mod editor;
mod highlight;
mod history_file;
mod pager;
mod prompt;
mod screen;
mod split;
mod store_values;
mod table;
mod welcome;

use std::io;

use clap::Args;
use grainstore::EpochMs;
use grainstore::cal::Format;
use grainstore_rpc::{Line, read_line};
use rustyline::error::ReadlineError;
use rustyline::history::History;
use serde_json::Value;

use crate::commands::parse_param;
use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::interrupt::Interrupt;
use crate::names::{FORMATS, named};
use crate::reach::Reach;
use crate::text::parse_time;
use dot::Mode;
use editor::{Help, editor};
use history_file::Kept;
use prompt::{Flow, Prompt, Settings};
use screen::Screen;
use store_values::Newest;

pub(crate) use screen::is_on_terminal;

/// The prompt string.
const PROMPT: &str = "grain> ";
/// The largest unterminated statement in bytes. A shorter one that is too long for CAL gets the error of CAL.
const MAX_OPEN_BYTES: usize = 64 << 10;

/// Ask one statement after the other: the prompt, which `grain` alone opens on a terminal
///
/// Statements end with ; and dot commands stand on a line of their own: .help lists them. From a pipe each
/// statement is answered in turn, without colours and without a banner; errors go to stderr, the next
/// statement runs, and the exit code is that of the first error. The guide is docs/prompt.md.
#[derive(Debug, Default, Args)]
pub(crate) struct Repl {
    /// Let statements write
    #[arg(long)]
    evolve: bool,
    /// Format of the grains; a table on a terminal and sml elsewhere if not given
    #[arg(long = "as", value_parser = named::<Format>(FORMATS), value_name = "FORMAT")]
    format: Option<Format>,
    /// Bind $NAME: JSON where VALUE is JSON, else text
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parse_param)]
    params: Vec<(String, Value)>,
    /// The present, for phrases like "last week": epoch milliseconds or RFC 3339
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    now: Option<EpochMs>,
    /// Keep nothing of what is typed
    #[arg(long)]
    no_history: bool,
    /// Open the week of `grain demo`, which is gone when the prompt is left
    #[arg(long)]
    demo: bool,
}

impl Repl {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let interactive = is_on_terminal() && !context.output.is_json();
        let opened = welcome::open(context, self.demo, interactive)?;
        context.tell_unshared();
        let colours = interactive && highlight::colours_wanted();
        let mode = match self.format {
            Some(format) => Mode::As(format),
            None if interactive => Mode::Table,
            None => Mode::As(Format::Sml),
        };
        let prompt = Prompt {
            globals: context.globals.clone(),
            reach: opened.reach.clone(),
            settings: Settings {
                mode,
                timer: false,
                explain: false,
                evolve: self.evolve,
                params: self.params,
                now: self.now,
            },
            screen: Screen::new(interactive, colours),
            history: Kept::of_store(opened.is_encrypted(context), !self.no_history),
            depth: 0,
        };
        if !interactive {
            return run_piped(prompt);
        }
        welcome::greet(&opened, &prompt);
        run_interactive(prompt, &opened.reach)
    }
}

/// Runs the prompt on a terminal until the user leaves.
fn run_interactive(mut prompt: Prompt, reach: &Reach) -> Result<()> {
    let help = Help { held: Newest::of(reach), bound: Vec::new(), colours: prompt.screen.colours };
    let mut editor = editor(help)?;
    // The line editor installs its SIGINT handler when it is created, and needs it only while a line is
    // edited.
    prompt.screen.interrupt = Interrupt::install()?;
    let kept = prompt.history.prepare().and_then(|path| {
        let path = path.map(std::path::Path::to_owned);
        if let Some(path) = &path {
            editor.load_history(path).map_err(io::Error::other)?;
        }
        Ok(path)
    });
    let kept = kept.unwrap_or_else(|error| {
        prompt.screen.tell(&format!("{}: but {error}\n", prompt.history.told()));
        None
    });
    loop {
        if let Some(help) = editor.helper_mut() {
            help.held.forget();
            help.bound = prompt.settings.params.iter().map(|(name, _)| name.clone()).collect();
        }
        let line = match editor.readline(PROMPT) {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => return Ok(()),
            Err(error) => return Err(editor::failed(&error)),
        };
        let mut text = line.clone().into_bytes();
        text.push(b'\n');
        let (mut entries, rest) = split::entries(&text);
        // A terminal that cannot edit lines may return an incomplete entry.
        entries.extend(split::final_entry(&text, rest));
        let is_kept = !entries.is_empty() && line.len() <= MAX_OPEN_BYTES;
        if is_kept
            && editor.add_history_entry(line.as_str()).unwrap_or(false)
            && let Some(path) = &kept
        {
            // A history that cannot be written must not prevent the answer.
            let _ = editor.append_history(path);
        }
        prompt.screen.interrupt.reset();
        for entry in &entries {
            match prompt.run(entry) {
                Ok(Flow::Continue) => {}
                Ok(Flow::ClearHistory) => drop(editor.history_mut().clear()),
                Ok(Flow::Exit) | Err(Error::OutputClosed) => return Ok(()),
                Err(error) => {
                    prompt.screen.tell_error(&error, false);
                    break;
                }
            }
        }
    }
}

/// Runs statements from a pipe, each as soon as it is complete.
fn run_piped(mut prompt: Prompt) -> Result<()> {
    let mut stdin = io::stdin().lock();
    let (mut buffer, mut text) = (Vec::new(), Vec::new());
    let (mut before, mut first) = (0_usize, None);
    loop {
        let read = read_line(&mut stdin, &mut buffer, MAX_OPEN_BYTES)?;
        text.extend_from_slice(&buffer);
        text.push(b'\n');
        let (mut entries, rest) = split::entries(&text);
        if read == Line::End {
            entries.extend(split::final_entry(&text, rest));
        }
        for entry in &entries {
            match prompt.run(entry) {
                Ok(Flow::Continue | Flow::ClearHistory) => {}
                Ok(Flow::Exit) => {
                    return first.map_or(Ok(()), |code| Err(Error::AlreadyReported(code)));
                }
                Err(Error::OutputClosed) => return Err(Error::OutputClosed),
                Err(error) => {
                    let error = error.in_context(&line_label(before, entry.line()));
                    prompt.screen.tell_error(&error, prompt.globals.json);
                    first.get_or_insert(error.exit_code());
                }
            }
        }
        let done = text.get(..rest).unwrap_or_default();
        before = before.saturating_add(done.iter().filter(|byte| **byte == b'\n').count());
        text.drain(..rest);
        match read {
            Line::End => return first.map_or(Ok(()), |code| Err(Error::AlreadyReported(code))),
            Line::Read if text.len() <= MAX_OPEN_BYTES => {}
            _ => {
                let message = format!(
                    "{}: more than {MAX_OPEN_BYTES} bytes, and no ; yet",
                    line_label(before, 0)
                );
                return Err(Error::new(Code::TooLarge, message, "end each statement with ;"));
            }
        }
    }
}

fn line_label(before: usize, line: usize) -> String {
    format!("line {}", before.saturating_add(line).saturating_add(1))
}
