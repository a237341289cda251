//! Syntax colours of the edited line, one for each kind of piece.
//!
//! Used only on a terminal with colours, unless NO_COLOR is set (no-color.org).

use std::borrow::Cow;
use std::env;
use std::fmt::Write;

use grainstore::cal::{SyntaxKind, scan, vocabulary};

use super::complete::dot_line;

const RESET: &str = "\x1b[0m";
pub(crate) const DIM: &str = "\x1b[2m";
pub(crate) const BOLD: &str = "\x1b[1m";
const RED: &str = "\x1b[31m";
const GREEN: &str = "\x1b[32m";
const YELLOW: &str = "\x1b[33m";
const BLUE: &str = "\x1b[34m";
const MAGENTA: &str = "\x1b[35m";
const CYAN: &str = "\x1b[36m";

/// Returns `true` if a terminal should show colours, by NO_COLOR and TERM.
pub(crate) fn colours_wanted() -> bool {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty());
    set("NO_COLOR").is_none() && set("TERM").is_none_or(|term| term != "dumb")
}

/// Returns a text in a colour.
pub(crate) fn painted(text: &str, colour: &str) -> String {
    format!("{colour}{text}{RESET}")
}

/// Returns the edited line in colours, with the same display width.
pub(crate) fn highlighted(line: &str) -> Cow<'_, str> {
    if line.is_empty() {
        return Cow::Borrowed(line);
    }
    if dot_line(line).is_some() {
        return Cow::Owned(painted(line, YELLOW));
    }
    let mut shown = String::with_capacity(line.len().saturating_mul(2));
    let mut at = 0;
    for piece in scan(line) {
        shown.push_str(line.get(at..piece.range.start).unwrap_or_default());
        let text = line.get(piece.range.clone()).unwrap_or_default();
        match colour(piece.kind, text) {
            // Writing into a string cannot fail.
            Some(colour) => drop(write!(shown, "{colour}{text}{RESET}")),
            None => shown.push_str(text),
        }
        at = piece.range.end;
    }
    shown.push_str(line.get(at..).unwrap_or_default());
    Cow::Owned(shown)
}

fn colour(kind: SyntaxKind, text: &str) -> Option<&'static str> {
    match kind {
        SyntaxKind::Keyword => Some(BLUE),
        SyntaxKind::Name if vocabulary::is_type(text) => Some(CYAN),
        SyntaxKind::Text | SyntaxKind::UnterminatedText | SyntaxKind::Template => Some(GREEN),
        SyntaxKind::Number | SyntaxKind::Hash => Some(MAGENTA),
        SyntaxKind::Parameter => Some(YELLOW),
        SyntaxKind::Comment => Some(DIM),
        SyntaxKind::Forbidden | SyntaxKind::Invalid => Some(RED),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a text without its colours.
    fn bare(shown: &str) -> String {
        let mut parts = shown.split('\x1b');
        let head = parts.next().unwrap().to_owned();
        parts.fold(head, |text, part| text + part.split_once('m').unwrap().1)
    }

    #[test]
    fn pieces_have_colours_and_nothing_is_lost() {
        let line = "RECALL goals WHERE x = \"a b\" -- why é";
        let shown = highlighted(line);
        assert_eq!(bare(&shown), line);
        for painted in ["\x1b[34mRECALL\x1b[0m", "\x1b[36mgoals\x1b[0m", "\x1b[32m\"a b\"\x1b[0m"] {
            assert!(shown.contains(painted), "{shown:?}");
        }
        let template = highlighted("DEFINE TEMPLATE t ELEMENT {- DELETE {{x}}}");
        assert!(template.contains("{\x1b[32m- DELETE {{x}}\x1b[0m}"), "{template:?}");
        assert_eq!(highlighted("DELETE"), "\x1b[31mDELETE\x1b[0m");
        assert_eq!(highlighted(".mode sml"), "\x1b[33m.mode sml\x1b[0m");
    }
}
