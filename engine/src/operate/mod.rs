//! Work on the store as a whole: verify, back up, compact, export, import, erase, report.

pub(crate) mod erase;
pub(crate) mod maintain;
pub(crate) mod portable;
pub(crate) mod report;
pub(crate) mod rule_changes;
