//! TOON: one table per grain type, in Token-Oriented Object Notation 3.0 (CAL 10.9).
//!
//! A RECALL of one type is a root array with rows at depth 0; anything else is a root object with rows
//! at depth 1. Quoting, keys, numbers and the missing final newline follow the TOON specification.

use std::borrow::Cow;

use super::quote::{is_hidden, quoted_with, remove_chars};
use super::{ContextInfo, Element, Layout};
use crate::budget::Budget;
use crate::cancel::CancelCheck;
use crate::display_value::DisplayValue;
use crate::error::Error;
use crate::level::Level;
use crate::table::{self, CONTENT};
use crate::text_builder::TextBuilder;

/// The TOON format.
pub(super) struct Toon;

/// The columns that the summary level drops. All others are kept (ruling 11).
const SUMMARY_DROPPED_COLUMNS: [&str; 4] = ["confidence", "state", "phase", "type"];
/// The columns that the full level adds.
const FULL_LEVEL_COLUMNS: [&str; 2] = ["source", "observed"];
/// A column that is written only if a row has a value for it.
const OPTIONAL_COLUMN: &str = "deadline";

impl Layout for Toon {
    fn frame(&self, frame: &ContextInfo<'_>) -> Vec<String> {
        let most = match frame.budget {
            Some(Budget::Tokens(most) | Budget::Grains(most)) => most,
            None => 0,
        };
        vec![head(frame, most)]
    }

    fn group(&self, first: &Element<'_>) -> String {
        let mut out = String::new();
        header(&mut out, &[first], 10);
        out
    }

    fn element(&self, out: &mut String, element: &Element<'_>) {
        row(out, element, &columns(&[element]), "  ");
    }

    fn document<'w>(
        &self,
        frame: &ContextInfo<'_>,
        elements: &[Element<'_>],
        used: usize,
        watch: CancelCheck<'w>,
    ) -> Result<TextBuilder<'w>, Error> {
        let tables = tables(elements);
        let mut page = TextBuilder::new(head(frame, used), watch);
        let margin = if frame.budget.is_none() && tables.len() == 1 { "" } else { "  " };
        if frame.budget.is_none() && tables.is_empty() {
            page.text.push_str("[0]:");
        }
        for table in &tables {
            header(&mut page.text, table, table.len());
            let columns = columns(table);
            for element in table {
                row(&mut page.text, element, &columns, margin);
                page.end_element()?;
            }
        }
        page.text.truncate(page.text.trim_end_matches('\n').len());
        if let Some(last) = page.cuts.last_mut() {
            *last = page.text.len();
        }
        Ok(page)
    }

    fn states_usage(&self) -> bool {
        true
    }

    fn min_level(&self) -> Level {
        Level::Standard
    }
}

/// Groups the elements by type. Types and rows are in order of priority.
fn tables<'e, 'a>(elements: &'e [Element<'a>]) -> Vec<Vec<&'e Element<'a>>> {
    let mut ranked: Vec<_> = elements.iter().collect();
    ranked.sort_by_key(|element| element.rank);
    let mut tables: Vec<Vec<&Element<'a>>> = Vec::new();
    for element in ranked {
        let grain_type = element.group.grain_type;
        let of_type = |table: &&mut Vec<&Element<'a>>| {
            table.first().is_some_and(|first| first.group.grain_type == grain_type)
        };
        match tables.iter_mut().find(of_type) {
            Some(table) => table.push(element),
            None => tables.push(vec![element]),
        }
    }
    tables
}

/// Returns `context`, `intent` and the amount used, for an ASSEMBLE. A RECALL has none of them.
fn head(frame: &ContextInfo<'_>, used: usize) -> String {
    let (unit, total) = match frame.budget {
        Some(Budget::Tokens(total)) => ("tokens", total),
        Some(Budget::Grains(total)) => ("grains", total),
        None => return String::new(),
    };
    let mut out = String::new();
    for (key, value) in [("context: ", frame.name), ("intent: ", frame.intent)] {
        if let Some(value) = value {
            out.push_str(key);
            text(&mut out, value);
            out.push('\n');
        }
    }
    out.push_str(&format!("{unit}: {used}/{total}\n"));
    out
}

/// Appends the header of a table, such as `beliefs[3]{subject,content,confidence}:`.
fn header(out: &mut String, table: &[&Element<'_>], rows: usize) {
    let plural = table.first().and_then(|first| table::rule_for(first.group.grain_type));
    out.push_str(plural.map_or("", |row| row.plural));
    out.push_str(&format!("[{rows}]{{"));
    for (at, name) in columns(table).iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        key(out, name);
    }
    out.push_str("}:\n");
}

/// Returns the columns of a table: those of the type that its rows need, then those chosen by a query.
fn columns<'e>(table: &[&'e Element<'_>]) -> Vec<&'e str> {
    let typed = || table.iter().filter(|element| !element.projection.chosen);
    let mut columns = match table.first().and_then(|first| table::rule_for(first.group.grain_type))
    {
        Some(row) if typed().next().is_some() => row.columns.to_vec(),
        _ => vec![CONTENT],
    };
    let any_above = |level| typed().any(|element| element.level > level);
    columns.retain(|name| match *name {
        OPTIONAL_COLUMN => typed().any(|element| cell(element, OPTIONAL_COLUMN).is_some()),
        name if SUMMARY_DROPPED_COLUMNS.contains(&name) => any_above(Level::Summary),
        _ => true,
    });
    if any_above(Level::Standard) {
        columns.extend(FULL_LEVEL_COLUMNS);
    }
    for element in table.iter().filter(|element| element.projection.chosen) {
        for (name, _) in &element.projection.attributes {
            if !columns.contains(&&**name) {
                columns.push(name);
            }
        }
    }
    columns
}

fn row(out: &mut String, element: &Element<'_>, columns: &[&str], margin: &str) {
    out.push_str(margin);
    for (at, name) in columns.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        match cell(element, name) {
            _ if *name == CONTENT => text(out, &element.projection.text),
            Some(_) if is_dropped(element, name) => out.push_str("null"),
            None => out.push_str("null"),
            Some(DisplayValue::Text(value)) => text(out, value),
            Some(cell) => out.push_str(cell.as_str()),
        }
    }
    out.push('\n');
}

/// Returns `true` if the level of the row leaves the column out.
fn is_dropped(element: &Element<'_>, name: &str) -> bool {
    element.level == Level::Summary
        && !element.projection.chosen
        && SUMMARY_DROPPED_COLUMNS.contains(&name)
}

fn cell<'e>(element: &'e Element<'_>, name: &str) -> Option<&'e DisplayValue<'e>> {
    element.projection.attributes.iter().find(|(known, _)| known == name).map(|(_, cell)| cell)
}

/// Appends a key, quoted unless TOON allows it bare.
pub(super) fn key(out: &mut String, name: &str) {
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let bare = starts && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.');
    if bare { out.push_str(name) } else { quoted(out, &clean(name)) }
}

/// Appends a text, quoted unless it is unambiguous.
pub(super) fn text(out: &mut String, text: &str) {
    let text = clean(text);
    if needs_quotes(&text) { quoted(out, &text) } else { out.push_str(&text) }
}

/// Removes what TOON cannot represent: it has escapes for newline, carriage return and tab, but for no
/// other control. Bidirectional controls and line separators are removed too.
fn clean(text: &str) -> Cow<'_, str> {
    remove_chars(text, |c| is_hidden(c) && !matches!(c, '\n' | '\r' | '\t'))
}

fn needs_quotes(text: &str) -> bool {
    const SIGNS: [char; 11] = [',', '"', '\\', ':', '[', ']', '{', '}', '\n', '\r', '\t'];
    text.trim() != text
        || text.is_empty()
        || text.contains(SIGNS)
        || text.starts_with(['-', '#'])
        || matches!(text, "true" | "false" | "null")
        || is_number_like(text)
}

/// Matches `-?\d+(\.\d+)?([eE][+-]?\d+)?`.
fn is_number_like(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    digits(whole)
        && fraction.is_none_or(digits)
        && exponent.is_none_or(|e| digits(e.strip_prefix(['+', '-']).unwrap_or(e)))
}

/// Appends the text in quotes. TOON has five escapes: quote, backslash, newline, carriage return and
/// tab.
fn quoted(out: &mut String, text: &str) {
    quoted_with(out, text, String::push);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_read_as_anything_else_are_quoted() {
        for (value, written) in [
            ("prefers dark mode", "prefers dark mode"),
            ("a-b", "a-b"),
            ("1.", "1."),
            ("e5", "e5"),
            ("True", "True"),
            ("日本語 é", "日本語 é"),
            ("", "\"\""),
            (" a", "\" a\""),
            ("a\u{a0}", "\"a\u{a0}\""),
            ("true", "\"true\""),
            ("05", "\"05\""),
            ("-1.5e+3", "\"-1.5e+3\""),
            ("-", "\"-\""),
            ("# x", "\"# x\""),
            ("a,b", "\"a,b\""),
            ("a: b", "\"a: b\""),
            ("[1]", "\"[1]\""),
            ("{x}", "\"{x}\""),
            ("a\"\\\n\r\t", "\"a\\\"\\\\\\n\\r\\t\""),
            ("\u{1b}[2J\u{9b}x\u{202e}", "\"[2Jx\""),
            ("a\u{2028}b", "ab"),
        ] {
            let mut out = String::new();
            text(&mut out, value);
            assert_eq!(out, written, "{value:?}");
        }
    }

    #[test]
    fn keys_are_bare_where_toon_allows() {
        for (name, written) in [("subject", "subject"), ("_a.b1", "_a.b1"), ("hc:id", "\"hc:id\"")]
        {
            let mut out = String::new();
            key(&mut out, name);
            assert_eq!(out, written);
        }
    }
}
