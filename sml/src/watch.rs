//! Stopping work that its caller does not want any longer.
//!
//! Asked between two grains, never within one: what a grain takes is bounded by its size.

use std::fmt;

use crate::error::Error;

/// What is asked now and then whether to stop.
#[derive(Clone, Copy, Default)]
pub struct Watch<'a>(Option<&'a dyn Fn() -> bool>);

impl<'a> Watch<'a> {
    /// Never stops anything.
    pub const NEVER: Self = Self(None);

    /// Stops once this says so; it is asked about once a grain.
    #[must_use]
    pub fn until(stops: &'a dyn Fn() -> bool) -> Self {
        Self(Some(stops))
    }

    /// `CAL-E082` where it is time to stop.
    pub(crate) fn check(self) -> Result<(), Error> {
        match self.0 {
            Some(stops) if stops() => Err(Error::stopped()),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Watch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Watch(..)" } else { "Watch(NEVER)" })
    }
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
