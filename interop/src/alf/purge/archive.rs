//! Purge of a file: an archive or a delta is written anew without some records, and without files that copy them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use grainstore::EpochMs;
use serde_json::json;

use super::begun_file::{Asked, BegunFile};
use super::inventory::Inventory;
use super::lines::{Left, each_line, without};
use super::report::{PurgeOptions, PurgeReport, check_audit_file};
use super::sought::Sought;
use super::targets::Changes;
use crate::alf::bundle::{Bundle, Kind, MAX_DOCUMENT_BYTES};
use crate::alf::export::{Content, NewEntry, with_checksum, write_entries};
use crate::alf::names::{
    ATTACHMENTS, DELTA_MANIFEST_ENTRY, INDEX_ENTRY, LAYERS, MANIFEST_ENTRY, VECTORS_ENTRY,
};
use crate::alf::survey::Survey;
use crate::archive::{ArchiveWriter, Limits, WholeFile};
use crate::error::{Error, Result};
use crate::json::{self, Value};
use crate::monitor::Monitor;

/// Writes an archive or a delta without some records, and changes of them, into another file, which may be the same. The
/// other lines of its partitions are the same bytes, and so is everything that has nothing of them. A line that cannot be
/// read goes if it names one of the records, an entry under `memory/` that nobody knows if it has the id of one. A delta
/// of which nothing is left is not written; if it was to take its own place, it is removed.
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
/// asked is a UUID; `ERR_CONFLICT` for a file within a store, and an audit file that is none; `ERR_TIMEOUT`,
/// `ERR_IO`. The file is as it was then.
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
    let beside = PathBuf::from(format!("{}.purge-audit.jsonl", to.display()));
    let audit_file = options.audit_file.as_deref().unwrap_or(&beside);
    let (begun, asked) = (BegunFile::beside(audit_file), Asked::of(ids, options));
    if let Some(done) = completed(&begun, &asked, (to, audit_file), now, options)? {
        return Ok(done);
    }
    let bundle = Bundle::open_any(from, limits)?;
    let mut report = PurgeReport::begin(bundle.agent_id(), options, now)?;
    check_audit_file(Some(audit_file), options)?;
    let survey = Survey::of_bytes(&bundle, monitor)?;
    let mut ids: BTreeSet<String> = ids.iter().map(|id| id.to_ascii_lowercase()).collect();
    changes_in(&bundle)?.close(&mut ids);
    let mut purge = ArchivePurge {
        bundle: &bundle,
        survey: &survey,
        options,
        inventory: Inventory::new(bundle.manifest.clone(), bundle.kind),
        sought: Sought::default(),
        has_embeddings: false,
        affected: false,
    };
    let mut entries = purge.partitions(&ids, &mut report)?;
    purge.others(&mut entries, &mut report)?;
    purge.find_copies(&ids, &mut report)?;
    report.record_ids = Some(ids.into_iter().collect());
    if !options.dry_run {
        // Nothing is left: of what was written there before, nothing either.
        let whole = match purge.inventory.is_empty_delta() {
            true => None,
            false => Some(purge.write(entries, to, monitor)?),
        };
        // Of another file all is there still, if this is cut off.
        if is_same_file(from, to) {
            begun.keep(&report, &asked, whole.as_ref().map(WholeFile::bytes_at))?;
        }
        match whole {
            Some(whole) => whole.place()?,
            None if to.exists() => std::fs::remove_file(to).map_err(Error::from)?,
            None => {}
        }
    }
    let report = report.finish(now, Some(audit_file))?;
    if !options.dry_run {
        begun.forget()?;
    }
    Ok(report)
}

/// Writes the record of a purge of the file in its own place that crashed before it was written. Returns it if the same
/// was asked for.
fn completed(
    begun: &BegunFile,
    asked: &Asked,
    (file, audit_file): (&Path, &Path),
    now: EpochMs,
    options: &PurgeOptions,
) -> Result<Option<PurgeReport>> {
    if options.dry_run {
        return Ok(None);
    }
    let Some((before, report)) = begun.done(file)? else { return Ok(None) };
    let report = report.finish(now, Some(audit_file))?;
    begun.forget()?;
    Ok(Some(report).filter(|_| before == *asked))
}

fn is_same_file(from: &Path, to: &Path) -> bool {
    let [from, to] = [from, to].map(std::fs::canonicalize);
    from.is_ok_and(|from| to.is_ok_and(|to| from == to))
}

/// The records that are changes of others.
fn changes_in(bundle: &Bundle) -> Result<Changes> {
    let mut changes = Changes::default();
    for partition in &bundle.partitions {
        let Some(entry) = bundle.archive.entry(&partition.file) else { continue };
        each_line(bundle.archive.reader(entry)?, |line| {
            if let (Some(of), Some(id)) = (line.change_of(), line.id()) {
                changes.add(&of, &id);
            }
            Ok(())
        })?;
    }
    Ok(changes)
}

struct ArchivePurge<'a> {
    bundle: &'a Bundle,
    survey: &'a Survey,
    options: &'a PurgeOptions,
    inventory: Inventory,
    sought: Sought,
    /// True if a record that is left has embeddings.
    has_embeddings: bool,
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
        ids.iter().for_each(|id| self.sought.add_id(id));
        for (place, partition) in self.bundle.partitions.iter().enumerate() {
            let name = partition.file.as_str();
            let Some(entry) = self.bundle.archive.entry(name) else { continue };
            let source = self.bundle.archive.reader(entry)?;
            let left = without(source, |id| ids.contains(id), |record| self.sought.add(record))
                .map_err(|error| error.in_entry(name))?;
            self.has_embeddings |= left.has_embeddings;
            if left.removed == 0 {
                entries.extend(self.copied(name));
                continue;
            }
            self.affected = true;
            report.records_removed = report.records_removed.saturating_add(left.removed);
            report.partitions_affected.push(name.to_owned());
            self.inventory.count(place, &left);
            let Left { file, sha256, size, lines, .. } = left;
            if lines > 0 || self.bundle.kind == Kind::Snapshot {
                let (name, content) = (name.to_owned(), Content::Temporary(file));
                entries.push(NewEntry { name, content, sha256, size });
            }
        }
        if self.affected {
            self.inventory.sum_up();
        }
        Ok(entries)
    }

    /// Copies the other entries, but for files with copies of what went, and what would have to be made anew.
    fn others(&mut self, entries: &mut Vec<NewEntry<'a>>, report: &mut PurgeReport) -> Result<()> {
        let archive = &self.bundle.archive;
        let files: Vec<&str> = self.bundle.files().collect();
        let mut dropped = self.sought.copies(&files, |name| {
            archive.entry(name).map(|entry| archive.reader(entry)).transpose()
        })?;
        report.raw_files_affected = dropped.iter().cloned().collect();
        if self.options.keep_raw {
            dropped.retain(|name| name == VECTORS_ENTRY);
        }
        if !dropped.is_empty() {
            let left = files.iter().copied().filter(|name| !dropped.contains(*name));
            self.inventory.tell_files(&left.collect::<Vec<_>>(), self.has_embeddings);
        }
        let is_partition = |name: &str| self.bundle.partitions.iter().any(|one| one.file == name);
        for name in archive.entries().iter().map(crate::archive::Entry::name) {
            let is_manifest = [MANIFEST_ENTRY, DELTA_MANIFEST_ENTRY].contains(&name);
            if is_partition(name) || is_manifest || dropped.contains(name) {
                continue;
            }
            let is_index = name == INDEX_ENTRY || self.bundle.index_entry() == Some(name);
            if is_index && self.affected {
                // A delta needs none.
                if self.bundle.kind == Kind::Snapshot {
                    let index = json!({"partitions": self.inventory.partitions()});
                    entries.push(NewEntry::text(name, &json::line(&index)));
                }
            } else if self.bundle.layer_entry(ATTACHMENTS) == Some(name) && !dropped.is_empty() {
                entries.push(self.detached(name, &dropped)?);
            } else {
                entries.extend(self.copied(name));
            }
        }
        Ok(())
    }

    /// Finds other records and documents that have the content of one that went.
    fn find_copies(&self, ids: &BTreeSet<String>, report: &mut PurgeReport) -> Result<()> {
        let archive = &self.bundle.archive;
        let (mut records, mut documents) = (BTreeSet::new(), BTreeSet::new());
        self.sought.each_finder(|finder| {
            for layer in LAYERS {
                let entry = self.bundle.layer_entry(layer).and_then(|name| archive.entry(name));
                if let Some(entry) = entry
                    && finder.is_in(archive.reader(entry)?)?
                {
                    documents.insert(layer.name.to_owned());
                }
            }
            for partition in &self.bundle.partitions {
                let Some(entry) = archive.entry(&partition.file) else { continue };
                each_line(archive.reader(entry)?, |line| {
                    let content =
                        line.value.as_ref().and_then(|value| value.get("content")?.as_str());
                    if let Some(id) = line.id().filter(|id| !ids.contains(id))
                        && content.is_some_and(|content| finder.is_in_text(content))
                    {
                        records.insert(id);
                    }
                    Ok(())
                })?;
            }
            Ok(())
        })?;
        report.records_with_copies.extend(records);
        report.documents_with_copies.extend(documents);
        Ok(())
    }

    /// The list of attachments, of which those whose files went are descriptions.
    fn detached(&mut self, name: &str, dropped: &BTreeSet<String>) -> Result<NewEntry<'a>> {
        let bytes = self.bundle.archive.read(name, MAX_DOCUMENT_BYTES)?.unwrap_or_default();
        let mut document = json::parse(&bytes).map_err(|error| error.in_entry(name))?;
        let list = document.get_mut("attachments").and_then(Value::as_array_mut);
        for item in list.into_iter().flatten().filter_map(Value::as_object_mut) {
            let path = item.get("archive_path").and_then(Value::as_str);
            if path.is_some_and(|path| dropped.contains(path)) {
                item.insert("archive_path".to_owned(), Value::Null);
            }
        }
        self.inventory.tell_attachments(name, &document);
        Ok(NewEntry::text(name, &json::line(&document)))
    }

    fn copied(&self, name: &str) -> Option<NewEntry<'a>> {
        let entry = self.bundle.archive.entry(name)?;
        let (sha256, size) = self.survey.hashes.get(name).copied()?;
        let content = Content::Archived(&self.bundle.archive, entry.clone());
        Some(NewEntry { name: name.to_owned(), content, sha256, size })
    }

    fn write(
        self,
        mut entries: Vec<NewEntry<'a>>,
        to: &Path,
        monitor: &Monitor<'_>,
    ) -> Result<WholeFile> {
        let (manifest, _) = with_checksum(self.inventory.manifest, &entries);
        let names: &[&str] = match self.bundle.kind {
            Kind::Snapshot => &[MANIFEST_ENTRY],
            Kind::Delta => &[DELTA_MANIFEST_ENTRY, MANIFEST_ENTRY],
        };
        for name in names {
            entries.insert(0, NewEntry::text(name, &manifest));
        }
        Ok(write_entries(ArchiveWriter::create(to)?, entries, monitor)?.1)
    }
}
