//! Import (ALF 6.2): the whole archive is checked before anything is written; then documents, files and records are.
//!
//! `report`: what came of it. `layers`: documents and files, `documents`: how they are kept. `lines`: in which order the
//! lines are taken, `records`: each of them. `deferred`: those that wait for later ones. `known`: new records, changed
//! ones, `made`: their grains, `ended`: those that end without a line. `asked`: whether a record may end by its status.
//! `chunk`: records that are written together, `grains`: their grains. `left`: what interrupted imports have left,
//! `begun`: changes that they began. `tried`: what would become of records. `follow`: what the store itself did to records since. `sealed`: partitions whose bytes
//! must not change. `withheld`: what was purged, and stays out, `erased`: what was erased, `people`: who was.

mod asked;
mod begun;
mod chunk;
mod deferred;
mod documents;
mod ended;
mod erased;
mod follow;
mod grains;
mod known;
mod layers;
mod left;
mod lines;
mod made;
mod people;
mod records;
mod report;
mod sealed;
mod tried;
mod withheld;

use std::path::Path;

use grainstore::Session;

use super::agent::{self, Agent};
use super::bundle::{Bundle, Kind};
use super::export::adopt_successors;
use super::names::tables;
use super::survey::Survey;
use crate::archive::Limits;
use crate::error::{Error, Result};
use crate::monitor::Monitor;
use crate::transfer;

pub(super) use begun::complete_begun;
pub(super) use documents::{kept_document, whole_document};
pub(super) use follow::follow_store;
pub(super) use layers::{import_layers, planned_layers};
pub(super) use records::Importer;
pub use report::{ImportReport, LayerCounts, RecordCounts};
pub(super) use sealed::{RecordGrain, SealedRow, half_of};
pub(super) use withheld::{Withheld, drop_principals, forgive, withhold};

/// What happens to what the store has and an archive does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ImportMode {
    /// It stays.
    #[default]
    Merge,
    /// Records are deleted as ALF deletes them, items of layers taken back, and files removed.
    Mirror,
}

/// Options of [`import`].
///
/// ```
/// use grainstore_interop::alf::{ImportMode, ImportOptions};
///
/// let options = ImportOptions { mode: ImportMode::Mirror, dry_run: true, ..ImportOptions::default() };
/// assert!(!options.strict);
/// ```
#[derive(Debug, Clone)]
pub struct ImportOptions {
    /// What happens to what the archive does not have.
    pub mode: ImportMode,
    /// True to fill in what records lack; what was filled in is not exported.
    pub lenient: bool,
    /// True to import nothing if a single record cannot be taken.
    pub strict: bool,
    /// True to report what would be done, and to write nothing.
    pub dry_run: bool,
    /// True to take what was purged from this store or erased in it: records, documents, files with something of what was
    /// purged, and an agent that was purged as a whole. What is of a user who was erased stays away all the same.
    pub allow_purged: bool,
    /// What is read of the archive at most.
    pub limits: Limits,
    /// The name of where the archive comes from: deltas of the same peer continue it.
    pub peer: String,
}

impl Default for ImportOptions {
    fn default() -> Self {
        Self {
            mode: ImportMode::default(),
            lenient: false,
            strict: false,
            dry_run: false,
            allow_purged: false,
            limits: Limits::default(),
            peer: "default".to_owned(),
        }
    }
}

/// Imports an archive of an agent into a store. The same archive again changes nothing.
///
/// See the [module](super) for an example.
///
/// # Errors
/// `ERR_CORRUPT`, `ERR_SCHEMA`, `ERR_INTEGRITY`, `ERR_VERSION`, `ERR_LIMIT` for an archive that cannot be taken, with
/// the entry: nothing is written then. A single record that cannot be taken is in the report, or with
/// [`ImportOptions::strict`] an error too. `ERR_CONFLICT` for an archive of a single person that is to be mirrored;
/// `ERR_ERASED` for an agent that was purged as a whole; `ERR_ACCESS` unless the session is the operator's; `ERR_TIMEOUT`; those of
/// the store.
pub fn import(
    session: &Session,
    path: impl AsRef<Path>,
    options: &ImportOptions,
    monitor: &Monitor<'_>,
) -> Result<ImportReport> {
    let bundle = Bundle::open_asked(path.as_ref(), options.limits, Kind::Snapshot)?;
    if bundle.is_of_user() && options.mode == ImportMode::Mirror {
        let message = "it is of one person alone: what it does not have is not deleted by it";
        let error = Error::new(grainstore::ErrorKind::Conflict, message);
        return Err(error.with_hint("merge it").in_entry(bundle.manifest_entry));
    }
    let mut survey = checked(&bundle, options, monitor)?;
    let _writing = agent::exclusive();
    let mut agent = Agent::new(session, bundle.agent_id());
    if options.allow_purged {
        agent.documents = agent.documents.restoring();
    }
    if !options.dry_run {
        complete_begun(&agent)?;
        // What took the place of a record is found from there, and may lose that way now.
        adopt_successors(&agent)?;
    }
    let head = agent.sequence()?;
    let said = bundle.manifest.get("sync").and_then(|sync| sync.get("last_sequence"));
    let said = said.and_then(serde_json::Value::as_u64).unwrap_or_default();
    // A copy of an agent continues its numbers.
    let sequence = if head == 0 { said.max(1) } else { head.saturating_add(1) };
    let mut report = ImportReport::new(&agent.id, options.dry_run, &survey);
    withhold(&agent, &bundle, &mut survey, options, &mut report)?;
    // First of all, so that a purge finds what an interrupted import has left.
    if !options.dry_run {
        agent.enroll(bundle.agent("name"))?;
    }
    let mut importer = Importer::new(&agent, options, sequence)?;
    importer.note(&planned_layers(&agent, &bundle, &survey, options)?, &mut report)?;
    import_layers(&agent, &bundle, &survey, options, &mut report)?;
    importer.know_principals(&survey)?;
    importer.run(&bundle, &survey, &mut report, monitor)?;
    if options.mode == ImportMode::Mirror {
        importer.delete_absent(&survey, &mut report)?;
    }
    importer.finish(&mut report)?;
    if !options.dry_run {
        // What one person was given is no partition as a whole, and no delta goes on from it.
        if !bundle.is_of_user() {
            sealed::keep_sealed(&agent, &bundle, &importer, &survey)?;
            let (peer, owner) = (options.peer.as_str(), grainstore::Owner::Store);
            let peers = agent.rows.put(tables::PEERS, peer, &said, owner)?;
            agent.rows.write(vec![peers, agent.rows.remove(tables::PARTIAL, peer)])?;
        }
        forgive(&agent, &survey, options)?;
        transfer::imported(session, "alf", report.records.taken())?;
    }
    report.sequence = agent.sequence()?;
    Ok(report)
}

/// Checks an archive, and refuses one that cannot be taken.
pub(super) fn checked(
    bundle: &Bundle,
    options: &ImportOptions,
    monitor: &Monitor<'_>,
) -> Result<Survey> {
    let mut survey = Survey::of(bundle, options.lenient, monitor)?;
    if let Some(broken) = survey.broken.take() {
        return Err(broken);
    }
    match survey.first_bad_line.take() {
        Some(bad) if options.strict => Err(bad),
        _ => Ok(survey),
    }
}

/// The error of a record that was purged.
pub(super) fn purged_error() -> Error {
    Error::new(grainstore::ErrorKind::Erased, "it was purged from this store")
        .with_hint("allow purged records if you mean to have it again")
}
