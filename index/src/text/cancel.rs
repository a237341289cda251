//! Cancellation of long work. Knows no clocks: the caller decides when to stop.

use std::cell::Cell;

use crate::error::{Error, Result};

/// Steps between two polls: some hundred terms compared, or postings read.
const POLL_INTERVAL_STEPS: usize = 512;

/// Counts the steps of a task, and ends it once the caller's `stop` returns true.
pub(super) struct CancelCheck<'s> {
    stop: Box<dyn Fn() -> bool + 's>,
    left: Cell<usize>,
}

impl<'s> CancelCheck<'s> {
    /// Ends the task early once `stop` returns true.
    pub(super) fn new(stop: impl Fn() -> bool + 's) -> Self {
        Self { stop: Box::new(stop), left: Cell::new(0) }
    }

    /// Counts steps.
    ///
    /// # Errors
    /// `ERR_TIMEOUT` once `stop` has returned true.
    #[inline]
    pub(super) fn step(&self, count: usize) -> Result<()> {
        match self.left.get().checked_sub(count) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => self.poll(),
        }
    }

    #[cold]
    fn poll(&self) -> Result<()> {
        self.left.set(POLL_INTERVAL_STEPS);
        if (self.stop)() { Err(Error::stopped()) } else { Ok(()) }
    }
}

#[cfg(test)]
#[path = "cancel_tests.rs"]
mod tests;
