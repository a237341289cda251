//! The output of answers: to the terminal, a pipe, or the file of `.output`.
//!
//! Control characters in stored text are escaped on a terminal, and text longer than the screen is paged.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use terminal_size::{Height, Width, terminal_size};
use unicode_width::UnicodeWidthStr;

use super::highlight::{BOLD, painted};
use super::history_file::{make_private, private_file};
use super::pager;
use crate::error::{self, Code, Error, Result};
use crate::interrupt::Interrupt;
use crate::text::escape_text;

/// Default columns and rows.
const DEFAULT_SIZE: (u16, u16) = (80, 24);

/// The output of answers.
pub(crate) struct Screen {
    /// True if it is a terminal.
    pub(crate) interactive: bool,
    pub(crate) colours: bool,
    /// True if long answers are paged.
    pub(crate) paging: bool,
    pub(crate) interrupt: Interrupt,
    /// The file of `.output`, in place of stdout.
    file: Option<File>,
}

impl Screen {
    pub(crate) fn new(interactive: bool, colours: bool) -> Self {
        Self {
            interactive,
            colours,
            paging: interactive && pager::is_wanted(),
            interrupt: Interrupt::default(),
            file: None,
        }
    }

    /// Returns the columns of a line.
    pub(crate) fn width(&self) -> u16 {
        terminal_dimensions().0
    }

    /// Redirects answers to a private file, or back to stdout.
    pub(crate) fn redirect(&mut self, path: Option<&str>) -> Result<()> {
        let open = |path: &str| {
            grainstore::check_outside(Path::new(path))?;
            open_output_file(Path::new(path)).map_err(|error| {
                let message = format!("cannot write {path}: {error}");
                Error::new(Code::Io, message, "name a file that is not there, or a regular one")
            })
        };
        self.file = path.map(open).transpose()?;
        Ok(())
    }

    /// Shows an answer.
    pub(crate) fn show(&mut self, answer: &[u8]) -> Result<()> {
        if let Some(file) = &mut self.file {
            return Ok(file.write_all(answer)?);
        }
        if !self.interactive {
            let mut out = io::stdout();
            out.write_all(answer)?;
            return Ok(out.flush()?);
        }
        let answer = String::from_utf8_lossy(answer);
        let text = escape_text(&answer);
        let (columns, rows) = terminal_dimensions();
        if self.paging && rows_of(&text, columns) >= usize::from(rows) {
            return pager::page(&text, columns, rows);
        }
        self.lines(&text)
    }

    /// Writes notes to stderr.
    pub(crate) fn tell(&self, notes: &str) {
        if !notes.is_empty() {
            let _ = io::stderr().write_all(notes.as_bytes());
        }
    }

    /// Writes an error to stderr.
    pub(crate) fn tell_error(&self, error: &Error, json: bool) {
        let mut told = Vec::new();
        let _ = error::write(error, &mut told, json);
        let told = String::from_utf8_lossy(&told);
        match told.split_once(": ") {
            Some((head, rest)) if self.colours && !json => {
                self.tell(&format!("{}: {rest}", painted(head, BOLD)));
            }
            _ => self.tell(&told),
        }
    }

    /// Prints lines until Ctrl-C.
    fn lines(&self, text: &str) -> Result<()> {
        let mut out = io::stdout().lock();
        for line in text.split_inclusive('\n') {
            if self.interrupt.was_pressed() {
                break;
            }
            out.write_all(line.as_bytes())?;
        }
        Ok(out.flush()?)
    }
}

/// Opens an empty private file: a new one, or an existing regular file of this name. A link, a pipe or a
/// device is refused and left unchanged, since it may lead to a file of another user.
fn open_output_file(path: &Path) -> io::Result<File> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return private_file(OpenOptions::new().create_new(true).write(true), path);
        }
        found => found?,
    };
    let refused = |what: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    match found.file_type() {
        kind if kind.is_file() && has_other_names(&found) => {
            return refused("it has other names, under which it may be something else");
        }
        kind if kind.is_file() => {}
        kind if kind.is_dir() => return refused("it is a directory"),
        kind if kind.is_symlink() => return refused("it is a link"),
        _ => return refused("it is a pipe, a device or a socket"),
    }
    let file = OpenOptions::new().write(true).open(path)?;
    if !is_same(&found, &file.metadata()?) {
        return refused("another file took its name meanwhile");
    }
    make_private(&file)?;
    file.set_len(0)?;
    Ok(file)
}

/// Returns `true` if the opened file is the one that was examined; a link may have replaced it in between.
#[cfg(unix)]
fn is_same(seen: &fs::Metadata, opened: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (seen.dev(), seen.ino()) == (opened.dev(), opened.ino())
}

/// Whether a file stands under other names as well: one may be a name that a store has for it.
#[cfg(unix)]
fn has_other_names(found: &fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::nlink(found) > 1
}

/// Elsewhere names are not counted.
#[cfg(not(unix))]
fn has_other_names(_: &fs::Metadata) -> bool {
    false
}

/// Returns `true` for any regular file: other systems have no file numbers to compare.
#[cfg(not(unix))]
fn is_same(_: &fs::Metadata, opened: &fs::Metadata) -> bool {
    opened.is_file()
}

/// Returns `true` if stdin and stdout are a terminal.
pub(crate) fn is_on_terminal() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Returns the columns and rows of the terminal; without one, the columns of COLUMNS.
fn terminal_dimensions() -> (u16, u16) {
    let named = || std::env::var("COLUMNS").ok()?.parse().ok();
    match terminal_size() {
        Some((Width(columns), Height(rows))) if columns > 0 && rows > 0 => (columns, rows),
        _ => (named().unwrap_or(DEFAULT_SIZE.0), DEFAULT_SIZE.1),
    }
}

/// Returns the rows that a text takes on the terminal.
fn rows_of(text: &str, columns: u16) -> usize {
    let columns = usize::from(columns.max(1));
    text.lines().map(|line| line.width().div_ceil(columns).max(1)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn answers_go_into_regular_files_alone() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name).display().to_string();
        let mut screen = Screen::new(false, false);
        fs::write(at("kept"), "kept").unwrap();
        symlink(at("kept"), at("link")).unwrap();
        symlink(at("absent"), at("dangling")).unwrap();
        fs::write(at("many"), "many").unwrap();
        fs::hard_link(at("many"), at("other")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        for name in ["link", "socket", ".", "many"] {
            let refused = screen.redirect(Some(&at(name)));
            let mut told = Vec::new();
            error::write(&refused.unwrap_err(), &mut told, false).unwrap();
            assert!(told.starts_with(b"error: ERR_IO: cannot write "), "{name}");
        }
        assert!(screen.redirect(Some(&at("dangling"))).is_err());
        assert_eq!(fs::read_to_string(at("kept")).unwrap(), "kept");
        assert_eq!(fs::read_to_string(at("many")).unwrap(), "many");
        assert!(!Path::new(&at("absent")).exists());
        for name in ["kept", "new"] {
            screen.redirect(Some(&at(name))).unwrap();
            screen.show(b"answer").unwrap();
            screen.redirect(None).unwrap();
            assert_eq!(fs::read_to_string(at(name)).unwrap(), "answer");
            assert_eq!(fs::metadata(at(name)).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn lines_stay_lines_and_nothing_else_that_steers_is_left() {
        assert_eq!(escape_text("a\n<b>\n"), "a\n<b>\n");
        assert_eq!(escape_text("a\u{1b}[2J\nb\u{9b}\r\nc"), "a\\u{1b}[2J\nb\\u{9b}\\u{d}\nc");
    }

    #[test]
    fn rows_are_counted_as_a_terminal_wraps_them() {
        for (text, rows) in
            [("", 0), ("a\n\nb", 3), ("0123456789\n", 1), ("01234567890", 2), ("漢字漢字漢字", 2)]
        {
            assert_eq!(rows_of(text, 10), rows, "{text:?}");
        }
    }
}
