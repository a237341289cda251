//! Tables of fixed-width rows behind one trait.
//!
//! redb stores rows of fixed width without overhead, and wants the width as a type; this module erases that
//! type. It treats keys as bytes and does not interpret them.

use std::fmt::Debug;

use redb::{
    ReadOnlyTable, ReadTransaction, ReadableTableMetadata, TableDefinition, WriteTransaction,
};

use crate::error::{Error, Result};
use crate::keys::{self, Key, Rank};
use crate::lists::List;
use crate::posting::Order;

/// A table of rows of `N` bytes; the values are empty.
type RowTable<const N: usize> = TableDefinition<'static, &'static [u8; N], ()>;

/// Sort keys in the requested order, read lazily.
pub(crate) type Ranks = Box<dyn Iterator<Item = Result<Rank>>>;

/// The rows of one posting list in a read snapshot.
pub(crate) trait Rows: Debug + Send + Sync {
    /// The number of rows.
    fn count(&self) -> Result<u64>;

    /// The order keys of the rows from `first` to `last`, both included.
    fn ranks(&self, first: &Key, last: &Key, order: Order) -> Result<Ranks>;

    /// The first row from `first` to `last`, both included, as a key.
    fn first(&self, first: &Key, last: &Key) -> Result<Option<Key>>;
}

/// The table operations for one row width.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Access {
    pub(crate) width: usize,
    pub(crate) open: fn(&ReadTransaction, List, &'static str) -> Result<Box<dyn Rows>>,
    pub(crate) create: fn(&WriteTransaction, &'static str) -> Result<()>,
    pub(crate) insert: fn(&WriteTransaction, &'static str, &[Key]) -> Result<()>,
}

impl Access {
    /// The operations for rows of `N` bytes.
    pub(crate) const fn of<const N: usize>() -> Self {
        Self { width: N, open: open::<N>, create: create::<N>, insert: insert::<N> }
    }
}

#[derive(Debug)]
struct ListRows<const N: usize> {
    list: List,
    rows: ReadOnlyTable<&'static [u8; N], ()>,
}

impl<const N: usize> Rows for ListRows<N> {
    fn count(&self) -> Result<u64> {
        Ok(self.rows.len()?)
    }

    fn ranks(&self, first: &Key, last: &Key, order: Order) -> Result<Ranks> {
        let rows = self.rows.range::<&[u8; N]>(keys::row(first)?..=keys::row(last)?)?;
        let ranks = rows.map(|entry| {
            let (row, _) = entry?;
            let rank = Rank::of_row(row.value());
            rank.ok_or_else(|| Error::integrity("a posting row is too short"))
        });
        Ok(match order {
            Order::Newest => Box::new(ranks),
            Order::Oldest => Box::new(ranks.rev()),
        })
    }

    fn first(&self, first: &Key, last: &Key) -> Result<Option<Key>> {
        let mut rows = self.rows.range::<&[u8; N]>(keys::row(first)?..=keys::row(last)?)?;
        let Some((row, _)) = rows.next().transpose()? else { return Ok(None) };
        Ok(Some(keys::key_of(self.list, row.value())))
    }
}

fn open<const N: usize>(
    txn: &ReadTransaction,
    list: List,
    name: &'static str,
) -> Result<Box<dyn Rows>> {
    let rows = txn.open_table(RowTable::<N>::new(name))?;
    Ok(Box::new(ListRows { list, rows }))
}

fn create<const N: usize>(txn: &WriteTransaction, name: &'static str) -> Result<()> {
    txn.open_table(RowTable::<N>::new(name))?;
    Ok(())
}

fn insert<const N: usize>(
    txn: &WriteTransaction,
    name: &'static str,
    sorted: &[Key],
) -> Result<()> {
    let mut table = txn.open_table(RowTable::<N>::new(name))?;
    for key in sorted {
        table.insert(keys::row(key)?, ())?;
    }
    Ok(())
}
