//! Records that are written together: first their grains, then all their rows and the log in one commit.

use std::collections::{BTreeSet, HashMap};

use grainstore::embed::Embedding;
use grainstore::format::Map;
use grainstore::{ContentAddress, ErrorKind, RowChange, Session, VerificationStatus};

use super::begun::{begin, end};
use super::grains::{Stored, is_refused, store_grains};
use crate::alf::agent::{Agent, Change, RecordRow};
use crate::alf::log::LogEntry;
use crate::alf::names::tables;
use crate::alf::record::{Record, status_of};
use crate::error::Result;
use crate::json;
use crate::kept::{NewGrain, Past, digest_of};

/// Most records of a chunk.
pub(super) const MAX_RECORDS: usize = 1_000;
/// Bytes of what is held after which a chunk is full.
pub(super) const MAX_BYTES: usize = 8 << 20;
/// Bytes that a value of JSON is counted as, beside its text.
const VALUE_BYTES: usize = 32;
/// Bytes that a number of a vector is counted as, and a row without vectors.
const NUMBER_BYTES: usize = 40;
const ROW_BYTES: usize = 512;
/// Why a record takes the place of another.
pub(super) const SUPERSESSION: &str = "alf supersession";

/// A record that waits to be written.
#[derive(Debug)]
pub(in super::super) struct Waiting {
    pub(in super::super) record: Record,
    /// What the log says of it.
    pub(in super::super) change: Change,
    /// What the report counts it as.
    pub(in super::super) counted: Change,
    /// Fields of its grain, without what says that it takes a place.
    pub(in super::super) fields: Map,
    pub(in super::super) grain: NewGrain,
    pub(in super::super) grain_type: u8,
    /// The record, if it carries its grain.
    pub(in super::super) native: Option<json::Value>,
    /// The grain whose place it takes.
    pub(in super::super) old: Option<ContentAddress>,
    /// A grain of another type, which is taken back instead.
    pub(in super::super) retired: Option<ContentAddress>,
    /// A version that an interrupted import has left, and that nothing goes on from: it is taken back.
    pub(in super::super) leftover: Option<ContentAddress>,
    pub(in super::super) vectors: Vec<Embedding>,
    /// The record that it is a change of, with a row that says so.
    pub(in super::super) changed: Option<(String, RecordRow)>,
    /// True if the row says so also where another record has the place: that of a sealed record tells what is told.
    pub(in super::super) changes_sealed: bool,
    /// True if it was purged before, and is not any more.
    pub(in super::super) restored: bool,
    /// True if the store never had the record.
    pub(in super::super) is_new: bool,
    /// Which versions it had before.
    pub(in super::super) past: Option<Past>,
    /// The place of its line.
    pub(in super::super) at: String,
}

impl Waiting {
    /// Returns `true` if its grain is taken back. A change that says that its record is superseded is no memory itself.
    pub(super) fn is_over(&self) -> bool {
        let status = self.record.status();
        status == "deleted" || (self.record.change_of.is_some() && status == "superseded")
    }
}

/// A row that is written without a grain.
#[derive(Debug)]
pub(in super::super) struct WaitingRow {
    pub(in super::super) id: String,
    pub(in super::super) row: RecordRow,
    pub(in super::super) change: Change,
    pub(in super::super) vectors: Vec<Embedding>,
    /// The place of its line.
    pub(in super::super) at: String,
}

/// Records that are written together.
#[derive(Debug, Default)]
pub(in super::super) struct Chunk {
    pub(super) waiting: Vec<Waiting>,
    pub(super) rows: Vec<WaitingRow>,
    /// Places in `waiting` by the number of the record.
    by_number: HashMap<u128, usize>,
    bytes: usize,
    /// Ids of records that others of the chunk are changes of.
    changed: BTreeSet<String>,
    /// Entries of the log beyond those of the records.
    pub(in super::super) log: Vec<LogEntry>,
}

/// What became of a record of a chunk.
#[derive(Debug)]
pub(in super::super) struct Outcome {
    pub(in super::super) change: Change,
    pub(in super::super) created_ms: i64,
    pub(in super::super) at: String,
    pub(in super::super) result: Result<()>,
    /// The record that it says it takes the place of could not be given up for it.
    pub(in super::super) lost_place: bool,
}

impl Chunk {
    pub(in super::super) fn is_full(&self) -> bool {
        self.waiting.len() + self.rows.len() >= MAX_RECORDS || self.bytes >= MAX_BYTES
    }

    pub(in super::super) fn get(&self, number: u128) -> Option<&Waiting> {
        self.waiting.get(*self.by_number.get(&number)?)
    }

    pub(in super::super) fn has(&self, number: u128) -> bool {
        self.by_number.contains_key(&number)
    }

    /// Returns `true` if a record of the chunk is a change of this one.
    pub(in super::super) fn changes(&self, id: &str) -> bool {
        self.changed.contains(id)
    }

    pub(in super::super) fn add(&mut self, waiting: Waiting) {
        // The fields say what the record says.
        let said = held_bytes(&waiting.record.rest).saturating_mul(2);
        for bytes in [waiting.grain.held_bytes(), said, size_of(&waiting.record.changing)] {
            self.bytes = self.bytes.saturating_add(bytes);
        }
        self.by_number.insert(waiting.record.number, self.waiting.len());
        self.changed.extend(waiting.changed.iter().map(|(id, _)| id.clone()));
        self.waiting.push(waiting);
    }

    pub(in super::super) fn add_row(&mut self, row: WaitingRow) {
        self.bytes = self.bytes.saturating_add(size_of(&row.row.changing));
        self.rows.push(row);
    }

    /// Writes everything, as parts of a sequence number.
    ///
    /// # Errors
    /// `ERR_IO` and others of the store as a whole. What is wrong with a record is in its outcome.
    pub(in super::super) fn write(
        self,
        agent: &Agent<'_>,
        place: (u64, &mut u64),
    ) -> Result<Vec<Outcome>> {
        let Self { mut waiting, rows, log, .. } = self;
        remember(agent, &mut waiting)?;
        let mut done = Vec::with_capacity(waiting.len() + rows.len());
        let stored = store_grains(agent, waiting)?;
        forget_refused(agent, &stored)?;
        for (mut one, result, lost_place) in stored {
            if lost_place && !one.changes_sealed {
                // It stands beside what it says it is a change of.
                one.changed = None;
            }
            let mut changes = Vec::new();
            let result = result.and_then(|()| finish_record(agent, &mut one, &mut changes));
            let (change, created_ms) = (one.counted, one.record.created_ms);
            let outcome = Outcome { change, created_ms, at: one.at, result, lost_place };
            let entry = LogEntry::stored(one.change, &one.record.id, &one.grain.address());
            done.push(Done { outcome, changes, entry });
        }
        for one in rows {
            let mut changes = Vec::new();
            let result = finish_row(agent, &one).map(|row| changes.push(row));
            let (change, created_ms) = (one.change, one.row.created_ms);
            let outcome = Outcome { change, created_ms, at: one.at, result, lost_place: false };
            done.push(Done { outcome, changes, entry: LogEntry::plain(one.change, &one.id) });
        }
        write_rows(agent, &mut done, &log, place)?;
        Ok(done.into_iter().map(|one| one.outcome).collect())
    }
}

/// The bytes that a value of JSON holds, nearly.
fn held_bytes(value: &json::Value) -> usize {
    let of = match value {
        json::Value::String(text) => text.len(),
        json::Value::Array(items) => items.iter().map(held_bytes).fold(0, usize::saturating_add),
        json::Value::Object(members) => {
            let members = members.iter();
            let members = members.map(|(name, value)| name.len().saturating_add(held_bytes(value)));
            members.fold(0, usize::saturating_add)
        }
        _ => 0,
    };
    of.saturating_add(VALUE_BYTES)
}

/// The bytes of what changes of a record, nearly: its vectors are what is large.
fn size_of(changing: &json::Value) -> usize {
    let embeddings = changing.get("embeddings").and_then(json::Value::as_array);
    let vectors = embeddings.into_iter().flatten().filter_map(|one| one.get("vector")?.as_array());
    let numbers = vectors.map(|vector| vector.len().saturating_mul(NUMBER_BYTES));
    numbers.fold(ROW_BYTES, usize::saturating_add)
}

/// A record whose grain is stored, with the rows that are to be written.
struct Done {
    outcome: Outcome,
    changes: Vec<RowChange>,
    /// What the log says of it.
    entry: LogEntry,
}

/// Writes the rows of records, and the log. Those of a grain under hold are left as they are.
fn write_rows(
    agent: &Agent<'_>,
    done: &mut [Done],
    log: &[LogEntry],
    (sequence, part): (u64, &mut u64),
) -> Result<()> {
    for _ in 0..=done.len() {
        let (mut changes, mut owners) = (Vec::new(), Vec::new());
        let mut entries = log.to_vec();
        for (number, one) in done.iter().enumerate() {
            if one.outcome.result.is_ok() {
                entries.push(one.entry.clone());
                changes.extend(one.changes.iter().cloned());
                owners.resize(changes.len(), number);
            }
        }
        if entries.is_empty() {
            return Ok(());
        }
        changes.extend(agent.log_changes((sequence, *part), &entries)?);
        let Err(error) = agent.session.write_rows(changes) else {
            *part += 1;
            return Ok(());
        };
        let owner = error.batch_index().and_then(|at| done.get_mut(*owners.get(at)?));
        match owner {
            Some(owner) if is_refused(&error) => owner.outcome.result = Err(error.into()),
            _ => return Err(error.into()),
        }
    }
    Ok(())
}

/// Remembers records before their grains are stored, so that what is interrupted then is not taken for new.
fn remember(agent: &Agent<'_>, waiting: &mut [Waiting]) -> Result<()> {
    let mut rows = Vec::with_capacity(waiting.len());
    for one in waiting {
        // Of a record that is new to the store nothing is known.
        one.past = if one.is_new { None } else { agent.past(&one.record.id)? };
        // What it carries may have been somebody else's, and was erased: it is refused, and is no version of it.
        if one.native.is_none() || !is_erased(agent.session, &one.grain.address()) {
            rows.push(remembered(agent, one, one.past.clone())?);
        }
        rows.extend(begin(agent, one)?);
    }
    agent.rows.write(rows)
}

fn is_erased(session: &Session, address: &ContentAddress) -> bool {
    session.inspect(address).is_err_and(|error| error.kind() == ErrorKind::Erased)
}

/// Takes back what was noted of records whose grains were refused: they never were here.
fn forget_refused(agent: &Agent<'_>, stored: &[Stored]) -> Result<()> {
    let mut rows = Vec::new();
    for (one, result, _) in stored {
        let is_here = |one: &Waiting| agent.session.inspect(&one.grain.address());
        let is_gone = |error: &grainstore::Error| {
            matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Erased)
        };
        if result.is_ok() || !is_here(one).is_err_and(|error| is_gone(&error)) {
            continue;
        }
        rows.push(match &one.past {
            Some(past) => past.change(&agent.rows, tables::PAST, &one.record.id)?,
            None => agent.rows.remove(tables::PAST, one.record.id.as_str()),
        });
        rows.extend(end(agent, one));
    }
    match rows.is_empty() {
        true => Ok(()),
        false => agent.rows.write(rows),
    }
}

/// Remembers a record in another grain than was thought, before that is stored.
pub(super) fn note(agent: &Agent<'_>, one: &Waiting) -> Result<()> {
    let past = agent.past(&one.record.id)?;
    agent.rows.write(vec![remembered(agent, one, past)?])
}

fn remembered(agent: &Agent<'_>, one: &Waiting, past: Option<Past>) -> Result<RowChange> {
    let version = (digest_of(&one.record.rest), one.grain.address());
    agent.past_change(&one.record.id, past, Some((&version.0, &version.1)))
}

/// Stores what lies beside the grain of a record, and adds its row.
fn finish_record(agent: &Agent<'_>, one: &mut Waiting, changes: &mut Vec<RowChange>) -> Result<()> {
    changes.extend(end(agent, one));
    one.grain.store_spilled(agent.session)?;
    let address = one.grain.address();
    if one.is_over() {
        retract(agent.session, &address)?;
    }
    let native = one.native.take();
    let row = RecordRow { native, ..RecordRow::new(&address, &one.record, one.grain_type) };
    changes.push(agent.row_change(&one.record.id, &row)?);
    if one.restored {
        changes.push(agent.rows.remove(tables::PURGED, one.record.id.as_str()));
    }
    if let Some((id, row)) = &one.changed {
        changes.push(agent.row_change(id, row)?);
    }
    Ok(())
}

fn finish_row(agent: &Agent<'_>, waiting: &WaitingRow) -> Result<RowChange> {
    let address: ContentAddress = waiting.row.address.parse()?;
    if status_of(&waiting.row.changing) == "deleted" {
        retract(agent.session, &address)?;
    }
    if !waiting.vectors.is_empty() {
        agent.session.embed(&address, waiting.vectors.clone())?;
    }
    agent.row_change(&waiting.id, &waiting.row)
}

/// Takes the grain of a deleted record back.
pub(super) fn retract(session: &Session, address: &ContentAddress) -> Result<()> {
    let state = session.inspect(address)?.state;
    if state.verification_status != VerificationStatus::Retracted {
        let retracted = VerificationStatus::Retracted;
        session.set_verification(address, retracted, "alf: deleted", None)?;
    }
    Ok(())
}
