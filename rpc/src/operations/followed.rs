//! Long work of a method: it tells of its progress in notifications, and a signal cancels it.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use grainstore::cal::CancelHandle;
use grainstore_interop::Monitor;

use super::stream::Events;
use crate::error::Result;

/// Time between two notifications of progress.
const TELL_EVERY: Duration = Duration::from_millis(200);

/// Runs work that reports to a monitor. If `is_told`, notifications `progress` say how far it is.
pub(super) fn followed<T>(
    events: &mut Events<'_>,
    is_told: bool,
    run: impl FnOnce(&Monitor<'_>) -> grainstore_interop::Result<T>,
) -> Result<T> {
    monitored(events, is_told, |progress, cancel| {
        Ok(run(&Monitor { progress: Some(progress), cancel })?)
    })
}

/// Runs work that is told what follows it: who hears of its progress, and what cancels it.
pub(super) fn monitored<T>(
    events: &mut Events<'_>,
    is_told: bool,
    run: impl FnOnce(&dyn Fn(u64, u64), CancelHandle) -> Result<T>,
) -> Result<T> {
    let cancel = events.begin_work();
    let (events, last) = (RefCell::new(events), Cell::new(None::<Instant>));
    let progress = |done, of| {
        let is_due = last.get().is_none_or(|last| last.elapsed() >= TELL_EVERY);
        if is_due {
            last.set(Some(Instant::now()));
        }
        events.borrow_mut().tell_progress(is_told && is_due, done, of);
    };
    run(&progress, cancel)
}
