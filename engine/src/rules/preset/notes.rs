//! Reads on their way into the audit log, where the rules of the store want them there: kept in memory
//! and written with the next commit, at most a second late (ruling 50 of the project's reading).

use std::sync::{Mutex, MutexGuard, PoisonError};

use grainstore_format::EpochMs;

use crate::state::audit::AuditRecord;

/// How long a read waits to be written.
const AGE_MS: i64 = 1000;
/// Reads that are written at once.
const MANY: usize = 1024;
/// Reads that wait at most: whoever reads on waits for the disk.
const MOST: usize = 4 * MANY;

/// What waits, and since when.
#[derive(Debug, Default)]
struct Waiting {
    records: Vec<AuditRecord>,
    since: EpochMs,
}

/// Reads that are not in the audit log yet.
#[derive(Debug, Default)]
pub(crate) struct Notes(Mutex<Waiting>);

/// What a read that was noted asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Noted {
    /// Nothing.
    Kept,
    /// That the writer looks at the clock.
    Due,
    /// That they are written before anybody reads on.
    Full,
}

impl Notes {
    /// Keeps a read.
    pub(crate) fn push(&self, record: AuditRecord, now: EpochMs) -> Noted {
        let mut waiting = self.lock();
        if waiting.records.is_empty() {
            waiting.since = now;
        }
        waiting.records.push(record);
        match waiting.records.len() {
            1 | MANY => Noted::Due,
            len if len >= MOST => Noted::Full,
            _ => Noted::Kept,
        }
    }

    /// Whether any wait.
    pub(crate) fn are_there(&self) -> bool {
        !self.lock().records.is_empty()
    }

    /// Whether they should be written now. A clock that was set back must not make them wait.
    pub(crate) fn are_due(&self, now: EpochMs) -> bool {
        let waiting = self.lock();
        let age = now.get().saturating_sub(waiting.since.get());
        let old = !(0..AGE_MS).contains(&age);
        !waiting.records.is_empty() && (old || waiting.records.len() >= MANY)
    }

    /// Takes all.
    pub(crate) fn take(&self) -> Vec<AuditRecord> {
        std::mem::take(&mut self.lock().records)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::audit::Operation;

    fn read() -> AuditRecord {
        AuditRecord::of(Operation::Read, Vec::new())
    }

    #[test]
    fn reads_are_due_when_old_or_many_or_the_clock_went_back() {
        let (notes, at) = (Notes::default(), EpochMs::new);
        assert!(!notes.are_due(at(i64::MAX)) && !notes.are_there(), "nothing waits");
        assert_eq!(notes.push(read(), at(5000)), Noted::Due, "the first of them");
        assert_eq!(notes.push(read(), at(5500)), Noted::Kept);
        for (now, due) in [(5000, false), (5999, false), (6000, true), (4999, true)] {
            assert_eq!(notes.are_due(at(now)), due, "{now}");
        }
        let told: Vec<_> = (2..MOST).map(|_| notes.push(read(), at(5000))).collect();
        assert_eq!(
            told.iter().filter(|told| **told == Noted::Due).count(),
            1,
            "once there are many"
        );
        assert_eq!(told.last(), Some(&Noted::Full));
        assert!(notes.are_due(at(5000)));
        assert_eq!(notes.take().len(), MOST);
        assert!(!notes.are_there());
    }
}
