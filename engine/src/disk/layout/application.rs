//! The byte layout of what lies beside the log: blobs, rows of applications, and whom they belong to.
//!
//! Each row says whom it belongs to, then has an envelope that is bound to its key and to that owner.

use std::borrow::Cow;

use grainstore_format::ContentAddress;
use redb::TableDefinition;
use sha2::{Digest, Sha256};

use super::{RowKey, RowOwner};
use crate::base::error::{Error, Result};
use crate::disk::truth_tables::TruthTable;
use crate::disk::vault::{EncryptionKey, Vault};

/// A table of bytes by bytes.
pub(crate) type KeyedDefinition = TableDefinition<'static, &'static [u8], &'static [u8]>;

/// Key of a blob -> its head. Created with the first blob.
pub(crate) const BLOBS: KeyedDefinition = TableDefinition::new("blobs");
/// Key of a blob and the number of a chunk from 0, u32 -> the chunk. Created with the first blob.
pub(crate) const BLOB_CHUNKS: KeyedDefinition = TableDefinition::new("blob_chunks");
/// Key of a row -> the row. Created with the first row of an application.
pub(crate) const APPLICATION_ROWS: KeyedDefinition = TableDefinition::new("application_rows");
/// [`RowOwner::prefix`], the number of a table and a key in it -> no bytes. Created with the first row or blob
/// that belongs to somebody.
pub(crate) const OWNED: KeyedDefinition = TableDefinition::new("owned");

/// Bytes of a chunk of a blob; the last has fewer. With its envelope a chunk fills a page of 1 MiB.
pub(crate) const CHUNK_BYTES: usize = (1 << 20) - (4 << 10);

/// Version of the head of a blob, and of the body of a row.
const VERSION: u8 = 1;

/// Returns the row that the envelope of a row is bound to: the table, its key and its owner.
fn bound_row(table: TruthTable, key: &[u8], owner: &[u8]) -> RowKey {
    let hash = Sha256::new().chain_update(key).chain_update(owner).finalize();
    let key = hash.first_chunk::<8>().map_or(0, |start| u64::from_be_bytes(*start));
    let table = match table {
        TruthTable::Blobs => RowKey::BLOBS,
        TruthTable::BlobChunks => RowKey::BLOB_CHUNKS,
        _ => RowKey::APPLICATION_ROWS,
    };
    RowKey { table, key }
}

/// Encodes a row: its owner, then the envelope of its body.
///
/// # Errors
/// As [`Vault::seal`].
pub(crate) fn seal_owned(
    (table, key): (TruthTable, &[u8]),
    owner: &RowOwner,
    body: &[u8],
    (vault, encryption_key): (&Vault, &EncryptionKey),
) -> Result<Vec<u8>> {
    let mut row = owner.encode();
    let envelope = vault.seal(bound_row(table, key, &row), body, encryption_key)?;
    row.extend_from_slice(&envelope);
    Ok(row)
}

/// Decodes a row: its owner and its body.
///
/// # Errors
/// As [`Vault::open`] and [`RowOwner::split`].
pub(crate) fn open_owned<'r>(
    (table, key): (TruthTable, &[u8]),
    row: &'r [u8],
    vault: &Vault,
) -> Result<(RowOwner, Cow<'r, [u8]>)> {
    let (owner, envelope) = RowOwner::split(row)?;
    Ok((owner, vault.open(bound_row(table, key, &owner.encode()), envelope)?))
}

/// Returns the key of a blob with this content and owner.
pub(crate) fn blob_key(vault: &Vault, address: &ContentAddress, owner: &RowOwner) -> [u8; 32] {
    let parts = [&b"grainstore blob\0"[..], address.as_bytes(), &owner.prefix()];
    *hidden(vault, &parts).as_bytes()
}

/// Returns the key of a chunk of a blob.
pub(crate) fn chunk_key(blob: &[u8], number: u32) -> Vec<u8> {
    [blob, &number.to_be_bytes()].concat()
}

/// SHA-256 of these parts, or the token of it in an encrypted store.
fn hidden(vault: &Vault, parts: &[&[u8]]) -> super::AddressKey {
    let hash = parts.iter().fold(Sha256::new(), Digest::chain_update);
    vault.address_key(&ContentAddress::from_bytes(hash.finalize().into()))
}

/// The head of a blob.
///
/// | byte | meaning |
/// |---|---|
/// | 0 | version, 1 |
/// | 1..33 | SHA-256 of the bytes |
/// | 33..41 | how many they are, u64 |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlobHead {
    pub(crate) address: ContentAddress,
    pub(crate) bytes: u64,
}

impl BlobHead {
    pub(crate) fn encode(&self) -> Vec<u8> {
        [&[VERSION][..], self.address.as_bytes(), &self.bytes.to_be_bytes()].concat()
    }

    /// Decodes a head.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` for bytes no version wrote.
    pub(crate) fn decode(body: &[u8]) -> Result<Self> {
        let damaged = || Error::truth_damaged("the head of a blob is damaged");
        let [VERSION, rest @ ..] = body else { return Err(damaged()) };
        let (address, bytes) = rest.split_first_chunk::<32>().ok_or_else(damaged)?;
        let bytes: [u8; 8] = bytes.try_into().map_err(|_| damaged())?;
        Ok(Self { address: ContentAddress::from_bytes(*address), bytes: u64::from_be_bytes(bytes) })
    }

    /// Number of its chunks.
    pub(crate) fn chunks(&self) -> u32 {
        u32::try_from(self.bytes.div_ceil(CHUNK_BYTES as u64)).unwrap_or(u32::MAX)
    }
}

/// The key of a row of an application, as it is in the table.
///
/// | byte | meaning |
/// |---|---|
/// | 0..16 | what stands for the application |
/// | 16 | the table of the application |
/// | 17 | 0 a number, 1 bytes |
/// | 18.. | the number, u64; or what stands for the bytes, 32 |
#[derive(Debug, Clone, Copy)]
pub(crate) struct TablePrefix([u8; 17]);

impl TablePrefix {
    const NUMBER: u8 = 0;
    const BYTES: u8 = 1;

    pub(crate) fn of(vault: &Vault, application: &str, table: u8) -> Self {
        let name = hidden(vault, &[b"grainstore application\0", application.as_bytes()]);
        let mut bytes = [table; 17];
        bytes.iter_mut().zip(name.as_bytes().iter().take(16)).for_each(|(to, from)| *to = *from);
        Self(bytes)
    }

    /// The key of a number.
    pub(crate) fn number(&self, number: u64) -> Vec<u8> {
        [&self.0[..], &[Self::NUMBER], &number.to_be_bytes()].concat()
    }

    /// The key of bytes.
    pub(crate) fn bytes(&self, vault: &Vault, key: &[u8]) -> Vec<u8> {
        let key = hidden(vault, &[b"grainstore row\0", &self.0, key]);
        [&self.0[..], &[Self::BYTES], key.as_bytes()].concat()
    }

    /// What the keys of all bytes begin with.
    pub(crate) fn all_bytes(&self) -> Vec<u8> {
        [&self.0[..], &[Self::BYTES]].concat()
    }
}

/// The body of a row of an application: a version, 1; the length of the application's name (u8) and the name;
/// the length of the key (u16; 0 for a number) and the key; the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowBody<'r> {
    pub(crate) application: &'r str,
    /// `None` for a number, which the key of the row tells.
    pub(crate) key: Option<&'r [u8]>,
    pub(crate) value: &'r [u8],
}

impl<'r> RowBody<'r> {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let Self { application, key, value } = self;
        let key = key.unwrap_or_default();
        let mut bytes = vec![VERSION, u8::try_from(application.len()).unwrap_or(u8::MAX)];
        bytes.extend_from_slice(application.as_bytes());
        bytes.extend_from_slice(&u16::try_from(key.len()).unwrap_or(u16::MAX).to_be_bytes());
        bytes.extend_from_slice(key);
        bytes.extend_from_slice(value);
        bytes
    }

    /// Decodes a body.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` for bytes no version wrote.
    pub(crate) fn decode(body: &'r [u8]) -> Result<Self> {
        Self::parse(body).ok_or_else(|| Error::truth_damaged("a row of an application is damaged"))
    }

    fn parse(body: &'r [u8]) -> Option<Self> {
        let [VERSION, length, rest @ ..] = body else { return None };
        let (application, rest) = rest.split_at_checked(usize::from(*length))?;
        let (length, rest) = rest.split_first_chunk::<2>()?;
        let (key, value) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        let application = str::from_utf8(application).ok()?;
        Some(Self { application, key: (!key.is_empty()).then_some(key), value })
    }

    /// Returns the number in the key of the row.
    pub(crate) fn number_in(key: &[u8]) -> Option<u64> {
        key.get(18..)?.try_into().ok().map(u64::from_be_bytes)
    }

    /// Returns `true` if the row stands under this key, as its application and its own key say.
    pub(crate) fn stands_under(&self, key: &[u8], vault: &Vault) -> bool {
        let Some(table) = key.get(16) else { return false };
        let prefix = TablePrefix::of(vault, self.application, *table);
        match (self.key, Self::number_in(key)) {
            (Some(bytes), _) => prefix.bytes(vault, bytes) == key,
            (None, Some(number)) => prefix.number(number) == key,
            (None, None) => false,
        }
    }
}
