//! Queued audit records on the writer thread: added to a commit, or written in one of their own.

use super::Writer;
use crate::base::error::{Result, catch_storage_panic};
use crate::disk::truth_transaction::RowWriter;
use crate::state::audit::{AuditHashChain, AuditOperation, AuditRecord, append_audit};
use grainstore_format::EpochMs;

impl Writer {
    /// Appends buffered records to a transaction that is committed anyway, after its own entries.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn piggyback_notes(
        &self,
        rows: &mut RowWriter<'_>,
        chain: &mut AuditHashChain,
        notes: &[AuditRecord],
        now: EpochMs,
    ) -> Result<()> {
        let encryption_key = self.db.vault().store_key();
        append_audit(rows, chain, notes, now, &|_| Ok(encryption_key.clone()))
    }

    /// Writes the buffered records in a transaction of their own if they are due.
    pub(crate) fn flush_due_notes(&mut self) {
        if self.notes.is_due(self.clock.now()) {
            // The next write reports the error: a failed writer refuses.
            let _ = catch_storage_panic(|| self.flush_notes());
        }
    }

    /// Writes all buffered records. A failure stops the writer, as in any transaction.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub(crate) fn flush_notes(&mut self) -> Result<()> {
        self.check_running()?;
        if !self.notes.has_any() {
            return Ok(());
        }
        let (mut chain, now) = (self.chain.clone(), self.clock.now());
        let notes = self.refusals.aggregate(self.notes.take(), now);
        if notes.is_empty() {
            return Ok(());
        }
        let encryption_key = self.db.vault().store_key();
        self.commit_change(|rows| {
            append_audit(rows, &mut chain, &notes, now, &|_| Ok(encryption_key.clone()))
        })?;
        self.chain = chain;
        self.trim_read_log(&notes);
        Ok(())
    }

    /// Lets the read log delete old files once these entries have recorded it.
    fn trim_read_log(&self, told: &[AuditRecord]) {
        let of_reads =
            |record: &AuditRecord| matches!(record.operation, AuditOperation::ReadLog(_));
        if let Some(reads) = self.read_log.as_ref().filter(|_| told.iter().any(of_reads)) {
            reads.trim();
        }
    }

    /// Ends the read log, and notes where it stands.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`: reads that were queued are not recorded then.
    pub(crate) fn close_read_log(&self) -> Result<()> {
        let Some(reads) = &self.read_log else { return Ok(()) };
        if let Some(note) = reads.close()? {
            let record = AuditRecord::new(AuditOperation::ReadLog(note), Vec::new());
            self.notes.push(record, self.clock.now());
        }
        Ok(())
    }
}
