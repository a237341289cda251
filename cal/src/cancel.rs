//! Stopping a statement: by its host, or by its deadline.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A handle that loops look at. Clones share the request to stop, each with its own deadline.
#[derive(Debug, Clone, Default)]
pub struct Cancel {
    requested: Arc<AtomicBool>,
    deadline: Option<Instant>,
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
        let deadline = match (self.deadline, own) {
            (Some(outer), Some(own)) => Some(outer.min(own)),
            (outer, own) => outer.or(own),
        };
        Self { requested: Arc::clone(&self.requested), deadline }
    }

    /// Asks everyone who holds the handle to stop.
    pub fn cancel(&self) {
        self.requested.store(true, Ordering::Relaxed);
    }

    /// Whether to stop, and why. Reads the clock: in tight loops ask every hundred rounds or so.
    #[must_use]
    pub fn stopped(&self) -> Option<Stop> {
        if self.requested.load(Ordering::Relaxed) {
            return Some(Stop::Cancelled);
        }
        self.deadline.filter(|deadline| Instant::now() >= *deadline).map(|_| Stop::Timeout)
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
}
