//! Compaction: replaces both database files by compact copies while the store stays open.
//!
//! It runs on the writer thread, so no write comes between a copy and its use; running reads stay on the old
//! file. A crash leaves the old file or the new one under the name, each complete. A failure before the
//! rename changes nothing.

use std::fs;
use std::sync::Arc;

use redb::ReadableDatabase;
use serde::{Deserialize, Serialize};

use super::copy::copy_to;
use crate::base::error::{Result, catch_storage_panic};
use crate::base::pending::Pending;
use crate::disk::database::DatabaseHandle;
use crate::handle::store::Store;
use crate::write::writer::{Request, Writer};

/// File sizes before and after [`Store::compact`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CompactionReport {
    /// Size of the truth before, in bytes.
    pub truth_bytes_before: u64,
    /// Size of the truth after, in bytes.
    pub truth_bytes_after: u64,
    /// Size of the derived index before, in bytes.
    pub index_bytes_before: u64,
    /// Size of the derived index after, in bytes.
    pub index_bytes_after: u64,
}

impl Store {
    /// Rewrites the files of the store without free pages, and without anything that was deleted. If a name
    /// in the directory is a link, the file it leads to is rewritten.
    ///
    /// Reads continue meanwhile, writes wait. Needs disk space for a second copy of the truth, then for two more of
    /// the index, and the old files stay until the last read from them has ended.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    /// # let grain = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).build()?;
    /// # session.put(grain)?;
    /// let sizes = store.compact()?;
    /// assert!(sizes.truth_bytes_after <= sizes.truth_bytes_before);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_IO`, for instance if the disk is full; `ERR_BUSY` if an erasure is not scrubbed and a reader
    /// still uses a file that was replaced before; `ERR_INTEGRITY` if something cannot be read. No file is
    /// worse than before then, and the store goes on. Only if a rename could not be made durable are writes
    /// refused until the store is reopened.
    pub fn compact(&self) -> Result<CompactionReport> {
        let (reply, pending) = Pending::new();
        self.inner().send(Request::Exclusive(Box::new(move |writer| {
            // The caller may have stopped waiting.
            let _ = reply.send(writer.and_then(|writer| catch_storage_panic(|| writer.compact())));
        })))?;
        pending.wait()
    }
}

impl Writer {
    fn compact(&mut self) -> Result<CompactionReport> {
        self.fold_all()?;
        // A copy would lose what can still be recovered from the pages of a damaged row.
        self.view.check_log()?;
        let truth = self.db.database_file()?.file.clone();
        let index = self.fold_worker.aside(|db| Ok(db.database_file()?.file.clone()))?;
        let bytes = || -> Result<(u64, u64)> {
            Ok((fs::metadata(&truth)?.len(), fs::metadata(&index)?.len()))
        };
        let before = bytes()?;
        self.replace_truth()?;
        let merged = self.fold_worker.merge_all()?;
        let mut indexed = self.view.indexed().clone();
        indexed.replace_tables(merged);
        self.replace_view(self.view.with_index(indexed));
        self.compact_index()?;
        let after = bytes()?;
        Ok(CompactionReport {
            truth_bytes_before: before.0,
            truth_bytes_after: after.0,
            index_bytes_before: before.1,
            index_bytes_after: after.1,
        })
    }

    fn compact_index(&mut self) -> Result<()> {
        let shreds = self.must_shred(&Arc::clone(&self.view))?;
        self.fold_worker.aside(move |db| {
            if shreds {
                db.shred_next_replaced();
            }
            db.make_copy()?;
            db.rename_copy()
        })?;
        self.stop_on_error(|writer| {
            writer.fold_worker.begin(Box::new(DatabaseHandle::switch_to_copy))?;
            let mut indexed = writer.view.indexed().clone();
            indexed.replace_tables(writer.fold_worker.wait()?);
            writer.replace_view(writer.view.with_index(indexed));
            // Unless a reader holds one, no view of the old file is left, so it can be closed.
            writer.fold_worker.release()
        })
    }
}

impl DatabaseHandle {
    /// Copies everything committed into a file beside.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`; the copy is removed then.
    pub(crate) fn make_copy(&mut self) -> Result<()> {
        let home = self.database_file()?;
        home.check()?;
        let txn = self.database().begin_read()?;
        let copy = copy_to(&home.copy_path(), &txn, &home.options)?;
        self.set_copy(copy);
        Ok(())
    }
}
