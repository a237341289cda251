//! Cancellation of a statement: by its host, or by its deadline.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A cancellation handle that loops poll. Clones share the request to stop; clones of a handle with a
/// deadline share the deadline as well.
///
/// ```
/// use grainstore_cal::{CancelHandle, StopReason};
/// use std::time::Duration;
///
/// let handle = CancelHandle::new();
/// let part = handle.with_deadline(Duration::from_secs(60));
/// assert_eq!(part.stop_reason(), None);
/// handle.cancel();
/// assert_eq!(part.check(), Err(StopReason::Cancelled));
/// ```
#[derive(Debug, Clone, Default)]
pub struct CancelHandle {
    shared: Arc<CancelState>,
    limit: Option<Arc<Deadline>>,
    /// Set when the part of the statement this handle belongs to is no longer needed.
    part_cancelled: Option<Arc<AtomicBool>>,
}

#[derive(Debug, Default)]
struct CancelState {
    requested: AtomicBool,
    #[cfg(test)]
    looks: Looks,
}

/// A deadline, linked to those that enclose it.
#[derive(Debug)]
struct Deadline {
    deadline: Instant,
    /// Microseconds by which the deadline was extended.
    extension_us: AtomicU64,
    outer: Option<Arc<Deadline>>,
}

/// The number of polls so far, and the one at which the handle cancels.
#[cfg(test)]
#[derive(Debug, Default)]
struct Looks {
    had: AtomicU64,
    cancels_after: Option<u64>,
}

/// The reason a statement stopped, as its [`CancelHandle`] tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The host asked for it.
    Cancelled,
    /// The deadline passed.
    Timeout,
}

impl CancelHandle {
    /// Returns a handle without a deadline.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a handle that also stops after `time` from now, or earlier if this one already would.
    #[must_use]
    pub fn with_deadline(&self, time: Duration) -> Self {
        let Some(deadline) = Instant::now().checked_add(time) else { return self.clone() };
        let (excused_us, outer) = (AtomicU64::new(0), self.limit.clone());
        let limit = Some(Arc::new(Deadline { deadline, extension_us: excused_us, outer }));
        Self { limit, ..self.clone() }
    }

    /// Returns a handle for a part of a statement whose result may turn out not to be needed:
    /// [`CancelHandle::cancel_part`] stops it and its clones, and no other handle. Parts do not nest.
    pub(crate) fn for_part(&self) -> Self {
        Self { part_cancelled: Some(Arc::default()), ..self.clone() }
    }

    /// Stops the work of a handle made by [`CancelHandle::for_part`].
    pub(crate) fn cancel_part(&self) {
        if let Some(unwanted) = &self.part_cancelled {
            unwanted.store(true, Ordering::Relaxed);
        }
    }

    /// Extends the deadlines of this handle by time spent on work that is not the statement's, such as
    /// reloading an index. Deadlines that other statements of the host set on the same handle do not
    /// change.
    pub fn extend_deadlines(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        for limit in self.deadlines() {
            limit.extension_us.fetch_add(micros, Ordering::Relaxed);
        }
    }

    /// Returns the deadlines, innermost first.
    fn deadlines(&self) -> impl Iterator<Item = &Deadline> {
        std::iter::successors(self.limit.as_deref(), |limit| limit.outer.as_deref())
    }

    /// Requests all holders of the handle to stop.
    pub fn cancel(&self) {
        self.shared.requested.store(true, Ordering::Relaxed);
    }

    /// Returns the reason to stop, if there is one. Reads the clock: in tight loops poll every hundred
    /// iterations or so.
    #[must_use]
    pub fn stop_reason(&self) -> Option<StopReason> {
        #[cfg(test)]
        self.look();
        let is_set = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        if is_set(&self.shared.requested) || self.part_cancelled.as_deref().is_some_and(is_set) {
            return Some(StopReason::Cancelled);
        }
        self.limit.as_ref()?;
        let now = Instant::now();
        self.deadlines().any(|limit| limit.has_passed(now)).then_some(StopReason::Timeout)
    }

    /// Returns a handle that cancels at the poll after `looks` polls.
    #[cfg(test)]
    pub(crate) fn after(looks: u64) -> Self {
        let looks = Looks { had: AtomicU64::new(0), cancels_after: Some(looks) };
        Self {
            shared: Arc::new(CancelState { looks, ..CancelState::default() }),
            ..Self::default()
        }
    }

    /// Returns the number of polls so far.
    #[cfg(test)]
    pub(crate) fn looks(&self) -> u64 {
        self.shared.looks.had.load(Ordering::Relaxed)
    }

    #[cfg(test)]
    fn look(&self) {
        let looks = &self.shared.looks;
        let had = looks.had.fetch_add(1, Ordering::Relaxed);
        if looks.cancels_after.is_some_and(|after| had >= after) {
            self.cancel();
        }
    }

    /// Returns the reason to stop as an error, for `?`.
    ///
    /// # Errors
    /// The reason to stop.
    pub fn check(&self) -> Result<(), StopReason> {
        self.stop_reason().map_or(Ok(()), Err)
    }
}

impl Deadline {
    fn has_passed(&self, now: Instant) -> bool {
        let excused = Duration::from_micros(self.extension_us.load(Ordering::Relaxed));
        self.deadline.checked_add(excused).is_some_and(|deadline| now >= deadline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_stop_together_and_the_earlier_deadline_holds() {
        let host = CancelHandle::new();
        let late = host.with_deadline(Duration::from_secs(3600));
        assert_eq!(late.stop_reason(), None);
        assert_eq!(late.with_deadline(Duration::ZERO).stop_reason(), Some(StopReason::Timeout));
        assert_eq!(
            late.with_deadline(Duration::ZERO).with_deadline(Duration::MAX).stop_reason(),
            Some(StopReason::Timeout)
        );
        host.cancel();
        assert_eq!(late.check(), Err(StopReason::Cancelled));
    }

    #[test]
    fn what_is_not_wanted_stops_alone_and_the_host_stops_it_too() {
        let host = CancelHandle::new();
        let (part, other) = (host.for_part(), host.for_part());
        let within = part.with_deadline(Duration::from_secs(3600));
        part.cancel_part();
        assert_eq!(part.stop_reason(), Some(StopReason::Cancelled));
        assert_eq!(within.stop_reason(), Some(StopReason::Cancelled), "a handle made of it");
        assert_eq!((host.stop_reason(), other.stop_reason()), (None, None));
        host.cancel_part();
        assert_eq!(host.stop_reason(), None, "it is nobody's part");
        host.cancel();
        assert_eq!(other.stop_reason(), Some(StopReason::Cancelled));
    }

    #[test]
    fn time_that_is_excused_puts_off_the_deadlines_of_one_statement_and_of_no_other() {
        let host = CancelHandle::new();
        let (late, other) =
            (host.with_deadline(Duration::ZERO), host.with_deadline(Duration::ZERO));
        let inner = late.with_deadline(Duration::ZERO);
        assert_eq!(late.stop_reason(), Some(StopReason::Timeout));
        inner.clone().extend_deadlines(Duration::from_secs(3600));
        assert_eq!((inner.stop_reason(), late.stop_reason()), (None, None));
        assert_eq!(other.stop_reason(), Some(StopReason::Timeout));
        assert_eq!(host.with_deadline(Duration::ZERO).stop_reason(), Some(StopReason::Timeout));
        host.cancel();
        assert_eq!(late.stop_reason(), Some(StopReason::Cancelled));
    }
}
