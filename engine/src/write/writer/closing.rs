//! How the writer ends: what waits is written, the files are closed, and what failed of that is told.
//!
//! Nothing that was acknowledged depends on it: the log has it all. Knows nothing of who waits for the end.

use std::sync::{Arc, OnceLock, PoisonError};

use super::{Backlog, SharedView, Writer};
use crate::base::error::{Error, Result, catch_storage_panic};
use crate::base::pending::writer_stopped;

/// Tells readers and senders that there is a writer. Once it is dropped, however the writer ends, nobody
/// goes on as if there were one.
pub(crate) struct Presence {
    pub(crate) shared: SharedView,
    pub(crate) backlog: Arc<Backlog>,
    /// The error that ended writing, or that of a store that is closed.
    pub(crate) stopped: Arc<OnceLock<Error>>,
}

impl Drop for Presence {
    fn drop(&mut self) {
        let _ = self.stopped.set(writer_stopped());
        *self.shared.write().unwrap_or_else(PoisonError::into_inner) = None;
        self.backlog.close();
    }
}

impl Writer {
    /// Writes what waits in memory, folds, scrubs, and closes both files.
    ///
    /// # Errors
    /// The failure that ended writing, or the first that it met here: `ERR_IO`, `ERR_INTEGRITY`. What
    /// could be done all the same was done.
    pub(super) fn end(mut self) -> Result<()> {
        let ended = self.check_running().and(self.write_all_that_waits());
        let folded = catch_storage_panic(|| self.fold_all());
        self.scrub_at_end();
        for follower in self.followers.drain(..) {
            follower.finish(&self.view);
        }
        ended.and(sound_or_derived(folded)).and(self.close())
    }

    fn write_all_that_waits(&mut self) -> Result<()> {
        let counted = self.flush_counts();
        let read = self.close_read_log();
        let noted = catch_storage_panic(|| self.flush_notes());
        self.flush_refusals(true);
        counted.and(noted).and(self.check_running()).and(read)
    }

    /// Closes both files, once nobody is given anything of them any more.
    fn close(self) -> Result<()> {
        let Self { presence, db, fold_worker: folder, view, _lock: lock, .. } = self;
        drop(presence);
        drop(view);
        let (truth, index) = (db.close(), folder.close());
        drop(lock);
        truth.and(sound_or_derived(index))
    }
}

/// Leaves out damage to the index: it is built again when the store is next opened.
fn sound_or_derived(outcome: Result<()>) -> Result<()> {
    match outcome {
        Err(error) if error.is_index_damage() => Ok(()),
        outcome => outcome,
    }
}
