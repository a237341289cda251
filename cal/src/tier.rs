//! The tiers of the language: what a session may do, and what a statement needs (CAL 17).

use crate::ast::{Statement, StatementType};

/// The tier that a session may use.
///
/// ```
/// use grainstore_cal::{ExecuteOptions, Tier};
/// use grainstore_format::EpochMs;
///
/// assert_eq!(ExecuteOptions::at(EpochMs::new(0)).tier, Tier::Read);
/// let add = grainstore_cal::parse("ADD event SET content = \"hi\" REASON \"said\"")?;
/// assert_eq!(add.tier(), 1);
/// # Ok::<(), grainstore_cal::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tier {
    /// Tier 0: read.
    #[default]
    Read,
    /// Tier 1: read, add, supersede and revert.
    Evolve,
}

/// Returns the tier a statement runs in: the requested one for DEFINE TEMPLATE, else the one it needs.
pub(crate) fn tier_of(statement: &Statement<'_>, asked: Tier) -> u8 {
    match (statement.statement_type(), asked) {
        (StatementType::DefineTemplate, Tier::Evolve) => 1,
        _ => statement.tier(),
    }
}
