//! Rows of any table as bytes: for copying, comparing and counting.
//!
//! redb opens a table only with the types it was created with. Every pair of types that this store uses is in
//! one list here, so a table is opened by trying them, and no table can be forgotten. Knows types, not what
//! rows mean.

use redb::{Key, Range, ReadTransaction, TableDefinition, TableError, Value, WriteTransaction};

use crate::base::error::{Error, ErrorKind, Result};

/// A cursor over the rows of a table in key order.
pub(crate) trait TableRows {
    /// Advances to the next row; `false` at the end.
    fn next(&mut self) -> Result<bool>;

    /// Key of the current row.
    fn key(&self) -> &[u8];

    /// Value of the current row.
    fn value(&self) -> &[u8];
}

/// The rows of a table, `None` if there is no such table.
type OptionalRows = Option<Box<dyn TableRows>>;

/// A callback for the key and the value of every row.
pub(crate) type RowVisitor<'s> = dyn FnMut(&[u8], &[u8]) + 's;

/// The functions for one pair of types.
struct TableTypes {
    open: fn(&ReadTransaction, &str) -> Result<OptionalRows>,
    fill: fn(&WriteTransaction, &str, &mut dyn TableRows, &mut RowVisitor<'_>) -> Result<()>,
}

/// An open table of any types.
pub(crate) struct AnyTable {
    types: &'static TableTypes,
    pub(crate) rows: Box<dyn TableRows>,
}

/// Opens a table of a snapshot, whatever its types. `None` if there is no such table.
///
/// # Errors
/// `ERR_STORE_VERSION` for a table of types this version does not use, `ERR_INTEGRITY`, `ERR_IO`.
pub(crate) fn open_table(txn: &ReadTransaction, name: &str) -> Result<Option<AnyTable>> {
    for types in TABLE_TYPES {
        match (types.open)(txn, name) {
            Ok(rows) => return Ok(rows.map(|rows| AnyTable { types, rows })),
            Err(error) if error.kind() == ErrorKind::StoreVersion => {}
            Err(error) => return Err(error),
        }
    }
    let message = format!("table {name} has types this version does not know");
    Err(Error::new(ErrorKind::StoreVersion, message))
}

impl AnyTable {
    /// Writes every row into the table of this name, and calls `seen` for each.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn copy_into(
        mut self,
        txn: &WriteTransaction,
        name: &str,
        seen: &mut RowVisitor<'_>,
    ) -> Result<()> {
        (self.types.fill)(txn, name, &mut *self.rows, seen)
    }
}

/// Rows of one pair of types. The buffers are reused for each row.
struct TypedRows<K: Key + 'static, V: Value + 'static> {
    range: Range<'static, K, V>,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl<K: Key + 'static, V: Value + 'static> TableRows for TypedRows<K, V> {
    fn next(&mut self) -> Result<bool> {
        let Some(row) = self.range.next() else { return Ok(false) };
        let (key, value) = row?;
        replace(&mut self.key, K::as_bytes(&key.value()).as_ref());
        replace(&mut self.value, V::as_bytes(&value.value()).as_ref());
        Ok(true)
    }

    fn key(&self) -> &[u8] {
        &self.key
    }

    fn value(&self) -> &[u8] {
        &self.value
    }
}

fn replace(buffer: &mut Vec<u8>, bytes: &[u8]) {
    buffer.clear();
    buffer.extend_from_slice(bytes);
}

fn open_as<K: Key + 'static, V: Value + 'static>(
    txn: &ReadTransaction,
    name: &str,
) -> Result<OptionalRows> {
    let table = match txn.open_table(TableDefinition::<K, V>::new(name)) {
        Err(TableError::TableDoesNotExist(_)) => return Ok(None),
        opened => opened?,
    };
    let range = table.range::<K::SelfType<'_>>(..)?;
    Ok(Some(Box::new(TypedRows { range, key: Vec::new(), value: Vec::new() })))
}

fn fill_as<K: Key + 'static, V: Value + 'static>(
    txn: &WriteTransaction,
    name: &str,
    rows: &mut dyn TableRows,
    seen: &mut RowVisitor<'_>,
) -> Result<()> {
    let mut table = txn.open_table(TableDefinition::<K, V>::new(name))?;
    while rows.next()? {
        seen(rows.key(), rows.value());
        table.insert(K::from_bytes(rows.key()), V::from_bytes(rows.value()))?;
    }
    Ok(())
}

const fn types<K: Key + 'static, V: Value + 'static>() -> TableTypes {
    TableTypes { open: open_as::<K, V>, fill: fill_as::<K, V> }
}

/// Defines the pairs of types, those of fixed-width rows for each width.
macro_rules! table_types {
    ($($width:literal)+) => {
        static TABLE_TYPES: &[TableTypes] = &[
            types::<u64, &'static [u8]>(),
            types::<&'static str, &'static [u8]>(),
            types::<&'static [u8], &'static [u8]>(),
            types::<&'static [u8; 32], u64>(),
            $(types::<&'static [u8; $width], ()>(),)+
            $(types::<u64, &'static [u8; $width]>(),)+
        ];
    };
}

table_types!(
    8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40
    41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64
);
