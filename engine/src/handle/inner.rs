//! What an open store keeps, shared by the handles on it: the view, the way to the writer, and what the host set.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock, PoisonError};

use grainstore_format::DidResolver;
use grainstore_index::Sequence;

use crate::base::clock::Clock;
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::memory::MemoryBudget;
use crate::base::pending::writer_stopped;
use crate::base::sync::mpsc::SyncSender;
use crate::base::sync::thread::{self, JoinHandle, ThreadId};
use crate::base::sync::{Mutex, MutexGuard};
use crate::disk::database::DatabaseOptions;
use crate::disk::journal::not_leader;
use crate::disk::journaling::Following;
use crate::disk::keyring::Secret;
use crate::disk::layout::AccessCounts;
use crate::handle::cal_switch::SharedCalSwitch;
use crate::handle::firewall::Firewall;
use crate::handle::options::{JournalRole, Journaling, SharedResolver};
use crate::handle::prepared_statements::PreparedStatements;
use crate::handle::write_quotas::SessionQuotas;
use crate::rules::policy::same_did;
use crate::rules::preset::ActiveRules;
use crate::search::embed::EmbeddingWorker;
use crate::search::retrieval::Retrieval;
use crate::search::texts::TextIndex;
use crate::search::vectors::StoreVectors;
use crate::state::audit::ReadNotes;
use crate::state::view::{SharedView, View};
use crate::write::access_counters::AccessCounters;
use crate::write::read_log::ReadLog;
use crate::write::writer::{Backlog, Request, WriterRequests};

/// The writer's thread, or how it ended.
pub(super) enum Running {
    Still(JoinHandle<Result<()>>),
    Ended(Result<()>),
}

/// An open store. Dropping it closes the store.
pub(crate) struct StoreInner {
    pub(super) path: PathBuf,
    pub(super) cursor_key: Secret,
    pub(super) created: bool,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) shared: SharedView,
    pub(super) backlog: Arc<Backlog>,
    /// The error that ended writing, once there is one.
    pub(super) stopped: Arc<OnceLock<Error>>,
    /// Sender to the writer thread; `None` once the store is closed.
    pub(super) requests: WriterRequests,
    /// The writer thread, until it was joined. A concurrent close waits for the join too.
    pub(super) writer: Mutex<Running>,
    pub(super) writer_id: ThreadId,
    /// Quotas of CAL writes.
    pub(super) writes: SessionQuotas,
    /// Prepared CAL statements, by token.
    pub(super) kept: PreparedStatements,
    /// Switch for CAL: on, read-only or off.
    pub(super) switch: SharedCalSwitch,
    /// The host's refusals of CAL statements.
    pub(super) firewall: Firewall,
    /// Access counts not yet in the truth; `None` if access is not counted.
    pub(super) counters: Option<Arc<AccessCounters>>,
    pub(super) resolver: SharedResolver,
    /// True if an authorized signature may invalidate a locked grain.
    pub(super) locked_accepts_signature: bool,
    /// DID of the operator, if the host named one.
    pub(super) operator: Option<String>,
    /// DIDs of the reviewers.
    pub(super) reviewers: Vec<String>,
    /// True if the host lets a user's session erase that user.
    pub(super) users_erase_themselves: bool,
    /// The rules of the store.
    pub(super) active_rules: Arc<ActiveRules>,
    /// Records queued for the audit log.
    pub(super) notes: Arc<ReadNotes>,
    /// The read log; `None` for a store in memory.
    pub(super) reads: Option<Arc<ReadLog>>,
    /// Days after which what ends with a withdrawn consent is erased.
    pub(super) cascade_after_days: u8,
    /// True if the store was opened read-only.
    pub(super) read_only: bool,
    /// The journal of the store.
    pub(super) journaling: Option<Journaling>,
    /// Locked by who reads the journal.
    pub(super) following: Mutex<Following>,
    pub(super) opening: DatabaseOptions,
    /// The shares of its memory.
    pub(super) memory: MemoryBudget,
    pub(super) retrieval: Retrieval,
}

impl StoreInner {
    /// The shares of its memory.
    pub(crate) fn memory(&self) -> MemoryBudget {
        self.memory
    }

    /// The key that seals the cursors of this store.
    pub(crate) fn cursor_key(&self) -> &[u8; 32] {
        self.cursor_key.bytes()
    }

    pub(crate) fn writes(&self) -> &SessionQuotas {
        &self.writes
    }

    /// Prepared CAL statements, by token.
    pub(crate) fn kept(&self) -> &PreparedStatements {
        &self.kept
    }

    /// Switch for CAL: on, read-only or off.
    pub(crate) fn switch(&self) -> &SharedCalSwitch {
        &self.switch
    }

    /// The host's refusals of CAL statements.
    pub(crate) fn firewall(&self) -> &Firewall {
        &self.firewall
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        self.clock.as_ref()
    }

    /// The resolver of signers' keys.
    pub(crate) fn resolver(&self) -> &dyn DidResolver {
        self.resolver.0.as_ref()
    }

    /// Returns `true` if the host named this actor as a reviewer.
    pub(crate) fn is_reviewer(&self, actor: Option<&str>) -> bool {
        actor.is_some_and(|actor| self.reviewers.iter().any(|named| same_did(named, actor)))
    }

    /// DID of the operator, if the host named one.
    pub(crate) fn operator(&self) -> Option<&str> {
        self.operator.as_deref()
    }

    /// Returns `true` if a user's session may erase that user: allowed by the host or by the rules.
    pub(crate) fn users_erase_themselves(&self) -> bool {
        self.users_erase_themselves || self.active_rules.rules().settings.user_may_erase.value
    }

    /// Records queued for the audit log.
    pub(crate) fn notes(&self) -> &ReadNotes {
        &self.notes
    }

    /// The rules of the store.
    pub(crate) fn active_rules(&self) -> &Arc<ActiveRules> {
        &self.active_rules
    }

    /// The read log.
    pub(crate) fn reads(&self) -> Option<&Arc<ReadLog>> {
        self.reads.as_ref()
    }

    /// Days after which what ends with a withdrawn consent is erased: the lower of the option and the rules.
    pub(crate) fn cascade_after_days(&self) -> u32 {
        u32::from(self.cascade_after_days)
            .min(self.active_rules.rules().settings.erasure_sla_days.value)
    }

    /// Returns `true` if an authorized signature may invalidate a locked grain.
    pub(crate) fn accepts_signatures(&self) -> bool {
        self.locked_accepts_signature
    }

    /// The full text, vectors and embedders.
    pub(crate) fn retrieval(&self) -> &Retrieval {
        &self.retrieval
    }

    /// The full text.
    pub(crate) fn library(&self) -> &TextIndex {
        &self.retrieval.text_index
    }

    /// The store's embedder.
    pub(crate) fn keeping(&self) -> Option<Arc<EmbeddingWorker>> {
        self.retrieval.embedder()
    }

    /// The embedder of the model that the store is moved away from.
    pub(crate) fn former(&self) -> Option<&EmbeddingWorker> {
        self.retrieval.former_embedder.as_deref()
    }

    /// Returns the embedder for queries on a view: that of the serving space.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn meaning(&self, view: &View) -> Result<Option<Arc<EmbeddingWorker>>> {
        let mut all = self.retrieval.embedders().peekable();
        if all.peek().is_none() {
            return Ok(None);
        }
        let serving = view.serving_space()?;
        Ok(all.find(|keeping| serving == Some(keeping.space())))
    }

    /// The vector index.
    pub(crate) fn vectors(&self) -> &StoreVectors {
        &self.retrieval.vectors
    }

    /// The newest view.
    ///
    /// # Errors
    /// `ERR_IO` once the store is closed.
    pub(crate) fn view(&self) -> Result<Arc<View>> {
        let shared = self.shared.read().unwrap_or_else(PoisonError::into_inner);
        shared.clone().ok_or_else(writer_stopped)
    }

    /// Whether access is counted.
    pub(crate) fn counts_access(&self) -> bool {
        self.counters.is_some()
    }

    /// Counts that a grain was given to a user (OMS 22.10).
    pub(crate) fn touch(&self, sequence: Sequence) {
        let Some(counters) = &self.counters else { return };
        if counters.record(sequence, self.clock.now())
            && let Some(requests) = &*self.requests()
        {
            // A full queue wakes the writer as well.
            let _ = requests.try_send(Request::CountsDue);
        }
    }

    /// Sends a request if the queue has room, to wake the writer thread.
    pub(crate) fn wake(&self, request: Request) {
        if let Some(requests) = &*self.requests() {
            let _ = requests.try_send(request);
        }
    }

    /// Returns how often a grain was given to users: the stored count and the increments since. It is not
    /// part of a view: while the store is open, the newest counts are given.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn access_of(&self, view: &View, sequence: Sequence) -> Result<AccessCounts> {
        let Some(counters) = &self.counters else { return view.access_at(sequence) };
        loop {
            let arrivals = counters.generation();
            let newest = self.view();
            let stored = newest.as_deref().unwrap_or(view).access_at(sequence)?;
            let access = counters.current(sequence, stored);
            // Increments that were flushed to the truth meanwhile would be in neither of the two reads.
            if counters.generation() == arrivals {
                return Ok(access);
            }
        }
    }

    /// Number of grains whose access counts are not yet stored.
    pub(crate) fn waiting_counts(&self) -> usize {
        self.counters.as_ref().map_or(0, |counters| counters.waiting())
    }

    /// Returns `true` for a copy of a store that has a journal.
    pub(crate) fn has_journal(&self) -> bool {
        self.journaling.is_some()
    }

    /// The journal that this copy follows; `None` if it leads, or has none.
    pub(crate) fn follows(&self) -> Option<&Journaling> {
        let follows =
            |journaling: &&Journaling| matches!(journaling.role, JournalRole::Follower(_));
        self.journaling.as_ref().filter(follows)
    }

    /// Refuses in a read-only store, and in one that follows.
    ///
    /// # Errors
    /// `ERR_READ_ONLY`, `ERR_NOT_LEADER`.
    pub(crate) fn check_writable(&self) -> Result<()> {
        if self.read_only {
            let message = "this store was opened to be read, and this writes";
            return Err(Error::new(ErrorKind::ReadOnly, message));
        }
        match self.follows() {
            None => Ok(()),
            Some(journaling) => Err(not_leader(journaling.shard(), journaling.leader().as_deref())),
        }
    }

    /// Sends a write request to the writer thread; blocks only while `QUEUE_CAPACITY` requests, or too many
    /// bytes, are waiting.
    ///
    /// # Errors
    /// `ERR_READ_ONLY`, `ERR_NOT_LEADER`; `ERR_IO` once the store is closed.
    pub(crate) fn send(&self, request: Request) -> Result<()> {
        self.check_writable()?;
        self.hand_over(request)
    }

    /// Sends like [`StoreInner::send`] a request that writes at most the index, which is in memory in a
    /// read-only store.
    ///
    /// # Errors
    /// `ERR_IO` once the store is closed.
    pub(crate) fn hand_over(&self, request: Request) -> Result<()> {
        let requests = self.requests().clone().ok_or_else(writer_stopped)?;
        self.backlog.reserve(request.bytes())?;
        requests.send(request).map_err(|_| writer_stopped())
    }

    /// The channel to the writer thread.
    pub(super) fn writer_requests(&self) -> &WriterRequests {
        &self.requests
    }

    fn requests(&self) -> MutexGuard<'_, Option<SyncSender<Request>>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn close(&self) -> Result<()> {
        drop(self.requests().take());
        // The last handle may be dropped on the writer thread itself, when answering a write drops a task.
        // Joining would deadlock; the writer ends by itself once its last sender is gone.
        if self.writer_id == thread::current().id() {
            return Ok(());
        }
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = match std::mem::replace(&mut *writer, Running::Ended(Ok(()))) {
            // A writer that panicked has released its database all the same.
            Running::Still(thread) => thread.join().unwrap_or_else(|_| Err(writer_stopped())),
            Running::Ended(ended) => ended,
        };
        *writer = Running::Ended(ended.clone());
        ended
    }
}

impl Drop for StoreInner {
    fn drop(&mut self) {
        // Nobody is left to be told.
        let _ = self.close();
    }
}
