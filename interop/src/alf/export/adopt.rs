//! Native grains become records of an agent: rows lead to them, and the log says that they came.

use std::collections::BTreeSet;

use grainstore::cal::{Order, Query, Visibility};
use grainstore::format::GrainState;
use grainstore::{
    ContentAddress, Grain, Owner, PageOptions, RowChange, Session, StoredGrain, VerificationStatus,
};
use serde_json::json;

use crate::alf::agent::{Agent, Change, RecordRow};
use crate::alf::log::LogEntry;
use crate::alf::names::tables;
use crate::alf::native::{native_id, origin_of, view_of, with_grain};
use crate::alf::record::{Record, joined_record};
use crate::alf::schema::is_uuid;
use crate::error::{Error, Result};
use crate::json::Value;
use crate::monitor::Monitor;

/// Grains that are read, and rows that are written, together.
const PAGE: usize = 500;

/// Adopts the native grains that the session sees and the agent does not have yet, but for those whose records were
/// purged.
///
/// # Errors
/// Those of [`Session::query`] and [`Session::write_rows`].
pub(super) fn adopt(agent: &Agent<'_>, monitor: &Monitor<'_>) -> Result<()> {
    let all = Query::default().seeing(Visibility::EVERYTHING).ordered(Order::Oldest);
    let mut adoption = Adoption::begin(agent)?;
    let (mut cursor, mut done) = (None, 0_u64);
    loop {
        monitor.step(done, 0)?;
        let page = agent.session.query(&all, &PageOptions::first(PAGE).after(cursor))?;
        for found in &page.results {
            done += 1;
            if is_native(agent, &found.content_address, &found.grain)? {
                adoption.add(&found.content_address, &found.grain)?;
            }
        }
        adoption.write()?;
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(());
        }
    }
}

/// Counts the native grains that the session sees and that are no records of the agent.
///
/// # Errors
/// Those of [`Session::query`]; none in a store that is encrypted person by person, where it counts none.
pub(super) fn count_others(agent: &Agent<'_>, monitor: &Monitor<'_>) -> Result<u64> {
    let all = Query::default().seeing(Visibility::EVERYTHING);
    let (mut cursor, mut count) = (None, 0_u64);
    loop {
        monitor.step(0, 0)?;
        let page = match agent.session.query(&all, &PageOptions::first(PAGE).after(cursor)) {
            Err(error) if error.code() == "ERR_KEY" => return Ok(0),
            page => page?,
        };
        for found in &page.results {
            let id = native_id(found.grain.created_at(), &found.content_address);
            let origin = origin_of(agent, &found.content_address, &found.grain)?;
            if origin.may_succeed() && agent.row(&id)?.is_none() {
                count += 1;
            }
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(count);
        }
    }
}

/// Adopts the native grains that stand in the places of records: what an agent learned since is its memory too.
///
/// # Errors
/// Those of the store.
pub(in super::super) fn adopt_successors(agent: &Agent<'_>) -> Result<()> {
    let mut successors = Vec::new();
    agent.rows.each(tables::RECORDS, |_, row: RecordRow| {
        let address: ContentAddress = row.address.parse()?;
        let Ok(stored) = agent.session.inspect(&address) else { return Ok(()) };
        successors.extend(stored.state.superseded_by);
        Ok(())
    })?;
    adopt_these(agent, successors)
}

/// Adopts those of these grains that are native, and what stands in their places.
///
/// # Errors
/// Those of the store.
pub(in super::super) fn adopt_these(
    agent: &Agent<'_>,
    successors: Vec<ContentAddress>,
) -> Result<()> {
    let mut adoption = Adoption::begin(agent)?;
    for first in successors {
        let mut next = Some(first);
        while let Some(address) = next.take() {
            let Ok(stored) = agent.session.inspect(&address) else { break };
            let grain = stored.grain()?;
            // What is a record says itself what took its place.
            let origin = origin_of(agent, &address, &grain)?;
            if origin.may_succeed() && adoption.add(&address, &grain)? {
                next = stored.state.superseded_by;
            }
        }
        if adoption.entries.len() >= PAGE {
            adoption.write()?;
        }
    }
    adoption.write()
}

/// Returns `true` for a grain that was not born as a record.
fn is_native(agent: &Agent<'_>, address: &ContentAddress, grain: &Grain) -> Result<bool> {
    Ok(origin_of(agent, address, grain)?.is_native())
}

/// Grains that become records.
struct Adoption<'a, 's> {
    agent: &'a Agent<'s>,
    has_purged: bool,
    /// The sequence number that they come with, and the part of it that is written next.
    place: (u64, u64),
    changes: Vec<RowChange>,
    entries: Vec<LogEntry>,
    /// The ids of records that are not written yet.
    ids: BTreeSet<String>,
}

impl<'a, 's> Adoption<'a, 's> {
    fn begin(agent: &'a Agent<'s>) -> Result<Self> {
        let place = (agent.sequence()?.saturating_add(1), 0);
        let (changes, entries, ids) = (Vec::new(), Vec::new(), BTreeSet::new());
        Ok(Self { agent, has_purged: agent.has_purged()?, place, changes, entries, ids })
    }

    /// Makes a grain a record. Returns `false` for one that is a record, or was purged, or cannot be read.
    fn add(&mut self, address: &ContentAddress, grain: &Grain) -> Result<bool> {
        let agent = self.agent;
        let id = native_id(grain.created_at(), address);
        let is_known = self.ids.contains(&id) || agent.row(&id)?.is_some();
        if is_known || (self.has_purged && agent.is_purged(&id)?) {
            return Ok(false);
        }
        let Ok(stored) = agent.session.inspect(address) else { return Ok(false) };
        let Some(row) = row_of(agent, address, &stored)? else { return Ok(false) };
        let owner = Owner::Grain(*address);
        self.changes.push(agent.rows.put(tables::RECORDS, id.as_str(), &row, owner)?);
        if agent.past(&id)?.is_none() {
            self.changes.push(agent.past_change(&id, None, None)?);
        }
        self.entries.push(LogEntry::stored(Change::Created, &id, address));
        self.ids.insert(id);
        Ok(true)
    }

    /// Writes what was added, in one commit.
    fn write(&mut self) -> Result<()> {
        if self.entries.is_empty() {
            return Ok(());
        }
        let mut changes = std::mem::take(&mut self.changes);
        changes.extend(self.agent.log_changes(self.place, &self.entries)?);
        self.agent.rows.write(changes)?;
        self.place.1 = self.place.1.saturating_add(1);
        self.entries.clear();
        self.ids.clear();
        Ok(())
    }
}

fn row_of(
    agent: &Agent<'_>,
    address: &ContentAddress,
    stored: &StoredGrain,
) -> Result<Option<RecordRow>> {
    let view = view_of(agent, stored)?;
    let changing = json!({"status": status_of(&stored.state)});
    let whole: Value = joined_record(with_grain(view.clone(), stored), &changing);
    let grain_type = stored.grain()?.grain_type().byte();
    Ok(Record::of(whole).map(|record| RecordRow {
        native: Some(view),
        ..RecordRow::new(address, &record, grain_type)
    }))
}

fn status_of(state: &GrainState) -> &'static str {
    match state {
        state if state.verification_status == VerificationStatus::Retracted => "deleted",
        state if state.superseded_by.is_some() => "superseded",
        _ => "active",
    }
}

/// Returns an agent of the store, or makes it one.
///
/// # Errors
/// `ERR_SCHEMA` for an id that is no UUID.
pub(super) fn enrolled<'s>(session: &'s Session, id: &str, name: &str) -> Result<Agent<'s>> {
    if !is_uuid(id) {
        return Err(Error::schema("the id of an agent is a UUID"));
    }
    let agent = Agent::new(session, id);
    if !Agent::all(session)?.iter().any(|(known, _)| *known == agent.id) {
        agent.enroll(name)?;
    }
    Ok(agent)
}
