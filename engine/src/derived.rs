//! The directories of a store for what is derived: files that are written whole or not at all.
//!
//! What cannot be read is not there. Knows nothing of what the files hold.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{ErrorKind as Io, Write};
use std::path::{Path, PathBuf};

use crate::directory;
use crate::error::Result;

/// The file that names the others.
const MANIFEST: &str = "manifest";
/// How the names of files end that are being written.
const UNFINISHED: &str = ".new";

/// The directory.
#[derive(Debug, Clone)]
pub(crate) struct Files(PathBuf);

impl Files {
    /// A directory of the store in another.
    pub(crate) fn of(store: &Path, name: &str) -> Self {
        Self(store.join(name))
    }

    /// The manifest; nothing where there is none.
    ///
    /// # Errors
    /// `ERR_IO` where it is there and cannot be read.
    pub(crate) fn manifest(&self) -> Result<Option<Vec<u8>>> {
        self.read(MANIFEST)
    }

    /// A file the manifest names; nothing where it is missing.
    ///
    /// # Errors
    /// `ERR_IO` where it is there and cannot be read.
    pub(crate) fn read(&self, name: &str) -> Result<Option<Vec<u8>>> {
        match fs::read(self.0.join(name)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == Io::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes new files and then the manifest, each whole or not at all, and removes those that the
    /// manifest no longer names. A crash leaves the manifest there was with all that it names, or
    /// the new one.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn save(
        &self,
        new: &[(&str, &[u8])],
        manifest: &[u8],
        named: &BTreeSet<String>,
    ) -> Result<()> {
        directory::make(&self.0)?;
        for (name, bytes) in new {
            self.write(name, bytes)?;
        }
        directory::sync(&self.0)?;
        self.write(MANIFEST, manifest)?;
        directory::sync(&self.0)?;
        self.clear(named)
    }

    /// Writes one file that no manifest names.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn keep(&self, name: &str, bytes: &[u8]) -> Result<()> {
        directory::make(&self.0)?;
        self.write(name, bytes)?;
        directory::sync(&self.0)
    }

    /// Removes one file that no manifest names, if it is there.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn remove(&self, name: &str) -> Result<()> {
        directory::remove(&self.0.join(name))
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let unfinished = self.0.join(format!("{name}{UNFINISHED}"));
        let mut file = File::create(&unfinished)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&unfinished, self.0.join(name))?;
        Ok(())
    }

    /// Removes every file but the manifest and those it names.
    fn clear(&self, named: &BTreeSet<String>) -> Result<()> {
        for entry in fs::read_dir(&self.0)? {
            let entry = entry?;
            let name = entry.file_name();
            let stays = name.to_str().is_some_and(|name| name == MANIFEST || named.contains(name));
            if !stays && entry.file_type()?.is_file() {
                directory::remove(&entry.path())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn what_was_saved_is_read_back_and_what_is_no_longer_named_is_gone() {
        let dir = TempDir::new().unwrap();
        let files = Files::of(dir.path(), "text");
        assert_eq!(files.manifest().unwrap(), None);
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let first = [("1", b"one".as_slice()), ("2", b"two".as_slice())];
        files.save(&first, b"1 2", &names(&["1", "2"])).unwrap();
        fs::write(dir.path().join("text/7.new"), b"left by a crash").unwrap();
        fs::create_dir(dir.path().join("text/somebody's")).unwrap();
        files.save(&[("3", b"three")], b"2 3", &names(&["2", "3"])).unwrap();
        assert_eq!(files.manifest().unwrap().unwrap(), b"2 3");
        assert_eq!(files.read("1").unwrap(), None);
        assert_eq!(files.read("2").unwrap().unwrap(), b"two");
        assert_eq!(files.read("3").unwrap().unwrap(), b"three");
        assert_eq!(files.read("7.new").unwrap(), None);
        assert!(dir.path().join("text/somebody's").is_dir());
    }
}
