//! What changed of an agent since a sequence number, as an archive.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufWriter, Write};
use std::path::Path;

use grainstore::{EpochMs, ErrorKind, Session};
use serde::Serialize;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::alf::agent::{self, Agent, Change, is_hidden};
use crate::alf::export::{Content, NewEntry, chosen, documents_of, with_checksum, write_entries};
use crate::alf::import::follow_store;
use crate::alf::names::{
    DELTA_ENTRY, DELTA_MANIFEST_ENTRY, IDENTITY, LAYERS, LAYERS_REMOVED, Layer, MANIFEST_ENTRY,
    MANIFEST_LAYER, MANIFEST_MEMBER, PRINCIPALS, RUNTIME, VERSION,
};
use crate::alf::record::uuid_number;
use crate::archive::ArchiveWriter;
use crate::error::{Error, Result};
use crate::json::{self, Value};
use crate::kept::date_text;
use crate::monitor::Monitor;
use crate::scratch;
use crate::transfer;

/// Options of [`export_delta`].
///
/// ```
/// use grainstore_interop::alf::DeltaOptions;
///
/// let since_the_last_one = DeltaOptions { since: 12, ..DeltaOptions::default() };
/// assert_eq!(since_the_last_one.agent_id, None);
/// ```
#[derive(Debug, Clone, Default)]
pub struct DeltaOptions {
    /// The agent; `None` for the only one of the store.
    pub agent_id: Option<String>,
    /// The sequence number up to which the other side has everything.
    pub since: u64,
}

/// What a delta has: [`export_delta`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DeltaReport {
    /// The agent.
    pub agent_id: String,
    /// The sequence number that it goes on from.
    pub base_sequence: u64,
    /// The sequence number that it leads to.
    pub new_sequence: u64,
    /// Records that are new.
    pub created: u64,
    /// Records that changed.
    pub updated: u64,
    /// Records that were deleted or purged.
    pub deleted: u64,
    /// The layers that changed, or went as a whole.
    pub layers: Vec<&'static str>,
    /// Number of files that are new or changed.
    pub files: u64,
}

/// Exports what changed of an agent since a sequence number. Without any change no file is written, and the result is
/// `None`.
///
/// See the [module](crate::alf) for an example.
///
/// # Errors
/// Those of [`export`](crate::alf::export()); `ERR_CONFLICT` for a sequence number that is not reached yet.
pub fn export_delta(
    session: &Session,
    path: impl AsRef<Path>,
    options: &DeltaOptions,
    monitor: &Monitor<'_>,
) -> Result<Option<DeltaReport>> {
    let _writing = agent::exclusive();
    let agent = chosen(session, options.agent_id.as_deref())?;
    if !session.store().is_read_only() {
        follow_store(&agent)?;
    }
    let (since, head) = (options.since, agent.sequence()?);
    if since > head {
        let message = format!("the last sequence number of the agent is {head}, not {since}");
        return Err(Error::new(ErrorKind::Conflict, message)
            .with_hint("it is a number of another store: export all of the agent"));
    }
    let changes = Changes::since(&agent, since)?;
    if since == head || changes.is_empty() {
        return Ok(None);
    }
    let writer = ArchiveWriter::create(path.as_ref())?;
    let mut entries = Vec::new();
    let mut inventory = json!({});
    let layers = add_layers(&agent, &changes, &mut entries, &mut inventory)?;
    let mut report = DeltaReport {
        agent_id: agent.id.clone(),
        base_sequence: since,
        new_sequence: head,
        created: 0,
        updated: 0,
        deleted: 0,
        layers,
        files: 0,
    };
    add_lines(&agent, &changes, (&mut entries, &mut inventory), &mut report, monitor)?;
    add_files(&agent, &changes, (&mut entries, &mut inventory), &mut report)?;
    let manifest = manifest_of(&agent, &changes, &inventory, (since, head))?;
    let (manifest, _) = with_checksum(manifest, &entries);
    for name in [DELTA_MANIFEST_ENTRY, MANIFEST_ENTRY] {
        entries.insert(0, NewEntry::text(name, &manifest));
    }
    let (_, file) = write_entries(writer, entries, monitor)?;
    let lines = [report.created, report.updated, report.deleted].into_iter().sum();
    // No archive is out of which the audit log does not tell.
    transfer::exported(session, "alf", lines)?;
    file.place()?;
    Ok(Some(report))
}

/// What changed: the first and the last change of each record, layers and files.
#[derive(Debug, Default)]
struct Changes {
    records: BTreeMap<String, (Change, Change)>,
    layers: BTreeSet<String>,
    files: BTreeSet<String>,
}

impl Changes {
    fn since(agent: &Agent<'_>, sequence: u64) -> Result<Self> {
        let mut changes = Self::default();
        agent.changes_since(sequence, |change, name| match change {
            Change::Layer => drop(changes.layers.insert(name)),
            Change::File => drop(changes.files.insert(name)),
            change => {
                let both = changes.records.entry(name).or_insert((change, change));
                both.1 = change;
            }
        })?;
        Ok(changes)
    }

    fn is_empty(&self) -> bool {
        self.records.is_empty() && self.layers.is_empty() && self.files.is_empty()
    }
}

type Out<'o, 's> = (&'o mut Vec<NewEntry<'s>>, &'o mut Value);

fn add_layers(
    agent: &Agent<'_>,
    changes: &Changes,
    entries: &mut Vec<NewEntry<'_>>,
    inventory: &mut Value,
) -> Result<Vec<&'static str>> {
    let mut layers = Vec::new();
    let documents = documents_of(agent)?;
    let is_removed = |layer: &Layer| {
        let is_there = documents.iter().any(|(of, _)| of == layer);
        changes.layers.contains(layer.name) && !is_there
    };
    let removed: Vec<&'static str> =
        LAYERS.into_iter().filter(is_removed).map(|layer| layer.name).collect();
    if !removed.is_empty() {
        json::set(inventory, LAYERS_REMOVED, json!(removed));
        layers.extend(removed);
    }
    for (layer, document) in documents {
        if !changes.layers.contains(layer.name) {
            continue;
        }
        let mut said = json!({"file": layer.entry});
        if layer == IDENTITY {
            let version = document.get("version").cloned();
            json::set(&mut said, "new_version", version.unwrap_or_else(|| json!(1)));
        }
        if layer == PRINCIPALS {
            // The document takes the place of the one before, so that all of them count.
            let list = document.get("principals").and_then(Value::as_array);
            let ids = list.into_iter().flatten().filter_map(|principal| principal.get("id"));
            json::set(&mut said, "changed_ids", Value::Array(ids.cloned().collect()));
        }
        json::set(inventory, layer.name, said);
        entries.push(NewEntry::text(layer.entry, &json::line(&document)));
        layers.push(layer.name);
    }
    Ok(layers)
}

/// Writes a line for each record that changed: first those that are new, then those that changed, then those that went.
fn add_lines(
    agent: &Agent<'_>,
    changes: &Changes,
    (entries, inventory): Out<'_, '_>,
    report: &mut DeltaReport,
    monitor: &Monitor<'_>,
) -> Result<()> {
    let mut file = BufWriter::with_capacity(1 << 16, scratch::file()?);
    let (mut hasher, mut size, mut done) = (Sha256::new(), 0_u64, 0_u64);
    let total = changes.records.len() as u64;
    for operation in ["create", "update", "delete"] {
        for (id, (first, last)) in &changes.records {
            if operation_of(*first, *last) != Some(operation) {
                continue;
            }
            monitor.step(done, total)?;
            let Some(record) = line_of(agent, id, operation)? else { continue };
            let mut line = json::line(&record);
            line.push('\n');
            hasher.update(&line);
            size = size.saturating_add(line.len() as u64);
            file.write_all(line.as_bytes()).map_err(scratch::failed)?;
            done += 1;
            match operation {
                "create" => report.created += 1,
                "update" => report.updated += 1,
                _ => report.deleted += 1,
            }
        }
    }
    if done > 0 {
        json::set(inventory, "memory", json!({"file": DELTA_ENTRY, "record_count": done}));
        let file = file.into_inner().map_err(|error| scratch::failed(error.into_error()))?;
        let (name, content) = (DELTA_ENTRY.to_owned(), Content::Temporary(file));
        entries.push(NewEntry { name, content, sha256: hasher.finalize().into(), size });
    }
    Ok(())
}

/// What all changes of a record come to; `None` if it came and went.
fn operation_of(first: Change, last: Change) -> Option<&'static str> {
    match (first, last) {
        (Change::Created, Change::Purged) => None,
        (Change::Created, _) => Some("create"),
        (_, Change::Deleted | Change::Purged) => Some("delete"),
        _ => Some("update"),
    }
}

/// The line of a record; `None` for one that the session is not shown. Of one that is there no more, what is asked of every
/// record.
fn line_of(agent: &Agent<'_>, id: &str, operation: &str) -> Result<Option<Value>> {
    let row = match agent.row(id) {
        Err(error) if is_hidden(&error) => return Ok(None),
        row => row?,
    };
    let mut record = match row {
        Some(row) => agent.record(&row)?,
        None if operation == "create" => return Ok(None),
        None => purged_record(agent, id),
    };
    if let Some(members) = record.as_object_mut() {
        members.insert("operation".to_owned(), Value::from(operation));
    }
    Ok(Some(record))
}

fn purged_record(agent: &Agent<'_>, id: &str) -> Value {
    // The id of version 7 begins with the time it was made at.
    let ms = uuid_number(id).map_or(0, |number| number >> 80);
    let at = i64::try_from(ms).ok().and_then(|ms| date_text(EpochMs::new(ms)));
    json!({
        "id": id, "agent_id": agent.id, "content": "[purged]", "memory_type": "semantic",
        "source": {"runtime": RUNTIME}, "temporal": {"created_at": at.unwrap_or_default()},
        "status": "deleted", "namespace": "default",
    })
}

fn add_files<'s>(
    agent: &Agent<'s>,
    changes: &Changes,
    (entries, inventory): Out<'_, 's>,
    report: &mut DeltaReport,
) -> Result<()> {
    let files = agent.files()?;
    let (mut there, mut removed) = (Vec::new(), Vec::new());
    for name in &changes.files {
        match NewEntry::file(name, &files, name)? {
            Some(entry) => {
                entries.push(entry);
                there.push(name.as_str());
            }
            None => removed.push(name.as_str()),
        }
    }
    report.files = there.len() as u64;
    if !there.is_empty() {
        json::set(inventory, "files", json!(there));
    }
    if !removed.is_empty() {
        json::set(inventory, "files_removed", json!(removed));
    }
    Ok(())
}

fn manifest_of(
    agent: &Agent<'_>,
    changes: &Changes,
    inventory: &Value,
    (base, new): (u64, u64),
) -> Result<Value> {
    let kept = agent.documents.read(MANIFEST_LAYER, None)?.map(|kept| kept.value);
    let about = kept.as_ref().and_then(|manifest| manifest.get("agent"));
    let said = |name: &str| about.and_then(|about| about.get(name)).cloned();
    let now = date_text(agent.session.now()).unwrap_or_default();
    let mut manifest = json!({
        "alf_version": VERSION,
        "created_at": now,
        "agent": {
            "id": said("id").unwrap_or_else(|| json!(agent.id)),
            "source_runtime": said("source_runtime").unwrap_or_else(|| json!(RUNTIME)),
        },
        "sync": {"base_sequence": base, "new_sequence": new, "new_timestamp": now},
        "changes": inventory,
    });
    if let Some(kept) = kept.filter(|_| changes.layers.contains(MANIFEST_LAYER)) {
        json::set(&mut manifest, MANIFEST_MEMBER, kept);
    }
    Ok(manifest)
}
