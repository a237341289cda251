//! Stopping a statement: by its host, or by its deadline.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A handle that loops look at. Clones share the request to stop and the time that does not count, each
/// with its own deadline.
#[derive(Debug, Clone, Default)]
pub struct Cancel {
    shared: Arc<Shared>,
    /// When to stop if no time was excused.
    deadline: Option<Instant>,
    /// Whether the part of a statement that it is for is wanted no longer.
    unwanted: Option<Arc<AtomicBool>>,
}

#[derive(Debug, Default)]
struct Shared {
    requested: AtomicBool,
    excused_us: AtomicU64,
    #[cfg(test)]
    looks: Looks,
}

/// How often it was looked at, and at which look it cancels.
#[cfg(test)]
#[derive(Debug, Default)]
struct Looks {
    had: AtomicU64,
    cancels_after: Option<u64>,
}

/// Why a statement stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The host asked for it.
    Cancelled,
    /// The deadline passed.
    Timeout,
}

impl Cancel {
    /// A handle without a deadline.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same handle that also stops `time` from now, or earlier where it already would.
    #[must_use]
    pub fn within(&self, time: Duration) -> Self {
        let own = Instant::now().checked_add(time);
        let own = own.and_then(|own| own.checked_sub(self.excused()));
        let deadline = match (self.deadline, own) {
            (Some(outer), Some(own)) => Some(outer.min(own)),
            (outer, own) => outer.or(own),
        };
        Self { deadline, ..self.clone() }
    }

    /// The same handle for a part of a statement that may turn out not to be wanted: [`Cancel::drop_part`]
    /// stops it and its clones, and nobody else. A part has no parts.
    pub(crate) fn for_part(&self) -> Self {
        Self { unwanted: Some(Arc::default()), ..self.clone() }
    }

    /// Stops the work that a handle of [`Cancel::for_part`] was made for.
    pub(crate) fn drop_part(&self) {
        if let Some(unwanted) = &self.unwanted {
            unwanted.store(true, Ordering::Relaxed);
        }
    }

    /// Puts every deadline off by a time that was spent on what is not the statement's work, such as an
    /// index that had to be read again.
    pub fn excuse(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.shared.excused_us.fetch_add(micros, Ordering::Relaxed);
    }

    fn excused(&self) -> Duration {
        Duration::from_micros(self.shared.excused_us.load(Ordering::Relaxed))
    }

    /// Asks everyone who holds the handle to stop.
    pub fn cancel(&self) {
        self.shared.requested.store(true, Ordering::Relaxed);
    }

    /// Whether to stop, and why. Reads the clock: in tight loops ask every hundred rounds or so.
    #[must_use]
    pub fn stopped(&self) -> Option<Stop> {
        #[cfg(test)]
        self.look();
        let is_set = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        if is_set(&self.shared.requested) || self.unwanted.as_deref().is_some_and(is_set) {
            return Some(Stop::Cancelled);
        }
        let deadline = self.deadline.and_then(|deadline| deadline.checked_add(self.excused()));
        deadline.filter(|deadline| Instant::now() >= *deadline).map(|_| Stop::Timeout)
    }

    /// A handle that lets so many looks pass and cancels at the next.
    #[cfg(test)]
    pub(crate) fn after(looks: u64) -> Self {
        let looks = Looks { had: AtomicU64::new(0), cancels_after: Some(looks) };
        Self { shared: Arc::new(Shared { looks, ..Shared::default() }), ..Self::default() }
    }

    /// How often anybody looked.
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

    /// The same as a result, for `?`.
    ///
    /// # Errors
    /// Why to stop.
    pub fn check(&self) -> Result<(), Stop> {
        self.stopped().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_stop_together_and_the_earlier_deadline_holds() {
        let host = Cancel::new();
        let late = host.within(Duration::from_secs(3600));
        assert_eq!(late.stopped(), None);
        assert_eq!(late.within(Duration::ZERO).stopped(), Some(Stop::Timeout));
        assert_eq!(
            late.within(Duration::ZERO).within(Duration::MAX).stopped(),
            Some(Stop::Timeout)
        );
        host.cancel();
        assert_eq!(late.check(), Err(Stop::Cancelled));
    }

    #[test]
    fn what_is_not_wanted_stops_alone_and_the_host_stops_it_too() {
        let host = Cancel::new();
        let (part, other) = (host.for_part(), host.for_part());
        let within = part.within(Duration::from_secs(3600));
        part.drop_part();
        assert_eq!(part.stopped(), Some(Stop::Cancelled));
        assert_eq!(within.stopped(), Some(Stop::Cancelled), "a handle made of it");
        assert_eq!((host.stopped(), other.stopped()), (None, None));
        host.drop_part();
        assert_eq!(host.stopped(), None, "it is nobody's part");
        host.cancel();
        assert_eq!(other.stopped(), Some(Stop::Cancelled));
    }

    #[test]
    fn time_that_is_excused_puts_off_the_deadlines_there_are_and_no_later_one() {
        let host = Cancel::new();
        let late = host.within(Duration::ZERO);
        assert_eq!(late.stopped(), Some(Stop::Timeout));
        late.clone().excuse(Duration::from_secs(3600));
        assert_eq!(late.stopped(), None);
        assert_eq!(host.within(Duration::ZERO).stopped(), Some(Stop::Timeout));
        host.cancel();
        assert_eq!(late.stopped(), Some(Stop::Cancelled));
    }
}
