//! A delta into a store that has what it goes on from.

use std::path::Path;

use grainstore::{ErrorKind, Owner, Session};
use serde::Serialize;

use crate::alf::agent;
use crate::alf::bundle::{Bundle, Kind};
use crate::alf::export::{adopt_successors, chosen};
use crate::alf::import::{
    ImportOptions, ImportReport, Importer, checked, complete_begun, forgive, import_layers,
    planned_layers, withhold,
};
use crate::alf::issue::Place;
use crate::alf::names::tables;
use crate::error::{Error, Result};
use crate::json::Value;
use crate::monitor::Monitor;
use crate::transfer;

/// What a delta did to a store: [`apply_delta`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ApplyReport {
    /// The sequence number that the delta goes on from.
    pub base_sequence: u64,
    /// The sequence number that it leads to; later deltas of the peer go on from it.
    pub new_sequence: u64,
    /// True if the store had the delta already, with all of its records or others after it: nothing was read of it.
    pub known: bool,
    /// What came of its records and layers.
    pub import: ImportReport,
}

/// Applies a delta to an agent of the store. The same delta again changes nothing, but where a record of it was refused: then
/// it is tried again, until another delta of the peer is applied. Of the options, the mode has no effect: a delta says
/// itself what goes.
///
/// See the [module](crate::alf) for an example.
///
/// # Errors
/// Those of [`import`](crate::alf::import()); `ERR_NOT_FOUND` for an agent that the store does not have; `ERR_CONFLICT`
/// for a delta that goes on from what the store does not have of the peer.
pub fn apply_delta(
    session: &Session,
    path: impl AsRef<Path>,
    options: &ImportOptions,
    monitor: &Monitor<'_>,
) -> Result<ApplyReport> {
    let bundle = Bundle::open_asked(path.as_ref(), options.limits, Kind::Delta)?;
    let mut survey = checked(&bundle, options, monitor)?;
    let _writing = agent::exclusive();
    let mut agent = chosen(session, Some(bundle.agent_id()))
        .map_err(|error| error.in_entry(bundle.manifest_entry))?;
    if options.allow_purged {
        agent.documents = agent.documents.restoring();
    }
    let sync = bundle.manifest.get("sync");
    let said = |name: &str| sync.and_then(|sync| sync.get(name)).and_then(Value::as_u64);
    let base = said("base_sequence").unwrap_or_default();
    // One that nobody has given a number yet is the next.
    let new = said("new_sequence").filter(|new| *new > base).unwrap_or(base.saturating_add(1));
    let peer = options.peer.as_str();
    let last: u64 = agent.rows.get(tables::PEERS, peer)?.unwrap_or_default();
    // What was refused of the last one may be taken by now.
    let is_again = new == last && agent.rows.get::<u64>(tables::PARTIAL, peer)? == Some(new);
    let mut report = ApplyReport {
        base_sequence: base,
        new_sequence: new,
        known: new <= last && !is_again,
        import: ImportReport::new(&agent.id, options.dry_run, &survey),
    };
    if report.known {
        report.import.sequence = agent.sequence()?;
        return Ok(report);
    }
    if base > last {
        let message = format!(
            "it goes on from {base}, and of this peer the store has everything up to {last}"
        );
        return Err(Error::new(ErrorKind::Conflict, message)
            .with_hint("apply the deltas between, or import the agent as a whole")
            .in_entry(bundle.manifest_entry));
    }
    if base < last && !is_again {
        let place = Place::entry(bundle.manifest_entry);
        report.import.warn(&place, "the store has a part of it already");
    }
    if !options.dry_run {
        complete_begun(&agent)?;
        // What took the place of a record is found from there, and may lose that way now.
        adopt_successors(&agent)?;
    }
    let sequence = agent.sequence()?.saturating_add(1).max(new);
    withhold(&agent, &bundle, &mut survey, options, &mut report.import)?;
    let mut importer = Importer::new(&agent, options, sequence)?;
    importer.note(&planned_layers(&agent, &bundle, &survey, options)?, &mut report.import)?;
    import_layers(&agent, &bundle, &survey, options, &mut report.import)?;
    importer.know_principals(&survey)?;
    importer.run(&bundle, &survey, &mut report.import, monitor)?;
    importer.finish(&mut report.import)?;
    if !options.dry_run {
        let applied = agent.rows.put(tables::PEERS, peer, &new, Owner::Store)?;
        let head = agent.head_change(sequence.max(agent.sequence()?))?;
        let partial = match report.import.records.failed {
            0 => agent.rows.remove(tables::PARTIAL, peer),
            _ => agent.rows.put(tables::PARTIAL, peer, &new, Owner::Store)?,
        };
        agent.rows.write(vec![applied, head, partial])?;
        forgive(&agent, &survey, options)?;
        let taken = report.import.records.taken();
        transfer::imported(session, "alf", taken)?;
    }
    report.import.sequence = agent.sequence()?;
    Ok(report)
}
