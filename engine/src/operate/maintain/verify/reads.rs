//! Verifies the read log, by itself and against its records in the audit log.

use std::path::Path;

use super::VerifyContext;
use super::audit::AuditedFacts;
use super::problems::{ProblemCollector, ProblemKind, ProblemLocation};
use crate::base::error::Result;
use crate::disk::position::Position;
use crate::write::read_log::verify;

const READS: &str = "reads";

/// Checks the read log in this directory; a store in memory has none.
pub(super) fn check(
    check: &VerifyContext<'_>,
    directory: Option<&Path>,
    told: Option<&AuditedFacts>,
    findings: &mut ProblemCollector,
) -> Result<()> {
    let Some(directory) = directory else { return Ok(()) };
    let id = check.view.store_id()?;
    let chain = check.view.chain_before_genesis()?.with_vault(check.view.vault().clone());
    // A copy of a store with a journal has reads of its own, and the audit log is that of all copies.
    let is_copy = Position::read_in(check.view.transaction())?.is_some();
    let notes = told.filter(|_| !is_copy).map_or(&[][..], |told| &told.reads);
    let examined = verify(directory, (id, &chain), notes, &mut |entry, detail| {
        let place =
            entry.map_or(ProblemLocation::All(READS), |entry| ProblemLocation::Row(READS, entry));
        findings.add(ProblemKind::Reads, place, detail);
    })?;
    findings.checked.reads = examined.entries;
    findings.checked.lost_reads = examined.lost;
    Ok(())
}
