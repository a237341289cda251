//! Stopping a statement: by its host, or by its deadline.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A handle that loops look at. Clones share the request to stop, and a clone of a handle with a deadline
/// shares that as well.
#[derive(Debug, Clone, Default)]
pub struct Cancel {
    shared: Arc<Shared>,
    limit: Option<Arc<Limit>>,
    /// Whether the part of a statement that it is for is wanted no longer.
    unwanted: Option<Arc<AtomicBool>>,
}

#[derive(Debug, Default)]
struct Shared {
    requested: AtomicBool,
    #[cfg(test)]
    looks: Looks,
}

/// A deadline, and those it stands within.
#[derive(Debug)]
struct Limit {
    deadline: Instant,
    /// How far it was put off.
    excused_us: AtomicU64,
    outer: Option<Arc<Limit>>,
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
        let Some(deadline) = Instant::now().checked_add(time) else { return self.clone() };
        let (excused_us, outer) = (AtomicU64::new(0), self.limit.clone());
        let limit = Some(Arc::new(Limit { deadline, excused_us, outer }));
        Self { limit, ..self.clone() }
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

    /// Puts the deadlines of this handle off by a time that was spent on what is not the statement's work,
    /// such as an index that had to be read again. Those that another statement has of the same host stay.
    pub fn excuse(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        for limit in self.limits() {
            limit.excused_us.fetch_add(micros, Ordering::Relaxed);
        }
    }

    /// Its deadlines, the one set last first.
    fn limits(&self) -> impl Iterator<Item = &Limit> {
        std::iter::successors(self.limit.as_deref(), |limit| limit.outer.as_deref())
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
        self.limit.as_ref()?;
        let now = Instant::now();
        self.limits().any(|limit| limit.is_over(now)).then_some(Stop::Timeout)
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

impl Limit {
    fn is_over(&self, now: Instant) -> bool {
        let excused = Duration::from_micros(self.excused_us.load(Ordering::Relaxed));
        self.deadline.checked_add(excused).is_some_and(|deadline| now >= deadline)
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
    fn time_that_is_excused_puts_off_the_deadlines_of_one_statement_and_of_no_other() {
        let host = Cancel::new();
        let (late, other) = (host.within(Duration::ZERO), host.within(Duration::ZERO));
        let inner = late.within(Duration::ZERO);
        assert_eq!(late.stopped(), Some(Stop::Timeout));
        inner.clone().excuse(Duration::from_secs(3600));
        assert_eq!((inner.stopped(), late.stopped()), (None, None));
        assert_eq!(other.stopped(), Some(Stop::Timeout));
        assert_eq!(host.within(Duration::ZERO).stopped(), Some(Stop::Timeout));
        host.cancel();
        assert_eq!(late.stopped(), Some(Stop::Cancelled));
    }
}
