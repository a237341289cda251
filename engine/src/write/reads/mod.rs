//! The read log: every call in CAL that read, or was refused to, beside the audit log (CAL 21).
//!
//! What is noted waits in memory for a second, or until there are 256, and is then written as one group by a
//! thread of its own, with one hash for all of them. Once a second the file is synced and its end signed: a
//! crash loses the reads of its last second. The audit log notes where the read log stands when a file is
//! full and when the store is closed, so that what is cut off later is found. It is no part of the truth.
//!
//! - `group`: entries as bytes. `segment`: files of groups. `head`: the signed end. `files`: where it goes
//!   on. `asked`: what sessions are shown of it. `examine`: whether it is what was written.

mod asked;
mod examine;
mod files;
mod group;
mod head;
mod segment;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use crate::base::clock::Clock;
use crate::base::error::{Result, guarded};
use crate::base::pending::stopped;
use crate::base::sync::thread::{self, JoinHandle};
use crate::base::sync::{Condvar, Mutex, MutexGuard};
use crate::disk::anchor::Anchor;
use crate::rules::preset::{Noted, Regime};
use crate::search::embed::Requests;
use crate::state::audit::{AuditRecord, Chain, Operation, ReadsNote};
use crate::write::writer::Request;

pub use asked::ReadsRecorded;
pub(crate) use examine::examine;
use files::{Bounds, Files};
pub(crate) use group::ReadNote;

/// How long a read waits to be written, and what was written to be signed.
const AGE: Duration = Duration::from_secs(1);
/// Reads that wait at most: whoever reads on writes them first.
const MOST_WAITING: usize = 16 * group::MOST;
/// The directory of the log in that of its store.
const DIRECTORY: &str = "reads";

/// The directory of the read log of a store.
pub(crate) fn directory_of(store: &Path) -> PathBuf {
    store.join(DIRECTORY)
}

/// The read log of an open store.
pub(crate) struct ReadLog {
    /// Whether reads are recorded; if not, what was recorded before can be read.
    records: bool,
    waiting: Mutex<Waiting>,
    wakes: Condvar,
    files: Mutex<Files>,
    regime: Arc<Regime>,
    requests: Requests,
    clock: Arc<dyn Clock>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Who reads files that are to stay until then.
    held: AtomicUsize,
}

/// Somebody reads the files.
pub(crate) struct Held<'h>(&'h AtomicUsize);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// What waits to be written.
#[derive(Default)]
struct Waiting {
    notes: Vec<ReadNote>,
    /// When the first of them was noted.
    since: Option<Instant>,
    /// When a disk that took none is tried again.
    not_before: Option<Instant>,
    /// Reads no disk took, and that no group tells of yet.
    lost: u64,
    /// As many since the store was opened.
    lost_so_far: u64,
    has_thread: bool,
    closed: bool,
}

/// What the thread is to do.
enum Due {
    Write,
    Sign,
    End,
}

/// What a read log works with.
pub(crate) struct Place<'p> {
    pub(crate) store: &'p Path,
    pub(crate) store_id: [u8; 16],
    pub(crate) chain: Chain,
    pub(crate) regime: &'p Arc<Regime>,
    pub(crate) requests: &'p Requests,
    pub(crate) clock: &'p Arc<dyn Clock>,
}

impl ReadLog {
    /// The log of a store. Nothing is written before the first read.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn of(place: Place<'_>, records: bool) -> Result<Arc<Self>> {
        let Place { store, store_id, chain, regime, requests, clock } = place;
        let anchor = Anchor::at(store)?;
        let dir = directory_of(anchor.path());
        let files = Files::new(dir, store_id, chain, Bounds::default()).anchored(anchor);
        Ok(Arc::new(Self {
            records,
            waiting: Mutex::default(),
            wakes: Condvar::new(),
            files: Mutex::new(files),
            regime: Arc::clone(regime),
            requests: Arc::clone(requests),
            clock: Arc::clone(clock),
            thread: Mutex::new(None),
            held: AtomicUsize::new(0),
        }))
    }

    /// Whether reads are recorded.
    pub(crate) fn records(&self) -> bool {
        self.records
    }

    /// Reads that no disk took since the store was opened.
    pub(crate) fn lost_so_far(&self) -> u64 {
        self.waiting().lost_so_far
    }

    /// Notes a read.
    ///
    /// # Errors
    /// `ERR_IO` once the store is closed.
    pub(crate) fn push(self: &Arc<Self>, note: ReadNote) -> Result<()> {
        let mut waiting = self.waiting();
        if waiting.closed {
            return Err(stopped());
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
            1 | group::MOST => self.wakes.notify_one(),
            // A failure is told by what reads the log, and what was read stays read.
            count if count >= MOST_WAITING => drop(self.write()),
            _ => {}
        }
        Ok(())
    }

    /// Starts the thread. Where the system gives none, who reads writes what waits.
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
            let to_sign = signed.map(|signed: Instant| signed + AGE);
            match self.due(to_sign) {
                Due::End => return,
                Due::Write => drop(guarded(|| self.write())),
                Due::Sign => {}
            }
            let late = to_sign.is_none_or(|due| Instant::now() >= due);
            let is_unsigned = self.files().is_unsigned();
            if is_unsigned && late {
                // Tried again with the next group.
                let _ = guarded(|| self.files().settle(self.clock.now()));
                signed = Some(Instant::now());
            } else if !is_unsigned && late {
                signed = None;
            }
        }
    }

    /// Waits until there is something to do: a group to write, or at that time to sign.
    fn due(&self, to_sign: Option<Instant>) -> Due {
        let mut waiting = self.waiting();
        loop {
            let now = Instant::now();
            let full = waiting.notes.len() >= group::MOST;
            let to_write = waiting.since.map(|since| if full { since } else { since + AGE });
            let to_write = to_write.max(waiting.not_before.filter(|_| to_write.is_some()));
            if waiting.closed {
                return Due::End;
            }
            if to_write.is_some_and(|due| now >= due) {
                return Due::Write;
            }
            if to_sign.is_some_and(|due| now >= due) {
                return Due::Sign;
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

    /// Writes what waits. What no disk takes waits on, as much as may.
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
        let keeps_all = self.regime.rules().settings.keep_reads.value;
        let mut written = 0;
        for group in notes.chunks(group::MOST) {
            match files.append(group, lost, keeps_all) {
                Ok(told) => {
                    (lost, written) = (0, written + group.len());
                    if let Some(told) = told {
                        self.tell(told);
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

    /// Lets what was not written wait on: the newest of it, where it is too much.
    fn put_back(&self, mut notes: Vec<ReadNote>, written: usize, lost: u64) {
        notes.drain(..written);
        let mut waiting = self.waiting();
        notes.append(&mut waiting.notes);
        let too_many = notes.len().saturating_sub(MOST_WAITING / 2);
        notes.drain(..too_many);
        waiting.notes = notes;
        let now = Instant::now();
        (waiting.since, waiting.not_before) = (Some(now), Some(now + AGE));
        let too_many = group::size(too_many);
        waiting.lost = waiting.lost.saturating_add(lost).saturating_add(too_many);
        waiting.lost_so_far = waiting.lost_so_far.saturating_add(too_many);
    }

    /// Hands the audit log an entry, for the writer to write.
    fn tell(&self, note: ReadsNote) {
        let record = AuditRecord::of(Operation::ReadLog(note), Vec::new());
        if self.regime.notes().push(record, self.clock.now()) == Noted::Kept {
            return;
        }
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(requests) = &*requests {
            // A queue that is full wakes the writer as well.
            let _ = requests.try_send(Request::Count);
        }
    }

    /// Keeps everything until this is dropped.
    pub(crate) fn hold(&self) -> Held<'_> {
        self.held.fetch_add(1, Ordering::AcqRel);
        Held(&self.held)
    }

    /// Removes what made room, once the audit log says so.
    pub(crate) fn trim(&self) {
        if self.held.load(Ordering::Acquire) > 0 {
            return;
        }
        // What stays is more than there need be.
        let _ = guarded(|| self.files().trim());
    }

    /// Writes what waits, syncs it and signs where it ends.
    ///
    /// # Errors
    /// As [`ReadLog::write`].
    pub(crate) fn settle(&self) -> Result<()> {
        self.write()?;
        self.files().settle(self.clock.now())
    }

    /// Takes no further read, and writes what waits. Gives what the audit log is to be told.
    pub(crate) fn close(&self) -> Option<ReadsNote> {
        self.waiting().closed = true;
        self.wakes.notify_one();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // One that panicked has written what it could.
            let _ = thread.join();
        }
        let told = guarded(|| {
            self.settle()?;
            self.files().farewell()
        });
        told.unwrap_or_default()
    }

    /// Copies what is there into the directory of another store.
    ///
    /// # Errors
    /// As [`ReadLog::settle`].
    pub(crate) fn copy(&self, to: &Path) -> Result<()> {
        self.settle()?;
        let files = self.files();
        files::copy(files.place()?, &directory_of(to))
    }

    /// The directory of the log, of this store and of no other that lies where this one was.
    ///
    /// # Errors
    /// `ERR_IO` where the store was moved.
    pub(crate) fn place(&self) -> Result<PathBuf> {
        Ok(self.files().place()?.to_owned())
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
