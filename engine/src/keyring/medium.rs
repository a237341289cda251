//! Where a keyring lies: a file of slots that grows, whose slots are overwritten in place, and that is
//! exchanged as a whole. Knows bytes, not what they mean.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind as Io, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::directory;
use crate::error::Result;

/// A keyring's bytes. What a method has done is durable when it returns.
pub(crate) trait Medium: Debug + Send {
    /// All of it; nothing where there is none.
    fn read(&mut self) -> Result<Option<Vec<u8>>>;
    /// Writes in place, or at the end.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<()>;
    /// Takes the place of all there is, at once. What was there is overwritten.
    fn replace(&mut self, bytes: &[u8]) -> Result<()>;
}

/// A file.
#[derive(Debug)]
pub(crate) struct SlotFile(pub(crate) PathBuf);

impl SlotFile {
    fn new_name(&self) -> PathBuf {
        let mut name = self.0.clone().into_os_string();
        name.push(".new");
        name.into()
    }
}

impl Medium for SlotFile {
    fn read(&mut self) -> Result<Option<Vec<u8>>> {
        discard(&self.new_name())?;
        match fs::read(&self.0) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == Io::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        let mut file = OpenOptions::new().write(true).open(&self.0)?;
        file.seek(SeekFrom::Start(offset))?;
        file.write_all(bytes)?;
        file.sync_all()?;
        Ok(())
    }

    fn replace(&mut self, bytes: &[u8]) -> Result<()> {
        let new = self.new_name();
        discard(&new)?;
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&new)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        let former = match OpenOptions::new().read(true).write(true).open(&self.0) {
            Ok(former) => Some(former),
            Err(error) if error.kind() == Io::NotFound => None,
            Err(error) => return Err(error.into()),
        };
        fs::rename(&new, &self.0)?;
        directory::sync(self.0.parent().unwrap_or(&self.0))?;
        former.map_or(Ok(()), wipe)
    }
}

/// Overwrites and removes what an exchange that was cut short has left, if it has.
fn discard(new: &Path) -> Result<()> {
    match OpenOptions::new().read(true).write(true).open(new) {
        Ok(file) => wipe(file)?,
        Err(error) if error.kind() == Io::NotFound => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    directory::remove(new)
}

/// Overwrites all of a file.
fn wipe(mut file: File) -> Result<()> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    bytes.fill(0);
    file.rewind()?;
    file.write_all(&bytes)?;
    file.sync_all()?;
    Ok(())
}
