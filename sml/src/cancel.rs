//! Cancellation of work by its caller.
//!
//! Checked between two grains, never within one: the work for one grain is bounded by its size.

use std::fmt;

use crate::error::Error;

/// A callback that is polled to decide whether to stop.
///
/// ```
/// use grainstore_format::EpochMs;
/// use grainstore_sml::{CancelCheck, Clock, ErrorKind, Format, Item, Level, render_cancellable};
/// # let grain = grainstore_format::EventBuilder::new(EpochMs::new(0), "hi").build()?;
/// # let items = [Item { grain, verification: None, chosen: None, score: None }];
///
/// // `items` holds one event.
/// let clock = Clock { now: EpochMs::new(1_768_474_800_000), iso_timestamps: false };
/// let stop = CancelCheck::from_fn(&|| true);
/// let stopped = render_cancellable(&items, Format::Sml, Level::Full, &clock, stop);
/// assert_eq!(stopped.map_err(|error| error.kind()), Err(ErrorKind::Stopped));
/// # Ok::<(), grainstore_format::Error>(())
/// ```
#[derive(Clone, Copy, Default)]
pub struct CancelCheck<'a>(Option<&'a dyn Fn() -> bool>);

impl<'a> CancelCheck<'a> {
    /// A check that never cancels.
    pub const NEVER: Self = Self(None);

    /// Cancels once `stops` returns `true`. It is called about once per grain.
    #[must_use]
    pub fn from_fn(stops: &'a dyn Fn() -> bool) -> Self {
        Self(Some(stops))
    }

    /// Returns `CAL-E082` if the work is to stop.
    pub(crate) fn check(self) -> Result<(), Error> {
        match self.0 {
            Some(stops) if stops() => Err(Error::stopped()),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for CancelCheck<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Watch(..)" } else { "Watch(NEVER)" })
    }
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
