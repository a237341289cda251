//! Verifies the read log, by itself and against its records in the audit log.

use std::path::Path;

use super::Check;
use super::audit::Told;
use super::findings::{Fault, Findings, Place};
use crate::base::error::Result;
use crate::write::reads::examine;

const READS: &str = "reads";

/// Checks the read log in this directory; a store in memory has none.
pub(super) fn check(
    check: &Check<'_>,
    directory: Option<&Path>,
    told: Option<&Told>,
    findings: &mut Findings,
) -> Result<()> {
    let Some(directory) = directory else { return Ok(()) };
    let id = check.view.store_id()?;
    let chain = check.view.chain_before_genesis()?.with_vault(check.view.vault().clone());
    let notes = told.map_or(&[][..], |told| &told.reads);
    let examined = examine(directory, (id, &chain), notes, &mut |entry, detail| {
        let place = entry.map_or(Place::All(READS), |entry| Place::Row(READS, entry));
        findings.add(Fault::Reads, place, detail);
    })?;
    findings.checked.reads = examined.entries;
    findings.checked.lost_reads = examined.lost;
    Ok(())
}
