//! What `grain alf` shows of answers, read from their JSON.

use std::collections::BTreeMap;

use grainstore_interop::alf::Issue;
use serde::Deserialize;

use super::SHOWN;
use crate::error::Result;
use crate::output::Output;

/// What is shown of an import, read from its JSON.
#[derive(Deserialize)]
pub(super) struct ShownImport {
    pub(super) agent_id: String,
    pub(super) dry_run: bool,
    pub(super) records: ShownRecords,
    pub(super) layers: BTreeMap<String, ShownLayer>,
    pub(super) sequence: u64,
    pub(super) errors: Vec<Issue>,
    pub(super) error_count: u64,
    pub(super) warning_count: u64,
}

#[derive(Deserialize)]
pub(super) struct ShownRecords {
    pub(super) read: u64,
    pub(super) created: u64,
    pub(super) updated: u64,
    pub(super) deleted: u64,
    pub(super) unchanged: u64,
    pub(super) failed: u64,
}

#[derive(Deserialize)]
pub(super) struct ShownLayer {
    pub(super) created: u64,
    pub(super) replaced: u64,
    pub(super) unchanged: u64,
    pub(super) removed: u64,
}

#[derive(Deserialize)]
pub(super) struct ShownApply {
    pub(super) base_sequence: u64,
    pub(super) new_sequence: u64,
    pub(super) known: bool,
    pub(super) import: ShownImport,
}

#[derive(Deserialize)]
pub(super) struct ShownDelta {
    pub(super) delta: Option<ShownChanges>,
}

#[derive(Deserialize)]
pub(super) struct ShownChanges {
    pub(super) base_sequence: u64,
    pub(super) new_sequence: u64,
    pub(super) created: u64,
    pub(super) updated: u64,
    pub(super) deleted: u64,
}

/// Prints what came of an import.
pub(super) fn tell_import(report: &ShownImport, output: &mut Output<'_>) -> Result<()> {
    let would = if report.dry_run { "nothing written; would be: " } else { "" };
    let records = &report.records;
    output.line(&format!(
        "{would}{} records: {} created, {} updated, {} deleted, {} unchanged, {} failed; agent {}, sequence {}",
        records.read,
        records.created,
        records.updated,
        records.deleted,
        records.unchanged,
        records.failed,
        report.agent_id,
        report.sequence
    ))?;
    for (layer, counts) in &report.layers {
        output.line(&format!(
            "  {layer}: {} created, {} replaced, {} unchanged, {} removed",
            counts.created, counts.replaced, counts.unchanged, counts.removed
        ))?;
    }
    for issue in report.errors.iter().take(SHOWN) {
        output.line(&format!("  error: {}: {}", issue.path, issue.message))?;
    }
    if report.error_count > SHOWN as u64 {
        output.line(&format!("  {} errors in all; --json lists more", report.error_count))?;
    }
    match report.warning_count {
        0 => Ok(()),
        count => output.line(&format!("  {count} warnings; --json lists them")),
    }
}
