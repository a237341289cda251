//! The bytes of a change record: all rows that one commit writes and removes (docs/format.md, "Change records").
//!
//! Knows tables by number, not what is in them.

mod reading;
#[cfg(test)]
mod tests;

use crate::base::error::{Error, ErrorKind, Result};
use crate::disk::truth_tables::{TableKey, TruthTable};

/// A change record.
///
/// | bytes | what |
/// |---|---|
/// | 0 | version, 1 |
/// | 1.. | rows: number of the table (1), length of the key (u16), key, length of the value (u32), value |
///
/// The length `ffffffff` says that the row was removed, and with an empty key that the table was created. Rows are in the order in which they were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChangeRecord(Vec<u8>);

const VERSION: u8 = 1;
const REMOVED: u32 = u32::MAX;

impl Default for ChangeRecord {
    fn default() -> Self {
        Self(vec![VERSION])
    }
}

impl ChangeRecord {
    /// Adds a table, which may have no rows.
    ///
    /// # Errors
    /// None.
    pub(crate) fn push_table(&mut self, table: TruthTable) -> Result<()> {
        self.push(table, TableKey::Bytes(&[]), None)
    }

    /// Adds a row.
    ///
    /// # Errors
    /// `ERR_LIMIT` for a key of more than 65,535 bytes, or a value of 4 GiB.
    pub(crate) fn push(
        &mut self,
        table: TruthTable,
        key: TableKey<'_>,
        value: Option<&[u8]>,
    ) -> Result<()> {
        let too_long = || Error::new(ErrorKind::Limit, "a row is too long for a change record");
        let length = value.map_or(Ok(REMOVED), |value| u32::try_from(value.len()));
        let length = length.ok().filter(|length| value.is_none() || *length != REMOVED);
        let length = length.ok_or_else(too_long)?;
        key.with_bytes(|key| {
            let key_length = u16::try_from(key.len()).map_err(|_| too_long())?;
            self.0.push(table.number());
            self.0.extend_from_slice(&key_length.to_be_bytes());
            self.0.extend_from_slice(key);
            Ok::<_, Error>(())
        })?;
        self.0.extend_from_slice(&length.to_be_bytes());
        self.0.extend_from_slice(value.unwrap_or_default());
        Ok(())
    }
}
