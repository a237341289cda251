//! Looks now and then whether work is still wanted. Knows nothing of clocks: who asks says when to stop.

use std::cell::Cell;

use crate::error::{Error, Result};

/// Steps between two looks: some hundred words compared, or postings counted.
const EVERY: usize = 512;

/// Counts the steps of a piece of work, and ends it once who asked for it says so.
pub(super) struct Watch<'s> {
    stop: Box<dyn Fn() -> bool + 's>,
    left: Cell<usize>,
}

impl<'s> Watch<'s> {
    /// Work that ends early once this says so.
    pub(super) fn new(stop: impl Fn() -> bool + 's) -> Self {
        Self { stop: Box::new(stop), left: Cell::new(0) }
    }

    /// Counts steps.
    ///
    /// # Errors
    /// `ERR_TIMEOUT` where the work is to end.
    #[inline]
    pub(super) fn step(&self, count: usize) -> Result<()> {
        match self.left.get().checked_sub(count) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => self.look(),
        }
    }

    #[cold]
    fn look(&self) -> Result<()> {
        self.left.set(EVERY);
        if (self.stop)() { Err(Error::stopped()) } else { Ok(()) }
    }
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
