//! The thread that follows the truth in the background, so that a search finds little left to read.
//!
//! It is woken by the writer, gathers what comes within a few milliseconds, and lets searches in
//! between any two of its steps. Nothing waits for it but a writer that is far ahead.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::{Library, Progress};
use crate::error::{Result, guarded};
use crate::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use crate::sync::receive_within;
use crate::sync::thread::{self, JoinHandle};
use crate::view::View;
use crate::writer::Shared;

/// How long writes are gathered.
const GATHER: Duration = Duration::from_millis(5);
/// Commits that are gathered at most.
const MANY: usize = 32;
/// Grains the full text may be behind before the writer helps.
const MOST_BEHIND: u64 = 16_384;

/// A handle on the thread.
pub(crate) struct Worker {
    library: Arc<Library>,
    wake: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// Starts the thread.
    ///
    /// # Errors
    /// `ERR_IO` where the system gives no thread.
    pub(crate) fn start(library: Arc<Library>, shared: Shared) -> Result<Self> {
        let (wake, woken) = sync_channel(1);
        let own = Arc::clone(&library);
        let thread = thread::Builder::new()
            .name("grainstore-words".to_owned())
            .spawn(move || run(&own, &shared, &woken))?;
        Ok(Self { library, wake: Some(wake), thread: Some(thread) })
    }

    /// Says that there is a new view. Where the full text is far behind, some of it is read here and
    /// now: whoever writes faster than words are read waits for them.
    pub(crate) fn grown(&self, view: &View) {
        if let Some(wake) = &self.wake {
            // A thread that is awake looks again before it sleeps.
            let _ = wake.try_send(());
        }
        // What fails here fails again where somebody searches, and is told there.
        let _ = guarded(|| self.library.stay_close(view));
    }

    /// Ends the thread, and saves what is worth it.
    pub(crate) fn finish(mut self, view: &View) {
        self.stop();
        self.library.finish(view);
    }

    fn stop(&mut self) {
        self.wake = None;
        if let Some(thread) = self.thread.take() {
            // What a thread that panicked has left undone is read from the log again.
            let _ = thread.join();
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Library {
    /// Follows a view until it is not much further behind than it was when it was first read.
    fn stay_close(&self, view: &View) -> Result<()> {
        let last = view.last_sequence()?.get();
        loop {
            let Progress { reached, debt } = &self.progress;
            let behind = last.saturating_sub(reached.load(Ordering::Relaxed));
            if behind <= MOST_BEHIND.saturating_add(debt.load(Ordering::Relaxed)) {
                return Ok(());
            }
            let mut state = self.lock();
            self.step(&mut state, view)?;
            self.make_room(&mut state, view)?;
        }
    }
}

fn run(library: &Library, shared: &Shared, woken: &Receiver<()>) {
    while woken.recv().is_ok() {
        for _ in 0..MANY {
            match receive_within(woken, GATHER) {
                Ok(()) => {}
                Err(RecvTimeoutError::Timeout) => break,
                // A store that was open for one write leaves the words to whoever needs them.
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
        // Damage is told to whoever searches; the next write tries again.
        while let Some(view) = newest(shared)
            && let Ok(false) = guarded(|| work(library, &view))
        {
            // The next step is from the view that is then the newest.
        }
    }
}

/// One step. Gives whether there is nothing more to do.
fn work(library: &Library, view: &View) -> Result<bool> {
    let reached = library.step(&mut library.lock(), view)?;
    if library.fold(view, false)? {
        if let Some(files) = &library.files {
            // What cannot be saved is read from the log again when the store is next opened.
            let _ = library.write(files);
        }
        return Ok(false);
    }
    Ok(reached)
}

fn newest(shared: &Shared) -> Option<Arc<View>> {
    shared.read().unwrap_or_else(PoisonError::into_inner).clone()
}
