//! The files of segments of the full text, read by position and written from start to end.
//!
//! Does not know what the files hold.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use grainstore_index::text::{SegmentFile, SegmentFiles, SegmentOutput};

use crate::base::error::Result;
use crate::disk::derived_files::{DerivedFiles, UNFINISHED_SUFFIX};
use crate::disk::directory;
use crate::disk::row_sums::page_token;

/// Segments in a directory of derived files. A file keeps its keyed tags when the keys of the index change later.
#[derive(Debug)]
pub(crate) struct TextFiles {
    files: DerivedFiles,
    epoch: u64,
}

impl TextFiles {
    /// The segments in this directory, under the present key of the index.
    pub(crate) fn new(files: &DerivedFiles) -> Self {
        Self { files: files.clone(), epoch: files.vault().index_epoch() }
    }
}

impl TextFiles {
    /// Writes a segment that lies in memory.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        if let Some(mut out) = self.create(name)? {
            out.write_all(bytes)?;
            out.finish()?;
        }
        Ok(())
    }
}

impl SegmentFiles for TextFiles {
    fn open(&self, name: &str) -> io::Result<Arc<dyn SegmentFile>> {
        let file = self.files.open(name)?;
        let size = file.metadata()?.len();
        Ok(Arc::new(OpenSegmentFile { file, size }))
    }

    fn create(&self, name: &str) -> io::Result<Option<Box<dyn SegmentOutput>>> {
        self.files.prepare().map_err(io::Error::other)?;
        let path = self.files.path(name);
        let unfinished = self.files.path(&format!("{name}{UNFINISHED_SUFFIX}"));
        directory::remove(&unfinished).map_err(io::Error::other)?;
        let file = File::create_new(&unfinished)?;
        Ok(Some(Box::new(NewSegmentFile { file: Some(file), unfinished, path })))
    }

    fn tag(&self, name: &str, page: u64, bytes: &[u8]) -> Option<[u8; 16]> {
        let token = page_token(self.files.vault(), (self.epoch, name, page), bytes)?;
        token.first_chunk().copied()
    }
}

/// A file that is read by position.
#[derive(Debug)]
struct OpenSegmentFile {
    file: File,
    size: u64,
}

impl SegmentFile for OpenSegmentFile {
    fn size(&self) -> u64 {
        self.size
    }

    #[cfg(unix)]
    fn read_at(&self, from: u64, to: &mut [u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(&self.file, to, from)
    }

    #[cfg(windows)]
    fn read_at(&self, mut from: u64, mut to: &mut [u8]) -> io::Result<()> {
        while !to.is_empty() {
            match std::os::windows::fs::FileExt::seek_read(&self.file, to, from)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => {
                    from = from.saturating_add(read as u64);
                    to = to.get_mut(read..).unwrap_or_default();
                }
            }
        }
        Ok(())
    }
}

/// A file that is written; removed unless it is finished.
struct NewSegmentFile {
    /// `None` once it is finished.
    file: Option<File>,
    unfinished: PathBuf,
    path: PathBuf,
}

impl Write for NewSegmentFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.as_mut().map_or(Ok(0), |file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl SegmentOutput for NewSegmentFile {
    fn finish(mut self: Box<Self>) -> io::Result<()> {
        if let Some(file) = &self.file {
            file.sync_all()?;
        }
        fs::rename(&self.unfinished, &self.path)?;
        self.file = None;
        Ok(())
    }
}

impl Drop for NewSegmentFile {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            // What stays is removed with the next save.
            let _ = directory::remove(&self.unfinished);
        }
    }
}
