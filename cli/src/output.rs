//! Output: data on stdout, notes on stderr, both either for people or as JSON.

use std::borrow::Cow;
use std::io::Write;

use grainstore_rpc::Patience;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::reach::Told;
use crate::text::{escape_json, escape_line, escape_text};

/// The two output streams of a command.
pub(crate) struct Output<'w> {
    out: &'w mut dyn Write,
    notes: &'w mut dyn Write,
    json: bool,
    /// True if data goes to a terminal.
    terminal: bool,
    /// The patience of the writer of data with its reader.
    patience: Patience,
}

impl<'w> Output<'w> {
    pub(crate) fn new(out: &'w mut dyn Write, notes: &'w mut dyn Write, json: bool) -> Self {
        Self { out, notes, json, terminal: false, patience: Patience::default() }
    }

    /// Sets whether data goes to a terminal.
    pub(crate) fn on_terminal(self, terminal: bool) -> Self {
        Self { terminal, ..self }
    }

    /// Sets the patience of the writer that data goes to.
    pub(crate) fn with_patience(self, patience: Patience) -> Self {
        Self { patience, ..self }
    }

    /// The patience of the writer with its reader.
    pub(crate) fn patience(&self) -> &Patience {
        &self.patience
    }

    /// Returns `true` if the caller asked for JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Returns `true` if data goes to a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// The raw stdout, for binary data and protocols.
    pub(crate) fn raw(&mut self) -> &mut dyn Write {
        self.out
    }

    /// Writes bytes unchanged.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.out.write_all(bytes)?)
    }

    /// Writes a text of several lines: unchanged, except that on a terminal control characters are made
    /// visible.
    pub(crate) fn text(&mut self, text: &str) -> Result<()> {
        let shown = if self.terminal { escape_text(text) } else { Cow::Borrowed(text) };
        self.bytes(shown.as_bytes())
    }

    /// Writes bytes unchanged, and notes once they are out.
    pub(crate) fn binary(&mut self, bytes: &[u8], notes: &[&str]) -> Result<()> {
        self.bytes(bytes)?;
        self.flush()?;
        notes.iter().for_each(|note| self.note(note));
        Ok(())
    }

    /// Writes a line of data, with control characters made visible.
    pub(crate) fn line(&mut self, line: &str) -> Result<()> {
        Ok(writeln!(self.out, "{}", escape_line(line))?)
    }

    /// Writes one JSON document on a line.
    pub(crate) fn json_line(&mut self, value: &impl Serialize) -> Result<()> {
        let json = serde_json::to_string(value)?;
        Ok(writeln!(self.out, "{}", escape_json(&json))?)
    }

    /// Writes an answer: as JSON with --json, else for people.
    pub(crate) fn answer(
        &mut self,
        answer: &impl Serialize,
        show: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        if self.json { self.json_line(answer) } else { show(self) }
    }

    /// Writes one JSON document: on one line with --json, else indented.
    pub(crate) fn document(&mut self, value: &impl Serialize) -> Result<()> {
        if self.json {
            return self.json_line(value);
        }
        let json = serde_json::to_string_pretty(value)?;
        Ok(writeln!(self.out, "{}", escape_json(&json))?)
    }

    /// Writes the JSON document of another process, as [`document`](Self::document) does.
    pub(crate) fn told_document(&mut self, told: &Told) -> Result<()> {
        let json = if self.json { Cow::Borrowed(told.json()) } else { told.indented().into() };
        Ok(writeln!(self.out, "{}", escape_json(&json))?)
    }

    /// Writes a note to stderr. If that is closed, the note is dropped.
    pub(crate) fn note(&mut self, note: &str) {
        let _ = writeln!(self.notes, "{}", escape_line(note));
    }

    /// Flushes stdout.
    pub(crate) fn flush(&mut self) -> Result<()> {
        Ok(self.out.flush()?)
    }
}

/// Ignores a closed stdout, for work that must go on when the reader of its output is gone.
pub(crate) fn ignore_closed_output(written: Result<()>) -> Result<()> {
    match written {
        Err(Error::OutputClosed) => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_exact_for_a_file_and_steers_no_terminal() {
        let text = "<belief>\u{200f}a\u{1b}[2Jb</belief>\n";
        let written = |terminal| {
            let (mut out, mut notes) = (Vec::new(), Vec::new());
            let mut output = Output::new(&mut out, &mut notes, false).on_terminal(terminal);
            output.text(text).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(written(false), text);
        assert_eq!(written(true), "<belief>\\u{200f}a\\u{1b}[2Jb</belief>\n");
    }
}
