//! Segments of the audit log: they are numbered without a gap, none is too long, and the store knows which one is
//! open.

use super::problems::{ProblemCollector, ProblemKind, ProblemLocation};
use crate::base::error::Result;
use crate::state::audit::{AuditEntry, AuditSegment, MAX_SEGMENT_ENTRIES, OpenSegment};

const AUDIT: &str = "audit";
const SEGMENT: &str = "meta segment";

/// The segment of the last entry, and where it began.
#[derive(Default)]
pub(super) struct SegmentWalk {
    open: Option<(AuditSegment, u64)>,
    /// True if an entry is missing or damaged since the last segment began: it may have begun another.
    has_gap: bool,
}

impl SegmentWalk {
    /// Follows the segments to the next entry.
    pub(super) fn advance(&mut self, entry: &AuditEntry, findings: &mut ProblemCollector) {
        let place = ProblemLocation::Row(AUDIT, entry.sequence);
        if let Some(begun) = entry.segment {
            let number = self.open.map_or(0, |(open, _)| open.number.saturating_add(1));
            if begun.number != number && !self.has_gap {
                let detail = format!("it begins segment {}, and {number} is next", begun.number);
                findings.add(ProblemKind::Audit, place, &detail);
            }
            (self.open, self.has_gap) = (Some((begun, entry.sequence)), false);
        } else if let Some((_, first)) = self.open
            && entry.sequence.saturating_sub(first) == MAX_SEGMENT_ENTRIES
            && !self.has_gap
        {
            findings.add(ProblemKind::Audit, place, "its segment has too many entries");
        }
    }

    /// Passes over an entry that cannot be read.
    pub(super) fn skip(&mut self) {
        self.has_gap = true;
    }

    /// Compares the last segment with the row of the one that is open.
    pub(super) fn finish(
        self,
        row: Option<Vec<u8>>,
        findings: &mut ProblemCollector,
    ) -> Result<()> {
        let place = ProblemLocation::All(SEGMENT);
        let kept = row.map(|row| OpenSegment::open(&row)).transpose();
        let Some(kept) = findings.value_or_problem(ProblemKind::Audit, place, kept)? else {
            return Ok(());
        };
        if kept.map(|open| (open.start, open.first)) != self.open && !self.has_gap {
            findings.add(ProblemKind::Audit, place, "it is not the last segment of the audit log");
        }
        Ok(())
    }
}
