//! Threads that follow the truth in the background, so that a search has little left to read.
//!
//! Each is woken by the writer, batches the commits of a few milliseconds, and lets searches run between any
//! two of its steps. Only a writer that is far ahead waits for one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use crate::base::error::{Result, catch_storage_panic};
use crate::base::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use crate::base::sync::receive_within;
use crate::base::sync::thread::{self, JoinHandle};
use crate::state::view::SharedView;
use crate::state::view::View;

/// Time within which commits are batched.
const BATCH_WINDOW: Duration = Duration::from_millis(5);
/// Maximum number of commits in a batch.
const MAX_BATCHED_COMMITS: usize = 32;
/// Interval at which an idle thread checks for work left by a search.
const IDLE_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Derived data that is kept up to date by reading the truth.
pub(crate) trait Follower: Send + Sync {
    /// Does one step towards a view. Returns `true` if there is no more to do.
    ///
    /// # Errors
    /// An error here recurs in the next search, which reports it.
    fn step(&self, view: &View) -> Result<bool>;

    /// Follows a view until the lag is small enough. This is the back-pressure on a writer that is faster
    /// than the follower.
    ///
    /// # Errors
    /// The errors of [`Follower::step`].
    fn limit_lag(&self, view: &View) -> Result<()>;

    /// Saves to disk what is worth saving before the store is closed.
    ///
    /// # Errors
    /// The errors of [`Follower::step`]. Unsaved data can be read from the truth again.
    fn save(&self, view: &View) -> Result<()>;

    /// Returns `true` if there is work without a new commit.
    fn has_pending_work(&self) -> bool {
        false
    }

    /// Aborts a long-running step.
    fn stop(&self) {}
}

/// A background thread that runs a [`Follower`].
pub(crate) struct FollowerThread {
    follower: Arc<dyn Follower>,
    wake: Option<SyncSender<()>>,
    /// Set when the thread must take no further step.
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl FollowerThread {
    /// Starts the thread.
    ///
    /// # Errors
    /// `ERR_IO` if the system cannot create a thread.
    pub(crate) fn start(
        name: &str,
        follower: Arc<dyn Follower>,
        shared: &SharedView,
    ) -> Result<Self> {
        let (wake, woken) = sync_channel(1);
        let (own, shared) = (Arc::clone(&follower), Arc::clone(shared));
        let ended = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&ended);
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || run(&*own, &shared, (&woken, &told)))?;
        Ok(Self { follower, wake: Some(wake), ended, thread: Some(thread) })
    }

    /// Tells the thread that there is a new view, and waits if it is too far behind.
    pub(crate) fn notify(&self, view: &View) {
        if let Some(wake) = &self.wake {
            // A full channel means that the thread is awake; it checks again before it sleeps.
            let _ = wake.try_send(());
        }
        let _ = catch_storage_panic(|| self.follower.limit_lag(view));
    }

    /// Returns `true` if this is the thread of that follower.
    pub(crate) fn runs(&self, follower: &Arc<impl Follower>) -> bool {
        std::ptr::addr_eq(Arc::as_ptr(&self.follower), Arc::as_ptr(follower))
    }

    /// Saves to disk what is worth saving.
    pub(crate) fn save(&self, view: &View) {
        let _ = catch_storage_panic(|| self.follower.save(view));
    }

    /// Ends the thread, and saves what is worth saving.
    pub(crate) fn finish(mut self, view: &View) {
        self.end();
        self.save(view);
    }

    fn end(&mut self) {
        self.wake = None;
        self.ended.store(true, Ordering::Relaxed);
        self.follower.stop();
        if let Some(thread) = self.thread.take() {
            // What a panicked thread left undone is read from the truth again.
            let _ = thread.join();
        }
    }
}

impl Drop for FollowerThread {
    fn drop(&mut self) {
        self.end();
    }
}

fn run(follower: &dyn Follower, shared: &SharedView, (woken, ended): (&Receiver<()>, &AtomicBool)) {
    loop {
        match receive_within(woken, IDLE_POLL_INTERVAL) {
            Ok(()) => {}
            Err(RecvTimeoutError::Timeout) if follower.has_pending_work() => {}
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return,
        }
        // A store that was open for one write leaves the rest to the next reader.
        if !batch_commits(woken) {
            return;
        }
        // Damage is reported by searches; the next write tries again.
        while !ended.load(Ordering::Relaxed)
            && let Some(view) = latest_view(shared)
            && let Ok(false) = catch_storage_panic(|| follower.step(&view))
        {
            // The next step uses the newest view at that time.
        }
    }
}

/// Waits for a pause in the commits, or for [`MAX_BATCHED_COMMITS`] of them. Returns `false` if the store was
/// closed.
fn batch_commits(woken: &Receiver<()>) -> bool {
    for _ in 0..MAX_BATCHED_COMMITS {
        match receive_within(woken, BATCH_WINDOW) {
            Ok(()) => {}
            Err(RecvTimeoutError::Timeout) => return true,
            Err(RecvTimeoutError::Disconnected) => return false,
        }
    }
    true
}

fn latest_view(shared: &SharedView) -> Option<Arc<View>> {
    shared.read().unwrap_or_else(PoisonError::into_inner).clone()
}
