//! Rebuild of everything derived from the log, while the store stays open.
//!
//! It runs on the writer thread: writes wait, reads use the views there are. The old index is not read, since
//! it may be damaged: a new file replaces it.

use crate::base::error::{Result, catch_storage_panic};
use crate::base::pending::Pending;
use crate::disk::blob::with_fields;
use crate::disk::database::DatabaseHandle;
use crate::handle::store::Store;
use crate::state::fold_worker::FoldWorker;
use crate::state::index_snapshot::IndexSnapshot;
use crate::state::truth::{LogRow, Truth};
use crate::state::view::View;
use crate::write::writer::{Request, Writer};

impl Store {
    /// Rebuilds the derived index from the log in a new file, whatever the state of the old one, and the full
    /// text. Returns the number of grains.
    ///
    /// A crash leaves the old index, or a new one that the next opening completes.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    /// let grain = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).build()?;
    /// session.put(grain)?;
    /// assert_eq!(store.reindex()?, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_IO` if no new file can replace the old one, `ERR_BUSY` if one replaced before is still to be
    /// overwritten: the store goes on as it was. `ERR_INTEGRITY` if the log is damaged: nothing changes.
    /// `ERR_IO` once the new file has its name: writes are refused until the store is reopened; reads go on
    /// with the old index.
    pub fn reindex(&self) -> Result<u64> {
        let (reply, pending) = Pending::new();
        self.inner().send(Request::Exclusive(Box::new(move |writer| {
            // The caller may have stopped waiting.
            let _ = reply.send(writer.and_then(Writer::reindex));
        })))?;
        pending.wait()
    }
}

impl Writer {
    fn reindex(&mut self) -> Result<u64> {
        // A log that cannot be read to its end must be noticed before the old index is given up.
        catch_storage_panic(|| self.view.check_log())?;
        match catch_storage_panic(|| self.stub_erased()) {
            // A damaged index is what this repairs.
            Err(error) if !error.is_index_damage() => return Err(error),
            _ => {}
        }
        self.rebuild_index(self.view.with_index(self.view.indexed().clone()))?;
        if self.view.is_unscrubbed()? {
            self.retrieval.text_index.forget()?;
        }
        catch_storage_panic(|| self.retrieval.text_index.rebuild(&self.view))?;
        catch_storage_panic(|| self.view.log_len())
    }

    /// Builds a new index from the log of this view, in a new file, and publishes the view with it. The old
    /// index is not read, since it may be damaged. A running fold is waited for.
    ///
    /// # Errors
    /// `ERR_IO` if no new file can take the name of the old one: index and view are unchanged, and writes are
    /// refused only if a running fold was lost as well. `ERR_INTEGRITY` if the log is damaged, and `ERR_IO`
    /// after the rename, end writing.
    pub(crate) fn rebuild_index(&mut self, view: View) -> Result<()> {
        let settled = self.settle_fold();
        let emptied = self.must_shred(&view).and_then(|shreds| {
            self.fold_worker.replace(move |db| {
                if shreds {
                    db.shred_next_replaced();
                }
                db.make_empty()
            })
        });
        emptied.inspect_err(|_| {
            if let Err(lost) = settled {
                self.failed = Some(lost);
            }
        })?;
        self.stop_on_error(|writer| {
            let indexed = rebuild_in_place(view.truth(), &mut writer.fold_worker)?;
            let rebuilt = view.with_index(indexed);
            drop(view);
            writer.replace_view(rebuilt);
            // Unless a reader holds one, no view of the old file is left, so it can be closed.
            writer.fold_worker.release()
        })
    }

    /// Takes over the result of a running fold.
    fn settle_fold(&mut self) -> Result<()> {
        if self.fold_worker.is_busy() {
            let mut indexed = self.view.indexed().clone();
            indexed.finish_fold(&mut self.fold_worker)?;
            self.replace_view(self.view.with_index(indexed));
        }
        Ok(())
    }
}

/// Empties the index of an idle fold worker and fills it with the whole log.
///
/// # Errors
/// `ERR_INTEGRITY`, `ERR_IO`.
pub(crate) fn rebuild(truth: &Truth, folder: &mut FoldWorker) -> Result<IndexSnapshot> {
    folder.replace(DatabaseHandle::make_empty)?;
    rebuild_in_place(truth, folder)
}

/// Rebuilds like [`rebuild`] from the grains that can be read, as far as the log can be iterated.
///
/// # Errors
/// `ERR_INTEGRITY` if there is no log; `ERR_IO`.
pub(crate) fn rebuild_readable(truth: &Truth, folder: &mut FoldWorker) -> Result<IndexSnapshot> {
    folder.replace(DatabaseHandle::make_empty)?;
    folder.begin(Box::new(DatabaseHandle::take_empty))?;
    let mut indexed = IndexSnapshot::new(folder.wait()?)?;
    indexed.history = catch_storage_panic(|| truth.index_history()).unwrap_or(indexed.history);
    let mut rows = truth.log_from(0)?;
    loop {
        let (sequence, logged) = match catch_storage_panic(|| rows.next().transpose()) {
            Ok(Some((sequence, Ok(logged)))) => (sequence, logged),
            Ok(Some((_, Err(_)))) => continue,
            Ok(None) => break,
            Err(error) if error.is_integrity() => break,
            Err(error) => return Err(error),
        };
        // Bytes with a correct checksum may still be no grain.
        if let LogRow::Blob(blob) = &logged
            && with_fields(blob, |_| Ok(())).is_err()
        {
            continue;
        }
        indexed.push_row(folder, sequence, &logged, truth.vault())?;
    }
    indexed.fold_all(folder)?;
    Ok(indexed)
}

/// Switches to the empty index that was created, and fills it with the whole log.
fn rebuild_in_place(truth: &Truth, folder: &mut FoldWorker) -> Result<IndexSnapshot> {
    folder.begin(Box::new(DatabaseHandle::take_empty))?;
    let mut indexed = IndexSnapshot::new(folder.wait()?)?;
    indexed.catch_up(truth, folder)?;
    indexed.fold_all(folder)?;
    Ok(indexed)
}
