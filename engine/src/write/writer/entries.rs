//! The new rows of the log and the audit entries of a group. In a plain store the entry that brought a grain lies in the
//! row of the grain: a commit of such entries alone writes nothing else of the audit log.

use grainstore_format::EpochMs;

use super::GroupKeys;
use crate::base::error::Result;
use crate::disk::layout::{self, LogRowHead, RowKey};
use crate::disk::truth_tables::TruthTable;
use crate::disk::truth_transaction::RowWriter;
use crate::state::audit::{AuditHashChain, AuditOperation, AuditRecord, write_reason};
use crate::write::plan::{StagedGrain, WritePlan};

/// Most bytes of an entry that lies beside a grain, and is read with it.
const MAX_BESIDE: usize = 4 << 10;

/// The entries of a group, linked to the chain.
pub(super) struct GroupEntries<'p> {
    records: &'p [AuditRecord],
    /// Number of the first.
    first: u64,
    entries: Vec<Vec<u8>>,
    /// For each new grain the place of the entry that lies in its row.
    beside: Vec<Option<usize>>,
}

impl<'p> GroupEntries<'p> {
    /// Links the records of a plan to the chain.
    pub(super) fn link(plan: &'p WritePlan<'_>, chain: &mut AuditHashChain, now: EpochMs) -> Self {
        let (records, first) = (plan.audit.as_slice(), chain.head().count);
        let beside = match chain.vault().keyring() {
            None => entries_beside(records, plan.grains.len(), |record| {
                record.subjects.last().and_then(|address| plan.place_of_new(address))
            }),
            // Its head is sealed with every commit, and lies in the table of the entries.
            Some(_) => vec![None; plan.grains.len()],
        };
        let entries: Vec<_> = records.iter().map(|record| chain.append(record, now).1).collect();
        let is_short = |at: &usize| entries.get(*at).is_some_and(|entry| entry.len() <= MAX_BESIDE);
        let beside = beside.into_iter().map(|at| at.filter(is_short)).collect();
        Self { records, first, entries, beside }
    }

    /// Writes the new grains, with the entries that lie in their rows.
    pub(super) fn write_grains(
        &self,
        rows: &mut RowWriter<'_>,
        grains: &[StagedGrain],
        keys: &GroupKeys<'_>,
    ) -> Result<()> {
        let numbers = self.numbers_of_rows();
        let heads = self.beside.iter().zip(numbers);
        for (StagedGrain { sequence, prepared }, (beside, number)) in grains.iter().zip(heads) {
            let key = keys.key_at(*sequence)?;
            let blob = prepared.blob.bytes();
            let envelope = keys.vault.seal(RowKey::log(*sequence), blob, &key)?;
            let entry = beside.and_then(|at| self.entries.get(at)).map(Vec::as_slice);
            let row = keys.vault.log_row(*sequence, LogRowHead { number, entry }, envelope)?;
            rows.put(TruthTable::Log, *sequence, &row)?;
        }
        Ok(())
    }

    /// Writes the other entries, the reasons of all, and the head unless the last row of the log has the last entry.
    pub(super) fn write_others(
        &self,
        rows: &mut RowWriter<'_>,
        chain: &mut AuditHashChain,
        keys: &GroupKeys<'_>,
    ) -> Result<()> {
        let mut is_apart = vec![true; self.entries.len()];
        for at in self.beside.iter().flatten() {
            if let Some(apart) = is_apart.get_mut(*at) {
                *apart = false;
            }
        }
        let entries = self.records.iter().zip(&self.entries).zip(&is_apart).zip(self.first..);
        for (((record, entry), is_apart), number) in entries {
            if *is_apart {
                rows.put(TruthTable::Audit, number, entry)?;
            }
            write_reason(rows, chain, (number, record), &|record| keys.key_of_record(record))?;
        }
        let is_head_beside = match (self.entries.len().checked_sub(1), self.beside.last()) {
            (last @ Some(_), Some(beside)) => *beside == last,
            (None, None) => true,
            _ => false,
        };
        if is_apart.contains(&true) || !is_head_beside {
            rows.put(TruthTable::Audit, layout::AUDIT_HEAD, &chain.head().encode())?;
        }
        chain.write_segment(rows)
    }

    /// The number of each new row: of its entry, or of the next one beside a grain, so that none descends.
    fn numbers_of_rows(&self) -> Vec<u64> {
        let number = |at: usize| self.first.saturating_add(u64::try_from(at).unwrap_or(u64::MAX));
        let mut next = number(self.entries.len());
        let mut numbers: Vec<u64> = Vec::with_capacity(self.beside.len());
        for beside in self.beside.iter().rev() {
            next = beside.map_or(next, number);
            numbers.push(next);
        }
        numbers.reverse();
        numbers
    }
}

/// Returns for each of `grains` new grains the place of the record that lies beside it: the one of the write that brought
/// it, which names it last. Of records in another order than their grains, later grains have none.
fn entries_beside(
    records: &[AuditRecord],
    grains: usize,
    place_of: impl Fn(&AuditRecord) -> Option<usize>,
) -> Vec<Option<usize>> {
    let mut beside = vec![None; grains];
    let mut next = 0;
    for (at, record) in records.iter().enumerate() {
        let brings = matches!(record.operation, AuditOperation::Put | AuditOperation::Supersede);
        if record.refused || !brings {
            continue;
        }
        let Some(place) = place_of(record).filter(|place| *place >= next) else { continue };
        if let Some(of_grain) = beside.get_mut(place) {
            *of_grain = Some(at);
            next = place.saturating_add(1);
        }
    }
    beside
}

#[cfg(test)]
mod tests {
    use grainstore_format::ContentAddress;

    use super::*;

    /// The places and numbers of the rows of four grains with these records, whose first has the number 10.
    fn rows_of(records: &[(AuditOperation, &[u8], bool)]) -> (Vec<Option<usize>>, Vec<u64>) {
        let address = |byte: &u8| ContentAddress::from_bytes([*byte; 32]);
        let records = records.iter().map(|(operation, subjects, refused)| {
            let subjects = subjects.iter().map(address).collect();
            AuditRecord { refused: *refused, ..AuditRecord::new(*operation, subjects) }
        });
        let records: Vec<_> = records.collect();
        let place_of = |record: &AuditRecord| {
            (0..4).find(|place| record.subjects.last() == Some(&address(place))).map(usize::from)
        };
        let beside = entries_beside(&records, 4, place_of);
        let entries = vec![Vec::new(); records.len()];
        let group = GroupEntries { records: &records, first: 10, entries, beside };
        let numbers = group.numbers_of_rows();
        (group.beside, numbers)
    }

    #[test]
    fn the_entry_that_brought_a_grain_lies_beside_it_and_numbers_never_descend() {
        use AuditOperation::{Contradict, Put, Supersede};
        let alone: [(_, &[u8], _); 4] =
            [(Put, &[0], false), (Put, &[1], false), (Put, &[2], false), (Put, &[3], false)];
        let all = vec![Some(0), Some(1), Some(2), Some(3)];
        assert_eq!(rows_of(&alone), (all, vec![10, 11, 12, 13]));
        let batch: [(_, &[u8], _); 4] = [
            (Put, &[0], false),
            (Put, &[9], true),
            (Put, &[1, 2], false),
            (Supersede, &[1, 3], false),
        ];
        let beside = vec![Some(0), None, Some(2), Some(3)];
        assert_eq!(rows_of(&batch), (beside, vec![10, 12, 12, 13]));
        let turned: [(_, &[u8], _); 3] =
            [(Supersede, &[8, 3], false), (Put, &[0, 2], false), (Contradict, &[3], false)];
        assert_eq!(rows_of(&turned), (vec![None, None, None, Some(0)], vec![10; 4]));
        let refused: [(_, &[u8], _); 1] = [(Put, &[3], true)];
        assert_eq!(rows_of(&refused), (vec![None; 4], vec![11; 4]));
    }
}
