//! Paging of long answers: by $PAGER, by `less` where it is not set and there is one, else by a simple built-in pager.

use std::env;
use std::io::{self, ErrorKind, Write};
use std::process::{Command, Stdio};

use rustyline::history::MemHistory;
use rustyline::{Config, Editor};
use unicode_width::UnicodeWidthStr;

use crate::error::Result;

/// The variable that names the pager.
const PAGER_VARIABLE: &str = "PAGER";
/// The pager where none is named.
const DEFAULT_PAGER: &str = "less";
/// Default options of `less`: quit if the text fits one screen, pass colours through, do not clear the
/// screen.
const DEFAULT_LESS_OPTIONS: &str = "FRX";

/// Returns `true` if the environment asks for a pager.
pub(crate) fn is_wanted() -> bool {
    env::var_os(PAGER_VARIABLE).is_some()
}

/// Shows a text in a pager.
pub(crate) fn page(text: &str, columns: u16, rows: u16) -> Result<()> {
    let named = env::var_os(PAGER_VARIABLE);
    let shown = match named.as_deref().and_then(|named| named.to_str()) {
        Some("") => false,
        Some(named) => pipe_to(Command::new("sh").args(["-c", named]), text),
        None => pipe_to(&mut Command::new(DEFAULT_PAGER), text),
    };
    if shown { Ok(()) } else { page_builtin(text, columns, rows) }
}

/// Pipes a text to a program; false if it could not be run. The program may exit before it has read all, and
/// `less` is told to keep no history of searches, which may contain stored text.
fn pipe_to(program: &mut Command, text: &str) -> bool {
    if env::var_os("LESS").is_none() {
        program.env("LESS", DEFAULT_LESS_OPTIONS);
    }
    let started = program.env("LESSHISTFILE", "-").stdin(Stdio::piped()).spawn();
    let Ok(mut child) = started else { return false };
    if let Some(mut stdin) = child.stdin.take() {
        let written = stdin.write_all(text.as_bytes());
        drop(stdin);
        let left_early = |error: &io::Error| error.kind() == ErrorKind::BrokenPipe;
        if written.as_ref().is_err_and(|error| !left_early(error)) {
            return false;
        }
    }
    // A shell exits with 127 if it finds no such program.
    child.wait().is_ok_and(|status| status.code() != Some(127))
}

/// Shows the text screen by screen, with a question between screens.
fn page_builtin(text: &str, columns: u16, rows: u16) -> Result<()> {
    let lines: Vec<&str> = text.lines().collect();
    let screens = screens(&lines, columns, rows);
    let config = Config::builder().bracketed_paste(false).build();
    let mut editor = Editor::<(), MemHistory>::with_history(config, MemHistory::new()).ok();
    let mut shown = 0_usize;
    let last = screens.len().saturating_sub(1);
    for (at, screen) in screens.into_iter().enumerate() {
        let mut out = io::stdout().lock();
        for line in screen {
            writeln!(out, "{line}")?;
        }
        out.flush()?;
        drop(out);
        shown = shown.saturating_add(screen.len());
        let Some(editor) = editor.as_mut().filter(|_| at < last) else { continue };
        let asked = format!("-- {shown} of {} lines; Enter: more, q: enough -- ", lines.len());
        match editor.readline(&asked) {
            Ok(answer) if answer.trim().is_empty() => {}
            _ => break,
        }
    }
    Ok(())
}

/// Splits lines into screens, each with one row left for the question.
fn screens<'t, 'l>(lines: &'l [&'t str], columns: u16, rows: u16) -> Vec<&'l [&'t str]> {
    let room = usize::from(rows.saturating_sub(1).max(1));
    let columns = usize::from(columns.max(1));
    let mut screens = Vec::new();
    let (mut from, mut taken) = (0, 0_usize);
    for (at, line) in lines.iter().enumerate() {
        let takes = line.width().div_ceil(columns).max(1);
        if taken > 0 && taken.saturating_add(takes) > room {
            screens.extend(lines.get(from..at));
            (from, taken) = (at, 0);
        }
        taken = taken.saturating_add(takes);
    }
    screens.extend(lines.get(from..).filter(|rest| !rest.is_empty()));
    screens
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn screens_hold_what_fits_and_lose_nothing() {
        let long = "x".repeat(25);
        let lines = ["a", "b", &long, "c", "d"];
        for (rows, expected) in [(3, vec![2, 1, 2]), (10, vec![5]), (1, vec![1, 1, 1, 1, 1])] {
            let screens = screens(&lines, 10, rows);
            let heights: Vec<_> = screens.iter().map(|screen| screen.len()).collect();
            assert_eq!(heights, expected, "{rows} rows");
            assert_eq!(screens.concat(), lines);
        }
        assert!(screens(&[], 10, 3).is_empty());
    }

    #[test]
    fn a_pager_that_is_not_there_is_noticed_and_one_that_leaves_early_is_none() {
        let text = "line\n".repeat(100_000);
        let sh = |script: &str| pipe_to(Command::new("sh").args(["-c", script]), &text);
        assert!(!sh("exec no-such-pager-here 2>/dev/null"));
        assert!(sh("exec head -1 >/dev/null"));
        assert!(!pipe_to(&mut Command::new("no-such-pager-here"), &text));
    }
}
