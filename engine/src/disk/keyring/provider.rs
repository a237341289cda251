//! Sources of the master key of an encrypted store: bytes, a file readable by its owner only, a passphrase,
//! or a key service of the host.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use argon2::{Algorithm, Argon2, Params, Version};
use zeroize::Zeroizing;

use super::secret::{Secret, fill_random};
use crate::base::error::{Error, ErrorKind, Result};
use crate::disk::directory;

/// The master key of a store, from a [`KeyProvider`]: 32 bytes, wiped from memory when dropped, and never
/// shown.
#[derive(Clone)]
pub struct MasterKey(pub(crate) Secret);

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MasterKey(..)")
    }
}

/// The derivation of the master key from what the host has, which a [`KeyProvider`] is told. Stored in the
/// keyring unencrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Derivation {
    /// The provider's bytes are the key.
    Raw,
    /// Argon2id (RFC 9106), version 0x13.
    Argon2id {
        /// Random bytes, one salt for each store.
        salt: [u8; 16],
        /// Memory in KiB.
        memory_kib: u32,
        /// Number of passes.
        passes: u32,
        /// Number of lanes.
        lanes: u32,
    },
}

/// A source of the master key, asked when a store is opened.
///
/// ```
/// # use grainstore::prelude::*;
/// use grainstore::{Derivation, KeyProvider, MasterKey};
///
/// #[derive(Debug)]
/// struct FromVault;
///
/// impl KeyProvider for FromVault {
///     fn master_key(&self, _: &Derivation) -> grainstore::Result<MasterKey> {
///         Ok(MasterKey::new([7; 32])) // a real one asks the vault for it
///     }
/// }
///
/// # let dir = tempfile::tempdir()?;
/// let store = Store::open(dir.path(), &OpenOptions::new().create(true).key(FromVault))?;
/// assert!(store.is_encrypted());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait KeyProvider: fmt::Debug + Send + Sync {
    /// Returns how the key of a new store is derived.
    ///
    /// # Errors
    /// `ERR_IO` if there are no random bytes for a salt.
    fn derivation(&self) -> Result<Derivation> {
        Ok(Derivation::Raw)
    }

    /// The file it comes from, where there is one: a store is given no key that lies in its own directory.
    fn file(&self) -> Option<&Path> {
        None
    }

    /// Returns the key, derived as it was when the store was created.
    ///
    /// # Errors
    /// `ERR_KEY` if there is no key, or the provider does not support this derivation.
    fn master_key(&self, derivation: &Derivation) -> Result<MasterKey>;
}

impl MasterKey {
    /// Returns a key of these bytes.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(Secret::new(bytes))
    }

    /// Returns a new random key.
    ///
    /// # Errors
    /// `ERR_IO` if the system has no random bytes.
    pub fn random() -> Result<Self> {
        Secret::random().map(Self)
    }
}

impl KeyProvider for MasterKey {
    fn master_key(&self, derivation: &Derivation) -> Result<MasterKey> {
        match derivation {
            Derivation::Raw => Ok(self.clone()),
            Derivation::Argon2id { .. } => {
                Err(key_error("this store is opened with a passphrase, not with a key"))
            }
        }
    }
}

/// A file of 32 raw bytes that only its owner may read.
///
/// ```
/// # use grainstore::prelude::*;
/// use grainstore::KeyFile;
///
/// # let dir = tempfile::tempdir()?;
/// # let (path, file) = (dir.path().join("memory"), dir.path().join("memory.key"));
/// let key = KeyFile::create(&file)?;
/// Store::open(&path, &OpenOptions::new().create(true).key(key))?.close()?;
///
/// let refused = Store::open(&path, &OpenOptions::new());
/// assert!(refused.is_err_and(|error| error.code() == "ERR_KEY"));
/// Store::open(&path, &OpenOptions::new().key(KeyFile::new(&file)))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct KeyFile(PathBuf);

impl KeyFile {
    /// Refers to a key file, which is read when the store is opened.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Writes a new random key into a new file that only its owner may read.
    ///
    /// # Errors
    /// `ERR_CONFLICT` for a file within a store; `ERR_IO`, also where the file exists.
    pub fn create(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        directory::check_outside(&path)?;
        let key = MasterKey::random()?;
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&path)?;
        file.write_all(key.0.bytes())?;
        file.sync_all()?;
        directory::sync_directory(
            path.parent().filter(|at| !at.as_os_str().is_empty()).unwrap_or(Path::new(".")),
        )?;
        Ok(Self(path))
    }
}

impl KeyProvider for KeyFile {
    fn file(&self) -> Option<&Path> {
        Some(&self.0)
    }

    fn master_key(&self, derivation: &Derivation) -> Result<MasterKey> {
        check_private(&self.0)?;
        let bytes = Zeroizing::new(fs::read(&self.0).map_err(|error| {
            key_error(format!("the key file {} cannot be read: {error}", self.0.display()))
        })?);
        let key: [u8; 32] = bytes.as_slice().try_into().map_err(|_| {
            let length = bytes.len();
            key_error(format!("the key file {} has {length} bytes, not 32", self.0.display()))
        })?;
        MasterKey::new(key).master_key(derivation)
    }
}

/// A passphrase. The key is derived by Argon2id, with a salt and parameters stored in the keyring.
///
/// ```
/// # use grainstore::prelude::*;
/// use grainstore::Passphrase;
///
/// # let dir = tempfile::tempdir()?;
/// let key = Passphrase::new("a long sentence that nobody guesses");
/// # let key = key.cost(64, 1, 1);
/// let store = Store::open(dir.path(), &OpenOptions::new().create(true).key(key))?;
/// assert!(store.is_encrypted());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Passphrase {
    text: Zeroizing<String>,
    cost: (u32, u32, u32),
    /// The key that was derived last, and from what: who asks for it again does not wait again.
    derived: Arc<Mutex<Option<Derived>>>,
}

/// A key, and what it was derived by.
type Derived = (Derivation, Zeroizing<[u8; 32]>);

impl fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Passphrase(..)")
    }
}

impl Passphrase {
    /// 64 MiB, three passes, one lane.
    const DEFAULT_COST: (u32, u32, u32) = (64 << 10, 3, 1);

    /// A passphrase, with 64 MiB, three passes and one lane for a new store.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        let text = Zeroizing::new(text.into());
        Self { text, cost: Self::DEFAULT_COST, derived: Arc::default() }
    }

    /// Sets the cost for a new store: memory in KiB, passes, lanes.
    #[must_use]
    pub fn cost(self, memory_kib: u32, passes: u32, lanes: u32) -> Self {
        Self { cost: (memory_kib, passes, lanes), ..self }
    }
}

impl KeyProvider for Passphrase {
    fn derivation(&self) -> Result<Derivation> {
        let mut salt = [0; 16];
        fill_random(&mut salt)?;
        let (memory_kib, passes, lanes) = self.cost;
        Ok(Derivation::Argon2id { salt, memory_kib, passes, lanes })
    }

    fn master_key(&self, derivation: &Derivation) -> Result<MasterKey> {
        let Derivation::Argon2id { salt, memory_kib, passes, lanes } = *derivation else {
            return Err(key_error("this store is opened with a key, not with a passphrase"));
        };
        if self.text.is_empty() {
            return Err(key_error("the passphrase is empty"));
        }
        // The parameters of a damaged or foreign keyring must not use up all memory, or run for days.
        let filled = u64::from(memory_kib).saturating_mul(passes.into());
        if memory_kib > MAX_MEMORY_KIB || filled > MAX_TOTAL_KIB {
            return Err(key_error("the passphrase of this store would take too much to check"));
        }
        let params = Params::new(memory_kib, passes, lanes, Some(32));
        let params =
            params.map_err(|error| key_error(format!("the cost is impossible: {error}")))?;
        // Held while it is derived: of several threads one derives it.
        let mut derived = self.derived.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((from, key)) = &*derived
            && from == derivation
        {
            return Ok(MasterKey::new(**key));
        }
        let mut key = Zeroizing::new([0; 32]);
        let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        argon
            .hash_password_into(self.text.as_bytes(), &salt, &mut *key)
            .map_err(|error| key_error(format!("the passphrase cannot be used: {error}")))?;
        let master = MasterKey::new(*key);
        *derived = Some((*derivation, key));
        Ok(master)
    }
}

/// Limits on a stored derivation: KiB of memory, and KiB over all of its passes.
const MAX_MEMORY_KIB: u32 = 1 << 20;
const MAX_TOTAL_KIB: u64 = 4 << 20;

/// Refuses a key file that users other than its owner may read.
#[cfg(unix)]
fn check_private(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let Ok(meta) = fs::metadata(path) else { return Ok(()) };
    let mode = meta.permissions().mode() & 0o777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    let message = format!("the key file {} can be read by others (mode {mode:o})", path.display());
    Err(key_error(message).with_hint("chmod 600 it; if others may have read it, rotate the key"))
}

#[cfg(not(unix))]
fn check_private(_: &Path) -> Result<()> {
    Ok(())
}

/// `ERR_KEY` with a message.
pub(super) fn key_error(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Format(grainstore_format::ErrorKind::Key), message)
        .with_hint("give the key or the passphrase it opens with")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_file_is_its_owners_alone_and_has_32_bytes() {
        let dir = tempfile::TempDir::new().unwrap();
        let path = dir.path().join("key");
        let file = KeyFile::create(&path).unwrap();
        let key = file.master_key(&Derivation::Raw).unwrap();
        assert_eq!(fs::read(&path).unwrap(), key.0.bytes());
        assert_eq!(KeyFile::create(&path).map_err(|e| e.code()).err(), Some("ERR_IO"));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            for (open, code) in [(0o644, Some("ERR_KEY")), (0o640, Some("ERR_KEY")), (0o400, None)]
            {
                mode(open);
                assert_eq!(file.master_key(&Derivation::Raw).err().map(|e| e.code()), code);
            }
            mode(0o600);
        }
        fs::write(&path, [1; 31]).unwrap();
        assert_eq!(file.master_key(&Derivation::Raw).err().map(|e| e.code()), Some("ERR_KEY"));
    }

    #[test]
    fn a_passphrase_gives_the_key_of_its_salt_and_cost() {
        let phrase = Passphrase::new("correct horse").cost(64, 2, 1);
        let derivation = phrase.derivation().unwrap();
        let key = phrase.master_key(&derivation).unwrap();
        assert_eq!(key.0.bytes(), phrase.master_key(&derivation).unwrap().0.bytes());
        let other = Passphrase::new("correct hors").master_key(&derivation).unwrap();
        assert_ne!(key.0.bytes(), other.0.bytes());
        let another = phrase.master_key(&phrase.derivation().unwrap()).unwrap();
        assert_ne!(key.0.bytes(), another.0.bytes(), "every store has a salt of its own");
        let code = |derivation| phrase.master_key(&derivation).err().map(|e| e.code());
        assert_eq!(code(Derivation::Raw), Some("ERR_KEY"));
        let greedy =
            Derivation::Argon2id { salt: [0; 16], memory_kib: u32::MAX, passes: 1, lanes: 1 };
        assert_eq!(code(greedy), Some("ERR_KEY"));
        assert_eq!(format!("{phrase:?} {key:?}"), "Passphrase(..) MasterKey(..)");
    }
}
