//! Changes of records that were begun and not completed: they are no lines of an archive, whose import would complete them.
//!
//! What completes a change is written down with its address, before its grain is stored, and goes with its rows. Where a
//! store has such a row still, the change is completed before anything else is written: a deletion takes its grain back,
//! and the rows of both records tell of it.

use grainstore::{ContentAddress, Owner, RowChange};
use serde::{Deserialize, Serialize};

use super::chunk::{Waiting, retract};
use super::grains::is_refused;
use crate::alf::agent::{Agent, Change, RecordRow, has_embeddings};
use crate::alf::log::LogEntry;
use crate::alf::names::tables;
use crate::error::Result;
use crate::json::{self, Value};
use crate::kept::Standing;

/// Most bytes of what completes a change; a larger one is completed by the import that made it alone.
const MAX_BYTES: usize = 64 << 10;

/// What completes a change.
#[derive(Debug, Serialize, Deserialize)]
struct Begun {
    #[serde(rename = "c")]
    change: Change,
    #[serde(rename = "r")]
    row: RecordRow,
    /// The record that it is a change of, with its row.
    #[serde(rename = "o")]
    changed: Option<(String, RecordRow)>,
    /// True if that row says so also where another record has the place.
    #[serde(rename = "s")]
    changes_sealed: bool,
    /// True if its grain is taken back.
    #[serde(rename = "x")]
    is_over: bool,
}

/// The row of a change that is about to be stored; `None` for a record that is none.
pub(super) fn begin(agent: &Agent<'_>, one: &Waiting) -> Result<Option<RowChange>> {
    if !is_begun(one) {
        return Ok(None);
    }
    let row = RecordRow::new(&one.grain.address(), &one.record, one.grain_type);
    let (is_over, changes_sealed) = (one.is_over(), one.changes_sealed);
    let changed = one.changed.clone();
    let begun = Begun { change: one.change, row, changed, changes_sealed, is_over };
    Ok(Some(agent.rows.put(tables::BEGUN, one.record.id.as_str(), &begun, Owner::Store)?))
}

/// The change that says that a change is completed, or that nothing came of it.
pub(super) fn end(agent: &Agent<'_>, one: &Waiting) -> Option<RowChange> {
    is_begun(one).then(|| agent.rows.remove(tables::BEGUN, one.record.id.as_str()))
}

/// Returns `true` for a change that its row tells all of. The row belongs to nobody: nothing is in it that has to go with a
/// grain.
fn is_begun(one: &Waiting) -> bool {
    let is_plain =
        |changing: &Value| !has_embeddings(changing) && json::line(changing).len() <= MAX_BYTES;
    one.record.change_of.is_some()
        && one.native.is_none()
        && !one.grain.has_spilled()
        && is_plain(&one.record.changing)
        && one.changed.iter().all(|(_, row)| row.native.is_none() && is_plain(&row.changing))
}

/// Completes the changes that an interrupted import or export has begun.
///
/// # Errors
/// Those of the store.
pub(in super::super) fn complete_begun(agent: &Agent<'_>) -> Result<()> {
    let mut found: Vec<(String, Begun)> = Vec::new();
    agent.rows.each(tables::BEGUN, |id, begun: Begun| {
        found.push((id.to_owned(), begun));
        Ok(())
    })?;
    if found.is_empty() {
        return Ok(());
    }
    found.sort_unstable_by(|one, other| one.0.cmp(&other.0));
    let (mut entries, mut changes) = (Vec::new(), Vec::new());
    for (id, begun) in found {
        if agent.row(&id)?.is_none()
            && let Ok(Standing::Left(left)) = agent.standing(&id)
        {
            changes.extend(completed(agent, &id, &begun, left)?);
            entries.push(LogEntry::stored(begun.change, &id, &left));
        }
        changes.push(agent.rows.remove(tables::BEGUN, id.as_str()));
    }
    if !entries.is_empty() {
        let sequence = agent.sequence()?.saturating_add(1);
        changes.extend(agent.log_changes((sequence, 0), &entries)?);
    }
    agent.rows.write(changes)
}

/// The rows of a change whose grain is stored.
fn completed(
    agent: &Agent<'_>,
    id: &str,
    begun: &Begun,
    left: ContentAddress,
) -> Result<Vec<RowChange>> {
    if begun.is_over {
        match retract(agent.session, &left) {
            Err(error) if error.store_error().is_some_and(is_refused) => return Ok(Vec::new()),
            done => done?,
        }
    }
    let row = RecordRow { address: left.to_string(), ..begun.row.clone() };
    let mut changes = vec![agent.row_change(id, &row)?];
    if let Some((of, row)) = &begun.changed
        && let Ok(stored) = agent.session.inspect(&row.address.parse()?)
        && (begun.changes_sealed || stored.state.superseded_by == Some(left))
    {
        changes.push(agent.row_change(of, row)?);
    }
    Ok(changes)
}
