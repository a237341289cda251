//! What the store itself did to records since they were written: agents supersede and retract grains without knowing of
//! ALF. Before an export the rows of the records say so too.

use grainstore::format::Value as Field;
use grainstore::{ContentAddress, GrainState, Session, VerificationStatus};

use super::{ImportOptions, ImportReport, Importer};
use crate::alf::agent::{Agent, RecordRow};
use crate::alf::names::{PROFILE, tables};
use crate::alf::record::status_of;
use crate::alf::survey::Survey;
use crate::error::Result;

/// Gives records the status that their grains have.
///
/// # Errors
/// Those of the store.
pub(in super::super) fn follow_store(agent: &Agent<'_>) -> Result<()> {
    let mut changed = Vec::new();
    agent.rows.each(tables::RECORDS, |id, row: RecordRow| {
        // What a change record is about has been said by it.
        if row.changed_by.is_some() || !may_have_changed(&row) {
            return Ok(());
        }
        let address: ContentAddress = row.address.parse()?;
        let Ok(stored) = agent.session.inspect(&address) else { return Ok(()) };
        if let Some(status) = status_by(agent.session, &stored.state)
            && may_have_changed_in(agent, &row)?
        {
            changed.push((id.to_owned(), status));
        }
        Ok(())
    })?;
    if changed.is_empty() {
        return Ok(());
    }
    changed.sort_unstable();
    let options = ImportOptions::default();
    let mut report = ImportReport::new(&agent.id, false, &Survey::default());
    let mut importer = Importer::new(agent, &options, agent.sequence()?.saturating_add(1))?;
    for (id, status) in changed {
        importer.set_status(&id, status, &mut report)?;
    }
    importer.finish(&mut report)
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

/// The status of a record by the state of its grain; `None` for one that is current, or in whose place another record
/// stands, which says so itself.
fn status_by(session: &Session, state: &GrainState) -> Option<&'static str> {
    if state.verification_status == VerificationStatus::Retracted {
        return Some("deleted");
    }
    let successor = session.inspect(&state.superseded_by?).ok()?.grain().ok()?;
    let own = successor.map("context").and_then(|context| context.get(&PROFILE.key("id")));
    own.and_then(Field::as_str).is_none().then_some("superseded")
}
