//! Purge of a store: records in all their versions, with everything that is kept of them; or all of an agent.
//!
//! First everything is found and asked for, then the ids are remembered, and only then anything goes: a purge that is
//! refused changes nothing, and one that is interrupted is completed by the same purge.

use std::collections::BTreeSet;

use grainstore::{ContentAddress, EpochMs, EraseOptions, ErrorKind, Owner, Session};

use super::lines::without_lines;
use super::report::{PurgeOptions, PurgeReport, PurgeScope, check_audit_file};
use super::sought::Sought;
use super::targets::{Target, Targets};
use super::walk::{Sort, each_grain, record_in, sort_of};
use crate::alf::agent::{self, Agent, Change};
use crate::alf::export::{chosen, documents_of};
use crate::alf::import::{SealedRow, hash_of_ids, kept_document};
use crate::alf::log::LogEntry;
use crate::alf::names::{ATTACHMENTS, PARTITIONS_FOLDER, tables};
use crate::alf::partition::{Granularity, Span};
use crate::error::{Error, Result};
use crate::json::{self, Value};
use crate::kept::{Document, clamped};
use crate::monitor::Monitor;
use crate::transfer;

/// Rows that are written together.
const BATCH: usize = 1_000;

/// Purges records of an agent of a store, or all of the agent.
///
/// For each record every version goes, changes of it, its vectors, its rows, its lines in sealed partitions that are
/// kept, and files with copies of any version. Links to it stay. Its id is remembered, and the hashes of the files: an
/// import or a delta does not bring them back. What a withdrawn consent hides goes too.
///
/// See the [module](crate::alf) for an example.
///
/// # Errors
/// `ERR_INVALIDATION_DENIED` if a record is under hold, or a list that would change, `ERR_POLICY` if one has to be
/// retained: nothing is purged then, unless [`PurgeOptions::partial`] asks for the other records. `ERR_NOT_FOUND` for an
/// agent that the store does not have; `ERR_SCHEMA` unless who asked is a UUID; `ERR_ACCESS` unless the session is the
/// operator's; `ERR_CONFLICT` for an audit file within a store; `ERR_TIMEOUT`, `ERR_IO`.
pub fn purge(
    session: &Session,
    scope: &PurgeScope,
    options: &PurgeOptions,
    monitor: &Monitor<'_>,
) -> Result<PurgeReport> {
    let _writing = agent::exclusive();
    let agent = chosen(session, options.agent_id.as_deref())?;
    let mut report = PurgeReport::begin(&agent.id, options, session.now())?;
    check_audit_file(options.audit_file.as_deref(), options)?;
    let reason = options.told(&report.purge_id);
    let mut targets = Targets::of(&agent, scope, monitor)?;
    let purge = StorePurge { agent: &agent, options, reason, monitor };
    purge.check(&mut targets, &mut report)?;
    match scope {
        PurgeScope::Agent => {
            report.scope = "full_agent";
            purge.all(&mut targets, &mut report)?;
            report.record_ids = None;
        }
        _ => purge.records(&targets, &mut report)?,
    }
    if !options.dry_run {
        transfer::purged(session, "alf", report.records_removed)?;
    }
    report.finish(session.now(), options.audit_file.as_deref())
}

pub(super) struct StorePurge<'a, 's> {
    pub(super) agent: &'a Agent<'s>,
    pub(super) options: &'a PurgeOptions,
    pub(super) reason: String,
    pub(super) monitor: &'a Monitor<'a>,
}

/// What changes beside the records.
#[derive(Debug, Default)]
struct Plan {
    /// Labels of partitions that are kept, and have lines of theirs.
    sealed: Vec<String>,
    /// Files that go.
    files: BTreeSet<String>,
    /// Attachments whose files go.
    attachments: Vec<Document>,
}

impl StorePurge<'_, '_> {
    /// Asks whether everything may go. What may not is taken off, or is the end of it; so is what is not there.
    fn check(&self, targets: &mut Targets, report: &mut PurgeReport) -> Result<()> {
        let mut kept = Vec::new();
        for (id, Target { grains, is_known, .. }) in &mut targets.records {
            match self.may_go(id, grains)? {
                true => *is_known |= !grains.is_empty(),
                false => kept.push(id.clone()),
            }
        }
        for (id, grains) in &mut targets.former {
            if !self.may_go(id, grains)? {
                kept.push(id.clone());
            }
        }
        for id in kept {
            targets.records.remove(&id);
            targets.former.remove(&id);
            report.records_kept.push(id);
        }
        Ok(())
    }

    /// Asks whether grains may be erased, and leaves those that are there.
    pub(super) fn may_go(&self, name: &str, grains: &mut Vec<ContentAddress>) -> Result<bool> {
        let session = self.agent.session;
        let dry = EraseOptions::new().dry_run(true);
        let mut there = Vec::with_capacity(grains.len());
        for grain in grains.iter() {
            let tried = match session.erase(grain, &self.reason, &dry) {
                Err(error) if is_gone(&error) => continue,
                tried => tried?,
            };
            if tried.refusal.is_some() {
                if !self.options.partial && !self.options.dry_run {
                    // Asked in earnest, the store writes the refusal down.
                    session
                        .erase(grain, &self.reason, &EraseOptions::new())
                        .map_err(|error| Error::from(error).in_entry(name))?;
                }
                return Ok(false);
            }
            there.push(*grain);
        }
        *grains = there;
        Ok(true)
    }

    /// Purges records.
    fn records(&self, targets: &Targets, report: &mut PurgeReport) -> Result<()> {
        let sought = self.sought(targets, report)?;
        let plan = self.plan(targets, &sought)?;
        let known = targets.records.values().filter(|target| target.is_known);
        report.records_removed = known.clone().count() as u64;
        report.partitions_affected.extend(known.filter_map(|target| target.created_ms).map(file_of));
        report.raw_files_affected = plan.files.iter().cloned().collect();
        report.record_ids = Some(targets.records.keys().cloned().collect());
        self.check_plan(&plan, report)?;
        if !self.options.dry_run {
            self.remember(targets, &plan)?;
            self.purge_sealed(targets, &plan)?;
            self.purge_files(plan)?;
            self.erase(targets)?;
        }
        self.find_copies(&sought, targets, report)
    }

    /// What the records said, in all their versions.
    fn sought(&self, targets: &Targets, report: &mut PurgeReport) -> Result<Sought> {
        let mut sought = Sought::default();
        for (id, target) in &targets.records {
            if target.is_known {
                sought.add_id(id);
            }
            if let Ok(Some(row)) = self.agent.row(id)
                && let Some(view) = &row.native
            {
                sought.add(view);
            }
        }
        let whole = targets.records.iter().map(|(id, target)| (id, &target.grains));
        for (id, grains) in whole.chain(&targets.former) {
            for grain in grains {
                match record_in(self.agent, grain)? {
                    Some(record) => sought.add(&record),
                    None => report.records_unread.push(id.clone()),
                }
            }
        }
        Ok(sought)
    }

    /// Finds what changes beside the records.
    fn plan(&self, targets: &Targets, sought: &Sought) -> Result<Plan> {
        let mut plan = Plan::default();
        let sealed = self.agent.sealed()?;
        for (label, entry) in sealed.list() {
            let goes = |id: &str| targets.records.contains_key(id);
            if without_lines(sealed.reader(entry)?, goes)?.removed > 0 {
                plan.sealed.push(label.clone());
            }
        }
        let files = self.agent.files()?;
        let names: Vec<&str> = files.list().keys().map(String::as_str).collect();
        plan.files = sought.copies(&names, |name| {
            files.get(name).map(|entry| files.reader(entry)).transpose()
        })?;
        if !self.options.keep_raw {
            self.detached(&mut plan)?;
        }
        Ok(plan)
    }

    /// Attachments whose files go are descriptions from then on.
    fn detached(&self, plan: &mut Plan) -> Result<()> {
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
    fn check_plan(&self, plan: &Plan, report: &mut PurgeReport) -> Result<()> {
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
    fn remember(&self, targets: &Targets, plan: &Plan) -> Result<()> {
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
        if !plan.attachments.is_empty() {
            entries.push(LogEntry::plain(Change::Layer, ATTACHMENTS.name));
        }
        let mut changes = changes.chunks(BATCH);
        for (part, entries) in (0..).zip(entries.chunks(BATCH)) {
            let mut rows = self.agent.log_changes((sequence, part), entries)?.to_vec();
            rows.extend(changes.next().into_iter().flatten().cloned());
            self.agent.rows.write(rows)?;
        }
        changes.try_for_each(|rows| self.agent.rows.write(rows.to_vec()))
    }

    /// Writes the partitions that are kept anew, without the lines of these records.
    fn purge_sealed(&self, targets: &Targets, plan: &Plan) -> Result<()> {
        let mut sealed = self.agent.sealed()?;
        let mut rows = Vec::new();
        for label in &plan.sealed {
            let Some(entry) = sealed.get(label) else { continue };
            let goes = |id: &str| targets.records.contains_key(id);
            let left = without_lines(sealed.reader(entry)?, goes)?;
            let mut ids = left.ids;
            if ids.is_empty() {
                sealed.remove(label);
                rows.push(self.agent.rows.remove(tables::SEALED, label.as_str()));
                continue;
            }
            sealed.put(label, left.file)?;
            let file = sealed.get(label).map(|kept| kept.sha256.clone()).unwrap_or_default();
            let row = SealedRow { file, ids: hash_of_ids(&mut ids) };
            rows.push(self.agent.rows.put(tables::SEALED, label.as_str(), &row, Owner::Store)?);
        }
        sealed.commit(clamped(self.agent.session.now()), &[&self.agent.files()?])?;
        self.agent.rows.write(rows)
    }

    /// Drops files that have copies of what goes.
    fn purge_files(&self, plan: Plan) -> Result<()> {
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

    /// Erases the grains, and takes them out of the rows and the log.
    pub(super) fn erase(&self, targets: &Targets) -> Result<()> {
        let records = targets.records.iter().map(|(id, target)| (id, &target.grains));
        let total = targets.records.len().saturating_add(targets.former.len()) as u64;
        let mut gone = BTreeSet::new();
        let mut rows = Vec::new();
        for (done, (id, grains)) in (0_u64..).zip(records.chain(&targets.former)) {
            self.monitor.step(done, total)?;
            self.erase_grains(grains)?;
            gone.extend(grains);
            if targets.records.contains_key(id) {
                // It went with the grain; of a record whose grain is lost it is left.
                rows.push(self.agent.rows.remove(tables::RECORDS, id.as_str()));
            }
        }
        rows.chunks(BATCH).try_for_each(|rows| self.agent.rows.write(rows.to_vec()))?;
        self.agent.forget_stored(&gone)
    }

    pub(super) fn erase_grains(&self, grains: &[ContentAddress]) -> Result<()> {
        for grain in grains {
            match self.agent.session.erase(grain, &self.reason, &EraseOptions::new()) {
                Err(error) if !is_gone(&error) => return Err(error.into()),
                _ => {}
            }
        }
        Ok(())
    }

    /// Finds other records and documents that have the content of one that went.
    fn find_copies(
        &self,
        sought: &Sought,
        targets: &Targets,
        report: &mut PurgeReport,
    ) -> Result<()> {
        let (mut records, mut documents) = (BTreeSet::new(), BTreeSet::new());
        let whole = documents_of(self.agent)?;
        sought.each_finder(|finder| {
            for (layer, document) in &whole {
                if finder.is_in_text(&json::line(document)) {
                    documents.insert(layer.name.to_owned());
                }
            }
            each_grain(self.agent.session, &targets.users, self.monitor, |address, grain| {
                let (Sort::Record(id) | Sort::Native(id)) = sort_of(self.agent, address, grain)
                else {
                    return Ok(());
                };
                if targets.records.contains_key(&id) || records.contains(&id) {
                    return Ok(());
                }
                let record = record_in(self.agent, address)?;
                let content = record.as_ref().and_then(|record| record.get("content")?.as_str());
                if content.is_some_and(|content| finder.is_in_text(content)) {
                    records.insert(id);
                }
                Ok(())
            })
        })?;
        report.records_with_copies.extend(records);
        report.documents_with_copies.extend(documents);
        Ok(())
    }
}

/// Returns `true` if a grain that is to be erased is not there any more.
fn is_gone(error: &grainstore::Error) -> bool {
    matches!(error.kind(), ErrorKind::Erased | ErrorKind::NotFound)
}

/// The partition that a record is written into by default.
pub(super) fn file_of(created_ms: i64) -> String {
    let span = Span::of(EpochMs::new(created_ms), Granularity::Quarter);
    format!("{PARTITIONS_FOLDER}{}.jsonl", span.label())
}
