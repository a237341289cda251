//! The redb tables of the index, and the handles a view reads them through.
//!
//! Knows table names and types; the bytes of a row belong to `keys` and `layout`.

use std::sync::{Arc, OnceLock};

use redb::{ReadOnlyTable, ReadTransaction, ReadableTable, TableDefinition, WriteTransaction};

use crate::error::{Error, Result};
use crate::layout;
use crate::meta::{self, HISTORY, META};
use crate::posting::{Sequence, Watermark};
use crate::posting_lists::{POSTING_LISTS, PostingList};
use crate::posting_tables::PostingTable;
use crate::row_sum::{self, RowSeal, RowSum};
use crate::sample::{SAMPLE, SampleRows};
use crate::term::{NextIds, TermId};

/// Term key -> term row; a relation's id key -> its term key.
pub(crate) const TERMS: TableDefinition<'static, &'static [u8], &'static [u8]> =
    TableDefinition::new("index.terms");
/// Address -> sequence.
pub(crate) const ADDRESS: TableDefinition<'static, &'static [u8; 32], u64> =
    TableDefinition::new("index.address");

/// The prefix of all derived tables' names, in every layout version.
pub(crate) const NAME_PREFIX: &str = "index.";

pub(crate) type TermRows = ReadOnlyTable<&'static [u8], &'static [u8]>;
pub(crate) type AddressRows = ReadOnlyTable<&'static [u8; 32], u64>;
pub(crate) type MetaRows = ReadOnlyTable<&'static str, &'static [u8]>;

/// The derived tables of one read snapshot.
///
/// A table is opened when it is first read: a view is made at every commit, and most views never read most
/// lists. The handles keep the snapshot alive and can be used from several threads.
///
/// ```
/// use grainstore_index::{Tables, reset};
/// use redb::{Database, ReadableDatabase, backends::InMemoryBackend};
///
/// let db = Database::builder().create_with_backend(InMemoryBackend::new())?;
/// let txn = db.begin_write()?;
/// reset(&txn, None)?;
/// txn.commit()?;
/// let tables = Tables::open(db.begin_read()?, None);
/// assert_eq!(tables.watermark()?, None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Tables {
    txn: ReadTransaction,
    seal: Option<Arc<dyn RowSeal>>,
    lists: [OnceLock<Box<dyn PostingTable>>; PostingList::COUNT],
    sample: OnceLock<SampleRows>,
    terms: OnceLock<TermRows>,
    addresses: OnceLock<AddressRows>,
    meta: OnceLock<MetaRows>,
}

impl std::fmt::Debug for Tables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let open = self.lists.iter().filter(|list| list.get().is_some()).count();
        f.debug_struct("Tables").field("open_lists", &open).finish_non_exhaustive()
    }
}

impl Tables {
    /// Wraps a snapshot. Reads nothing yet. In an encrypted store `seal` is given: each table is compared with
    /// its sum before it is first read.
    #[must_use]
    pub fn open(txn: ReadTransaction, seal: Option<Arc<dyn RowSeal>>) -> Self {
        Self {
            txn,
            seal,
            lists: [const { OnceLock::new() }; PostingList::COUNT],
            sample: OnceLock::new(),
            terms: OnceLock::new(),
            addresses: OnceLock::new(),
            meta: OnceLock::new(),
        }
    }

    /// The last grain folded into these tables.
    ///
    /// # Errors
    /// `ERR_IO`; `ERR_INTEGRITY` if there is no index.
    pub fn watermark(&self) -> Result<Option<Watermark>> {
        meta::watermark(self.meta()?)
    }

    /// The rows of a posting list.
    pub(crate) fn list(&self, list: PostingList) -> Result<&dyn PostingTable> {
        let def = list.def();
        let open = || {
            self.check(list as u8)?;
            (def.list.access().open)(&self.txn, list, def.table)
        };
        match self.lists.get(list as usize) {
            Some(cell) => Ok(&**get_or_try_init(cell, open)?),
            None => Err(Error::integrity("there is no such list")),
        }
    }

    /// The sample of all lists.
    pub(crate) fn sample(&self) -> Result<&SampleRows> {
        get_or_try_init(&self.sample, || {
            self.check(row_sum::SAMPLE_TABLE)?;
            Ok(self.txn.open_table(SAMPLE)?)
        })
    }

    /// The term dictionary.
    pub(crate) fn terms(&self) -> Result<&TermRows> {
        get_or_try_init(&self.terms, || {
            self.check(row_sum::TERMS_TABLE)?;
            Ok(self.txn.open_table(TERMS)?)
        })
    }

    /// The table of addresses.
    pub(crate) fn addresses(&self) -> Result<&AddressRows> {
        get_or_try_init(&self.addresses, || {
            self.check(row_sum::ADDRESS_TABLE)?;
            Ok(self.txn.open_table(ADDRESS)?)
        })
    }

    /// The id of the term with this key; `None` if it is not in the tables.
    pub(crate) fn term_id(&self, key: &[u8]) -> Result<Option<TermId>> {
        let Some(row) = self.terms()?.get(key)? else { return Ok(None) };
        let id = layout::split_term_row(row.value()).map(|(id, _)| id);
        id.map(Some).ok_or_else(|| Error::integrity("a term row is too short"))
    }

    /// The sequence of an address.
    pub(crate) fn sequence_of(&self, address: &[u8; 32]) -> Result<Option<Sequence>> {
        let row = self.addresses()?.get(address)?;
        Ok(row.map(|row| Sequence::new(row.value())))
    }

    /// Compares every table with its sum that was not compared since the store was opened.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if somebody without the key changed rows; `ERR_IO`.
    pub fn check_rows(&self) -> Result<()> {
        row_sum::tables().try_for_each(|table| self.check(table))
    }

    fn check(&self, table: u8) -> Result<()> {
        check_sum(&self.txn, self.seal.as_deref(), table)
    }

    /// What the engine knew of the history of the log when the tables were last folded.
    ///
    /// # Errors
    /// `ERR_IO`; `ERR_INTEGRITY` if there is no index.
    pub fn history(&self) -> Result<Option<Vec<u8>>> {
        Ok(self.meta()?.get(HISTORY)?.map(|row| row.value().to_vec()))
    }

    /// The next id of each kind.
    pub(crate) fn next_ids(&self) -> Result<NextIds> {
        meta::next_ids(self.meta()?)
    }

    fn meta(&self) -> Result<&MetaRows> {
        get_or_try_init(&self.meta, || Ok(self.txn.open_table(META)?))
    }
}

/// Compares the rows of a table with its stored sum, unless that was done since the store was opened. Reads
/// every row of the table.
///
/// # Errors
/// `ERR_INTEGRITY` if they differ; `ERR_IO`.
fn check_sum(txn: &ReadTransaction, seal: Option<&dyn RowSeal>, table: u8) -> Result<()> {
    let Some(seal) = seal else { return Ok(()) };
    if seal.is_checked(table) {
        return Ok(());
    }
    let stored = RowSum::stored(Some(seal), &txn.open_table(META)?)?;
    let mut found = RowSum::empty(Some(seal));
    match table {
        row_sum::SAMPLE_TABLE => {
            for row in txn.open_table(SAMPLE)?.iter()? {
                found.add_sample(row?.0.value());
            }
        }
        row_sum::TERMS_TABLE => {
            for row in txn.open_table(TERMS)?.iter()? {
                let (key, value) = row?;
                found.add_term(key.value(), value.value());
            }
        }
        row_sum::ADDRESS_TABLE => {
            for row in txn.open_table(ADDRESS)?.iter()? {
                let (address, sequence) = row?;
                found.add_address(address.value(), sequence.value());
            }
        }
        list => {
            let def = POSTING_LISTS.get(usize::from(list)).ok_or_else(row_sum::damaged)?;
            let rows = (def.list.access().open)(txn, def.list, def.table)?;
            rows.for_each(&mut |row| found.add_posting(list, row))?;
        }
    }
    if !stored.agrees_on(table, &found) {
        return Err(row_sum::damaged());
    }
    seal.set_checked(table);
    Ok(())
}

/// Checks that every table exists with the right type.
pub(crate) fn check(txn: &ReadTransaction) -> Result<()> {
    for def in &POSTING_LISTS {
        (def.list.access().open)(txn, def.list, def.table)?;
    }
    txn.open_table(SAMPLE)?;
    txn.open_table(TERMS)?;
    txn.open_table(ADDRESS)?;
    Ok(())
}

/// Creates every table, empty.
pub(crate) fn create(txn: &WriteTransaction) -> Result<()> {
    for def in &POSTING_LISTS {
        (def.list.access().create)(txn, def.table)?;
    }
    txn.open_table(SAMPLE)?;
    txn.open_table(TERMS)?;
    txn.open_table(ADDRESS)?;
    txn.open_table(META)?;
    Ok(())
}

/// Returns the value of a cell, initialising it if it is empty.
fn get_or_try_init<T>(cell: &OnceLock<T>, make: impl FnOnce() -> Result<T>) -> Result<&T> {
    if let Some(made) = cell.get() {
        return Ok(made);
    }
    let made = make()?;
    Ok(cell.get_or_init(|| made))
}
