//! Verifies the numbers of audit entries that stand in the rows of the log: from the first row that has one on every row
//! has, and none descends. By this order an entry is found.

use grainstore_index::Sequence;

use super::problems::{ProblemCollector, ProblemKind, ProblemLocation};
use crate::disk::layout::LogRowParts;

/// The rows that were checked.
#[derive(Debug, Default)]
pub(super) struct RowNumbers {
    /// The lowest number that the next row can have; `None` before the first row with a number.
    lowest: Option<u64>,
}

impl RowNumbers {
    /// Checks the number of the row at `key`, which comes after the ones before.
    pub(super) fn check(
        &mut self,
        key: u64,
        row: &LogRowParts<'_>,
        findings: &mut ProblemCollector,
    ) {
        if let Some(number) = row.number.filter(|_| !row.has_sound_head(Sequence::new(key))) {
            let detail =
                format!("it, or its number, has changed where it lies: beside the grain {key}");
            findings.add(ProblemKind::Audit, ProblemLocation::Row("audit", number), detail);
        }
        let mut add =
            |detail| findings.add(ProblemKind::Log, ProblemLocation::Row("log", key), detail);
        let Some(number) = row.number else {
            if self.lowest.is_some() {
                add("it has no number of an audit entry, as all behind the first such row have");
            }
            return;
        };
        if self.lowest.is_some_and(|lowest| number < lowest) {
            add("its number of an audit entry is lower than that of a row before it");
        }
        let after = number.saturating_add(u64::from(row.entry.is_some()));
        self.lowest = Some(self.lowest.map_or(after, |lowest| lowest.max(after)));
    }

    /// Checks the numbers of all rows against the number of audit entries.
    pub(super) fn check_end(&self, entries: u64, findings: &mut ProblemCollector) {
        if self.lowest.is_some_and(|lowest| lowest > entries) {
            let detail = "a row has the number of an audit entry that there cannot be";
            findings.add(ProblemKind::Log, ProblemLocation::All("log"), detail);
        }
    }
}
