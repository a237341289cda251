//! Checks that the tables fit this code and this log (layout stamp and watermark), and resets them.
//!
//! Knows no postings. It only reports a stale index; the engine rebuilds it.

use redb::{ReadTransaction, ReadableTable, TableHandle, WriteTransaction};

use crate::error::{Error, ErrorKind, Result};
use crate::keys;
use crate::posting::Sequence;
use crate::row_sum::{RowSeal, RowSum};
use crate::tables::{self, META, NAME_PREFIX};
use crate::term::NextIds;
use crate::words;

const STAMP: &str = "stamp";
pub(crate) const WATERMARK: &str = "watermark";
pub(crate) const NEXT_IDS: &str = "next_ids";

/// The last grain an index contains; the log continues after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Watermark {
    /// Its position in the log.
    pub sequence: Sequence,
    /// Its address as the log stores it (blinded in an encrypted store). It tells one log from another with
    /// the same sequences.
    pub address: [u8; 32],
}

/// The state of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexState {
    /// Everything up to the watermark is folded; `None` if nothing is.
    Ready(Option<Watermark>),
    /// The index must be rebuilt: call [`reset`], then push and fold the whole log.
    Stale(StaleReason),
}

/// The reason an index must be rebuilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StaleReason {
    /// There is no index, or it has no stamp.
    Missing,
    /// The tables have another layout, of this version.
    Layout(u32),
    /// A table or row of the index is malformed, or the keyed sums do not fit it.
    Damaged,
    /// The index was folded from another log, or from a later state of this one.
    OtherLog,
}

/// Compares the index with the code and with the log.
///
/// `address_at` returns the address the log has at a sequence, `None` beyond its end. In an encrypted store
/// `seal` is given, and the sums must fit the watermark; rows are compared with them when they are read.
///
/// # Errors
/// `ERR_IO`, and the errors of `address_at`. Damage is a result, not an error.
pub fn state<E: From<Error>>(
    txn: &ReadTransaction,
    address_at: impl FnOnce(Sequence) -> Result<Option<[u8; 32]>, E>,
    seal: Option<&dyn RowSeal>,
) -> Result<IndexState, E> {
    let stored = stored_state(txn, seal).or_else(|error| match error.kind() {
        ErrorKind::Integrity => Ok(IndexState::Stale(StaleReason::Damaged)),
        _ => Err(error),
    })?;
    if let IndexState::Ready(Some(mark)) = stored
        && address_at(mark.sequence)? != Some(mark.address)
    {
        return Ok(IndexState::Stale(StaleReason::OtherLog));
    }
    Ok(stored)
}

/// The state as far as the tables alone show it.
fn stored_state(txn: &ReadTransaction, seal: Option<&dyn RowSeal>) -> Result<IndexState> {
    let stale = |reason| Ok(IndexState::Stale(reason));
    let meta = match txn.open_table(META) {
        Err(redb::TableError::TableDoesNotExist(_)) => return stale(StaleReason::Missing),
        opened => opened?,
    };
    match stamp(&meta)? {
        None => return stale(StaleReason::Missing),
        Some(version) if version != keys::LAYOUT => return stale(StaleReason::Layout(version)),
        Some(_) => {}
    }
    tables::check(txn)?;
    next_ids(&meta)?;
    RowSum::stored(seal, &meta)?;
    Ok(IndexState::Ready(watermark(&meta)?))
}

/// Deletes every derived table of any layout version. The truth tables stay.
///
/// No table of the index may be open in this transaction.
///
/// # Errors
/// `ERR_IO`; `ERR_INTEGRITY` if a table of the index is open in this transaction.
pub fn drop_all(txn: &WriteTransaction) -> Result<()> {
    let derived: Vec<_> =
        txn.list_tables()?.filter(|table| table.name().starts_with(NAME_PREFIX)).collect();
    for table in derived {
        txn.delete_table(table)?;
    }
    Ok(())
}

/// Drops the index and creates an empty one: for a new store, and at the start of a rebuild.
///
/// # Errors
/// `ERR_IO`; `ERR_INTEGRITY` if a table of the index is open in this transaction.
pub fn reset(txn: &WriteTransaction, seal: Option<&dyn RowSeal>) -> Result<()> {
    drop_all(txn)?;
    tables::create(txn)?;
    let mut meta = txn.open_table(META)?;
    meta.insert(STAMP, keys::LAYOUT.to_be_bytes().as_slice())?;
    set_next_ids(&mut meta, &NextIds::FIRST)?;
    RowSum::empty(seal).store(&mut meta)
}

/// The layout version of the tables.
pub(crate) fn stamp(meta: &impl ReadableTable<&'static str, &'static [u8]>) -> Result<Option<u32>> {
    let Some(row) = meta.get(STAMP)? else {
        return Ok(None);
    };
    match row.value().try_into() {
        Ok(version) => Ok(Some(u32::from_be_bytes(version))),
        Err(_) => Err(Error::integrity("the index stamp is not four bytes")),
    }
}

/// The watermark of the tables.
pub(crate) fn watermark(
    meta: &impl ReadableTable<&'static str, &'static [u8]>,
) -> Result<Option<Watermark>> {
    let Some(row) = meta.get(WATERMARK)? else {
        return Ok(None);
    };
    match words::watermark_of(row.value()) {
        Some(mark) => Ok(Some(mark)),
        None => Err(Error::integrity("the index watermark is not forty bytes")),
    }
}

/// Stores the watermark of the tables.
pub(crate) fn set_watermark(
    meta: &mut redb::Table<'_, &'static str, &'static [u8]>,
    mark: &Watermark,
) -> Result<()> {
    meta.insert(WATERMARK, words::watermark_row(mark).as_slice())?;
    Ok(())
}

/// The id counters of the dictionary.
pub(crate) fn next_ids(meta: &impl ReadableTable<&'static str, &'static [u8]>) -> Result<NextIds> {
    let row = meta.get(NEXT_IDS)?;
    let ids = row.and_then(|row| words::next_ids_of(row.value()));
    ids.ok_or_else(|| Error::integrity("the index has no readable counters"))
}

/// Stores the id counters of the dictionary.
pub(crate) fn set_next_ids(
    meta: &mut redb::Table<'_, &'static str, &'static [u8]>,
    ids: &NextIds,
) -> Result<()> {
    meta.insert(NEXT_IDS, words::next_ids_row(ids).as_slice())?;
    Ok(())
}

#[cfg(test)]
#[path = "stamp_tests.rs"]
mod tests;
