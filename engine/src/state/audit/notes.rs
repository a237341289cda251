//! A buffer of reads that the rules of the store require in the audit log: they are written with the next
//! commit, at most a second late (ruling 50).

use std::sync::{Mutex, MutexGuard, PoisonError};

use grainstore_format::EpochMs;

use crate::state::audit::AuditRecord;

/// Maximum time that a read stays in the buffer.
const AGE_MS: i64 = 1000;
/// Number of buffered reads that triggers a write.
const MANY: usize = 1024;
/// Maximum number of buffered reads; beyond it readers wait for the disk.
const MOST: usize = 4 * MANY;

/// Buffered reads and the time of the first.
#[derive(Debug, Default)]
struct BufferedReads {
    records: Vec<AuditRecord>,
    since: EpochMs,
}

/// Reads that are not in the audit log yet.
#[derive(Debug, Default)]
pub(crate) struct ReadNotes(Mutex<BufferedReads>);

/// The action required after a read was buffered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BufferAction {
    /// None.
    Kept,
    /// Wake the writer, so that it sets a timer or writes.
    Due,
    /// Write the buffer before the next read.
    Full,
}

impl ReadNotes {
    /// Buffers a read.
    pub(crate) fn push(&self, record: AuditRecord, now: EpochMs) -> BufferAction {
        let mut waiting = self.lock();
        if waiting.records.is_empty() {
            waiting.since = now;
        }
        waiting.records.push(record);
        match waiting.records.len() {
            1 | MANY => BufferAction::Due,
            len if len >= MOST => BufferAction::Full,
            _ => BufferAction::Kept,
        }
    }

    /// Returns `true` if reads are buffered.
    pub(crate) fn are_there(&self) -> bool {
        !self.lock().records.is_empty()
    }

    /// Returns `true` if the buffer should be written now. A clock that was set back must not delay it.
    pub(crate) fn are_due(&self, now: EpochMs) -> bool {
        let waiting = self.lock();
        let age = now.get().saturating_sub(waiting.since.get());
        let old = !(0..AGE_MS).contains(&age);
        !waiting.records.is_empty() && (old || waiting.records.len() >= MANY)
    }

    /// Takes all buffered reads.
    pub(crate) fn take(&self) -> Vec<AuditRecord> {
        std::mem::take(&mut self.lock().records)
    }

    fn lock(&self) -> MutexGuard<'_, BufferedReads> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::audit::AuditOperation;

    fn read() -> AuditRecord {
        AuditRecord::of(AuditOperation::Read, Vec::new())
    }

    #[test]
    fn reads_are_due_when_old_or_many_or_the_clock_went_back() {
        let (notes, at) = (ReadNotes::default(), EpochMs::new);
        assert!(!notes.are_due(at(i64::MAX)) && !notes.are_there(), "nothing waits");
        assert_eq!(notes.push(read(), at(5000)), BufferAction::Due, "the first of them");
        assert_eq!(notes.push(read(), at(5500)), BufferAction::Kept);
        for (now, due) in [(5000, false), (5999, false), (6000, true), (4999, true)] {
            assert_eq!(notes.are_due(at(now)), due, "{now}");
        }
        let told: Vec<_> = (2..MOST).map(|_| notes.push(read(), at(5000))).collect();
        assert_eq!(
            told.iter().filter(|told| **told == BufferAction::Due).count(),
            1,
            "once there are many"
        );
        assert_eq!(told.last(), Some(&BufferAction::Full));
        assert!(notes.are_due(at(5000)));
        assert_eq!(notes.take().len(), MOST);
        assert!(!notes.are_there());
    }
}
