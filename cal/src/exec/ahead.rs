//! Sources of an ASSEMBLE that run before it is their turn, on threads of their own.
//!
//! Knows who runs what and when, and nothing of what comes of it: whether a source that ran ahead counts
//! is decided when its turn comes (`sources`).

use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, available_parallelism};

use super::Options;
use super::part::{Ended, Part};
use crate::check::plan::SourcePlan;

impl Options<'_> {
    /// How many threads may work for one statement, the caller's among them: as many as run at once here.
    pub(super) fn threads(&self) -> usize {
        static HERE: OnceLock<usize> = OnceLock::new();
        #[cfg(test)]
        if let Some(threads) = self.given.threads {
            return threads;
        }
        *HERE.get_or_init(|| available_parallelism().map_or(1, NonZero::get))
    }

    /// A place for a thread that helps, where the statements of this process do not have as many already
    /// as run at once.
    fn helper(&self) -> Option<Place> {
        #[cfg(test)]
        if self.given.threads.is_some() {
            return Place::among(usize::MAX);
        }
        Place::among(self.threads())
    }
}

/// Threads of this process that run sources ahead.
static HELPERS: AtomicUsize = AtomicUsize::new(0);

/// A place among them, until it is dropped.
struct Place(());

impl Place {
    /// One where there are fewer than `most`.
    fn among(most: usize) -> Option<Self> {
        let more = |helpers| (helpers < most).then_some(helpers + 1);
        HELPERS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok().map(|_| Self(()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        HELPERS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The sources of an assembly while they run.
pub(super) struct Ahead<'a> {
    part: Part<'a>,
    sources: &'a [SourcePlan],
    /// Bytes that one which runs ahead may hold.
    share: usize,
    states: Mutex<Vec<State>>,
    /// Told of when one has ended.
    ended: Condvar,
}

/// How far a source is.
enum State {
    /// Nobody runs it. Only one that takes long runs ahead.
    Waiting {
        long: bool,
    },
    Running,
    Ended(thread::Result<Ended>),
}

/// What the caller's thread does for the source whose turn it is.
pub(super) enum Turn {
    /// Run it.
    Now,
    /// Run this other one meanwhile: somebody is at it.
    Meanwhile(usize),
    /// Look at what came of it.
    Ended(thread::Result<Ended>),
}

impl<'a> Ahead<'a> {
    /// Nothing runs yet; those that take long may run ahead and hold `share` bytes each.
    pub(super) fn new(
        part: Part<'a>,
        sources: &'a [SourcePlan],
        share: usize,
        long: impl Iterator<Item = bool>,
    ) -> Self {
        let states = Mutex::new(long.map(|long| State::Waiting { long }).collect());
        Self { part, sources, share, states, ended: Condvar::new() }
    }

    /// Takes the turns of the sources while so many more threads run ahead. None of them is there any
    /// longer when it returns, or unwinds; what they run then is stopped.
    pub(super) fn while_helped<T>(&self, helpers: usize, turns: impl FnOnce() -> T) -> T {
        thread::scope(|scope| {
            let _over = Over(&self.part);
            for _ in 0..helpers {
                // Without it the others do its work.
                let Some(place) = self.part.options.helper() else { break };
                let helper = thread::Builder::new().name("cal-source".to_owned());
                let help = move || {
                    self.help();
                    drop(place);
                };
                if helper.spawn_scoped(scope, help).is_err() {
                    break;
                }
            }
            turns()
        })
    }

    /// What to do for the source whose turn it is; waits where there is nothing to do.
    pub(super) fn turn(&self, at: usize) -> Turn {
        let mut states = self.lock();
        loop {
            let Some(state) = states.get_mut(at) else { return Turn::Now };
            match std::mem::replace(state, State::Running) {
                State::Waiting { .. } => return Turn::Now,
                State::Ended(ended) => return Turn::Ended(ended),
                State::Running => {}
            }
            if let Some(other) = take(&mut states) {
                return Turn::Meanwhile(other);
            }
            states = self.ended.wait(states).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Runs a source that was taken ahead of its turn. Its panic is kept until then.
    pub(super) fn run(&self, at: usize) {
        let Some(source) = self.sources.get(at) else { return };
        let run = || self.part.run(source, 0, self.share);
        let ended = catch_unwind(AssertUnwindSafe(run));
        if let Some(state) = self.lock().get_mut(at) {
            *state = State::Ended(ended);
        }
        self.ended.notify_all();
    }

    /// Runs what there is to run ahead, until all is taken or nobody wants it.
    fn help(&self) {
        while self.part.cancel.stopped().is_none() {
            let taken = take(&mut self.lock());
            let Some(at) = taken else { break };
            self.run(at);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<State>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The first source that may run ahead and that nobody runs.
fn take(states: &mut [State]) -> Option<usize> {
    let at = states.iter().position(|state| matches!(state, State::Waiting { long: true }))?;
    *states.get_mut(at)? = State::Running;
    Some(at)
}

/// Stops what still runs ahead once the turns are over, however they ended.
struct Over<'o, 'p>(&'o Part<'p>);

impl Drop for Over<'_, '_> {
    fn drop(&mut self) {
        self.0.cancel.drop_part();
    }
}
