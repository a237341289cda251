//! Records on their way into the store: which are new, which are there, which changed and how.

use std::collections::{BTreeMap, BTreeSet};

use grainstore::{ContentAddress, EpochMs};

use super::chunk::{Chunk, Outcome, SUPERSESSION, Waiting, WaitingRow};
use super::{ImportOptions, ImportReport, purged_error};
use crate::alf::agent::{Agent, Change, RecordRow, is_agent};
use crate::alf::bundle::Bundle;
use crate::alf::change::change_record;
use crate::alf::issue::{Issues, Place};
use crate::alf::names::{PRINCIPALS, PROFILE};
use crate::alf::partition::labels_of;
use crate::alf::record::{
    AgentPrincipals, Record, digest_of, fields_of, grain_type_of, joined_record, sensitivity_of,
    status_of, uuid_number,
};
use crate::alf::survey::{LineCheck, Survey, filled};
use crate::alf::vectors::{VectorSpaces, references};
use crate::error::Result;
use crate::json::{self, Lines, Value, equal};
use crate::kept::NewGrain;
use crate::monitor::Monitor;

/// Why a grain takes the place of another of the same record.
const UPDATE: &str = "alf update";
/// Records between two reports of the progress.
const STEP: u64 = 500;

/// What a line of a delta does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Operation {
    Create,
    Update,
    Delete,
}

/// Writes records into the store.
#[derive(Debug)]
pub(in super::super) struct Importer<'a, 's> {
    agent: &'a Agent<'s>,
    options: &'a ImportOptions,
    /// The sequence number of what is written, and how many parts of it are.
    sequence: u64,
    parts: u64,
    principals: AgentPrincipals,
    /// Labels of partitions whose bytes must not change.
    sealed: BTreeSet<String>,
    spaces: VectorSpaces,
    chunk: Chunk,
    /// Labels of partitions of which the store has not exactly what was read.
    pub(super) touched: BTreeSet<String>,
    /// Lines whose records wait for those whose places they take, with the numbers of both.
    deferred: BTreeMap<LineKey, (u128, u128)>,
    now: EpochMs,
}

/// A line: the place of its partition, and its number.
type LineKey = (usize, u64);

/// A line that is read.
#[derive(Debug, Clone, Copy)]
struct At<'p> {
    place: Place<'p>,
    key: (usize, u64),
    /// True if nothing is waited for any more.
    is_last_round: bool,
}

impl<'a, 's> Importer<'a, 's> {
    pub(in super::super) fn new(
        agent: &'a Agent<'s>,
        options: &'a ImportOptions,
        sequence: u64,
    ) -> Result<Self> {
        Ok(Self {
            agent,
            options,
            sequence,
            parts: 0,
            principals: agent.agent_principals()?,
            sealed: agent.sealed()?.list().keys().cloned().collect(),
            spaces: VectorSpaces::of(agent.session)?,
            chunk: Chunk::default(),
            touched: BTreeSet::new(),
            deferred: BTreeMap::new(),
            now: agent.session.now(),
        })
    }

    /// Learns which principals are agents, from the documents of an archive too.
    pub(in super::super) fn know_principals(&mut self, survey: &Survey) -> Result<()> {
        for (layer, document) in &survey.documents {
            let list = document.get("principals").and_then(Value::as_array);
            if *layer == PRINCIPALS {
                let agents = list.into_iter().flatten().filter(|principal| is_agent(principal));
                let ids = agents.filter_map(|principal| principal.get("id")?.as_str());
                self.principals.extend(ids.map(str::to_ascii_lowercase));
            }
        }
        Ok(())
    }

    /// Adds entries to the log beyond those of records.
    pub(in super::super) fn log(&mut self, changes: Vec<(Change, String)>) {
        self.chunk.log.extend(changes);
    }

    /// Reads the records of an archive. Those that take the place of a record that comes later wait for it.
    pub(in super::super) fn run(
        &mut self,
        bundle: &Bundle,
        survey: &Survey,
        report: &mut ImportReport,
        monitor: &Monitor<'_>,
    ) -> Result<()> {
        self.round(bundle, survey, None, report, monitor)?;
        while !self.deferred.is_empty() {
            self.flush(report)?;
            let waiting = std::mem::take(&mut self.deferred);
            let lines = waiting.keys().copied().collect();
            self.round(bundle, survey, Some((&lines, false)), report, monitor)?;
            if self.deferred.len() < waiting.len() {
                continue;
            }
            // Those that wait for one that was not taken go on without it; if there are none, all wait for each other.
            let ids: BTreeSet<u128> = waiting.values().map(|(id, _)| *id).collect();
            let in_vain = waiting.iter().filter(|(_, (_, target))| !ids.contains(target));
            let mut in_vain: BTreeSet<LineKey> = in_vain.map(|(line, _)| *line).collect();
            if in_vain.is_empty() {
                in_vain = lines;
            }
            self.deferred.retain(|line, _| !in_vain.contains(line));
            self.round(bundle, survey, Some((&in_vain, true)), report, monitor)?;
        }
        self.flush(report)
    }

    /// Reads all lines, or those of a set, of which nothing waits any more in the last round.
    fn round(
        &mut self,
        bundle: &Bundle,
        survey: &Survey,
        only: Option<(&BTreeSet<LineKey>, bool)>,
        report: &mut ImportReport,
        monitor: &Monitor<'_>,
    ) -> Result<()> {
        let check = LineCheck::new(bundle, self.options.lenient);
        let total = survey.lines.iter().copied().fold(0, u64::saturating_add);
        let mut done = 0_u64;
        for (number, partition) in bundle.partitions.iter().enumerate() {
            let is_asked = |(set, _): (&BTreeSet<LineKey>, bool)| {
                set.range((number, 0)..=(number, u64::MAX)).next().is_some()
            };
            let Some(entry) = bundle.archive.entry(&partition.file) else { continue };
            if only.is_some_and(|only| !is_asked(only)) {
                continue;
            }
            let file = Place::entry(&partition.file);
            for line in Lines::of(bundle.archive.reader(entry)?) {
                let line = line?;
                let key = (number, line.number);
                if only.is_some_and(|(set, _)| !set.contains(&key)) {
                    continue;
                }
                done += 1;
                if done.is_multiple_of(STEP) {
                    monitor.step(done, total)?;
                }
                let place = file.line(line.number);
                let is_last_round = only.is_some_and(|(_, is_last)| is_last);
                let at = At { place, key, is_last_round };
                report.records.read += u64::from(only.is_none());
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

    /// Takes one record.
    fn take(
        &mut self,
        mut value: Value,
        bundle: &Bundle,
        survey: &Survey,
        at: At<'_>,
        report: &mut ImportReport,
    ) -> Result<()> {
        let operation = value.as_object_mut().and_then(|members| members.remove("operation"));
        let operation = match operation.as_ref().and_then(Value::as_str) {
            Some("update") => Operation::Update,
            Some("delete") => Operation::Delete,
            None | Some("create") => Operation::Create,
            // What is not known is passed over; the first pass warned of it.
            Some(_) => return Ok(()),
        };
        let defaults = self.options.lenient.then(|| filled(&value, bundle));
        let Some(record) = Record::of(value) else { return Ok(()) };
        let of_chunk = |id: &Option<String>| id.iter().any(|id| self.chunk.changes(id));
        let waits = |id: &String| uuid_number(id).is_some_and(|number| self.chunk.has(number));
        let is_changed = of_chunk(&record.supersedes)
            || self.chunk.changes(&record.id)
            || record.change_of.iter().any(waits);
        if is_changed || self.chunk.has(record.number) {
            self.flush(report)?;
        }
        if !self.options.allow_purged && self.agent.is_purged(&record.id)? {
            report.fail(&at.place, &purged_error());
            return Ok(());
        }
        let row = self.agent.row(&record.id)?;
        let filled_rest = defaults.and_then(Record::of).map(|record| record.rest);
        match (row, operation) {
            (None, Operation::Delete) => {
                report.warn(&at.place, "a record that the store does not have is deleted");
                Ok(())
            }
            (None, operation) => {
                if operation == Operation::Update {
                    report.warn(&at.place, "a record that the store does not have is updated");
                }
                self.take_new(record, filled_rest.as_ref(), survey, at, report)
            }
            (Some(row), _) if row.digest == record.digest => {
                report.records.unchanged += 1;
                Ok(())
            }
            (Some(row), operation) => {
                if operation == Operation::Create && self.is_delta(bundle) {
                    report.warn(&at.place, "a record that the store has is created");
                }
                self.take_known(row, record, filled_rest.as_ref(), at, report)
            }
        }
    }

    fn is_delta(&self, bundle: &Bundle) -> bool {
        bundle.kind == crate::alf::bundle::Kind::Delta
    }

    /// Takes a record that the store does not have.
    fn take_new(
        &mut self,
        record: Record,
        filled_rest: Option<&Value>,
        survey: &Survey,
        at: At<'_>,
        report: &mut ImportReport,
    ) -> Result<()> {
        let mut old = None;
        if let Some(target) = &record.supersedes
            && *target != record.id
        {
            let coming = uuid_number(target).filter(|number| survey.has(*number));
            if !at.is_last_round {
                old = self.newest_of(target)?;
            }
            if let (None, Some(coming), false) = (&old, coming, at.is_last_round) {
                self.deferred.insert(at.key, (record.number, coming));
                return Ok(());
            }
            if coming.is_some() && at.is_last_round {
                let message =
                    "the record it supersedes is not taken, or supersedes it: it is kept as text";
                report.warn(&at.place, message);
            }
        }
        self.queue(
            record,
            filled_rest,
            (Change::Created, Change::Created),
            old.map(|old| (old, SUPERSESSION)),
            at,
            report,
        )
    }

    /// Returns the grain that a record is in now, and its type, of one that is stored or waits to be.
    fn newest_of(&self, id: &str) -> Result<Option<(ContentAddress, u8)>> {
        let waiting = uuid_number(id).and_then(|number| self.chunk.get(number));
        if let Some(waiting) = waiting {
            return Ok(Some((waiting.grain.address(), waiting.grain_type)));
        }
        let Some(row) = self.agent.row(id)? else { return Ok(None) };
        let newest = self.agent.newest(row)?;
        Ok(Some((newest.address.parse()?, newest.grain_type)))
    }

    /// The row of the record that another is a change of, which says so.
    fn changed_row(&self, record: &Record) -> Result<Option<(String, RecordRow)>> {
        let Some(target) = &record.change_of else { return Ok(None) };
        let Some(row) = self.agent.row(target)? else { return Ok(None) };
        Ok(Some((target.clone(), RecordRow { changed_by: Some(record.id.clone()), ..row })))
    }

    /// Takes a record that the store has in another form.
    fn take_known(
        &mut self,
        row: RecordRow,
        record: Record,
        filled_rest: Option<&Value>,
        at: At<'_>,
        report: &mut ImportReport,
    ) -> Result<()> {
        let (rest, changing) = (self.agent.rest(&row)?, self.agent.changing(&row)?);
        let is_same = equal(&rest, &record.rest);
        if is_same && equal(&changing, &record.changing) {
            report.records.unchanged += 1;
            return Ok(());
        }
        let [was, is] = [status_of(&changing), record.status()].map(str::to_owned);
        let is_ended = |status: &str| matches!(status, "deleted" | "archived");
        if labels_of(row.created_ms).iter().any(|label| self.sealed.contains(label)) {
            if is_same && (was == is || !is_ended(&is)) {
                return self.update_row(row, &rest, &record, (&was, Change::Updated), at);
            }
            return self.change_sealed(row, &record, &is, at, report);
        }
        self.touched.extend(labels_of(row.created_ms));
        if is_same && !(was == "deleted" && is != "deleted") {
            let change = if is == "deleted" { Change::Deleted } else { Change::Updated };
            return self.update_row(row, &rest, &record, (&was, change), at);
        }
        let newest = self.agent.newest(row)?;
        let old = (newest.address.parse()?, newest.grain_type);
        let change = if is == "deleted" { Change::Deleted } else { Change::Updated };
        self.queue(record, filled_rest, (change, change), Some((old, UPDATE)), at, report)
    }

    /// Writes what changes of a record without making it another.
    fn update_row(
        &mut self,
        row: RecordRow,
        rest: &Value,
        record: &Record,
        (was, change): (&str, Change),
        at: At<'_>,
    ) -> Result<()> {
        let old = self.agent.changing(&row)?;
        let embeddings = record.changing.get("embeddings");
        let vectors = match old.get("embeddings") == embeddings {
            true => Vec::new(),
            false => self.spaces.vectors(embeddings).0,
        };
        let change = if was == "deleted" { Change::Updated } else { change };
        let whole = joined_record(rest.clone(), &record.changing);
        let (digest, changing) = (digest_of(&whole), record.changing.clone());
        let row = RecordRow { digest, changing, ..row };
        let (id, at) = (record.id.clone(), at.place.to_string());
        self.chunk.add_row(WaitingRow { id, row, change, vectors, at });
        Ok(())
    }

    /// A record whose partition is sealed is changed by a record of its own.
    fn change_sealed(
        &mut self,
        row: RecordRow,
        record: &Record,
        status: &str,
        at: At<'_>,
        report: &mut ImportReport,
    ) -> Result<()> {
        let is_ended = matches!(status, "deleted" | "archived");
        let status = if is_ended { status } else { "active" };
        let change = change_record(&record.whole(), status, self.now);
        let newest = self.agent.newest(row)?;
        let now = self.agent.record(&newest)?;
        let said = |value: &Value, name: &str| value.get(name).cloned().unwrap_or_default();
        let is_there = newest.change_of.is_some()
            && said(&now, "content") == said(&change, "content")
            && said(&now, "status") == said(&change, "status");
        let Some(change) = Record::of(change).filter(|_| !is_there) else {
            report.records.unchanged += 1;
            return Ok(());
        };
        let old = (newest.address.parse()?, newest.grain_type);
        let counted = if status == "deleted" { Change::Deleted } else { Change::Updated };
        let changes = (Change::Created, counted);
        self.queue(change, None, changes, Some((old, SUPERSESSION)), at, report)
    }

    /// Makes the grain of a record, and adds it to the chunk.
    fn queue(
        &mut self,
        record: Record,
        filled_rest: Option<&Value>,
        (change, counted): (Change, Change),
        old: Option<((ContentAddress, u8), &str)>,
        at: At<'_>,
        report: &mut ImportReport,
    ) -> Result<()> {
        let grain_type = grain_type_of(filled_rest.unwrap_or(&record.rest)).byte();
        let (old, retired) = match old {
            Some(((old, of_type), why)) if of_type == grain_type => (Some((old, why)), None),
            Some(((old, _), _)) => (None, Some(old)),
            None => (None, None),
        };
        if retired.is_some() {
            // What is taken back has to be stored.
            self.flush(report)?;
        }
        let embeddings = record.changing.get("embeddings");
        let made = || -> Result<_> {
            let mut fields =
                fields_of(&record.rest, filled_rest.unwrap_or(&record.rest), &self.principals)?;
            if let Some(references) = references(&record.id, embeddings) {
                fields.insert("embedding_refs".to_owned(), references);
            }
            let whole = match &old {
                Some((old, why)) => NewGrain::succeeding(fields.clone(), old, why),
                None => fields.clone(),
            };
            let sensitivity = sensitivity_of(&fields);
            Ok((NewGrain::new(PROFILE, whole, sensitivity)?, fields))
        };
        let (grain, fields) = match made() {
            Ok(made) => made,
            Err(error) => {
                report.fail(&at.place, &error);
                return Ok(());
            }
        };
        let (vectors, unused) = self.spaces.vectors(embeddings);
        report.unsearchable_embeddings += unused;
        let (old, at) = (old.map(|(old, _)| old), at.place.to_string());
        let changed = self.changed_row(&record)?;
        self.chunk.add(Waiting {
            record,
            change,
            counted,
            fields,
            grain,
            grain_type,
            old,
            retired,
            vectors,
            changed,
            at,
        });
        Ok(())
    }

    /// Deletes the records that an archive does not have.
    pub(in super::super) fn delete_absent(
        &mut self,
        survey: &Survey,
        report: &mut ImportReport,
    ) -> Result<()> {
        let mut absent = Vec::new();
        self.agent.rows.each(crate::alf::names::tables::RECORDS, |id, row: RecordRow| {
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

    /// Writes what is left.
    pub(in super::super) fn finish(&mut self, report: &mut ImportReport) -> Result<()> {
        self.flush(report)?;
        if self.parts > 0 && self.agent.sequence()? < self.sequence {
            self.agent.rows.write(vec![self.agent.head_change(self.sequence)?])?;
        }
        Ok(())
    }

    fn flush(&mut self, report: &mut ImportReport) -> Result<()> {
        let chunk = std::mem::take(&mut self.chunk);
        let outcomes = match self.options.dry_run {
            true => chunk.tried(self.agent),
            false => chunk.write(self.agent, (self.sequence, &mut self.parts))?,
        };
        for outcome in outcomes {
            self.count(outcome, report);
        }
        Ok(())
    }

    fn count(&mut self, outcome: Outcome, report: &mut ImportReport) {
        let Outcome { change, created_ms, at, result, lost_place } = outcome;
        let place = Place::entry(&at);
        if let Err(error) = result {
            self.touched.extend(labels_of(created_ms));
            report.fail(&place, &error);
            return;
        }
        if lost_place {
            report.warn(&place, "another record has superseded the same one: it stands beside it");
        }
        let count = match change {
            Change::Created => &mut report.records.created,
            Change::Deleted => &mut report.records.deleted,
            _ => &mut report.records.updated,
        };
        *count = count.saturating_add(1);
    }
}
