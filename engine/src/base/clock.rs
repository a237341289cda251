//! The clock of the store, and a manual one for hosts and tests.

use std::fmt::Debug;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use grainstore_format::EpochMs;

/// A source of the current time, for [`OpenOptions::clock`](crate::OpenOptions::clock). [`ManualClock`] is
/// one for tests.
pub trait Clock: Debug + Send + Sync {
    /// Now, in epoch milliseconds.
    fn now(&self) -> EpochMs;
}

/// The wall clock of the machine; [`ManualClock`] is one that stands still.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> EpochMs {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        EpochMs::new(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

/// A clock that stands at the time set by [`set`](Self::set), and follows the wall clock until the first
/// call.
///
/// ```
/// # use grainstore::prelude::*;
/// use grainstore::{EpochMs, ManualClock};
/// use std::sync::Arc;
///
/// # let dir = tempfile::tempdir()?;
/// let clock = Arc::new(ManualClock::following());
/// let options = OpenOptions::new().create(true).clock(clock.clone());
/// let store = Store::open(dir.path(), &options)?;
/// clock.set(EpochMs::new(1_772_442_000_000));
/// let session = store.session(SessionOptions::default());
/// assert_eq!(session.now(), EpochMs::new(1_772_442_000_000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// Marks a clock that was not set: 292 million years before the epoch.
    const UNSET: i64 = i64::MIN;

    /// A clock that follows the wall clock until [`set`](Self::set).
    #[must_use]
    pub const fn following() -> Self {
        Self(AtomicI64::new(Self::UNSET))
    }

    /// Sets the clock to this time, where it stays.
    pub fn set(&self, now: EpochMs) {
        self.0.store(now.get(), Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> EpochMs {
        match self.0.load(Ordering::Relaxed) {
            Self::UNSET => SystemClock.now(),
            ms => EpochMs::new(ms),
        }
    }
}
