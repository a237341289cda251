//! The directory of a segment, as the search library (tantivy) reads it. The files are in memory, named by
//! their extensions, and read-only.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tantivy::directory::error::{DeleteError, OpenReadError, OpenWriteError};
use tantivy::directory::{Directory, FileHandle, OwnedBytes, WatchCallback, WatchHandle, WritePtr};

/// The files of one segment, by extension.
#[derive(Debug, Clone)]
pub(super) struct SegmentDirectory {
    files: Arc<[(&'static str, OwnedBytes)]>,
}

impl SegmentDirectory {
    /// Creates a directory of these files.
    pub(super) fn new(files: Vec<(&'static str, OwnedBytes)>) -> Self {
        Self { files: files.into() }
    }

    fn find(&self, path: &Path) -> Option<&OwnedBytes> {
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
