//! The rows that a group writes beside the log: states, each with the audit entry since which a grain is not
//! current, and roots. The plan has decided their contents.

use redb::{ReadableTable, WriteTransaction};

use crate::base::error::Result;
use crate::disk::layout::{self, StateRecord};
use crate::disk::row_sums::{SumChanges, SummedTable};
use crate::disk::vault::Vault;
use crate::write::plan::WritePlan;

/// Writes the states, each with the audit entry by which it stopped being current; `first` is the sequence of
/// the group's first entry.
pub(super) fn write_states(
    txn: &WriteTransaction,
    plan: &WritePlan<'_>,
    first: u64,
    vault: &Vault,
) -> Result<()> {
    if plan.states.is_empty() {
        return Ok(());
    }
    let mut states = txn.open_table(layout::STATE)?;
    let mut sums = SumChanges::of(vault);
    for (sequence, state) in plan.states.iter() {
        let before = match states.get(sequence.get())? {
            Some(record) => vault.decode_state(*sequence, record.value())?,
            None => StateRecord::default(),
        };
        // A state that does not end the grain ignores the entry.
        let entry = match plan.ended.get(sequence) {
            Some(at) => first.saturating_add(u64::try_from(*at).unwrap_or(u64::MAX)),
            None => first,
        };
        let record = before.with_state(*state, entry);
        let record = vault.encode_state(*sequence, &record);
        let former = states.insert(sequence.get(), &record)?;
        sums.replace(SummedTable::State, sequence.get(), former, Some(&record));
    }
    sums.write(txn)
}

/// Writes the protecting ancestors of grains.
pub(super) fn write_roots(
    txn: &WriteTransaction,
    plan: &WritePlan<'_>,
    vault: &Vault,
) -> Result<()> {
    let mut sums = SumChanges::of(vault);
    if !plan.roots.is_empty() {
        let mut roots = txn.open_table(layout::ROOTS)?;
        for (sequence, ancestors) in plan.roots.iter() {
            let row = layout::encode_roots(*sequence, ancestors);
            let former = roots.insert(sequence.get(), row.as_slice())?;
            sums.replace(SummedTable::Roots, sequence.get(), former, Some(&row));
        }
    }
    sums.write(txn)
}
