//! The line editor: when a line is complete, its colours, completions and hints.

use std::borrow::Cow;

use rustyline::completion::{Candidate as Offered, Completer, FilenameCompleter};
use rustyline::config::{ColorMode, Config};
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::{Hint, Hinter, HistoryHinter};
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Context, Editor, Helper};

use super::complete::{Candidate, complete, dot_line};
use super::highlight::{BOLD, DIM, highlighted, painted};
use super::split;
use super::store_values::Newest;
use crate::error::{Code, Error, Result};

/// Lines of history that are kept.
const MAX_HISTORY_LINES: usize = 1000;
/// The most candidates listed without asking.
const COMPLETION_PROMPT_LIMIT: usize = 60;

/// The line editor of the prompt.
pub(crate) type Line = Editor<Help, FileHistory>;

/// Creates a line editor with its helper.
pub(crate) fn editor(help: Help) -> Result<Line> {
    let colours = if help.colours { ColorMode::Enabled } else { ColorMode::Disabled };
    let config = Config::builder()
        .max_history_size(MAX_HISTORY_LINES)
        .and_then(|config| config.history_ignore_dups(true))
        .map(|config| {
            config
                .history_ignore_space(true)
                .completion_type(CompletionType::List)
                // List at once: a first Tab that shows nothing would be taken for no completion.
                .completion_show_all_if_ambiguous(true)
                .completion_prompt_limit(COMPLETION_PROMPT_LIMIT)
                .color_mode(colours)
                .build()
        });
    let mut editor = config.and_then(Editor::with_config).map_err(|error| failed(&error))?;
    editor.set_helper(Some(help));
    Ok(editor)
}

/// Converts the error of a line that could not be read.
pub(crate) fn failed(error: &rustyline::error::ReadlineError) -> Error {
    let message = format!("cannot read from the terminal: {error}");
    Error::new(Code::Io, message, "pipe the statements in: grain repl < FILE")
}

/// The helper of the line editor.
pub(crate) struct Help {
    pub(crate) held: Newest,
    /// Names of the bound parameters.
    pub(crate) bound: Vec<String>,
    pub(crate) colours: bool,
}

impl Helper for Help {}

impl Validator for Help {
    fn validate(&self, context: &mut ValidationContext) -> rustyline::Result<ValidationResult> {
        Ok(match split::is_finished(context.input()) {
            true => ValidationResult::Valid(None),
            false => ValidationResult::Incomplete,
        })
    }
}

impl Highlighter for Help {
    fn highlight<'l>(&self, line: &'l str, _pos: usize) -> Cow<'l, str> {
        if self.colours { highlighted(line) } else { Cow::Borrowed(line) }
    }

    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _: bool) -> Cow<'b, str> {
        if self.colours { Cow::Owned(painted(prompt, BOLD)) } else { Cow::Borrowed(prompt) }
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        if self.colours { Cow::Owned(painted(hint, DIM)) } else { Cow::Borrowed(hint) }
    }

    fn highlight_char(&self, _line: &str, _pos: usize, kind: CmdKind) -> bool {
        self.colours && kind != CmdKind::MoveCursor
    }
}

/// A hint after the cursor.
pub(crate) struct Shown {
    text: String,
    /// True if the right arrow inserts it.
    taken: bool,
}

impl Hint for Shown {
    fn display(&self) -> &str {
        &self.text
    }

    fn completion(&self) -> Option<&str> {
        self.taken.then_some(self.text.as_str())
    }
}

impl Hinter for Help {
    type Hint = Shown;

    fn hint(&self, line: &str, pos: usize, context: &Context<'_>) -> Option<Shown> {
        if pos < line.len() {
            return None;
        }
        if let Some(text) = continuation_hint(line) {
            return Some(Shown { text: text.to_owned(), taken: false });
        }
        // Hints are grey; without colours they would look like typed text.
        let typed = HistoryHinter::new().hint(line, pos, context).filter(|_| self.colours);
        typed.map(|text| Shown { text, taken: true })
    }
}

/// Returns the hint for a statement that is still open after Enter: the token that would complete it.
fn continuation_hint(line: &str) -> Option<&'static str> {
    if !line.ends_with('\n') || split::is_finished(line) {
        return None;
    }
    let is_open = !split::is_finished(&format!("{line};"));
    let ends_with = |end: &str| is_open && split::is_finished(&format!("{line}{end};"));
    Some(match () {
        () if ends_with("\"") => "-- a text in quotes is still open",
        () if ends_with("}") => "-- the text of a template is still open; it ends with }",
        () => "-- goes on; a statement ends with ;",
    })
}

impl Offered for Candidate {
    fn display(&self) -> &str {
        &self.display
    }

    fn replacement(&self) -> &str {
        &self.replacement
    }
}

impl Completer for Help {
    type Candidate = Candidate;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Candidate>)> {
        let before = line.get(..pos).unwrap_or_default();
        let names_file =
            |command: &str| command.starts_with(".read ") || command.starts_with(".output ");
        if dot_line(before).is_some_and(names_file) {
            let (start, paths) = FilenameCompleter::new().complete_path(line, pos)?;
            let candidate = |pair: rustyline::completion::Pair| Candidate {
                display: pair.display,
                replacement: pair.replacement,
            };
            return Ok((start, paths.into_iter().map(candidate).collect()));
        }
        let bound: Vec<&str> = self.bound.iter().map(String::as_str).collect();
        Ok(complete(before, &bound, &self.held))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_is_told_for_what() {
        for (line, expected) in [
            ("", None),
            ("RECALL", None),
            ("RECALL\n", Some("a statement ends with ;")),
            ("RECALL \"open\n", Some("a text in quotes")),
            ("LET $a = RECALL;\n", Some("a statement ends with ;")),
            ("RECALL;\n", None),
            ("DEFINE TEMPLATE t ELEMENT {\n", Some("it ends with }")),
            ("DEFINE TEMPLATE t { ELEMENT { a;\n", Some("it ends with }")),
            ("DEFINE TEMPLATE t ELEMENT { a }\n", Some("a statement ends with ;")),
        ] {
            let told = continuation_hint(line);
            assert_eq!(told.is_some(), expected.is_some(), "{line:?}: {told:?}");
            assert!(told.unwrap_or_default().contains(expected.unwrap_or_default()), "{line:?}");
        }
    }
}
