//! Keyed sums over the rows of the index of an encrypted store, one for each table: a row that somebody without
//! the key edits, adds or removes no longer fits the sum of its table. A table is compared with its sum when it
//! is first read. This module holds no keys; the engine does.

use redb::ReadableTable;

use crate::error::{Error, Result};
use crate::meta::{HISTORY, NEXT_IDS, WATERMARK};
use crate::posting_lists::PostingList;

/// Row of the table `index.meta` of an encrypted store with the sums that a [`RowSeal`] seals: 32 bytes for
/// each table, then the rows of the watermark, of the counters and of the history.
pub const ROW_SUM: &str = "row_sum";

/// Numbers of the tables that are no posting lists; a list has the number of its place.
pub(crate) const SAMPLE_TABLE: u8 = PostingList::Value as u8 + 1;
pub(crate) const TERMS_TABLE: u8 = SAMPLE_TABLE + 1;
pub(crate) const ADDRESS_TABLE: u8 = TERMS_TABLE + 1;
/// The number of tables with a sum.
const SUMS: usize = ADDRESS_TABLE as usize + 1;

/// Computes the tokens of rows, and seals their sums, under a key of the store.
///
/// ```
/// use grainstore_index::{Result, RowSeal};
/// # use grainstore_index::{Tables, reset};
/// # use redb::{Database, ReadableDatabase, backends::InMemoryBackend};
///
/// // A seal without a key, which a store would not use.
/// struct Open;
///
/// impl RowSeal for Open {
///     fn token(&self, table: u8, _: &[u8], _: &[u8]) -> [u8; 32] { [table; 32] }
///     fn seal(&self, body: &[u8]) -> Result<Vec<u8>> { Ok(body.to_vec()) }
///     fn open(&self, sealed: &[u8]) -> Option<Vec<u8>> { Some(sealed.to_vec()) }
///     fn is_checked(&self, _: u8) -> bool { false }
///     fn set_checked(&self, _: u8) {}
/// }
/// # let db = Database::builder().create_with_backend(InMemoryBackend::new())?;
/// # let txn = db.begin_write()?;
/// # reset(&txn, Some(&Open))?;
/// # txn.commit()?;
/// # Tables::open(db.begin_read()?, Some(std::sync::Arc::new(Open))).check_rows()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait RowSeal: Send + Sync {
    /// The token of a row, which cannot be computed without the key. Keys of one table are not prefixes of
    /// each other, or differ in length.
    fn token(&self, table: u8, key: &[u8], value: &[u8]) -> [u8; 32];

    /// Encrypts the sums.
    ///
    /// # Errors
    /// Those of the engine, as `ERR_IO`.
    fn seal(&self, body: &[u8]) -> Result<Vec<u8>>;

    /// Decrypts the sums; `None` for bytes that this store did not seal, or sealed for an index it no longer
    /// uses.
    fn open(&self, sealed: &[u8]) -> Option<Vec<u8>>;

    /// Returns `true` if a table was compared with its sum since the store was opened.
    fn is_checked(&self, table: u8) -> bool;

    /// Notes that a table was compared with its sum.
    fn set_checked(&self, table: u8);
}

/// The sums of the rows, kept up while rows are written. Counts nothing in a plain store.
pub(crate) struct RowSum<'s> {
    seal: Option<&'s dyn RowSeal>,
    sums: [[u8; 32]; SUMS],
}

impl<'s> RowSum<'s> {
    /// The sums of no rows.
    pub(crate) fn empty(seal: Option<&'s dyn RowSeal>) -> Self {
        Self { seal, sums: [[0; 32]; SUMS] }
    }

    /// The sums of the rows there are, as they were stored with them.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if there are none, or they were written for another watermark; `ERR_IO`.
    pub(crate) fn stored(
        seal: Option<&'s dyn RowSeal>,
        meta: &impl ReadableTable<&'static str, &'static [u8]>,
    ) -> Result<Self> {
        let Some(key) = seal else { return Ok(Self::empty(seal)) };
        let opened = meta.get(ROW_SUM)?.and_then(|row| key.open(row.value()));
        let body = opened.ok_or_else(damaged)?;
        let (sums, marks) = body.split_at_checked(SUMS * 32).ok_or_else(damaged)?;
        if marks != Self::marks(meta)? {
            return Err(damaged());
        }
        let sums = sums.as_chunks().0.try_into().map_err(|_| damaged())?;
        Ok(Self { seal, sums })
    }

    /// Stores the sums, bound to the watermark, the counters and the history, which must have been stored before.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn store(
        &self,
        meta: &mut redb::Table<'_, &'static str, &'static [u8]>,
    ) -> Result<()> {
        let Some(seal) = self.seal else { return Ok(()) };
        let body = [self.sums.as_flattened(), &Self::marks(meta)?].concat();
        meta.insert(ROW_SUM, seal.seal(&body)?.as_slice())?;
        Ok(())
    }

    fn marks(meta: &impl ReadableTable<&'static str, &'static [u8]>) -> Result<Vec<u8>> {
        let mut marks = Vec::new();
        for name in [WATERMARK, NEXT_IDS, HISTORY] {
            marks.extend(meta.get(name)?.map(|row| row.value().to_vec()).unwrap_or_default());
        }
        Ok(marks)
    }

    /// Adds a row of a posting list or of the sample, which has no value.
    pub(crate) fn add_posting(&mut self, list: u8, row: &[u8]) {
        self.toggle(list, row, &[]);
    }

    pub(crate) fn add_sample(&mut self, row: &[u8]) {
        self.toggle(SAMPLE_TABLE, row, &[]);
    }

    pub(crate) fn add_term(&mut self, key: &[u8], value: &[u8]) {
        self.toggle(TERMS_TABLE, key, value);
    }

    pub(crate) fn add_address(&mut self, address: &[u8; 32], sequence: u64) {
        self.toggle(ADDRESS_TABLE, address, &sequence.to_be_bytes());
    }

    /// Returns `true` if both have the same sum of a table.
    pub(crate) fn agrees_on(&self, table: u8, other: &RowSum<'_>) -> bool {
        self.sums.get(usize::from(table)) == other.sums.get(usize::from(table))
    }

    /// Adds a row, or takes it out again: a sum is an exclusive or.
    fn toggle(&mut self, table: u8, key: &[u8], value: &[u8]) {
        if let Some(seal) = self.seal
            && let Some(sum) = self.sums.get_mut(usize::from(table))
        {
            let token = seal.token(table, key, value);
            sum.iter_mut().zip(token).for_each(|(sum, token)| *sum ^= token);
        }
    }
}

/// The numbers of all tables with a sum.
pub(crate) fn tables() -> impl Iterator<Item = u8> {
    0..=ADDRESS_TABLE
}

pub(crate) fn damaged() -> Error {
    Error::integrity("rows of the index were changed by somebody without the key")
}
