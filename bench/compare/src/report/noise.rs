//! How much to trust the figures: how far two passes lie apart.

use std::io::{self, Write};

use compare_facts::Record;

use crate::{Result, machine};

/// Passes this many times apart are reported one by one.
const UNSTEADY_TIMES: f64 = 1.3;

/// Says what was checked, and how much to trust it.
///
/// # Errors
/// The output's.
pub(crate) fn tail(records: &[Record], passes: usize) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "\nAnswers were compared with a scan of all rows before they were timed.")?;
    match noise(records) {
        Some(percent) => writeln!(
            out,
            "Noise: half of all figures differ by more than {percent:.0} % between the first two of {passes} passes; load {} at the end.",
            machine::load()
        )?,
        None => writeln!(out, "One pass only: noise is not known; load {}.", machine::load())?,
    }
    for figure in unsteady(records) {
        writeln!(out, "- unsteady, not to be trusted: {figure} between the passes")?;
    }
    Ok(())
}

/// How far the first two passes lie apart: the median over all figures, in percent of the smaller
/// one; none where there is one pass.
fn noise(records: &[Record]) -> Option<f64> {
    let mut apart: Vec<f64> =
        both_passes(records).map(|(_, times)| (times - 1.0) * 100.0).collect();
    apart.sort_unstable_by(f64::total_cmp);
    apart.get(apart.len() / 2).copied()
}

/// The figures whose first two passes lie so far apart that neither says much: something else was
/// at work on the machine.
fn unsteady(records: &[Record]) -> Vec<String> {
    both_passes(records)
        .filter(|(_, times)| *times > UNSTEADY_TIMES)
        .map(|(record, times)| {
            let Record { work, peer, grains, .. } = record;
            format!("{work}, {peer}, {grains} grains: {times:.1} times")
        })
        .collect()
}

/// Every figure of the first pass that the second has too, and how many times the larger of the two
/// is the smaller.
fn both_passes(records: &[Record]) -> impl Iterator<Item = (&Record, f64)> {
    let of_pass = |pass: usize| records.iter().filter(move |record| record.pass == pass);
    of_pass(1).filter_map(move |first| {
        let same = |second: &&Record| {
            (second.grains, &second.peer, &second.work) == (first.grains, &first.peer, &first.work)
        };
        let (one, two) = (first.figure.p50, of_pass(2).find(same)?.figure.p50);
        Some((first, one.max(two) / one.min(two)))
    })
}

#[cfg(test)]
mod tests {
    use compare_facts::{Figure, Unit};

    use super::*;

    fn record(peer: &str, pass: usize, unit: Unit, p50: f64) -> Record {
        let (peer, work) = (peer.to_owned(), "put".to_owned());
        Record { grains: 10, pass, peer, work, unit, figure: Figure::once(p50) }
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
