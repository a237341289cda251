//! The report: figures as markdown tables, ratios within the run, losses marked. It measures nothing.

use std::fmt::Write;

use crate::peer::{CONTENDERS, Contender, Side};
use crate::record::{Figure, Record, Unit};

/// A table of everything measured at one size.
#[must_use]
pub(crate) fn table(records: &[Record], grains: usize) -> String {
    let records: Vec<&Record> = records.iter().filter(|record| record.grains == grains).collect();
    let measured = |contender: &Contender| records.iter().any(|r| r.peer == contender.name);
    let contenders: Vec<Contender> = CONTENDERS.into_iter().filter(measured).collect();

    let mut text = "| work | unit |".to_owned();
    for contender in &contenders {
        text.push_str(&format!(" {} |", contender.name));
    }
    text.push_str(" over redb | over SQLite |\n|---|---|");
    text.push_str(&"---|".repeat(contenders.len() + 2));
    text.push('\n');
    for (work, unit) in works(&records) {
        let of_work: Vec<&Record> =
            records.iter().copied().filter(|record| record.work == work).collect();
        let _ = write!(text, "| {work} | {} |", unit.name());
        for contender in &contenders {
            let _ = write!(text, " {} |", cell(&of_work, contender.name));
        }
        for side in [Side::Redb, Side::Sqlite] {
            let _ = write!(text, " {} |", ratios(&of_work, unit, side));
        }
        text.push('\n');
    }
    text
}

/// How far the first two passes lie apart: the median over all figures, in percent of the smaller
/// one; none where there is one pass.
#[must_use]
pub(crate) fn noise(records: &[Record]) -> Option<f64> {
    let mut apart: Vec<f64> =
        both_passes(records).map(|(_, times)| (times - 1.0) * 100.0).collect();
    apart.sort_unstable_by(f64::total_cmp);
    apart.get(apart.len() / 2).copied()
}

/// The figures whose first two passes lie so far apart that neither says much: something else was
/// at work on the machine.
#[must_use]
pub(crate) fn unsteady(records: &[Record]) -> Vec<String> {
    both_passes(records)
        .filter(|(_, times)| *times > UNSTEADY_TIMES)
        .map(|(record, times)| {
            let Record { work, peer, grains, .. } = record;
            format!("{work}, {peer}, {grains} grains: {times:.1} times")
        })
        .collect()
}

/// Passes this many times apart are reported one by one.
const UNSTEADY_TIMES: f64 = 1.3;

/// Every figure of the first pass that the second has too, and how many times the larger of the two
/// is the smaller.
fn both_passes(records: &[Record]) -> impl Iterator<Item = (&Record, f64)> {
    let of_pass = |pass: usize| records.iter().filter(move |record| record.pass == pass);
    of_pass(1).filter_map(move |first| {
        let same = |second: &&Record| {
            (second.grains, second.peer, second.work) == (first.grains, first.peer, first.work)
        };
        let (one, two) = (first.figure.p50, of_pass(2).find(same)?.figure.p50);
        Some((first, one.max(two) / one.min(two)))
    })
}

/// What was done, in the order it was first done.
fn works(records: &[&Record]) -> Vec<(&'static str, Unit)> {
    let mut works: Vec<(&'static str, Unit)> = Vec::new();
    for record in records {
        if !works.iter().any(|(work, _)| *work == record.work) {
            works.push((record.work, record.unit));
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

/// Grainstore's median over the best of a side, pass by pass.
fn ratios(of_work: &[&Record], unit: Unit, side: Side) -> String {
    let on_side = |record: &&&Record, wanted: Side| {
        Contender::named(record.peer).is_some_and(|contender| contender.side == wanted)
    };
    let mut texts = Vec::new();
    let mut lost = false;
    for ours in of_work.iter().filter(|record| on_side(record, Side::Grainstore)) {
        let theirs = of_work
            .iter()
            .filter(|record| record.pass == ours.pass && on_side(record, side))
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

    fn record(peer: &'static str, pass: usize, unit: Unit, p50: f64) -> Record {
        let figure = Figure { p50, p90: Some(p50 * 2.0), p99: Some(p50 * 3.0), calls: 2000 };
        Record { grains: 10, pass, peer, work: "put", unit, figure }
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
        assert_eq!(table(&micros, 10).lines().nth(2), Some(expected));
        assert_eq!(table(&micros, 11).lines().count(), 2);
    }

    #[test]
    fn fewer_grains_a_second_are_a_loss() {
        let rates = [
            record("grainstore", 1, Unit::PerSecond, 50.0),
            record("redb-log", 1, Unit::PerSecond, 100.0),
            record("sqlite-triples", 1, Unit::PerSecond, 25.0),
        ];
        let table = table(&rates, 10);
        let row = table.lines().nth(2).unwrap();
        assert!(row.ends_with("| **0.50 loss** | 2.00 |"), "{row}");
    }

    #[test]
    fn noise_is_the_median_distance_of_the_passes_and_what_is_unsteady_is_named() {
        let once = [record("redb-log", 1, Unit::Micros, 20.0)];
        assert_eq!(noise(&once), None);
        let twice = [once[0].clone(), record("redb-log", 2, Unit::Micros, 25.0)];
        assert_eq!(noise(&twice), Some(25.0));
        assert!(unsteady(&twice).is_empty());
        let apart = [once[0].clone(), record("redb-log", 2, Unit::Micros, 10.0)];
        assert_eq!(unsteady(&apart), ["put, redb-log, 10 grains: 2.0 times"]);
    }
}
