//! A buffer of reads that the rules of the store require in the audit log: they are written with the next
//! commit, at most a second late (ruling 50).

use std::sync::{Mutex, MutexGuard, PoisonError};

use grainstore_format::EpochMs;

use crate::state::audit::AuditRecord;

/// Maximum time that a read stays in the buffer.
const MAX_AGE_MS: i64 = 1000;
/// Number of buffered reads that triggers a write.
const FLUSH_THRESHOLD: usize = 1024;
/// Maximum number of buffered reads; beyond it readers wait for the disk.
const MAX_BUFFERED_READS: usize = 4 * FLUSH_THRESHOLD;

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
    None,
    /// Wake the writer, so that it sets a timer or writes.
    WakeWriter,
    /// Write the buffer before the next read.
    Flush,
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
            1 | FLUSH_THRESHOLD => BufferAction::WakeWriter,
            len if len >= MAX_BUFFERED_READS => BufferAction::Flush,
            _ => BufferAction::None,
        }
    }

    /// Returns `true` if reads are buffered.
    pub(crate) fn has_any(&self) -> bool {
        !self.lock().records.is_empty()
    }

    /// Returns `true` if the buffer should be written now. A clock that was set back must not delay it.
    pub(crate) fn is_due(&self, now: EpochMs) -> bool {
        let waiting = self.lock();
        let age = now.get().saturating_sub(waiting.since.get());
        let old = !(0..MAX_AGE_MS).contains(&age);
        !waiting.records.is_empty() && (old || waiting.records.len() >= FLUSH_THRESHOLD)
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
        AuditRecord::new(AuditOperation::Read, Vec::new())
    }

    #[test]
    fn reads_are_due_when_old_or_many_or_the_clock_went_back() {
        let (notes, at) = (ReadNotes::default(), EpochMs::new);
        assert!(!notes.is_due(at(i64::MAX)) && !notes.has_any(), "nothing waits");
        assert_eq!(notes.push(read(), at(5000)), BufferAction::WakeWriter, "the first of them");
        assert_eq!(notes.push(read(), at(5500)), BufferAction::None);
        for (now, due) in [(5000, false), (5999, false), (6000, true), (4999, true)] {
            assert_eq!(notes.is_due(at(now)), due, "{now}");
        }
        let told: Vec<_> = (2..MAX_BUFFERED_READS).map(|_| notes.push(read(), at(5000))).collect();
        assert_eq!(
            told.iter().filter(|told| **told == BufferAction::WakeWriter).count(),
            1,
            "once there are many"
        );
        assert_eq!(told.last(), Some(&BufferAction::Flush));
        assert!(notes.is_due(at(5000)));
        assert_eq!(notes.take().len(), MAX_BUFFERED_READS);
        assert!(!notes.has_any());
    }
}
