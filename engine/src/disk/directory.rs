//! The directory of a store: its lock, whether there is a store in it, and names that outlive a
//! power cut. It knows nothing of what the files hold.

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind as Io, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::base::error::{Error, ErrorKind, Result};

/// The file with the truth.
const GRAINS: &str = "grains.redb";
/// The file with the wrapped secrets of an encrypted store.
const KEYRING: &str = "keyring";
/// The keyring while it is being exchanged.
const NEW_KEYRING: &str = "keyring.new";
/// The file with the derived index.
const INDEX: &str = "index.redb";
/// The truth while it is being created: it takes its name once it is whole.
const NEW_GRAINS: &str = "grains.redb.new";
/// The index while it is being copied or built again.
const NEW_INDEX: &str = "index.redb.new";
/// How the names of files begin that are there for the length of a check; a number follows.
const VERIFY: &str = "verify-";
/// How the names of files begin that see whether there is room; a number follows.
const PROBE: &str = "probe-";
/// How the names of files end that gave way to a copy and are to be overwritten.
const FORMER: &str = ".old";
/// How the names of all of these end.
const UNFINISHED: &str = ".redb.new";
/// The file whose lock says that the store is open.
const LOCK: &str = "LOCK";
/// Bytes that are overwritten, or compared, at once.
const CHUNK: usize = 1 << 20;
/// How often a lock that is held elsewhere is tried again.
const RETRY: Duration = Duration::from_millis(10);

/// The file with the truth in this directory.
pub(crate) fn grains(path: &Path) -> PathBuf {
    path.join(GRAINS)
}

/// The file with the wrapped secrets of an encrypted store in this directory.
pub(crate) fn keyring(path: &Path) -> PathBuf {
    path.join(KEYRING)
}

/// The file with the derived index in this directory.
pub(crate) fn index(path: &Path) -> PathBuf {
    path.join(INDEX)
}

/// A file for the length of a check.
pub(crate) fn verify_file(path: &Path, number: u64) -> PathBuf {
    path.join(format!("{VERIFY}{number}{UNFINISHED}"))
}

/// A file that sees whether there is room.
pub(crate) fn probe_file(path: &Path, number: u32) -> PathBuf {
    path.join(format!("{PROBE}{number}{UNFINISHED}"))
}

/// Whether there is a store. Only a name that is not there says no: whatever else keeps it from
/// being looked at must not end in a new store over an old one.
///
/// # Errors
/// `ERR_IO`.
pub(crate) fn has_store(path: &Path) -> Result<bool> {
    match fs::symlink_metadata(grains(path)) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == Io::NotFound => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Makes the directory and those above it, durably.
///
/// # Errors
/// `ERR_IO`.
pub(crate) fn make(path: &Path) -> Result<()> {
    let missing: Vec<_> = path.ancestors().take_while(|above| !above.exists()).collect();
    fs::create_dir_all(path)?;
    for made in missing.iter().rev() {
        match made.parent() {
            Some(above) if !above.as_os_str().is_empty() => sync(above)?,
            _ => sync(Path::new("."))?,
        }
    }
    Ok(())
}

/// The file whose lock says that a store is open.
pub(crate) fn lock_file(path: &Path) -> PathBuf {
    path.join(LOCK)
}

/// Whether a directory has nothing in it, or no more than a store's lock and, beside a truth that was not
/// finished, a keyring: what a backup that was cut short leaves. A keyring alone may be all that is left
/// of a store.
///
/// # Errors
/// `ERR_IO`, also for what is no directory.
pub(crate) fn is_free(path: &Path) -> Result<bool> {
    let (mut keyring, mut unfinished) = (false, false);
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        keyring |= name == KEYRING || name == NEW_KEYRING;
        unfinished |= name == NEW_GRAINS;
        if ![LOCK, NEW_GRAINS, KEYRING, NEW_KEYRING].iter().any(|known| name == *known) {
            return Ok(false);
        }
    }
    Ok(unfinished || !keyring)
}

/// The lock of a store: that of a file, and that of the directory itself, since the file can be
/// removed while the store is open.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    directory: Option<File>,
}

impl Lock {
    /// Another holder of the same lock: it is let go with the last.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn try_clone(&self) -> Result<Self> {
        let directory = self.directory.as_ref().map(File::try_clone).transpose()?;
        Ok(Self { file: self.file.try_clone()?, directory })
    }

    /// Locks both, or neither.
    fn attempt(&self, attempt: Attempt) -> std::result::Result<(), TryLockError> {
        attempt(&self.file)?;
        match self.directory.as_ref().map(attempt) {
            Some(Err(TryLockError::WouldBlock)) => {
                self.file.unlock().map_err(TryLockError::Error)?;
                Err(TryLockError::WouldBlock)
            }
            // A file system that locks no directories leaves it at the file.
            _ => Ok(()),
        }
    }

    /// Locks both, waiting for whoever has one of them.
    fn take(&self, path: &Path, wait: Duration, attempt: Attempt) -> Result<()> {
        let start = Instant::now();
        loop {
            match self.attempt(attempt) {
                Ok(()) => return Ok(()),
                Err(TryLockError::Error(error)) => return Err(error.into()),
                Err(TryLockError::WouldBlock) if start.elapsed() >= wait => {
                    let message = format!(
                        "the store at {} is open elsewhere; close it there, or wait longer than {} ms",
                        path.display(),
                        wait.as_millis()
                    );
                    return Err(Error::new(ErrorKind::Busy, message));
                }
                Err(TryLockError::WouldBlock) => thread::sleep(RETRY),
            }
        }
    }
}

/// How a file is locked: alone, or beside others.
type Attempt = fn(&File) -> std::result::Result<(), TryLockError>;

/// Takes the store's lock, waiting for whoever has it.
///
/// # Errors
/// `ERR_BUSY` after `wait`, `ERR_IO`.
pub(crate) fn lock(path: &Path, wait: Duration) -> Result<Lock> {
    let file = File::options().create(true).truncate(false).write(true).open(lock_file(path))?;
    let lock = Lock { file, directory: directory_at(path)? };
    lock.take(path, wait, File::try_lock)?;
    Ok(lock)
}

/// Takes the store's lock beside others who read, waiting for whoever writes. Nothing is created: where
/// there is no lock, as on a copy, the file with the truth is locked, which who writes locks as well.
///
/// # Errors
/// `ERR_BUSY` after `wait`, `ERR_IO`.
pub(crate) fn lock_shared(path: &Path, wait: Duration) -> Result<Lock> {
    let file = match File::open(lock_file(path)) {
        Err(error) if error.kind() == Io::NotFound => File::open(grains(path))?,
        opened => opened?,
    };
    let lock = Lock { file, directory: directory_at(path)? };
    lock.take(path, wait, File::try_lock_shared)?;
    Ok(lock)
}

/// The directory, to be locked.
fn directory_at(path: &Path) -> Result<Option<File>> {
    Ok(if cfg!(unix) { Some(File::open(path)?) } else { None })
}

/// Lets `write` create the truth under another name and renames it when it is whole, so that a
/// crash leaves either no store or a complete empty one. The caller holds the lock.
///
/// # Errors
/// Those of `write`; `ERR_IO`.
pub(crate) fn create(path: &Path, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let new = path.join(NEW_GRAINS);
    remove(&new)?;
    write(&new)?;
    fs::rename(&new, grains(path))?;
    Ok(())
}

/// Where a file lies that may be a link; the name itself where there is no file yet.
///
/// # Errors
/// `ERR_IO`.
pub(crate) fn real(file: &Path) -> Result<PathBuf> {
    match fs::canonicalize(file) {
        Err(error) if error.kind() == Io::NotFound => Ok(file.to_owned()),
        found => Ok(found?),
    }
}

/// Removes a file that may not be there.
///
/// # Errors
/// `ERR_IO`.
pub(crate) fn remove(file: &Path) -> Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != Io::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// The files a copy or a check that did not end has left in a directory: those with the names that
/// are given here, and nothing somebody else has put beside them.
///
/// # Errors
/// `ERR_IO`.
pub(crate) fn leftovers(path: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(path)? {
        let file = entry?.path();
        let name = file.file_name().and_then(OsStr::to_str).unwrap_or_default();
        if is_leftover(name) {
            found.push(file);
        }
    }
    Ok(found)
}

fn is_leftover(name: &str) -> bool {
    let numbered = |start: &str| {
        let number = name.strip_prefix(start).and_then(|rest| rest.strip_suffix(UNFINISHED));
        number.is_some_and(|digits| {
            !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit())
        })
    };
    [NEW_GRAINS, NEW_INDEX].contains(&name) || numbered(VERIFY) || numbered(PROBE)
}

/// Removes them. The caller holds the lock, so nobody is at work on one.
///
/// # Errors
/// `ERR_IO`.
pub(crate) fn clear_leftovers(path: &Path) -> Result<()> {
    leftovers(path)?.iter().try_for_each(|file| remove(file))
}

/// The name a file keeps while it is to be overwritten, when a copy has taken its own.
pub(crate) fn former(file: &Path) -> PathBuf {
    let mut name = file.to_path_buf().into_os_string();
    name.push(FORMER);
    name.into()
}

/// Overwrites and removes what gave way to a copy of a file, if a crash has left it. Where the copy did
/// not get the name, both are names of one file, which stays.
///
/// # Errors
/// `ERR_IO`.
pub(crate) fn clear_former(file: &Path) -> Result<()> {
    let former = former(file);
    match fs::symlink_metadata(&former) {
        Err(error) if error.kind() == Io::NotFound => Ok(()),
        Err(error) => Err(error.into()),
        // Somebody else's link or directory is neither followed nor removed.
        Ok(found) if !found.is_file() => Ok(()),
        Ok(_) if is_same(file, &former)? => remove(&former),
        Ok(_) => shred(&former),
    }
}

/// Whether two files have the same bytes: two names of one file do, and a file differs from the copy
/// that never held what it holds.
fn is_same(one: &Path, other: &Path) -> Result<bool> {
    let (mut one, mut other) = (File::open(one)?, File::open(other)?);
    if one.metadata()?.len() != other.metadata()?.len() {
        return Ok(false);
    }
    let (mut left, mut right) = (vec![0; CHUNK], vec![0; CHUNK]);
    loop {
        let count = one.read(&mut left)?;
        let (Some(left), Some(right)) = (left.get(..count), right.get_mut(..count)) else {
            return Ok(false);
        };
        other.read_exact(right)?;
        if left != right {
            return Ok(false);
        }
        if count == 0 {
            return Ok(true);
        }
    }
}

/// Overwrites a file with zeros, and removes it once they are on the disk. One that is not there is
/// gone already; a link is not followed, and stays.
///
/// # Errors
/// `ERR_IO`.
pub(crate) fn shred(path: &Path) -> Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == Io::NotFound => return Ok(()),
        Err(error) => return Err(error.into()),
        Ok(found) if !found.is_file() => return Ok(()),
        Ok(_) => {}
    }
    let mut file = File::options().write(true).open(path)?;
    let mut left = file.metadata()?.len();
    let zeros = vec![0; CHUNK];
    while left > 0 {
        let next = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
        file.write_all(zeros.get(..next).unwrap_or_default())?;
        left = left.saturating_sub(next as u64);
    }
    file.sync_all()?;
    drop(file);
    remove(path)?;
    path.parent().filter(|above| !above.as_os_str().is_empty()).map_or(Ok(()), sync)
}

/// Makes the names in a directory durable. Done on every open before anything is acknowledged,
/// since an earlier process may have died between a rename and this.
///
/// # Errors
/// `ERR_IO`.
pub(crate) fn sync(path: &Path) -> Result<()> {
    if cfg!(unix) {
        File::open(path)?.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_gave_way_to_a_copy_is_overwritten_and_another_name_of_the_file_is_only_removed() {
        let dir = tempfile::TempDir::new().unwrap();
        let (file, elsewhere) = (dir.path().join("grains.redb"), dir.path().join("elsewhere"));
        let old = former(&file);
        fs::write(&file, b"what is there").unwrap();
        clear_former(&file).unwrap();
        // A crash before the copy got the name.
        fs::hard_link(&file, &old).unwrap();
        clear_former(&file).unwrap();
        assert!(!old.exists());
        assert_eq!(fs::read(&file).unwrap(), b"what is there");
        // A crash after it: the bytes are gone, also under a name nobody looks for.
        for former in [&b"what was there"[..], b"what is there no more", b""] {
            fs::write(&old, former).unwrap();
            fs::hard_link(&old, &elsewhere).unwrap();
            clear_former(&file).unwrap();
            assert!(!old.exists());
            assert_eq!(fs::read(&elsewhere).unwrap(), vec![0; former.len()]);
            assert_eq!(fs::read(&file).unwrap(), b"what is there");
            fs::remove_file(&elsewhere).unwrap();
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_somebody_put_there_is_not_followed() {
        let dir = tempfile::TempDir::new().unwrap();
        let (file, work) = (dir.path().join("grains.redb"), dir.path().join("years of work"));
        fs::write(&file, b"what is there").unwrap();
        fs::write(&work, b"what must stay").unwrap();
        std::os::unix::fs::symlink(&work, former(&file)).unwrap();
        clear_former(&file).unwrap();
        shred(&former(&file)).unwrap();
        assert_eq!(fs::read(&work).unwrap(), b"what must stay");
    }
}
