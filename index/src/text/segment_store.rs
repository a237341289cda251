//! Where segments lie: files that the host keeps, or nowhere but in memory. Does no I/O of its own.

use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::page_cache::PageCache;
use super::page_tag::{TAG_BYTES, checksum};
use crate::error::{ErrorKind, Result};

/// The files of segments, which the host of an [`InvertedIndex`](super::InvertedIndex) keeps.
pub trait SegmentFiles: Send + Sync + fmt::Debug {
    /// Opens a file to read from it. What is removed or replaced under the name later is not seen.
    ///
    /// # Errors
    /// Those of the system.
    fn open(&self, name: &str) -> io::Result<Arc<dyn SegmentFile>>;

    /// Creates a file that takes its name when it is finished; `None` where no file may be written.
    ///
    /// # Errors
    /// Those of the system.
    fn create(&self, name: &str) -> io::Result<Option<Box<dyn SegmentOutput>>>;

    /// The keyed tag of a page of a file; `None` in a store without keys, where a page has a checksum.
    fn tag(&self, name: &str, page: u64, bytes: &[u8]) -> Option<[u8; 16]>;
}

/// A file that is read by position, of an [`InvertedIndex`](super::InvertedIndex).
pub trait SegmentFile: Send + Sync + fmt::Debug {
    /// Its bytes.
    fn size(&self) -> u64;

    /// Fills `to` with the bytes from this position on.
    ///
    /// # Errors
    /// Those of the system, and where there are fewer bytes.
    fn read_at(&self, from: u64, to: &mut [u8]) -> io::Result<()>;
}

/// A file that is written, of an [`InvertedIndex`](super::InvertedIndex).
pub trait SegmentOutput: Write {
    /// Gives the file its name, once all of it is on the disk.
    ///
    /// # Errors
    /// Those of the system.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// Where the segments of an [`InvertedIndex`](super::InvertedIndex) lie, and the cache of what is read from there.
#[derive(Debug, Clone, Default)]
pub struct SegmentStore {
    pub(super) files: Option<Arc<dyn SegmentFiles>>,
    pub(super) cache: Arc<PageCache>,
    /// True if new segments lie in memory although there are files.
    in_memory: bool,
    /// True once something could not be read, or was taken away.
    failed: Arc<AtomicBool>,
}

impl SegmentStore {
    /// Segments in these files, read through this cache.
    #[must_use]
    pub fn new(files: Arc<dyn SegmentFiles>, cache: Arc<PageCache>) -> Self {
        Self { files: Some(files), cache, in_memory: false, failed: Arc::default() }
    }

    /// The same, with new segments in memory: files that were found damaged again and again are not read any more.
    #[must_use]
    pub fn in_memory(self) -> Self {
        Self { in_memory: true, ..self }
    }

    /// Returns `true` if new segments lie in memory.
    #[must_use]
    pub fn is_in_memory(&self) -> bool {
        self.in_memory || self.files.is_none()
    }

    /// Returns `true` once something could not be read: the index has to be made anew.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Declares the segments unreadable: their files are taken away.
    pub fn fail(&self) {
        self.failed.store(true, Ordering::Relaxed);
    }

    /// The tag of a page.
    pub(super) fn tag(&self, name: &str, page: u64, bytes: &[u8]) -> [u8; TAG_BYTES] {
        let keyed = self.files.as_ref().and_then(|files| files.tag(name, page, bytes));
        keyed.unwrap_or_else(|| checksum(page, bytes))
    }

    /// Takes note of damage.
    pub(super) fn note<T>(&self, read: Result<T>) -> Result<T> {
        if read.as_ref().is_err_and(|error| error.kind() == ErrorKind::Integrity) {
            self.fail();
        }
        read
    }
}
