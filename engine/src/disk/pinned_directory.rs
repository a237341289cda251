//! A directory held open, so that file operations by name are known to happen in that directory.
//!
//! The files of an open store are opened by path when they are exchanged or grow. If the directory was moved
//! meanwhile, another store may lie at that path, and it must not be touched.

use std::fs;
use std::path::{Path, PathBuf};

use crate::base::error::{Error, ErrorKind, Result};

/// An open directory and its canonical path.
#[derive(Debug, Clone)]
pub(crate) struct PinnedDirectory {
    path: PathBuf,
    /// Held open so that the inode number is not reused while it is compared.
    #[cfg(unix)]
    directory: std::sync::Arc<fs::File>,
}

impl PinnedDirectory {
    /// Opens a directory.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn open(directory: &Path) -> Result<Self> {
        let named = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
        let path = fs::canonicalize(named)?;
        #[cfg(unix)]
        return Ok(Self { directory: std::sync::Arc::new(fs::File::open(&path)?), path });
        #[cfg(not(unix))]
        return Ok(Self { path });
    }

    /// The canonical path: neither a link nor the current directory of the process changes its meaning.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Refuses if the path now leads to another directory. A system without inode numbers does not let a
    /// directory be moved that has open files in it.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn check(&self) -> Result<()> {
        match self.is_at_path()? {
            true => Ok(()),
            false => {
                let path = self.path.display();
                let message = format!("the directory {path} was moved while its store is open");
                Err(Error::new(ErrorKind::Io, message)
                    .with_hint("close the store, and open it where its directory is now"))
            }
        }
    }

    #[cfg(unix)]
    fn is_at_path(&self) -> Result<bool> {
        use std::os::unix::fs::MetadataExt as _;
        let held = self.directory.metadata()?;
        match fs::metadata(&self.path) {
            Ok(found) => Ok((found.dev(), found.ino()) == (held.dev(), held.ino())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    #[cfg(not(unix))]
    fn is_at_path(&self) -> Result<bool> {
        Ok(true)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn a_directory_that_was_moved_is_not_taken_for_the_one_in_its_place() {
        let dir = TempDir::new().unwrap();
        let (here, there) = (dir.path().join("here"), dir.path().join("there"));
        fs::create_dir(&here).unwrap();
        let anchor = PinnedDirectory::open(&here).unwrap();
        anchor.check().unwrap();
        fs::rename(&here, &there).unwrap();
        let code = |anchor: &PinnedDirectory| anchor.check().map_err(|error| error.code());
        assert_eq!(code(&anchor), Err("ERR_IO"));
        fs::create_dir(&here).unwrap();
        assert_eq!(code(&anchor), Err("ERR_IO"), "another directory has the name");
        fs::remove_dir(&here).unwrap();
        fs::rename(&there, &here).unwrap();
        anchor.check().unwrap();
    }
}
