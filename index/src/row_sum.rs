//! A keyed sum over all rows of the index of an encrypted store: a row that somebody without the key
//! edits, adds or removes no longer fits it, and the index is rebuilt. This module holds no keys; the engine
//! does.

use std::thread;

use redb::{ReadTransaction, ReadableTable};

use crate::error::{Error, Result};
use crate::lists::{LISTS, PostingListDef};
use crate::sample::SAMPLE;
use crate::stamp::{NEXT_IDS, WATERMARK};
use crate::tables::{ADDRESS, META, TERMS};

/// Row of the table `index.meta` of an encrypted store with the sealed sum: 32 bytes, then the rows of the
/// watermark and of the counters.
pub const ROW_SUM: &str = "row_sum";

/// Numbers of the tables that are no posting lists.
const SAMPLE_TABLE: u8 = 0xf0;
const TERMS_TABLE: u8 = 0xf1;
const ADDRESS_TABLE: u8 = 0xf2;

/// Computes the tokens of rows, and seals their sum, under a key of the store.
pub trait RowSeal: Send + Sync {
    /// The token of a row, which cannot be computed without the key. Keys of one table are not prefixes of
    /// each other, or differ in length.
    fn token(&self, table: u8, key: &[u8], value: &[u8]) -> [u8; 32];

    /// Encrypts a sum.
    ///
    /// # Errors
    /// Those of the engine, as `ERR_IO`.
    fn seal(&self, body: &[u8]) -> Result<Vec<u8>>;

    /// Decrypts a sum; `None` for bytes that this store did not seal.
    fn open(&self, sealed: &[u8]) -> Option<Vec<u8>>;
}

/// The sum of the rows, kept up while rows are written. Counts nothing in a plain store.
pub(crate) struct RowSum<'s> {
    seal: Option<&'s dyn RowSeal>,
    sum: [u8; 32],
}

impl<'s> RowSum<'s> {
    /// The sum of no rows.
    pub(crate) fn empty(seal: Option<&'s dyn RowSeal>) -> Self {
        Self { seal, sum: [0; 32] }
    }

    /// The sum of the rows there are, as it was stored with them.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if there is none, or it was written for other rows; `ERR_IO`.
    pub(crate) fn stored(
        seal: Option<&'s dyn RowSeal>,
        meta: &impl ReadableTable<&'static str, &'static [u8]>,
    ) -> Result<Self> {
        let Some(key) = seal else { return Ok(Self::empty(seal)) };
        let opened = meta.get(ROW_SUM)?.and_then(|row| key.open(row.value()));
        let body = opened.ok_or_else(damaged)?;
        let (sum, marks) = body.split_first_chunk::<32>().ok_or_else(damaged)?;
        if marks != Self::marks(meta)? {
            return Err(damaged());
        }
        Ok(Self { seal, sum: *sum })
    }

    /// Stores the sum, bound to the watermark and the counters, which must have been stored before.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn store(
        &self,
        meta: &mut redb::Table<'_, &'static str, &'static [u8]>,
    ) -> Result<()> {
        let Some(seal) = self.seal else { return Ok(()) };
        let body = [&self.sum[..], &Self::marks(meta)?].concat();
        meta.insert(ROW_SUM, seal.seal(&body)?.as_slice())?;
        Ok(())
    }

    fn marks(meta: &impl ReadableTable<&'static str, &'static [u8]>) -> Result<Vec<u8>> {
        let mut marks = Vec::new();
        for name in [WATERMARK, NEXT_IDS] {
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

    /// Adds a row, or takes it out again: the sum is an exclusive or.
    fn toggle(&mut self, table: u8, key: &[u8], value: &[u8]) {
        if let Some(seal) = self.seal {
            let token = seal.token(table, key, value);
            self.sum.iter_mut().zip(token).for_each(|(sum, token)| *sum ^= token);
        }
    }
}

/// Compares the rows of all tables with the stored sum. Reads every row, on two threads.
///
/// # Errors
/// `ERR_INTEGRITY` if they differ; `ERR_IO`.
pub(crate) fn check(txn: &ReadTransaction, seal: &dyn RowSeal) -> Result<()> {
    let stored = RowSum::stored(Some(seal), &txn.open_table(META)?)?;
    let (lists, others) = LISTS.split_at(LISTS.len() / 2);
    let halves = thread::scope(|scope| {
        let aside = scope.spawn(|| sum_of_lists(txn, seal, lists));
        let here = sum_of_lists(txn, seal, others).and_then(|sum| sum_of_rest(txn, seal, sum));
        [aside.join().unwrap_or_else(|_| Err(damaged())), here]
    });
    let mut left = stored.sum;
    for sum in halves {
        left.iter_mut().zip(sum?).for_each(|(left, sum)| *left ^= sum);
    }
    match left == [0; 32] {
        true => Ok(()),
        false => Err(damaged()),
    }
}

/// The sum of the rows of posting lists.
fn sum_of_lists(
    txn: &ReadTransaction,
    seal: &dyn RowSeal,
    lists: &[PostingListDef],
) -> Result<[u8; 32]> {
    let mut found = RowSum::empty(Some(seal));
    for def in lists {
        let list = def.list as u8;
        let rows = (def.access.open)(txn, def.list, def.table)?;
        rows.for_each(&mut |row| found.add_posting(list, row))?;
    }
    Ok(found.sum)
}

/// A sum with that of the sample, the terms and the addresses.
fn sum_of_rest(txn: &ReadTransaction, seal: &dyn RowSeal, sum: [u8; 32]) -> Result<[u8; 32]> {
    let mut found = RowSum { seal: Some(seal), sum };
    for row in txn.open_table(SAMPLE)?.iter()? {
        found.add_sample(row?.0.value());
    }
    for row in txn.open_table(TERMS)?.iter()? {
        let (key, value) = row?;
        found.add_term(key.value(), value.value());
    }
    for row in txn.open_table(ADDRESS)?.iter()? {
        let (address, sequence) = row?;
        found.add_address(address.value(), sequence.value());
    }
    Ok(found.sum)
}

fn damaged() -> Error {
    Error::integrity("rows of the index were changed by somebody without the key")
}
