//! Purge of all that a store keeps of an agent: its records, its documents in all versions, its files.

use std::collections::BTreeSet;

use grainstore::ContentAddress;

use super::plan::BATCH;
use super::report::PurgeReport;
use super::store::{StorePurge, file_of};
use super::targets::Targets;
use crate::alf::names::{FILES_LAYER, SEALED_LAYER, tables};
use crate::error::Result;
use crate::json::Value;
use crate::kept::ANCHOR_LAYER;

/// The lists of files, and what their bytes belong to: one is nothing without the others.
const FILE_LAYERS: [&str; 3] = [FILES_LAYER, SEALED_LAYER, ANCHOR_LAYER];

impl StorePurge<'_, '_> {
    /// Purges everything that is kept of the agent.
    pub(super) fn all(&self, targets: &mut Targets, report: &mut PurgeReport) -> Result<()> {
        self.check_documents(targets, report)?;
        let known = targets.records.values().filter(|target| target.is_known);
        report.records_removed = known.clone().count() as u64;
        report.partitions_affected =
            known.filter_map(|target| target.created_ms).map(file_of).collect();
        let keeps_files = report.documents_kept.iter().any(|name| is_of_files(name));
        if !keeps_files {
            report.raw_files_affected = self.agent.files()?.list().keys().cloned().collect();
        }
        if self.options.dry_run {
            return Ok(());
        }
        self.begin(targets, report)?;
        self.remember_all(targets)?;
        self.erase(targets)?;
        let documents: Vec<ContentAddress> = targets.documents.keys().copied().collect();
        self.erase_grains(&documents)?;
        let is_part = !(report.records_kept.is_empty() && report.documents_kept.is_empty());
        let mut changes = Vec::new();
        let rows = &self.agent.rows;
        let tables: &[u8] = match is_part {
            // The part that is kept has its numbers still.
            true => &[tables::PEERS, tables::PARTIAL],
            false => &[tables::NUMBERS, tables::PEERS, tables::PARTIAL],
        };
        let sealed: &[u8] = if keeps_files { &[] } else { &[tables::SEALED] };
        for table in tables.iter().chain(sealed) {
            rows.each(*table, |key, _: Value| {
                changes.push(rows.remove(*table, key));
                Ok(())
            })?;
        }
        if !is_part {
            // That all of it was purged is remembered.
            for table in [tables::PAST, tables::BEGUN, tables::REFUSED_CHANGES] {
                rows.each(table, |key, _: Value| {
                    changes.push(rows.remove(table, key));
                    Ok(())
                })?;
            }
            changes.extend(self.agent.documents.all_forgotten()?);
            rows.each_number(tables::LOG, 0, |key, _: Value| {
                changes.push(rows.remove(tables::LOG, key));
                Ok(())
            })?;
        }
        changes.chunks(BATCH).try_for_each(|changes| rows.write(changes.to_vec()))?;
        match is_part {
            true => Ok(()),
            false => self.agent.dismiss(),
        }
    }

    /// Asks whether the documents may go. Those that may not are taken off, or are the end of it.
    pub(super) fn check_documents(
        &self,
        targets: &mut Targets,
        report: &mut PurgeReport,
    ) -> Result<()> {
        let (mut kept, mut names) = (BTreeSet::new(), BTreeSet::new());
        for (address, name) in &targets.documents {
            if !self.may_go(name, &mut vec![*address])? {
                kept.insert(*address);
                names.insert(name.clone());
            }
        }
        if names.iter().any(|name| is_of_files(name)) {
            let files = targets.documents.iter().filter(|(_, name)| is_of_files(name));
            for (address, name) in files {
                kept.insert(*address);
                names.insert(name.clone());
            }
        }
        targets.documents.retain(|address, _| !kept.contains(address));
        report.documents_kept.extend(names);
        Ok(())
    }
}

fn is_of_files(name: &str) -> bool {
    FILE_LAYERS.contains(&name)
}
