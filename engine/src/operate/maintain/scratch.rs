//! A temporary database for a check: beside the store's files, or in memory for a store without any. Removed
//! on drop; one that a crash has left is removed at the next opening.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use redb::Database;
use redb::backends::InMemoryBackend;

use crate::base::error::Result;
use crate::disk::database::DatabaseOptions;
use crate::disk::directory;

/// An unused file name; the file is removed on drop.
#[derive(Debug)]
pub(crate) struct ScratchFile {
    file: Option<PathBuf>,
}

/// Distinguishes the scratch files of one process; the store's lock keeps other processes out.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

impl ScratchFile {
    /// Reserves a name in this directory, without a file yet; in memory without a directory.
    pub(crate) fn within(directory: Option<&Path>) -> Self {
        let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
        Self { file: directory.map(|path| directory::scratch_path(path, number)) }
    }

    /// The path of the file, if there is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Creates an empty database.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn database(&self, opening: &DatabaseOptions) -> Result<Database> {
        Ok(match &self.file {
            Some(file) => opening.builder().create(file)?,
            None => opening.builder().create_with_backend(InMemoryBackend::new())?,
        })
    }
}

impl Drop for ScratchFile {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            // A leftover is removed when the store is next opened.
            let _ = directory::remove(file);
        }
    }
}
