//! One number for the truth of a store, to compare copies by.

use sha2::{Digest, Sha256};

use super::{open_table, table_names};
use crate::base::error::Result;
use crate::disk::journaling::CommitPosition;
use crate::disk::position::Position;
use crate::disk::truth_tables::TruthTable;
use crate::handle::store::Store;

/// The truth of a copy at one moment, from [`Store::truth_digest`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TruthDigest {
    /// The SHA-256 of all rows of the truth, table by table.
    pub sha256: [u8; 32],
    /// The place in the journal that it is of; `None` for a store without one.
    pub position: Option<CommitPosition>,
}

impl Store {
    /// Reads all of the truth, and returns a number that copies of a store have in common when they are at the same
    /// place of their journal.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// assert_eq!(store.truth_digest()?, store.truth_digest()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub fn truth_digest(&self) -> Result<TruthDigest> {
        let view = self.inner().view()?;
        let txn = view.transaction();
        let mut digest = Sha256::new();
        let mut field = |bytes: &[u8]| {
            digest.update(u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_be_bytes());
            digest.update(bytes);
        };
        let known = TruthTable::ALL.map(TruthTable::name);
        for name in table_names(txn)?.iter().filter(|name| known.contains(&name.as_str())) {
            let Some(mut table) = open_table(txn, name)? else { continue };
            field(name.as_bytes());
            while table.rows.next()? {
                field(table.rows.key());
                field(table.rows.value());
            }
            // No row has an empty key and no value.
            field(&[]);
        }
        let position = Position::read_in(txn)?;
        let position = position.map(|at| CommitPosition::new(at.shard, at.head.commit));
        Ok(TruthDigest { sha256: digest.finalize().into(), position })
    }
}
