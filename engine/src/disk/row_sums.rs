//! Binds the rows of an encrypted store to each other. Keyed sums lie over the tables whose rows could be
//! edited or removed one by one: states, vectors, signatures and others, see [`SummedTable`]. A row that
//! somebody without the key edits, adds or removes no longer fits the sum.
//!
//! The sum of a table is the exclusive or of the tokens of its rows, so a write changes it without reading the
//! others. The sums lie encrypted in one row of the meta table. A plain store has none.
//!
//! A seal beside the head of the audit log binds what belongs together at a commit: that head, the meta table
//! with the sums, and the length of the log. Parts of an earlier state do not fit the rest.

use grainstore_index::{self as index, BlockSeal, Sequence};
use redb::{
    Key, ReadOnlyTable, ReadTransaction, ReadableTable, ReadableTableMetadata, TableDefinition,
    TableError, Value,
};
use sha2::{Digest, Sha256};

use crate::base::error::{Error, Result};
use crate::disk::keyring::{Keyring, fill_random};
use crate::disk::layout::{self, AuditHead, EncryptedEnvelope, RowKey, Stub};
use crate::disk::truth_tables::TruthTable;
use crate::disk::truth_transaction::RowWriter;
use crate::disk::vault::Vault;

/// What to do about a store that was tampered with.
const RESTORE: &str = "grain verify tells more; put back a backup, or the files as they were";

/// A table with a sum. The discriminant is its place among the sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SummedTable {
    State,
    Roots,
    Vectors,
    VectorRows,
    Spaces,
    Signatures,
    Templates,
    Tombstones,
    Destroyed,
    Erased,
    Reasons,
    RemovedSpaces,
    Blobs,
    ApplicationRows,
    Owned,
}

impl SummedTable {
    pub(crate) const ALL: [Self; 15] = [
        Self::State,
        Self::Roots,
        Self::Vectors,
        Self::VectorRows,
        Self::Spaces,
        Self::Signatures,
        Self::Templates,
        Self::Tombstones,
        Self::Destroyed,
        Self::Erased,
        Self::Reasons,
        Self::RemovedSpaces,
        Self::Blobs,
        Self::ApplicationRows,
        Self::Owned,
    ];

    /// Those of what lies beside the log for applications.
    pub(crate) const OF_APPLICATIONS: [Self; 3] = [Self::Blobs, Self::ApplicationRows, Self::Owned];
    /// How many there were in format 2: the first of them.
    const IN_FORMAT_2: usize = 12;

    /// Those that are checked when a store is opened. Vectors, and what lies there for applications, are checked
    /// when they are first read.
    pub(crate) fn at_opening() -> impl Iterator<Item = Self> {
        let is_later = |table: &Self| {
            matches!(table, Self::Vectors | Self::VectorRows)
                || Self::OF_APPLICATIONS.contains(table)
        };
        Self::ALL.into_iter().filter(move |table| !is_later(table))
    }

    /// Number of the table in the tokens. There is room for one more before the numbers of the seal and others.
    pub(crate) const fn number(self) -> u8 {
        FIRST_SUMMED + self as u8
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::State => "state",
            Self::Roots => "roots",
            Self::Vectors => "vectors",
            Self::VectorRows => "vector_rows",
            Self::Spaces => "vector_spaces",
            Self::Signatures => "signatures",
            Self::Templates => "templates",
            Self::Tombstones => "tombstones",
            Self::Destroyed => "destroyed",
            Self::Erased => "erased",
            Self::Reasons => "reasons",
            Self::RemovedSpaces => "vector_leaving",
            Self::Blobs => "blobs",
            Self::ApplicationRows => "application_rows",
            Self::Owned => "owned",
        }
    }
}

/// Number of the first table with a sum.
pub(crate) const FIRST_SUMMED: u8 = 0x80;

/// The sums of all tables, 32 bytes each.
type Sums = [[u8; 32]; SummedTable::ALL.len()];

/// The changes that one transaction makes to the sums.
pub(crate) struct SumChanges<'v> {
    vault: &'v Vault,
    changes: Sums,
    changed: bool,
}

impl<'v> SumChanges<'v> {
    pub(crate) fn of(vault: &'v Vault) -> Self {
        Self { vault, changes: Sums::default(), changed: false }
    }

    /// Takes note that a row was written or is gone.
    pub(crate) fn toggle(&mut self, table: SummedTable, key: &[u8], value: &[u8]) {
        let Some(keyring) = self.vault.keyring() else { return };
        let Some(sum) = self.changes.get_mut(table as usize) else { return };
        add(sum, &keyring.row_token(table.number(), key, value));
        self.changed = true;
    }

    /// Returns the row of the new sums, made of the row there was; `None` if no sum changed.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if the sums there are were not written by this store.
    pub(crate) fn row(&self, before: Option<Vec<u8>>) -> Result<Option<Vec<u8>>> {
        if !self.changed {
            return Ok(None);
        }
        let mut sums = stored(self.vault, before, SummedTable::ALL.len())?;
        sums.iter_mut().zip(&self.changes).for_each(|(sum, change)| add(sum, change));
        self.vault.seal(RowKey::ROW_SUMS, &sums.concat(), &self.vault.store_key()).map(Some)
    }
}

fn add(sum: &mut [u8; 32], token: &[u8; 32]) {
    sum.iter_mut().zip(token).for_each(|(sum, token)| *sum ^= token);
}

/// Decodes the sums, of which there are `count`; those of empty tables if there is no row.
fn stored(vault: &Vault, row: Option<Vec<u8>>, count: usize) -> Result<Sums> {
    let mut sums = Sums::default();
    let Some(row) = row else { return Ok(sums) };
    let damaged = || Error::truth_damaged("the sums of the rows are damaged");
    let body = vault.open(RowKey::ROW_SUMS, &row)?;
    let (told, []) = body.as_chunks::<32>() else { return Err(damaged()) };
    if told.len() != count {
        return Err(damaged());
    }
    sums.iter_mut().zip(told).for_each(|(sum, told)| *sum = *told);
    Ok(sums)
}

/// Adds the sums of the tables that format 3 has beside those of format 2, which are empty.
///
/// # Errors
/// `ERR_INTEGRITY` if the sums there are were not written by this store; `ERR_IO`.
pub(crate) fn extend(rows: &mut RowWriter<'_>, from: &ReadTransaction) -> Result<()> {
    let vault = rows.vault();
    if vault.keyring().is_none() || upgrade_begins_before_sums(from)? {
        return Ok(());
    }
    let Some(row) = rows.get(TruthTable::Meta, layout::META_ROW_SUMS)? else { return Ok(()) };
    let sums = stored(vault, Some(row), SummedTable::IN_FORMAT_2)?;
    let row = vault.seal(RowKey::ROW_SUMS, &sums.concat(), &vault.store_key())?;
    rows.put(TruthTable::Meta, layout::META_ROW_SUMS, &row).map(drop)
}

/// Returns `true` for a store of a format that had no sums: [`write_all`] writes all there are now.
fn upgrade_begins_before_sums(from: &ReadTransaction) -> Result<bool> {
    Ok(stamp_of(from)? < layout::FIRST_FORMAT_WITH_SEAL)
}

fn stamp_of(txn: &ReadTransaction) -> Result<u32> {
    let row = txn.open_table(layout::META)?.get(layout::META_FORMAT)?;
    let stamp = row.and_then(|row| <[u8; 4]>::try_from(row.value()).ok());
    Ok(stamp.map_or(0, u32::from_be_bytes))
}

/// Compares the rows of tables with their sums; reads all of them. Nothing to compare in a plain store.
///
/// # Errors
/// `ERR_INTEGRITY` if rows were changed by somebody without the key; `ERR_IO`.
pub(crate) fn check_rows(
    txn: &ReadTransaction,
    vault: &Vault,
    tables: impl IntoIterator<Item = SummedTable>,
) -> Result<()> {
    if vault.keyring().is_none() {
        return Ok(());
    }
    let meta = txn.open_table(layout::META)?;
    let count = match stamp_of(txn)? {
        layout::FORMAT_VERSION => SummedTable::ALL.len(),
        _ => SummedTable::IN_FORMAT_2,
    };
    let row = meta.get(layout::META_ROW_SUMS)?.map(|row| row.value().to_vec());
    let sums = stored(vault, row, count)?;
    for table in tables {
        if sums.get(table as usize) != Some(&sum_of(txn, vault, table)?) {
            let message =
                format!("rows of {} were changed by somebody without the key", table.name());
            return Err(Error::truth_damaged(message).with_hint(RESTORE));
        }
    }
    Ok(())
}

/// Number under which the seal and the tags of stubs are tokens, apart from the tables.
const SEAL: u8 = 0x90;
const STUB: u8 = 0x91;
const PLAIN: u8 = 0x92;
const FILE: u8 = 0x93;
const FILE_PAGE: u8 = 0x95;
const INDEX: u8 = 0x94;

/// Returns an audit head with the seal of what a transaction is about to commit.
///
/// # Errors
/// `ERR_INTEGRITY` for bytes that are no audit head; `ERR_IO`.
pub(crate) fn sealed_head(
    keyring: &Keyring,
    head: &[u8],
    last: u64,
    meta: &impl ReadableTable<&'static str, &'static [u8]>,
) -> Result<Vec<u8>> {
    let head = AuditHead::decode(head)?.encode();
    let seal = seal_of(keyring, &head, last, meta)?;
    Ok([&head[..], &seal].concat())
}

/// Checks the seal, and that the log and the audit log have as many rows as they say. Nothing to check in a
/// plain store.
///
/// # Errors
/// `ERR_INTEGRITY` if somebody without the key changed what is sealed; `ERR_IO`.
pub(crate) fn check_seal(txn: &ReadTransaction, vault: &Vault) -> Result<()> {
    let Some(keyring) = vault.keyring() else { return Ok(()) };
    let log = txn.open_table(layout::LOG)?;
    let last = log.last()?.map_or(0, |(sequence, _)| sequence.value());
    let audit = txn.open_table(layout::AUDIT)?;
    let row = audit.get(layout::AUDIT_HEAD)?.map(|row| row.value().to_vec()).unwrap_or_default();
    let head = AuditHead::decode(&row)?;
    let seal = seal_of(keyring, &head.encode(), last, &txn.open_table(layout::META)?)?;
    if log.len()? == last && leads_to(&audit, &head)? && row.get(40..) == Some(&seal[..]) {
        return Ok(());
    }
    let message = "settings, log or audit log were changed by somebody without the key";
    Err(Error::truth_damaged(message).with_hint(RESTORE))
}

/// Returns `true` if each audit entry holds the hash of the one before, up to the head.
fn leads_to(audit: &ReadOnlyTable<u64, &'static [u8]>, head: &AuditHead) -> Result<bool> {
    let (mut count, mut last) = (0_u64, [0; 32]);
    for row in audit.range(..layout::AUDIT_HEAD)? {
        let (number, entry) = row?;
        let entry = entry.value();
        if number.value() != count || (count > 0 && !entry.windows(32).any(|part| part == last)) {
            return Ok(false);
        }
        last = Sha256::digest(entry).into();
        count = count.saturating_add(1);
    }
    Ok((count, last) == (head.count, head.hash))
}

/// Returns the token of a derived file of this epoch, which is written behind its bytes in an encrypted store.
pub(crate) fn file_token(vault: &Vault, name: &str, bytes: &[u8]) -> Option<[u8; 32]> {
    let key = [&vault.index_epoch().to_be_bytes(), name.as_bytes()].concat();
    vault.keyring().map(|keyring| keyring.row_token(FILE, &key, bytes))
}

/// Returns the token of a page of a derived file that was written in an epoch.
pub(crate) fn page_token(
    vault: &Vault,
    (epoch, name, page): (u64, &str, u64),
    bytes: &[u8],
) -> Option<[u8; 32]> {
    let key = [&epoch.to_be_bytes(), &page.to_be_bytes(), name.as_bytes()].concat();
    vault.keyring().map(|keyring| keyring.row_token(FILE_PAGE, &key, bytes))
}

fn seal_of(
    keyring: &Keyring,
    head: &[u8; 40],
    last: u64,
    meta: &impl ReadableTable<&'static str, &'static [u8]>,
) -> Result<[u8; 32]> {
    let mut hash = Sha256::new();
    for row in meta.iter()? {
        let (name, value) = row?;
        for part in [name.value().as_bytes(), value.value()] {
            hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            hash.update(part);
        }
    }
    let value = [&last.to_be_bytes()[..], &hash.finalize()].concat();
    Ok(keyring.row_token(SEAL, head, &value))
}

/// Returns the tag of a stub, which takes the place of its checksum in an encrypted store.
pub(crate) fn stub_tag(keyring: &Keyring, at: Sequence, body: &[u8]) -> [u8; 4] {
    let [first, second, third, fourth, ..] = keyring.row_token(STUB, &at.get().to_be_bytes(), body);
    [first, second, third, fourth]
}

/// Returns a row in the clear with its checksum masked by a keyed tag of the rest, or with the mask taken off.
pub(crate) fn masked(keyring: &Keyring, row: RowKey, bytes: &[u8]) -> Vec<u8> {
    let mut masked = bytes.to_vec();
    let (head, body) = (bytes.get(..2).unwrap_or_default(), bytes.get(6..).unwrap_or_default());
    let key = [&[row.table()][..], &row.key.to_be_bytes()].concat();
    let tag = keyring.row_token(PLAIN, &key, &[head, body].concat());
    masked.iter_mut().skip(2).take(4).zip(tag).for_each(|(byte, tag)| *byte ^= tag);
    masked
}

/// Binds the rows of an encrypted store of format 1 that are not encrypted: gives stubs their tags and their
/// place among the erased, and masks the checksums of rows in the clear.
///
/// # Errors
/// `ERR_INTEGRITY`, `ERR_IO`.
pub(crate) fn bind_rows(rows: &mut RowWriter<'_>, from: &ReadTransaction) -> Result<()> {
    let vault = rows.vault();
    let Some(keyring) = vault.keyring() else { return Ok(()) };
    for (table, definition, row_key) in [
        (TruthTable::Log, layout::LOG, RowKey::log_row as fn(u64) -> RowKey),
        (TruthTable::Signatures, layout::SIGNATURES, RowKey::signature_row),
        (TruthTable::Reasons, layout::REASONS, RowKey::reason),
        (TruthTable::Vectors, layout::VECTORS, RowKey::vector),
    ] {
        let stored = match from.open_table(definition) {
            Err(TableError::TableDoesNotExist(_)) => continue,
            opened => opened?,
        };
        for row in stored.iter()? {
            let (key, row) = row?;
            let (key, row) = (key.value(), row.value());
            let bound = match Stub::is_stub(row) && table == TruthTable::Log {
                // What is damaged stays so.
                true => {
                    let at = Sequence::new(key);
                    let Ok(stub) = Stub::open(at, row, &Vault::default()) else { continue };
                    rows.mark_erased(at)?;
                    stub.seal(at, vault)
                }
                false if EncryptedEnvelope::parse(row).is_ok_and(|sealed| sealed.is_none()) => {
                    masked(keyring, row_key(key), row)
                }
                false => continue,
            };
            rows.put(table, key, &bound)?;
        }
    }
    Ok(())
}

/// Writes the sums of the rows there are, for a store of a format that had none.
///
/// # Errors
/// `ERR_INTEGRITY`, `ERR_IO`.
pub(crate) fn write_all(rows: &mut RowWriter<'_>, from: &ReadTransaction) -> Result<()> {
    let vault = rows.vault();
    if vault.keyring().is_none() {
        return Ok(());
    }
    let mut sums = Sums::default();
    // Tables that a later format brought are none of this one's.
    for table in SummedTable::ALL.into_iter().take(SummedTable::IN_FORMAT_2) {
        if let Some(sum) = sums.get_mut(table as usize) {
            *sum = sum_of(from, vault, table)?;
        }
    }
    let row = vault.seal(RowKey::ROW_SUMS, &sums.concat(), &vault.store_key())?;
    rows.put(TruthTable::Meta, layout::META_ROW_SUMS, &row).map(drop)
}

fn sum_of(txn: &ReadTransaction, vault: &Vault, table: SummedTable) -> Result<[u8; 32]> {
    match table {
        SummedTable::State => sum_rows(txn, vault, table, layout::STATE),
        SummedTable::Roots => sum_rows(txn, vault, table, layout::ROOTS),
        SummedTable::Vectors => sum_rows(txn, vault, table, layout::VECTORS),
        SummedTable::VectorRows => sum_rows(txn, vault, table, layout::VECTOR_ROWS),
        SummedTable::Spaces => sum_rows(txn, vault, table, layout::SPACES),
        SummedTable::Signatures => sum_rows(txn, vault, table, layout::SIGNATURES),
        SummedTable::Templates => sum_rows(txn, vault, table, layout::TEMPLATES),
        SummedTable::Tombstones => sum_rows(txn, vault, table, layout::TOMBSTONES),
        SummedTable::Destroyed => sum_rows(txn, vault, table, layout::DESTROYED),
        SummedTable::Erased => sum_rows(txn, vault, table, layout::ERASED),
        SummedTable::Reasons => sum_rows(txn, vault, table, layout::REASONS),
        SummedTable::RemovedSpaces => sum_rows(txn, vault, table, layout::REMOVED_SPACES),
        SummedTable::Blobs => sum_rows(txn, vault, table, layout::BLOBS),
        SummedTable::ApplicationRows => sum_rows(txn, vault, table, layout::APPLICATION_ROWS),
        SummedTable::Owned => sum_rows(txn, vault, table, layout::OWNED),
    }
}

fn sum_rows<K: Key + 'static, V: Value + 'static>(
    txn: &ReadTransaction,
    vault: &Vault,
    table: SummedTable,
    definition: TableDefinition<'static, K, V>,
) -> Result<[u8; 32]> {
    let mut sum = [0; 32];
    let Some(keyring) = vault.keyring() else { return Ok(sum) };
    let rows: ReadOnlyTable<K, V> = match txn.open_table(definition) {
        // It is created with its first row.
        Err(TableError::TableDoesNotExist(_)) => return Ok(sum),
        opened => opened?,
    };
    for row in rows.iter()? {
        let (key, value) = row?;
        let (key, value) = (key.value(), value.value());
        let (key, value) = (key_bytes::<K>(&key), V::as_bytes(&value));
        add(&mut sum, &keyring.row_token(table.number(), &key, value.as_ref()));
    }
    Ok(sum)
}

/// The bytes of a key as [`SumChanges::replace`] takes them: numbers are big-endian there, and little-endian on
/// disk.
fn key_bytes<K: Key>(key: &K::SelfType<'_>) -> Vec<u8> {
    let mut bytes = K::as_bytes(key).as_ref().to_vec();
    if K::type_name() == u64::type_name() {
        bytes.reverse();
    }
    bytes
}

/// Makes the tags of an index that is made, or was opened, in an epoch: a reader of an older index goes on when the
/// epoch ends.
pub(crate) struct IndexSeal {
    pub(crate) vault: Vault,
    pub(crate) epoch: u64,
}

impl BlockSeal for IndexSeal {
    fn token(&self, place: &[u8], bytes: &[u8]) -> [u8; 32] {
        self.vault.keyring().map_or([0; 32], |keyring| keyring.row_token(INDEX, place, bytes))
    }

    fn seal(&self, body: &[u8]) -> index::Result<Vec<u8>> {
        let row = RowKey::index_seal(self.epoch);
        let sealed = self.vault.seal(row, body, &self.vault.store_key());
        sealed.map_err(|error| index::Error::of_seal(error.to_string()))
    }

    fn open(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        let row = RowKey::index_seal(self.epoch);
        self.vault.open(row, sealed).ok().map(std::borrow::Cow::into_owned)
    }

    fn nonce(&self) -> index::Result<[u8; 16]> {
        let mut nonce = [0; 16];
        let filled = fill_random(&mut nonce);
        filled.map_err(|error| index::Error::of_seal(error.to_string()))?;
        Ok(nonce)
    }
}
