//! What changes beside the records of a store that go: partitions that are kept, files, attachments, rows.

use std::collections::BTreeSet;

use grainstore::Owner;

use super::lines::without_lines;
use super::report::PurgeReport;
use super::sought::Sought;
use super::store::StorePurge;
use super::targets::Targets;
use crate::alf::agent::Change;
use crate::alf::export::is_raw;
use crate::alf::import::{SealedRow, kept_document};
use crate::alf::log::{LogEntry, in_parts};
use crate::alf::names::{ATTACHMENTS, PRINCIPALS, tables};
use crate::error::Result;
use crate::json::{self, Value};
use crate::kept::{Document, clamped};

/// Rows that are written together.
pub(super) const BATCH: usize = 1_000;

/// What changes beside the records.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Labels of partitions that are kept, and have lines of theirs, or had.
    pub(super) sealed: Vec<String>,
    /// Files that go.
    pub(super) files: BTreeSet<String>,
    /// Attachments whose files go.
    pub(super) attachments: Vec<Document>,
}

impl StorePurge<'_, '_> {
    /// Finds what changes beside the records.
    pub(super) fn plan(&self, targets: &Targets, sought: &Sought) -> Result<Plan> {
        let mut plan = Plan::default();
        let sealed = self.agent.sealed()?;
        let has_begun = self.begun.before()?.is_some();
        for (label, entry) in sealed.list() {
            let goes = |id: &str| targets.records.contains_key(id);
            // The same purge may have crashed between the bytes and the row that tells of them.
            if without_lines(sealed.reader(entry)?, goes)?.removed > 0
                || (has_begun && self.is_behind(label, &entry.sha256)?)
            {
                plan.sealed.push(label.clone());
            }
        }
        let files = self.agent.files()?;
        let names: Vec<&str> = files.list().keys().map(String::as_str).collect();
        plan.files = sought
            .copies(&names, |name| files.get(name).map(|entry| files.reader(entry)).transpose())?;
        if !targets.asked_for.is_empty() {
            plan.files.extend(self.artifacts_of(targets)?);
        }
        if !self.options.keep_raw {
            self.detached(&mut plan)?;
        }
        Ok(plan)
    }

    /// Returns `true` if the row of a partition tells of other bytes than those that are kept.
    fn is_behind(&self, label: &str, sha256: &str) -> Result<bool> {
        let row = self.agent.rows.get::<SealedRow>(tables::SEALED, label)?;
        Ok(row.is_some_and(|row| row.file != sha256))
    }

    /// The files of attachments that records which go name, and no others.
    fn artifacts_of(&self, targets: &Targets) -> Result<BTreeSet<String>> {
        let (mut theirs, mut of_others) = (BTreeSet::new(), BTreeSet::new());
        let Some((item_layer, _)) = ATTACHMENTS.items else { return Ok(theirs) };
        for id in self.agent.documents.items(item_layer)? {
            let Some(kept) = self.agent.documents.read(item_layer, Some(&id))? else { continue };
            let path = kept.value.get("archive_path").and_then(Value::as_str);
            let Some(path) = path.filter(|path| !is_raw(path)) else { continue };
            let named = kept.value.get("referenced_by").and_then(Value::as_array);
            let mut named = named.into_iter().flatten().filter_map(Value::as_str).peekable();
            let goes = |id: &str| targets.records.contains_key(&id.to_ascii_lowercase());
            match named.peek().is_some() && named.all(goes) {
                true => theirs.insert(path.to_owned()),
                false => of_others.insert(path.to_owned()),
            };
        }
        Ok(&theirs - &of_others)
    }

    /// Attachments whose files go are descriptions from then on.
    pub(super) fn detached(&self, plan: &mut Plan) -> Result<()> {
        let Some((item_layer, _)) = ATTACHMENTS.items else { return Ok(()) };
        let now = clamped(self.agent.session.now());
        for id in self.agent.documents.items(item_layer)? {
            let Some(kept) = self.agent.documents.read(item_layer, Some(&id))? else { continue };
            let path = kept.value.get("archive_path").and_then(Value::as_str);
            if path.is_some_and(|path| plan.files.contains(path)) {
                let mut value = kept.value;
                json::set(&mut value, "archive_path", Value::Null);
                let (of, layer) = ((self.agent.id.as_str(), now), (ATTACHMENTS, item_layer));
                plan.attachments.push(kept_document(of, layer, Some(id), value));
            }
        }
        Ok(())
    }

    /// Asks whether the lists and documents of a plan may change.
    pub(super) fn check_plan(&self, plan: &Plan, report: &mut PurgeReport) -> Result<()> {
        let mut refusals = Vec::new();
        if !plan.sealed.is_empty() {
            refusals.extend(self.agent.sealed()?.refusal()?);
        }
        if !plan.files.is_empty() && !self.options.keep_raw {
            refusals.extend(self.agent.files()?.refusal()?);
        }
        for document in &plan.attachments {
            refusals.extend(self.agent.documents.refusal(document)?);
        }
        let Some(refused) = refusals.into_iter().next() else { return Ok(()) };
        let layer = refused.layer;
        if self.options.dry_run {
            report.documents_kept.push(layer.to_owned());
            return Ok(());
        }
        Err(self.agent.documents.refused(refused).in_entry(layer))
    }

    /// Remembers that all of the agent goes, before it does.
    pub(super) fn remember_all(&self, targets: &Targets) -> Result<()> {
        self.agent.set_all_purged(true)?;
        self.remember(targets, &Plan::default())
    }

    /// Remembers what goes, before it does: the log says so, and no import brings it back.
    pub(super) fn remember(&self, targets: &Targets, plan: &Plan) -> Result<()> {
        let rows = &self.agent.rows;
        let sequence = self.agent.sequence()?.saturating_add(1);
        let files = self.agent.files()?;
        let mut entries = Vec::new();
        let mut changes = Vec::new();
        for id in targets.records.keys() {
            entries.push(LogEntry::plain(Change::Purged, id));
            changes.push(rows.put(tables::PURGED, id.as_str(), &true, Owner::Store)?);
        }
        for name in plan.files.iter().filter(|_| !self.options.keep_raw) {
            entries.push(LogEntry::plain(Change::File, name));
            if let Some(entry) = files.get(name) {
                let key = entry.sha256.as_str();
                changes.push(rows.put(tables::PURGED_FILES, key, &true, Owner::Store)?);
            }
        }
        if !targets.asked_for.is_empty() && !targets.documents.is_empty() {
            entries.push(LogEntry::plain(Change::Layer, PRINCIPALS.name));
            for id in targets.asked_for.iter().map(|id| id.to_ascii_lowercase()) {
                changes.push(rows.put(tables::PURGED, id.as_str(), &true, Owner::Store)?);
            }
        }
        if !plan.attachments.is_empty() {
            entries.push(LogEntry::plain(Change::Layer, ATTACHMENTS.name));
        }
        let mut changes = changes.chunks(BATCH);
        for (part, entries) in (0..).zip(in_parts(&entries)) {
            let mut rows = self.agent.log_changes((sequence, part), entries)?.to_vec();
            rows.extend(changes.next().into_iter().flatten().cloned());
            self.agent.rows.write(rows)?;
        }
        changes.try_for_each(|rows| self.agent.rows.write(rows.to_vec()))
    }

    /// Writes the partitions that are kept anew, without the lines of these records.
    pub(super) fn purge_sealed(&self, targets: &Targets, plan: &Plan) -> Result<()> {
        let mut sealed = self.agent.sealed()?;
        let mut rows = Vec::new();
        for label in &plan.sealed {
            let Some(entry) = sealed.get(label) else { continue };
            let goes = |id: &str| targets.records.contains_key(id);
            let left = without_lines(sealed.reader(entry)?, goes)?;
            if left.ids.is_empty() {
                sealed.remove(label);
                rows.push(self.agent.rows.remove(tables::SEALED, label.as_str()));
                continue;
            }
            sealed.put(label, left.file)?;
            let file = sealed.get(label).map(|kept| kept.sha256.clone()).unwrap_or_default();
            let row = SealedRow::of(self.agent, file, &left.ids)?;
            rows.push(self.agent.rows.put(tables::SEALED, label.as_str(), &row, Owner::Store)?);
        }
        sealed.commit(clamped(self.agent.session.now()), &[&self.agent.files()?])?;
        self.agent.rows.write(rows)
    }

    /// Drops files that have copies of what goes.
    pub(super) fn purge_files(&self, plan: Plan) -> Result<()> {
        if self.options.keep_raw || plan.files.is_empty() {
            return Ok(());
        }
        self.agent.documents.write(plan.attachments)?;
        let mut files = self.agent.files()?;
        for name in &plan.files {
            files.remove(name);
        }
        let now = clamped(self.agent.session.now());
        files.commit(now, &[&self.agent.sealed()?]).map(drop)
    }
}
