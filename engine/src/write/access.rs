//! Access counters (OMS 22.10): how often a grain was given to somebody, and when last.
//!
//! Reads count in memory and never touch the disk. The writer adds the counts to the truth: with a
//! group it writes anyway, or on its own when nobody writes; at most [`ACCESS_AGE_MS`] late, when
//! too many wait, and when the store is flushed or closed. A crash loses what waited: a minute of
//! counts at most. Only answers to users count, never what the store reads for itself. Knows no
//! tables and no sessions.

mod flush;

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use grainstore_format::EpochMs;
use grainstore_index::Sequence;
use serde::Serialize;

/// How late a count may reach the disk, in milliseconds.
pub const ACCESS_AGE_MS: i64 = 60_000;
/// Counts are due at half of that, since the writer looks for them no less often than this.
pub(crate) const CHECK_MS: i64 = ACCESS_AGE_MS / 2;

/// Maps that are locked one at a time.
const SHARDS: usize = 64;
/// Grains whose counts wait in one shard at most, and rows one transaction adds.
const MAX_SHARD: usize = 1024;
/// Waiting grains after which the writer is asked to take them.
const MANY: usize = SHARDS * MAX_SHARD / 2;

/// How often a grain was read, and when last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Access {
    /// Times it was in an answer of `get` or of a query.
    #[serde(rename = "access_count")]
    pub count: u64,
    /// When it last was; nothing for a grain nobody has read.
    pub last_accessed_at: Option<EpochMs>,
}

impl Access {
    /// Both together.
    #[must_use]
    pub(crate) fn and(self, later: Self) -> Self {
        Self {
            count: self.count.saturating_add(later.count),
            last_accessed_at: self.last_accessed_at.max(later.last_accessed_at),
        }
    }
}

/// The counts that are not in the truth yet.
#[derive(Debug)]
pub(crate) struct Counters {
    shards: [Mutex<Shard>; SHARDS],
    /// Grains that wait in all shards.
    waiting: AtomicUsize,
    /// When the oldest count that waits was taken; [`NONE`] while none does.
    since: AtomicI64,
    /// How often counts that had been taken were forgotten, being in the truth.
    arrivals: AtomicU64,
}

/// No time.
const NONE: i64 = i64::MAX;

type Counts = HashMap<u64, Access, BuildHasherDefault<Spread>>;

#[derive(Debug, Default)]
struct Shard {
    /// Counts since the last time this shard was taken.
    waiting: Counts,
    /// What was taken, until readers see it in the truth.
    leaving: Leaving,
}

/// Counts between memory and the truth.
#[derive(Debug, Default)]
enum Leaving {
    #[default]
    Nothing,
    /// To be added to what any reader sees in the truth.
    Taken(Counts),
    /// The sums that are being committed: right whether a reader sees them in the truth or not.
    Summed(Counts),
}

/// A shard whose counts the writer has taken.
#[derive(Debug)]
pub(crate) struct Taken {
    shard: usize,
    /// What is to be added, by ascending sequence.
    pub(crate) counts: Vec<(Sequence, Access)>,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            waiting: AtomicUsize::new(0),
            since: AtomicI64::new(NONE),
            arrivals: AtomicU64::new(0),
        }
    }
}

impl Counters {
    /// Counts one access. Says whether so many wait now that the writer should be told; it says so
    /// once for each time that happens. What has no room left is not counted.
    pub(crate) fn touch(&self, sequence: Sequence, now: EpochMs) -> bool {
        let Some(mut shard) = self.shard(place(sequence)) else { return false };
        let full = shard.waiting.len() >= MAX_SHARD;
        let one = Access { count: 1, last_accessed_at: Some(now) };
        match shard.waiting.get_mut(&sequence.get()) {
            Some(count) => {
                *count = count.and(one);
                return false;
            }
            None if full => return false,
            None => shard.waiting.insert(sequence.get(), one),
        };
        // Under the lock, so that what is taken was counted in.
        self.since.fetch_min(now.get(), Ordering::Relaxed);
        self.waiting.fetch_add(1, Ordering::Relaxed).saturating_add(1) == MANY
    }

    /// What is known of a grain for which the truth has `stored`.
    pub(crate) fn of(&self, sequence: Sequence, stored: Access) -> Access {
        let Some(shard) = self.shard(place(sequence)) else { return stored };
        let key = sequence.get();
        let base = match &shard.leaving {
            Leaving::Taken(counts) => stored.and(counts.get(&key).copied().unwrap_or_default()),
            Leaving::Summed(sums) => sums.get(&key).copied().unwrap_or(stored),
            Leaving::Nothing => stored,
        };
        base.and(shard.waiting.get(&key).copied().unwrap_or_default())
    }

    /// Grains whose counts wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Whether counts should go to the truth now: they have waited long enough, or are too many.
    pub(crate) fn is_due(&self, now: EpochMs) -> bool {
        let waiting = self.waiting();
        // A clock that was set back must not make them wait, nor must a time that was forgotten
        // when another shard was emptied.
        let age = now.get().saturating_sub(self.since.load(Ordering::Relaxed));
        waiting > 0 && (!(0..CHECK_MS).contains(&age) || waiting >= MANY)
    }

    /// Takes the counts of one shard that has some. They stay visible to readers until
    /// [`Counters::done`].
    pub(crate) fn take(&self) -> Option<Taken> {
        for at in 0..SHARDS {
            let Some(mut shard) = self.shard(at) else { continue };
            if shard.waiting.is_empty() || !matches!(shard.leaving, Leaving::Nothing) {
                continue;
            }
            let taken = std::mem::take(&mut shard.waiting);
            let left = self.waiting.fetch_sub(taken.len(), Ordering::Relaxed);
            if left <= taken.len() {
                self.since.store(NONE, Ordering::Relaxed);
            }
            let mut counts: Vec<_> =
                taken.iter().map(|(key, access)| (Sequence::new(*key), *access)).collect();
            counts.sort_unstable_by_key(|(sequence, _)| *sequence);
            shard.leaving = Leaving::Taken(taken);
            return Some(Taken { shard: at, counts });
        }
        None
    }

    /// Notes what the truth will say once the transaction is committed.
    pub(crate) fn summed(&self, taken: &Taken, sums: &[(Sequence, Access)]) {
        if let Some(mut shard) = self.shard(taken.shard) {
            let sums = sums.iter().map(|(sequence, access)| (sequence.get(), *access));
            shard.leaving = Leaving::Summed(sums.collect());
        }
    }

    /// Forgets what was taken: new readers see it in the truth.
    pub(crate) fn done(&self, taken: &Taken) {
        if let Some(mut shard) = self.shard(taken.shard) {
            shard.leaving = Leaving::Nothing;
            // Under the lock, so that who finds nothing here finds this.
            self.arrivals.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// How often counts have left for good: while it stays the same, what the newest view has and what
    /// [`Counters::of`] adds belong together.
    pub(crate) fn arrivals(&self) -> u64 {
        self.arrivals.load(Ordering::Acquire)
    }

    fn shard(&self, at: usize) -> Option<MutexGuard<'_, Shard>> {
        Some(self.shards.get(at)?.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The shard of a sequence. Neighbours in the log are often read together, so they are apart.
fn place(sequence: Sequence) -> usize {
    usize::try_from(sequence.get() % SHARDS as u64).unwrap_or_default()
}

/// Spreads sequences over a map. They are numbers of ours, so nobody can aim them at one place.
#[derive(Debug, Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> EpochMs {
        EpochMs::new(ms)
    }

    fn access(count: u64, last: i64) -> Access {
        Access { count, last_accessed_at: Some(at(last)) }
    }

    #[test]
    fn counts_are_the_same_wherever_they_are_on_their_way() {
        let counters = Counters::default();
        let grain = Sequence::new(7);
        let (old, new) = (access(3, 10), access(5, 30));
        counters.touch(grain, at(20));
        counters.touch(grain, at(30));
        assert_eq!(counters.of(grain, old), new, "waiting");
        let taken = counters.take().unwrap();
        assert_eq!(taken.counts, [(grain, access(2, 30))]);
        assert_eq!(counters.of(grain, old), new, "taken");
        counters.summed(&taken, &[(grain, new)]);
        assert_eq!(counters.of(grain, old), new, "summed, seen by a reader from before");
        assert_eq!(counters.of(grain, new), new, "summed, seen by a reader from after");
        counters.touch(grain, at(40));
        assert_eq!(counters.of(grain, new), access(6, 40), "and counted on");
        assert_eq!(counters.take().map(|taken| taken.counts), None, "one at a time");
        counters.done(&taken);
        assert_eq!(counters.of(grain, new), access(6, 40), "done");
    }

    #[test]
    fn counts_are_due_when_old_or_many_or_the_clock_went_back() {
        let counters = Counters::default();
        assert!(!counters.is_due(at(i64::MAX)), "nothing waits");
        counters.touch(Sequence::new(1), at(1000));
        for (now, due) in [
            (1000, false),
            (1000 + CHECK_MS - 1, false),
            (1000 + CHECK_MS, true),
            (999, true),
            (i64::MAX, true),
        ] {
            assert_eq!(counters.is_due(at(now)), due, "{now}");
        }
        let taken = counters.take().unwrap();
        assert!(!counters.is_due(at(i64::MAX)), "taken");
        counters.done(&taken);
    }

    #[test]
    fn memory_is_bounded_and_the_writer_is_told_once() {
        let counters = Counters::default();
        let far = 4 * (SHARDS * MAX_SHARD) as u64;
        let told = (0..far).filter(|n| counters.touch(Sequence::new(*n), at(1))).count();
        assert_eq!(told, 1);
        assert_eq!(counters.waiting(), SHARDS * MAX_SHARD);
        assert!(counters.is_due(at(1)));
        let mut rows = 0;
        while let Some(taken) = counters.take() {
            assert!(taken.counts.is_sorted_by_key(|(sequence, _)| *sequence));
            rows += taken.counts.len();
            counters.done(&taken);
        }
        assert_eq!((rows, counters.waiting()), (SHARDS * MAX_SHARD, 0));
    }

    #[test]
    fn counts_of_many_threads_add_up() {
        let counters = Counters::default();
        let taken = std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    (0..10_000).for_each(|n| {
                        counters.touch(Sequence::new(n % 100), at(5));
                    });
                });
            }
            let mut sum = 0;
            for _ in 0..1000 {
                let Some(taken) = counters.take() else { continue };
                sum += taken.counts.iter().map(|(_, access)| access.count).sum::<u64>();
                counters.done(&taken);
            }
            sum
        });
        let left: u64 =
            (0..100).map(|n| counters.of(Sequence::new(n), Access::default()).count).sum();
        assert_eq!(taken + left, 40_000);
    }
}
