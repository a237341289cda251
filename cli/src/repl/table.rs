//! Answers as tables that fit the terminal.
//!
//! Column widths are display widths; control characters of stored text are escaped before they are measured.

use std::collections::BTreeSet;

use comfy_table::{ContentArrangement, LineStyle, Row, Table, TableStyle};
use grainstore::cal::{Answer, FieldChange, GroupCount, RecallAnswer, ResultRow, Version};
use grainstore::format::Value;

use crate::statement::UNREVIEWED_SUFFIX;
use crate::text::{escape_line, format_time};
use crate::told::{content_line, status_word};

/// The most lines of a row; longer text is cut with dots.
const MAX_ROW_LINES: usize = 4;
/// The smallest width of a table, below which columns would have no room.
const MIN_WIDTH: u16 = 32;
/// Digits of an address that are shown: enough to tell grains apart, and as many as CAL and `grain get` need.
const ADDRESS_DIGITS: usize = 8;

/// Renders an answer as a table of at most this width; `None` if it is not a list.
pub(crate) fn table(answer: &Answer, width: u16) -> Option<String> {
    let rows = match answer {
        Answer::Grains(RecallAnswer { formatted: None, results, .. }) if results.is_empty() => {
            return Some(String::new());
        }
        Answer::Grains(grains @ RecallAnswer { formatted: None, .. }) => {
            grain_rows(&grains.results)
        }
        Answer::Groups { groups, formatted: None, .. } => group_rows(groups),
        Answer::Versions { versions, .. } => version_rows(versions),
        Answer::Diff { diff, requires_human_review: false } => change_rows(diff),
        Answer::Coalesced { answer, .. } => return table(answer, width),
        _ => return None,
    };
    Some(draw(rows, width))
}

/// Renders rows as a table; the first is the heading.
pub(crate) fn draw(rows: Vec<Vec<String>>, width: u16) -> String {
    let mut table = Table::new();
    table.load_style(TableStyle::new().header_separator(LineStyle::none().fill('─')));
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width.max(MIN_WIDTH));
    let mut rows = rows.into_iter().map(|row| {
        let cells: Vec<String> = row.iter().map(|cell| escape_line(cell).into_owned()).collect();
        let mut row = Row::from(cells);
        row.max_height(MAX_ROW_LINES);
        row
    });
    if let Some(heading) = rows.next() {
        table.set_header(heading);
    }
    table.add_rows(rows);
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n") + "\n"
}

fn grain_rows(results: &[ResultRow]) -> Vec<Vec<String>> {
    if results.iter().all(|row| row.selected.is_some()) {
        return selected_rows(results);
    }
    let scored = results.iter().any(|row| row.score < 1.0);
    let stated = results.iter().any(|row| row.state.is_some());
    let heading = ["address", "type", "says", "created"].map(str::to_owned);
    let mut rows = vec![with_edges(
        heading.to_vec(),
        scored.then(|| "score".to_owned()),
        stated.then(|| "standing".to_owned()),
    )];
    rows.extend(results.iter().map(|row| {
        let grain = &row.grain;
        let cells = vec![
            row.content_address.to_string().chars().take(ADDRESS_DIGITS).collect(),
            grain.grain_type().name().to_owned(),
            content_line(grain.clone(), row.verification_status()),
            date(grain.created_at()),
        ];
        let state = row.state.as_ref().map(|state| status_word(state).to_owned());
        let score = scored.then(|| format!("{:.3}", row.score));
        with_edges(cells, score, stated.then(|| state.unwrap_or_default()))
    }));
    rows
}

/// Adds an optional first and last cell to a row.
fn with_edges(cells: Vec<String>, first: Option<String>, last: Option<String>) -> Vec<String> {
    first.into_iter().chain(cells).chain(last).collect()
}

/// Formats a time to the minute; `.mode json` has the rest.
fn date(time: grainstore::EpochMs) -> String {
    let told = format_time(time);
    told.get(..16).map_or(told.clone(), |minute| minute.replace('T', " "))
}

fn selected_rows(results: &[ResultRow]) -> Vec<Vec<String>> {
    let selected = || results.iter().filter_map(|row| row.selected.as_ref());
    let names: BTreeSet<&str> =
        selected().flat_map(|fields| fields.keys().map(AsRef::as_ref)).collect();
    let heading = names.iter().map(|name| (*name).to_owned()).collect();
    let row = |fields: &grainstore::format::Map| {
        names.iter().map(|name| fields.get(*name).map(text).unwrap_or_default()).collect()
    };
    std::iter::once(heading).chain(selected().map(row)).collect()
}

fn group_rows(groups: &[GroupCount]) -> Vec<Vec<String>> {
    let heading = ["count", "value"].map(str::to_owned).to_vec();
    let row = |group: &GroupCount| {
        let flag = if group.requires_human_review { UNREVIEWED_SUFFIX } else { "" };
        vec![group.count.to_string(), text(&group.key) + flag]
    };
    std::iter::once(heading).chain(groups.iter().map(row)).collect()
}

fn version_rows(versions: &[Version]) -> Vec<Vec<String>> {
    let heading = ["address", "standing", "created", "says"].map(str::to_owned).to_vec();
    let row = |version: &Version| {
        vec![
            version.address.to_string().chars().take(ADDRESS_DIGITS).collect(),
            status_word(&version.state).to_owned(),
            date(version.grain.created_at()),
            content_line(version.grain.clone(), version.state.verification_status),
        ]
    };
    std::iter::once(heading).chain(versions.iter().map(row)).collect()
}

fn change_rows(changes: &[FieldChange]) -> Vec<Vec<String>> {
    let side = |side: &Option<Value>| side.as_ref().map_or("(none)".to_owned(), text);
    let heading = ["field", "from", "to"].map(str::to_owned).to_vec();
    let row =
        |change: &FieldChange| vec![change.field.clone(), side(&change.from), side(&change.to)];
    std::iter::once(heading).chain(changes.iter().map(row)).collect()
}

/// Returns the text of a cell: strings as they are, other values as JSON.
fn text(value: &Value) -> String {
    match value {
        Value::Str(text) => text.to_string(),
        other => serde_json::to_string(other).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr;

    use super::*;

    fn rows(cells: &[&[&str]]) -> Vec<Vec<String>> {
        cells.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect()
    }

    #[test]
    fn a_table_has_a_heading_a_line_and_its_rows() {
        let shown = draw(rows(&[&["count", "value"], &["2", "alice"], &["10", "bob"]]), 80);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines.len(), 4, "{shown}");
        assert_eq!(lines[0], " count  value");
        assert!(lines[1].chars().all(|c| c == '─'), "{shown}");
        assert_eq!(lines[2], " 2      alice");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_whatever_is_stored() {
        let words =
            ["word ".repeat(60), "x".repeat(500), "漢字かな".repeat(50), "é\u{301}👩‍👩‍👧 ".repeat(40)];
        for width in [32_u16, 60, 80, 200] {
            for word in &words {
                let shown = draw(
                    rows(&[&["address", "says", "created"], &["a1b2c3d4", word, "2026"]]),
                    width,
                );
                for line in shown.lines() {
                    assert!(line.width() <= usize::from(width), "{width}: {} {line}", line.width());
                }
                assert!(shown.lines().count() <= 2 + MAX_ROW_LINES, "{shown}");
            }
        }
    }

    #[test]
    fn stored_text_steers_no_terminal_and_starts_no_row() {
        let hostile = "a\u{1b}[2Jb\nc\r\u{9b}31md\u{202e}e\tf";
        let shown = draw(rows(&[&["says"], &[hostile]]), 80);
        assert!(shown.chars().all(|c| c == '\n' || escape_line(&c.to_string()) == c.to_string()));
        assert_eq!(shown.lines().count(), 3, "{shown}");
    }
}
