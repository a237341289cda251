//! Blobs and rows of applications as of a snapshot. Everything that is read is checked against what it says of
//! itself: its key, its owner, and a blob its hash.

use grainstore_format::ContentAddress;
use redb::{ReadOnlyTable, ReadableTableMetadata, TableError};
use sha2::{Digest, Sha256};

use super::Truth;
use crate::base::error::{Error, Result};
use crate::disk::layout::{self, BlobHead, KeyedDefinition, OwnedLink, RowBody, RowOwner};
use crate::disk::row_sums::SummedTable;
use crate::disk::truth_tables::TruthTable;
use crate::state::application::{ApplicationCounts, ApplicationKey, ApplicationRow};

/// A table of bytes by bytes.
type KeyedTable = ReadOnlyTable<&'static [u8], &'static [u8]>;

impl Truth {
    /// Opens a table of bytes by bytes; `None` if it has no row yet.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn keyed(&self, definition: KeyedDefinition) -> Result<Option<KeyedTable>> {
        match self.txn.open_table(definition) {
            Err(TableError::TableDoesNotExist(_)) => Ok(None),
            opened => Ok(Some(opened?)),
        }
    }

    /// Number of rows in such a table.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn keyed_len(&self, definition: KeyedDefinition) -> Result<u64> {
        Ok(self.keyed(definition)?.map_or(Ok(0), |table| table.len())?)
    }

    /// Compares blobs, rows and owners with their keyed sums, once for each opening of the store.
    ///
    /// # Errors
    /// As [`Truth::check_rows`].
    pub(crate) fn check_application_rows(&self) -> Result<()> {
        SummedTable::OF_APPLICATIONS.into_iter().try_for_each(|table| self.check_once(table))
    }

    /// Compares owners alone, by which an erasure finds what to erase.
    ///
    /// # Errors
    /// As [`Truth::check_rows`].
    pub(crate) fn check_owners(&self) -> Result<()> {
        self.check_once(SummedTable::Owned)
    }

    fn check_once(&self, table: SummedTable) -> Result<()> {
        let checked = table.number();
        if self.vault.keyring().is_none() || self.vault.is_checked(checked) {
            return Ok(());
        }
        self.check_rows([table])?;
        self.vault.set_checked(checked);
        Ok(())
    }

    /// Returns the row under a key of the table, with its owner.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` for a row that is damaged, or not of this key; `ERR_ERASED` if its key was destroyed;
    /// `ERR_IO`.
    pub(crate) fn application_row(&self, key: &[u8]) -> Result<Option<(RowOwner, ApplicationRow)>> {
        let Some(table) = self.keyed(layout::APPLICATION_ROWS)? else { return Ok(None) };
        let row = table.get(key)?;
        row.map(|row| self.open_application_row(key, row.value())).transpose()
    }

    /// Opens a row that lies under a key.
    ///
    /// # Errors
    /// As [`Truth::application_row`].
    pub(crate) fn open_application_row(
        &self,
        key: &[u8],
        row: &[u8],
    ) -> Result<(RowOwner, ApplicationRow)> {
        let place = (TruthTable::ApplicationRows, key);
        let (owner, body) = layout::open_owned(place, row, &self.vault)?;
        let body = RowBody::decode(&body)?;
        let own = match body.key {
            Some(bytes) => Some(ApplicationKey::Bytes(bytes.to_vec())),
            None => RowBody::number_in(key).map(ApplicationKey::Number),
        };
        let own = own.filter(|_| body.stands_under(key, &self.vault));
        let misplaced = || Error::truth_damaged("a row of an application lies under another key");
        let row = ApplicationRow { key: own.ok_or_else(misplaced)?, value: body.value.to_vec() };
        Ok((owner, row))
    }

    /// Returns the bytes of a blob, checked against their hash.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` for bytes that are damaged or missing; `ERR_ERASED` if their key was destroyed; `ERR_IO`.
    pub(crate) fn blob_bytes(
        &self,
        address: &ContentAddress,
        owner: &RowOwner,
    ) -> Result<Option<Vec<u8>>> {
        let key = layout::blob_key(&self.vault, address, owner);
        let Some(table) = self.keyed(layout::BLOBS)? else { return Ok(None) };
        let Some(row) = table.get(key.as_slice())? else { return Ok(None) };
        let (told, bytes) = self.read_blob(&key, row.value())?;
        match (told == *owner).then_some(bytes) {
            Some(bytes) if ContentAddress::of(&bytes) == *address => Ok(Some(bytes)),
            _ => Err(damaged_blob()),
        }
    }

    /// Reads a blob by its head and all its chunks. Returns its owner and its bytes.
    ///
    /// # Errors
    /// As [`Truth::blob_bytes`].
    pub(crate) fn read_blob(&self, key: &[u8], head: &[u8]) -> Result<(RowOwner, Vec<u8>)> {
        let (owner, body) = layout::open_owned((TruthTable::Blobs, key), head, &self.vault)?;
        let head = BlobHead::decode(&body)?;
        let own = layout::blob_key(&self.vault, &head.address, &owner);
        let chunks = self.keyed(layout::BLOB_CHUNKS)?;
        let mut bytes = Vec::new();
        for number in 0..head.chunks() {
            let place = layout::chunk_key(key, number);
            let row = chunks.as_ref().map(|chunks| chunks.get(place.as_slice())).transpose()?;
            let row = row.flatten().ok_or_else(damaged_blob)?;
            let place = (TruthTable::BlobChunks, place.as_slice());
            bytes.extend_from_slice(&layout::open_owned(place, row.value(), &self.vault)?.1);
        }
        let hash: [u8; 32] = Sha256::digest(&bytes).into();
        match own == *key && hash == *head.address.as_bytes() {
            true => Ok((owner, bytes)),
            false => Err(damaged_blob()),
        }
    }

    /// Calls `show` with each key in the table of owners that begins so: with the token of a user, or with all of
    /// the prefix of a grain.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`, and those of `show`.
    pub(crate) fn for_each_owned(
        &self,
        prefix: &[u8],
        mut show: impl FnMut(&[u8], OwnedLink) -> Result<()>,
    ) -> Result<()> {
        let Some(table) = self.keyed(layout::OWNED)? else { return Ok(()) };
        for row in table.range(prefix..)? {
            let (link, _) = row?;
            if !link.value().starts_with(prefix) {
                break;
            }
            show(link.value(), OwnedLink::decode(link.value())?)?;
        }
        Ok(())
    }

    /// Returns how many rows and blobs belong to whom these prefixes name.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn count_owned(&self, prefix: &[u8]) -> Result<ApplicationCounts> {
        let mut counts = ApplicationCounts::default();
        self.for_each_owned(prefix, |_, OwnedLink { table, .. }| {
            counts.add(table);
            Ok(())
        })?;
        Ok(counts)
    }

    /// Returns the keys of the chunks of a blob, as many as there are.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn chunks_of(&self, blob: &[u8]) -> Result<Vec<Vec<u8>>> {
        let Some(table) = self.keyed(layout::BLOB_CHUNKS)? else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for row in table.range(blob..)? {
            let (key, _) = row?;
            if !key.value().starts_with(blob) {
                break;
            }
            found.push(key.value().to_vec());
        }
        Ok(found)
    }
}

fn damaged_blob() -> Error {
    Error::truth_damaged("the bytes of a blob have changed")
}
