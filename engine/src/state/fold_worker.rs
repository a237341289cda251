//! The thread that owns the derived index on disk and folds into it while the writer goes on.
//!
//! One job at a time, begun and awaited by the writer; the result of a committed job is a new snapshot of the
//! tables. Between jobs it closes replaced databases, of the truth as well, once their last readers are gone.
//! Knows nothing of the contents of the truth and publishes nothing.

use std::time::Duration;

use grainstore_index::{self as index, FrozenTail, Tables};
use redb::{Database, ReadTransaction, ReadableDatabase, WriteTransaction};

use crate::base::error::{Result, catch_storage_panic};
use crate::base::pending::writer_stopped;
use crate::base::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use crate::base::sync::receive_within;
use crate::base::sync::thread::{self, JoinHandle};
use crate::disk::database::{DatabaseHandle, LeasedReader, ReplacedDatabase};
use crate::disk::directory;
use crate::disk::layout::AuditHead;

/// Interval at which an idle thread checks for remaining readers of replaced databases.
const RELEASE_CHECK: Duration = Duration::from_millis(50);

/// A change of the index between two snapshots of it.
type IndexChange = Box<dyn FnOnce(&mut DatabaseHandle) -> Result<()> + Send>;

/// A job for the thread.
enum IndexJob {
    /// Changes the index; the result is a new snapshot of the tables.
    Change(IndexChange),
    /// Leaves the tables as they are, and sends its result itself.
    Detached(Box<dyn FnOnce(&mut DatabaseHandle) + Send>),
}

/// A handle of the thread. Dropping it waits for the running job.
pub(crate) struct FoldWorker {
    /// Taken on drop, which ends the thread.
    jobs: Option<Sender<IndexJob>>,
    done: Receiver<Result<LeasedReader<Tables>>>,
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
    /// Starts the thread for this database.
    ///
    /// # Errors
    /// `ERR_IO` if the system cannot create a thread.
    pub(crate) fn start(db: DatabaseHandle) -> Result<Self> {
        let (jobs, incoming) = channel();
        let (finished, done) = channel();
        let thread =
            thread::Builder::new().name("grainstore-folder".to_owned()).spawn(move || {
                let mut db = db;
                while let Some(job) = next_job(&mut db, &incoming) {
                    match job {
                        IndexJob::Change(change) => {
                            if finished.send(apply_change(&mut db, change)).is_err() {
                                break;
                            }
                        }
                        IndexJob::Detached(work) => work(&mut db),
                    }
                }
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
        self.begin(Box::new(move |db| {
            let vault = db.vault().clone();
            in_transaction(db, |txn| {
                let seal = vault.row_seal();
                index::fold(txn, &frozen, seal.as_deref(), &history.encode()).map(drop)
            })
        }))
    }

    /// Begins to note this history in tables that were folded before. The previous change must have been awaited.
    ///
    /// # Errors
    /// `ERR_IO` if the thread is gone.
    pub(crate) fn mark_history(&mut self, history: AuditHead) -> Result<()> {
        self.begin(Box::new(move |db| {
            let vault = db.vault().clone();
            in_transaction(db, |txn| {
                index::mark_history(txn, vault.row_seal().as_deref(), &history.encode())
            })
        }))
    }

    /// Returns a snapshot of the index. The thread must be idle.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub(crate) fn snapshot(&mut self) -> Result<LeasedReader<ReadTransaction>> {
        self.aside(|db| Ok(db.lease(db.begin_read()?)))
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
        let (sender, outcome) = channel();
        self.ask(IndexJob::Detached(Box::new(move |db| {
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

    /// Takes the outcome of the job if it has ended.
    pub(crate) fn finished(&mut self) -> Option<Result<LeasedReader<Tables>>> {
        let outcome = match self.done.try_recv() {
            Ok(outcome) => outcome,
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => Err(writer_stopped()),
        };
        self.busy = false;
        Some(outcome)
    }

    /// Waits for the job that was begun.
    ///
    /// # Errors
    /// Those of the job; `ERR_IO` if the thread is gone.
    pub(crate) fn wait(&mut self) -> Result<LeasedReader<Tables>> {
        let outcome = self.done.recv().unwrap_or_else(|_| Err(writer_stopped()));
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
            in_transaction(&db, |txn| index::reset(txn, vault.row_seal().as_deref()))?;
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
            true => {
                in_transaction(self, |txn| index::reset(txn, self.vault().row_seal().as_deref()))
            }
            false => self.switch_to_copy(),
        }?;
        self.vault().set_index_replaced();
        Ok(())
    }
}

/// Waits for the next job; `None` once the handle is dropped.
fn next_job(db: &mut DatabaseHandle, jobs: &Receiver<IndexJob>) -> Option<IndexJob> {
    while db.has_replaced() {
        match receive_within(jobs, RELEASE_CHECK) {
            Ok(job) => return Some(job),
            Err(RecvTimeoutError::Timeout) => db.close_unread(),
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
    jobs.recv().ok()
}

/// Changes the index and opens a snapshot of the result.
fn apply_change(db: &mut DatabaseHandle, change: IndexChange) -> Result<LeasedReader<Tables>> {
    catch_storage_panic(|| {
        db.close_unread();
        change(db)?;
        // Before the snapshot: the seal of an older index checks a newer one anew, and not the reverse.
        let seal = db.vault().row_seal();
        Ok(db.lease(Tables::open(db.begin_read()?, seal)))
    })
}

/// Runs `write` in a transaction of the index and commits it. Quick repair makes each commit save the
/// allocator state, so that opening after a crash need not read every page.
pub(crate) fn in_transaction(
    db: &Database,
    write: impl FnOnce(&WriteTransaction) -> index::Result<()>,
) -> Result<()> {
    let mut txn = db.begin_write()?;
    txn.set_quick_repair(true);
    write(&txn)?;
    txn.commit()?;
    Ok(())
}
