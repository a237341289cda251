//! The directory of a store: file names, its lock, durable renames, and overwriting. Does not know what the
//! files hold.

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind as Io, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::base::error::{Error, ErrorKind, Result};

/// File of the truth.
const TRUTH_NAME: &str = "grains.redb";
/// File with the wrapped secrets of an encrypted store.
const KEYRING_NAME: &str = "keyring";
/// The keyring while it is replaced.
const NEW_KEYRING_NAME: &str = "keyring.new";
/// Directory of the read log.
const READS: &str = "reads";
/// File of the derived index.
const INDEX_NAME: &str = "index.redb";
/// The truth while it is created: it is renamed once it is complete.
const NEW_TRUTH_NAME: &str = "grains.redb.new";
/// The index while it is copied or rebuilt.
const NEW_INDEX_NAME: &str = "index.redb.new";
/// Prefix of temporary files of a check; a number follows.
const VERIFY_PREFIX: &str = "verify-";
/// Prefix of files that probe for free space; a number follows.
const PROBE_PREFIX: &str = "probe-";
/// Suffix of files that were replaced by a copy and are to be overwritten.
const REPLACED_SUFFIX: &str = ".old";
/// Suffix of temporary and unfinished database files.
const UNFINISHED_DATABASE_SUFFIX: &str = ".redb.new";
/// File whose lock says that the store is open.
const LOCK_NAME: &str = "LOCK";
/// Bytes that are overwritten or compared at once.
const CHUNK_BYTES: usize = 1 << 20;
/// Time between two attempts to take a lock.
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// Path of the truth.
pub(crate) fn truth_path(path: &Path) -> PathBuf {
    path.join(TRUTH_NAME)
}

/// Path of the keyring of an encrypted store.
pub(crate) fn keyring_path(path: &Path) -> PathBuf {
    path.join(KEYRING_NAME)
}

/// Path of the derived index.
pub(crate) fn index_path(path: &Path) -> PathBuf {
    path.join(INDEX_NAME)
}

/// Path of a temporary file of a check.
pub(crate) fn scratch_path(path: &Path, number: u64) -> PathBuf {
    path.join(format!("{VERIFY_PREFIX}{number}{UNFINISHED_DATABASE_SUFFIX}"))
}

/// Returns the bytes that are free on the disk of a file; `None` where the system does not say.
pub(crate) fn free_bytes(file: &Path) -> Option<u64> {
    #[cfg(unix)]
    {
        let free = rustix::fs::statvfs(file).ok()?;
        Some(free.f_bavail.saturating_mul(free.f_frsize))
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        None
    }
}

/// Path of a file that probes for free space.
pub(crate) fn probe_path(path: &Path, number: u32) -> PathBuf {
    path.join(format!("{PROBE_PREFIX}{number}{UNFINISHED_DATABASE_SUFFIX}"))
}

/// Returns `true` if there is a store. Only a missing name means there is none: any other error must not end
/// in a new store over an old one.
///
/// # Errors
/// `ERR_IO`.
pub(crate) fn has_store(path: &Path) -> Result<bool> {
    match fs::symlink_metadata(truth_path(path)) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == Io::NotFound => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The directory of the store that a name lies in, be it that of a file, of a link to one, or of what is not
/// there yet.
///
/// # Errors
/// `ERR_CONFLICT` for a name whose place cannot be told before something is made; `ERR_IO`.
pub(crate) fn store_around(name: &Path) -> Result<Option<PathBuf>> {
    let around = |place: &Path| -> Result<Option<PathBuf>> {
        // A file has nothing in it.
        for above in place.ancestors().skip(usize::from(!place.is_dir())) {
            if has_store(above)? {
                return Ok(Some(above.to_owned()));
            }
        }
        Ok(None)
    };
    let mut missing = false;
    for above in name.ancestors() {
        // The name itself may be replaced where it stands, or be a link to what is written.
        let here = if above.as_os_str().is_empty() { Path::new(".") } else { above };
        match fs::canonicalize(here) {
            Ok(place) => {
                if let Some(store) = around(&place)? {
                    return Ok(Some(store));
                }
                if missing || here != name || !is_link(name)? {
                    return Ok(None);
                }
            }
            Err(error) if error.kind() == Io::NotFound => {
                missing = true;
                if is_link(here)? || above.file_name().is_none() {
                    let message = format!("where {} leads cannot be told", name.display());
                    let hint = "name a file without links that lead nowhere, and without ..";
                    return Err(Error::new(ErrorKind::Conflict, message).with_hint(hint));
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

fn is_link(name: &Path) -> Result<bool> {
    match fs::symlink_metadata(name) {
        Err(error) if error.kind() == Io::NotFound => Ok(false),
        found => Ok(found?.is_symlink()),
    }
}

/// Refuses the name of a file to be written that lies in the directory of a store: the files there are the
/// store's, also those that it makes for a while. Every command that writes a file asks this first.
///
/// ```
/// # use grainstore::prelude::*;
/// # let dir = tempfile::tempdir()?;
/// let store = Store::open(dir.path().join("memory"), &OpenOptions::new().create(true))?;
/// assert!(grainstore::check_outside(&store.path().join("report.txt")).is_err());
/// grainstore::check_outside(&dir.path().join("report.txt"))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// `ERR_CONFLICT`; `ERR_IO`.
pub fn check_outside(file: &Path) -> Result<()> {
    match store_around(file)? {
        None => Ok(()),
        Some(store) => {
            let (file, store) = (file.display(), store.display());
            let message =
                format!("{file} lies in the store at {store}, where all files are its own");
            Err(Error::new(ErrorKind::Conflict, message)
                .with_hint("name a file outside of every store"))
        }
    }
}

/// Refuses the file of a key that lies in the directory of the store that is made with it, or in another store.
///
/// # Errors
/// `ERR_CONFLICT`; `ERR_IO`.
pub(crate) fn check_beside(key: &Path, store: &Path) -> Result<()> {
    check_outside(key)?;
    let store = fs::canonicalize(store)?;
    let above = key.parent().filter(|above| !above.as_os_str().is_empty());
    for place in [key, above.unwrap_or(Path::new("."))] {
        if resolve_link(place)?.starts_with(&store) {
            let message = format!("the key file {} lies in the store it opens", key.display());
            let hint = "keep the key elsewhere: who has the directory would have all that is in it";
            return Err(Error::new(ErrorKind::Conflict, message).with_hint(hint));
        }
    }
    Ok(())
}

/// Creates the directory and its missing parents, durably.
///
/// # Errors
/// `ERR_IO`.
pub(crate) fn create_all(path: &Path) -> Result<()> {
    let missing: Vec<_> = path.ancestors().take_while(|above| !above.exists()).collect();
    fs::create_dir_all(path)?;
    for made in missing.iter().rev() {
        match made.parent() {
            Some(above) if !above.as_os_str().is_empty() => sync_directory(above)?,
            _ => sync_directory(Path::new("."))?,
        }
    }
    Ok(())
}

/// Path of the directory of the read log.
pub(crate) fn reads(path: &Path) -> PathBuf {
    path.join(READS)
}

/// Path of the lock file.
pub(crate) fn lock_path(path: &Path) -> PathBuf {
    path.join(LOCK_NAME)
}

/// Returns `true` if a directory is empty, or holds at most a store's lock and, beside an unfinished truth, a
/// keyring and a read log: the remains of an interrupted backup. Without it they may be all that is left of a
/// store, so such a directory is not free.
///
/// # Errors
/// `ERR_IO`, also for a path that is no directory.
pub(crate) fn is_free_for_backup(path: &Path) -> Result<bool> {
    let (mut kept, mut unfinished) = (false, false);
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        kept |= [KEYRING_NAME, NEW_KEYRING_NAME, READS].iter().any(|known| name == *known);
        unfinished |= name == NEW_TRUTH_NAME;
        if ![LOCK_NAME, NEW_TRUTH_NAME, KEYRING_NAME, NEW_KEYRING_NAME, READS]
            .iter()
            .any(|known| name == *known)
        {
            return Ok(false);
        }
    }
    Ok(unfinished || !kept)
}

/// The lock of a store: on a file, and on the directory itself, since the file can be removed while the store
/// is open.
#[derive(Debug)]
pub(crate) struct StoreLock {
    file: File,
    directory: Option<File>,
}

impl StoreLock {
    /// Returns another handle of the same lock, which is released with the last.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn try_clone(&self) -> Result<Self> {
        let directory = self.directory.as_ref().map(File::try_clone).transpose()?;
        Ok(Self { file: self.file.try_clone()?, directory })
    }

    /// Locks both, or neither.
    fn try_both(&self, attempt: LockFn) -> std::result::Result<(), TryLockError> {
        attempt(&self.file)?;
        match self.directory.as_ref().map(attempt) {
            Some(Err(TryLockError::WouldBlock)) => {
                self.file.unlock().map_err(TryLockError::Error)?;
                Err(TryLockError::WouldBlock)
            }
            // On a file system that does not lock directories the file lock has to do.
            _ => Ok(()),
        }
    }

    /// Locks both, waiting for other holders.
    fn take(&self, path: &Path, wait: Duration, attempt: LockFn) -> Result<()> {
        let start = Instant::now();
        loop {
            match self.try_both(attempt) {
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
                Err(TryLockError::WouldBlock) => thread::sleep(LOCK_RETRY_INTERVAL),
            }
        }
    }
}

/// A function that locks a file, exclusively or shared.
type LockFn = fn(&File) -> std::result::Result<(), TryLockError>;

/// Takes the store's lock exclusively, waiting for other holders.
///
/// # Errors
/// `ERR_BUSY` after `wait`, `ERR_IO`.
pub(crate) fn lock(path: &Path, wait: Duration) -> Result<StoreLock> {
    let file = File::options().create(true).truncate(false).write(true).open(lock_path(path))?;
    let lock = StoreLock { file, directory: open_directory(path)? };
    lock.take(path, wait, File::try_lock)?;
    Ok(lock)
}

/// Takes the store's lock shared with other readers, waiting for a writer. Nothing is created: if there is no
/// lock file, as on a copy, the file of the truth is locked, which writers lock as well.
///
/// # Errors
/// `ERR_BUSY` after `wait`, `ERR_IO`.
pub(crate) fn lock_shared(path: &Path, wait: Duration) -> Result<StoreLock> {
    let file = match File::open(lock_path(path)) {
        Err(error) if error.kind() == Io::NotFound => File::open(truth_path(path))?,
        opened => opened?,
    };
    let lock = StoreLock { file, directory: open_directory(path)? };
    lock.take(path, wait, File::try_lock_shared)?;
    Ok(lock)
}

/// Opens the directory for locking.
fn open_directory(path: &Path) -> Result<Option<File>> {
    Ok(if cfg!(unix) { Some(File::open(path)?) } else { None })
}

/// Creates the truth under another name by `write` and renames it when it is complete, so that a crash leaves
/// either no store or a complete empty one. The caller holds the lock.
///
/// # Errors
/// Those of `write`; `ERR_IO`.
pub(crate) fn create_truth(path: &Path, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let new = path.join(NEW_TRUTH_NAME);
    remove(&new)?;
    write(&new)?;
    fs::rename(&new, truth_path(path))?;
    Ok(())
}

/// Resolves links in the path of a file; returns the path itself if there is no file yet.
///
/// # Errors
/// `ERR_IO`.
pub(crate) fn resolve_link(file: &Path) -> Result<PathBuf> {
    match fs::canonicalize(file) {
        Err(error) if error.kind() == Io::NotFound => Ok(file.to_owned()),
        found => Ok(found?),
    }
}

/// Removes a file, if it exists.
///
/// # Errors
/// `ERR_IO`.
pub(crate) fn remove(file: &Path) -> Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != Io::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// Returns the files that an interrupted copy or check has left in a directory, by their exact names: foreign
/// files are not touched.
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
        let number =
            name.strip_prefix(start).and_then(|rest| rest.strip_suffix(UNFINISHED_DATABASE_SUFFIX));
        number.is_some_and(|digits| {
            !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit())
        })
    };
    [NEW_TRUTH_NAME, NEW_INDEX_NAME].contains(&name)
        || numbered(VERIFY_PREFIX)
        || numbered(PROBE_PREFIX)
}

/// Removes the leftovers. The caller holds the lock, so none is in use. Those of a copy of a store with a journal are
/// overwritten first: the copy that was being made may have what later records erased.
///
/// # Errors
/// `ERR_IO`.
pub(crate) fn clear_leftovers(path: &Path, is_copy: bool) -> Result<()> {
    leftovers(path)?.iter().try_for_each(|file| {
        if is_copy {
            shred(file)?;
        }
        remove(file)
    })
}

/// Path of a file that a copy has replaced, until it is overwritten.
pub(crate) fn replaced_path(file: &Path) -> PathBuf {
    let mut name = file.to_path_buf().into_os_string();
    name.push(REPLACED_SUFFIX);
    name.into()
}

/// Overwrites and removes the replaced file that a crash has left. If the crash came before the copy was
/// renamed, both are names of one file, which stays.
///
/// # Errors
/// `ERR_IO`.
pub(crate) fn clear_replaced(file: &Path) -> Result<()> {
    let former = replaced_path(file);
    match fs::symlink_metadata(&former) {
        Err(error) if error.kind() == Io::NotFound => Ok(()),
        Err(error) => Err(error.into()),
        // A foreign link or directory is neither followed nor removed.
        Ok(found) if !found.is_file() => Ok(()),
        Ok(_) if have_same_bytes(file, &former)? => remove(&former),
        Ok(_) => shred(&former),
    }
}

/// Returns `true` if two files have the same bytes. Two names of one file do; a file differs from a copy that
/// never held its erased data.
fn have_same_bytes(one: &Path, other: &Path) -> Result<bool> {
    let (mut one, mut other) = (File::open(one)?, File::open(other)?);
    if one.metadata()?.len() != other.metadata()?.len() {
        return Ok(false);
    }
    let (mut left, mut right) = (vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]);
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

/// Overwrites a file with zeros, and removes it once they are on disk. A missing file is fine; a link is
/// neither followed nor removed.
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
    let zeros = vec![0; CHUNK_BYTES];
    while left > 0 {
        let next = usize::try_from(left).unwrap_or(CHUNK_BYTES).min(CHUNK_BYTES);
        file.write_all(zeros.get(..next).unwrap_or_default())?;
        left = left.saturating_sub(next as u64);
    }
    file.sync_all()?;
    drop(file);
    remove(path)?;
    path.parent().filter(|above| !above.as_os_str().is_empty()).map_or(Ok(()), sync_directory)
}

/// Makes the names in a directory durable. Done on every open before a write is acknowledged, since an
/// earlier process may have died between a rename and this.
///
/// # Errors
/// `ERR_IO`.
pub(crate) fn sync_directory(path: &Path) -> Result<()> {
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
        let old = replaced_path(&file);
        fs::write(&file, b"what is there").unwrap();
        clear_replaced(&file).unwrap();
        // A crash before the copy was renamed.
        fs::hard_link(&file, &old).unwrap();
        clear_replaced(&file).unwrap();
        assert!(!old.exists());
        assert_eq!(fs::read(&file).unwrap(), b"what is there");
        // A crash after it: the bytes are gone, also under a further hard link.
        for former in [&b"what was there"[..], b"what is there no more", b""] {
            fs::write(&old, former).unwrap();
            fs::hard_link(&old, &elsewhere).unwrap();
            clear_replaced(&file).unwrap();
            assert!(!old.exists());
            assert_eq!(fs::read(&elsewhere).unwrap(), vec![0; former.len()]);
            assert_eq!(fs::read(&file).unwrap(), b"what is there");
            fs::remove_file(&elsewhere).unwrap();
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_name_lies_in_a_store_whichever_way_it_is_written() {
        let dir = tempfile::TempDir::new().unwrap();
        let (store, beside) = (dir.path().join("store"), dir.path().join("beside"));
        fs::create_dir_all(store.join("reads")).unwrap();
        fs::create_dir(&beside).unwrap();
        fs::write(truth_path(&store), b"what is there").unwrap();
        let linked = |to: PathBuf, name: &str| std::os::unix::fs::symlink(to, beside.join(name));
        linked(store.clone(), "store").unwrap();
        linked(truth_path(&store), "file").unwrap();
        linked(store.join("absent"), "dangling").unwrap();
        linked(beside.join("other"), "out").unwrap();
        linked(beside.join("out"), "twice").unwrap();
        std::os::unix::fs::symlink(beside.join("kept"), store.join("out")).unwrap();
        fs::write(beside.join("kept"), b"").unwrap();
        fs::write(beside.join("other"), b"").unwrap();
        let code = |name: &Path| check_outside(name).map_err(|error| error.code());
        for name in ["grains.redb", "LOCK", "absent", "reads/0.log", "a/b/c", "../store/x", "out"] {
            assert_eq!(code(&store.join(name)), Err("ERR_CONFLICT"), "{name}");
        }
        for name in ["store/x", "file", "dangling", "../store/x", "absent/../../store/x"] {
            assert_eq!(code(&beside.join(name)), Err("ERR_CONFLICT"), "{name}");
        }
        for name in ["x", "kept", "a/b/c", "out", "twice", "../x"] {
            assert_eq!(code(&beside.join(name)), Ok(()), "{name}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_somebody_put_there_is_not_followed() {
        let dir = tempfile::TempDir::new().unwrap();
        let (file, work) = (dir.path().join("grains.redb"), dir.path().join("years of work"));
        fs::write(&file, b"what is there").unwrap();
        fs::write(&work, b"what must stay").unwrap();
        std::os::unix::fs::symlink(&work, replaced_path(&file)).unwrap();
        clear_replaced(&file).unwrap();
        shred(&replaced_path(&file)).unwrap();
        assert_eq!(fs::read(&work).unwrap(), b"what must stay");
    }
}
