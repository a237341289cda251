//! Reading a change record, and applying it to a database that is where the writer's was before the commit.

use redb::WriteTransaction;

use super::{ChangeRecord, REMOVED, VERSION};
use crate::base::error::{Error, ErrorKind, Result};
use crate::disk::truth_tables::{OpenTables, TruthTable};

/// A row of a record: its table, its key and its value; the value is `None` where it was removed.
pub(crate) type Row<'r> = (TruthTable, &'r [u8], Option<&'r [u8]>);

impl ChangeRecord {
    /// The bytes.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns `true` if it writes nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.len() <= 1
    }

    /// Reads a record, all of it.
    ///
    /// # Errors
    /// `ERR_STORE_VERSION` for one of a later version, or with a table that is not known; `ERR_INTEGRITY` for bytes that
    /// are none, or cut off.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self> {
        match bytes.first() {
            Some(&VERSION) => {}
            Some(version) => {
                let message = format!("change record version {version} is not known");
                return Err(Error::new(ErrorKind::StoreVersion, message));
            }
            None => return Err(damaged()),
        }
        let record = Self(bytes.to_vec());
        record.rows().try_for_each(|row| row.map(drop))?;
        Ok(record)
    }

    /// Iterates over the rows.
    pub(crate) fn rows(&self) -> impl Iterator<Item = Result<Row<'_>>> {
        let mut rest = self.0.get(1..).unwrap_or_default();
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let row = split_row(rest);
            rest = row.as_ref().map_or(&[][..], |(_, rest)| *rest);
            Some(row.map(|(row, _)| row))
        })
    }

    /// Writes the rows in a transaction of a database that is where this one was before the commit.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` for a row that does not fit its table; `ERR_IO`.
    pub(crate) fn apply(&self, txn: &WriteTransaction) -> Result<()> {
        let mut tables = OpenTables::new(txn);
        for row in self.rows() {
            let (table, key, value) = row?;
            if key.is_empty() && value.is_none() {
                tables.create(table)?;
                continue;
            }
            let key = table.key(key).ok_or_else(damaged)?;
            tables.set(table, key, value, |_| {})?;
        }
        Ok(())
    }
}

fn split_row(bytes: &[u8]) -> Result<(Row<'_>, &[u8])> {
    let (number, rest) = bytes.split_first().ok_or_else(damaged)?;
    let table = TruthTable::from_number(*number).ok_or_else(|| {
        let message = format!("a change record has table {number}, which is not known");
        Error::new(ErrorKind::StoreVersion, message)
            .with_hint("run the version that wrote it, or a later one")
    })?;
    let ((key, value), rest) = split_cells(rest).ok_or_else(damaged)?;
    Ok(((table, key, value), rest))
}

/// A key and its value.
type Cells<'r> = (&'r [u8], Option<&'r [u8]>);

fn split_cells(bytes: &[u8]) -> Option<(Cells<'_>, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    let (key, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    match u32::from_be_bytes(*length) {
        REMOVED => Some(((key, None), rest)),
        length => {
            let (value, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
            Some(((key, Some(value)), rest))
        }
    }
}

fn damaged() -> Error {
    Error::integrity("a change record is damaged")
}
