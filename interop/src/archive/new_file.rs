//! A file that takes its name once it is whole. Until then it lies beside it, under a name that is swept: see
//! [`NewFile::create`].

use std::fs::{self, File, TryLockError};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use grainstore::ErrorKind;
use tempfile::NamedTempFile;

use crate::error::{Error, Result};

/// What the name of a file that is not whole begins and ends with.
const UNFINISHED: (&str, &str) = (".grain-", ".part");
/// How often a file is begun anew that somebody swept before it was locked.
const ATTEMPTS: usize = 16;

/// A file that takes its name once it is whole; one that has the name is replaced then. Dropped before, it leaves nothing.
#[derive(Debug)]
pub struct NewFile {
    file: BufWriter<NamedTempFile>,
    path: PathBuf,
}

/// A file that is whole and on the disk, and has not taken its name yet. Dropped, it leaves nothing.
#[derive(Debug)]
pub(crate) struct WholeFile {
    file: NamedTempFile,
    path: PathBuf,
}

impl NewFile {
    /// Begins a file beside its name. What programs left there that were killed while they wrote one
    /// (`.grain-*.part`, which nobody holds a lock of) is removed.
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
    /// `ERR_CONFLICT` for a file within a store, and for the name of a directory, a pipe or a device; `ERR_NOT_FOUND` if
    /// there is no such directory; `ERR_IO`.
    pub fn create(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        Self::check(&path)?;
        let above = folder_of(&path);
        sweep(above);
        let file = begun(above).map_err(|error| unwritable(error, &path))?;
        Ok(Self { file: BufWriter::new(file), path })
    }

    /// Asks whether a file could be begun, so that nothing is worked out in vain.
    ///
    /// ```
    /// use grainstore_interop::archive::NewFile;
    ///
    /// # let dir = tempfile::tempdir()?;
    /// NewFile::check(&dir.path().join("report.json"))?;
    /// assert!(NewFile::check(dir.path()).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`NewFile::create`].
    pub fn check(path: &Path) -> Result<()> {
        grainstore::check_outside(path)?;
        let above = folder_of(path);
        if !above.is_dir() {
            let message = format!("there is no directory {}", above.display());
            let error = Error::new(ErrorKind::NotFound, message);
            return Err(error.with_hint("make the directory first").at_path(path));
        }
        check_replaceable(path)
    }

    /// Syncs the file, and gives it its name.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub fn finish(self) -> Result<()> {
        self.whole()?.place()
    }

    /// Syncs the file.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn whole(self) -> Result<WholeFile> {
        let Self { file, path } = self;
        let whole = || -> io::Result<NamedTempFile> {
            let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.as_file().sync_all()?;
            Ok(file)
        };
        match whole() {
            Ok(file) => Ok(WholeFile { file, path }),
            Err(error) => Err(unwritable(error, &path)),
        }
    }
}

impl WholeFile {
    /// Where its bytes are, until it has its name.
    pub(crate) fn bytes_at(&self) -> &Path {
        self.file.path()
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn place(self) -> Result<()> {
        let Self { file, path } = self;
        let placed = file.persist(&path).map_err(|error| unwritable(error.error, &path))?;
        // It was locked against those who sweep.
        drop(placed);
        sync_folder_of(&path).map_err(|error| unwritable(error, &path))
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// The directory that a file is in; of a bare name the current one.
fn folder_of(path: &Path) -> &Path {
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    above.unwrap_or(Path::new("."))
}

/// Has the name of a file on the disk, where directories can be synced.
///
/// # Errors
/// That of the system.
pub(crate) fn sync_folder_of(path: &Path) -> io::Result<()> {
    match cfg!(unix) {
        true => File::open(folder_of(path))?.sync_all(),
        false => Ok(()),
    }
}

/// Refuses a name under which there is something that is no file: a file is not to take its place, nor to be written to it.
///
/// # Errors
/// `ERR_CONFLICT`.
pub(crate) fn check_replaceable(path: &Path) -> Result<()> {
    // What cannot be looked at is met again when it is written.
    let Ok(found) = fs::metadata(path) else { return Ok(()) };
    let what = match found.file_type() {
        kind if kind.is_file() => return Ok(()),
        kind if kind.is_dir() => "this is a directory",
        _ => "this is a pipe or a device, and no file",
    };
    let error = Error::new(ErrorKind::Conflict, what);
    Err(error.with_hint("choose the name of a file").at_path(path))
}

/// Begins a file without its name, and locks it against those who sweep.
fn begun(above: &Path) -> io::Result<NamedTempFile> {
    let begin = || {
        let (prefix, suffix) = UNFINISHED;
        let file = tempfile::Builder::new().prefix(prefix).suffix(suffix).tempfile_in(above)?;
        // Where files cannot be locked, none is swept either.
        let _ = file.as_file().try_lock();
        Ok::<_, io::Error>(file)
    };
    let mut file = begin()?;
    for _ in 0..ATTEMPTS {
        if file.path().exists() {
            break;
        }
        file = begin()?;
    }
    Ok(file)
}

/// Removes the unfinished files of a directory that nobody writes any more. What cannot be removed stays.
fn sweep(above: &Path) {
    let (prefix, suffix) = UNFINISHED;
    for found in fs::read_dir(above).into_iter().flatten().flatten() {
        let name = found.file_name();
        let is_unfinished =
            name.to_str().is_some_and(|name| name.starts_with(prefix) && name.ends_with(suffix));
        let is_file = found.file_type().is_ok_and(|kind| kind.is_file());
        if is_unfinished && is_file && is_left(&found.path()) {
            let _ = fs::remove_file(found.path());
        }
    }
}

/// Returns `true` for a file that nobody holds a lock of.
fn is_left(path: &Path) -> bool {
    let Ok(file) = File::options().read(true).write(true).open(path) else { return false };
    match file.try_lock() {
        Ok(()) => true,
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => false,
    }
}

/// The error of a file that cannot be written, which is none of a store.
fn unwritable(error: io::Error, path: &Path) -> Error {
    Error::from(error).with_hint("check the directory, and the room on its disk").at_path(path)
}
