//! The runner of statements and dot commands, with the session and the settings of the prompt.
//!
//! It does not depend on the origin of an entry: a terminal, a pipe or a file.

use std::fmt::Write;
use std::time::{Duration, Instant};

use grainstore::EpochMs;
use grainstore::cal::Format;
use grainstore::cal::{Answer, BatchSlot, Response, SyntaxKind, scan};
use grainstore_rpc::Question;
use serde_json::Value;

use super::dot::{Command, DOT_COMMANDS, Explain, Mode, Param};
use super::history_file::Kept;
use super::screen::Screen;
use super::split::{self, Entry};
use super::table::table;
use crate::commands::READ_ONLY_CODE;
use crate::commands::audit::Audit;
use crate::commands::stats::Stats;
use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::globals::Globals;
use crate::input::Source;
use crate::output::Output;
use crate::reach::{Answered, Reach};
use crate::statement::{
    beside, failed, note_hidden_parts, note_truncation, show, write_answer_text,
};

/// The largest file that `.read` takes, in bytes.
const MAX_FILE_BYTES: usize = 4 << 20;
/// The deepest nesting of files that `.read` each other.
const MAX_DEPTH: usize = 8;

/// The settings of the prompt.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) mode: Mode,
    pub(crate) timer: bool,
    pub(crate) explain: bool,
    pub(crate) evolve: bool,
    pub(crate) params: Vec<(String, Value)>,
    pub(crate) now: Option<EpochMs>,
}

/// The next action of the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    Continue,
    /// Continues, and clears the history of typed lines.
    ClearHistory,
    Exit,
}

/// A session with its settings and its screen.
pub(crate) struct Prompt {
    pub(crate) globals: Globals,
    pub(crate) reach: Reach,
    pub(crate) settings: Settings,
    pub(crate) screen: Screen,
    pub(crate) history: Kept,
    /// The number of files being read, nested in each other.
    pub(crate) depth: usize,
}

impl Prompt {
    /// Runs one entry.
    pub(crate) fn run(&mut self, entry: &Entry) -> Result<Flow> {
        // A short statement may end before it polls for cancellation.
        if self.screen.interrupt.was_pressed() {
            let hint = "run it again if it is still wanted";
            return Err(Error::new(Code::Cancelled, "stopped by Ctrl-C", hint));
        }
        match entry {
            Entry::Dot(line, _) => self.command(Command::parse(line)?),
            Entry::Statement(text, _) => self.statement(text).map(|()| Flow::Continue),
        }
    }

    fn statement(&mut self, text: &[u8]) -> Result<()> {
        if self.settings.explain {
            self.explain(text);
        }
        let started = Instant::now();
        let answered = self.ask(text)?;
        let took = started.elapsed();
        self.answer(&answered)?;
        if self.settings.timer {
            self.screen.tell(&format!("{}\n", timing_note(&answered.response, took)));
        }
        Ok(())
    }

    /// Shows the plan of a statement, if it has one. Errors are shown when the statement runs.
    fn explain(&mut self, text: &[u8]) {
        if let Ok(plan) = self.ask(&with_explain(text)) {
            // If the plan cannot be written, the answer fails in the same way.
            let _ = self.answer(&plan);
        }
    }

    fn ask(&self, text: &[u8]) -> Result<Answered> {
        let names = String::from_utf8_lossy(text);
        let pieces = scan(&names);
        let told = |word: &str| {
            let is_word = |piece: &grainstore::cal::SyntaxSpan| {
                piece.kind == SyntaxKind::Keyword
                    && names
                        .get(piece.range.clone())
                        .is_some_and(|text| text.eq_ignore_ascii_case(word))
            };
            pieces.iter().any(is_word)
        };
        let is_asked = |name: &str| {
            pieces.iter().any(|piece| {
                let text = names.get(piece.range.clone()).unwrap_or_default();
                piece.kind == SyntaxKind::Parameter && text.strip_prefix('$') == Some(name)
            })
        };
        // A format in the statement has precedence over the mode.
        let own = told("AS") || told("FORMAT");
        let format = match self.settings.mode {
            Mode::As(format) if !own && !self.globals.json && gives_text(text) => Some(format),
            _ => None,
        };
        let params = self.settings.params.iter().filter(|(name, _)| is_asked(name));
        let question = |cancel| Question {
            query: text,
            params: params.cloned().collect(),
            format,
            evolve: self.settings.evolve,
            now: self.settings.now,
            cancel,
            ..Question::default()
        };
        let answer =
            self.screen.interrupt.run_cancellable(|cancel| self.reach.ask(&question(cancel)));
        answer
            .map_err(|error| error.with_hint_for(READ_ONLY_CODE, "start the prompt with --evolve"))
    }

    /// Shows an answer in the mode of the settings.
    fn answer(&mut self, answered: &Answered) -> Result<()> {
        let response = &answered.response;
        let width = self.screen.width();
        let tables = self.settings.mode == Mode::Table;
        self.write_output(|output| {
            if output.is_json() || !tables {
                return show(answered, output);
            }
            beside(response, output);
            note_hidden_parts(&response.answer, true, output);
            write_table(&response.answer, width, output)?;
            if let Answer::Grains(grains) = &response.answer
                && let Some(told) = row_count_note(grains.results.len(), grains.total)
            {
                output.note(&told);
            }
            Ok(())
        })
    }

    /// Shows the output of `write`, and its notes on stderr.
    fn write_output(&mut self, write: impl FnOnce(&mut Output<'_>) -> Result<()>) -> Result<()> {
        let (mut out, mut notes) = (Vec::new(), Vec::new());
        let written = write(&mut Output::new(&mut out, &mut notes, self.globals.json));
        self.screen.show(&out)?;
        self.screen.tell(&String::from_utf8_lossy(&notes));
        written
    }

    fn command(&mut self, command: Command) -> Result<Flow> {
        match command {
            Command::Exit => return Ok(Flow::Exit),
            Command::Help => self.write_output(help)?,
            Command::Mode(mode) => {
                self.settings.mode = mode.unwrap_or(self.settings.mode);
                self.show_setting(&format!("mode: {}", self.settings.mode.name()), mode.is_none())?;
            }
            Command::Timer(on) => {
                self.settings.timer = on.unwrap_or(self.settings.timer);
                self.show_setting(
                    &format!("timer: {}", switch(self.settings.timer)),
                    on.is_none(),
                )?;
            }
            Command::Pager(on) => {
                self.screen.paging = on.unwrap_or(self.screen.paging);
                self.show_setting(&format!("pager: {}", switch(self.screen.paging)), on.is_none())?;
            }
            Command::Explain(Explain::Switch(on)) => {
                self.settings.explain = on.unwrap_or(self.settings.explain);
                self.show_setting(
                    &format!("explain: {}", switch(self.settings.explain)),
                    on.is_none(),
                )?;
            }
            Command::Explain(Explain::Statement(statement)) => {
                let plan = self.ask(&with_explain(statement.as_bytes()))?;
                self.answer(&plan)?;
            }
            Command::Param(param) => self.param(param)?,
            Command::Read(path) => return self.read(&path),
            Command::Output(path) => self.screen.redirect(path.as_deref())?,
            Command::Stats => self.run_command(|context| Stats::default().run(context))?,
            Command::Audit(count) => self.run_command(|context| Audit::last(count).run(context))?,
            Command::Tables => self.statement(b"RECALL | GROUP BY type")?,
            Command::Schema(None) => self.statement(b"DESCRIBE grain_types")?,
            Command::Schema(Some(of)) => {
                self.statement(format!("DESCRIBE fields {of}").as_bytes())?;
            }
            Command::History { clear: false } => self.show_setting(&self.history.told(), true)?,
            Command::History { clear: true } => {
                self.history.clear()?;
                return Ok(Flow::ClearHistory);
            }
        }
        Ok(Flow::Continue)
    }

    /// Shows a setting: on a terminal always, else only if it was asked for.
    fn show_setting(&mut self, what: &str, asked: bool) -> Result<()> {
        if asked || self.screen.interactive {
            self.write_output(|output| output.line(what))
        } else {
            Ok(())
        }
    }

    /// Runs a command of `grain` on the session of the prompt.
    fn run_command(&mut self, run: impl FnOnce(&mut Context<'_>) -> Result<()>) -> Result<()> {
        let (reach, globals) = (self.reach.clone(), self.globals.clone());
        let (mut out, mut notes) = (Vec::new(), Vec::new());
        let output = Output::new(&mut out, &mut notes, globals.json);
        let done = run(&mut Context::for_prompt(&reach, globals, output));
        self.screen.show(&out)?;
        self.screen.tell(&String::from_utf8_lossy(&notes));
        done
    }

    fn param(&mut self, param: Param) -> Result<()> {
        let params = &mut self.settings.params;
        match param {
            Param::Clear => params.clear(),
            Param::Bind(name, value) => {
                params.retain(|(known, _)| *known != name);
                params.push((name, value));
            }
            Param::List => {
                let told: Vec<_> =
                    params.iter().map(|(name, value)| format!("${name} = {value}")).collect();
                return self
                    .write_output(|output| told.iter().try_for_each(|line| output.line(line)));
            }
        }
        Ok(())
    }

    /// Runs the entries of a file, up to the first error.
    fn read(&mut self, path: &str) -> Result<Flow> {
        if self.depth >= MAX_DEPTH {
            let message = format!("{path} is read by files that read each other");
            return Err(Error::new(Code::Limit, message, "let no file read itself"));
        }
        let mut notes = Vec::new();
        let mut out = Vec::new();
        let file: Source = path.parse().unwrap_or_default();
        if file == Source::Stdin {
            return Err(Error::usage(Code::Schema, ".read takes a file", "write .read FILE"));
        }
        let mut text = file.read(MAX_FILE_BYTES, &mut Output::new(&mut out, &mut notes, false))?;
        text.push(b'\n');
        let (mut entries, rest) = split::entries(&text);
        entries.extend(split::final_entry(&text, rest));
        self.depth = self.depth.saturating_add(1);
        let flow = entries.iter().try_fold(Flow::Continue, |flow, entry| match flow {
            Flow::Exit => Ok(flow),
            _ => self.run(entry).map_err(|error| {
                error.in_context(&format!("{path}, line {}", entry.line().saturating_add(1)))
            }),
        });
        self.depth = self.depth.saturating_sub(1);
        flow
    }
}

/// Returns `true` if a format applies to the answer of a statement, or if the statement does not parse.
fn gives_text(text: &[u8]) -> bool {
    let Ok(source) = grainstore::cal::QuerySource::read_bytes(text) else { return true };
    source.statement().map_or(true, |statement| statement.renders_text())
}

/// Returns the EXPLAIN of a statement, after its LETs.
fn with_explain(statement: &[u8]) -> Vec<u8> {
    let (lets, body) =
        statement.split_at_checked(split::explain_offset(statement)).unwrap_or((b"", statement));
    [lets, b"EXPLAIN ", body].concat()
}

/// Writes an answer as a table if it is a list, else as lines.
fn write_table(answer: &Answer, width: u16, output: &mut Output<'_>) -> Result<()> {
    if let Answer::Batch { batch } = answer {
        for (at, (label, slot)) in batch.0.iter().enumerate() {
            if at > 0 {
                output.line("")?;
            }
            output.line(&format!("{label}:"))?;
            match slot {
                BatchSlot::Answer(answer) => write_table(answer, width, output)?,
                BatchSlot::Failed { error } => failed(error, output)?,
            }
        }
        return Ok(());
    }
    match table(answer, width) {
        Some(table) => {
            output.bytes(table.as_bytes())?;
            note_truncation(answer, output);
            Ok(())
        }
        None => write_answer_text(answer, output),
    }
}

/// Returns the number of grains shown, in words; `None` for no grains, which is reported elsewhere.
fn row_count_note(shown: usize, total: Option<u64>) -> Option<String> {
    let shown = u64::try_from(shown).unwrap_or(u64::MAX);
    match (shown, total) {
        (0, _) => None,
        (shown, Some(total)) if total > shown => Some(format!("{shown} of {total} grains")),
        (1, None) => Some("1 grain; there may be more (WITH total counts them)".to_owned()),
        (shown, None) => {
            Some(format!("{shown} grains; there may be more (WITH total counts them)"))
        }
        (1, _) => Some("1 grain".to_owned()),
        (shown, _) => Some(format!("{shown} grains")),
    }
}

fn timing_note(response: &Response, took: Duration) -> String {
    let used = response.meta.budget;
    let ms = took.as_secs_f64() * 1000.0;
    let mut told = format!("{ms:.1} ms, {} grains looked at", used.grains_scanned);
    if used.tokens_used > 0 {
        // Writing into a string cannot fail.
        let _ = write!(told, ", {} tokens", used.tokens_used);
    }
    told
}

fn switch(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

fn help(output: &mut Output<'_>) -> Result<()> {
    output.line("A statement ends with ; and may go on over several lines. Tab completes.")?;
    for query in [
        "RECALL beliefs ABOUT \"alice\";",
        "ASSEMBLE FOR \"a reply\" FROM (RECALL ABOUT \"alice\") BUDGET 300 tokens;",
        "DESCRIBE fields goal;",
    ] {
        output.line(&format!("  {query}"))?;
    }
    output.line("")?;
    for dot in &DOT_COMMANDS {
        let form = format!("{} {}", dot.name, dot.arguments);
        output.line(&format!("{form:<30} {}", dot.summary))?;
    }
    output.line("")?;
    output.line(&format!("FORMAT: {}", Format::ALL.map(Format::name).join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_asked_for_where_the_grammar_wants_it() {
        for (statement, expected) in [
            ("RECALL", "EXPLAIN RECALL"),
            ("LET $a = RECALL; RECALL", "LET $a = RECALL; EXPLAIN RECALL"),
        ] {
            assert_eq!(with_explain(statement.as_bytes()), expected.as_bytes());
        }
    }

    #[test]
    fn grains_are_counted_in_words() {
        for (shown, total, expected) in [
            (0, Some(0), None),
            (1, Some(1), Some("1 grain")),
            (20, Some(57), Some("20 of 57 grains")),
            (20, None, Some("20 grains; there may be more (WITH total counts them)")),
        ] {
            assert_eq!(row_count_note(shown, total).as_deref(), expected);
        }
    }
}
