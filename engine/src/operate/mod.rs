//! TODO operate.

pub(crate) mod erase;
pub(crate) mod maintain;
pub(crate) mod portable;
pub(crate) mod report;
pub(crate) mod rule_changes;
