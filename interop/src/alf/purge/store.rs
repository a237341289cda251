//! Purge of a store: records in all their versions, with everything that is kept of them; or all of an agent.

use std::collections::{BTreeMap, BTreeSet};

use grainstore::{ContentAddress, EpochMs, EraseOptions, Owner, Session};

use super::lineage::lineage;
use super::lines::without_lines;
use super::mentions::Mentions;
use super::report::{PurgeOptions, PurgeReport, PurgeScope};
use crate::alf::agent::{self, Agent, Change, RecordRow};
use crate::alf::export::chosen;
use crate::alf::import::{SealedRow, hash_of_ids, kept_document};
use crate::alf::names::{
    ATTACHMENTS, DELETED_CONTENT, FILES_LAYER, LAYERS, MANIFEST_LAYER, PARTITIONS_FOLDER,
    SEALED_LAYER, VECTORS_ENTRY, tables,
};
use crate::alf::partition::{Granularity, Span};
use crate::error::{Error, Result};
use crate::json::Value;
use crate::kept::{ANCHOR_LAYER, Files, clamped};
use crate::monitor::Monitor;
use crate::transfer;

/// Purges records of an agent of a store, or all of the agent.
///
/// For each record every version goes, changes of it, its vectors, its rows, its lines in sealed partitions that are
/// kept, and files with copies of it. Links to it stay. Its id is remembered: an import or a delta does not bring it
/// back.
///
/// See the [module](crate::alf) for an example.
///
/// # Errors
/// `ERR_INVALIDATION_DENIED` if a record is under hold, `ERR_POLICY` if one has to be retained: nothing is purged then,
/// unless [`PurgeOptions::partial`] asks for the others. `ERR_NOT_FOUND` for an agent that the store does not have;
/// `ERR_SCHEMA` unless who asked is a UUID; `ERR_ACCESS` unless the session is the operator's; `ERR_TIMEOUT`, `ERR_IO`.
pub fn purge(
    session: &Session,
    scope: &PurgeScope,
    options: &PurgeOptions,
    monitor: &Monitor<'_>,
) -> Result<PurgeReport> {
    let _writing = agent::exclusive();
    let agent = chosen(session, options.agent_id.as_deref())?;
    let now = session.now();
    let mut report = PurgeReport::begin(&agent.id, options, now)?;
    let reason = options.told(&report.purge_id);
    let mut purge = StorePurge { agent: &agent, options, reason, monitor };
    let mut targets = purge.targets(scope)?;
    purge.check(&mut targets, &mut report)?;
    match scope {
        PurgeScope::Agent => {
            report.scope = "full_agent";
            purge.all(&targets, &mut report)?;
            report.record_ids = None;
        }
        _ => purge.records(&targets, &mut report)?,
    }
    if !options.dry_run {
        transfer::purged(session, "alf", report.records_removed)?;
    }
    report.finish(session.now(), options.audit_file.as_deref())
}

/// Records that are to go, by their ids.
type Targets = BTreeMap<String, Target>;

/// A record that is to go. Of one that the store does not have, the id is remembered.
struct Target {
    row: Option<RecordRow>,
    grains: Vec<ContentAddress>,
}

struct StorePurge<'a, 's> {
    agent: &'a Agent<'s>,
    options: &'a PurgeOptions,
    reason: String,
    monitor: &'a Monitor<'a>,
}

impl StorePurge<'_, '_> {
    /// The records of a scope, with the changes of them.
    fn targets(&self, scope: &PurgeScope) -> Result<Targets> {
        let mut ids = BTreeSet::new();
        if let PurgeScope::Records(named) = scope {
            ids.extend(named.iter().map(|id| id.to_ascii_lowercase()));
        }
        let session = self.agent.session;
        let mut found = Vec::new();
        self.agent.rows.each(tables::RECORDS, |id, row: RecordRow| {
            let is_asked = match scope {
                PurgeScope::Agent => true,
                PurgeScope::Records(_) => {
                    let change_of = row.change_of.as_ref().is_some_and(|of| ids.contains(of));
                    ids.contains(id) || change_of
                }
                PurgeScope::User(user) => {
                    let grain = session.inspect(&row.address.parse()?)?.grain()?;
                    grain.text("user_id").is_some_and(|own| own.eq_ignore_ascii_case(user))
                }
            };
            if is_asked {
                found.push((id.to_owned(), row));
            }
            Ok(())
        })?;
        let mut targets = Targets::new();
        for (id, row) in found {
            let grains = lineage(session, &id, &row)?;
            targets.insert(id, Target { row: Some(row), grains });
        }
        for id in ids {
            targets.entry(id).or_insert(Target { row: None, grains: Vec::new() });
        }
        Ok(targets)
    }

    /// Asks whether everything may go. What may not is taken off, or is the end of it.
    fn check(&mut self, targets: &mut Targets, report: &mut PurgeReport) -> Result<()> {
        let session = self.agent.session;
        let dry = EraseOptions::new().dry_run(true);
        let mut kept = Vec::new();
        for (id, target) in &*targets {
            for grain in &target.grains {
                let tried = session.erase(grain, &self.reason, &dry)?;
                if tried.refusal.is_none() {
                    continue;
                }
                if !self.options.partial && !self.options.dry_run {
                    // Asked in earnest, the store writes the refusal down.
                    session
                        .erase(grain, &self.reason, &EraseOptions::new())
                        .map_err(|error| Error::from(error).in_entry(id))?;
                }
                kept.push(id.clone());
                break;
            }
        }
        for id in kept {
            targets.remove(&id);
            report.records_kept.push(id);
        }
        Ok(())
    }

    /// Purges records.
    fn records(&self, targets: &Targets, report: &mut PurgeReport) -> Result<()> {
        let mut mentions = Mentions::default();
        let mut own_files = BTreeSet::new();
        for target in targets.values() {
            let Some(row) = &target.row else { continue };
            let record = self.agent.rest(row)?;
            let text = |value: &Value, name: &str| {
                value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
            };
            // What marks a deletion is no content.
            if row.change_of.is_none() || text(&record, "content") != DELETED_CONTENT {
                mentions.add(&text(&record, "content"));
            }
            let source = record.get("source").cloned().unwrap_or_default();
            let (runtime, file) = (text(&source, "runtime"), text(&source, "origin_file"));
            if !file.is_empty() {
                own_files.insert(format!("raw/{runtime}/{file}"));
            }
            report.partitions_affected.push(file_of(row.created_ms));
        }
        self.purge_sealed(targets)?;
        self.purge_files(&mentions, &own_files, report)?;
        let count = self.erase(targets)?;
        report.records_removed = count;
        report.record_ids = Some(targets.keys().cloned().collect());
        self.find_copies(&mentions, targets, report)
    }

    /// Writes the partitions that are kept anew, without the lines of these records.
    fn purge_sealed(&self, targets: &Targets) -> Result<()> {
        if self.options.dry_run {
            return Ok(());
        }
        let mut sealed = self.agent.sealed()?;
        let labels: Vec<String> = sealed.list().keys().cloned().collect();
        let mut rows = Vec::new();
        for label in labels {
            let Some(entry) = sealed.get(&label) else { continue };
            let left = without_lines(sealed.reader(entry)?, |id| targets.contains_key(id))?;
            if left.removed == 0 {
                continue;
            }
            let mut ids = left.ids;
            if ids.is_empty() {
                sealed.remove(&label);
                rows.push(self.agent.rows.remove(tables::SEALED, label.as_str()));
                continue;
            }
            sealed.put(&label, left.file)?;
            let file = sealed.get(&label).map(|kept| kept.sha256.clone()).unwrap_or_default();
            let row = SealedRow { file, ids: hash_of_ids(&mut ids) };
            rows.push(self.agent.rows.put(tables::SEALED, label.as_str(), &row, Owner::Store)?);
        }
        sealed.commit(clamped(self.agent.session.now()), &[&self.agent.files()?])?;
        match rows.is_empty() {
            true => Ok(()),
            false => self.agent.rows.write(rows),
        }
    }

    /// Drops files that have copies of what goes.
    fn purge_files(
        &self,
        mentions: &Mentions,
        own: &BTreeSet<String>,
        report: &mut PurgeReport,
    ) -> Result<()> {
        let mut files: Files<'_> = self.agent.files()?;
        let mut found = Vec::new();
        for (name, entry) in files.list() {
            // Of vectors nobody knows whose they are.
            if name == VECTORS_ENTRY
                || own.contains(name)
                || mentions.are_in(files.reader(entry)?)?
            {
                found.push(name.clone());
            }
        }
        report.raw_files_affected.clone_from(&found);
        if self.options.dry_run || self.options.keep_raw || found.is_empty() {
            return Ok(());
        }
        for name in &found {
            files.remove(name);
        }
        let now = clamped(self.agent.session.now());
        files.commit(now, &[&self.agent.sealed()?])?;
        self.detach(&found, now)
    }

    /// Attachments whose files are gone are descriptions from now on.
    fn detach(&self, names: &[String], now: EpochMs) -> Result<()> {
        let Some((item_layer, _)) = ATTACHMENTS.items else { return Ok(()) };
        for id in self.agent.documents.items(item_layer)? {
            let Some(kept) = self.agent.documents.read(item_layer, Some(&id))? else { continue };
            let path = kept.value.get("archive_path").and_then(Value::as_str);
            if path.is_some_and(|path| names.iter().any(|name| name == path)) {
                let mut value = kept.value;
                if let Some(members) = value.as_object_mut() {
                    members.insert("archive_path".to_owned(), Value::Null);
                }
                let document = kept_document(
                    (&self.agent.id, now),
                    (ATTACHMENTS, item_layer),
                    Some(id),
                    value,
                );
                self.agent.documents.write([document])?;
            }
        }
        Ok(())
    }

    /// Erases the grains, and remembers the ids. Returns how many records there were.
    fn erase(&self, targets: &Targets) -> Result<u64> {
        let there = targets.values().filter(|target| target.row.is_some()).count() as u64;
        if self.options.dry_run {
            return Ok(there);
        }
        let sequence = self.agent.sequence()?.saturating_add(1);
        let entries: Vec<(Change, String)> =
            targets.keys().map(|id| (Change::Purged, id.clone())).collect();
        for (part, entries) in (0..).zip(entries.chunks(1_000)) {
            let mut changes = self.agent.log_changes((sequence, part), entries)?.to_vec();
            for (_, id) in entries {
                changes.push(self.agent.rows.put(
                    tables::PURGED,
                    id.as_str(),
                    &true,
                    Owner::Store,
                )?);
            }
            self.agent.rows.write(changes)?;
        }
        for (done, (id, target)) in (0_u64..).zip(targets) {
            self.monitor.step(done, targets.len() as u64)?;
            for grain in &target.grains {
                self.agent.session.erase(grain, &self.reason, &EraseOptions::new())?;
            }
            // It went with the grain; of a record whose grain is lost it is left.
            self.agent.rows.write(vec![self.agent.rows.remove(tables::RECORDS, id.as_str())])?;
        }
        Ok(there)
    }

    /// Finds other records that have the content of one that went.
    fn find_copies(
        &self,
        mentions: &Mentions,
        targets: &Targets,
        report: &mut PurgeReport,
    ) -> Result<()> {
        let mut others = Vec::new();
        self.agent.rows.each(tables::RECORDS, |id, row: RecordRow| {
            if !targets.contains_key(id) {
                let record = self.agent.rest(&row)?;
                let content = record.get("content").and_then(Value::as_str).unwrap_or_default();
                if mentions.are_in_text(content) {
                    others.push(id.to_owned());
                }
            }
            Ok(())
        })?;
        report.records_with_copies = others;
        Ok(())
    }

    /// Purges everything that is kept of the agent.
    fn all(&self, targets: &Targets, report: &mut PurgeReport) -> Result<()> {
        let rows = targets.values().filter_map(|target| target.row.as_ref());
        report.partitions_affected = rows.map(|row| file_of(row.created_ms)).collect();
        let files = self.agent.files()?;
        report.raw_files_affected = files.list().keys().cloned().collect();
        report.records_removed = targets.len() as u64;
        if self.options.dry_run {
            return Ok(());
        }
        self.erase(targets)?;
        let documents = &self.agent.documents;
        for layer in LAYERS {
            if let Some((item_layer, _)) = layer.items {
                for id in documents.items(item_layer)? {
                    documents.erase(item_layer, Some(&id), &self.reason)?;
                }
            }
            documents.erase(layer.name, None, &self.reason)?;
        }
        for layer in [FILES_LAYER, SEALED_LAYER, ANCHOR_LAYER, MANIFEST_LAYER] {
            documents.erase(layer, None, &self.reason)?;
        }
        let mut changes = Vec::new();
        self.agent.rows.each_number(tables::LOG, 0, |key, _: Value| {
            changes.push(self.agent.rows.remove(tables::LOG, key));
            Ok(())
        })?;
        for table in [tables::NUMBERS, tables::SEALED, tables::PEERS] {
            self.agent.rows.each(table, |key, _: Value| {
                changes.push(self.agent.rows.remove(table, key));
                Ok(())
            })?;
        }
        self.agent.rows.write(changes)?;
        self.agent.dismiss()
    }
}

/// The partition that a record is written into by default.
fn file_of(created_ms: i64) -> String {
    let span = Span::of(EpochMs::new(created_ms), Granularity::Quarter);
    format!("{PARTITIONS_FOLDER}{}.jsonl", span.label())
}
