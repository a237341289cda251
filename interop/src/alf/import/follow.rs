//! What the store itself did to records since they were written: agents supersede and retract grains without knowing of
//! ALF. Before an export the rows of the records say so too.

use grainstore::{ContentAddress, GrainState, VerificationStatus};

use super::begun::complete_begun;
use super::{ImportOptions, ImportReport, Importer};
use crate::alf::agent::{Agent, RecordRow};
use crate::alf::export::adopt_these;
use crate::alf::names::tables;
use crate::alf::native::{native_id, notes, origin_of};
use crate::alf::record::status_of;
use crate::alf::survey::Survey;
use crate::error::Result;

/// Gives records the status that their grains have, and makes records of the grains that stand in their places.
///
/// # Errors
/// Those of the store.
pub(in super::super) fn follow_store(agent: &Agent<'_>) -> Result<()> {
    complete_begun(agent)?;
    let (mut successors, mut ids) = (Vec::new(), Vec::new());
    agent.rows.each(tables::RECORDS, |id, row: RecordRow| {
        let address: ContentAddress = row.address.parse()?;
        let Ok(stored) = agent.session.inspect(&address) else { return Ok(()) };
        successors.extend(stored.state.superseded_by);
        // What a change record is about has been said by it.
        let is_open = row.changed_by.is_none() && may_have_changed(&row);
        if is_open && !stored.state.is_current() {
            ids.push(id.to_owned());
        }
        Ok(())
    })?;
    adopt_these(agent, successors)?;
    let mut changed: Vec<(String, Ended)> = Vec::new();
    for id in ids {
        let Some(row) = agent.row(&id)? else { continue };
        let Ok(stored) = agent.session.inspect(&row.address.parse()?) else { continue };
        if let Some(ended) = ended_by(agent, &stored.state)?
            && may_have_changed_in(agent, &row)?
        {
            changed.push((id, ended));
        }
    }
    if changed.is_empty() {
        return Ok(());
    }
    changed.sort_unstable();
    let options = ImportOptions::default();
    let mut report = ImportReport::new(&agent.id, false, &Survey::default());
    let mut importer = Importer::new(agent, &options, agent.sequence()?.saturating_add(1))?;
    for (id, ended) in changed {
        match ended {
            Ended::Retracted => importer.set_status(&id, "deleted", &mut report)?,
            Ended::Replaced => importer.set_superseded(&id, &mut report)?,
            Ended::Told => importer.set_status(&id, "superseded", &mut report)?,
        }
    }
    importer.finish(&mut report)
}

/// What became of the grain of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Ended {
    Retracted,
    /// A grain stands in its place of which the archive says nothing.
    Replaced,
    /// A native grain stands in its place that is a record too, and says so.
    Told,
}

/// Returns `true` for a record that says it is active, as far as its row shows it.
fn may_have_changed(row: &RecordRow) -> bool {
    row.spilled.is_some() || is_open(status_of(&row.changing))
}

fn may_have_changed_in(agent: &Agent<'_>, row: &RecordRow) -> Result<bool> {
    Ok(is_open(status_of(&agent.changing(row)?)))
}

fn is_open(status: &str) -> bool {
    !matches!(status, "superseded" | "archived" | "deleted")
}

/// What became of a record by the state of its grain; `None` for one that is current, or in whose place another record
/// stands, which says so itself.
fn ended_by(agent: &Agent<'_>, state: &GrainState) -> Result<Option<Ended>> {
    if state.verification_status == VerificationStatus::Retracted {
        return Ok(Some(Ended::Retracted));
    }
    let Some(by) = state.superseded_by else { return Ok(None) };
    let Ok(successor) = agent.session.inspect(&by) else { return Ok(None) };
    let Ok(grain) = successor.grain() else { return Ok(None) };
    let origin = origin_of(agent, &by, &grain)?;
    if notes(&grain).is_some() && !origin.may_succeed() {
        return Ok(None);
    }
    let is_record = agent.row(&native_id(grain.created_at(), &by))?.is_some();
    Ok(Some(if is_record { Ended::Told } else { Ended::Replaced }))
}
