//! State that a host keeps between requests: write quotas per minute (CAL 17.3), and the last `created_at`
//! assigned.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use grainstore_format::EpochMs;

use crate::codes::ErrorKind;
use crate::error::{Error, Result};

const MINUTE: Duration = Duration::from_secs(60);

/// Maximum writes per minute, which [`WriteQuotas`] enforces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteLimits {
    /// Maximum ADDs.
    pub adds: usize,
    /// Maximum SUPERSEDEs.
    pub supersedes: usize,
    /// Maximum REVERTs.
    pub reverts: usize,
}

impl Default for WriteLimits {
    fn default() -> Self {
        Self { adds: 20, supersedes: 10, reverts: 5 }
    }
}

/// Write quotas and the clock for `created_at`, shared by the requests of one session.
///
/// ```
/// use grainstore_cal::{WriteLimits, WriteQuotas};
///
/// let quotas = WriteQuotas::new(WriteLimits { adds: 100, ..WriteLimits::default() });
/// assert_eq!((quotas.limits().adds, quotas.limits().supersedes), (100, 10));
/// ```
#[derive(Debug, Default)]
pub struct WriteQuotas {
    limits: WriteLimits,
    state: Mutex<QuotaState>,
    last_created_ms: Arc<Mutex<Option<i64>>>,
}

#[derive(Debug, Default)]
struct QuotaState {
    adds: VecDeque<Instant>,
    supersedes: VecDeque<Instant>,
    reverts: VecDeque<Instant>,
}

/// Kinds of writes that have a quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteKind {
    Add,
    Supersede,
    Revert,
}

impl WriteQuotas {
    /// Returns full quotas.
    #[must_use]
    pub fn new(limits: WriteLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Returns full quotas for another session of the same memory: they share the clock for `created_at`.
    #[must_use]
    pub fn beside(&self) -> Self {
        let last_created_ms = Arc::clone(&self.last_created_ms);
        Self { limits: self.limits, last_created_ms, ..Self::default() }
    }

    /// Returns `true` if nothing was written in the last minute.
    #[must_use]
    pub fn is_full(&self) -> bool {
        let state = self.lock();
        let mut times = [&state.adds, &state.supersedes, &state.reverts].into_iter().flatten();
        times.all(|time| time.elapsed() >= MINUTE)
    }

    /// Returns the maximum writes per minute.
    #[must_use]
    pub fn limits(&self) -> WriteLimits {
        self.limits
    }

    /// Takes one write out of the quota of the minute that ends at `now`.
    ///
    /// # Errors
    /// E052 for ADD and E043 for SUPERSEDE and REVERT if the quota is used up.
    pub(crate) fn consume(&self, write: WriteKind, now: Instant) -> Result<()> {
        let limit = match write {
            WriteKind::Add => self.limits.adds,
            WriteKind::Supersede => self.limits.supersedes,
            WriteKind::Revert => self.limits.reverts,
        };
        let mut state = self.lock();
        let times = state.times(write);
        while times.front().is_some_and(|time| now.saturating_duration_since(*time) >= MINUTE) {
            times.pop_front();
        }
        if times.len() >= limit {
            let (kind, name) = match write {
                WriteKind::Add => (ErrorKind::AddQuota, "ADD"),
                WriteKind::Supersede => (ErrorKind::WriteQuota, "SUPERSEDE"),
                WriteKind::Revert => (ErrorKind::WriteQuota, "REVERT"),
            };
            return Err(Error::new(kind, format!("more than {limit} {name} in a minute")));
        }
        times.push_back(now);
        Ok(())
    }

    /// Returns the last write to its quota, because it was refused.
    pub(crate) fn refund(&self, write: WriteKind) {
        self.lock().times(write).pop_back();
    }

    /// Returns `now`, or one millisecond after the last result if two writes would share a timestamp.
    ///
    /// A `now` a second or more before the last result is a clock that was set back on purpose, and is
    /// returned unchanged.
    pub(crate) fn created_at(&self, now: EpochMs) -> EpochMs {
        const BURST_MS: i64 = 1_000;
        let mut last_created = self.last_created_ms.lock().unwrap_or_else(PoisonError::into_inner);
        let now = now.get();
        let shared = |last: &i64| *last >= now && last.saturating_sub(now) < BURST_MS;
        let at = last_created.filter(shared).map_or(now, |last| last.saturating_add(1));
        *last_created = Some(at);
        EpochMs::new(at)
    }

    fn lock(&self) -> MutexGuard<'_, QuotaState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QuotaState {
    fn times(&mut self, write: WriteKind) -> &mut VecDeque<Instant> {
        match write {
            WriteKind::Add => &mut self.adds,
            WriteKind::Supersede => &mut self.supersedes,
            WriteKind::Revert => &mut self.reverts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_fills_within_a_minute_and_empties_after_it() {
        let writes = WriteQuotas::new(WriteLimits { adds: 2, supersedes: 1, reverts: 1 });
        let start = Instant::now();
        let code = |write, at: u64| {
            let taken = writes.consume(write, start + Duration::from_secs(at));
            taken.err().map(|error| error.code().to_owned())
        };
        assert_eq!(code(WriteKind::Add, 0), None);
        assert_eq!(code(WriteKind::Add, 30), None);
        assert_eq!(code(WriteKind::Add, 59).as_deref(), Some("CAL-E052"));
        assert_eq!(code(WriteKind::Add, 60), None);
        assert_eq!(code(WriteKind::Supersede, 60), None);
        assert_eq!(code(WriteKind::Supersede, 61).as_deref(), Some("CAL-E043"));
        assert_eq!(code(WriteKind::Revert, 61), None);
        assert_eq!(code(WriteKind::Revert, 62).as_deref(), Some("CAL-E043"));
        writes.refund(WriteKind::Supersede);
        assert_eq!(code(WriteKind::Supersede, 62), None);
    }

    #[test]
    fn two_writes_of_one_millisecond_get_times_of_their_own() {
        let writes = WriteQuotas::default();
        let at = |now| writes.created_at(EpochMs::new(now)).get();
        assert_eq!([at(100), at(100), at(101), at(105)], [100, 101, 102, 105]);
        assert_eq!(at(-50_000), -50_000);
    }
}
