//! Access counters (OMS 22.10): how often a grain was returned to a caller, and when last.
//!
//! Reads count in memory and never touch the disk. The writer adds the counts to the truth: with a group that
//! it writes anyway, or in a transaction of their own if there are no writes; at most [`ACCESS_AGE_MS`] late,
//! when too many wait, and when the store is flushed or closed. A crash loses the waiting counts: those of
//! one minute at most. Only answers to callers count, never the store's internal reads. Knows no tables and
//! no sessions.

mod flush;

use crate::disk::layout::AccessCounts;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use grainstore_format::EpochMs;
use grainstore_index::Sequence;

/// Maximum delay until a count of reads ([`Session::get`](crate::Session::get)) reaches the disk, in
/// milliseconds.
pub const ACCESS_AGE_MS: i64 = 60_000;
/// Age in milliseconds at which counts are due: half the maximum, since the writer checks at least this
/// often.
pub(crate) const COUNT_CHECK_MS: i64 = ACCESS_AGE_MS / 2;

/// Number of maps, each with its own lock.
const SHARDS: usize = 64;
/// Maximum number of grains waiting in one shard, and thus of rows per shard in one transaction.
const MAX_SHARD_GRAINS: usize = 1024;
/// Number of waiting grains at which the writer is woken.
const WAKE_THRESHOLD: usize = SHARDS * MAX_SHARD_GRAINS / 2;

/// Counts that are not in the truth yet.
#[derive(Debug)]
pub(crate) struct AccessCounters {
    shards: [Mutex<CounterShard>; SHARDS],
    /// Number of grains waiting in all shards.
    waiting: AtomicUsize,
    /// Time of the oldest waiting count; [`NO_TIME`] if none waits.
    since: AtomicI64,
    /// Number of batches of counts discarded because they are in the truth.
    generation: AtomicU64,
}

/// Sentinel for no time.
const NO_TIME: i64 = i64::MAX;

type Counts = HashMap<u64, AccessCounts, BuildHasherDefault<SequenceHasher>>;

#[derive(Debug, Default)]
struct CounterShard {
    /// Counts since this shard was last taken.
    waiting: Counts,
    /// Taken counts, until readers see them in the truth.
    in_flight: InFlight,
}

/// Counts in transit from memory to the truth.
#[derive(Debug, Default)]
enum InFlight {
    #[default]
    Nothing,
    /// Counts to add to the value that any reader sees in the truth.
    Taken(Counts),
    /// The sums being committed: valid for readers both before and after the commit.
    Summed(Counts),
}

/// The counts taken from one shard by the writer.
#[derive(Debug)]
pub(crate) struct TakenCounts {
    shard: usize,
    /// Counts to add, by ascending sequence.
    pub(crate) counts: Vec<(Sequence, AccessCounts)>,
}

impl Default for AccessCounters {
    fn default() -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            waiting: AtomicUsize::new(0),
            since: AtomicI64::new(NO_TIME),
            generation: AtomicU64::new(0),
        }
    }
}

impl AccessCounters {
    /// Counts one access. Returns `true` if so many grains wait now that the writer should be woken, once per
    /// time that this happens. An access without room in its shard is not counted.
    pub(crate) fn record(&self, sequence: Sequence, now: EpochMs) -> bool {
        let Some(mut shard) = self.shard(shard_of(sequence)) else { return false };
        let full = shard.waiting.len() >= MAX_SHARD_GRAINS;
        let one = AccessCounts { count: 1, last_accessed_at: Some(now) };
        match shard.waiting.get_mut(&sequence.get()) {
            Some(count) => {
                *count = count.and(one);
                return false;
            }
            None if full => return false,
            None => shard.waiting.insert(sequence.get(), one),
        };
        // Under the shard's lock, so that a take sees both the map and the total.
        self.since.fetch_min(now.get(), Ordering::Relaxed);
        self.waiting.fetch_add(1, Ordering::Relaxed).saturating_add(1) == WAKE_THRESHOLD
    }

    /// Returns the current counts of a grain for which the truth has `stored`.
    pub(crate) fn current(&self, sequence: Sequence, stored: AccessCounts) -> AccessCounts {
        let Some(shard) = self.shard(shard_of(sequence)) else { return stored };
        let key = sequence.get();
        let base = match &shard.in_flight {
            InFlight::Taken(counts) => stored.and(counts.get(&key).copied().unwrap_or_default()),
            InFlight::Summed(sums) => sums.get(&key).copied().unwrap_or(stored),
            InFlight::Nothing => stored,
        };
        base.and(shard.waiting.get(&key).copied().unwrap_or_default())
    }

    /// Number of waiting grains.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Returns `true` if counts should be written now: they are old enough, or too many.
    pub(crate) fn is_due(&self, now: EpochMs) -> bool {
        let waiting = self.waiting();
        // A clock that was set back must not delay them, nor must a missing time (it is reset when another
        // shard is emptied).
        let age = now.get().saturating_sub(self.since.load(Ordering::Relaxed));
        waiting > 0 && (!(0..COUNT_CHECK_MS).contains(&age) || waiting >= WAKE_THRESHOLD)
    }

    /// Takes the counts of a shard that has some. They stay visible to readers until
    /// [`AccessCounters::done`].
    pub(crate) fn take(&self) -> Option<TakenCounts> {
        for at in 0..SHARDS {
            let Some(mut shard) = self.shard(at) else { continue };
            if shard.waiting.is_empty() || !matches!(shard.in_flight, InFlight::Nothing) {
                continue;
            }
            let taken = std::mem::take(&mut shard.waiting);
            let left = self.waiting.fetch_sub(taken.len(), Ordering::Relaxed);
            if left <= taken.len() {
                self.since.store(NO_TIME, Ordering::Relaxed);
            }
            let mut counts: Vec<_> =
                taken.iter().map(|(key, access)| (Sequence::new(*key), *access)).collect();
            counts.sort_unstable_by_key(|(sequence, _)| *sequence);
            shard.in_flight = InFlight::Taken(taken);
            return Some(TakenCounts { shard: at, counts });
        }
        None
    }

    /// Records the sums that the truth will have once the transaction is committed.
    pub(crate) fn set_sums(&self, taken: &TakenCounts, sums: &[(Sequence, AccessCounts)]) {
        if let Some(mut shard) = self.shard(taken.shard) {
            let sums = sums.iter().map(|(sequence, access)| (sequence.get(), *access));
            shard.in_flight = InFlight::Summed(sums.collect());
        }
    }

    /// Discards taken counts: new readers see them in the truth.
    pub(crate) fn done(&self, taken: &TakenCounts) {
        if let Some(mut shard) = self.shard(taken.shard) {
            shard.in_flight = InFlight::Nothing;
            // Under the shard's lock: a reader that finds no counts in transit sees the new generation.
            self.generation.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Number of discarded batches: while it stays the same, the newest view and the counts of
    /// [`AccessCounters::current`] are consistent.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    fn shard(&self, at: usize) -> Option<MutexGuard<'_, CounterShard>> {
        Some(self.shards.get(at)?.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The shard of a sequence. Neighbours in the log are often read together, so they go to different shards.
fn shard_of(sequence: Sequence) -> usize {
    usize::try_from(sequence.get() % SHARDS as u64).unwrap_or_default()
}

/// A fast hasher for sequences. The store assigns them, so callers cannot choose colliding ones.
#[derive(Debug, Default)]
struct SequenceHasher(u64);

impl Hasher for SequenceHasher {
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

    fn access(count: u64, last: i64) -> AccessCounts {
        AccessCounts { count, last_accessed_at: Some(at(last)) }
    }

    #[test]
    fn counts_are_the_same_wherever_they_are_on_their_way() {
        let counters = AccessCounters::default();
        let grain = Sequence::new(7);
        let (old, new) = (access(3, 10), access(5, 30));
        counters.record(grain, at(20));
        counters.record(grain, at(30));
        assert_eq!(counters.current(grain, old), new, "waiting");
        let taken = counters.take().unwrap();
        assert_eq!(taken.counts, [(grain, access(2, 30))]);
        assert_eq!(counters.current(grain, old), new, "taken");
        counters.set_sums(&taken, &[(grain, new)]);
        assert_eq!(counters.current(grain, old), new, "summed, seen by a reader from before");
        assert_eq!(counters.current(grain, new), new, "summed, seen by a reader from after");
        counters.record(grain, at(40));
        assert_eq!(counters.current(grain, new), access(6, 40), "and counted on");
        assert_eq!(counters.take().map(|taken| taken.counts), None, "one at a time");
        counters.done(&taken);
        assert_eq!(counters.current(grain, new), access(6, 40), "done");
    }

    #[test]
    fn counts_are_due_when_old_or_many_or_the_clock_went_back() {
        let counters = AccessCounters::default();
        assert!(!counters.is_due(at(i64::MAX)), "nothing waits");
        counters.record(Sequence::new(1), at(1000));
        for (now, due) in [
            (1000, false),
            (1000 + COUNT_CHECK_MS - 1, false),
            (1000 + COUNT_CHECK_MS, true),
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
        let counters = AccessCounters::default();
        let far = 4 * (SHARDS * MAX_SHARD_GRAINS) as u64;
        let told = (0..far).filter(|n| counters.record(Sequence::new(*n), at(1))).count();
        assert_eq!(told, 1);
        assert_eq!(counters.waiting(), SHARDS * MAX_SHARD_GRAINS);
        assert!(counters.is_due(at(1)));
        let mut rows = 0;
        while let Some(taken) = counters.take() {
            assert!(taken.counts.is_sorted_by_key(|(sequence, _)| *sequence));
            rows += taken.counts.len();
            counters.done(&taken);
        }
        assert_eq!((rows, counters.waiting()), (SHARDS * MAX_SHARD_GRAINS, 0));
    }

    #[test]
    fn counts_of_many_threads_add_up() {
        let counters = AccessCounters::default();
        let taken = std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    (0..10_000).for_each(|n| {
                        counters.record(Sequence::new(n % 100), at(5));
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
        let left: u64 = (0..100)
            .map(|n| counters.current(Sequence::new(n), AccessCounts::default()).count)
            .sum();
        assert_eq!(taken + left, 40_000);
    }
}
