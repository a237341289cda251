//! Checks that the tables fit this code and this log (layout stamp and watermark), and resets them.
//!
//! Knows no postings. It only reports a stale index; the engine rebuilds it.

use redb::{ReadTransaction, TableHandle, WriteTransaction};

use crate::block_seal::{self, BlockSeal};
use crate::error::{Error, ErrorKind, Result};
use crate::keys;
use crate::meta::{META, STAMP, next_ids, set_next_ids, stamp, watermark};
use crate::posting::{Sequence, Watermark};
use crate::run::directory::RunDirectory;
use crate::run::table::{Run, RunCache};
use crate::tables::NAME_PREFIX;
use crate::term::NextIds;

/// The state of an index, as [`state`] finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexState {
    /// Everything up to the watermark is folded; `None` if nothing is.
    Ready(Option<Watermark>),
    /// The index must be rebuilt: call [`reset`], then push and fold the whole log.
    Stale(StaleReason),
}

/// The reason an index must be rebuilt, as [`state`] finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StaleReason {
    /// There is no index, or it has no stamp.
    Missing,
    /// The tables have another layout, of this version.
    Layout(u32),
    /// A table or row of the index is malformed, or was not sealed by this store.
    Damaged,
    /// The index was folded from another log, or from a later state of this one.
    OtherLog,
}

/// Compares the index with the code and with the log.
///
/// `address_at` returns the address the log has at a sequence, `None` beyond its end. In an encrypted store
/// `seal` is given, and the watermark and the runs must be those it sealed; blocks are compared with their tags when
/// they are read.
///
/// ```
/// use grainstore_index::{Error, IndexState, StaleReason, reset, state};
/// use redb::{Database, ReadableDatabase, backends::InMemoryBackend};
///
/// let db = Database::builder().create_with_backend(InMemoryBackend::new())?;
/// let of_no_log = |_| Ok::<_, Error>(None);
/// let found = state(&db.begin_read()?, of_no_log, None)?;
/// assert_eq!(found, IndexState::Stale(StaleReason::Missing));
/// let txn = db.begin_write()?;
/// reset(&txn, None, [0; 16])?;
/// txn.commit()?;
/// assert_eq!(state(&db.begin_read()?, of_no_log, None)?, IndexState::Ready(None));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// `ERR_IO`, and the errors of `address_at`. Damage is a result, not an error.
pub fn state<E: From<Error>>(
    txn: &ReadTransaction,
    address_at: impl FnOnce(Sequence) -> Result<Option<[u8; 32]>, E>,
    seal: Option<&dyn BlockSeal>,
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
fn stored_state(txn: &ReadTransaction, seal: Option<&dyn BlockSeal>) -> Result<IndexState> {
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
    next_ids(&meta)?;
    block_seal::check_marks(seal, &meta)?;
    Run::open_all(txn, RunDirectory::stored(&meta)?, (None, &RunCache::default()))?;
    Ok(IndexState::Ready(watermark(&meta)?))
}

/// Deletes every derived table of any layout version; [`state`] then says that there is no index. The truth
/// tables stay.
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

/// Drops the index and creates an empty one, which [`Tables`](crate::Tables) reads: for a new store, and at
/// the start of a rebuild. `nonce` are random bytes that tell this index from others.
///
/// # Errors
/// `ERR_IO`; `ERR_INTEGRITY` if a table of the index is open in this transaction.
pub fn reset(txn: &WriteTransaction, seal: Option<&dyn BlockSeal>, nonce: [u8; 16]) -> Result<()> {
    drop_all(txn)?;
    let mut meta = txn.open_table(META)?;
    meta.insert(STAMP, keys::LAYOUT.to_be_bytes().as_slice())?;
    set_next_ids(&mut meta, &NextIds::FIRST)?;
    RunDirectory::empty(nonce).store(&mut meta)?;
    block_seal::seal_marks(seal, &mut meta)
}

#[cfg(test)]
#[path = "stamp_tests.rs"]
mod tests;
