//! Native grains become records of an agent: rows lead to them, and the log says that they came.

use grainstore::cal::{Order, Query, Visibility};
use grainstore::format::GrainState;
use grainstore::{ContentAddress, Owner, PageOptions, Session, StoredGrain, VerificationStatus};
use serde_json::json;

use crate::alf::agent::{Agent, Change, RecordRow};
use crate::alf::log::LogEntry;
use crate::alf::names::tables;
use crate::alf::native::{is_native, native_id, view_of, with_grain};
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
    let sequence = agent.sequence()?.saturating_add(1);
    let (mut cursor, mut part, mut done) = (None, 0, 0_u64);
    let has_purged = agent.has_purged()?;
    loop {
        monitor.step(done, 0)?;
        let page = agent.session.query(&all, &PageOptions::first(PAGE).after(cursor))?;
        let (mut changes, mut entries) = (Vec::new(), Vec::new());
        for found in &page.results {
            done += 1;
            if !is_native(&found.grain) {
                continue;
            }
            let address = found.content_address;
            let id = native_id(found.grain.created_at(), &address);
            if agent.row(&id)?.is_some() || (has_purged && agent.is_purged(&id)?) {
                continue;
            }
            let Ok(stored) = agent.session.inspect(&address) else { continue };
            let Some(row) = row_of(agent, &address, &stored)? else { continue };
            changes.push(agent.rows.put(
                tables::RECORDS,
                id.as_str(),
                &row,
                Owner::Grain(address),
            )?);
            entries.push(LogEntry::stored(Change::Created, &id, &address));
        }
        if !entries.is_empty() {
            changes.extend(agent.log_changes((sequence, part), &entries)?);
            agent.rows.write(changes)?;
            part += 1;
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(());
        }
    }
}

fn row_of(
    agent: &Agent<'_>,
    address: &ContentAddress,
    stored: &StoredGrain,
) -> Result<Option<RecordRow>> {
    let view = view_of(agent.session, &agent.id, stored)?;
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
