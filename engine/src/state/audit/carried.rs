//! Counts of refusals that a store carries from one opening to the next: the log has a count of their minute
//! already, and gets one more once that minute is over. Until then they lie in a row of the meta table.
//!
//! Does not know which refusals are equal.

use std::collections::BTreeMap;

use grainstore_format::{Encoding, EpochMs, Map, Value, decode_value, encode_value};

use super::AuditHashChain;
use crate::base::error::{Error, Result};
use crate::disk::layout::{self, PlainEnvelope};
use crate::disk::truth_tables::TruthTable;
use crate::disk::truth_transaction::RowWriter;

/// The kind of an entry, and the number of refusals of that kind that were not recorded.
pub(crate) type CarriedCount = (Vec<u8>, u64);

/// Counts that wait for their minute to be over.
#[derive(Debug, Clone, Default)]
pub(crate) struct CarriedCounts {
    /// Kind -> when the first of that kind was written, and how many were not recorded since.
    counts: BTreeMap<Vec<u8>, (EpochMs, u64)>,
    /// True if the row has others.
    changed: bool,
}

impl CarriedCounts {
    /// Reads the row. What cannot be read is for `verify` to tell.
    pub(super) fn read(row: Option<&[u8]>) -> Self {
        let counts = row.and_then(|row| Self::open(row).ok()).unwrap_or_default();
        Self { counts, changed: false }
    }

    /// Decodes the row.
    ///
    /// # Errors
    /// As [`PlainEnvelope::open`]; `ERR_INTEGRITY` for bytes no version wrote.
    pub(crate) fn open(row: &[u8]) -> Result<BTreeMap<Vec<u8>, (EpochMs, u64)>> {
        let body = PlainEnvelope::open(0, row)?;
        let Ok(Value::Array(rows)) = decode_value(body, Encoding::MessagePack) else {
            return Err(damaged());
        };
        let read = |row: Value| {
            let Value::Map(mut fields) = row else { return None };
            let Value::Map(_) = fields.get("entry")? else { return None };
            let count = u64::try_from(fields.get("count")?.as_i64()?).ok()?;
            let since = EpochMs::new(fields.get("since_ms")?.as_i64()?);
            let kind = encode_value(&fields.remove("entry")?, Encoding::MessagePack);
            Some((kind, (since, count)))
        };
        rows.into_iter().map(|row| read(row).ok_or_else(damaged)).collect()
    }

    fn seal(&self) -> Result<Vec<u8>> {
        let row = |(kind, (since, count)): (&Vec<u8>, &(EpochMs, u64))| {
            let entry = decode_value(kind, Encoding::MessagePack).map_err(|_| damaged())?;
            Ok(Value::Map(Map::from([
                ("count".to_owned(), Value::from(*count)),
                ("entry".to_owned(), entry),
                ("since_ms".to_owned(), Value::from(since.get())),
            ])))
        };
        let rows = self.counts.iter().map(row).collect::<Result<_>>()?;
        Ok(PlainEnvelope::seal(0, &encode_value(&Value::Array(rows), Encoding::MessagePack)))
    }

    /// Returns the number of kinds.
    pub(super) fn len(&self) -> usize {
        self.counts.len()
    }

    /// Returns `true` if the row has to be written.
    pub(crate) fn is_changed(&self) -> bool {
        self.changed
    }

    /// Adds refusals of a kind whose first was written at `since`.
    pub(super) fn add(&mut self, kind: Vec<u8>, since: EpochMs, more: u64) {
        let (last, count) = self.counts.entry(kind).or_insert((since, 0));
        *last = since.max(*last);
        *count = count.saturating_add(more);
        self.changed = true;
    }

    /// Removes and returns the counts whose minute is over.
    pub(crate) fn over(&mut self, is_recent: impl Fn(EpochMs) -> bool) -> Vec<CarriedCount> {
        let over = self.counts.extract_if(.., |_, (since, _)| !is_recent(*since));
        let over: Vec<_> = over.map(|(kind, (_, count))| (kind, count)).collect();
        self.changed |= !over.is_empty();
        over
    }

    /// Writes the row, which is removed if nothing is left, and audit entries of the counts in `over`.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn write(
        &mut self,
        rows: &mut RowWriter<'_>,
        chain: &mut AuditHashChain,
        over: &[CarriedCount],
        now: EpochMs,
    ) -> Result<()> {
        match self.counts.is_empty() {
            true => rows.remove(TruthTable::Meta, layout::META_REFUSALS)?,
            false => rows.put(TruthTable::Meta, layout::META_REFUSALS, &self.seal()?)?,
        };
        self.changed = false;
        if over.is_empty() {
            return Ok(());
        }
        for (kind, count) in over {
            let (sequence, entry) = chain.link_count(kind, *count, now)?;
            rows.put(TruthTable::Audit, sequence, &entry)?;
        }
        rows.put(TruthTable::Audit, layout::AUDIT_HEAD, &chain.head().encode())?;
        chain.write_segment(rows)
    }
}

impl AuditHashChain {
    /// Appends an entry of this kind that stands for `count` refusals.
    fn link_count(&mut self, kind: &[u8], count: u64, now: EpochMs) -> Result<(u64, Vec<u8>)> {
        let Ok(Value::Map(mut entry)) = decode_value(kind, Encoding::MessagePack) else {
            return Err(damaged());
        };
        entry.insert("count".to_owned(), Value::from(count));
        Ok(self.link(entry, now))
    }
}

fn damaged() -> Error {
    Error::truth_damaged("a count of refusals is damaged")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::audit::{AuditEntry, AuditOperation, AuditRecord};

    #[test]
    fn counts_read_back_as_the_format_shows_and_make_entries() {
        let mut chain = AuditHashChain::genesis(&[1; 16], [2; 32]);
        let refused =
            AuditRecord { refused: true, ..AuditRecord::new(AuditOperation::Put, Vec::new()) };
        let kind = chain.kind_of(&refused);
        let mut carried = CarriedCounts::default();
        carried.add(kind.clone(), EpochMs::new(7), 2);
        carried.add(kind.clone(), EpochMs::new(7), 1);
        let row = carried.seal().unwrap();
        let shown =
            b"\x91\x83\xa5count\x03\xa5entry\x84\xa5actor\xa8operator\xa8decision\xa7refused\
            \xa9operation\xa3put\xa8subjects\x90\xa8since_ms\x07";
        assert_eq!(PlainEnvelope::open(0, &row).unwrap(), shown);
        let mut again = CarriedCounts::read(Some(&row));
        assert_eq!((&again.counts, again.changed), (&carried.counts, false));
        assert_eq!(again.over(|since| since.get() == 7), []);
        let over = again.over(|_| false);
        assert_eq!((&over, again.changed), (&vec![(kind.clone(), 3)], true));
        let (_, bytes) = chain.link_count(&kind, 3, EpochMs::new(9)).unwrap();
        let entry = AuditEntry::decode(&bytes).unwrap();
        assert_eq!((entry.count, entry.operation.as_str()), (Some(3), "put"));
        let (_, one) = AuditHashChain::genesis(&[1; 16], [2; 32])
            .append(&AuditRecord { count: Some(3), ..refused }, EpochMs::new(9));
        assert_eq!(bytes, one, "as if it had been counted in one opening");
        assert!(CarriedCounts::read(Some(b"garbage")).counts.is_empty());
    }
}
