//! How full the files of a store are.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use redb::{ReadTransaction, ReadableTableMetadata};
use serde::Serialize;

use crate::base::error::{Result, guarded};
use crate::base::pending::Pending;
use crate::disk::directory;
use crate::disk::source::Leased;
use crate::handle::store::Store;
use crate::state::view::View;
use crate::write::writer::{Request, Writer};

/// What the bytes of the files of a store are used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Pages {
    /// The truth.
    pub truth: FilePages,
    /// The derived index.
    pub index: FilePages,
}

/// What the bytes of a file are used for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FilePages {
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Bytes of keys and values.
    pub stored_bytes: u64,
    /// Bytes that lead to them.
    pub metadata_bytes: u64,
    /// Bytes in pages that are partly filled.
    pub fragmented_bytes: u64,
}

impl FilePages {
    /// Bytes that a compaction would give back, roughly: pages nobody uses, and what is empty in
    /// the others.
    #[must_use]
    pub fn slack_bytes(&self) -> u64 {
        let used = self.stored_bytes.saturating_add(self.metadata_bytes);
        self.file_bytes.saturating_sub(used)
    }
}

impl Store {
    /// What the files are used for. It reads every page, so it takes longer than
    /// [`Store::stats`]; reads and writes go on.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub fn pages(&self) -> Result<Pages> {
        let (reply, pending) = Pending::new();
        self.inner().hand_over(Request::Alone(Box::new(move |writer| {
            // Nobody may be waiting any more.
            let _ = reply.send(writer.and_then(|writer| guarded(|| writer.whole())));
        })))?;
        let whole = pending.wait()?;
        guarded(|| {
            let truth = pages(whole.view.transaction(), &self.truth_path())?;
            let index = pages(&whole.index, &directory::index(self.path()))?;
            Ok(Pages { truth, index })
        })
    }
}

fn pages(txn: &ReadTransaction, file: &Path) -> Result<FilePages> {
    // An index that was made in memory has no file.
    let file_bytes = fs::metadata(file).map_or(0, |file| file.len());
    let mut sum = FilePages { file_bytes, ..FilePages::default() };
    for table in txn.list_tables()? {
        let table = txn.open_untyped_table(table)?.stats()?;
        sum.stored_bytes = sum.stored_bytes.saturating_add(table.stored_bytes());
        sum.metadata_bytes = sum.metadata_bytes.saturating_add(table.metadata_bytes());
        sum.fragmented_bytes = sum.fragmented_bytes.saturating_add(table.fragmented_bytes());
    }
    Ok(sum)
}

/// Truth and index of one moment, all folded.
pub(super) struct Whole {
    pub(super) view: Arc<View>,
    pub(super) index: Leased<ReadTransaction>,
}

impl Writer {
    /// Folds what is in the tail, and takes a snapshot of both databases.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub(super) fn whole(&mut self) -> Result<Whole> {
        self.fold_all()?;
        Ok(Whole { index: self.folder.snapshot()?, view: Arc::clone(&self.view) })
    }
}
