//! Reads in the audit log, where the rules of the store want them there: who read which grains, noted
//! when they are given out and written with the next commit.

use grainstore_cal::{Answer, Slot};
use grainstore_format::{ContentAddress, EpochMs};
use redb::WriteTransaction;

use crate::audit::{AuditRecord, Chain, Operation};
use crate::error::{Error, Result, guarded};
use crate::preset::{Noted, Refusal};
use crate::session::{Session, Stored};
use crate::writer::{Request, Writer, append_audit};

/// Grains that the entry of a read names.
const MAX_NAMED: usize = 64;

impl Session {
    /// Notes that these grains were given out, if that is to be in the audit log. One entry names 64 of
    /// them; more of one answer have further entries.
    ///
    /// # Errors
    /// `ERR_IO` where nothing can be written any more.
    pub(crate) fn note_read(&self, given: impl IntoIterator<Item = ContentAddress>) -> Result<()> {
        if !self.store().inner().regime().audits_reads() {
            return Ok(());
        }
        let given: Vec<_> = given.into_iter().collect();
        given.chunks(MAX_NAMED).try_for_each(|given| self.note(Operation::Read, given.to_vec()))
    }

    /// The same grains, whose reading is noted.
    ///
    /// # Errors
    /// As [`Session::note_read`].
    pub(crate) fn noted(&self, given: Vec<Stored>) -> Result<Vec<Stored>> {
        self.note_read(given.iter().map(|stored| stored.address))?;
        Ok(given)
    }

    /// Notes an answer of CAL: the grains it gives as results. Of a context that was assembled, of
    /// counts and of values it is noted that they were asked for.
    ///
    /// # Errors
    /// As [`Session::note_read`].
    pub(crate) fn note_answer(&self, answer: &Answer) -> Result<()> {
        match answer {
            Answer::Grains(grains) => {
                self.note_read(grains.results.iter().map(|row| row.content_address))
            }
            Answer::Coalesced { answer, .. } => self.note_answer(answer),
            Answer::Batch { batch } => batch.0.iter().try_for_each(|(_, slot)| match slot {
                Slot::Answer(answer) => self.note_answer(answer),
                _ => Ok(()),
            }),
            Answer::Count { .. }
            | Answer::Values { .. }
            | Answer::Groups { .. }
            | Answer::Assembly { .. }
            | Answer::Versions { .. }
            | Answer::Diff { .. } => self.note(Operation::Read, Vec::new()),
            // What tells of no grain, and writes, which have entries of their own.
            _ => Ok(()),
        }
    }

    /// The refusal of a read by a rule of the store, with its entry in the audit log.
    pub(crate) fn refused_read(&self, address: &ContentAddress, refusal: Refusal) -> Error {
        let told = self.store().note(AuditRecord {
            operation: Operation::Read,
            actor: self.options().actor.clone(),
            subjects: vec![*address],
            refused: true,
            refused_by: None,
            rules: vec![refusal.id],
            reason: None,
        });
        told.map_or_else(|error| error, |()| Error::from(refusal))
    }

    /// Notes what was done and writes nothing else, if that is to be in the audit log.
    ///
    /// # Errors
    /// As [`Session::note_read`].
    pub(crate) fn note(&self, operation: Operation, subjects: Vec<ContentAddress>) -> Result<()> {
        let inner = self.store().inner();
        if !inner.regime().audits_reads() {
            return Ok(());
        }
        let actor = self.options().actor.clone();
        let record = AuditRecord { actor, ..AuditRecord::of(operation, subjects) };
        match inner.regime().notes().push(record, inner.clock().now()) {
            Noted::Kept => {}
            // A queue that is full wakes the writer as well.
            Noted::Due => inner.wake(Request::Count),
            Noted::Full => self.write_notes()?,
        }
        Ok(())
    }

    /// Waits until everything that was noted is in the audit log.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub(crate) fn write_notes(&self) -> Result<()> {
        match self.store().inner().regime().notes().are_there() {
            true => self.store().alone(Writer::flush_notes),
            false => Ok(()),
        }
    }
}

impl Writer {
    /// Adds what was noted to a transaction that is committed anyway, behind its own entries.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn ride_notes(
        &self,
        txn: &WriteTransaction,
        chain: &mut Chain,
        now: EpochMs,
    ) -> Result<()> {
        let keeper = self.db.vault().keeper();
        append_audit(txn, chain, &self.regime.notes().take(), now, &|_| Ok(keeper.clone()))
    }

    /// Writes what was noted in a transaction of its own where it is due.
    pub(crate) fn flush_due_notes(&mut self) {
        if self.regime.notes().are_due(self.clock.now()) {
            // Whoever writes next is told: a failed writer refuses.
            let _ = guarded(|| self.flush_notes());
        }
    }

    /// Writes all that was noted. A failure ends writing, as that of any transaction.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub(crate) fn flush_notes(&mut self) -> Result<()> {
        self.ready()?;
        if !self.regime.notes().are_there() {
            return Ok(());
        }
        let (mut chain, now) = (self.chain.clone(), self.clock.now());
        let notes = self.regime.notes().take();
        let keeper = self.db.vault().keeper();
        self.changing(|txn| append_audit(txn, &mut chain, &notes, now, &|_| Ok(keeper.clone())))?;
        self.chain = chain;
        Ok(())
    }
}
