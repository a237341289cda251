//! Directories of derived files, each written whole or not at all.
//!
//! Does not know what the files hold.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind as Io, Read as _, Write};
use std::path::{Path, PathBuf};

use crate::base::error::{Error, Result};
use crate::disk::directory;
use crate::disk::pinned_directory::PinnedDirectory;
use crate::disk::row_sums::file_token;
use crate::disk::vault::Vault;

/// Name of the file that lists the others.
const MANIFEST_NAME: &str = "manifest";
/// Suffix of files that are being written.
pub(crate) const UNFINISHED_SUFFIX: &str = ".new";

/// Bytes of a token.
const TOKEN: usize = 32;

/// A directory of derived files. Foreign entries (links, pipes, files with another suffix) are neither
/// followed nor removed.
#[derive(Debug, Clone)]
pub(crate) struct DerivedFiles {
    directory: PathBuf,
    /// Suffix of the files that are written here.
    suffix: &'static str,
    /// The directory of the store, if it could be opened.
    anchor: Option<PinnedDirectory>,
    /// The keys of an encrypted store, with which files are bound to their names.
    vault: Vault,
}

impl DerivedFiles {
    /// A directory called `name` in the directory of the store, for files with the suffix `ending`.
    pub(crate) fn new(store: &Path, name: &str, ending: &'static str) -> Self {
        let anchor = PinnedDirectory::open(store).ok();
        let store = anchor.as_ref().map_or(store, PinnedDirectory::path);
        Self { directory: store.join(name), suffix: ending, anchor, vault: Vault::default() }
    }

    /// Binds each file to its name by a token behind its bytes, in an encrypted store.
    pub(crate) fn bound_by(self, vault: &Vault) -> Self {
        Self { vault: vault.clone(), ..self }
    }

    /// The keys of an encrypted store.
    pub(crate) fn vault(&self) -> &Vault {
        &self.vault
    }

    /// The path of a file.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Opens a file to read it. Links are not followed.
    pub(crate) fn open(&self, name: &str) -> io::Result<File> {
        let path = self.path(name);
        check_type(&self.directory, fs::Metadata::is_dir)?;
        check_type(&path, fs::Metadata::is_file)?;
        File::open(&path)
    }

    /// Makes ready to write a file.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn prepare(&self) -> Result<()> {
        self.check()?;
        self.create_directory()
    }

    /// Refuses to write if the path of the store now leads to another directory.
    fn check(&self) -> Result<()> {
        self.anchor.as_ref().map_or(Ok(()), PinnedDirectory::check)
    }

    /// Returns the manifest, `None` if there is none.
    ///
    /// # Errors
    /// `ERR_IO` if it exists and cannot be read.
    pub(crate) fn manifest(&self) -> Result<Option<Vec<u8>>> {
        self.read(MANIFEST_NAME)
    }

    /// Returns a file that the manifest lists, `None` if it is missing.
    ///
    /// # Errors
    /// `ERR_IO` if it exists and cannot be read.
    pub(crate) fn read(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let read = || {
            let mut bytes = Vec::new();
            self.open(name)?.read_to_end(&mut bytes)?;
            Ok::<_, io::Error>(bytes)
        };
        match read() {
            Ok(bytes) => self.unbound(name, bytes).map(Some),
            Err(error) if error.kind() == Io::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes new files and then the manifest, each whole or not at all, and removes the files that the
    /// manifest no longer lists. A crash leaves either the old manifest with all its files, or the new one.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn save(
        &self,
        new: &[(&str, &[u8])],
        manifest: &[u8],
        named: &BTreeSet<String>,
    ) -> Result<()> {
        self.check()?;
        self.create_directory()?;
        for (name, bytes) in new {
            self.write(name, bytes)?;
        }
        directory::sync_directory(&self.directory)?;
        self.write(MANIFEST_NAME, manifest)?;
        directory::sync_directory(&self.directory)?;
        self.remove_unlisted(named)
    }

    /// Writes one file that no manifest lists.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn write_unlisted(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.check()?;
        self.create_directory()?;
        self.write(name, bytes)?;
        directory::sync_directory(&self.directory)
    }

    fn create_directory(&self) -> Result<()> {
        match check_type(&self.directory, fs::Metadata::is_dir) {
            Err(error) if error.kind() == Io::NotFound => directory::create_all(&self.directory),
            known => Ok(known?),
        }
    }

    /// Removes one file that no manifest lists, if it exists.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn remove(&self, name: &str) -> Result<()> {
        self.check()?;
        match check_type(&self.directory, fs::Metadata::is_dir) {
            Err(error) if error.kind() == Io::NotFound => Ok(()),
            Err(error) => Err(error.into()),
            Ok(()) => directory::remove(&self.directory.join(name)),
        }
    }

    /// Overwrites and removes every file written here, the manifest first: without it the others are not
    /// read.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn shred(&self) -> Result<()> {
        self.check()?;
        match check_type(&self.directory, fs::Metadata::is_dir) {
            Err(error) if error.kind() == Io::NotFound => return Ok(()),
            known => known?,
        }
        directory::shred(&self.directory.join(MANIFEST_NAME))?;
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            let name = entry.file_name();
            let is_ours = name.to_str().is_some_and(|name| {
                name.ends_with(self.suffix) || name.ends_with(UNFINISHED_SUFFIX)
            });
            if is_ours && entry.file_type()?.is_file() {
                directory::shred(&entry.path())?;
            }
        }
        Ok(())
    }

    /// Takes the token off the bytes of a file.
    fn unbound(&self, name: &str, mut bytes: Vec<u8>) -> Result<Vec<u8>> {
        if self.vault.keyring().is_none() {
            return Ok(bytes);
        }
        let token = bytes.split_off(bytes.len().saturating_sub(TOKEN));
        match file_token(&self.vault, name, &bytes).is_some_and(|ours| token == ours) {
            true => Ok(bytes),
            false => Err(Error::integrity(format!("{name} was not written by this store"))),
        }
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let unfinished = self.directory.join(format!("{name}{UNFINISHED_SUFFIX}"));
        directory::remove(&unfinished)?;
        let mut file = File::create_new(&unfinished)?;
        file.write_all(bytes)?;
        if let Some(token) = file_token(&self.vault, name, bytes) {
            file.write_all(&token)?;
        }
        file.sync_all()?;
        fs::rename(&unfinished, self.directory.join(name))?;
        Ok(())
    }

    /// Removes the files written here, except the manifest and those it lists.
    fn remove_unlisted(&self, named: &BTreeSet<String>) -> Result<()> {
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            let name = entry.file_name();
            let is_old = name.to_str().is_some_and(|name| {
                let is_ours = name.ends_with(self.suffix) || name.ends_with(UNFINISHED_SUFFIX);
                is_ours && !named.contains(name)
            });
            if is_old && entry.file_type()?.is_file() {
                directory::remove(&entry.path())?;
            }
        }
        Ok(())
    }
}

/// Checks the type of a path without following links.
fn check_type(path: &Path, wanted: fn(&fs::Metadata) -> bool) -> io::Result<()> {
    match wanted(&fs::symlink_metadata(path)?) {
        true => Ok(()),
        false => Err(io::Error::other(format!("{} is something else", path.display()))),
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn what_was_saved_is_read_back_and_what_is_no_longer_named_is_gone() {
        let dir = TempDir::new().unwrap();
        let files = DerivedFiles::new(dir.path(), "text", ".seg");
        assert_eq!(files.manifest().unwrap(), None);
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let first = [("1.seg", b"one".as_slice()), ("2.seg", b"two".as_slice())];
        files.save(&first, b"1 2", &names(&["1.seg", "2.seg"])).unwrap();
        fs::write(dir.path().join("text/7.seg.new"), b"left by a crash").unwrap();
        fs::write(dir.path().join("text/thesis.doc"), b"years of work").unwrap();
        fs::create_dir(dir.path().join("text/somebody's")).unwrap();
        files.save(&[("3.seg", b"three")], b"2 3", &names(&["2.seg", "3.seg"])).unwrap();
        assert_eq!(files.manifest().unwrap().unwrap(), b"2 3");
        assert_eq!(files.read("1.seg").unwrap(), None);
        assert_eq!(files.read("2.seg").unwrap().unwrap(), b"two");
        assert_eq!(files.read("3.seg").unwrap().unwrap(), b"three");
        assert_eq!(files.read("7.seg.new").unwrap(), None);
        assert!(dir.path().join("text/somebody's").is_dir());
        assert!(dir.path().join("text/thesis.doc").is_file());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_in_place_of_a_file_or_of_the_directory_is_not_followed() {
        use std::os::unix::fs::symlink;

        let dir = TempDir::new().unwrap();
        let elsewhere = dir.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        fs::write(elsewhere.join("1.seg"), b"years of work").unwrap();
        let save = |files: &DerivedFiles| files.save(&[("2.seg", b"two")], b"2", &BTreeSet::new());
        symlink(&elsewhere, dir.path().join("text")).unwrap();
        let files = DerivedFiles::new(dir.path(), "text", ".seg");
        assert!(files.read("1.seg").is_err() && save(&files).is_err());
        let files = DerivedFiles::new(dir.path(), "other", ".seg");
        save(&files).unwrap();
        for name in ["manifest.new", "manifest", "3.seg"] {
            let _ = fs::remove_file(dir.path().join("other").join(name));
            symlink(elsewhere.join("1.seg"), dir.path().join("other").join(name)).unwrap();
        }
        assert!(files.manifest().is_err() && files.read("3.seg").is_err());
        save(&files).unwrap();
        assert_eq!(files.manifest().unwrap().unwrap(), b"2");
        assert_eq!(fs::read(elsewhere.join("1.seg")).unwrap(), b"years of work");
    }
}
