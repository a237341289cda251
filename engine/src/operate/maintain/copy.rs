//! Copies of whole databases: every table of a snapshot, in key order, into a new file.
//!
//! Rows written in key order fill their pages, and a new file contains nothing that was deleted from the old
//! one. A copy is read back and compared by hash before it is used.

use std::path::Path;

use redb::{Database, Durability, ReadTransaction, ReadableDatabase, TableHandle as _};
use sha2::{Digest, Sha256};

use super::any_table;
use crate::base::error::{Error, Result};
use crate::disk::database::DatabaseOptions;
use crate::disk::directory;

/// The contents of a database: its number of rows, and a hash of the names, keys and values of all tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    pub(crate) rows: u64,
    pub(crate) hash: [u8; 32],
}

/// Copies every table of a snapshot into a new file, durably, and checks that the copy reads the same. An
/// existing file is replaced; on an error none is left.
///
/// # Errors
/// `ERR_INTEGRITY` if the snapshot cannot be read or the copy differs from it; `ERR_IO`; `ERR_STORE_VERSION`
/// for a table of unknown types.
pub(crate) fn copy_to(
    file: &Path,
    from: &ReadTransaction,
    opening: &DatabaseOptions,
) -> Result<Database> {
    directory::remove(file)?;
    copy_and_check(file, from, opening).inspect_err(|_| {
        // The copy has failed already; a leftover is removed at the next opening.
        let _ = directory::remove(file);
    })
}

fn copy_and_check(
    file: &Path,
    from: &ReadTransaction,
    opening: &DatabaseOptions,
) -> Result<Database> {
    let written = copy_tables(&opening.builder().create(file)?, from)?;
    // Reopening proves that it can be opened; `compact` then returns the space allocated ahead, up to half of
    // the file.
    let mut copy = opening.builder().open(file)?;
    copy.compact()?;
    if fingerprint(&copy.begin_read()?)? != written {
        return Err(Error::integrity("a copy of the database does not read as it was written"));
    }
    Ok(copy)
}

/// Writes every table into an empty database, in one transaction.
fn copy_tables(to: &Database, from: &ReadTransaction) -> Result<Fingerprint> {
    let mut hashing = FingerprintHasher::default();
    let mut txn = to.begin_write()?;
    txn.set_durability(Durability::Immediate)?;
    txn.set_quick_repair(true);
    for name in table_names(from)? {
        let Some(table) = any_table::open_table(from, &name)? else { continue };
        hashing.begin(&name);
        table.copy_into(&txn, &name, &mut |key, value| hashing.row(key, value))?;
    }
    txn.commit()?;
    Ok(hashing.finish())
}

/// Returns the fingerprint of a snapshot.
///
/// # Errors
/// `ERR_INTEGRITY`, `ERR_IO`, `ERR_STORE_VERSION` for a table of unknown types.
pub(crate) fn fingerprint(txn: &ReadTransaction) -> Result<Fingerprint> {
    let mut hashing = FingerprintHasher::default();
    for name in table_names(txn)? {
        let Some(mut table) = any_table::open_table(txn, &name)? else { continue };
        hashing.begin(&name);
        while table.rows.next()? {
            hashing.row(table.rows.key(), table.rows.value());
        }
    }
    Ok(hashing.finish())
}

/// Returns the names of all tables, sorted.
///
/// # Errors
/// `ERR_INTEGRITY`, `ERR_IO`.
pub(crate) fn table_names(txn: &ReadTransaction) -> Result<Vec<String>> {
    let mut names: Vec<String> = txn.list_tables()?.map(|table| table.name().to_owned()).collect();
    names.sort_unstable();
    Ok(names)
}

/// Computes a fingerprint.
#[derive(Default)]
struct FingerprintHasher {
    rows: u64,
    hash: Sha256,
}

impl FingerprintHasher {
    fn begin(&mut self, table: &str) {
        self.hash.update([0]);
        self.add(table.as_bytes());
    }

    fn row(&mut self, key: &[u8], value: &[u8]) {
        self.rows = self.rows.saturating_add(1);
        self.hash.update([1]);
        self.add(key);
        self.add(value);
    }

    /// Hashes the length first, so that no two contents hash the same bytes.
    fn add(&mut self, bytes: &[u8]) {
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.hash.update(length.to_be_bytes());
        self.hash.update(bytes);
    }

    fn finish(self) -> Fingerprint {
        Fingerprint { rows: self.rows, hash: self.hash.finalize().into() }
    }
}
