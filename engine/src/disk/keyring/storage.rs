//! The storage of a keyring: slots are appended, overwritten in place, or replaced all at once. Does not know
//! what the bytes mean.

use std::fmt::Debug;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind as Io, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::base::error::Result;
use crate::disk::directory;
use crate::disk::pinned_directory::PinnedDirectory;

/// Storage for a keyring's bytes. The effect of a method is durable when it returns.
pub(crate) trait KeyringStorage: Debug + Send {
    /// Returns all bytes, `None` if there is no keyring.
    fn read(&mut self) -> Result<Option<Vec<u8>>>;
    /// Writes in place, or at the end.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<()>;
    /// Replaces all bytes atomically. The former bytes are overwritten.
    fn replace(&mut self, bytes: &[u8]) -> Result<()>;
    /// Overwrites what is behind a length, and cuts it off. Does nothing to a keyring that is shorter.
    fn truncate(&mut self, length: u64) -> Result<()>;
}

/// A file, and the pinned directory it must be in when it is written.
#[derive(Debug)]
pub(crate) struct KeyringFile(PathBuf, PinnedDirectory);

impl KeyringFile {
    /// The keyring file in a directory.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn within(directory: &Path) -> Result<Self> {
        let anchor = PinnedDirectory::open(directory)?;
        Ok(Self(directory::keyring_path(anchor.path()), anchor))
    }

    fn new_name(&self) -> PathBuf {
        let mut name = self.0.clone().into_os_string();
        name.push(".new");
        name.into()
    }
}

/// A file opened read-only: writes are dropped.
#[derive(Debug)]
pub(crate) struct ReadOnlyKeyringFile(pub(crate) PathBuf);

impl KeyringStorage for ReadOnlyKeyringFile {
    fn read(&mut self) -> Result<Option<Vec<u8>>> {
        match fs::read(&self.0) {
            Err(error) if error.kind() == Io::NotFound => Ok(None),
            read => Ok(Some(read?)),
        }
    }

    fn write_at(&mut self, _: u64, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn replace(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn truncate(&mut self, _: u64) -> Result<()> {
        Ok(())
    }
}

impl KeyringStorage for KeyringFile {
    fn read(&mut self) -> Result<Option<Vec<u8>>> {
        self.1.check()?;
        directory::shred(&self.new_name())?;
        let bytes = match fs::read(&self.0) {
            Err(error) if error.kind() == Io::NotFound => return Ok(None),
            read => read?,
        };
        directory::clear_replaced(&self.0)?;
        Ok(Some(bytes))
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.1.check()?;
        let mut file = OpenOptions::new().write(true).open(&self.0)?;
        file.seek(SeekFrom::Start(offset))?;
        file.write_all(bytes)?;
        file.sync_all()?;
        Ok(())
    }

    fn replace(&mut self, bytes: &[u8]) -> Result<()> {
        self.1.check()?;
        let new = self.new_name();
        directory::shred(&new)?;
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&new)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        // The former file keeps a name until it is overwritten, so that the next opening completes it after a
        // crash.
        match fs::hard_link(&self.0, directory::replaced_path(&self.0)) {
            Err(error) if error.kind() == Io::NotFound => {}
            linked => linked?,
        }
        fs::rename(&new, &self.0)?;
        directory::sync_directory(self.0.parent().unwrap_or(&self.0))?;
        directory::clear_replaced(&self.0)
    }

    fn truncate(&mut self, length: u64) -> Result<()> {
        self.1.check()?;
        let mut file = OpenOptions::new().write(true).open(&self.0)?;
        let rest = file.metadata()?.len().saturating_sub(length);
        if rest == 0 {
            return Ok(());
        }
        file.seek(SeekFrom::Start(length))?;
        file.write_all(&vec![0; usize::try_from(rest).unwrap_or(usize::MAX)])?;
        file.sync_all()?;
        file.set_len(length)?;
        file.sync_all()?;
        Ok(())
    }
}
