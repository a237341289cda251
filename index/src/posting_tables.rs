//! Tables of fixed-width rows behind one trait.
//!
//! redb stores rows of fixed width without overhead, and wants the width as a type; this module erases that
//! type. It treats keys as bytes and does not interpret them.

use std::fmt::Debug;

use redb::{
    ReadOnlyTable, ReadTransaction, ReadableTable, ReadableTableMetadata, TableDefinition,
    WriteTransaction,
};

use crate::error::{Error, Result};
use crate::keys::{self, OrderKey, PostingKey};
use crate::posting::TimeOrder;
use crate::posting_lists::PostingList;
use crate::row_sum::RowSum;

/// A table of rows of `N` bytes; the values are empty.
type RowTable<const N: usize> = TableDefinition<'static, &'static [u8; N], ()>;

/// Sort keys in the requested order, read lazily.
pub(crate) type OrderKeys = Box<dyn Iterator<Item = Result<OrderKey>>>;

/// The rows of one posting list in a read snapshot.
pub(crate) trait PostingTable: Debug + Send + Sync {
    /// The number of rows.
    fn count(&self) -> Result<u64>;

    /// Hands every row to `each`, as its bytes.
    fn for_each(&self, each: &mut dyn FnMut(&[u8])) -> Result<()>;

    /// The order keys of the rows from `first` to `last`, both included.
    fn order_keys(
        &self,
        first: &PostingKey,
        last: &PostingKey,
        order: TimeOrder,
    ) -> Result<OrderKeys>;

    /// The first row from `first` to `last`, both included, as a key.
    fn first_key(&self, first: &PostingKey, last: &PostingKey) -> Result<Option<PostingKey>>;
}

/// The table operations for one row width.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TableOps {
    pub(crate) open:
        fn(&ReadTransaction, PostingList, &'static str) -> Result<Box<dyn PostingTable>>,
    pub(crate) create: fn(&WriteTransaction, &'static str) -> Result<()>,
    pub(crate) insert:
        fn(&WriteTransaction, PostingList, &[PostingKey], &mut RowSum<'_>) -> Result<()>,
}

impl TableOps {
    /// The operations for rows of `N` bytes.
    pub(crate) const fn for_width<const N: usize>() -> Self {
        Self { open: open::<N>, create: create::<N>, insert: insert::<N> }
    }
}

impl PostingList {
    /// The table operations for the width of the list's rows.
    pub(crate) const fn access(self) -> TableOps {
        match self {
            Self::All => TableOps::for_width::<18>(),
            Self::Type => TableOps::for_width::<19>(),
            Self::Subject | Self::Relation => TableOps::for_width::<23>(),
            Self::Object => TableOps::for_width::<26>(),
            Self::SubjectRelation => TableOps::for_width::<28>(),
            Self::SubjectObject | Self::RelationObject | Self::Value => TableOps::for_width::<27>(),
            Self::Triple => TableOps::for_width::<32>(),
        }
    }
}

#[derive(Debug)]
struct FixedWidthTable<const N: usize> {
    list: PostingList,
    rows: ReadOnlyTable<&'static [u8; N], ()>,
}

impl<const N: usize> PostingTable for FixedWidthTable<N> {
    fn count(&self) -> Result<u64> {
        Ok(self.rows.len()?)
    }

    fn for_each(&self, each: &mut dyn FnMut(&[u8])) -> Result<()> {
        for row in self.rows.iter()? {
            each(row?.0.value());
        }
        Ok(())
    }

    fn order_keys(
        &self,
        first: &PostingKey,
        last: &PostingKey,
        order: TimeOrder,
    ) -> Result<OrderKeys> {
        let rows = self.rows.range::<&[u8; N]>(keys::row_bytes(first)?..=keys::row_bytes(last)?)?;
        let ranks = rows.map(|entry| {
            let (row, _) = entry?;
            let rank = OrderKey::from_row(row.value());
            rank.ok_or_else(|| Error::integrity("a posting row is too short"))
        });
        Ok(match order {
            TimeOrder::Newest => Box::new(ranks),
            TimeOrder::Oldest => Box::new(ranks.rev()),
        })
    }

    fn first_key(&self, first: &PostingKey, last: &PostingKey) -> Result<Option<PostingKey>> {
        let mut rows =
            self.rows.range::<&[u8; N]>(keys::row_bytes(first)?..=keys::row_bytes(last)?)?;
        let Some((row, _)) = rows.next().transpose()? else { return Ok(None) };
        Ok(Some(keys::key_of(self.list, row.value())))
    }
}

fn open<const N: usize>(
    txn: &ReadTransaction,
    list: PostingList,
    name: &'static str,
) -> Result<Box<dyn PostingTable>> {
    let rows = txn.open_table(RowTable::<N>::new(name))?;
    Ok(Box::new(FixedWidthTable { list, rows }))
}

fn create<const N: usize>(txn: &WriteTransaction, name: &'static str) -> Result<()> {
    txn.open_table(RowTable::<N>::new(name))?;
    Ok(())
}

fn insert<const N: usize>(
    txn: &WriteTransaction,
    list: PostingList,
    sorted: &[PostingKey],
    sum: &mut RowSum<'_>,
) -> Result<()> {
    let mut table = txn.open_table(RowTable::<N>::new(list.def().table))?;
    for key in sorted {
        let row = keys::row_bytes::<N>(key)?;
        // Folding a part again adds no row.
        if table.insert(row, ())?.is_none() {
            sum.add_posting(list as u8, row);
        }
    }
    Ok(())
}
