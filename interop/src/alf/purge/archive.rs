//! Purge of a file: an archive or a delta is written anew without some records, and without files that copy them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use grainstore::EpochMs;
use serde_json::json;

use super::lines::{Left, without_lines};
use super::mentions::Mentions;
use super::report::{PurgeOptions, PurgeReport};
use crate::alf::bundle::{Bundle, Kind, MAX_DOCUMENT_BYTES};
use crate::alf::export::{Content, NewEntry, described, update, with_checksum, write_entries};
use crate::alf::names::{
    ATTACHMENTS, DELETED_CONTENT, DELTA_MANIFEST_ENTRY, INDEX_ENTRY, MANIFEST_ENTRY, VECTORS_ENTRY,
};
use crate::alf::survey::Survey;
use crate::archive::{ArchiveWriter, Limits};
use crate::error::{Error, Result};
use crate::json::{self, Value};
use crate::monitor::Monitor;

/// Writes an archive or a delta without some records into another file, which may be the same. The other lines of its
/// partitions are the same bytes, and so is everything that has nothing of them. A delta of which nothing is left is
/// not written; if it was to take its own place, it is removed.
///
/// ```no_run
/// use grainstore::EpochMs;
/// use grainstore_interop::Monitor;
/// use grainstore_interop::alf::{PurgeOptions, PurgeReason, purge_archive};
/// use grainstore_interop::archive::Limits;
///
/// let ids = ["019470a0-0000-7000-8000-000000000001".to_owned()];
/// let asked_by = "0a1b2c3d-0000-4000-8000-00000000000b";
/// let options = PurgeOptions::new(PurgeReason::GdprArticle17, asked_by);
/// let now = EpochMs::new(1_768_471_200_000);
/// let (from, to) = ("agent.alf", "purged.alf");
/// let audit = purge_archive(from, to, &ids, now, &options, Limits::default(), &Monitor::default())?;
/// println!("{} records are gone", audit.records_removed);
/// # Ok::<(), grainstore_interop::Error>(())
/// ```
///
/// # Errors
/// `ERR_CORRUPT`, `ERR_INTEGRITY`, `ERR_LIMIT` for an archive whose bytes cannot be trusted; `ERR_SCHEMA` unless who
/// asked is a UUID; `ERR_CONFLICT` for a file within a store; `ERR_TIMEOUT`, `ERR_IO`. The file is as it was then.
pub fn purge_archive(
    from: impl AsRef<Path>,
    to: impl AsRef<Path>,
    ids: &[String],
    now: EpochMs,
    options: &PurgeOptions,
    limits: Limits,
    monitor: &Monitor<'_>,
) -> Result<PurgeReport> {
    let (from, to) = (from.as_ref(), to.as_ref());
    let bundle = Bundle::open_any(from, limits)?;
    let mut report = PurgeReport::begin(bundle.agent_id(), options, now)?;
    let survey = Survey::of_bytes(&bundle, monitor)?;
    let ids: BTreeSet<String> = ids.iter().map(|id| id.to_ascii_lowercase()).collect();
    let mut purge = ArchivePurge {
        bundle: &bundle,
        survey: &survey,
        options,
        manifest: bundle.manifest.clone(),
        mentions: Mentions::default(),
        own_files: BTreeSet::new(),
        affected: false,
    };
    let mut entries = purge.partitions(&ids, &mut report)?;
    purge.others(&mut entries, &mut report)?;
    report.record_ids = Some(ids.into_iter().collect());
    let beside = PathBuf::from(format!("{}.purge-audit.jsonl", to.display()));
    let audit_file = options.audit_file.as_deref().unwrap_or(&beside);
    if !options.dry_run {
        match purge.is_empty_delta() {
            true if from == to => std::fs::remove_file(to).map_err(Error::from)?,
            true => {}
            false => purge.write(entries, to, monitor)?,
        }
    }
    report.finish(now, Some(audit_file))
}

struct ArchivePurge<'a> {
    bundle: &'a Bundle,
    survey: &'a Survey,
    options: &'a PurgeOptions,
    manifest: Value,
    mentions: Mentions,
    own_files: BTreeSet<String>,
    /// True if a record went.
    affected: bool,
}

impl<'a> ArchivePurge<'a> {
    /// Copies the partitions without the records, and counts again.
    fn partitions(
        &mut self,
        ids: &BTreeSet<String>,
        report: &mut PurgeReport,
    ) -> Result<Vec<NewEntry<'a>>> {
        let mut entries = Vec::new();
        for (place, partition) in self.bundle.partitions.iter().enumerate() {
            let name = partition.file.as_str();
            let Some(entry) = self.bundle.archive.entry(name) else { continue };
            let left = without_lines(self.bundle.archive.reader(entry)?, |id| ids.contains(id))?;
            if left.removed == 0 {
                entries.extend(self.copied(name));
                continue;
            }
            self.affected = true;
            report.records_removed = report.records_removed.saturating_add(left.removed);
            report.partitions_affected.push(name.to_owned());
            self.learn(&left);
            self.count(place, &left);
            let Left { file, sha256, size, lines, .. } = left;
            if lines > 0 || self.bundle.kind == Kind::Snapshot {
                let (name, content) = (name.to_owned(), Content::Temporary(file));
                entries.push(NewEntry { name, content, sha256, size });
            }
        }
        self.sum_up();
        Ok(entries)
    }

    /// Learns what to look for elsewhere.
    fn learn(&mut self, left: &Left) {
        for record in &left.gone {
            let text = |value: &Value, name: &str| {
                value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
            };
            let content = text(&record.rest, "content");
            if content != DELETED_CONTENT {
                self.mentions.add(&content);
            }
            let source = record.rest.get("source").cloned().unwrap_or_default();
            let (runtime, file) = (text(&source, "runtime"), text(&source, "origin_file"));
            if !file.is_empty() {
                self.own_files.insert(format!("raw/{runtime}/{file}"));
            }
        }
    }

    /// Corrects what the manifest says of a partition.
    fn count(&mut self, place: usize, left: &Left) {
        let said = match self.bundle.kind {
            Kind::Snapshot => self
                .manifest
                .get_mut("layers")
                .and_then(|layers| layers.get_mut("memory"))
                .and_then(|memory| memory.get_mut("partitions"))
                .and_then(|partitions| partitions.get_mut(place)),
            Kind::Delta => {
                self.manifest.get_mut("changes").and_then(|changes| changes.get_mut("memory"))
            }
        };
        let Some(Value::Object(said)) = said else { return };
        said.insert("record_count".to_owned(), json!(left.lines));
        if said.contains_key("checksum") {
            let hash = data_encoding::HEXLOWER.encode(&left.sha256);
            said.insert("checksum".to_owned(), json!(format!("sha256:{hash}")));
        }
    }

    /// Adds up the records of all partitions; a delta without any has no memory.
    fn sum_up(&mut self) {
        if !self.affected {
            return;
        }
        match self.bundle.kind {
            Kind::Snapshot => {
                let memory = self.manifest.get_mut("layers");
                let Some(memory) = memory.and_then(|layers| layers.get_mut("memory")) else {
                    return;
                };
                let partitions = memory.get("partitions").and_then(Value::as_array);
                let counts = partitions.into_iter().flatten();
                let counts = counts.filter_map(|said| said.get("record_count")?.as_u64());
                let sum = counts.fold(0, u64::saturating_add);
                json::set(memory, "record_count", json!(sum));
            }
            Kind::Delta => {
                let Some(Value::Object(changes)) = self.manifest.get_mut("changes") else { return };
                let memory = changes.get("memory").and_then(|memory| memory.get("record_count"));
                if memory.and_then(Value::as_u64) == Some(0) {
                    changes.remove("memory");
                }
            }
        }
    }

    /// Copies the other entries, but for files with copies of what went, and what would have to be made anew.
    fn others(&mut self, entries: &mut Vec<NewEntry<'a>>, report: &mut PurgeReport) -> Result<()> {
        let is_partition = |name: &str| self.bundle.partitions.iter().any(|one| one.file == name);
        let files: BTreeSet<&str> = self.bundle.files().collect();
        let (mut kept, mut dropped) = (Vec::new(), Vec::new());
        for entry in self.bundle.archive.entries() {
            let name = entry.name();
            if is_partition(name) || [MANIFEST_ENTRY, DELTA_MANIFEST_ENTRY].contains(&name) {
                continue;
            }
            let is_vectors = name == VECTORS_ENTRY && self.affected;
            let is_copy = files.contains(name)
                && self.affected
                && (self.own_files.contains(name)
                    || self.mentions.are_in(self.bundle.archive.reader(entry)?)?);
            match is_vectors || is_copy {
                true => dropped.push(name),
                false => kept.push(name),
            }
        }
        report.raw_files_affected = dropped.iter().map(|name| (*name).to_owned()).collect();
        if self.options.keep_raw {
            kept.extend(dropped.drain(..).filter(|name| *name != VECTORS_ENTRY));
        }
        for name in kept {
            let is_index = name == INDEX_ENTRY || self.bundle.index_entry() == Some(name);
            if is_index && self.affected && self.bundle.kind == Kind::Snapshot {
                let memory = self.manifest.get("layers").and_then(|layers| layers.get("memory"));
                let partitions = memory.and_then(|memory| memory.get("partitions"));
                entries.push(NewEntry::text(name, &json::line(&json!({"partitions": partitions}))));
            } else if self.bundle.layer_entry(ATTACHMENTS) == Some(name) && !dropped.is_empty() {
                entries.push(self.detached(name, &dropped)?);
            } else {
                entries.extend(self.copied(name));
            }
        }
        Ok(())
    }

    /// The list of attachments, of which those whose files went are descriptions.
    fn detached(&mut self, name: &str, dropped: &[&str]) -> Result<NewEntry<'a>> {
        let bytes = self.bundle.archive.read(name, MAX_DOCUMENT_BYTES)?.unwrap_or_default();
        let mut document = json::parse(&bytes).map_err(|error| error.in_entry(name))?;
        let list = document.get_mut("attachments").and_then(Value::as_array_mut);
        for item in list.into_iter().flatten().filter_map(Value::as_object_mut) {
            let path = item.get("archive_path").and_then(Value::as_str);
            if path.is_some_and(|path| dropped.contains(&path)) {
                item.insert("archive_path".to_owned(), Value::Null);
            }
        }
        if let Some(Value::Object(layers)) = self.manifest.get_mut("layers") {
            let mut said = described(ATTACHMENTS, &document);
            json::set(&mut said, "file", json!(name));
            update(layers, ATTACHMENTS.name, said);
        }
        Ok(NewEntry::text(name, &json::line(&document)))
    }

    fn copied(&self, name: &str) -> Option<NewEntry<'a>> {
        let entry = self.bundle.archive.entry(name)?;
        let (sha256, size) = self.survey.hashes.get(name).copied()?;
        let content = Content::Archived(&self.bundle.archive, entry.clone());
        Some(NewEntry { name: name.to_owned(), content, sha256, size })
    }

    fn is_empty_delta(&self) -> bool {
        let changes = self.manifest.get("changes").and_then(Value::as_object);
        self.bundle.kind == Kind::Delta && changes.is_some_and(json::Map::is_empty)
    }

    fn write(self, mut entries: Vec<NewEntry<'a>>, to: &Path, monitor: &Monitor<'_>) -> Result<()> {
        let (manifest, _) = with_checksum(self.manifest, &entries);
        let names: &[&str] = match self.bundle.kind {
            Kind::Snapshot => &[MANIFEST_ENTRY],
            Kind::Delta => &[DELTA_MANIFEST_ENTRY, MANIFEST_ENTRY],
        };
        for name in names {
            entries.insert(0, NewEntry::text(name, &manifest));
        }
        write_entries(ArchiveWriter::create(to)?, entries, monitor).map(drop)
    }
}
