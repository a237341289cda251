//! What a group writes beside the log: states, with the audit entry since which a grain is not
//! current, and roots. Which states these are the plan has decided.

use std::collections::HashMap;

use redb::{ReadableTable, WriteTransaction};

use crate::error::Result;
use crate::keys::{self, StateRecord};
use crate::plan::Plan;

/// Writes the states, each with the audit entry by which it stopped being current; `first` is the
/// sequence of the first entry of the group.
pub(super) fn write_states(txn: &WriteTransaction, plan: &Plan<'_>, first: u64) -> Result<()> {
    if plan.states.is_empty() {
        return Ok(());
    }
    let mut entries = HashMap::new();
    for (sequence, record) in (first..).zip(&plan.audit) {
        if let Some(ended) = record.ends() {
            entries.entry(*ended).or_insert(sequence);
        }
    }
    let mut states = txn.open_table(keys::STATE)?;
    for (sequence, state) in &plan.states {
        let before = match states.get(sequence.get())? {
            Some(record) => keys::decode_state(*sequence, record.value())?,
            None => StateRecord::default(),
        };
        // Most states that are written are of grains that end.
        let ended = match state.is_current() {
            true => None,
            false => entries.get(&plan.address_at(*sequence)?).copied(),
        };
        // An entry about very many grains names none of them: then the group says when.
        let record = before.with_state(*state, ended.unwrap_or(first));
        states.insert(sequence.get(), &keys::encode_state(*sequence, &record))?;
    }
    Ok(())
}

/// Writes which grains protect which.
pub(super) fn write_roots(txn: &WriteTransaction, plan: &Plan<'_>) -> Result<()> {
    if !plan.roots.is_empty() {
        let mut roots = txn.open_table(keys::ROOTS)?;
        for (sequence, ancestors) in &plan.roots {
            roots.insert(sequence.get(), keys::encode_roots(*sequence, ancestors).as_slice())?;
        }
    }
    Ok(())
}
