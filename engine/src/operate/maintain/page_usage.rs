//! Use of the pages in a store's files.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use redb::{ReadTransaction, ReadableTableMetadata};
use serde::Serialize;

use crate::base::error::{Result, catch_storage_panic};
use crate::base::pending::Pending;
use crate::disk::database::LeasedReader;
use crate::disk::directory;
use crate::handle::store::Store;
use crate::state::view::View;
use crate::write::writer::{Request, Writer};

/// Use of the bytes in both files of a store: [`Store::pages`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PageUsage {
    /// The truth.
    pub truth: FilePageUsage,
    /// The derived index.
    pub index: FilePageUsage,
}

/// Use of the bytes in a file: [`Store::pages`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FilePageUsage {
    /// Size of the file.
    pub file_bytes: u64,
    /// Bytes of keys and values.
    pub stored_bytes: u64,
    /// Bytes of branch pages and other metadata of the B-trees.
    pub metadata_bytes: u64,
    /// Unused bytes in partly filled pages.
    pub fragmented_bytes: u64,
}

impl FilePageUsage {
    /// Approximate bytes that a compaction would free: unused pages, and unused space in the others.
    #[must_use]
    pub fn slack_bytes(&self) -> u64 {
        let used = self.stored_bytes.saturating_add(self.metadata_bytes);
        self.file_bytes.saturating_sub(used)
    }
}

impl Store {
    /// Returns the use of the files. Reads every page, so it takes longer than [`Store::stats`]; reads and
    /// writes continue.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    /// let usage = store.pages()?;
    /// assert!(usage.truth.stored_bytes <= usage.truth.file_bytes);
    /// println!("a compaction would free about {} bytes", usage.truth.slack_bytes());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub fn pages(&self) -> Result<PageUsage> {
        let (reply, pending) = Pending::new();
        self.inner().hand_over(Request::Exclusive(Box::new(move |writer| {
            // The caller may have stopped waiting.
            let _ = reply
                .send(writer.and_then(|writer| catch_storage_panic(|| writer.folded_snapshot())));
        })))?;
        let whole = pending.wait()?;
        catch_storage_panic(|| {
            let truth = file_page_usage(whole.view.transaction(), &self.truth_path())?;
            let index = file_page_usage(&whole.index, &directory::index_path(self.path()))?;
            Ok(PageUsage { truth, index })
        })
    }
}

fn file_page_usage(txn: &ReadTransaction, file: &Path) -> Result<FilePageUsage> {
    // An index in memory has no file.
    let file_bytes = fs::metadata(file).map_or(0, |file| file.len());
    let mut sum = FilePageUsage { file_bytes, ..FilePageUsage::default() };
    for table in txn.list_tables()? {
        let table = txn.open_untyped_table(table)?.stats()?;
        sum.stored_bytes = sum.stored_bytes.saturating_add(table.stored_bytes());
        sum.metadata_bytes = sum.metadata_bytes.saturating_add(table.metadata_bytes());
        sum.fragmented_bytes = sum.fragmented_bytes.saturating_add(table.fragmented_bytes());
    }
    Ok(sum)
}

/// Snapshots of truth and index at one moment, with everything folded.
pub(super) struct FoldedSnapshot {
    pub(super) view: Arc<View>,
    pub(super) index: LeasedReader<ReadTransaction>,
}

impl Writer {
    /// Folds the tail, and takes a snapshot of both databases.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub(super) fn folded_snapshot(&mut self) -> Result<FoldedSnapshot> {
        self.fold_all()?;
        Ok(FoldedSnapshot { index: self.fold_worker.snapshot()?, view: Arc::clone(&self.view) })
    }
}
