//! A database for the length of one check: beside the store's files, or in memory where the store
//! has none. It is removed when it is dropped; one that a crash has left goes at the next opening.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use redb::Database;
use redb::backends::InMemoryBackend;

use crate::base::error::Result;
use crate::disk::directory;
use crate::disk::source::Opening;

/// The name of a file nobody else uses, and its end.
#[derive(Debug)]
pub(crate) struct Scratch {
    file: Option<PathBuf>,
}

/// Tells the scratch files of one process apart; the store's lock keeps other processes out.
static NUMBER: AtomicU64 = AtomicU64::new(0);

impl Scratch {
    /// A name in this directory; no file yet. Without a directory it is memory.
    pub(crate) fn within(directory: Option<&Path>) -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Self { file: directory.map(|path| directory::verify_file(path, number)) }
    }

    /// The name of the file, where there is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// An empty database there.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn database(&self, opening: &Opening) -> Result<Database> {
        Ok(match &self.file {
            Some(file) => opening.builder().create(file)?,
            None => opening.builder().create_with_backend(InMemoryBackend::new())?,
        })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            // What stays is removed when the store is next opened.
            let _ = directory::remove(file);
        }
    }
}
