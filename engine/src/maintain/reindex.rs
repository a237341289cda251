//! Rebuilding everything derived from the log, while the store stays open.
//!
//! It runs on the writer's thread: writes wait, reads keep the view they have or take the last one.

use crate::error::{Result, guarded};
use crate::folder::Folder;
use crate::indexed::Indexed;
use crate::pending::Pending;
use crate::store::Store;
use crate::truth::Truth;
use crate::writer::{Request, Writer};

impl Store {
    /// Empties the derived index and builds it again from the log. Says of how many grains.
    ///
    /// A crash on the way leaves an index that the next opening completes.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` where the log is damaged, `ERR_IO`. Writing ends then until the store is
    /// opened again; reads go on with the index as it was.
    pub fn reindex(&self) -> Result<u64> {
        let (reply, pending) = Pending::new();
        self.inner().send(Request::Alone(Box::new(move |writer| {
            // Nobody may be waiting any more.
            let _ = reply.send(writer.and_then(Writer::reindex));
        })))?;
        pending.wait()
    }
}

impl Writer {
    fn reindex(&mut self) -> Result<u64> {
        let rebuilt = self.or_stop(|writer| {
            let mut indexed = writer.view.indexed().clone();
            indexed.settle(&mut writer.folder)?;
            let indexed = rebuild(writer.view.truth(), &mut writer.folder)?;
            writer.replace_view(writer.view.with_index(indexed));
            Ok(())
        });
        rebuilt.and_then(|()| guarded(|| self.view.log_len()))
    }
}

/// Empties an idle folder's index and fills it with the whole log.
///
/// # Errors
/// `ERR_INTEGRITY`, `ERR_IO`.
pub(crate) fn rebuild(truth: &Truth, folder: &mut Folder) -> Result<Indexed> {
    folder.reset()?;
    let mut indexed = Indexed::of(folder.wait()?)?;
    indexed.catch_up(truth, folder)?;
    indexed.fold_through(folder)?;
    Ok(indexed)
}
