//! Export (ALF 6.1): all of an agent as an archive.
//!
//! `adopt`: grains that were not born as records. `partitions`: records by time; those of sealed partitions are the
//! same bytes each time. `person`: what is of one person alone. `manifest`: what the archive says of itself. `entry`: what
//! is written, with its hash.

mod adopt;
mod entry;
mod manifest;
mod partitions;
mod person;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use grainstore::{Owner, Session};
use serde::{Deserialize, Serialize};

use super::agent::{self, Agent};
use super::import::{SealedRow, follow_store, whole_document};
use super::names::{INDEX_ENTRY, LAYERS, Layer, MANIFEST_ENTRY, tables};
use super::partition::Granularity;
use crate::archive::ArchiveWriter;
use crate::error::{Error, Result};
use crate::json::{self, Value};
use crate::kept::{Files, clamped};
use crate::monitor::Monitor;
use crate::transfer;

pub(super) use adopt::{adopt_successors, adopt_these};
use entry::Part;
pub(super) use entry::{Content, NewEntry, write_entries};
pub(super) use manifest::{described, update, with_checksum};
use partitions::Partitions;
use person::Person;
pub(super) use person::{is_raw, is_same_person};

/// Options of [`export`].
///
/// ```
/// use grainstore_interop::alf::ExportOptions;
///
/// let options = ExportOptions { agent_id: Some("0197-example".into()), ..ExportOptions::default() };
/// assert!(options.remember_sealed);
/// ```
#[derive(Debug, Clone)]
pub struct ExportOptions {
    /// The agent; `None` for the only one of the store.
    pub agent_id: Option<String>,
    /// The name of an agent that the store has no name of.
    pub agent_name: Option<String>,
    /// How long a partition is.
    pub granularity: Granularity,
    /// True to keep the bytes of sealed partitions, so that they are the same in the next export. They are kept in the
    /// store, once more than the records.
    pub remember_sealed: bool,
    /// True to export grains too that were not born as memory records, of all namespaces and in any state: each record
    /// carries its grain. An agent with an id and a name that the store does not have is made then.
    pub native: bool,
    /// The person that the archive is of, by the `user_id` of grains, which is the id of the principal: their records,
    /// their profile, and attachments of their records alone. `None` for all of the agent. An import of such an archive
    /// adds to what a store has, and deletes nothing.
    pub of_user: Option<String>,
}

impl Default for ExportOptions {
    fn default() -> Self {
        Self {
            agent_id: None,
            agent_name: None,
            granularity: Granularity::default(),
            remember_sealed: true,
            native: false,
            of_user: None,
        }
    }
}

/// What an export wrote: [`export`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ExportReport {
    /// The agent.
    pub agent_id: String,
    /// Number of records.
    pub records: u64,
    /// Number of records that are not in the archive: they were erased, or may not be read.
    pub omitted_records: u64,
    /// Number of grains that are not in the archive, since they were not born as records and took no record's place:
    /// [`ExportOptions::native`] takes them.
    pub native_left_out: u64,
    /// The partitions.
    pub partitions: Vec<PartitionReport>,
    /// Sealed partitions that are not the bytes of an earlier archive: a record of their time came later, or was
    /// erased.
    pub replaced_partitions: Vec<String>,
    /// Number of files: raw sources, artifacts, and what is not known.
    pub files: u64,
    /// The last sequence number, from which a delta goes on.
    pub sequence: u64,
    /// The checksum of the archive.
    pub checksum: String,
}

/// A partition of an [`ExportReport`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PartitionReport {
    /// Its entry.
    pub file: String,
    /// Number of its records.
    pub records: u64,
    /// True if its time is over.
    pub sealed: bool,
    /// The SHA-256 of its bytes.
    pub sha256: String,
}

/// Exports all of an agent as an archive. The file takes its name once it is whole.
///
/// See the [module](super) for an example.
///
/// # Errors
/// `ERR_NOT_FOUND` for an agent that the store does not have, or a person of whom it knows nothing; `ERR_CONFLICT` for a
/// file within a store, or where the store has several agents and none is named; `ERR_ACCESS` unless the session is the
/// operator's; `ERR_TIMEOUT`, `ERR_IO`.
pub fn export(
    session: &Session,
    path: impl AsRef<Path>,
    options: &ExportOptions,
    monitor: &Monitor<'_>,
) -> Result<ExportReport> {
    let _writing = agent::exclusive();
    let agent = match (&options.agent_id, &options.agent_name) {
        (Some(id), Some(name)) if options.native => adopt::enrolled(session, id, name)?,
        _ => chosen(session, options.agent_id.as_deref())?,
    };
    if options.native {
        adopt::adopt(&agent, monitor)?;
    }
    if !session.store().is_read_only() {
        follow_store(&agent)?;
    }
    let native_left_out = match options.native || options.of_user.is_some() {
        true => 0,
        false => adopt::count_others(&agent, monitor)?,
    };
    let person = options.of_user.as_deref().map(|id| Person::of(&agent, id)).transpose()?;
    let writer = ArchiveWriter::create(path.as_ref())?;
    let sealed = agent.sealed()?;
    let records = person.as_ref().map(|person| &person.records);
    let mut partitions = Partitions::of(&agent, (&sealed, options.granularity), records, monitor)?;
    let files = agent.files()?;
    let mut documents = documents_of(&agent)?;
    let mut names: BTreeSet<String> = files.list().keys().cloned().collect();
    if let Some(person) = &person {
        documents = person.documents(documents);
        names = Person::files(&documents);
    }
    let texts = documents.iter().map(|(layer, document)| (layer.entry, json::line(document)));
    let texts = texts.chain([(INDEX_ENTRY, partitions.index())]);
    let mut entries: Vec<NewEntry<'_>> =
        texts.map(|(name, text)| NewEntry::text(name, &text)).collect();
    entries.extend(partitions.take_entries());
    entries.extend(file_entries(&files, &names)?);
    let manifest = manifest::Snapshot {
        agent: &agent,
        documents: &documents,
        partitions: &partitions,
        files: &names,
        name: options.agent_name.as_deref(),
        of_user: person.as_ref().map(|person| person.id),
    };
    let manifest = manifest.document()?;
    let (manifest, checksum) = with_checksum(manifest, &entries);
    entries.insert(0, NewEntry::text(MANIFEST_ENTRY, &manifest));
    let (written, file) = write_entries(writer, entries, monitor)?;
    if options.remember_sealed && person.is_none() && !session.store().is_read_only() {
        remember(&agent, sealed, &partitions, &written)?;
    }
    // No archive is out of which the audit log does not tell.
    transfer::exported(session, "alf", partitions.records())?;
    file.place()?;
    Ok(ExportReport {
        agent_id: agent.id.clone(),
        records: partitions.records(),
        omitted_records: partitions.omitted,
        native_left_out,
        replaced_partitions: partitions.replaced(),
        partitions: partitions.report(),
        files: names.len() as u64,
        sequence: agent.sequence()?,
        checksum,
    })
}

/// Returns the agent with an id, or the only one.
pub(super) fn chosen<'s>(session: &'s Session, id: Option<&str>) -> Result<Agent<'s>> {
    let agents = Agent::all(session)?;
    let not_found = |message: String| {
        Err(Error::new(grainstore::ErrorKind::NotFound, message).with_hint(
            "import an archive of the agent first, or export native grains with an id and a name for it",
        ))
    };
    match (id, agents.as_slice()) {
        (Some(id), agents) => {
            let id = id.to_ascii_lowercase();
            match agents.iter().any(|(known, _)| *known == id) {
                true => Ok(Agent::new(session, &id)),
                false => not_found(format!("the store has no agent {id}")),
            }
        }
        (None, [(id, _)]) => Ok(Agent::new(session, id)),
        (None, []) => not_found("the store has no agent of ALF".to_owned()),
        (None, agents) => {
            let names: Vec<&str> = agents.iter().map(|(id, _)| id.as_str()).collect();
            let message = format!("the store has several agents: {}", names.join(", "));
            Err(Error::new(grainstore::ErrorKind::Conflict, message).with_hint("name one of them"))
        }
    }
}

/// Documents by their layers.
type Documents = Vec<(Layer, Value)>;

/// The documents of all layers.
pub(super) fn documents_of(agent: &Agent<'_>) -> Result<Documents> {
    let mut documents = Vec::new();
    for layer in LAYERS {
        if let Some((document, _)) = whole_document(agent, layer)? {
            documents.push((layer, document));
        }
    }
    Ok(documents)
}

/// Files by their names, what is not known last.
fn file_entries<'s>(files: &Files<'s>, names: &BTreeSet<String>) -> Result<Vec<NewEntry<'s>>> {
    let group = |name: &str| match name {
        name if name.starts_with("artifacts/") => 0,
        name if name.starts_with("raw/") => 1,
        _ => 2,
    };
    let mut names: Vec<&String> = names.iter().collect();
    names.sort_by_key(|name| (group(name), name.as_str()));
    let mut entries = Vec::with_capacity(names.len());
    for name in names {
        entries.extend(NewEntry::file(name, files, name)?);
    }
    Ok(entries)
}

/// Keeps the bytes of sealed partitions that were written now.
fn remember(
    agent: &Agent<'_>,
    mut sealed: Files<'_>,
    partitions: &Partitions<'_>,
    written: &[NewEntry<'_>],
) -> Result<()> {
    let mut rows = Vec::new();
    let parts = written.iter().filter_map(|entry| match &entry.content {
        Content::Spooled(part) => Some((entry.name.as_str(), part)),
        _ => None,
    });
    let parts: BTreeMap<&str, &Part> = parts.collect();
    for partition in partitions.new_sealed() {
        let Some(part) = parts.get(partition.file.as_str()) else { continue };
        sealed.put(&partition.label, part.reader()?)?;
        if let Some(kept) = sealed.get(&partition.label) {
            let row = SealedRow { file: kept.sha256.clone(), ..partition.row.clone() };
            let key = partition.label.as_str();
            rows.push(agent.rows.put(tables::SEALED, key, &row, Owner::Store)?);
        }
    }
    for label in partitions.obsolete(sealed.list().keys()) {
        sealed.remove(&label);
    }
    if sealed.is_changed() && sealed.refusal()?.is_some() {
        // A hold keeps the list as it is.
        return Ok(());
    }
    sealed.commit(clamped(agent.session.now()), &[&agent.files()?])?;
    match rows.is_empty() {
        true => Ok(()),
        false => agent.rows.write(rows),
    }
}
