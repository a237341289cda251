//! Answers of DESCRIBE for people: the grammar as text, tables as columns, facts as lines.
//!
//! Works on the JSON of a description, and knows only the table of fields by name.

use serde_json::Value;

use crate::error::Result;
use crate::output::Output;

/// The table with columns of its own.
const FIELDS_TABLE: &str = "fields";

/// Prints a description.
pub(super) fn write_description(description: &Value, output: &mut Output<'_>) -> Result<()> {
    let Value::Object(parts) = description else {
        return output.document(description);
    };
    let is_table =
        |part: &Value| part.as_array().is_some_and(|rows| rows.iter().any(Value::is_object));
    for (name, part) in parts.iter().filter(|(_, part)| !is_table(part)) {
        match part {
            Value::String(grammar) if name == "grammar" => write_lines(grammar, output)?,
            other => write_fact(name, other, output)?,
        }
    }
    // The fields were asked for; other tables follow under their names.
    if let Some(Value::Array(fields)) = parts.get(FIELDS_TABLE) {
        write_columns(&field_rows(fields), output)?;
    }
    for (name, part) in parts.iter().filter(|(name, part)| *name != FIELDS_TABLE && is_table(part))
    {
        if parts.len() > 1 {
            output.line("")?;
            output.line(&format!("{name}:"))?;
        }
        if let Value::Array(rows) = part {
            write_columns(&table_rows(rows), output)?;
        }
    }
    Ok(())
}

fn write_lines(text: &str, output: &mut Output<'_>) -> Result<()> {
    text.lines().try_for_each(|line| output.line(line))
}

/// Prints a fact on one line; nested facts under its name.
fn write_fact(name: &str, told: &Value, output: &mut Output<'_>) -> Result<()> {
    match told {
        Value::Object(inner) => {
            for (key, told) in inner {
                write_fact(&format!("{name}.{key}"), told, output)?;
            }
            Ok(())
        }
        told => output.line(&format!("{name}: {}", format_value(told))),
    }
}

/// Returns name, operators and values of each field, under a heading.
fn field_rows(fields: &[Value]) -> Vec<Vec<String>> {
    let heading = ["name", "operators", "values"].map(str::to_owned).to_vec();
    let row = |field: &Value| {
        let told = |name: &str| field.get(name).map(format_value).unwrap_or_default();
        let values = if field.get("values").is_some() { "values" } else { "holds" };
        vec![told("name"), told("operators"), told(values)]
    };
    std::iter::once(heading).chain(fields.iter().map(row)).collect()
}

/// Returns rows of equal keys, under a heading of these, the name first.
fn table_rows(rows: &[Value]) -> Vec<Vec<String>> {
    let mut keys: Vec<&String> =
        rows.first().and_then(Value::as_object).into_iter().flat_map(|row| row.keys()).collect();
    keys.sort_by_key(|key| *key != "name");
    let heading = keys.iter().map(|key| key.replace('_', " ")).collect();
    let row = |row: &Value| {
        keys.iter().map(|key| row.get(key.as_str()).map(format_value).unwrap_or_default()).collect()
    };
    std::iter::once(heading).chain(rows.iter().map(row)).collect()
}

/// Prints rows in aligned columns.
fn write_columns(rows: &[Vec<String>], output: &mut Output<'_>) -> Result<()> {
    let most = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..most).map(width).collect();
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        output.line(cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}

/// Formats a value for a line: text as it is, lists with commas, "none" if empty.
fn format_value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "none".to_owned(),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(items) => items.iter().map(format_value).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}
