//! Backup: copies the truth of one view into a new store, without blocking writers.

use std::fs;
use std::io::ErrorKind as Io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::copy::copy_to;
use crate::base::error::{Error, ErrorKind, Result, catch_storage_panic};
use crate::disk::database::DatabaseOptions;
use crate::disk::directory;
use crate::disk::keyring;
use crate::handle::store::Store;
use crate::state::view::View;

/// The contents of a backup by [`Store::backup`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BackupReport {
    /// Grains of the log.
    pub grains: u64,
    /// Entries of the audit log, genesis included.
    pub audit_entries: u64,
    /// Size on disk, in bytes.
    pub bytes: u64,
}

/// Page cache for a file that is written once and read once.
const BACKUP_CACHE_BYTES: usize = 16 << 20;

impl Store {
    /// Writes everything acknowledged so far into a new directory, which is a complete store: its index is
    /// rebuilt when it is first opened. It is durable when this returns. Reads and writes continue meanwhile.
    /// Erased data is scrubbed first, so no backup contains any.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path().join("memory"), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    /// let grain = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).build()?;
    /// let tea = session.put(grain)?.address();
    /// let copy = dir.path().join("backup");
    /// assert_eq!(store.backup(&copy)?.grains, 1);
    /// let restored = Store::open(&copy, &OpenOptions::new())?;
    /// assert!(restored.session(SessionOptions::default()).exists(&tea)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_CONFLICT` if the directory is not empty, or is within a store; `ERR_INTEGRITY` if a grain of the
    /// log cannot be read, since such a backup could not be opened; `ERR_IO`; those of [`Store::scrub`]. On
    /// an error the files written are removed.
    pub fn backup(&self, to: impl AsRef<Path>) -> Result<BackupReport> {
        let to = to.as_ref();
        let unscrubbed = catch_storage_panic(|| self.inner().view()?.is_unscrubbed())?;
        if unscrubbed {
            self.scrub()?;
        }
        let (view, keys) = self.view_and_keyring()?;
        catch_storage_panic(|| view.check_log())?;
        let made = create_target(to)?;
        let _lock = lock_target(to, &made)?;
        let written = catch_storage_panic(|| {
            directory::create_truth(to, |file| {
                let opening = DatabaseOptions::new(BACKUP_CACHE_BYTES);
                copy_to(file, view.transaction(), &opening)?;
                // Written before the truth is renamed: without its keys it could never be read, and without
                // its read log it is no whole backup.
                keys.as_deref().map_or(Ok(()), |keys| keyring::write_copy(to, keys))?;
                match fs::remove_dir_all(directory::reads(to)) {
                    Err(error) if error.kind() != Io::NotFound => return Err(error.into()),
                    _ => {}
                }
                self.inner().reads().map_or(Ok(()), |reads| reads.copy(to))
            })?;
            directory::sync_directory(to)?;
            Ok(BackupReport {
                grains: view.log_len()?,
                audit_entries: view.audit_len()?,
                bytes: fs::metadata(directory::truth_path(to))?.len(),
            })
        });
        let written = written.inspect_err(|_| {
            // The first failure is reported; errors of the cleanup are not.
            let _ = directory::remove(&directory::truth_path(to));
            let _ = directory::remove(&directory::keyring_path(to));
            let _ = directory::remove(&directory::lock_path(to));
            let _ = fs::remove_dir_all(directory::reads(to));
            remove_created(&made);
        });
        written.map_err(|error| error.at_path(to))
    }

    /// Returns a view, and the keyring of that moment, taken on the writer thread so that no key changes in
    /// between.
    fn view_and_keyring(&self) -> Result<(Arc<View>, Option<Vec<u8>>)> {
        let view = self.inner().view()?;
        if view.vault().keyring().is_none() {
            return Ok((view, None));
        }
        self.run_exclusive_on_index(|writer| {
            let view = Arc::clone(&writer.view);
            let keys = view.vault().keyring().map(|keyring| keyring.bytes()).transpose()?;
            Ok((view, keys))
        })
    }
}

/// Creates the directory, or accepts an empty one. Returns the directories it created, the innermost first.
fn create_target(to: &Path) -> Result<Vec<PathBuf>> {
    if to.as_os_str().is_empty() {
        return Err(Error::new(ErrorKind::NotFound, "an empty path names no directory"));
    }
    check_outside(to)?;
    let missing: Vec<_> =
        to.ancestors().take_while(|above| !above.exists()).map(Path::to_owned).collect();
    if missing.is_empty() {
        check_free(to)?;
    }
    directory::create_all(to).inspect_err(|_| remove_created(&missing))?;
    Ok(missing)
}

/// Refuses a target within a store, whose own files it would be in the way of.
fn check_outside(to: &Path) -> Result<()> {
    match directory::store_around(to)? {
        // The directory itself may be one that is not empty, which is told later.
        Some(store) if store != to => {
            let message = format!("{} lies in the store at {}", to.display(), store.display());
            let hint = "name a directory outside of every store";
            Err(Error::new(ErrorKind::Conflict, message).with_hint(hint))
        }
        _ => Ok(()),
    }
}

/// Locks the directory, and checks again that no store was created in it meanwhile.
fn lock_target(to: &Path, made: &[PathBuf]) -> Result<directory::StoreLock> {
    let held = directory::lock(to, Duration::ZERO).and_then(|lock| check_free(to).map(|()| lock));
    held.inspect_err(|_| remove_created(made))
}

fn check_free(to: &Path) -> Result<()> {
    if directory::is_free_for_backup(to)? {
        return Ok(());
    }
    let message = format!("{} is not empty: a backup is a directory of its own", to.display());
    let hint = "name a directory that is not there yet, or an empty one";
    Err(Error::new(ErrorKind::Conflict, message).with_hint(hint))
}

/// Removes the directories that were created, if they are empty.
fn remove_created(made: &[PathBuf]) {
    for directory in made {
        let _ = fs::remove_dir(directory);
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::OpenOptions;

    #[test]
    fn a_store_made_after_the_directory_was_claimed_is_left_alone() {
        let dir = TempDir::new().unwrap();
        let to = dir.path().join("backup");
        let made = create_target(&to).unwrap();
        let store = Store::open(&to, &OpenOptions::new().create(true)).unwrap();
        assert_eq!(lock_target(&to, &made).map_err(|error| error.code()).err(), Some("ERR_BUSY"));
        store.close().unwrap();
        let whole = fs::read(directory::truth_path(&to)).unwrap();
        assert_eq!(
            lock_target(&to, &made).map_err(|error| error.code()).err(),
            Some("ERR_CONFLICT")
        );
        assert_eq!(fs::read(directory::truth_path(&to)).unwrap(), whole);
        assert!(Store::open(&to, &OpenOptions::new()).is_ok());
    }
}
