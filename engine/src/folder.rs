//! The thread that owns the derived index on disk: it folds there while the writer goes on.
//!
//! One job at a time, begun by the writer and waited for by the writer; what a job has committed
//! comes back as new tables. Knows nothing of the truth and publishes nothing.

use grainstore_index::{self as index, Frozen, Tables};
use redb::{Database, ReadTransaction, ReadableDatabase, WriteTransaction};

use crate::error::{Result, guarded};
use crate::pending::stopped;
use crate::source::{Leased, Source};
use crate::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use crate::sync::thread::{self, JoinHandle};

/// What is done to the index, between two snapshots of it.
type Job = Box<dyn FnOnce(&mut Source) -> Result<()> + Send>;

/// A handle on the thread. Dropping it waits for the job under way.
pub(crate) struct Folder {
    /// Taken when it is dropped, so that the thread ends.
    jobs: Option<Sender<Job>>,
    done: Receiver<Result<Leased<Tables>>>,
    thread: Option<JoinHandle<()>>,
    busy: bool,
}

impl Drop for Folder {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has released its database all the same.
            let _ = thread.join();
        }
    }
}

impl Folder {
    /// Starts the thread over this database.
    ///
    /// # Errors
    /// `ERR_IO` where the system gives no thread.
    pub(crate) fn start(db: Source) -> Result<Self> {
        let (jobs, incoming) = channel();
        let (finished, done) = channel();
        let thread =
            thread::Builder::new().name("grainstore-folder".to_owned()).spawn(move || {
                let mut db = db;
                for job in incoming {
                    let outcome = carry_out(&mut db, job);
                    if finished.send(outcome).is_err() {
                        break;
                    }
                }
            })?;
        Ok(Self { jobs: Some(jobs), done, thread: Some(thread), busy: false })
    }

    /// Whether a job was begun whose outcome nobody has taken.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy
    }

    /// Begins to write the frozen part of a tail into the tables.
    ///
    /// # Errors
    /// `ERR_IO` once the thread is gone.
    pub(crate) fn fold(&mut self, frozen: Frozen) -> Result<()> {
        self.begin(Box::new(move |db| {
            in_transaction(db, |txn| index::fold(txn, &frozen).map(drop))
        }))
    }

    /// Begins to empty the index.
    ///
    /// # Errors
    /// `ERR_IO` once the thread is gone.
    pub(crate) fn reset(&mut self) -> Result<()> {
        self.begin(Box::new(|db| in_transaction(db, index::reset)))
    }

    /// A snapshot of the index, of an idle folder.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub(crate) fn snapshot(&mut self) -> Result<Leased<ReadTransaction>> {
        let (sender, taken) = channel();
        self.begin(Box::new(move |db| {
            // Whoever asked waits below.
            let _ = sender.send(db.lease(db.begin_read()?));
            Ok(())
        }))?;
        self.wait()?;
        taken.recv().map_err(|_| stopped())
    }

    /// Begins a job. The one before must have been waited for.
    ///
    /// # Errors
    /// `ERR_IO` once the thread is gone.
    pub(crate) fn begin(&mut self, job: Job) -> Result<()> {
        let jobs = self.jobs.as_ref().ok_or_else(stopped)?;
        jobs.send(job).map_err(|_| stopped())?;
        self.busy = true;
        Ok(())
    }

    /// What became of the job, if it has ended.
    pub(crate) fn finished(&mut self) -> Option<Result<Leased<Tables>>> {
        let outcome = match self.done.try_recv() {
            Ok(outcome) => outcome,
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => Err(stopped()),
        };
        self.busy = false;
        Some(outcome)
    }

    /// Waits for the job that was begun.
    ///
    /// # Errors
    /// Those of the job; `ERR_IO` once the thread is gone.
    pub(crate) fn wait(&mut self) -> Result<Leased<Tables>> {
        let outcome = self.done.recv().unwrap_or_else(|_| Err(stopped()));
        self.busy = false;
        outcome
    }
}

/// Runs a job and opens what it left.
fn carry_out(db: &mut Source, job: Job) -> Result<Leased<Tables>> {
    guarded(|| {
        db.release();
        job(db)?;
        Ok(db.lease(Tables::open(db.begin_read()?)))
    })
}

/// A commit of the index. It keeps what a crash would otherwise have to find out by reading every
/// page, so that opening after one is quick.
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
