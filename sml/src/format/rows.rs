//! Rows of values in the formats that hold them: what SELECT, COUNT, GROUP BY and the extractors answer.
//!
//! Escaped as the formats of grains are: a value cannot leave its cell, whatever it says.

use super::line::{escape, is_followed_by_space, one_line};
use super::{markdown, quote, toon};
use crate::cancel::CancelCheck;
use crate::display_value::DisplayValue;
use crate::error::Error;

/// A format of [`Rows`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RowFormat {
    /// An array of objects, of values, or an object with a number.
    Json,
    /// RFC 4180 with a head, lines ended by newlines; a value stands on one line.
    Csv,
    /// A table of markdown.
    Table,
    /// A row a line, values under their names.
    Text,
    /// A table, a list or a number in Token-Oriented Object Notation.
    Toon,
}

impl RowFormat {
    /// Every format of rows.
    pub const ALL: [Self; 5] = [Self::Json, Self::Csv, Self::Table, Self::Text, Self::Toon];

    /// The name in AS.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Table => "table",
            Self::Text => "text",
            Self::Toon => "toon",
        }
    }

    /// The format of this name, in any case.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name().eq_ignore_ascii_case(name))
    }
}

/// What [`Rows`] are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Values under names; absent ones are left out, or null where a row has a place for each.
    Table,
    /// One value a row.
    List,
    /// One row of one value.
    Single,
}

/// Rows of values, each as long as the columns.
///
/// ```
/// use grainstore_sml::{CancelCheck, RowFormat, Rows, Shape};
///
/// let rows = Rows {
///     shape: Shape::Table,
///     name: Some("beliefs"),
///     columns: vec!["subject", "object"],
///     rows: vec![vec![Some("alice".into()), Some("tea".into())]],
/// };
/// assert_eq!(rows.render(RowFormat::Csv, CancelCheck::NEVER)?, "subject,object\nalice,tea\n");
/// let count = Rows::number("count", 3);
/// assert_eq!(count.render(RowFormat::Json, CancelCheck::NEVER)?, r#"{"count":3}"#);
/// # Ok::<(), grainstore_sml::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Rows<'a> {
    /// What they are made of.
    pub shape: Shape,
    /// What toon calls them; none where they have no name in common.
    pub name: Option<&'a str>,
    /// The names of the values.
    pub columns: Vec<&'a str>,
    /// The values.
    pub rows: Vec<Vec<Option<DisplayValue<'a>>>>,
}

type Row<'a> = [Option<DisplayValue<'a>>];

impl<'a> Rows<'a> {
    /// One number under a name.
    #[must_use]
    pub fn number(name: &'a str, number: u64) -> Self {
        let rows = vec![vec![Some(DisplayValue::Number(number.to_string()))]];
        Self { shape: Shape::Single, name: None, columns: vec![name], rows }
    }

    /// The rows as text.
    ///
    /// # Errors
    /// `CAL-E082` once the watch stops it.
    pub fn render(&self, format: RowFormat, watch: CancelCheck<'_>) -> Result<String, Error> {
        let mut out = String::new();
        self.head(&mut out, format);
        for (at, row) in self.rows.iter().enumerate() {
            watch.check()?;
            match format {
                RowFormat::Json => self.json(&mut out, row, at),
                RowFormat::Csv => line(&mut out, row, ["", ",", "\n"], csv),
                RowFormat::Table => line(&mut out, row, ["| ", " | ", " |\n"], in_table),
                RowFormat::Text => self.line(&mut out, row),
                RowFormat::Toon => self.toon(&mut out, row, at),
            }
        }
        self.foot(&mut out, format);
        Ok(out)
    }

    fn head(&self, out: &mut String, format: RowFormat) {
        let names: Vec<_> =
            self.columns.iter().map(|name| Some(DisplayValue::from(*name))).collect();
        match format {
            RowFormat::Json if self.shape == Shape::Single => {}
            RowFormat::Json => out.push('['),
            RowFormat::Csv => line(out, &names, ["", ",", "\n"], csv),
            RowFormat::Table => {
                line(out, &names, ["| ", " | ", " |\n"], in_table);
                out.push('|');
                out.push_str(&" --- |".repeat(names.len()));
                out.push('\n');
            }
            RowFormat::Text => {}
            RowFormat::Toon => self.toon_head(out),
        }
    }

    fn toon_head(&self, out: &mut String) {
        if self.shape == Shape::Single {
            return;
        }
        if !self.rows.is_empty() {
            self.name.into_iter().for_each(|name| toon::key(out, name));
        }
        out.push_str(&format!("[{}]", self.rows.len()));
        if self.shape == Shape::List || self.rows.is_empty() {
            out.push(':');
            return;
        }
        for (at, name) in self.columns.iter().enumerate() {
            out.push(if at == 0 { '{' } else { ',' });
            toon::key(out, name);
        }
        out.push_str("}:");
    }

    fn foot(&self, out: &mut String, format: RowFormat) {
        if format == RowFormat::Json && self.shape != Shape::Single {
            out.push_str(if self.rows.is_empty() { "]" } else { "\n]" });
        }
    }

    /// A row under its names; those that have no value here are left out.
    fn named<'r>(
        &'r self,
        row: &'r Row<'a>,
    ) -> impl Iterator<Item = (&'r str, &'r DisplayValue<'a>)> {
        let there =
            |(name, cell): (&&'r str, &'r Option<DisplayValue<'a>>)| Some((*name, cell.as_ref()?));
        self.columns.iter().zip(row).filter_map(there)
    }

    fn json(&self, out: &mut String, row: &Row<'_>, at: usize) {
        if self.shape != Shape::Single {
            out.push_str(if at == 0 { "\n" } else { ",\n" });
        }
        if self.shape == Shape::List {
            return row.iter().flatten().for_each(|cell| in_json(out, cell));
        }
        out.push('{');
        for (at, (name, cell)) in self.named(row).enumerate() {
            out.push_str(if at == 0 { "" } else { "," });
            quote::quoted(out, name);
            out.push(':');
            in_json(out, cell);
        }
        out.push('}');
    }

    /// Values apart by commas, each behind its name where there are several.
    fn line(&self, out: &mut String, row: &Row<'_>) {
        let names = self.shape == Shape::Table;
        for (at, (name, cell)) in self.named(row).enumerate() {
            out.push_str(if at == 0 { "" } else { ", " });
            if names {
                out.push_str(name);
                out.push_str(": ");
            }
            escape(out, &one_line(cell.as_str()), |text, at, c| {
                names && matches!(c, ',' | ':') && is_followed_by_space(text, at)
            });
        }
        out.push('\n');
    }

    fn toon(&self, out: &mut String, row: &Row<'_>, at: usize) {
        match self.shape {
            Shape::Table => out.push('\n'),
            Shape::List => out.push(if at == 0 { ' ' } else { ',' }),
            Shape::Single => {
                self.columns.iter().for_each(|name| toon::key(out, name));
                out.push_str(": ");
            }
        }
        for (at, cell) in row.iter().enumerate() {
            out.push_str(if at == 0 { "" } else { "," });
            match cell {
                None => out.push_str("null"),
                Some(DisplayValue::Text(text)) => toon::text(out, text),
                Some(cell) => out.push_str(cell.as_str()),
            }
        }
    }
}

fn in_json(out: &mut String, cell: &DisplayValue<'_>) {
    match cell {
        DisplayValue::Text(text) => quote::quoted(out, text),
        DisplayValue::Number(_) | DisplayValue::Flag(_) => out.push_str(cell.as_str()),
    }
}

/// Cells on a line between what begins, parts and ends it.
fn line(out: &mut String, row: &Row<'_>, marks: [&str; 3], cell: fn(&mut String, &str)) {
    let [begins, parts, ends] = marks;
    for (at, value) in row.iter().enumerate() {
        out.push_str(if at == 0 { begins } else { parts });
        cell(out, &one_line(value.as_ref().map_or("", DisplayValue::as_str)));
    }
    out.push_str(ends);
}

/// A value between commas, in quotes where it could be read as anything else.
fn csv(out: &mut String, text: &str) {
    if !text.contains([',', '"']) {
        out.push_str(text);
        return;
    }
    out.push('"');
    out.push_str(&text.replace('"', "\"\""));
    out.push('"');
}

/// A value between the bars of a table.
fn in_table(out: &mut String, text: &str) {
    escape(out, text, |text, at, c| c == '|' || markdown::is_markup(text, at, c, false));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rows: &Rows<'_>, format: RowFormat, expected: &str) {
        assert_eq!(rows.render(format, CancelCheck::NEVER).unwrap(), expected, "{}", format.name());
    }

    #[test]
    fn rows_stand_in_every_format_and_no_value_leaves_its_cell() {
        let rows = Rows {
            shape: Shape::Table,
            name: Some("beliefs"),
            columns: vec!["object", "confidence"],
            rows: vec![
                vec![
                    Some("a, \"b\"\n| c: \u{202e}<x>".into()),
                    Some(DisplayValue::Number("0.9".into())),
                ],
                vec![Some("tea".into()), None],
            ],
        };
        for (format, expected) in [
            (
                RowFormat::Json,
                "[\n{\"object\":\"a, \\\"b\\\"\\n| c: \\u202e<x>\",\"confidence\":0.9},\n{\"object\":\"tea\"}\n]",
            ),
            (RowFormat::Csv, "object,confidence\n\"a, \"\"b\"\" | c: <x>\",0.9\ntea,\n"),
            (
                RowFormat::Table,
                "| object | confidence |\n| --- | --- |\n| a, \"b\" \\| c: &lt;x> | 0.9 |\n| tea |  |\n",
            ),
            (RowFormat::Text, "object: a\\, \"b\" | c\\: &lt;x>, confidence: 0.9\nobject: tea\n"),
            (
                RowFormat::Toon,
                "beliefs[2]{object,confidence}:\n\"a, \\\"b\\\"\\n| c: <x>\",0.9\ntea,null",
            ),
        ] {
            check(&rows, format, expected);
        }
    }

    #[test]
    fn lists_and_numbers_stand_without_the_names_of_rows() {
        let list = Rows {
            shape: Shape::List,
            name: Some("subjects"),
            columns: vec!["subject"],
            rows: vec![vec![Some("alice".into())], vec![Some("b, c".into())]],
        };
        check(&list, RowFormat::Json, "[\n\"alice\",\n\"b, c\"\n]");
        check(&list, RowFormat::Text, "alice\nb, c\n");
        check(&list, RowFormat::Toon, "subjects[2]: alice,\"b, c\"");
        check(&list, RowFormat::Csv, "subject\nalice\n\"b, c\"\n");
        let number = Rows::number("count", 3);
        check(&number, RowFormat::Json, "{\"count\":3}");
        check(&number, RowFormat::Text, "3\n");
        check(&number, RowFormat::Toon, "count: 3");
        check(&number, RowFormat::Csv, "count\n3\n");
        check(&number, RowFormat::Table, "| count |\n| --- |\n| 3 |\n");
    }

    #[test]
    fn nothing_found_is_an_empty_array_or_the_head_alone() {
        let none = Rows {
            shape: Shape::Table,
            name: Some("goals"),
            columns: vec!["object"],
            rows: Vec::new(),
        };
        check(&none, RowFormat::Json, "[]");
        check(&none, RowFormat::Toon, "[0]:");
        check(&none, RowFormat::Text, "");
        check(&none, RowFormat::Csv, "object\n");
    }
}
