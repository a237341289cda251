//! The thread that owns the derived index on disk: it folds there while the writer goes on.
//!
//! One job at a time, begun by the writer and waited for by the writer; what a job has committed
//! comes back as new tables. Between jobs it closes exchanged databases, of the truth as well, once
//! their last readers have gone. Knows nothing of what the truth holds and publishes nothing.

use std::time::Duration;

use grainstore_index::{self as index, Frozen, Tables};
use redb::{Database, ReadTransaction, ReadableDatabase, WriteTransaction};

use crate::base::error::{Result, guarded};
use crate::base::pending::stopped;
use crate::base::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use crate::base::sync::receive_within;
use crate::base::sync::thread::{self, JoinHandle};
use crate::disk::source::{Former, Leased, Source};

/// How often an idle folder looks whether exchanged databases are still read from.
const RELEASE_CHECK: Duration = Duration::from_millis(50);

/// What is done to the index, between two snapshots of it.
type Change = Box<dyn FnOnce(&mut Source) -> Result<()> + Send>;

/// What the thread is asked for.
enum Job {
    /// New tables come of it.
    Change(Change),
    /// The tables stay as they are; it answers by itself.
    Aside(Box<dyn FnOnce(&mut Source) + Send>),
}

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
                while let Some(job) = next(&mut db, &incoming) {
                    match job {
                        Job::Change(change) => {
                            if finished.send(carry_out(&mut db, change)).is_err() {
                                break;
                            }
                        }
                        Job::Aside(work) => work(&mut db),
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

    /// A snapshot of the index, of an idle folder.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub(crate) fn snapshot(&mut self) -> Result<Leased<ReadTransaction>> {
        self.aside(|db| Ok(db.lease(db.begin_read()?)))
    }

    /// Closes exchanged databases that nobody reads from any more.
    ///
    /// # Errors
    /// `ERR_IO` once the thread is gone.
    pub(crate) fn release(&mut self) -> Result<()> {
        self.adopt(Vec::new())
    }

    /// Takes exchanged databases, to close each once nobody reads from it any more.
    ///
    /// # Errors
    /// `ERR_IO` once the thread is gone.
    pub(crate) fn adopt(&mut self, former: Vec<Former>) -> Result<()> {
        self.aside(|db| {
            db.adopt(former);
            db.release();
            Ok(())
        })
    }

    /// Does something beside the tables, which need not be readable, and waits for it. It comes
    /// after a job that was begun, whose outcome can still be taken.
    ///
    /// # Errors
    /// Those of `work`, `ERR_INTEGRITY` where it panicked; `ERR_IO` once the thread is gone.
    pub(crate) fn aside<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Source) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (sender, outcome) = channel();
        self.ask(Job::Aside(Box::new(move |db| {
            // Whoever asked waits below.
            let _ = sender.send(guarded(|| work(db)));
        })))?;
        outcome.recv().unwrap_or_else(|_| Err(stopped()))
    }

    /// Begins to change the index. The one before must have been waited for.
    ///
    /// # Errors
    /// `ERR_IO` once the thread is gone.
    pub(crate) fn begin(&mut self, change: Change) -> Result<()> {
        self.ask(Job::Change(change))?;
        self.busy = true;
        Ok(())
    }

    fn ask(&self, job: Job) -> Result<()> {
        let jobs = self.jobs.as_ref().ok_or_else(stopped)?;
        jobs.send(job).map_err(|_| stopped())
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

/// The next job; nothing once nobody can ask any more.
fn next(db: &mut Source, jobs: &Receiver<Job>) -> Option<Job> {
    while db.has_former() {
        match receive_within(jobs, RELEASE_CHECK) {
            Ok(job) => return Some(job),
            Err(RecvTimeoutError::Timeout) => db.release(),
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
    jobs.recv().ok()
}

/// Changes the index and opens what that left.
fn carry_out(db: &mut Source, change: Change) -> Result<Leased<Tables>> {
    guarded(|| {
        db.release();
        change(db)?;
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
