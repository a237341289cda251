//! Auditing of reads, if the rules of the store require it: which actor read which grains, recorded when they
//! are returned and written with the next commit.

use std::sync::Arc;

use grainstore_cal::Answer;
use grainstore_format::{ContentAddress, Envelope};

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::pending::Pending;
use crate::handle::session::{Session, StoredGrain};
use crate::rules::policy::{PolicyRule, RuleResult};
use crate::rules::preset::RuleRefusal;
use crate::state::audit::BufferAction;
use crate::state::audit::{AuditOperation, AuditRecord};
use crate::state::audit::{CallContext, collect_results, result_count};
use crate::write::writer::{Request, WriteRequest, Writer};

/// Maximum number of grains named by one read entry.
const MAX_NAMED: usize = 64;

/// Message for a read that must be audited but cannot be.
const UNNOTED: &str = "the rules of this store want reads noted, and it was opened to be read";

/// A request that was rejected before it reached the writer.
#[derive(Debug)]
pub(crate) struct Rejection {
    pub(crate) error: Error,
    /// The audit entry of the rejection.
    entry: Option<Box<AuditRecord>>,
}

impl Rejection {
    /// Adds the position of the grain in its batch to the error.
    pub(crate) fn in_batch(self, at: usize) -> Self {
        Self { error: self.error.with_batch_index(at), ..self }
    }

    /// Adds the claimed key id of a signature to the entry.
    pub(crate) fn by(self, claimed: Option<String>) -> Self {
        let entry =
            self.entry.map(|entry| Box::new(AuditRecord { claimed_kid: claimed, ..*entry }));
        Self { entry, ..self }
    }
}

impl From<Error> for Rejection {
    fn from(error: Error) -> Self {
        Self { error, entry: None }
    }
}

impl Session {
    /// Records that these grains were returned, if reads are audited. Each entry names up to 64 grains; an
    /// answer with more of them gets several entries.
    ///
    /// # Errors
    /// `ERR_IO` if the store can no longer be written.
    pub(crate) fn audit_read(&self, given: impl IntoIterator<Item = ContentAddress>) -> Result<()> {
        if !self.store().inner().active_rules().audits_reads() {
            return Ok(());
        }
        let given: Vec<_> = given.into_iter().collect();
        given
            .chunks(MAX_NAMED)
            .try_for_each(|given| self.audit_operation(AuditOperation::Read, given.to_vec()))
    }

    /// Records that these grains are returned, and returns them.
    ///
    /// # Errors
    /// The errors of [`Session::audit_read`].
    pub(crate) fn audited(&self, given: Vec<StoredGrain>) -> Result<Vec<StoredGrain>> {
        self.audit_read(given.iter().map(|stored| stored.address))?;
        Ok(given)
    }

    /// Records a CAL answer with this many grains. The first entry describes the call.
    ///
    /// # Errors
    /// The errors of [`Session::audit_read`].
    pub(crate) fn audit_answer(&self, answer: &Answer, grains: u64) -> Result<()> {
        let Some(errand) = self.call_context() else { return Ok(()) };
        let mut given = Vec::new();
        let operation = match collect_results(answer, &mut given) {
            true => AuditOperation::Read,
            false if errand.is_audited() => return Ok(()),
            false => AuditOperation::Cal,
        };
        let call = Some(errand.record().finished(Some(result_count(answer, grains)), None));
        let (first, more) = given.split_at(given.len().min(MAX_NAMED));
        let record = AuditRecord { call, ..AuditRecord::new(operation, first.to_vec()) };
        self.buffer_record(record)?;
        let record = |some: &[_]| AuditRecord::new(operation, some.to_vec());
        more.chunks(MAX_NAMED).try_for_each(|some| self.buffer_record(record(some)))
    }

    /// Records a CAL call that was to show what a statement would do.
    ///
    /// # Errors
    /// The errors of [`Session::audit_read`].
    pub(crate) fn audit_step(&self, errand: &Arc<CallContext>) -> Result<()> {
        let call = Some(errand.record().finished(None, None));
        self.buffer_record(AuditRecord {
            call,
            ..AuditRecord::new(AuditOperation::Cal, Vec::new())
        })
    }

    /// Records a CAL call that ended with this code after some of its grains were returned.
    ///
    /// # Errors
    /// The errors of [`Session::audit_read`].
    pub(crate) fn audit_partial_answer(
        &self,
        errand: &Arc<CallContext>,
        grains: u64,
        code: &str,
    ) -> Result<()> {
        let call = Some(errand.record().finished(Some(grains), Some(code.to_owned())));
        self.buffer_record(AuditRecord {
            call,
            ..AuditRecord::new(AuditOperation::Read, Vec::new())
        })
    }

    /// Records that a CAL call was refused with this code.
    ///
    /// # Errors
    /// The errors of [`Session::audit_read`].
    pub(crate) fn audit_refused_call(&self, errand: &Arc<CallContext>, code: &str) -> Result<()> {
        let call = Some(errand.record().finished(None, Some(code.to_owned())));
        let record = AuditRecord::new(AuditOperation::Cal, Vec::new());
        self.buffer_record(AuditRecord { call, refused: true, ..record })
    }

    /// Returns the error of a read refused by a rule of the store, after recording it.
    pub(crate) fn refused_read(&self, address: &ContentAddress, refusal: RuleRefusal) -> Error {
        let told = self.store().record_audit(AuditRecord {
            operation: AuditOperation::Read,
            actor: self.options().actor.clone(),
            subjects: vec![*address],
            refused: true,
            refused_by: None,
            rules: vec![refusal.id],
            results: vec![RuleResult::Fail],
            code: Some(ErrorKind::Policy.code()),
            ..AuditRecord::new(AuditOperation::Read, Vec::new())
        });
        told.map_or_else(|error| error, |()| Error::from(refusal))
    }

    /// Records a refusal and returns its error, or the error of writing the entry. A read-only store writes
    /// no entry.
    pub(crate) fn refused(
        &self,
        operation: AuditOperation,
        subjects: Vec<ContentAddress>,
        rule: PolicyRule,
        claimed: Option<String>,
        error: Error,
    ) -> Error {
        let entry = self.refusal(operation, subjects, rule, claimed);
        match self.refuse::<()>(Rejection { error: error.clone(), entry: Some(entry) }).wait() {
            Ok(()) => error,
            Err(told) => told,
        }
    }

    /// The audit entry of a refusal.
    fn refusal(
        &self,
        operation: AuditOperation,
        subjects: Vec<ContentAddress>,
        rule: PolicyRule,
        claimed: Option<String>,
    ) -> Box<AuditRecord> {
        let record = self.principal().record(operation, subjects);
        Box::new(AuditRecord {
            refused: true,
            rules: vec![rule.info().name],
            results: vec![RuleResult::Fail],
            claimed_kid: claimed,
            ..record
        })
    }

    /// Answers a request that does not reach the writer. Its audit entry is queued without waiting: the
    /// writer writes it in order and then sends the error.
    pub(crate) fn refuse<T: Send + 'static>(&self, unsent: Rejection) -> Pending<T> {
        let Rejection { error, entry } = unsent;
        let Some(entry) = entry.filter(|_| !self.store().is_read_only()) else {
            return Pending::failed(error);
        };
        let (reply, pending) = Pending::new();
        // The receiver may be gone.
        let reply = Box::new(move |told| drop(reply.send(Err(told))));
        match self.store().inner().send(Request::Write(WriteRequest::Refused {
            entry,
            error,
            reply,
        })) {
            Ok(()) => pending,
            Err(error) => Pending::failed(error),
        }
    }

    /// Builds the rejection for an error, with an audit entry if the cause is the signature or the session's
    /// scope.
    pub(crate) fn unsent(
        &self,
        operation: AuditOperation,
        old: Option<&ContentAddress>,
        signed: Option<&[u8]>,
        error: Error,
    ) -> Rejection {
        let signature = ErrorKind::Signature;
        let corrupt = ErrorKind::Format(grainstore_format::ErrorKind::Corrupt);
        let rule = match error.kind() {
            kind if kind == signature => PolicyRule::InvalidSignature,
            ErrorKind::Access => PolicyRule::OutsideSession,
            // What was to be signed and cannot be read has no signature.
            kind if kind == corrupt && signed.is_some() => PolicyRule::InvalidSignature,
            _ => return error.into(),
        };
        let envelope = signed.and_then(|bytes| Envelope::parse(bytes.to_vec()).ok());
        let kid = envelope.as_ref().and_then(Envelope::kid);
        let new = envelope.map(|envelope| envelope.address());
        let subjects = old.copied().into_iter().chain(new).collect();
        Rejection { entry: Some(self.refusal(operation, subjects, rule, kid)), error }
    }

    /// Records an operation that writes no grain, if reads are audited.
    ///
    /// # Errors
    /// The errors of [`Session::audit_read`].
    pub(crate) fn audit_operation(
        &self,
        operation: AuditOperation,
        subjects: Vec<ContentAddress>,
    ) -> Result<()> {
        match self.store().inner().active_rules().audits_reads() {
            true => self.buffer_record(AuditRecord::new(operation, subjects)),
            false => Ok(()),
        }
    }

    /// Buffers a record under this session's actor.
    fn buffer_record(&self, record: AuditRecord) -> Result<()> {
        let inner = self.store().inner();
        if self.store().is_read_only() {
            return match inner.active_rules().audits_reads() {
                true => Err(Error::new(ErrorKind::ReadOnly, UNNOTED)),
                false => Ok(()),
            };
        }
        let record = AuditRecord { actor: self.options().actor.clone(), ..record };
        match inner.notes().push(record, inner.clock().now()) {
            BufferAction::None => {}
            // A full write queue wakes the writer as well.
            BufferAction::WakeWriter => inner.wake(Request::CountsDue),
            BufferAction::Flush => self.flush_buffered_records()?,
        }
        Ok(())
    }

    /// Waits until all buffered records are in the audit log.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub(crate) fn flush_buffered_records(&self) -> Result<()> {
        match self.store().inner().notes().has_any() {
            true => self.store().run_exclusive(Writer::flush_notes),
            false => Ok(()),
        }
    }
}
