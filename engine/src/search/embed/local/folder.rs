//! Files of a directory the host named. Must not know what they contain.

use std::fs::{self, File};
use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Component, Path, PathBuf};

use serde::de::DeserializeOwned;

use crate::base::error::{Error, ErrorKind, Result};

/// Most bytes of a settings file.
const MOST_SETTINGS: u64 = 1 << 20;

/// The directory of a model, or one within it.
#[derive(Debug, Clone)]
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new(path: &Path) -> Result<Self> {
        let folder = Self(path.to_owned());
        match fs::metadata(path) {
            Ok(about) if about.is_dir() => Ok(folder),
            Ok(_) => Err(folder.refused("", "it is no directory")),
            Err(error) => Err(folder.refused("", error)),
        }
    }

    /// The subdirectory of this name; this one if the name is empty. A path that leads outside is refused.
    pub(super) fn within(&self, named_by: &str, name: &str) -> Result<Self> {
        let is_below =
            Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        if !is_below {
            let why = format!("it names {name:?}, which is not below the directory");
            return Err(self.refused(named_by, why));
        }
        Self::new(&self.0.join(name))
    }

    /// The name of the directory itself.
    pub(super) fn name(&self) -> Option<String> {
        let path = fs::canonicalize(&self.0).ok()?;
        path.file_name().map(|name| name.to_string_lossy().into_owned())
    }

    /// Reads a file of at most this many bytes.
    pub(super) fn read(&self, name: &str, most: u64) -> Result<Vec<u8>> {
        self.bytes(name, most).map_err(|error| self.refused(name, error))
    }

    /// Reads and parses a settings file.
    pub(super) fn settings<T: DeserializeOwned>(&self, name: &str) -> Result<T> {
        let bytes = self.read(name, MOST_SETTINGS)?;
        serde_json::from_slice(&bytes).map_err(|error| self.refused(name, error))
    }

    /// Reads and parses a settings file; the default if it is missing.
    pub(super) fn settings_or_default<T: DeserializeOwned + Default>(
        &self,
        name: &str,
    ) -> Result<T> {
        match self.bytes(name, MOST_SETTINGS) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(T::default()),
            Err(error) => Err(self.refused(name, error)),
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| self.refused(name, error)),
        }
    }

    /// The error for a file that cannot be used.
    pub(super) fn refused(&self, name: &str, why: impl std::fmt::Display) -> Error {
        let path = if name.is_empty() { self.0.clone() } else { self.0.join(name) };
        // Errors of libraries may contain a backtrace after the first line.
        let why = why.to_string();
        let why = why.lines().next().unwrap_or_default();
        Error::new(ErrorKind::Embedder, format!("{}: {why}", path.display()))
            .with_hint("name a whole directory of a BERT model, as sentence-transformers saves it")
    }

    /// Runs library code on a file, and turns a panic into an error about that file, so that the host goes
    /// on.
    pub(super) fn guarded<T>(&self, name: &str, run: impl FnOnce() -> Result<T>) -> Result<T> {
        catch_unwind(AssertUnwindSafe(run))
            .unwrap_or_else(|_| Err(self.refused(name, "the library that reads it failed on it")))
    }

    fn bytes(&self, name: &str, most: u64) -> io::Result<Vec<u8>> {
        let path = self.0.join(name);
        // Checked before the file is opened: opening a named pipe would wait for its other end.
        let about = fs::metadata(&path)?;
        if !about.is_file() {
            return Err(io::Error::other("it is no file"));
        }
        if about.len() > most {
            let why = format!("it has {} bytes, and {most} at most are read", about.len());
            return Err(io::Error::other(why));
        }
        let mut bytes = Vec::new();
        let expected = usize::try_from(about.len()).map_err(io::Error::other)?;
        bytes.try_reserve_exact(expected).map_err(io::Error::other)?;
        File::open(&path)?.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}
