//! The segments of an audit log: which entries are one chain of steps.
//!
//! The log says where a segment begins. Entries of a store that was upgraded, from before there were segments, are cut into
//! segments of the greatest length.

use grainstore::limits::MAX_SEGMENT_ENTRIES;
use grainstore::{AuditEntry, EpochMs, Power, Session};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::Monitor;
use crate::error::{Error, Result};
use crate::uuid;

/// Entries that are read at a time; one of a batch has an address for each grain.
const PAGE: usize = 500;

/// A segment of the audit log: [`segments`] lists them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Segment {
    /// Its place, from 0.
    pub segment: u64,
    /// Sequence of its first entry.
    pub first: u64,
    /// Sequence of its last entry.
    pub last: u64,
    /// Time of its first entry, epoch ms.
    pub since: EpochMs,
    /// Latest time of its entries, epoch ms.
    pub until: EpochMs,
    /// The rules of the store that its decisions were made by; `None` for entries from before the log said so.
    pub policy_set: Option<String>,
    /// True if no entry will be added to it.
    pub closed: bool,
}

impl Segment {
    fn beginning_with(entry: &AuditEntry, segment: u64) -> Self {
        let policy_set =
            entry.segment.map(|start| data_encoding::HEXLOWER.encode(&start.policy_set));
        let (first, since) = (entry.sequence, entry.time);
        Self { segment, first, last: first, since, until: since, policy_set, closed: false }
    }

    /// The UUID that names its chain: of its first entry, so that it is the same in each export.
    pub(super) fn id(&self, store: &[u8; 16]) -> String {
        let hash = Sha256::new()
            .chain_update(b"grainstore-ages-segment")
            .chain_update(store)
            .chain_update(self.first.to_be_bytes());
        uuid::version_7(self.since.get(), &hash.finalize().into())
    }
}

/// Follows a log entry by entry, and tells segments apart.
#[derive(Debug, Default)]
pub(super) struct Segmenter {
    current: Option<Segment>,
}

impl Segmenter {
    /// Takes the next entry. Returns the segment before, if the entry begins another.
    pub(super) fn next(&mut self, entry: &AuditEntry) -> Option<Segment> {
        let Some(current) = &mut self.current else {
            self.current = Some(Segment::beginning_with(entry, 0));
            return None;
        };
        let entries = entry.sequence.saturating_sub(current.first);
        let is_full = current.policy_set.is_none() && entries >= MAX_SEGMENT_ENTRIES;
        if entry.segment.is_some() || is_full {
            let next = Segment::beginning_with(entry, current.segment.saturating_add(1));
            let before = std::mem::replace(current, next);
            return Some(Segment { closed: true, ..before });
        }
        current.last = entry.sequence;
        current.until = current.until.max(entry.time);
        None
    }

    /// The segment that the last entry belongs to.
    pub(super) fn current(&self) -> Option<&Segment> {
        self.current.as_ref()
    }

    /// The segment that the last entry belongs to, at the end of the log.
    pub(super) fn finish(self) -> Option<Segment> {
        self.current
    }
}

/// Calls back with each entry of the audit log up to one, in order.
pub(super) fn each_entry(
    session: &Session,
    last: u64,
    monitor: &Monitor<'_>,
    mut take: impl FnMut(AuditEntry) -> Result<()>,
) -> Result<()> {
    let (mut after, mut expected) = (None, 0);
    loop {
        let page = session.audit_evidence(after, PAGE)?;
        let Some(end) = page.last().map(|entry| entry.sequence) else { return Ok(()) };
        for entry in page.into_iter().filter(|entry| entry.sequence <= last) {
            if entry.sequence != expected {
                let message = format!("entry {expected} of the audit log is not there");
                return Err(
                    Error::integrity(message).with_hint("verify the store: its log was cut")
                );
            }
            expected = expected.saturating_add(1);
            take(entry)?;
        }
        monitor.step(end.min(last).saturating_add(1), last.saturating_add(1))?;
        if end >= last {
            return Ok(());
        }
        after = Some(end);
    }
}

/// Lists the segments of the audit log, the open one last. Each is a chain of its own in [`export`](super::export).
///
/// ```
/// use grainstore_interop::ages::segments;
/// # use grainstore::prelude::*;
/// # let dir = tempfile::tempdir()?;
/// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
/// # let session = store.session(SessionOptions::default());
///
/// let found = segments(&session)?;
/// assert_eq!((found.len(), found[0].first, found[0].closed), (1, 0, false));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// `ERR_ACCESS` unless the session is the operator's, without a namespace and a user; `ERR_IO`, `ERR_INTEGRITY`.
pub fn segments(session: &Session) -> Result<Vec<Segment>> {
    session.check_power(Power::Evidence)?;
    let (count, _) = session.audit_head()?;
    let (mut segmenter, mut found) = (Segmenter::default(), Vec::new());
    let Some(last) = count.checked_sub(1) else { return Ok(found) };
    each_entry(session, last, &Monitor::default(), |entry| {
        found.extend(segmenter.next(&entry));
        Ok(())
    })?;
    found.extend(segmenter.finish());
    Ok(found)
}
