//! Writing: deflated, with one date for all entries, and in place once it is whole.

use std::collections::HashSet;
use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::DeflateEncoder;
use rawzip::time::UtcDateTime;
use rawzip::{CompressionMethod, ZipArchiveWriter};
use tempfile::NamedTempFile;

use super::name;
use crate::error::{Error, Result};

/// 1980-01-01, the first day that ZIP knows, in seconds.
pub(super) const FIRST_DAY: i64 = 315_532_800;

/// A file that takes its name once it is whole; one that has the name is replaced then. Dropped before, it leaves nothing.
#[derive(Debug)]
pub struct NewFile {
    file: BufWriter<NamedTempFile>,
    path: PathBuf,
}

impl NewFile {
    /// Begins a file beside its name.
    ///
    /// ```
    /// use std::io::Write;
    /// use grainstore_interop::archive::NewFile;
    ///
    /// # let dir = tempfile::tempdir()?;
    /// let path = dir.path().join("report.json");
    /// let mut file = NewFile::create(&path)?;
    /// file.write_all(b"{}")?;
    /// assert!(!path.exists());
    /// file.finish()?;
    /// assert!(path.exists());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_CONFLICT` for a file within a store, or a name that something has which is no file, such as a directory or a
    /// pipe; `ERR_NOT_FOUND` if there is no such directory; `ERR_IO`.
    pub fn create(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        grainstore::check_outside(&path)?;
        if path.metadata().is_ok_and(|there| !there.is_file()) {
            let error =
                Error::new(grainstore::ErrorKind::Conflict, "what has this name is no file");
            return Err(error
                .with_hint("name a file, or one that is not there yet")
                .at_path(&path));
        }
        let above = directory_of(&path);
        if !above.is_dir() {
            let message = format!("there is no directory {}", above.display());
            let error = Error::new(grainstore::ErrorKind::NotFound, message);
            return Err(error.with_hint("make the directory first").at_path(&path));
        }
        let file = NamedTempFile::new_in(above).map_err(|error| unwritable(error, &path))?;
        Ok(Self { file: BufWriter::new(file), path })
    }

    /// Syncs the file, and gives it its name.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub fn finish(self) -> Result<()> {
        let Self { file, path } = self;
        let place = || -> io::Result<()> {
            let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.as_file().sync_all()?;
            file.persist(&path)?;
            match cfg!(unix) {
                true => File::open(directory_of(&path))?.sync_all(),
                false => Ok(()),
            }
        };
        place().map_err(|error| unwritable(error, &path))
    }
}

/// The directory that a file is in.
fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The error of a file that cannot be written, which is none of a store.
fn unwritable(error: io::Error, path: &Path) -> Error {
    Error::from(error).with_hint("check the directory, and the room on its disk").at_path(path)
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Writes a ZIP archive: the same entries give the same bytes.
pub struct ArchiveWriter<W> {
    zip: ZipArchiveWriter<W>,
    names: HashSet<String>,
}

impl<W> fmt::Debug for ArchiveWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArchiveWriter").finish_non_exhaustive()
    }
}

impl ArchiveWriter<NewFile> {
    /// Begins an archive in a [`NewFile`]; see [`Archive`](super::Archive) for one that is written and read.
    ///
    /// # Errors
    /// Those of [`NewFile::create`].
    pub fn create(path: impl Into<PathBuf>) -> Result<Self> {
        Ok(Self::to(NewFile::create(path)?))
    }

    /// Writes the list of entries, and gives the file its name.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub fn finish(self) -> Result<()> {
        self.into_inner()?.finish()
    }
}

impl<W: Write> ArchiveWriter<W> {
    /// Begins an archive that is written to something.
    pub fn to(writer: W) -> Self {
        Self { zip: ZipArchiveWriter::new(writer), names: HashSet::new() }
    }

    /// Adds an entry, and returns its length in bytes.
    ///
    /// # Errors
    /// `ERR_CORRUPT` for a name that is unsafe, or there already; `ERR_IO`.
    pub fn add(&mut self, name: &str, mut bytes: impl Read) -> Result<u64> {
        let name = name::checked(name.as_bytes())?;
        if !self.names.insert(name.clone()) {
            return Err(Error::corrupt("two entries would have this name").in_entry(&name));
        }
        let begun = self
            .zip
            .new_file(name.as_str())
            .compression_method(CompressionMethod::DEFLATE)
            .last_modified(UtcDateTime::from_unix(FIRST_DAY))
            .start();
        let (mut entry, config) = begun.map_err(|error| unwritten(error, &name))?;
        let mut writer = config.wrap(DeflateEncoder::new(&mut entry, Compression::default()));
        let length = io::copy(&mut bytes, &mut writer)
            .map_err(|error| Error::from(error).in_entry(&name))?;
        let (encoder, descriptor) = writer.finish().map_err(|error| unwritten(error, &name))?;
        encoder.finish().map_err(|error| Error::from(error).in_entry(&name))?;
        entry.finish(descriptor).map_err(|error| unwritten(error, &name))?;
        Ok(length)
    }

    /// Writes the list of entries, and returns what the archive was written to.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub fn into_inner(self) -> Result<W> {
        self.zip.finish().map_err(|error| unwritten(error, "the list of entries"))
    }
}

fn unwritten(error: rawzip::Error, name: &str) -> Error {
    match error.into_kind() {
        rawzip::ErrorKind::IO(error) => Error::from(error).in_entry(name),
        kind => Error::corrupt(format!("it cannot be written: {kind}")).in_entry(name),
    }
}
