//! What a run tells people: tables within 80 columns, and what is to be known beside them.

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};

use super::figure::Figure;
use super::machine::Machine;
use super::report::{Report, Row};
use crate::error::Result;
use crate::output::Output;

/// How to get SQLite beside it.
const WITH_SQLITE: &str = "For SQLite beside it: cargo install --path cli --features sqlite";
/// What a ratio says.
const RATIO: &str = "ratio: Grainstore over SQLite, medians; above 1 is a loss, for rates below 1";
/// What stands where there is no figure.
const NONE: &str = "-";

/// Prints a report for people.
pub(super) fn show(report: &Report, output: &mut Output<'_>) -> Result<()> {
    let Machine { cores, os, arch, file_system } = &report.machine;
    let disk = file_system.as_ref().map_or(String::new(), |kind| format!(", {kind}"));
    let grains = number(f64::from(report.grains));
    let beside = report.sqlite.map_or(String::new(), |version| format!(" beside SQLite {version}"));
    output.line(&format!("grain {}{beside}, {grains} grains", report.version))?;
    output.line(&format!("{cores} cores, {os} {arch}{disk}; times in microseconds"))?;
    output.line("")?;
    output.text(&times(report))?;
    output.line("")?;
    output.text(&amounts(report))?;
    output.line("")?;
    match report.sqlite {
        Some(_) => output.line(RATIO)?,
        None => output.line(WITH_SQLITE)?,
    }
    if report.machine.is_in_memory() {
        let told = "The stores were in memory, where durable writes mean nothing: give --dir";
        output.line(told)?;
    }
    if report.build == "debug" {
        output.line("A debug build: its figures mean nothing. Build with --release")?;
    }
    Ok(())
}

/// The percentiles of each kind of work: a line for each that was measured.
fn times(report: &Report) -> String {
    const PERCENTILES: [&str; 4] = ["p50", "p95", "p99", "calls"];
    if report.sqlite.is_none() {
        let line = |row: &Row| {
            let mut cells = vec![row.about.to_owned()];
            cells.extend(percentiles(row.grainstore.as_ref()));
            cells
        };
        return draw(&[&[""], &PERCENTILES[..]].concat(), 1, report.rows.iter().map(line));
    }
    let lines = report.rows.iter().flat_map(|row| {
        let mut ours = vec![row.about.to_owned(), "Grainstore".to_owned()];
        ours.extend(percentiles(row.grainstore.as_ref()));
        ours.push(told(row.ratio, two_digits));
        let theirs = row.sqlite.as_ref().map(|figure| {
            let mut cells = vec![String::new(), "SQLite".to_owned()];
            cells.extend(percentiles(Some(figure)));
            cells
        });
        [ours].into_iter().chain(theirs)
    });
    draw(&[&["", ""], &PERCENTILES[..], &["ratio"]].concat(), 2, lines)
}

/// Rates, room and memory.
fn amounts(report: &Report) -> String {
    let is_beside = report.sqlite.is_some();
    let mut heading = vec!["", "Grainstore"];
    if is_beside {
        heading.extend(["SQLite", "ratio"]);
    }
    let line = |about: String, ours, theirs, ratio| {
        let mut cells = vec![about, told(ours, number)];
        if is_beside {
            cells.extend([told(theirs, number), told(ratio, two_digits)]);
        }
        cells
    };
    let rate = |figure: &Option<Figure>| figure.as_ref().and_then(|figure| figure.per_second);
    let rates = report.rows.iter().filter(|row| rate(&row.grainstore).is_some()).map(|row| {
        let about = format!("{}, grains a second", row.name);
        line(about, rate(&row.grainstore), rate(&row.sqlite), row.rate_ratio)
    });
    let rooms = report.disk.iter().map(|room| {
        let about = format!("disk, {}, {}", room.name, room.unit);
        line(about, room.grainstore, room.sqlite, room.ratio)
    });
    let mebibytes = |bytes: u64| f64::from(u32::try_from(bytes >> 20).unwrap_or(u32::MAX));
    let memory = report.memory.peak_bytes.map(|bytes| {
        let all = if is_beside { " of both together" } else { "" };
        line(format!("peak memory{all}, MiB"), Some(mebibytes(bytes)), None, None)
    });
    draw(&heading, 1, rates.chain(rooms).chain(memory))
}

fn percentiles(figure: Option<&Figure>) -> [String; 4] {
    match figure {
        Some(Figure { p50, p95, p99, calls, .. }) => {
            [number(*p50), number(*p95), number(*p99), calls.to_string()]
        }
        None => [NONE; 4].map(str::to_owned),
    }
}

fn told(figure: Option<f64>, tell: fn(f64) -> String) -> String {
    figure.map_or(NONE.to_owned(), tell)
}

fn two_digits(figure: f64) -> String {
    format!("{figure:.2}")
}

/// Formats a figure to at least three digits, its thousands apart.
fn number(figure: f64) -> String {
    if figure < 100.0 {
        return format!("{figure:.1}");
    }
    let digits = format!("{figure:.0}");
    let mut told = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            told.push(',');
        }
        told.push(digit);
    }
    told
}

/// Draws a table whose first columns are so many of text and whose others are numbers.
fn draw(heading: &[&str], texts: usize, rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(TableStyle::new().header_separator(LineStyle::none().fill('─')));
    table.set_header(heading);
    table.add_rows(rows);
    table.column_iter_mut().skip(texts).for_each(|column| {
        column.set_cell_alignment(CellAlignment::Right);
    });
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_their_thousands_apart() {
        for (figure, expected) in [
            (0.04, "0.0"),
            (7.25, "7.2"),
            (99.94, "99.9"),
            (123.4, "123"),
            (1_234.0, "1,234"),
            (1_234_567.0, "1,234,567"),
        ] {
            assert_eq!(number(figure), expected);
        }
    }
}
