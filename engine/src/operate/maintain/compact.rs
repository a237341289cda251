//! Compaction: both databases go on as copies without gaps, while the store stays open.
//!
//! It runs on the writer's thread, so no write falls between a copy and its taking over; reads go
//! on with the old file until they end. A crash leaves the old file or the new one under the
//! name, each whole. Whatever fails before the new file has its name changes nothing.

use std::fs;
use std::sync::Arc;

use redb::ReadableDatabase;
use serde::Serialize;

use super::copy::copy_to;
use crate::base::error::{Result, guarded};
use crate::base::pending::Pending;
use crate::disk::source::Source;
use crate::handle::store::Store;
use crate::write::writer::{Request, Writer};

/// What a compaction did to the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Compaction {
    /// Bytes of the truth before.
    pub truth_bytes_before: u64,
    /// Bytes of the truth after.
    pub truth_bytes_after: u64,
    /// Bytes of the derived index before.
    pub index_bytes_before: u64,
    /// Bytes of the derived index after.
    pub index_bytes_after: u64,
}

impl Store {
    /// Rewrites the files of the store without gaps and without anything that was deleted. Where a
    /// name in the directory is a link, the file it leads to is rewritten.
    ///
    /// Reads go on meanwhile, writes wait. It needs room on the disk for a second copy of the
    /// larger file, and the old files keep theirs until the last read from them has ended.
    ///
    /// # Errors
    /// `ERR_IO`, for instance where there is no room; `ERR_BUSY` where an erasure is not scrubbed and
    /// somebody still reads from a file that gave way before; and `ERR_INTEGRITY` where something cannot
    /// be read: no file is worse than before, and the store goes on. Only where a copy could not
    /// take over its name durably does writing end until the store is opened again.
    pub fn compact(&self) -> Result<Compaction> {
        let (reply, pending) = Pending::new();
        self.inner().send(Request::Alone(Box::new(move |writer| {
            // Nobody may be waiting any more.
            let _ = reply.send(writer.and_then(|writer| guarded(|| writer.compact())));
        })))?;
        pending.wait()
    }
}

impl Writer {
    fn compact(&mut self) -> Result<Compaction> {
        self.fold_all()?;
        // A copy would lose what the pages of a damaged row can still tell.
        self.view.check_log()?;
        let truth = self.db.home()?.file.clone();
        let index = self.folder.aside(|db| Ok(db.home()?.file.clone()))?;
        let bytes = || -> Result<(u64, u64)> {
            Ok((fs::metadata(&truth)?.len(), fs::metadata(&index)?.len()))
        };
        let before = bytes()?;
        self.exchange_truth()?;
        self.compact_index()?;
        let after = bytes()?;
        Ok(Compaction {
            truth_bytes_before: before.0,
            truth_bytes_after: after.0,
            index_bytes_before: before.1,
            index_bytes_after: after.1,
        })
    }

    fn compact_index(&mut self) -> Result<()> {
        let shreds = self.shreds(&Arc::clone(&self.view))?;
        self.folder.aside(move |db| {
            if shreds {
                db.shred_next();
            }
            db.make_copy()?;
            db.rename_copy()
        })?;
        self.or_stop(|writer| {
            writer.folder.begin(Box::new(Source::take_copy))?;
            let mut indexed = writer.view.indexed().clone();
            indexed.folded(writer.folder.wait()?);
            writer.replace_view(writer.view.with_index(indexed));
            // The views of the old file are gone, unless somebody reads: it can be closed.
            writer.folder.release()
        })
    }
}

impl Source {
    /// Makes a copy of everything committed, beside the file.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`; nothing is left of the copy then.
    pub(crate) fn make_copy(&mut self) -> Result<()> {
        let home = self.home()?;
        home.check()?;
        let txn = self.database().begin_read()?;
        let copy = copy_to(&home.copy(), &txn, &home.opening)?;
        self.keep_copy(copy);
        Ok(())
    }
}
