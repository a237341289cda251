//! The lines of an archive, in the order in which they are taken: consents first, since others rest on them; then the other
//! records; and those that wait for a later one once that is there.

use super::records::At;
use super::{ImportReport, Importer};
use crate::alf::agent::is_hidden;
use crate::alf::bundle::Bundle;
use crate::alf::issue::{Issues, Place};
use crate::alf::record::{Record, uuid_text};
use crate::alf::survey::{LineCheck, Survey};
use crate::error::Result;
use crate::monitor::Monitor;

/// Records between two reports of the progress.
const STEP: u64 = 500;

/// Which records are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Round {
    /// Those that carry a consent.
    Consents,
    /// The others.
    Others,
}

impl Importer<'_, '_> {
    /// Reads the records of an archive. Those that take the place of a record that comes later wait for it.
    pub(in super::super) fn run(
        &mut self,
        bundle: &Bundle,
        survey: &Survey,
        report: &mut ImportReport,
        monitor: &Monitor<'_>,
    ) -> Result<()> {
        for round in [Round::Consents, Round::Others] {
            if round == Round::Consents && survey.consents.is_empty() {
                continue;
            }
            self.read((bundle, round), survey, report, monitor)?;
            self.take_deferred((bundle, round), survey, report, monitor)?;
            self.flush(report)?;
        }
        Ok(())
    }

    fn read(
        &mut self,
        (bundle, round): (&Bundle, Round),
        survey: &Survey,
        report: &mut ImportReport,
        monitor: &Monitor<'_>,
    ) -> Result<()> {
        let check = LineCheck::new(bundle, self.is_lenient());
        let total = survey.lines.iter().copied().fold(0, u64::saturating_add);
        for (number, partition) in bundle.partitions.iter().enumerate() {
            let Some(entry) = bundle.archive.entry(&partition.file) else { continue };
            if round == Round::Consents && !survey.has_consents(number) {
                continue;
            }
            let file = Place::entry(&partition.file);
            for line in bundle.lines(entry)? {
                let line = line?;
                let is_consent = survey.consents.contains(&(number, line.number));
                if is_consent != (round == Round::Consents) {
                    continue;
                }
                report.records.read += 1;
                if report.records.read.is_multiple_of(STEP) {
                    monitor.step(report.records.read, total)?;
                }
                let place = file.line(line.number);
                let at = At { place, key: (number, line.number), is_last_round: false };
                match check.check(line, &place, &mut Issues::default()) {
                    Ok(value) => self.take(value, bundle, survey, at, report)?,
                    Err(error) => report.fail(&place, &error),
                }
                if self.chunk.is_full() {
                    self.flush(report)?;
                }
            }
        }
        Ok(())
    }

    /// Takes the records that wait, each after the one that it waits for. Those that wait for one that was not taken, or
    /// for each other, go on without it; consents wait until the other records are taken.
    fn take_deferred(
        &mut self,
        (bundle, round): (&Bundle, Round),
        survey: &Survey,
        report: &mut ImportReport,
        monitor: &Monitor<'_>,
    ) -> Result<()> {
        let deferred = std::mem::take(&mut self.deferred);
        let total = deferred.len() as u64;
        for (done, turn) in (0_u64..).zip(deferred.turns()) {
            if done.is_multiple_of(STEP) {
                monitor.step(done, total)?;
            }
            let Some(partition) = bundle.partitions.get(turn.line.0) else { continue };
            let target = deferred.target(turn.line);
            let newest = match self.newest_of(&target.map(uuid_text).unwrap_or_default()) {
                Err(error) if is_hidden(&error) => None,
                newest => newest?,
            };
            let is_last_round = turn.is_circular || newest.is_none();
            let value = deferred.read(turn.line)?;
            if round == Round::Consents && is_last_round {
                if let (Some(target), Some(record)) = (target, Record::of(value)) {
                    self.deferred.add(turn.line, &record, target)?;
                }
                continue;
            }
            let file = Place::entry(&partition.file);
            let at = At { place: file.line(turn.line.1), key: turn.line, is_last_round };
            self.take(value, bundle, survey, at, report)?;
            if self.chunk.is_full() {
                self.flush(report)?;
            }
        }
        Ok(())
    }
}

impl Survey {
    /// Returns `true` if a record of a partition carries a consent.
    fn has_consents(&self, partition: usize) -> bool {
        self.consents.range((partition, 0)..=(partition, u64::MAX)).next().is_some()
    }
}
