//! Purge of a store: records in all their versions, with everything that is kept of them; or all of an agent.
//!
//! First everything is found and asked for, then the ids are remembered, and only then anything goes: a purge that is
//! refused changes nothing, and one that is interrupted is completed by the same purge.

use std::collections::BTreeSet;

use grainstore::{ContentAddress, EpochMs, EraseOptions, ErrorKind, Session};

use super::begun::Begun;
use super::plan::BATCH;
use super::report::{OF_AGENT, PurgeOptions, PurgeReport, PurgeScope, check_audit_file};
use super::targets::{Target, Targets};
use crate::alf::agent::{self, Agent};
use crate::alf::export::{adopt_successors, chosen};
use crate::alf::names::{PARTITIONS_FOLDER, tables};
use crate::alf::partition::{Granularity, Span};
use crate::error::{Error, Result};
use crate::monitor::Monitor;
use crate::transfer;

/// Purges records of an agent of a store, or all of the agent.
///
/// For each record every version goes, changes of it, its vectors, its rows, its lines in sealed partitions that are
/// kept, and files with copies of any version; with a person what the agent has of them as a principal. Links to it stay. Its id is remembered, and the hashes of the files: an
/// import or a delta does not bring them back. What a withdrawn consent hides goes too.
///
/// See the [module](crate::alf) for an example.
///
/// # Errors
/// `ERR_INVALIDATION_DENIED` if a record is under hold, or a list that would change, `ERR_POLICY` if one has to be
/// retained: nothing is purged then, unless [`PurgeOptions::partial`] asks for the other records. `ERR_NOT_FOUND` for an
/// agent that the store does not have; `ERR_SCHEMA` unless who asked is a UUID; `ERR_ACCESS` unless the session is the
/// operator's; `ERR_CONFLICT` for an audit file within a store, or that is no file; `ERR_TIMEOUT`, `ERR_IO`.
pub fn purge(
    session: &Session,
    scope: &PurgeScope,
    options: &PurgeOptions,
    monitor: &Monitor<'_>,
) -> Result<PurgeReport> {
    let _writing = agent::exclusive();
    let agent = match chosen(session, options.agent_id.as_deref()) {
        Err(error) if error.kind() == ErrorKind::NotFound && *scope == PurgeScope::Agent => {
            return dismissed(session, options)?.ok_or(error);
        }
        agent => agent?,
    };
    let mut report = PurgeReport::begin(&agent.id, options, session.now())?;
    check_audit_file(options.audit_file.as_deref(), options)?;
    let begun = Begun::of(session, &agent.id, scope);
    if let Some(before) = begun.before()?.filter(|_| !options.dry_run) {
        report.goes_on(&before.report);
    }
    let reason = options.told(&report.purge_id);
    if !options.dry_run {
        // What agents wrote in the places of records is a record too.
        adopt_successors(&agent)?;
    }
    let mut targets = Targets::of(&agent, scope, monitor)?;
    let purge = StorePurge { agent: &agent, options, reason, monitor, begun };
    purge.check(&mut targets, &mut report)?;
    match scope {
        PurgeScope::Agent => {
            report.scope = OF_AGENT;
            purge.all(&mut targets, &mut report)?;
            report.record_ids = None;
        }
        _ => purge.records(&mut targets, &mut report)?,
    }
    match options.dry_run {
        true => report.finish(session.now(), None),
        false => told(session, report, options, &purge.begun),
    }
}

/// Tells the logs of a purge that is done.
fn told(
    session: &Session,
    report: PurgeReport,
    options: &PurgeOptions,
    begun: &Begun<'_>,
) -> Result<PurgeReport> {
    transfer::purged(session, "alf", report.records_removed)?;
    let report = report.finish(session.now(), options.audit_file.as_deref())?;
    begun.forget()?;
    Ok(report)
}

/// Completes the purge of an agent of which nothing but the record was left to do; `None` if there is none.
fn dismissed(session: &Session, options: &PurgeOptions) -> Result<Option<PurgeReport>> {
    let Some(begun) = Begun::of_agent(session, options.agent_id.as_deref())? else {
        return Ok(None);
    };
    let Some(before) = begun.before()?.filter(|_| !options.dry_run) else { return Ok(None) };
    check_audit_file(options.audit_file.as_deref(), options)?;
    let report = PurgeReport { record_ids: None, ..before.report };
    told(session, report, options, &begun).map(Some)
}

pub(super) struct StorePurge<'a, 's> {
    pub(super) agent: &'a Agent<'s>,
    pub(super) options: &'a PurgeOptions,
    pub(super) reason: String,
    pub(super) monitor: &'a Monitor<'a>,
    pub(super) begun: Begun<'s>,
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
    fn records(&self, targets: &mut Targets, report: &mut PurgeReport) -> Result<()> {
        self.check_documents(targets, report)?;
        let targets = &*targets;
        let sought = self.sought(targets, report)?;
        let plan = self.plan(targets, &sought)?;
        let known = targets.records.values().filter(|target| target.is_known);
        report.records_removed = known.clone().count() as u64;
        report
            .partitions_affected
            .extend(known.filter_map(|target| target.created_ms).map(file_of));
        report.raw_files_affected = plan.files.iter().cloned().collect();
        report.record_ids = Some(targets.records.keys().cloned().collect());
        report.documents_removed = targets.document_names();
        self.find_copies(&sought, targets, report)?;
        self.check_plan(&plan, report)?;
        if !self.options.dry_run {
            self.begin(targets, report)?;
            self.remember(targets, &plan)?;
            self.purge_sealed(targets, &plan)?;
            self.purge_files(plan)?;
            self.erase(targets)?;
            let documents: Vec<ContentAddress> = targets.documents.keys().copied().collect();
            self.erase_grains(&documents)?;
            let forgotten = targets.document_names().into_iter().filter_map(|name| {
                let (layer, id) = name.split_once('/')?;
                Some(self.agent.documents.forgotten(layer, Some(id)))
            });
            self.agent.rows.write(forgotten.collect())?;
        }
        Ok(())
    }

    /// Keeps what is about to go, with what the same purge took before it crashed.
    pub(super) fn begin(&self, targets: &Targets, report: &mut PurgeReport) -> Result<()> {
        let known = targets.records.iter().filter(|(_, target)| target.is_known);
        let known = known.map(|(id, _)| id.clone()).collect();
        let records = match self.begun.before()? {
            Some(before) => before.join(report, known),
            None => known,
        };
        self.begun.keep(report, records)
    }

    /// Erases the grains, and takes them out of the rows and the log.
    pub(super) fn erase(&self, targets: &Targets) -> Result<()> {
        let records = targets.records.iter().map(|(id, target)| (id, &target.grains));
        let total = targets.records.len().saturating_add(targets.former.len()) as u64;
        let mut gone = BTreeSet::new();
        let mut rows = Vec::new();
        for (done, (id, grains)) in (0_u64..).zip(records.chain(&targets.former)) {
            // What has begun is not cancelled any more.
            if let Some(progress) = self.monitor.progress {
                progress(done, total);
            }
            self.erase_grains(grains)?;
            if targets.former.contains_key(id) {
                gone.extend(grains);
            } else {
                // It went with the grain; of a record whose grain is lost it is left.
                rows.push(self.agent.rows.remove(tables::RECORDS, id.as_str()));
                // That it was purged is remembered, and no hash of what it said.
                rows.push(self.agent.rows.remove(tables::PAST, id.as_str()));
                rows.push(self.agent.rows.remove(tables::BEGUN, id.as_str()));
            }
        }
        rows.chunks(BATCH).try_for_each(|rows| self.agent.rows.write(rows.to_vec()))?;
        self.agent.forget_stored(|id| targets.records.contains_key(id), &gone)
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
