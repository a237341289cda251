//! The report: figures as markdown tables, ratios within the run, losses marked. It measures nothing.
//!
//! `noise`: how much to trust it.

mod noise;

use std::fmt::Write;

use compare_facts::{Figure, Record, Unit};

pub(crate) use noise::tail;

/// Whose figures stand in a table, in order.
pub(crate) struct Columns {
    /// Everybody.
    pub(crate) names: Vec<&'static str>,
    /// Whose ratios are shown.
    pub(crate) ours: &'static str,
    /// To whose: names of the sides, with those on each, of whom the best counts.
    pub(crate) sides: Vec<(&'static str, Vec<&'static str>)>,
}

/// A table of everything measured at one size.
#[must_use]
pub(crate) fn table(records: &[Record], grains: usize, columns: &Columns) -> String {
    let records: Vec<&Record> = records.iter().filter(|record| record.grains == grains).collect();
    let measured = |name: &&&str| records.iter().any(|record| record.peer == **name);
    let names: Vec<&str> = columns.names.iter().filter(measured).copied().collect();
    let has_measured = |(_, of): &&(&str, Vec<&str>)| of.iter().any(|name| names.contains(name));
    let sides: Vec<_> = columns.sides.iter().filter(has_measured).collect();

    let mut text = "| work | unit |".to_owned();
    for name in &names {
        let _ = write!(text, " {name} |");
    }
    for (side, _) in &sides {
        let _ = write!(text, " over {side} |");
    }
    let _ = writeln!(text, "\n|---|---|{}", "---|".repeat(names.len() + sides.len()));
    for (work, unit) in works(&records) {
        let of_work: Vec<&Record> =
            records.iter().copied().filter(|record| record.work == work).collect();
        let _ = write!(text, "| {work} | {} |", unit.name());
        for name in &names {
            let _ = write!(text, " {} |", cell(&of_work, name));
        }
        for (_, side) in &sides {
            let _ = write!(text, " {} |", ratios(&of_work, unit, columns.ours, side));
        }
        text.push('\n');
    }
    text
}

/// What was done, in the order it was first done.
fn works<'r>(records: &[&'r Record]) -> Vec<(&'r str, Unit)> {
    let mut works: Vec<(&str, Unit)> = Vec::new();
    for record in records {
        if !works.iter().any(|(work, _)| *work == record.work) {
            works.push((&record.work, record.unit));
        }
    }
    works
}

/// A peer's figures, passes apart by slashes; a dash where it has none.
fn cell(of_work: &[&Record], peer: &str) -> String {
    let passes: Vec<String> = of_work
        .iter()
        .filter(|record| record.peer == peer)
        .map(|record| percentiles(&record.figure))
        .collect();
    if passes.is_empty() { "-".to_owned() } else { passes.join(" / ") }
}

/// `p50 p90 p99`, or the one figure; with the number of calls where they are few.
fn percentiles(figure: &Figure) -> String {
    let mut text = short(figure.p50);
    for percentile in [figure.p90, figure.p99].into_iter().flatten() {
        let _ = write!(text, " {}", short(percentile));
    }
    if figure.p99.is_some() && figure.calls < FEW_CALLS {
        let _ = write!(text, " (n={})", figure.calls);
    }
    text
}

/// Below this many calls a percentile says so.
const FEW_CALLS: usize = 1000;

/// Our median over the best of a side, pass by pass.
fn ratios(of_work: &[&Record], unit: Unit, ours: &str, side: &[&str]) -> String {
    let mut texts = Vec::new();
    let mut lost = false;
    for ours in of_work.iter().filter(|record| record.peer == ours) {
        let theirs = of_work
            .iter()
            .filter(|record| record.pass == ours.pass && side.contains(&record.peer.as_str()))
            .map(|record| record.figure.p50);
        let best =
            if unit.more_is_better() { theirs.reduce(f64::max) } else { theirs.reduce(f64::min) };
        let Some(best) = best else { continue };
        let ratio = ours.figure.p50 / best;
        lost |= if unit.more_is_better() { ratio < 1.0 } else { ratio > 1.0 };
        texts.push(format!("{ratio:.2}"));
    }
    match (texts.is_empty(), lost) {
        (true, _) => "-".to_owned(),
        (false, false) => texts.join(" / "),
        (false, true) => format!("**{} loss**", texts.join(" / ")),
    }
}

/// Three digits that say something.
fn short(value: f64) -> String {
    match value {
        _ if value >= 100.0 => format!("{value:.0}"),
        _ if value >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(peer: &str, pass: usize, unit: Unit, p50: f64) -> Record {
        let figure = Figure { p50, p90: Some(p50 * 2.0), p99: Some(p50 * 3.0), calls: 2000 };
        let (peer, work) = (peer.to_owned(), "put".to_owned());
        Record { grains: 10, pass, peer, work, unit, figure }
    }

    fn columns() -> Columns {
        let sides =
            vec![("redb", vec!["redb-log", "redb-hand"]), ("SQLite", vec!["sqlite-triples"])];
        let names = vec!["grainstore", "redb-log", "redb-hand", "sqlite-triples"];
        Columns { names, ours: "grainstore", sides }
    }

    #[test]
    fn a_table_has_percentiles_of_both_passes_and_ratios_to_the_best_of_a_side() {
        let micros = [
            record("grainstore", 1, Unit::Micros, 30.0),
            record("grainstore", 2, Unit::Micros, 33.0),
            record("redb-log", 1, Unit::Micros, 20.0),
            record("redb-hand", 1, Unit::Micros, 25.0),
            record("redb-log", 2, Unit::Micros, 30.0),
            record("sqlite-triples", 1, Unit::Micros, 60.0),
            record("sqlite-triples", 2, Unit::Micros, 66.0),
        ];
        let expected = "| put | us | 30.0 60.0 90.0 / 33.0 66.0 99.0 | 20.0 40.0 60.0 / 30.0 60.0 90.0 \
                        | 25.0 50.0 75.0 | 60.0 120 180 / 66.0 132 198 | **1.50 / 1.10 loss** \
                        | 0.50 / 0.50 |";
        assert_eq!(table(&micros, 10, &columns()).lines().nth(2), Some(expected));
        assert_eq!(table(&micros, 11, &columns()).lines().count(), 2);
    }

    #[test]
    fn fewer_grains_a_second_are_a_loss() {
        let rates = [
            record("grainstore", 1, Unit::PerSecond, 50.0),
            record("redb-log", 1, Unit::PerSecond, 100.0),
            record("sqlite-triples", 1, Unit::PerSecond, 25.0),
        ];
        let table = table(&rates, 10, &columns());
        let row = table.lines().nth(2).unwrap();
        assert!(row.ends_with("| **0.50 loss** | 2.00 |"), "{row}");
    }
}
