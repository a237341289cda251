//! The directory of a segment, as the search library (tantivy) reads it. Its files are sections of the segment, named
//! by their extensions, and read-only.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tantivy::HasLen;
use tantivy::directory::error::{DeleteError, OpenReadError, OpenWriteError};
use tantivy::directory::{Directory, FileHandle, OwnedBytes, WatchCallback, WatchHandle, WritePtr};

use super::pages::SegmentBytes;
use crate::error::{Error, Result};

/// A section of a segment.
#[derive(Debug, Clone)]
pub(super) struct Section {
    bytes: SegmentBytes,
    start: usize,
    size: usize,
    /// True if who reads from it keeps what was read.
    kept: bool,
}

impl Section {
    /// The section at a place of a segment.
    pub(super) fn new(bytes: &SegmentBytes, start: usize, size: usize, kept: bool) -> Self {
        Self { bytes: bytes.clone(), start, size, kept }
    }

    /// Its bytes.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// The bytes of a range.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if there are fewer, they cannot be read, or were changed.
    pub(super) fn read(&self, range: Range<usize>) -> Result<OwnedBytes> {
        self.read_as(range, self.kept)
    }

    /// The same; what is long is read around the cache.
    ///
    /// # Errors
    /// As [`Section::read`].
    pub(super) fn read_around(&self, range: Range<usize>) -> Result<OwnedBytes> {
        self.read_as(range, true)
    }

    fn read_as(&self, range: Range<usize>, kept: bool) -> Result<OwnedBytes> {
        if range.end > self.size {
            return Err(Error::integrity("a segment of the full text contradicts itself"));
        }
        let at = |place: usize| self.start.saturating_add(place);
        self.bytes.read(at(range.start)..at(range.end), kept)
    }

    /// A row of a column of 8-byte numbers.
    ///
    /// # Errors
    /// As [`Section::read`].
    pub(super) fn number(&self, row: u32) -> Result<u64> {
        self.numbers(row).map(|[number]| number)
    }

    /// Rows of a column of 8-byte numbers.
    ///
    /// # Errors
    /// As [`Section::read`].
    pub(super) fn numbers<const N: usize>(&self, row: u32) -> Result<[u64; N]> {
        let from = usize::try_from(row).unwrap_or(usize::MAX).saturating_mul(8);
        let range = from..from.saturating_add(N.saturating_mul(8));
        let decoded = |bytes: &[u8]| {
            let mut numbers = [0; N];
            let rows = bytes.as_chunks::<8>().0;
            numbers.iter_mut().zip(rows).for_each(|(to, row)| *to = u64::from_be_bytes(*row));
            numbers
        };
        if range.end <= self.size {
            let at = |place: usize| self.start.saturating_add(place);
            if let Some(numbers) = self.bytes.peek(at(range.start)..at(range.end), decoded) {
                return Ok(numbers);
            }
        }
        Ok(decoded(self.read(range)?.as_slice()))
    }
}

impl FileHandle for Section {
    fn read_bytes(&self, range: Range<usize>) -> io::Result<OwnedBytes> {
        self.read(range).map_err(io::Error::other)
    }
}

impl HasLen for Section {
    fn len(&self) -> usize {
        self.size
    }
}

/// The files of one segment, by extension.
#[derive(Debug, Clone)]
pub(super) struct SegmentDirectory {
    files: Arc<[(&'static str, Section)]>,
}

impl SegmentDirectory {
    /// Creates a directory of these files.
    pub(super) fn new(files: Vec<(&'static str, Section)>) -> Self {
        Self { files: files.into() }
    }

    fn find(&self, path: &Path) -> Option<&Section> {
        let extension = path.extension()?.to_str()?;
        self.files.iter().find(|file| file.0 == extension).map(|file| &file.1)
    }
}

impl Directory for SegmentDirectory {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        let file = self.find(path).ok_or_else(|| missing(path))?;
        Ok(Arc::new(file.clone()))
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        Err(DeleteError::FileDoesNotExist(path.to_path_buf()))
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        Ok(self.find(path).is_some())
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        Err(OpenWriteError::FileAlreadyExists(path.to_path_buf()))
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        Err(missing(path))
    }

    /// The library's metadata about the directory is not needed: all of it is in the segment.
    fn atomic_write(&self, _: &Path, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn watch(&self, _: WatchCallback) -> tantivy::Result<WatchHandle> {
        Ok(WatchHandle::empty())
    }
}

fn missing(path: &Path) -> OpenReadError {
    OpenReadError::FileDoesNotExist(PathBuf::from(path))
}
