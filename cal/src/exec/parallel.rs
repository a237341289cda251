//! A scheduler that runs sources of an ASSEMBLE ahead of their turn on helper threads.
//!
//! It decides what runs where and when, and does not interpret the outcome: `sources` decides in the turn of
//! a source if the outcome of an early run counts.

use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, available_parallelism};

use super::ExecuteOptions;
use super::source_runner::{SourceOutcome, SourceRunner};
use crate::check::plan::SourcePlan;

impl ExecuteOptions<'_> {
    /// Returns the threads that may work for one statement, including that of the caller: the available
    /// parallelism.
    pub(super) fn threads(&self) -> usize {
        static HERE: OnceLock<usize> = OnceLock::new();
        #[cfg(test)]
        if let Some(threads) = self.test_limits.threads {
            return threads;
        }
        *HERE.get_or_init(|| available_parallelism().map_or(1, NonZero::get))
    }

    /// Acquires a slot for a helper thread; `None` if the statements of this process already have as many as
    /// the available parallelism.
    fn helper_slot(&self) -> Option<HelperSlot> {
        #[cfg(test)]
        if self.test_limits.threads.is_some() {
            return HelperSlot::acquire(usize::MAX);
        }
        HelperSlot::acquire(self.threads())
    }
}

/// Helper threads of this process that run sources now.
static ACTIVE_HELPERS: AtomicUsize = AtomicUsize::new(0);

/// A counted slot for a helper thread, released on drop.
struct HelperSlot(());

impl HelperSlot {
    /// Acquires a slot if fewer than `most` are taken.
    fn acquire(most: usize) -> Option<Self> {
        let more = |helpers| (helpers < most).then_some(helpers + 1);
        ACTIVE_HELPERS
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .ok()
            .map(|_| Self(()))
    }
}

impl Drop for HelperSlot {
    fn drop(&mut self) {
        ACTIVE_HELPERS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The sources of an assembly and their progress, shared by its threads.
pub(super) struct SourceScheduler<'a> {
    runner: SourceRunner<'a>,
    sources: &'a [SourcePlan],
    /// Bytes that a source run ahead may hold.
    share_bytes: usize,
    states: Mutex<Vec<SourceState>>,
    /// Signalled when a source has finished.
    finished: Condvar,
}

/// The progress of a source.
enum SourceState {
    /// Not started. Only an expensive source runs ahead.
    Waiting {
        long: bool,
    },
    Running,
    Ended(thread::Result<SourceOutcome>),
}

/// An instruction to the caller's thread about the source whose turn it is.
pub(super) enum Turn {
    /// Run the source.
    RunNow,
    /// Run this other source, since a helper is running the one in turn.
    RunOther(usize),
    /// Use the outcome of the source.
    Finished(thread::Result<SourceOutcome>),
}

impl<'a> SourceScheduler<'a> {
    /// Creates a scheduler in which the sources marked expensive may run ahead and hold `share` bytes each.
    pub(super) fn new(
        part: SourceRunner<'a>,
        sources: &'a [SourcePlan],
        share: usize,
        long: impl Iterator<Item = bool>,
    ) -> Self {
        let states = Mutex::new(long.map(|long| SourceState::Waiting { long }).collect());
        Self { runner: part, sources, share_bytes: share, states, finished: Condvar::new() }
    }

    /// Calls `turns` while up to `helpers` threads run sources ahead. All of them have ended when it returns
    /// or unwinds; what they are still running is cancelled.
    pub(super) fn with_helpers<T>(&self, helpers: usize, turns: impl FnOnce() -> T) -> T {
        thread::scope(|scope| {
            let _over = CancelOnDrop(&self.runner);
            for _ in 0..helpers {
                // Without a slot, or a thread, the remaining threads do the work.
                let Some(place) = self.runner.options.helper_slot() else { break };
                let helper = thread::Builder::new().name("cal-source".to_owned());
                let help = move || {
                    self.run_helper();
                    drop(place);
                };
                if helper.spawn_scoped(scope, help).is_err() {
                    break;
                }
            }
            turns()
        })
    }

    /// Returns the instruction for the source whose turn it is; blocks if there is nothing to do.
    pub(super) fn turn(&self, at: usize) -> Turn {
        let mut states = self.lock();
        loop {
            let Some(state) = states.get_mut(at) else { return Turn::RunNow };
            match std::mem::replace(state, SourceState::Running) {
                SourceState::Waiting { .. } => return Turn::RunNow,
                SourceState::Ended(ended) => return Turn::Finished(ended),
                SourceState::Running => {}
            }
            if let Some(other) = claim_next(&mut states) {
                return Turn::RunOther(other);
            }
            states = self.finished.wait(states).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Runs a source claimed ahead of its turn. A panic is caught and resumed in its turn.
    pub(super) fn run(&self, at: usize) {
        let Some(source) = self.sources.get(at) else { return };
        let run = || self.runner.run(source, 0, self.share_bytes);
        let ended = catch_unwind(AssertUnwindSafe(run));
        if let Some(state) = self.lock().get_mut(at) {
            *state = SourceState::Ended(ended);
        }
        self.finished.notify_all();
    }

    /// Runs sources ahead until all are claimed or the work is cancelled.
    fn run_helper(&self) {
        while self.runner.cancel.stop_reason().is_none() {
            let taken = claim_next(&mut self.lock());
            let Some(at) = taken else { break };
            self.run(at);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<SourceState>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Claims the first expensive source that has not started.
fn claim_next(states: &mut [SourceState]) -> Option<usize> {
    let at =
        states.iter().position(|state| matches!(state, SourceState::Waiting { long: true }))?;
    *states.get_mut(at)? = SourceState::Running;
    Some(at)
}

/// A guard that cancels the sources still running ahead once the turns are over, on return and on unwinding.
struct CancelOnDrop<'o, 'p>(&'o SourceRunner<'p>);

impl Drop for CancelOnDrop<'_, '_> {
    fn drop(&mut self) {
        self.0.cancel.cancel_part();
    }
}
