//! Archives in the audit log: that one came in or went out, in which format, and how much of it.

use grainstore::{Session, TransferKind, TransferSummary};

use crate::error::Result;

/// Tells the audit log that so many items came in.
pub(crate) fn imported(session: &Session, format: &str, items: u64) -> Result<()> {
    record(session, TransferKind::ArchiveImport, format, items)
}

/// Tells the audit log that so many items went out.
pub(crate) fn exported(session: &Session, format: &str, items: u64) -> Result<()> {
    record(session, TransferKind::ArchiveExport, format, items)
}

/// Tells the audit log that so many items were removed for good.
pub(crate) fn purged(session: &Session, format: &str, items: u64) -> Result<()> {
    record(session, TransferKind::ArchivePurge, format, items)
}

/// A store that is open read-only has nowhere to tell it.
fn record(session: &Session, kind: TransferKind, format: &str, items: u64) -> Result<()> {
    if !session.store().is_read_only() {
        session.record_transfer(kind, TransferSummary::new(format, items))?;
    }
    Ok(())
}
