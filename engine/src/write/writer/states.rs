//! The rows that a group writes beside the log: states, each with the audit entry since which a grain is not
//! current, and roots. The plan has decided their contents.

use crate::base::error::Result;
use crate::disk::layout;
use crate::disk::truth_tables::TruthTable;
use crate::disk::truth_transaction::RowWriter;
use crate::write::plan::WritePlan;

/// Writes the states, each with the audit entry by which it stopped being current; `first` is the sequence of
/// the group's first entry.
pub(super) fn write_states(
    rows: &mut RowWriter<'_>,
    plan: &WritePlan<'_>,
    first: u64,
) -> Result<()> {
    for (sequence, state) in plan.states.iter() {
        // A state that does not end the grain ignores the entry.
        let entry = match plan.ended.get(sequence) {
            Some(at) => first.saturating_add(u64::try_from(*at).unwrap_or(u64::MAX)),
            None => first,
        };
        let record = rows.state_record(*sequence)?.with_state(*state, entry);
        rows.put_state(*sequence, &record)?;
    }
    Ok(())
}

/// Writes the protecting ancestors of grains.
pub(super) fn write_roots(rows: &mut RowWriter<'_>, plan: &WritePlan<'_>) -> Result<()> {
    for (sequence, ancestors) in plan.roots.iter() {
        let row = layout::encode_roots(*sequence, ancestors);
        rows.put(TruthTable::Roots, *sequence, &row)?;
    }
    Ok(())
}
