//! Segments of the audit log: each is a chain of evidence by itself, of at most 10,000 entries, 30 days and one set
//! of rules. The first entry of a segment says so; the store keeps where the present one began.

use grainstore_format::{EpochMs, Map, Value};
use serde::{Serialize, Serializer};

use super::AuditHashChain;
use crate::base::error::{Error, Result};
use crate::disk::layout::{META_SEGMENT, PlainEnvelope};
use crate::disk::truth_tables::TruthTable;
use crate::disk::truth_transaction::RowWriter;

/// Most entries of a segment of the audit log ([`Session::audit`](crate::Session::audit)).
pub const MAX_SEGMENT_ENTRIES: u64 = 10_000;
/// Longest time from the first entry of a segment of the audit log to its last, in days
/// ([`Session::audit`](crate::Session::audit)).
pub const MAX_SEGMENT_DAYS: u32 = 30;

const DAY_MS: i64 = 86_400_000;

/// The start of a segment of the audit log, in its first entry ([`Session::audit`](crate::Session::audit)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AuditSegment {
    /// Number of the segment, from 0, without a gap.
    pub number: u64,
    /// The rules of the store that its decisions were made by: the first 8 bytes of the SHA-256 of their
    /// configuration.
    #[serde(serialize_with = "hex")]
    pub policy_set: [u8; 8],
}

fn hex<S: Serializer>(bytes: &[u8; 8], to: S) -> std::result::Result<S::Ok, S::Error> {
    to.serialize_str(&data_encoding::HEXLOWER.encode(bytes))
}

impl AuditSegment {
    pub(super) fn fields(&self) -> Map {
        Map::from([
            ("number".to_owned(), Value::from(self.number)),
            ("policy_set".to_owned(), Value::Bytes(self.policy_set.to_vec())),
        ])
    }

    pub(super) fn from_fields(fields: &Value) -> Option<Self> {
        let Value::Map(fields) = fields else { return None };
        let number = u64::try_from(fields.get("number")?.as_i64()?).ok()?;
        match fields.get("policy_set")? {
            Value::Bytes(set) => Some(Self { number, policy_set: set.as_slice().try_into().ok()? }),
            _ => None,
        }
    }
}

/// The segment that entries are appended to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OpenSegment {
    pub(crate) start: AuditSegment,
    /// Sequence of its first entry.
    pub(crate) first: u64,
    /// Time of its first entry.
    pub(crate) since: EpochMs,
}

/// Bytes of the row of the open segment, without its envelope.
///
/// | bytes | what |
/// |---|---|
/// | 0..8 | number, u64 |
/// | 8..16 | the set of rules |
/// | 16..24 | sequence of its first entry, u64 |
/// | 24..32 | time of its first entry, epoch ms, i64 |
const SEGMENT_BYTES: usize = 32;

impl OpenSegment {
    /// Returns the row.
    pub(crate) fn seal(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(SEGMENT_BYTES);
        body.extend_from_slice(&self.start.number.to_be_bytes());
        body.extend_from_slice(&self.start.policy_set);
        body.extend_from_slice(&self.first.to_be_bytes());
        body.extend_from_slice(&self.since.get().to_be_bytes());
        PlainEnvelope::seal(0, &body)
    }

    /// Reads the row.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` for bytes that are none.
    pub(crate) fn open(row: &[u8]) -> Result<Self> {
        let damaged = || Error::truth_damaged("the row of the segment of the audit log is damaged");
        let body = PlainEnvelope::open(0, row)?;
        let ([number, policy_set, first, since], []) = body.as_chunks::<8>() else {
            return Err(damaged());
        };
        let number = u64::from_be_bytes(*number);
        Ok(Self {
            start: AuditSegment { number, policy_set: *policy_set },
            first: u64::from_be_bytes(*first),
            since: EpochMs::new(i64::from_be_bytes(*since)),
        })
    }

    /// Returns `true` if an entry of these rules may belong to it.
    fn takes(&self, sequence: u64, now: EpochMs, policy_set: [u8; 8]) -> bool {
        let age = now.get().saturating_sub(self.since.get());
        // A clock that was far ahead when it began must not keep it open.
        let is_ahead = age < DAY_MS.saturating_neg();
        !is_ahead
            && self.start.policy_set == policy_set
            && sequence.saturating_sub(self.first) < MAX_SEGMENT_ENTRIES
            && age < i64::from(MAX_SEGMENT_DAYS).saturating_mul(DAY_MS)
    }
}

impl AuditHashChain {
    /// Sets the segment that was open when the store was closed, and the rules in force.
    pub(crate) fn in_segment(self, open: Option<OpenSegment>, policy_set: [u8; 8]) -> Self {
        Self { segment: open, policy_set, ..self }
    }

    /// Sets the rules in force: the next entry begins a segment if they are others.
    pub(crate) fn set_policy_set(&mut self, policy_set: [u8; 8]) {
        self.policy_set = policy_set;
    }

    /// Begins a segment if the next entry belongs to none that is open. Returns its start.
    pub(super) fn begin_segment(&mut self, now: EpochMs) -> Option<AuditSegment> {
        let sequence = self.head().count;
        let number = match &self.segment {
            Some(open) if open.takes(sequence, now, self.policy_set) => return None,
            Some(open) => open.start.number.saturating_add(1),
            None => 0,
        };
        let start = AuditSegment { number, policy_set: self.policy_set };
        self.segment = Some(OpenSegment { start, first: sequence, since: now });
        self.segment_changed = true;
        Some(start)
    }

    /// Writes where the open segment began, if that changed.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn write_segment(&mut self, rows: &mut RowWriter<'_>) -> Result<()> {
        if std::mem::take(&mut self.segment_changed)
            && let Some(open) = &self.segment
        {
            rows.put(TruthTable::Meta, META_SEGMENT, &open.seal())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{AuditEntry, AuditOperation, AuditRecord};
    use super::*;

    fn appended(chain: &mut AuditHashChain, now: i64) -> Option<AuditSegment> {
        let record = AuditRecord::new(AuditOperation::Hold, Vec::new());
        let (_, bytes) = chain.append(&record, EpochMs::new(now));
        AuditEntry::decode(&bytes).unwrap().segment
    }

    fn chain() -> AuditHashChain {
        AuditHashChain::genesis(&[1; 16], [2; 32]).in_segment(None, [3; 8])
    }

    #[test]
    fn a_segment_ends_with_its_entries_its_days_and_its_rules() {
        let mut chain = chain();
        let begun = |number| Some(AuditSegment { number, policy_set: [3; 8] });
        assert_eq!(appended(&mut chain, 5), begun(0));
        for _ in 1..MAX_SEGMENT_ENTRIES {
            assert_eq!(appended(&mut chain, 6), None);
        }
        assert_eq!(appended(&mut chain, 7), begun(1));
        let end = 7 + i64::from(MAX_SEGMENT_DAYS) * DAY_MS;
        assert_eq!(appended(&mut chain, end - 1), None);
        assert_eq!(appended(&mut chain, end), begun(2));
        assert_eq!(appended(&mut chain, end - DAY_MS), None, "the clock went back");
        assert_eq!(appended(&mut chain, 0), begun(3), "it was far ahead");
        chain.set_policy_set([4; 8]);
        assert_eq!(appended(&mut chain, end), Some(AuditSegment { number: 4, policy_set: [4; 8] }));
        assert_eq!(appended(&mut chain, end), None);
    }

    #[test]
    fn the_row_of_a_segment_has_the_bytes_of_the_format() {
        let mut chain = chain();
        appended(&mut chain, 5);
        let open = chain.segment.unwrap();
        let row = open.seal();
        let body =
            [[0, 0, 0, 0, 0, 0, 0, 0], [3; 8], [0, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 5]];
        assert_eq!(row, PlainEnvelope::seal(0, body.as_flattened()));
        assert_eq!(OpenSegment::open(&row).unwrap(), open);
        for at in 0..row.len() {
            let mut other = row.clone();
            other[at] ^= 1;
            assert!(OpenSegment::open(&other).is_err() && OpenSegment::open(&row[..at]).is_err());
        }
    }
}
