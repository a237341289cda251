//! Threads that follow the truth in the background, so that a search finds little left to read.
//!
//! Each is woken by the writer, gathers what comes within a few milliseconds, and lets searches in
//! between any two of its steps. Nothing waits for one but a writer that is far ahead.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use crate::base::error::{Result, guarded};
use crate::base::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use crate::base::sync::receive_within;
use crate::base::sync::thread::{self, JoinHandle};
use crate::state::view::View;
use crate::write::writer::Shared;

/// How long writes are gathered.
const GATHER: Duration = Duration::from_millis(5);
/// Commits that are gathered at most.
const MANY: usize = 32;
/// How often an idle thread looks whether a search has left it something to do.
const LOOK: Duration = Duration::from_millis(500);

/// What is derived from the truth by reading it again.
pub(crate) trait Follower: Send + Sync {
    /// Does one step from a view. Gives whether there is nothing left to do.
    ///
    /// # Errors
    /// What fails here fails again where somebody searches, and is told there.
    fn step(&self, view: &View) -> Result<bool>;

    /// Follows a view until it is not too far behind it: whoever writes faster than can be followed
    /// waits here.
    ///
    /// # Errors
    /// As [`Follower::step`].
    fn stay_close(&self, view: &View) -> Result<()>;

    /// Brings to disk what is worth it before the store is closed.
    ///
    /// # Errors
    /// As [`Follower::step`]. All of it can be read from the truth again.
    fn settle(&self, view: &View) -> Result<()>;

    /// Whether there is something to do although nobody wrote.
    fn is_wanted(&self) -> bool {
        false
    }

    /// Gives up at once what it is at, if that takes long.
    fn stop(&self) {}
}

/// A thread that follows.
pub(crate) struct Following {
    follower: Arc<dyn Follower>,
    wake: Option<SyncSender<()>>,
    /// Whether the thread should take no further step.
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Following {
    /// Starts the thread.
    ///
    /// # Errors
    /// `ERR_IO` where the system gives no thread.
    pub(crate) fn start(name: &str, follower: Arc<dyn Follower>, shared: &Shared) -> Result<Self> {
        let (wake, woken) = sync_channel(1);
        let (own, shared) = (Arc::clone(&follower), Arc::clone(shared));
        let ended = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&ended);
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || run(&*own, &shared, (&woken, &told)))?;
        Ok(Self { follower, wake: Some(wake), ended, thread: Some(thread) })
    }

    /// Says that there is a new view.
    pub(crate) fn grown(&self, view: &View) {
        if let Some(wake) = &self.wake {
            // A thread that is awake looks again before it sleeps.
            let _ = wake.try_send(());
        }
        let _ = guarded(|| self.follower.stay_close(view));
    }

    /// Brings to disk what is worth it.
    pub(crate) fn settle(&self, view: &View) {
        let _ = guarded(|| self.follower.settle(view));
    }

    /// Ends the thread, and saves what is worth it.
    pub(crate) fn finish(mut self, view: &View) {
        self.end();
        self.settle(view);
    }

    fn end(&mut self) {
        self.wake = None;
        self.ended.store(true, Ordering::Relaxed);
        self.follower.stop();
        if let Some(thread) = self.thread.take() {
            // What a thread that panicked has left undone is read from the truth again.
            let _ = thread.join();
        }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.end();
    }
}

fn run(follower: &dyn Follower, shared: &Shared, (woken, ended): (&Receiver<()>, &AtomicBool)) {
    loop {
        match receive_within(woken, LOOK) {
            Ok(()) => {}
            Err(RecvTimeoutError::Timeout) if follower.is_wanted() => {}
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return,
        }
        // A store that was open for one write leaves the rest to whoever needs it.
        if !gathers(woken) {
            return;
        }
        // Damage is told to whoever searches; the next write tries again.
        while !ended.load(Ordering::Relaxed)
            && let Some(view) = newest(shared)
            && let Ok(false) = guarded(|| follower.step(&view))
        {
            // The next step is from the view that is then the newest.
        }
    }
}

/// Waits until nobody has written for a moment, or many have. Gives whether the store is still open.
fn gathers(woken: &Receiver<()>) -> bool {
    for _ in 0..MANY {
        match receive_within(woken, GATHER) {
            Ok(()) => {}
            Err(RecvTimeoutError::Timeout) => return true,
            Err(RecvTimeoutError::Disconnected) => return false,
        }
    }
    true
}

fn newest(shared: &Shared) -> Option<Arc<View>> {
    shared.read().unwrap_or_else(PoisonError::into_inner).clone()
}
