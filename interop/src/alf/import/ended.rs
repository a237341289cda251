//! Records that end without a line of an archive that says so: those that a mirror does not have, and those in whose
//! places the store has others.

use super::records::At;
use super::{ImportReport, Importer};
use crate::alf::agent::RecordRow;
use crate::alf::issue::Place;
use crate::alf::names::tables;
use crate::alf::record::{Record, status_of, uuid_number};
use crate::alf::survey::Survey;
use crate::error::Result;
use crate::json::{self, Value};

impl Importer<'_, '_> {
    /// Deletes the records that an archive does not have.
    pub(in super::super) fn delete_absent(
        &mut self,
        survey: &Survey,
        report: &mut ImportReport,
    ) -> Result<()> {
        let mut absent = Vec::new();
        self.agent.rows.each(tables::RECORDS, |id, row: RecordRow| {
            let is_absent = uuid_number(id).is_none_or(|number| !survey.has(number));
            let is_change = row.change_of.is_some() || row.changed_by.is_some();
            if is_absent && !is_change && status_of(&row.changing) != "deleted" {
                absent.push(id.to_owned());
            }
            Ok(())
        })?;
        absent.sort_unstable();
        for id in absent {
            self.set_status(&id, "deleted", report)?;
        }
        self.flush(report)
    }

    /// Says that a grain which is no record stands in the place of a record of the store. Of one whose partition is sealed a
    /// record of its own says it.
    pub(super) fn set_superseded(&mut self, id: &str, report: &mut ImportReport) -> Result<()> {
        let Some(row) = self.agent.row(id)? else { return Ok(()) };
        if !self.is_sealed(&row) {
            return self.set_status(id, "superseded", report);
        }
        let mut record = self.agent.record(&row)?;
        // It is a change of now, whenever the record was updated before.
        if let Some(Value::Object(times)) = record.get_mut("temporal") {
            times.remove("updated_at");
        }
        let Some(record) = Record::of(record) else { return Ok(()) };
        let at = At { place: Place::entry("memory"), key: (0, 0), is_last_round: true };
        self.change_sealed(row, &record, "superseded", at, report)?;
        match self.chunk.is_full() {
            true => self.flush(report),
            false => Ok(()),
        }
    }

    /// Gives a record of the store another status.
    pub(super) fn set_status(
        &mut self,
        id: &str,
        status: &str,
        report: &mut ImportReport,
    ) -> Result<()> {
        let Some(row) = self.agent.row(id)? else { return Ok(()) };
        let mut record = self.agent.record(&row)?;
        json::set(&mut record, "status", Value::from(status));
        let Some(record) = Record::of(record) else { return Ok(()) };
        let place = Place::entry("memory");
        let at = At { place, key: (0, 0), is_last_round: true };
        self.take_known(row, record, None, at, report)?;
        match self.chunk.is_full() {
            true => self.flush(report),
            false => Ok(()),
        }
    }
}
