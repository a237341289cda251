//! Reads in the audit log, where the rules of the store want them there: who read which grains, noted
//! when they are given out and written with the next commit.

use std::sync::Arc;

use grainstore_cal::Answer;
use grainstore_format::{ContentAddress, Envelope, EpochMs};
use redb::WriteTransaction;

use crate::base::error::{Error, ErrorKind, Result, guarded};
use crate::base::pending::Pending;
use crate::handle::session::{Session, Stored};
use crate::read::calls::{Errand, results_of, told_by};
use crate::rules::policy::Rule;
use crate::rules::preset::{Noted, Refusal};
use crate::state::audit::{AuditRecord, Chain, Operation};
use crate::write::writer::{Request, Write, Writer, append_audit};

/// Grains that the entry of a read names.
const MAX_NAMED: usize = 64;

/// Why a read is refused that cannot be noted.
const UNNOTED: &str = "the rules of this store want reads noted, and it was opened to be read";

/// What is refused before it gets to the writer.
#[derive(Debug)]
pub(crate) struct Unsent {
    pub(crate) error: Error,
    /// What the audit log is to say of it.
    entry: Option<Box<AuditRecord>>,
}

impl Unsent {
    /// The same, of the grain at this place of a batch.
    pub(crate) fn in_batch(self, at: usize) -> Self {
        Self { error: self.error.in_batch(at), ..self }
    }

    /// The same, by the key that a signature was said to be by.
    pub(crate) fn by(self, claimed: Option<String>) -> Self {
        let entry = self.entry.map(|entry| Box::new(AuditRecord { claimed, ..*entry }));
        Self { entry, ..self }
    }
}

impl From<Error> for Unsent {
    fn from(error: Error) -> Self {
        Self { error, entry: None }
    }
}

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

    /// Notes an answer of CAL with this many grains. The first entry tells of the call.
    ///
    /// # Errors
    /// As [`Session::note_read`].
    pub(crate) fn note_answer(&self, answer: &Answer, grains: u64) -> Result<()> {
        let Some(errand) = self.errand() else { return Ok(()) };
        let mut given = Vec::new();
        let operation = match told_by(answer, &mut given) {
            true => Operation::Read,
            false if errand.is_told() => return Ok(()),
            false => Operation::Cal,
        };
        let call = Some(errand.note().over(Some(results_of(answer, grains)), None));
        let (first, more) = given.split_at(given.len().min(MAX_NAMED));
        let record = AuditRecord { call, ..AuditRecord::of(operation, first.to_vec()) };
        self.push_note(record)?;
        let record = |some: &[_]| AuditRecord::of(operation, some.to_vec());
        more.chunks(MAX_NAMED).try_for_each(|some| self.push_note(record(some)))
    }

    /// Notes a call in CAL that was to show what a statement would do.
    ///
    /// # Errors
    /// As [`Session::note_read`].
    pub(crate) fn note_step(&self, errand: &Arc<Errand>) -> Result<()> {
        let call = Some(errand.note().over(None, None));
        self.push_note(AuditRecord { call, ..AuditRecord::of(Operation::Cal, Vec::new()) })
    }

    /// Notes a call in CAL that ended with this code when some of so many grains were given out.
    ///
    /// # Errors
    /// As [`Session::note_read`].
    pub(crate) fn note_part(&self, errand: &Arc<Errand>, grains: u64, code: &str) -> Result<()> {
        let call = Some(errand.note().over(Some(grains), Some(code.to_owned())));
        self.push_note(AuditRecord { call, ..AuditRecord::of(Operation::Read, Vec::new()) })
    }

    /// Notes that a call in CAL was refused with this code.
    ///
    /// # Errors
    /// As [`Session::note_read`].
    pub(crate) fn note_refused_call(&self, errand: &Arc<Errand>, code: &str) -> Result<()> {
        let call = Some(errand.note().over(None, Some(code.to_owned())));
        let record = AuditRecord::of(Operation::Cal, Vec::new());
        self.push_note(AuditRecord { call, refused: true, ..record })
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
            ..AuditRecord::of(Operation::Read, Vec::new())
        });
        told.map_or_else(|error| error, |()| Error::from(refusal))
    }

    /// The same error, once the audit log has an entry of what was refused. Where that cannot be written,
    /// the error is why; a store that was opened to be read has no entry of it.
    pub(crate) fn refused(
        &self,
        operation: Operation,
        subjects: Vec<ContentAddress>,
        rule: Rule,
        claimed: Option<String>,
        error: Error,
    ) -> Error {
        let entry = self.refusal(operation, subjects, rule, claimed);
        match self.refuse::<()>(Unsent { error: error.clone(), entry: Some(entry) }).wait() {
            Ok(()) => error,
            Err(told) => told,
        }
    }

    /// The entry of what is refused.
    fn refusal(
        &self,
        operation: Operation,
        subjects: Vec<ContentAddress>,
        rule: Rule,
        claimed: Option<String>,
    ) -> Box<AuditRecord> {
        let record = self.author().record(operation, subjects);
        Box::new(AuditRecord { refused: true, rules: vec![rule.row().name], claimed, ..record })
    }

    /// The answer to what does not get as far as the writer. Nobody waits here for its entry in the
    /// audit log: the writer makes it in its turn, and answers.
    pub(crate) fn refuse<T: Send + 'static>(&self, unsent: Unsent) -> Pending<T> {
        let Unsent { error, entry } = unsent;
        let Some(entry) = entry.filter(|_| !self.store().is_read_only()) else {
            return Pending::refused(error);
        };
        let (reply, pending) = Pending::new();
        // Nobody may be waiting any more.
        let reply = Box::new(move |told| drop(reply.send(Err(told))));
        match self.store().inner().send(Request::Write(Write::Refused { entry, error, reply })) {
            Ok(()) => pending,
            Err(error) => Pending::refused(error),
        }
    }

    /// What is refused with this error, and the entry that is due where that is for the signature or for
    /// lying outside the session.
    pub(crate) fn unsent(
        &self,
        operation: Operation,
        old: Option<&ContentAddress>,
        signed: Option<&[u8]>,
        error: Error,
    ) -> Unsent {
        let signature = ErrorKind::Signature;
        let rule = match error.kind() {
            kind if kind == signature => Rule::InvalidSignature,
            ErrorKind::Access => Rule::OutsideSession,
            _ => return error.into(),
        };
        let envelope = signed.and_then(|bytes| Envelope::parse(bytes.to_vec()).ok());
        let kid = envelope.as_ref().and_then(Envelope::kid);
        let new = envelope.map(|envelope| envelope.address());
        let subjects = old.copied().into_iter().chain(new).collect();
        Unsent { entry: Some(self.refusal(operation, subjects, rule, kid)), error }
    }

    /// Notes what was done and writes nothing else, if that is to be in the audit log.
    ///
    /// # Errors
    /// As [`Session::note_read`].
    pub(crate) fn note(&self, operation: Operation, subjects: Vec<ContentAddress>) -> Result<()> {
        match self.store().inner().regime().audits_reads() {
            true => self.push_note(AuditRecord::of(operation, subjects)),
            false => Ok(()),
        }
    }

    /// Notes what this session's actor did, or was refused.
    fn push_note(&self, record: AuditRecord) -> Result<()> {
        let inner = self.store().inner();
        if self.store().is_read_only() {
            return match inner.regime().audits_reads() {
                true => Err(Error::new(ErrorKind::ReadOnly, UNNOTED)),
                false => Ok(()),
            };
        }
        let record = AuditRecord { actor: self.options().actor.clone(), ..record };
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
        notes: &[AuditRecord],
        now: EpochMs,
    ) -> Result<()> {
        let keeper = self.db.vault().keeper();
        append_audit(txn, chain, notes, now, &|_| Ok(keeper.clone()))
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
        let notes = self.refusals.fold(self.regime.notes().take(), now);
        if notes.is_empty() {
            return Ok(());
        }
        let keeper = self.db.vault().keeper();
        self.changing(|txn| append_audit(txn, &mut chain, &notes, now, &|_| Ok(keeper.clone())))?;
        self.chain = chain;
        self.trim_reads(&notes);
        Ok(())
    }

    /// Lets the read log make room, once these entries say so.
    fn trim_reads(&self, told: &[AuditRecord]) {
        let of_reads = |record: &AuditRecord| matches!(record.operation, Operation::ReadLog(_));
        if let Some(reads) = self.reads.as_ref().filter(|_| told.iter().any(of_reads)) {
            reads.trim();
        }
    }

    /// Ends the read log, and notes where it stands.
    pub(crate) fn end_reads(&self) {
        if let Some(note) = self.reads.as_ref().and_then(|reads| reads.close()) {
            let record = AuditRecord::of(Operation::ReadLog(note), Vec::new());
            self.regime.notes().push(record, self.clock.now());
        }
    }
}
