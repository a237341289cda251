//! The files that the search library (tantivy) writes for a segment, in memory: in pieces, so that a large one is not
//! moved while it grows, and given away piece by piece.

use std::collections::HashMap;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tantivy::Directory;
use tantivy::directory::error::{DeleteError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    AntiCallToken, FileHandle, OwnedBytes, TerminatingWrite, WatchCallback, WatchHandle, WritePtr,
};

/// Bytes of a piece.
const PIECE_BYTES: usize = 64 << 10;

/// A directory of files that are written once, each read at most once.
#[derive(Debug, Clone, Default)]
pub(super) struct OutputFiles {
    written: Arc<Mutex<HashMap<PathBuf, Vec<Vec<u8>>>>>,
}

impl OutputFiles {
    /// Takes a file out of the directory; `None` if it was not written.
    pub(super) fn take(&self, path: &Path) -> Option<Vec<Vec<u8>>> {
        self.lock().remove(path)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PathBuf, Vec<Vec<u8>>>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A file that is being written.
struct OutputFile {
    directory: OutputFiles,
    path: PathBuf,
    pieces: Vec<Vec<u8>>,
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let is_full = |piece: &Vec<u8>| piece.len() >= PIECE_BYTES;
        if self.pieces.last().is_none_or(is_full) {
            self.pieces.push(Vec::new());
        }
        let Some(piece) = self.pieces.last_mut() else { return Ok(0) };
        let room = PIECE_BYTES.saturating_sub(piece.len()).min(bytes.len());
        piece.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        Ok(room)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TerminatingWrite for OutputFile {
    fn terminate_ref(&mut self, _: AntiCallToken) -> io::Result<()> {
        let pieces = std::mem::take(&mut self.pieces);
        self.directory.lock().insert(self.path.clone(), pieces);
        Ok(())
    }
}

impl Directory for OutputFiles {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        let written = self.lock();
        let pieces = written.get(path);
        let pieces = pieces.ok_or_else(|| OpenReadError::FileDoesNotExist(path.to_path_buf()))?;
        Ok(Arc::new(OwnedBytes::new(pieces.concat())))
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        let taken = self.take(path);
        taken.map(drop).ok_or_else(|| DeleteError::FileDoesNotExist(path.to_path_buf()))
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        Ok(self.lock().contains_key(path))
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        let directory = self.clone();
        let file = OutputFile { directory, path: path.to_path_buf(), pieces: Vec::new() };
        Ok(BufWriter::new(Box::new(file)))
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        Err(OpenReadError::FileDoesNotExist(path.to_path_buf()))
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
