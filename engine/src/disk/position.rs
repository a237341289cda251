//! The place in a journal that a copy of a store is at, kept in the file of the truth but not part of it: it is
//! written with the rows of the commit, and so is never ahead of them nor behind.

use redb::{
    Database, ReadTransaction, ReadableDatabase, TableDefinition, TableError, WriteTransaction,
};

use crate::base::error::{Error, Result};
use crate::disk::journal::{Head, ShardId};

/// [`ROW`] -> shard, commit, epoch as u64, hash of the record (32), CRC-32 of all that. Created with a journal.
const POSITION: TableDefinition<'static, &'static str, &'static [u8]> =
    TableDefinition::new("position");
const ROW: &str = "journal";
/// Is there while files of the copy may have what the applied records erased.
const SCRUB_ROW: &str = "scrub";
const CHECKED_BYTES: usize = 56;

/// The place in the journal of a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) shard: ShardId,
    /// The last record that was applied.
    pub(crate) head: Head,
    /// The lead that it was appended under.
    pub(crate) epoch: u64,
}

impl Position {
    /// The place before the first record.
    pub(crate) const fn start(shard: ShardId) -> Self {
        Self { shard, head: Head::EMPTY, epoch: 0 }
    }

    /// Reads the place; `None` for a store that never had a journal.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn read(db: &Database) -> Result<Option<Self>> {
        Self::read_in(&db.begin_read()?)
    }

    /// Reads the place that a snapshot is at.
    ///
    /// # Errors
    /// As [`Position::read`].
    pub(crate) fn read_in(txn: &ReadTransaction) -> Result<Option<Self>> {
        let table = match txn.open_table(POSITION) {
            Ok(table) => table,
            Err(TableError::TableDoesNotExist(_)) => return Ok(None),
            Err(failed) => return Err(failed.into()),
        };
        let row = table.get(ROW)?;
        row.map(|row| Self::decode(row.value()).ok_or_else(damaged)).transpose()
    }

    /// Writes the place in the transaction of the commit.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn write(&self, txn: &WriteTransaction) -> Result<()> {
        txn.open_table(POSITION)?.insert(ROW, self.encode().as_slice())?;
        Ok(())
    }

    /// Notes in the transaction of the commit that files of the copy may have what it erased.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn make_scrub_due(txn: &WriteTransaction) -> Result<()> {
        txn.open_table(POSITION)?.insert(SCRUB_ROW, [].as_slice())?;
        Ok(())
    }

    /// Returns `true` if files of the copy may have what records erased that were applied when it was opened.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn is_scrub_due(db: &Database) -> Result<bool> {
        match db.begin_read()?.open_table(POSITION) {
            Ok(table) => Ok(table.get(SCRUB_ROW)?.is_some()),
            Err(TableError::TableDoesNotExist(_)) => Ok(false),
            Err(failed) => Err(failed.into()),
        }
    }

    /// Notes that they have not.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn end_scrub(txn: &WriteTransaction) -> Result<()> {
        txn.open_table(POSITION)?.remove(SCRUB_ROW)?;
        Ok(())
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(CHECKED_BYTES.saturating_add(4));
        for number in [self.shard.0, self.head.commit, self.epoch] {
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        bytes.extend_from_slice(&self.head.chain);
        bytes.extend_from_slice(&crc32fast::hash(&bytes).to_be_bytes());
        bytes
    }

    fn decode(row: &[u8]) -> Option<Self> {
        let (checked, sum) = row.split_at_checked(CHECKED_BYTES)?;
        if crc32fast::hash(checked).to_be_bytes() != sum {
            return None;
        }
        let (numbers, chain) = checked.split_last_chunk::<32>()?;
        let mut numbers = numbers.chunks_exact(8).filter_map(|number| number.try_into().ok());
        let mut next = || numbers.next().map(u64::from_be_bytes);
        let (shard, commit, epoch) = (ShardId(next()?), next()?, next()?);
        Some(Self { shard, head: Head::new(commit, *chain), epoch })
    }
}

fn damaged() -> Error {
    Error::truth_damaged("the place in the journal is damaged")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_as_it_was_written_and_not_if_a_bit_has_changed() {
        let position = Position { shard: ShardId(3), head: Head::new(7, [9; 32]), epoch: 2 };
        let bytes = position.encode();
        assert_eq!(Position::decode(&bytes), Some(position));
        for place in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] ^= 1;
            assert_eq!(Position::decode(&changed), None, "{place}");
        }
        assert_eq!(Position::decode(&bytes[..20]), None);
    }
}
