//! Queued audit records on the writer thread: added to a commit, or written in one of their own.

use redb::WriteTransaction;

use super::Writer;
use crate::base::error::{Result, guarded};
use crate::state::audit::{AuditHashChain, AuditOperation, AuditRecord, append_audit};
use grainstore_format::EpochMs;

impl Writer {
    /// Appends buffered records to a transaction that is committed anyway, after its own entries.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn ride_notes(
        &self,
        txn: &WriteTransaction,
        chain: &mut AuditHashChain,
        notes: &[AuditRecord],
        now: EpochMs,
    ) -> Result<()> {
        let keeper = self.db.vault().keeper();
        append_audit(txn, chain, notes, now, &|_| Ok(keeper.clone()))
    }

    /// Writes the buffered records in a transaction of their own if they are due.
    pub(crate) fn flush_due_notes(&mut self) {
        if self.notes.are_due(self.clock.now()) {
            // The next write reports the error: a failed writer refuses.
            let _ = guarded(|| self.flush_notes());
        }
    }

    /// Writes all buffered records. A failure stops the writer, as in any transaction.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub(crate) fn flush_notes(&mut self) -> Result<()> {
        self.ready()?;
        if !self.notes.are_there() {
            return Ok(());
        }
        let (mut chain, now) = (self.chain.clone(), self.clock.now());
        let notes = self.refusals.fold(self.notes.take(), now);
        if notes.is_empty() {
            return Ok(());
        }
        let keeper = self.db.vault().keeper();
        self.changing(|txn| append_audit(txn, &mut chain, &notes, now, &|_| Ok(keeper.clone())))?;
        self.chain = chain;
        self.trim_reads(&notes);
        Ok(())
    }

    /// Lets the read log delete old files once these entries have recorded it.
    fn trim_reads(&self, told: &[AuditRecord]) {
        let of_reads =
            |record: &AuditRecord| matches!(record.operation, AuditOperation::ReadLog(_));
        if let Some(reads) = self.reads.as_ref().filter(|_| told.iter().any(of_reads)) {
            reads.trim();
        }
    }

    /// Ends the read log, and notes where it stands.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`: reads that were queued are not recorded then.
    pub(crate) fn end_reads(&self) -> Result<()> {
        let Some(reads) = &self.reads else { return Ok(()) };
        if let Some(note) = reads.close()? {
            let record = AuditRecord::of(AuditOperation::ReadLog(note), Vec::new());
            self.notes.push(record, self.clock.now());
        }
        Ok(())
    }
}
