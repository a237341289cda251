//! The tables of the truth by number, and what writes their rows: [`OpenTables::set`] is the only code that does,
//! for changes of this store and for those of a record alike.
//!
//! Knows keys and bytes, not what they mean.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use grainstore_index::Sequence;
use redb::{Key, ReadableTable, Table, TableDefinition, TableHandle, Value, WriteTransaction};

use crate::base::error::{Error, Result};
use crate::disk::layout::{self, ACCESS_RECORD_BYTES, STATE_RECORD_BYTES};
use crate::disk::row_sums::SummedTable;

/// A table of the truth. The discriminant is its number in a change record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TruthTable {
    Log = 1,
    Signatures,
    State,
    Roots,
    Audit,
    Reasons,
    Access,
    Meta,
    Templates,
    Destroyed,
    Erased,
    Tombstones,
    Vectors,
    VectorRows,
    Spaces,
    RemovedSpaces,
    Blobs,
    BlobChunks,
    ApplicationRows,
    Owned,
}

/// The key of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TableKey<'k> {
    Number(u64),
    Name(&'k str),
    Bytes(&'k [u8]),
}

impl TruthTable {
    pub(crate) const ALL: [Self; 20] = [
        Self::Log,
        Self::Signatures,
        Self::State,
        Self::Roots,
        Self::Audit,
        Self::Reasons,
        Self::Access,
        Self::Meta,
        Self::Templates,
        Self::Destroyed,
        Self::Erased,
        Self::Tombstones,
        Self::Vectors,
        Self::VectorRows,
        Self::Spaces,
        Self::RemovedSpaces,
        Self::Blobs,
        Self::BlobChunks,
        Self::ApplicationRows,
        Self::Owned,
    ];

    /// Its number in a change record.
    pub(crate) const fn number(self) -> u8 {
        self as u8
    }

    /// Returns the table with this number.
    pub(crate) fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|table| table.number() == number)
    }

    /// Reads a key of the table; `None` for bytes that are none.
    pub(crate) fn key(self, bytes: &[u8]) -> Option<TableKey<'_>> {
        match self {
            Self::Meta => str::from_utf8(bytes).ok().map(TableKey::Name),
            Self::Tombstones
            | Self::Blobs
            | Self::BlobChunks
            | Self::ApplicationRows
            | Self::Owned => Some(TableKey::Bytes(bytes)),
            _ => bytes.try_into().ok().map(|number| TableKey::Number(u64::from_be_bytes(number))),
        }
    }

    /// The sum that its rows are part of in an encrypted store.
    pub(crate) const fn summed(self) -> Option<SummedTable> {
        match self {
            // The head of a blob has the hash of its chunks.
            Self::Log | Self::Audit | Self::Access | Self::Meta | Self::BlobChunks => None,
            Self::Signatures => Some(SummedTable::Signatures),
            Self::State => Some(SummedTable::State),
            Self::Roots => Some(SummedTable::Roots),
            Self::Reasons => Some(SummedTable::Reasons),
            Self::Templates => Some(SummedTable::Templates),
            Self::Destroyed => Some(SummedTable::Destroyed),
            Self::Erased => Some(SummedTable::Erased),
            Self::Tombstones => Some(SummedTable::Tombstones),
            Self::Vectors => Some(SummedTable::Vectors),
            Self::VectorRows => Some(SummedTable::VectorRows),
            Self::Spaces => Some(SummedTable::Spaces),
            Self::RemovedSpaces => Some(SummedTable::RemovedSpaces),
            Self::Blobs => Some(SummedTable::Blobs),
            Self::ApplicationRows => Some(SummedTable::ApplicationRows),
            Self::Owned => Some(SummedTable::Owned),
        }
    }

    fn place(self) -> usize {
        usize::from(self.number()).saturating_sub(1)
    }

    fn open(self, txn: &WriteTransaction) -> Result<OpenTable<'_>> {
        let numbered = |definition| Ok(OpenTable::Numbered(txn.open_table(definition)?));
        let keyed = |definition| Ok(OpenTable::Keyed(txn.open_table(definition)?));
        match self {
            Self::Log => numbered(layout::LOG),
            Self::Signatures => numbered(layout::SIGNATURES),
            Self::State => Ok(OpenTable::States(txn.open_table(layout::STATE)?)),
            Self::Roots => numbered(layout::ROOTS),
            Self::Audit => numbered(layout::AUDIT),
            Self::Reasons => numbered(layout::REASONS),
            Self::Access => Ok(OpenTable::Access(txn.open_table(layout::ACCESS)?)),
            Self::Meta => Ok(OpenTable::Named(txn.open_table(layout::META)?)),
            Self::Templates => numbered(layout::TEMPLATES),
            Self::Destroyed => numbered(layout::DESTROYED),
            Self::Erased => numbered(layout::ERASED),
            Self::Tombstones => keyed(layout::TOMBSTONES),
            Self::Vectors => numbered(layout::VECTORS),
            Self::VectorRows => numbered(layout::VECTOR_ROWS),
            Self::Spaces => numbered(layout::SPACES),
            Self::RemovedSpaces => numbered(layout::REMOVED_SPACES),
            Self::Blobs => keyed(layout::BLOBS),
            Self::BlobChunks => keyed(layout::BLOB_CHUNKS),
            Self::ApplicationRows => keyed(layout::APPLICATION_ROWS),
            Self::Owned => keyed(layout::OWNED),
        }
    }

    /// Its name in the database.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Audit => "audit",
            Self::Access => "access",
            Self::Meta => "meta",
            Self::BlobChunks => "blob_chunks",
            _ => self.summed().map_or("", SummedTable::name),
        }
    }
}

impl TableKey<'_> {
    /// Runs `read` on the bytes of the key: numbers are big-endian.
    pub(crate) fn with_bytes<T>(self, read: impl FnOnce(&[u8]) -> T) -> T {
        match self {
            Self::Number(number) => read(&number.to_be_bytes()),
            Self::Name(name) => read(name.as_bytes()),
            Self::Bytes(bytes) => read(bytes),
        }
    }
}

impl From<u64> for TableKey<'_> {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<Sequence> for TableKey<'_> {
    fn from(sequence: Sequence) -> Self {
        Self::Number(sequence.get())
    }
}

impl<'k> From<&'k str> for TableKey<'k> {
    fn from(name: &'k str) -> Self {
        Self::Name(name)
    }
}

impl<'k> From<&'k [u8]> for TableKey<'k> {
    fn from(bytes: &'k [u8]) -> Self {
        Self::Bytes(bytes)
    }
}

/// An open table, by the types of its keys and values.
enum OpenTable<'t> {
    Numbered(NumberedTable<'t>),
    States(Table<'t, u64, &'static [u8; STATE_RECORD_BYTES]>),
    Access(Table<'t, u64, &'static [u8; ACCESS_RECORD_BYTES]>),
    Named(Table<'t, &'static str, &'static [u8]>),
    Keyed(Table<'t, &'static [u8], &'static [u8]>),
}

/// A table of bytes by number.
pub(crate) type NumberedTable<'t> = Table<'t, u64, &'static [u8]>;

impl OpenTable<'_> {
    fn get(&self, key: TableKey<'_>) -> Result<Option<Vec<u8>>> {
        match (self, key) {
            (Self::Numbered(table), TableKey::Number(key)) => read(table, &key),
            (Self::States(table), TableKey::Number(key)) => read(table, &key),
            (Self::Access(table), TableKey::Number(key)) => read(table, &key),
            (Self::Named(table), TableKey::Name(key)) => read(table, &key),
            (Self::Keyed(table), TableKey::Bytes(key)) => read(table, &key),
            _ => Err(misfit()),
        }
    }

    fn set(
        &mut self,
        key: TableKey<'_>,
        value: Option<&[u8]>,
        former: impl FnOnce(&[u8]),
    ) -> Result<bool> {
        match (self, key) {
            (Self::Numbered(table), TableKey::Number(key)) => set(table, &key, value, former),
            (Self::States(table), TableKey::Number(key)) => set(table, &key, fixed(value)?, former),
            (Self::Access(table), TableKey::Number(key)) => set(table, &key, fixed(value)?, former),
            (Self::Named(table), TableKey::Name(key)) => set(table, &key, value, former),
            (Self::Keyed(table), TableKey::Bytes(key)) => set(table, &key, value, former),
            _ => Err(misfit()),
        }
    }
}

fn read<K: Key + 'static, V: Value + 'static>(
    table: &Table<'_, K, V>,
    key: &K::SelfType<'_>,
) -> Result<Option<Vec<u8>>> {
    Ok(table.get(key)?.map(|row| V::as_bytes(&row.value()).as_ref().to_vec()))
}

/// Writes or removes a row, and returns `true` if there was one, after a look at it.
fn set<K: Key + 'static, V: Value + 'static>(
    table: &mut Table<'_, K, V>,
    key: &K::SelfType<'_>,
    value: Option<V::SelfType<'_>>,
    former: impl FnOnce(&[u8]),
) -> Result<bool> {
    let row = match value {
        Some(value) => table.insert(key, value)?,
        None => table.remove(key)?,
    };
    let Some(row) = row else { return Ok(false) };
    former(V::as_bytes(&row.value()).as_ref());
    Ok(true)
}

fn fixed<const N: usize>(value: Option<&[u8]>) -> Result<Option<&[u8; N]>> {
    value.map(|value| value.try_into().map_err(|_| misfit())).transpose()
}

fn misfit() -> Error {
    Error::integrity("a row does not fit its table")
}

/// The tables of the truth in a write transaction, opened when they are first used.
pub(crate) struct OpenTables<'t> {
    txn: &'t WriteTransaction,
    /// The tables there were when the transaction first looked.
    names: OnceCell<BTreeSet<String>>,
    open: [OnceCell<OpenTable<'t>>; TruthTable::ALL.len()],
}

impl<'t> OpenTables<'t> {
    pub(crate) fn new(txn: &'t WriteTransaction) -> Self {
        Self { txn, names: OnceCell::new(), open: Default::default() }
    }

    /// Writes a row, or removes it if `value` is `None`. Returns `true` if there was one, after `former` was
    /// called with it.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` for a key or a value that is none of this table; `ERR_IO`.
    pub(crate) fn set(
        &mut self,
        table: TruthTable,
        key: TableKey<'_>,
        value: Option<&[u8]>,
        former: impl FnOnce(&[u8]),
    ) -> Result<bool> {
        // A table comes with its first row.
        if value.is_none() && self.existing(table)?.is_none() {
            return Ok(false);
        }
        self.opened(table)?;
        let open = self.open.get_mut(table.place()).and_then(OnceCell::get_mut);
        open.ok_or_else(misfit)?.set(key, value, former)
    }

    /// Returns a row.
    pub(crate) fn get(&self, table: TruthTable, key: TableKey<'_>) -> Result<Option<Vec<u8>>> {
        self.existing(table)?.map_or(Ok(None), |table| table.get(key))
    }

    /// Returns a table of bytes by number; `None` if it has no row yet.
    pub(crate) fn numbered(&self, table: TruthTable) -> Result<Option<&NumberedTable<'t>>> {
        match self.existing(table)? {
            Some(OpenTable::Numbered(table)) => Ok(Some(table)),
            Some(_) => Err(misfit()),
            None => Ok(None),
        }
    }

    /// Returns the table of names.
    pub(crate) fn meta(&self) -> Result<&Table<'t, &'static str, &'static [u8]>> {
        match self.opened(TruthTable::Meta)? {
            OpenTable::Named(table) => Ok(table),
            _ => Err(misfit()),
        }
    }

    /// Creates a table without rows.
    pub(crate) fn create(&self, table: TruthTable) -> Result<()> {
        self.opened(table).map(drop)
    }

    /// Opens a table that is none of the truth, and is deleted before the commit.
    pub(crate) fn temporary<K: Key + 'static, V: Value + 'static>(
        &self,
        definition: TableDefinition<'_, K, V>,
    ) -> Result<Table<'t, K, V>> {
        Ok(self.txn.open_table(definition)?)
    }

    /// Deletes such a table, which must be closed.
    pub(crate) fn delete_temporary<K: Key + 'static, V: Value + 'static>(
        &self,
        definition: TableDefinition<'_, K, V>,
    ) -> Result<()> {
        self.txn.delete_table(definition)?;
        Ok(())
    }

    fn existing(&self, table: TruthTable) -> Result<Option<&OpenTable<'t>>> {
        let open = self.open.get(table.place()).and_then(OnceCell::get);
        if open.is_some() {
            return Ok(open);
        }
        match self.names()?.contains(table.name()) {
            true => self.opened(table).map(Some),
            false => Ok(None),
        }
    }

    fn names(&self) -> Result<&BTreeSet<String>> {
        if let Some(names) = self.names.get() {
            return Ok(names);
        }
        let names = self.txn.list_tables()?.map(|table| table.name().to_owned()).collect();
        Ok(self.names.get_or_init(|| names))
    }

    fn opened(&self, table: TruthTable) -> Result<&OpenTable<'t>> {
        let cell = self.open.get(table.place()).ok_or_else(misfit)?;
        if let Some(open) = cell.get() {
            return Ok(open);
        }
        let open = table.open(self.txn)?;
        Ok(cell.get_or_init(|| open))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_are_those_of_the_layout() {
        for (place, table) in TruthTable::ALL.into_iter().enumerate() {
            assert_eq!((table.place(), usize::from(table.number())), (place, place + 1));
            assert_eq!(TruthTable::from_number(table.number()), Some(table));
        }
        let db = redb::Database::builder()
            .create_with_backend(redb::backends::InMemoryBackend::new())
            .unwrap();
        let txn = db.begin_write().unwrap();
        let tables = OpenTables::new(&txn);
        for table in TruthTable::ALL {
            assert!(tables.existing(table).unwrap().is_none());
            tables.create(table).unwrap();
            assert!(tables.existing(table).unwrap().is_some());
            assert!(txn.list_tables().unwrap().any(|listed| listed.name() == table.name()));
        }
    }
}
