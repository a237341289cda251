//! The thread that owns the derived index on disk and folds into it while the writer goes on.
//!
//! One job at a time, begun and awaited by the writer; the result of a committed job is a new snapshot of the
//! tables. Between jobs it merges runs, whose result is one too, and closes replaced databases, of the truth as well, once their last readers are gone.
//! Knows nothing of the contents of the truth and publishes nothing.

use std::time::Duration;

use grainstore_index::{self as index, FrozenTail, Tables};
use redb::{Database, Durability, ReadTransaction, ReadableDatabase, WriteTransaction};

use crate::base::error::{Result, catch_storage_panic};
use crate::base::pending::writer_stopped;
use crate::base::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use crate::base::sync::receive_within;
use crate::base::sync::thread::{self, JoinHandle};
use crate::disk::database::{DatabaseHandle, LeasedReader, ReplacedDatabase};
use crate::disk::directory;
use crate::disk::keyring::fill_random;
use crate::disk::layout::AuditHead;
use crate::disk::vault::Vault;
use crate::state::run_merger::RunMerger;

/// Interval at which an idle thread checks for remaining readers of replaced databases.
const RELEASE_CHECK: Duration = Duration::from_millis(50);

/// Time without a job after which runs are merged that would wait while grains keep coming.
const IDLE_AFTER: Duration = Duration::from_millis(200);

/// A change of the index between two snapshots of it.
type IndexChange = Box<dyn FnOnce(&mut DatabaseHandle) -> Result<()> + Send>;

/// Work that sends its result itself.
type DetachedWork = Box<dyn FnOnce(&mut DatabaseHandle) + Send>;

/// A job for the thread.
enum IndexJob {
    /// Adds a run to the index; the result is a new snapshot of the tables.
    Fold(IndexChange),
    /// Changes the index otherwise, with the same result.
    Change(IndexChange),
    /// Puts another database in the place of this one, and sends its result itself.
    Replace(DetachedWork),
    /// Leaves the tables as they are, and sends its result itself.
    Read(DetachedWork),
}

/// What the thread has done to the tables.
pub(crate) enum IndexOutcome {
    /// The job that was begun has ended.
    Changed(Result<LeasedReader<Tables>>),
    /// Runs were merged.
    Merged(Result<LeasedReader<Tables>>),
}

/// A handle of the thread. Dropping it waits for the running job.
pub(crate) struct FoldWorker {
    /// Taken on drop, which ends the thread.
    jobs: Option<Sender<IndexJob>>,
    done: Receiver<IndexOutcome>,
    thread: Option<JoinHandle<Result<()>>>,
    busy: bool,
}

impl Drop for FoldWorker {
    fn drop(&mut self) {
        // Whoever wants to know closes it.
        let _ = self.end();
    }
}

impl FoldWorker {
    /// Starts the thread for this database. Runs are merged when they are many, and otherwise if
    /// `merges_when_idle`.
    ///
    /// # Errors
    /// `ERR_IO` if the system cannot create a thread.
    pub(crate) fn start(db: DatabaseHandle, merges_when_idle: bool) -> Result<Self> {
        let (jobs, incoming) = channel();
        let (finished, done) = channel();
        let thread =
            thread::Builder::new().name("grainstore-folder".to_owned()).spawn(move || {
                let mut db = db;
                let merger = RunMerger::new(merges_when_idle);
                serve(&mut db, &incoming, (merger, &finished));
                db.close()
            })?;
        Ok(Self { jobs: Some(jobs), done, thread: Some(thread), busy: false })
    }

    /// Waits for the job under way, and closes the index.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub(crate) fn close(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        self.jobs = None;
        match self.thread.take() {
            // A thread that panicked has released its database all the same.
            Some(thread) => thread.join().unwrap_or_else(|_| Err(writer_stopped())),
            None => Ok(()),
        }
    }

    /// Returns `true` if a job was begun whose outcome was not taken yet.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy
    }

    /// Begins to write the frozen part of a tail into the tables, with the head of the audit log as it is now.
    ///
    /// # Errors
    /// `ERR_IO` if the thread is gone.
    pub(crate) fn fold(&mut self, frozen: FrozenTail, history: AuditHead) -> Result<()> {
        self.ask(IndexJob::Fold(Box::new(move |db| {
            let seal = db.vault().block_seal();
            in_transaction(db, Durability::Immediate, |txn| {
                index::fold(txn, &frozen, seal.as_ref(), &history.encode()).map(drop)
            })
        })))?;
        self.busy = true;
        Ok(())
    }

    /// Begins to note this history in tables that were folded before. The previous change must have been awaited.
    ///
    /// # Errors
    /// `ERR_IO` if the thread is gone.
    pub(crate) fn mark_history(&mut self, history: AuditHead) -> Result<()> {
        self.begin(Box::new(move |db| {
            let seal = db.vault().block_seal();
            in_transaction(db, Durability::Immediate, |txn| {
                index::mark_history(txn, seal.as_deref(), &history.encode())
            })
        }))
    }

    /// Returns a snapshot of the index. The thread must be idle.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub(crate) fn snapshot(&mut self) -> Result<LeasedReader<ReadTransaction>> {
        self.detached(IndexJob::Read, |db| Ok(db.lease(db.begin_read()?)))
    }

    /// Closes replaced databases without remaining readers.
    ///
    /// # Errors
    /// `ERR_IO` if the thread is gone.
    pub(crate) fn release(&mut self) -> Result<()> {
        self.adopt(Vec::new())
    }

    /// Takes over replaced databases, to close each once its last reader is gone.
    ///
    /// # Errors
    /// `ERR_IO` if the thread is gone.
    pub(crate) fn adopt(&mut self, former: Vec<ReplacedDatabase>) -> Result<()> {
        self.aside(|db| {
            db.adopt_replaced(former);
            db.close_unread();
            Ok(())
        })
    }

    /// Runs `work` on the thread and waits for it. It does not use the tables, which need not be readable. It
    /// runs after a job that was begun before, whose outcome can still be taken.
    ///
    /// # Errors
    /// Those of `work`, `ERR_INTEGRITY` if it panicked; `ERR_IO` if the thread is gone.
    pub(crate) fn aside<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut DatabaseHandle) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.detached(IndexJob::Read, work)
    }

    /// As [`aside`](Self::aside), for work that puts another database in the place of this one.
    ///
    /// # Errors
    /// As [`aside`](Self::aside).
    pub(crate) fn replace<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut DatabaseHandle) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.detached(IndexJob::Replace, work)
    }

    /// Merges all runs into one, and waits for it. The previous change must have been awaited.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub(crate) fn merge_all(&mut self) -> Result<LeasedReader<Tables>> {
        self.begin(Box::new(|db| RunMerger::new(false).merge_all(db)))?;
        self.wait()
    }

    fn detached<T: Send + 'static>(
        &mut self,
        job: fn(DetachedWork) -> IndexJob,
        work: impl FnOnce(&mut DatabaseHandle) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (sender, outcome) = channel();
        self.ask(job(Box::new(move |db| {
            // The caller waits for this below.
            let _ = sender.send(catch_storage_panic(|| work(db)));
        })))?;
        outcome.recv().unwrap_or_else(|_| Err(writer_stopped()))
    }

    /// Begins to change the index. The previous change must have been awaited.
    ///
    /// # Errors
    /// `ERR_IO` if the thread is gone.
    pub(crate) fn begin(&mut self, change: IndexChange) -> Result<()> {
        self.ask(IndexJob::Change(change))?;
        self.busy = true;
        Ok(())
    }

    fn ask(&self, job: IndexJob) -> Result<()> {
        let jobs = self.jobs.as_ref().ok_or_else(writer_stopped)?;
        jobs.send(job).map_err(|_| writer_stopped())
    }

    /// Takes what was done to the tables, if something was.
    pub(crate) fn finished(&mut self) -> Option<IndexOutcome> {
        let outcome = match self.done.try_recv() {
            Ok(outcome) => outcome,
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => IndexOutcome::Changed(Err(writer_stopped())),
        };
        self.busy &= matches!(outcome, IndexOutcome::Merged(_));
        Some(outcome)
    }

    /// Waits for the job that was begun. What was merged before is in its tables.
    ///
    /// # Errors
    /// Those of the job; `ERR_IO` if the thread is gone.
    pub(crate) fn wait(&mut self) -> Result<LeasedReader<Tables>> {
        let outcome = loop {
            match self.done.recv() {
                Ok(IndexOutcome::Changed(outcome)) => break outcome,
                // A damaged index is found by the job as well, or by its readers.
                Ok(IndexOutcome::Merged(_)) => {}
                Err(_) => break Err(writer_stopped()),
            }
        };
        self.busy = false;
        outcome
    }
}

impl DatabaseHandle {
    /// Gives a new, empty index the name of the file, not in use yet. An index in memory is emptied on the
    /// switch.
    ///
    /// # Errors
    /// `ERR_IO`: nothing has changed then, and the new file is removed.
    pub(crate) fn make_empty(&mut self) -> Result<()> {
        if self.is_in_memory() {
            return Ok(());
        }
        let home = self.database_file()?;
        home.check()?;
        let file = home.copy_path();
        directory::remove(&file)?;
        let vault = self.vault().clone();
        let made = catch_storage_panic(|| {
            let db = home.options.builder().create(&file)?;
            reset_index(&db, &vault)?;
            Ok(db)
        });
        let made = made.inspect_err(|_| {
            // The error is reported; a leftover is removed at the next opening.
            let _ = directory::remove(&file);
        })?;
        self.set_copy(made);
        self.rename_copy()
    }

    /// Switches to the empty index.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn take_empty(&mut self) -> Result<()> {
        match self.is_in_memory() {
            true => reset_index(self, self.vault()),
            false => self.switch_to_copy(),
        }
    }
}

/// Does jobs until the handle is dropped, and merges runs in between.
fn serve(
    db: &mut DatabaseHandle,
    jobs: &Receiver<IndexJob>,
    (mut merger, finished): (RunMerger, &Sender<IndexOutcome>),
) {
    while let Some(job) = next_job(db, jobs, (&mut merger, finished)) {
        let changed = match job {
            IndexJob::Fold(fold) => {
                if let Err(error) = catch_storage_panic(|| merger.make_room(db))
                    && finished.send(IndexOutcome::Merged(Err(error))).is_err()
                {
                    break;
                }
                let outcome = apply_change(db, &merger, fold);
                merger.run_added();
                outcome
            }
            IndexJob::Change(change) => {
                merger.abandon();
                apply_change(db, &merger, change)
            }
            IndexJob::Replace(work) => {
                merger.abandon();
                work(db);
                continue;
            }
            IndexJob::Read(work) => {
                work(db);
                continue;
            }
        };
        if finished.send(IndexOutcome::Changed(changed)).is_err() {
            break;
        }
    }
}

/// Waits for the next job, and merges meanwhile; `None` once the handle is dropped.
fn next_job(
    db: &mut DatabaseHandle,
    jobs: &Receiver<IndexJob>,
    (merger, finished): (&mut RunMerger, &Sender<IndexOutcome>),
) -> Option<IndexJob> {
    loop {
        if merger.is_due() {
            match jobs.try_recv() {
                Ok(job) => return Some(job),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => {}
            }
            if let Some(tables) = catch_storage_panic(|| merger.step(db)).transpose() {
                finished.send(IndexOutcome::Merged(tables)).ok()?;
            }
            continue;
        }
        let patience = match (db.has_replaced(), merger.waits_for_idleness()) {
            (true, _) => RELEASE_CHECK,
            (false, true) => IDLE_AFTER,
            (false, false) => return jobs.recv().ok(),
        };
        match receive_within(jobs, patience) {
            Ok(job) => return Some(job),
            Err(RecvTimeoutError::Timeout) if db.has_replaced() => db.close_unread(),
            Err(RecvTimeoutError::Timeout) => merger.set_idle(),
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
}

/// Changes the index and opens a snapshot of the result.
fn apply_change(
    db: &mut DatabaseHandle,
    merger: &RunMerger,
    change: IndexChange,
) -> Result<LeasedReader<Tables>> {
    catch_storage_panic(|| {
        db.close_unread();
        change(db)?;
        merger.open_tables(db)
    })
}

/// Empties an index.
///
/// # Errors
/// `ERR_IO`.
pub(crate) fn reset_index(db: &Database, vault: &Vault) -> Result<()> {
    let mut nonce = [0; 16];
    fill_random(&mut nonce)?;
    in_transaction(db, Durability::Immediate, |txn| {
        index::reset(txn, vault.block_seal().as_deref(), nonce)
    })
}

/// Runs `write` in a transaction of the index and commits it. Quick repair makes each commit save the
/// allocator state, so that opening after a crash need not read every page.
pub(crate) fn in_transaction(
    db: &Database,
    durability: Durability,
    write: impl FnOnce(&WriteTransaction) -> index::Result<()>,
) -> Result<()> {
    let mut txn = db.begin_write()?;
    txn.set_durability(durability)?;
    txn.set_quick_repair(true);
    write(&txn)?;
    txn.commit()?;
    Ok(())
}
