//! Records on their way into the store: which are new, which are there, which changed and how.

use std::collections::BTreeSet;

use grainstore::{EpochMs, Owner};

use super::chunk::{Chunk, Outcome};
use super::deferred::Deferred;
use super::{ImportOptions, ImportReport, purged_error};
use crate::alf::agent::{Agent, Change, is_agent, is_hidden};
use crate::alf::bundle::Bundle;
use crate::alf::issue::Place;
use crate::alf::log::{LogEntry, MAX_PARTS, in_parts};
use crate::alf::names::{PRINCIPALS, tables};
use crate::alf::partition::labels_of;
use crate::alf::record::{AgentPrincipals, Record, uuid_number};
use crate::alf::survey::{Survey, filled};
use crate::alf::vectors::VectorSpaces;
use crate::error::Result;
use crate::json::Value;

/// The number that is the time of changes that were begun, in milliseconds.
const CHANGES_AT: &str = "changes-at";

/// What a line of a delta does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Create,
    Update,
    Delete,
}

/// Writes records into the store.
#[derive(Debug)]
pub(in super::super) struct Importer<'a, 's> {
    pub(super) agent: &'a Agent<'s>,
    options: &'a ImportOptions,
    /// The sequence number of what is written, and how many parts of it are.
    sequence: u64,
    parts: u64,
    pub(super) principals: AgentPrincipals,
    /// Labels of partitions whose bytes must not change.
    pub(super) sealed: BTreeSet<String>,
    pub(super) spaces: VectorSpaces,
    pub(super) chunk: Chunk,
    /// Labels of partitions of which the store has not exactly what was read.
    pub(super) touched: BTreeSet<String>,
    /// Records that wait for those whose places they take.
    pub(super) deferred: Deferred,
    pub(super) now: EpochMs,
    /// When the changes that have no time of their own were made: with those of an interrupted import, then.
    changes_at: Option<EpochMs>,
    /// True if the store has nothing of the agent yet.
    is_new: bool,
    pub(super) has_purged: bool,
    /// Ids of records that were not taken, since they were erased.
    pub(super) gone: BTreeSet<String>,
}

/// A line: the place of its partition, and its number.
pub(super) type LineKey = (usize, u64);

/// A line that is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct At<'p> {
    pub(super) place: Place<'p>,
    pub(super) key: LineKey,
    /// True if nothing is waited for any more.
    pub(super) is_last_round: bool,
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
            deferred: Deferred::default(),
            now: agent.session.now(),
            changes_at: agent.rows.get(tables::NUMBERS, CHANGES_AT)?.map(EpochMs::new),
            is_new: agent.sequence()? == 0 && agent.rows.is_empty(tables::PAST)?,
            has_purged: agent.has_purged()?,
            gone: BTreeSet::new(),
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

    /// Writes down what is about to change beyond records.
    pub(in super::super) fn note(
        &mut self,
        changes: &[(Change, String)],
        report: &mut ImportReport,
    ) -> Result<()> {
        let entries: Vec<LogEntry> =
            changes.iter().map(|(change, name)| LogEntry::plain(*change, name)).collect();
        for part in in_parts(&entries) {
            self.chunk.log = part.to_vec();
            self.flush(report)?;
        }
        Ok(())
    }

    /// Takes one record. Of one that is stored, and that a consent or a rule hides, it is reported that nothing came.
    pub(super) fn take(
        &mut self,
        value: Value,
        bundle: &Bundle,
        survey: &Survey,
        at: At<'_>,
        report: &mut ImportReport,
    ) -> Result<()> {
        match self.take_shown(value, bundle, survey, at, report) {
            Err(error) if is_hidden(&error) => {
                report.fail(&at.place, &error);
                Ok(())
            }
            done => done,
        }
    }

    fn take_shown(
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
        if survey.withheld.records.contains(&record.number) {
            match operation {
                Operation::Delete => report.warn(&at.place, "it was purged from this store"),
                _ => report.fail(&at.place, &purged_error()),
            }
            return Ok(());
        }
        // Of a new agent the store has only what the archive has twice.
        let row = match self.is_new && !survey.twice.contains(&record.number) {
            true => None,
            false => self.agent.row(&record.id)?,
        };
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

    /// When a change without a time of its own is made. It is written down first, so that the same import makes the same
    /// changes if this one is interrupted.
    pub(super) fn time_of_changes(&mut self) -> Result<EpochMs> {
        if let Some(at) = self.changes_at {
            return Ok(at);
        }
        if !self.is_dry() {
            let (now, owner) = (self.now.get(), Owner::Store);
            let row = self.agent.rows.put(tables::NUMBERS, CHANGES_AT, &now, owner)?;
            self.agent.rows.write(vec![row])?;
        }
        self.changes_at = Some(self.now);
        Ok(self.now)
    }

    /// Returns `true` if the store had nothing of the agent before.
    pub(super) fn is_new(&self) -> bool {
        self.is_new
    }

    pub(super) fn is_lenient(&self) -> bool {
        self.options.lenient
    }

    pub(super) fn allows_purged(&self) -> bool {
        self.options.allow_purged
    }

    /// Returns `true` if nothing is written.
    pub(super) fn is_dry(&self) -> bool {
        self.options.dry_run
    }

    fn is_delta(&self, bundle: &Bundle) -> bool {
        bundle.kind == crate::alf::bundle::Kind::Delta
    }

    /// Writes what is left.
    pub(in super::super) fn finish(&mut self, report: &mut ImportReport) -> Result<()> {
        self.flush(report)?;
        if self.is_dry() {
            return Ok(());
        }
        let mut changes = Vec::new();
        if self.parts > 0 && self.agent.sequence()? < self.sequence {
            changes.push(self.agent.head_change(self.sequence)?);
        }
        if self.changes_at.take().is_some() {
            changes.push(self.agent.rows.remove(tables::NUMBERS, CHANGES_AT));
        }
        match changes.is_empty() {
            true => Ok(()),
            false => self.agent.rows.write(changes),
        }
    }

    pub(super) fn flush(&mut self, report: &mut ImportReport) -> Result<()> {
        if self.parts == MAX_PARTS {
            (self.sequence, self.parts) = (self.sequence.saturating_add(1), 0);
        }
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
