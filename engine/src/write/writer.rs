//! The single writer: it takes all waiting requests as a group, decides them, applies them in one
//! transaction, publishes the new view and only then answers.
//!
//! Callers have validated, encoded and addressed their grains; no expensive work is done here. An
//! acknowledged write is synced. The index is folded on a thread of its own; only this one publishes the
//! result.

mod application;
mod backlog;
mod closing;
mod entries;
mod erasure;
mod group_keys;
mod notes;
mod scrub;
mod states;
mod transaction;
mod vector_removal;
mod vectors;

use crate::base::sync::Mutex;
use crate::base::sync::mpsc::SyncSender;
use crate::state::audit::ReadNotes;
use crate::state::audit::append_audit;
use crate::state::view::SharedView;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use grainstore_format::{ContentAddress, EpochMs};
use grainstore_index::Tables;

use crate::base::clock::Clock;
use crate::base::error::{Error, ErrorKind, Result, catch_storage_panic};
use crate::base::pending::{PendingReply, writer_stopped};
use crate::base::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use crate::base::sync::receive_within;
use crate::disk::database::{DatabaseHandle, LeasedReader};
use crate::disk::directory;
use crate::disk::truth_tables::TruthTable;
use crate::disk::truth_transaction::RowWriter;
use crate::rules::policy::Proofs;
use crate::rules::preset::ActiveRules;
use crate::search::embed::{Embedding, EmbeddingWorker};
use crate::search::retrieval::Retrieval;
use crate::state::audit::{AuditHashChain, AuditRecord, RefusalLog};
use crate::state::fold_worker::{FoldWorker, IndexOutcome};
use crate::state::follower::FollowerThread;
use crate::state::index_snapshot::IndexSnapshot;
use crate::state::truth::Truth;
use crate::state::view::View;
use crate::write::access_counters::{AccessCounters, COUNT_CHECK_MS};
use crate::write::plan::{
    PreparedGrain, Principal, PutOutcome, SameFact, StagedGrain, StateChange, WritePlan,
};
use crate::write::read_log::ReadLog;

pub(crate) use backlog::Backlog;
pub(crate) use closing::Presence;
use entries::GroupEntries;
pub(crate) use erasure::{CommittedErasure, ErasureOrder, ErasureTarget};
pub(crate) use group_keys::GroupKeys;
pub(crate) use scrub::ScrubState;
use states::{write_roots, write_states};
pub(crate) use transaction::WriteTxn;
use vectors::write_vectors;

/// Channel to the writer thread; `None` once the store is closed.
pub(crate) type WriterRequests = Arc<Mutex<Option<SyncSender<Request>>>>;

/// Capacity of the queue of requests, beyond which senders wait.
pub(crate) const QUEUE_CAPACITY: usize = 4096;
/// Maximum number of requests in a group.
const MAX_MEMBERS: usize = 256;
/// Size of a group's blobs in bytes beyond which it takes no further request.
const MAX_GROUP_BYTES: usize = 8 << 20;

/// Interval at which an idle writer checks for a finished fold.
const FOLD_CHECK_INTERVAL: Duration = Duration::from_millis(5);
/// Interval at which an idle writer checks for due access counts.
const COUNT_CHECK_INTERVAL: Duration = Duration::from_millis(COUNT_CHECK_MS.unsigned_abs());

/// Shorter interval while audited reads wait to be written.
const READ_AUDIT_CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// A request to the writer.
pub(crate) enum Request {
    Write(WriteRequest),
    /// Fold the tail, and answer when everything before is on disk.
    Flush(PendingReply<()>),
    /// Work that excludes writes. It runs after the writes of its group.
    Exclusive(ExclusiveTask),
    /// Access counts or audited reads are due: write them.
    CountsDue,
    /// An embedder of the store has computed vectors.
    VectorsReady,
}

/// Work on the writer's thread: called with the writer, or with the error that stopped it.
pub(crate) type ExclusiveTask = Box<dyn FnOnce(Result<&mut Writer>) + Send>;

/// A write of a group.
pub(crate) enum WriteRequest {
    Put {
        grain: Box<PreparedGrain>,
        same_fact: SameFact,
        author: Principal,
        reply: PendingReply<PutOutcome>,
    },
    PutBatch {
        grains: Vec<PreparedGrain>,
        author: Principal,
        reply: PendingReply<Vec<PutOutcome>>,
    },
    Supersede {
        old: ContentAddress,
        new: Box<PreparedGrain>,
        author: Principal,
        reply: PendingReply<ContentAddress>,
    },
    Mark {
        address: ContentAddress,
        mark: StateChange,
        proofs: Proofs,
        author: Principal,
        reply: PendingReply<()>,
    },
    Embed {
        address: ContentAddress,
        vectors: Vec<Embedding>,
        author: Principal,
        reply: PendingReply<()>,
    },
    /// A write that was rejected before it got here, and needs an audit entry.
    Refused {
        entry: Box<AuditRecord>,
        error: Error,
        reply: Box<dyn FnOnce(Error) + Send>,
    },
}

impl Request {
    /// Size of its blobs in bytes, or of the reason of a write without a blob.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Write(
                WriteRequest::Put { grain: new, .. } | WriteRequest::Supersede { new, .. },
            ) => new.bytes(),
            Self::Write(WriteRequest::PutBatch { grains, .. }) => {
                grains.iter().map(PreparedGrain::bytes).sum()
            }
            Self::Write(WriteRequest::Mark { author, .. }) => {
                author.reason.as_ref().map_or(0, String::len)
            }
            Self::Write(WriteRequest::Embed { vectors, .. }) => {
                vectors.iter().map(|vector| 4 * vector.values().len()).sum()
            }
            Self::Write(WriteRequest::Refused { .. })
            | Self::Flush(_)
            | Self::Exclusive(_)
            | Self::CountsDue
            | Self::VectorsReady => 0,
        }
    }

    /// Answers it with an error. The receiver may be gone.
    fn fail(self, error: Error) {
        match self {
            Self::Write(WriteRequest::Put { reply, .. }) => drop(reply.send(Err(error))),
            Self::Write(WriteRequest::PutBatch { reply, .. }) => drop(reply.send(Err(error))),
            Self::Write(WriteRequest::Supersede { reply, .. }) => drop(reply.send(Err(error))),
            Self::Write(WriteRequest::Mark { reply, .. } | WriteRequest::Embed { reply, .. }) => {
                drop(reply.send(Err(error)));
            }
            Self::Write(WriteRequest::Refused { reply, .. }) => reply(error),
            Self::Flush(reply) => drop(reply.send(Err(error))),
            Self::Exclusive(work) => work(Err(error)),
            Self::CountsDue | Self::VectorsReady => {}
        }
    }
}

/// A reply that is computed, but must not be sent before the group is durable.
type DeferredReply = Box<dyn FnOnce(Result<()>) + Send>;

/// A decided member of a group: its reply, and the I/O error it met.
struct DecidedMember {
    answer: DeferredReply,
    failure: Option<Error>,
}

/// The state of the writer thread.
pub(crate) struct Writer {
    /// Dropped first, however it ends.
    pub(crate) presence: Presence,
    pub(crate) db: DatabaseHandle,
    pub(crate) fold_worker: FoldWorker,
    /// Bytes at which a tail is folded, though it has few grains.
    pub(crate) tail_bytes: usize,
    pub(crate) chain: AuditHashChain,
    /// Refusals of the last minute, of which equal ones are counted.
    pub(crate) refusals: RefusalLog,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) view: Arc<View>,
    /// The error that stopped the writer. The state in memory may lag behind the disk after it, so nothing
    /// more is written until the store is opened again.
    pub(crate) failed: Option<Error>,
    /// Access counters; `None` if access is not counted.
    pub(crate) counters: Option<Arc<AccessCounters>>,
    /// True if an authorized signature opens a lock.
    pub(crate) locked_accepts_signature: bool,
    /// The rules of the store.
    pub(crate) rules: Arc<ActiveRules>,
    /// Records queued for the audit log.
    pub(crate) notes: Arc<ReadNotes>,
    /// The read log; `None` for a store in memory.
    pub(crate) read_log: Option<Arc<ReadLog>>,
    /// Maximum number of days that grains wait for erasure after a third party withdrew their consent.
    pub(crate) cascade_after_days: u8,
    pub(crate) next_sweep: EpochMs,
    /// Number of grains erased by sweeps that no caller was told of yet.
    pub(crate) swept: u64,
    /// The search indexes of the store.
    pub(crate) retrieval: Retrieval,
    /// Erasures that are not scrubbed from the disk.
    pub(crate) scrub: ScrubState,
    /// Background followers; empty for a store in memory.
    pub(crate) followers: Vec<FollowerThread>,
    /// Dropped last: until then the database is in use.
    pub(crate) _lock: Option<directory::StoreLock>,
}

impl Writer {
    /// Writes an audit entry together with its effect.
    pub(crate) fn write_audit_record(
        &mut self,
        record: AuditRecord,
        effect: impl FnOnce(&mut RowWriter<'_>) -> Result<()>,
    ) -> Result<()> {
        let (mut chain, now) = (self.chain.clone(), self.clock.now());
        let refused = record.refused;
        let records = self.refusals.aggregate(vec![record], now);
        if refused && records.is_empty() {
            return Ok(());
        }
        let encryption_key = self.db.vault().store_key();
        self.commit_change(|rows| {
            effect(rows)?;
            append_audit(rows, &mut chain, &records, now, &|_| Ok(encryption_key.clone()))
        })?;
        self.chain = chain;
        Ok(())
    }

    /// Serves requests until every sender is gone, then writes what is left and closes the store.
    ///
    /// # Errors
    /// As [`Writer::end`].
    pub(crate) fn run(mut self, requests: &Receiver<Request>) -> Result<()> {
        self.sweep_when_due();
        while let Some(first) = self.next_request(requests) {
            let group = collect_group(first, requests);
            self.adopt_finished_fold();
            self.serve(group);
            self.flush_due_counts();
            self.flush_due_notes();
            self.sweep_when_due();
            self.flush_refusals(false);
            self.continue_scrub(false);
            self.tell_if_stopped();
        }
        self.end()
    }

    /// Tells those who have the store open that nothing more is written.
    fn tell_if_stopped(&self) {
        if let Some(failed) = &self.failed {
            let _ = self.presence.stopped.set(failed.clone());
        }
    }

    /// Waits for the next request; `None` once all senders are gone.
    fn next_request(&mut self, requests: &Receiver<Request>) -> Option<Request> {
        while self.fold_worker.is_busy() {
            match receive_within(requests, FOLD_CHECK_INTERVAL) {
                Ok(request) => return Some(request),
                Err(RecvTimeoutError::Timeout) => self.adopt_finished_fold(),
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
        loop {
            let patience = match self.notes.has_any() {
                true => READ_AUDIT_CHECK_INTERVAL,
                false => COUNT_CHECK_INTERVAL,
            };
            let patience = self.scrub.next_check().unwrap_or(patience).min(patience);
            match receive_within(requests, patience) {
                Ok(request) => return Some(request),
                Err(RecvTimeoutError::Timeout) => {
                    self.adopt_finished_fold();
                    self.flush_due_counts();
                    self.flush_due_notes();
                    self.sweep_when_due();
                    self.flush_refusals(false);
                    self.continue_scrub(true);
                    self.tell_if_stopped();
                }
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    /// The maximum delay of cascading erasures, by the options and the rules of the store.
    pub(crate) fn cascade_after_days(&self) -> u32 {
        u32::from(self.cascade_after_days).min(self.rules.rules().settings.erasure_sla_days.value)
    }

    fn serve(&mut self, group: Vec<Request>) {
        let bytes = group.iter().map(Request::bytes).sum();
        let mut alone = Vec::new();
        let view = Arc::clone(&self.view);
        let plan = || WritePlan::new(&view, self.clock.now());
        match self.check_running().and_then(|()| catch_storage_panic(plan)) {
            Ok(plan) => {
                let plan = plan
                    .with_locked_signatures(self.locked_accepts_signature)
                    .with_rules(Arc::clone(&self.rules))
                    .with_reserved_spaces(self.retrieval.reserved_spaces());
                alone = self.process_group(plan, group);
            }
            Err(error) => group.into_iter().for_each(|request| request.fail(error.clone())),
        }
        // A view keeps its databases open, and exclusive tasks may replace them.
        drop(view);
        for work in alone {
            match self.check_running() {
                Ok(()) => work(Ok(self)),
                Err(error) => work(Err(error)),
            }
        }
        self.presence.backlog.release(bytes);
    }

    /// Processes a group, and returns the exclusive tasks in it.
    fn process_group(
        &mut self,
        mut plan: WritePlan<'_>,
        group: Vec<Request>,
    ) -> Vec<ExclusiveTask> {
        let mut flushes = Vec::new();
        let mut alone = Vec::new();
        let mut answers: Vec<DecidedMember> = Vec::new();
        for request in group {
            match request {
                Request::Flush(reply) => flushes.push(reply),
                Request::Exclusive(work) => alone.push(work),
                // Counts are written after the group is answered; vectors are taken below.
                Request::CountsDue | Request::VectorsReady => {}
                Request::Write(write) => {
                    let told = plan.audit.len();
                    let decided = stage_member(&mut plan, write);
                    // A refused write leaves nothing but its record.
                    if plan.audit.iter().skip(told).all(|record| record.refused) {
                        let refused = plan.audit.split_off(told);
                        plan.audit.extend(self.refusals.aggregate(refused, plan.now()));
                    }
                    answers.push(decided);
                }
            }
        }
        let made = self.retrieval.embedders().filter_map(|keeping| {
            let made = keeping.take_batch()?;
            Some((keeping, plan.stage_embedder_batch(made)))
        });
        let made: Vec<(Arc<EmbeddingWorker>, Result<()>)> = made.collect();
        let outcome = catch_storage_panic(|| self.apply(&plan));
        for (keeping, taken) in made {
            keeping.batch_written(&taken.and_then(|()| outcome.clone()));
        }
        let outcome = outcome.inspect_err(|error| self.failed = Some(error.clone()));
        for DecidedMember { answer, failure } in answers {
            // A disk that cannot be read is not written any more.
            self.failed = self.failed.take().or(failure);
            answer(outcome.clone());
        }
        for reply in flushes {
            let _ = reply.send(outcome.clone().and_then(|()| self.settle()));
        }
        alone
    }

    /// Writes and syncs a plan, and publishes the new view.
    fn apply(&mut self, plan: &WritePlan<'_>) -> Result<()> {
        if plan.is_empty() {
            return Ok(());
        }
        let notes = self.refusals.aggregate(self.notes.take(), plan.now());
        let vault = self.db.vault();
        vault.enroll(plan.grains.iter().map(|staged| staged.prepared.blob.bytes()))?;
        let keys = GroupKeys::new(&self.view, plan, (vault, &self.rules))?;
        let mut chain = self.chain.clone();
        let first = chain.head().count;
        let entries = GroupEntries::link(plan, &mut chain, plan.now());
        let txn = self.db.begin_change()?;
        let counts = txn.write(|rows| {
            entries.write_grains(rows, &plan.grains, &keys)?;
            write_signatures(rows, plan, &keys)?;
            write_vectors(rows, plan, &keys)?;
            entries.write_others(rows, &mut chain, &keys)?;
            self.piggyback_notes(rows, &mut chain, &notes, plan.now())?;
            write_states(rows, plan, first)?;
            write_roots(rows, plan)?;
            self.piggyback(rows)
        })?;
        txn.commit()?;
        self.chain = chain;
        // The commit is durable and must be acknowledged; a writer that cannot read it back stops.
        if let Err(error) = catch_storage_panic(|| self.publish_commit(&plan.grains)) {
            self.failed = Some(error);
            self.publish(None);
        }
        self.committed(&counts);
        Ok(())
    }

    /// Publishes what was committed, with the new grains in the tail. A damaged index is rebuilt.
    fn publish_commit(&mut self, grains: &[StagedGrain]) -> Result<()> {
        let truth = Arc::new(Truth::open(&self.db)?);
        let mut indexed = self.view.indexed().clone();
        match catch_storage_panic(|| self.index_grains(&truth, &mut indexed, grains)) {
            Ok(()) => {
                self.replace_view(View::new(truth, indexed));
                self.notify();
                Ok(())
            }
            Err(error) if error.is_index_damage() => self.rebuild_index(View::new(truth, indexed)),
            Err(error) => Err(error),
        }
    }

    fn index_grains(
        &mut self,
        truth: &Truth,
        indexed: &mut IndexSnapshot,
        grains: &[StagedGrain],
    ) -> Result<()> {
        indexed.history = truth.index_history()?;
        for StagedGrain { sequence, prepared } in grains {
            let blob = &prepared.blob;
            let grain = (&blob.address(), blob.bytes());
            indexed.push(&mut self.fold_worker, *sequence, grain, self.db.vault())?;
        }
        let is_full = indexed.tail.is_full() || indexed.tail.approx_bytes() >= self.tail_bytes;
        if is_full && !self.fold_worker.is_busy() {
            indexed.begin_fold(&mut self.fold_worker)?;
        }
        Ok(())
    }

    /// Publishes a finished fold. A fold that failed on a damaged index has it rebuilt; any other failure
    /// stops the writer, since grains could no longer leave the tail.
    fn adopt_finished_fold(&mut self) {
        while let Some(outcome) = self.fold_worker.finished() {
            match outcome {
                IndexOutcome::Changed(outcome) => self.adopt_fold(outcome),
                IndexOutcome::Merged(outcome) => self.adopt_merged(outcome),
            }
        }
    }

    /// Waits for a running fold, and publishes it.
    fn wait_for_fold(&mut self) {
        if self.fold_worker.is_busy() {
            let outcome = self.fold_worker.wait();
            self.adopt_fold(outcome);
        }
    }

    fn adopt_fold(&mut self, outcome: Result<LeasedReader<Tables>>) {
        // After a failure the state in memory may lag behind the truth, so no view is published.
        if self.failed.is_some() {
            return;
        }
        match outcome {
            Ok(tables) => {
                let mut indexed = self.view.indexed().clone();
                indexed.replace_tables(tables);
                self.replace_view(self.view.with_index(indexed));
            }
            // An error that remains is kept in `failed`.
            Err(error) => drop(self.recover_index(error)),
        }
    }

    /// Publishes tables whose runs were merged. If they are damaged the index is made anew; any other failure
    /// leaves them as they were.
    fn adopt_merged(&mut self, outcome: Result<LeasedReader<Tables>>) {
        if self.failed.is_some() {
            return;
        }
        match outcome {
            Ok(tables) => {
                let mut indexed = self.view.indexed().clone();
                indexed.adopt_merged(tables);
                self.replace_view(self.view.with_index(indexed));
            }
            // An error that remains is kept in `failed`.
            Err(error) if error.is_index_damage() => drop(self.recover_index(error)),
            // A disk that did not take the merge takes no fold either, which reports it.
            Err(_) => {}
        }
    }

    /// Makes a damaged index anew. Any other error of a fold stops the writer, as one of this does.
    fn recover_index(&mut self, error: Error) -> Result<()> {
        let rebuilt = match error.is_index_damage() {
            true => self.rebuild_index(self.view.with_index(self.view.indexed().clone())),
            false => Err(error),
        };
        rebuilt.inspect_err(|error| self.failed = Some(error.clone()))
    }

    /// Writes the state kept in memory to disk: access counts, audited reads, counts of refusals, the tail
    /// and derived data.
    fn settle(&mut self) -> Result<()> {
        self.flush_counts()?;
        self.flush_notes()?;
        self.flush_refusals(true);
        self.check_running()?;
        catch_storage_panic(|| self.fold_all())?;
        self.followers.iter().for_each(|follower| follower.save(&self.view));
        Ok(())
    }

    /// Folds the whole tail, and waits for it.
    pub(crate) fn fold_all(&mut self) -> Result<()> {
        self.check_running()?;
        let mut indexed = self.view.indexed().clone();
        indexed.history = self.view.truth().index_history()?;
        match indexed.fold_all(&mut self.fold_worker) {
            Ok(()) => {
                self.replace_view(self.view.with_index(indexed));
                Ok(())
            }
            Err(error) => self.recover_index(error),
        }
    }

    /// Runs work that must not be left half done: an error stops the writer.
    ///
    /// # Errors
    /// Those of `work`; `ERR_INTEGRITY` if it panicked.
    pub(crate) fn stop_on_error<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        catch_storage_panic(|| work(self)).inspect_err(|error| self.failed = Some(error.clone()))
    }

    /// Writes an audit entry in a transaction of its own.
    ///
    /// # Errors
    /// `ERR_IO`, after which the writer has stopped.
    pub(crate) fn append_record(&mut self, record: AuditRecord) -> Result<()> {
        self.append_records(&[record])
    }

    /// Writes the counts of refusals whose minute is over, or of all. A failure stops the writer.
    fn flush_refusals(&mut self, all: bool) {
        if self.refusals.is_empty() || self.failed.is_some() {
            return;
        }
        let now = self.clock.now();
        let counts = match all {
            true => self.refusals.take_all(&self.chain),
            false => self.refusals.take_expired(now),
        };
        let over = self.refusals.over(now);
        if counts.is_empty() && !self.refusals.carried.is_changed() {
            return;
        }
        let mut carried = self.refusals.carried.clone();
        let appended = self.append_with(&counts, |rows, chain| match carried.is_changed() {
            true => carried.write(rows, chain, &over, now),
            false => Ok(()),
        });
        // The next write reports the error: a failed writer refuses.
        if appended.is_ok() {
            self.refusals.carried = carried;
        }
    }

    fn append_records(&mut self, records: &[AuditRecord]) -> Result<()> {
        self.append_with(records, |_, _| Ok(()))
    }

    fn append_with(
        &mut self,
        records: &[AuditRecord],
        more: impl FnOnce(&mut RowWriter<'_>, &mut AuditHashChain) -> Result<()>,
    ) -> Result<()> {
        self.stop_on_error(|writer| {
            let mut chain = writer.chain.clone();
            let encryption_key = writer.db.vault().store_key();
            let now = writer.clock.now();
            let txn = writer.db.begin_change()?;
            txn.write(|rows| {
                append_audit(rows, &mut chain, records, now, &|_| Ok(encryption_key.clone()))?;
                more(rows, &mut chain)
            })?;
            txn.commit()?;
            writer.chain = chain;
            writer.publish_commit(&[])
        })
    }

    pub(crate) fn check_running(&self) -> Result<()> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    pub(crate) fn replace_view(&mut self, view: View) {
        self.view = Arc::new(view);
        self.publish(Some(Arc::clone(&self.view)));
        self.db.close_unread();
    }

    /// Notifies the followers of new grains.
    fn notify(&self) {
        self.followers.iter().for_each(|follower| follower.notify(&self.view));
    }

    fn publish(&self, view: Option<Arc<View>>) {
        let mut shared = self.presence.shared.write().unwrap_or_else(PoisonError::into_inner);
        *shared = view;
    }
}

/// Collects the first request and all others that wait, within limits.
fn collect_group(first: Request, requests: &Receiver<Request>) -> Vec<Request> {
    let mut bytes = first.bytes();
    let mut group = vec![first];
    while group.len() < MAX_MEMBERS && bytes < MAX_GROUP_BYTES {
        match requests.try_recv() {
            Ok(next) => {
                bytes = bytes.saturating_add(next.bytes());
                group.push(next);
            }
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
        }
    }
    group
}

/// Stages one member; its reply waits for the group.
fn stage_member(plan: &mut WritePlan<'_>, write: WriteRequest) -> DecidedMember {
    match write {
        WriteRequest::Put { grain, same_fact, author, reply } => {
            let put = plan.put(vec![*grain], same_fact, &author);
            let put = put.and_then(|puts| puts.into_iter().next().ok_or_else(writer_stopped));
            defer_reply(reply, put)
        }
        WriteRequest::PutBatch { grains, author, reply } => {
            defer_reply(reply, plan.put(grains, SameFact::Add, &author))
        }
        WriteRequest::Supersede { old, new, author, reply } => {
            defer_reply(reply, plan.supersede(&old, *new, &author))
        }
        WriteRequest::Mark { address, mark, proofs, author, reply } => {
            defer_reply(reply, plan.change_state(&address, mark, &proofs, &author))
        }
        WriteRequest::Embed { address, vectors, author, reply } => {
            defer_reply(reply, plan.stage_stored_vectors(&address, vectors, &author))
        }
        WriteRequest::Refused { entry, error, reply } => {
            plan.audit.push(AuditRecord { code: Some(error.code()), ..*entry });
            let answer: DeferredReply =
                Box::new(move |durable| reply(durable.err().unwrap_or(error)));
            DecidedMember { answer, failure: None }
        }
    }
}

/// A decision is valid only if the group is durable: a refusal may name what the group wrote, and its audit
/// record is part of the group.
fn defer_reply<T: Send + 'static>(reply: PendingReply<T>, decided: Result<T>) -> DecidedMember {
    let failure = decided.as_ref().err().filter(|error| error.kind() == ErrorKind::Io).cloned();
    let answer: DeferredReply = Box::new(move |durable| {
        // The receiver may be gone.
        let _ = reply.send(durable.and(decided));
    });
    DecidedMember { answer, failure }
}

fn write_signatures(
    rows: &mut RowWriter<'_>,
    plan: &WritePlan<'_>,
    keys: &GroupKeys<'_>,
) -> Result<()> {
    let first = plan.grains.iter();
    let first = first.filter_map(|new| Some((new.sequence, new.prepared.wrapping.as_deref()?)));
    let better = plan.wrappings.iter().map(|(sequence, wrapping)| (*sequence, &**wrapping));
    for (sequence, wrapping) in first.chain(better) {
        let row = wrapping.seal(sequence, keys.vault, &keys.key_at(sequence)?)?;
        rows.put(TruthTable::Signatures, sequence, &row)?;
    }
    Ok(())
}
