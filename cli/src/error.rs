//! Errors as the command line reports them: lines with a drawing of the query, or one JSON object. Codes and exit
//! codes are those of `grainstore-rpc`.

use std::io::{self, Write};

use grainstore::cal;
use serde_json::json;
use unicode_width::UnicodeWidthStr;

use crate::text::escape_line;

pub(crate) use grainstore_rpc::{Code, Error, Result};

/// Converts an error of the command-line parser.
pub(crate) fn of_arguments(wrong: &clap::Error) -> Error {
    let told = wrong.to_string();
    let told = told.strip_prefix("error: ").unwrap_or(&told);
    let (what, rest) = told.split_once("\n\nUsage: ").unwrap_or((told, ""));
    let what = what.split("\n\nFor more information").next().unwrap_or_default();
    let what = what.split_whitespace().collect::<Vec<_>>().join(" ");
    let hint = match rest.lines().next() {
        Some(usage) => format!("write {usage}"),
        None => "`grain help` lists what there is".to_owned(),
    };
    Error::usage(Code::Schema, what, hint)
}

/// Reports the error: two or three lines for people, or one JSON object.
pub(crate) fn write(error: &Error, to: &mut dyn Write, json: bool) -> io::Result<()> {
    let Error::Refused(refusal) = error else {
        return Ok(());
    };
    if json {
        return writeln!(to, "{}", json!({ "error": refusal.object() }));
    }
    writeln!(to, "error: {}: {}", refusal.code, escape_line(&refusal.message))?;
    let drawing = refusal.place().and_then(|(query, place)| draw_position(query, place));
    if let Some(drawing) = drawing {
        writeln!(to, "{drawing}")?;
    }
    if !refusal.hint.is_empty() {
        writeln!(to, "  hint: {}", escape_line(&refusal.hint))?;
    }
    // The values are not repeated if the hint names them all.
    let valid = refusal.valid_values();
    if !valid.iter().all(|valid| refusal.hint.contains(valid)) {
        writeln!(to, "  one of: {}", escape_line(&valid.join(", ")))?;
    }
    Ok(())
}

/// Most lines drawn of a position that spans more.
const MAX_DRAWN_LINES: usize = 6;

/// Draws the lines of the query that an error points at, with a mark under the position in each.
fn draw_position(query: &str, place: cal::Position) -> Option<String> {
    let mut start = 0_usize;
    let lines = query.split('\n').map(|line| {
        let at = start;
        start = start.saturating_add(line.len()).saturating_add(1);
        (at, line.trim_end_matches('\r'))
    });
    let lines = lines.skip(place.line.checked_sub(1)?);
    let about = lines.take_while(|(at, _)| *at < place.end.max(place.start.saturating_add(1)));
    let mut drawn = Vec::new();
    for (at, line) in about.filter(|(_, line)| !line.trim().is_empty()).take(MAX_DRAWN_LINES) {
        let place = place.start.saturating_sub(at)..place.end.saturating_sub(at).min(line.len());
        drawn.push(underline(line, place));
    }
    (!drawn.is_empty()).then(|| drawn.join("\n"))
}

/// Most characters drawn of a line.
const MAX_DRAWN_CHARS: usize = 120;

/// Draws a line and a mark under these bytes of it, by their width on a terminal. A long line is cut around
/// the position.
fn underline(line: &str, place: std::ops::Range<usize>) -> String {
    let before = line.get(..place.start).unwrap_or_default().chars().count();
    let cut = if line.chars().count() > MAX_DRAWN_CHARS {
        before.saturating_sub(MAX_DRAWN_CHARS / 2)
    } else {
        0
    };
    let at = |number: usize| line.char_indices().nth(number).map_or(line.len(), |(at, _)| at);
    let (first, last) = (at(cut), at(cut.saturating_add(MAX_DRAWN_CHARS)));
    let place = place.start.saturating_sub(first)..place.end.clamp(first, last) - first;
    let line = line.get(first..last).unwrap_or_default();
    let indent = line.len().saturating_sub(line.trim_start().len());
    // A position that began on a line above is marked from the first non-blank character of this line.
    let from = if place.start == 0 { indent.min(place.end) } else { place.start };
    let width = |text: Option<&str>| text.map_or(0, |text| escape_line(text).width());
    let before = width(line.get(..from));
    let mark = "^".repeat(width(line.get(from..place.end)).max(1));
    format!("  {}\n  {}{mark}", escape_line(line), " ".repeat(before))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(error: &Error, json: bool) -> String {
        let mut text = Vec::new();
        write(error, &mut text, json).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn of_a_long_line_what_stands_around_the_place_is_drawn() {
        let query = format!("RECALL ABOUT \"{}\" LIMIT x", "y".repeat(10_000));
        let drawn = told(&Error::from_cal(&cal::parse(&query).unwrap_err(), &query), false);
        assert!(drawn.contains("CAL-E001") && drawn.contains("^^^"), "{drawn}");
        let widest = drawn.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest < 200, "{widest}");
    }

    #[test]
    fn a_closed_pipe_is_the_quiet_end_and_other_failures_are_not() {
        let closed = Error::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!(told(&closed, false), "");
        let full = Error::from(io::Error::from(io::ErrorKind::StorageFull));
        assert!(told(&full, false).starts_with("error: ERR_IO: cannot write the output"));
    }

    #[test]
    fn an_error_reads_as_lines_or_as_one_object_and_forges_neither() {
        let error = Error::new(Code::Schema, "no \u{1b}[31mred", "drop it").in_context("line 3");
        assert_eq!(
            told(&error, false),
            "error: ERR_SCHEMA: line 3: no \\u{1b}[31mred\n  hint: drop it\n"
        );
        let object: serde_json::Value = serde_json::from_str(&told(&error, true)).unwrap();
        assert_eq!(object["error"]["code"], "ERR_SCHEMA");
        assert_eq!(object["error"]["hint"], "drop it");
    }

    #[test]
    fn a_cal_error_is_drawn_under_its_line() {
        let query = "RECALL beliefs\n WHERE nonsense = 1";
        let error = Error::from_cal(&cal::parse("RECALL beleifs").unwrap_err(), "RECALL beleifs");
        assert!(told(&error, false).contains("\n  RECALL beleifs\n         ^^^^^^^\n"));
        let place = cal::Position { start: 22, end: 30, line: 2, col: 8 };
        assert_eq!(
            draw_position(query, place).unwrap(),
            "   WHERE nonsense = 1\n         ^^^^^^^^"
        );
    }

    #[test]
    fn what_would_be_accepted_is_listed_once() {
        let of =
            |query: &str| told(&Error::from_cal(&cal::parse(query).unwrap_err(), query), false);
        let listed = of("RECALL AS x");
        assert!(listed.contains("hint: expected sml, ") && !listed.contains("one of"), "{listed}");
        assert!(of("RECALL AS markdwn").contains("one of: sml, "));
        assert!(!of("RECALL ABOUT").contains("one of"));
    }

    #[test]
    fn a_place_of_several_lines_is_marked_in_each_by_its_width() {
        let query = "RECALL (a\r\n\n  b \u{1b}c) x";
        let place = cal::Position { start: 7, end: 19, line: 1, col: 8 };
        assert_eq!(
            draw_position(query, place).unwrap(),
            "  RECALL (a\n         ^^\n    b \\u{1b}c) x\n    ^^^^^^^^^^"
        );
        let wide = "ABOUT \"漢字\" x";
        let place = cal::Position { start: 15, end: 16, line: 1, col: 12 };
        assert_eq!(draw_position(wide, place).unwrap(), "  ABOUT \"漢字\" x\n               ^");
        let end = cal::Position { start: 6, end: 6, line: 1, col: 7 };
        assert_eq!(draw_position("RECALL", end).unwrap(), "  RECALL\n        ^");
        let long = "x\n".repeat(20);
        let place = cal::Position { start: 0, end: 40, line: 1, col: 1 };
        assert_eq!(draw_position(&long, place).unwrap().lines().count(), 2 * MAX_DRAWN_LINES);
    }
}
