//! The read log: every CAL call that read, or was refused to, beside the audit log (CAL 21).
//!
//! Entries wait in memory for a second, or until there are 256, and are then written as one group with one
//! hash by a thread of their own. Once a second the file is synced and its end signed: a crash loses the reads
//! of the last second. The audit log records the state of the read log when a file is full and when the store
//! is closed, so that a later truncation is detected. The read log is not part of the truth.
//!
//! - `group`: encoding of entries. `segment`: files of groups. `head`: the signed end. `files`: writing and
//!   deleting of files. `examine`: checks of its integrity.

mod files;
pub(crate) mod group;
mod head;
pub(crate) mod segment;
mod verify;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use crate::base::clock::Clock;
use crate::base::error::{Result, catch_storage_panic};
use crate::base::pending::writer_stopped;
use crate::base::sync::thread::{self, JoinHandle};
use crate::base::sync::{Condvar, Mutex, MutexGuard};
use crate::disk::directory;
use crate::disk::pinned_directory::PinnedDirectory;
use crate::rules::preset::ActiveRules;
use crate::state::audit::BufferAction;
use crate::state::audit::ReadNotes;
use crate::state::audit::{AuditHashChain, AuditOperation, AuditRecord, ReadLogSummary};
use crate::write::writer::{Request, WriterRequests};

use files::{ReadLogFiles, SizeLimits};
pub(crate) use group::ReadRecord;
pub(crate) use verify::verify;

/// Maximum time until a read is written, and until a written one is signed.
const MAX_DELAY: Duration = Duration::from_secs(1);
/// Maximum number of waiting reads: a reader beyond it first writes them.
const MAX_WAITING_READS: usize = 16 * group::MAX_GROUP_ENTRIES;

/// The read log of an open store.
pub(crate) struct ReadLog {
    /// True if reads are recorded; if not, earlier entries can still be read.
    records: bool,
    waiting: Mutex<WaitingReads>,
    wakes: Condvar,
    files: Mutex<ReadLogFiles>,
    active_rules: Arc<ActiveRules>,
    notes: Arc<ReadNotes>,
    requests: WriterRequests,
    clock: Arc<dyn Clock>,
    is_audited: bool,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Number of readers of files that must not be deleted meanwhile.
    retentions: AtomicUsize,
}

/// Keeps the files of the log from being deleted.
pub(crate) struct FileRetention<'h>(&'h AtomicUsize);

impl Drop for FileRetention<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Reads to be written.
#[derive(Default)]
struct WaitingReads {
    notes: Vec<ReadRecord>,
    /// Time at which the first of them was recorded.
    since: Option<Instant>,
    /// Time of the next attempt after a failed write.
    not_before: Option<Instant>,
    /// Number of lost reads that no group records yet.
    lost: u64,
    /// Number of lost reads since the store was opened.
    lost_so_far: u64,
    has_thread: bool,
    closed: bool,
}

/// The next task of the thread.
enum ReadLogTask {
    Write,
    Sign,
    End,
}

/// The dependencies of a read log.
pub(crate) struct ReadLogContext<'p> {
    pub(crate) store: &'p Path,
    pub(crate) store_id: [u8; 16],
    pub(crate) chain: AuditHashChain,
    pub(crate) active_rules: &'p Arc<ActiveRules>,
    pub(crate) notes: &'p Arc<ReadNotes>,
    pub(crate) requests: &'p WriterRequests,
    pub(crate) clock: &'p Arc<dyn Clock>,
    /// True if the audit log is told of its states. That of a store with a journal is the same in all copies, and each
    /// has reads of its own.
    pub(crate) is_audited: bool,
}

impl ReadLog {
    /// Opens the log of a store. Nothing is written before the first read.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn open(place: ReadLogContext<'_>, records: bool) -> Result<Arc<Self>> {
        let ReadLogContext {
            store,
            store_id,
            chain,
            active_rules,
            notes,
            requests,
            clock,
            is_audited,
        } = place;
        let anchor = PinnedDirectory::open(store)?;
        let dir = directory::reads(anchor.path());
        let files = ReadLogFiles::new(dir, store_id, chain, SizeLimits::default()).anchored(anchor);
        Ok(Arc::new(Self {
            records,
            waiting: Mutex::default(),
            wakes: Condvar::new(),
            files: Mutex::new(files),
            active_rules: Arc::clone(active_rules),
            notes: Arc::clone(notes),
            requests: Arc::clone(requests),
            clock: Arc::clone(clock),
            is_audited,
            thread: Mutex::new(None),
            retentions: AtomicUsize::new(0),
        }))
    }

    /// Returns `true` if reads are recorded.
    pub(crate) fn is_recording(&self) -> bool {
        self.records
    }

    /// Number of reads since the store was opened that could not be written to disk.
    pub(crate) fn lost_since_open(&self) -> u64 {
        self.waiting().lost_so_far
    }

    /// Records a read.
    ///
    /// # Errors
    /// `ERR_IO` if the store is closed.
    pub(crate) fn push(self: &Arc<Self>, note: ReadRecord) -> Result<()> {
        let mut waiting = self.waiting();
        if waiting.closed {
            return Err(writer_stopped());
        }
        waiting.notes.push(note);
        let count = waiting.notes.len();
        if count == 1 {
            waiting.since = Some(Instant::now());
        }
        let starts = !std::mem::replace(&mut waiting.has_thread, true);
        drop(waiting);
        if starts {
            self.start();
        }
        match count {
            1 | group::MAX_GROUP_ENTRIES => self.wakes.notify_one(),
            // Readers of the log report a failure; the read itself has succeeded.
            count if count >= MAX_WAITING_READS => drop(self.write()),
            _ => {}
        }
        Ok(())
    }

    /// Starts the thread. Without one, readers write what waits.
    fn start(self: &Arc<Self>) {
        let own = Arc::clone(self);
        let builder = thread::Builder::new().name("grainstore-reads".to_owned());
        if let Ok(thread) = builder.spawn(move || own.serve()) {
            *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        }
    }

    fn serve(&self) {
        let mut signed = None;
        loop {
            let to_sign = signed.map(|signed: Instant| signed + MAX_DELAY);
            match self.next_task(to_sign) {
                ReadLogTask::End => return,
                ReadLogTask::Write => drop(catch_storage_panic(|| self.write())),
                ReadLogTask::Sign => {}
            }
            let late = to_sign.is_none_or(|due| Instant::now() >= due);
            let is_unsigned = self.files().is_unsigned();
            if is_unsigned && late {
                // Retried with the next group.
                let _ = catch_storage_panic(|| self.files().settle(self.clock.now()));
                signed = Some(Instant::now());
            } else if !is_unsigned && late {
                signed = None;
            }
        }
    }

    /// Waits until a group is to be written, or until the time to sign.
    fn next_task(&self, to_sign: Option<Instant>) -> ReadLogTask {
        let mut waiting = self.waiting();
        loop {
            let now = Instant::now();
            let full = waiting.notes.len() >= group::MAX_GROUP_ENTRIES;
            let to_write = waiting.since.map(|since| if full { since } else { since + MAX_DELAY });
            let to_write = to_write.max(waiting.not_before.filter(|_| to_write.is_some()));
            if waiting.closed {
                return ReadLogTask::End;
            }
            if to_write.is_some_and(|due| now >= due) {
                return ReadLogTask::Write;
            }
            if to_sign.is_some_and(|due| now >= due) {
                return ReadLogTask::Sign;
            }
            let next = [to_write, to_sign].into_iter().flatten().min();
            waiting = match next {
                None => self.wakes.wait(waiting).unwrap_or_else(PoisonError::into_inner),
                Some(next) => {
                    let patience = next.saturating_duration_since(now);
                    let woken = self.wakes.wait_timeout(waiting, patience);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Writes the waiting reads. Reads that cannot be written wait on, up to the limit.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub(crate) fn write(&self) -> Result<()> {
        let mut files = self.files();
        let (notes, mut lost) = {
            let mut waiting = self.waiting();
            (waiting.since, waiting.not_before) = (None, None);
            (std::mem::take(&mut waiting.notes), std::mem::take(&mut waiting.lost))
        };
        let keeps_all = self.active_rules.rules().settings.keep_reads.value;
        let mut written = 0;
        for group in notes.chunks(group::MAX_GROUP_ENTRIES) {
            match files.append(group, lost, keeps_all) {
                Ok(told) => {
                    (lost, written) = (0, written + group.len());
                    if let Some(told) = told {
                        self.record_state(told);
                    }
                }
                Err(error) => {
                    drop(files);
                    self.put_back(notes, written, lost);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Puts unwritten reads back; beyond the limit the oldest are dropped and counted as lost.
    fn put_back(&self, mut notes: Vec<ReadRecord>, written: usize, lost: u64) {
        notes.drain(..written);
        let mut waiting = self.waiting();
        notes.append(&mut waiting.notes);
        let too_many = notes.len().saturating_sub(MAX_WAITING_READS / 2);
        notes.drain(..too_many);
        waiting.notes = notes;
        let now = Instant::now();
        (waiting.since, waiting.not_before) = (Some(now), Some(now + MAX_DELAY));
        let too_many = group::as_u64(too_many);
        waiting.lost = waiting.lost.saturating_add(lost).saturating_add(too_many);
        waiting.lost_so_far = waiting.lost_so_far.saturating_add(too_many);
    }

    /// Queues an audit entry with the state of the log.
    fn record_state(&self, note: ReadLogSummary) {
        if !self.is_audited {
            return;
        }
        let record = AuditRecord::new(AuditOperation::ReadLog(note), Vec::new());
        if self.notes.push(record, self.clock.now()) == BufferAction::None {
            return;
        }
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(requests) = &*requests {
            // A full write queue wakes the writer as well.
            let _ = requests.try_send(Request::CountsDue);
        }
    }

    /// Keeps all files until the returned guard is dropped.
    pub(crate) fn retain_files(&self) -> FileRetention<'_> {
        self.retentions.fetch_add(1, Ordering::AcqRel);
        FileRetention(&self.retentions)
    }

    /// Deletes old files that the audit log has recorded as deleted.
    pub(crate) fn trim(&self) {
        if self.retentions.load(Ordering::Acquire) > 0 {
            return;
        }
        // On failure more is kept than necessary.
        let _ = catch_storage_panic(|| self.files().trim());
    }

    /// Writes the waiting reads, syncs them and signs the end.
    ///
    /// # Errors
    /// The errors of [`ReadLog::write`].
    pub(crate) fn settle(&self) -> Result<()> {
        self.write()?;
        self.files().settle(self.clock.now())
    }

    /// Refuses further reads and writes the waiting ones. Returns the state to record in the audit log.
    ///
    /// # Errors
    /// As [`ReadLog::settle`].
    pub(crate) fn close(&self) -> Result<Option<ReadLogSummary>> {
        self.waiting().closed = true;
        self.wakes.notify_one();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A thread that panicked has written what it could.
            let _ = thread.join();
        }
        catch_storage_panic(|| {
            self.settle()?;
            Ok(self.files().farewell()?.filter(|_| self.is_audited))
        })
    }

    /// Copies the files into the directory of another store.
    ///
    /// # Errors
    /// The errors of [`ReadLog::settle`].
    pub(crate) fn copy(&self, to: &Path) -> Result<()> {
        self.settle()?;
        let files = self.files();
        files::copy(files.place()?, &directory::reads(to))
    }

    /// The directory of the log, verified to be this store's and not that of another one moved there.
    ///
    /// # Errors
    /// `ERR_IO` if the store was moved.
    pub(crate) fn directory(&self) -> Result<PathBuf> {
        Ok(self.files().place()?.to_owned())
    }

    fn waiting(&self) -> MutexGuard<'_, WaitingReads> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn files(&self) -> MutexGuard<'_, ReadLogFiles> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
