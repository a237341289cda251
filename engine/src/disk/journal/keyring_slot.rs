//! The slots of the keyring of an encrypted store, as a journal keeps them: not in its records, which stay, so that a
//! destroyed one is gone. Knows their numbers and their length, not what is in them.

use std::fmt;

use sha2::{Digest, Sha256};

/// The length of a [`KeyringSlot`] in bytes, as a [`Journal`](super::Journal) keeps it.
pub const KEYRING_SLOT_BYTES: usize = 128;

/// A slot of the keyring of an encrypted store (docs/format.md, "Keyring"): the secret of the store, or of one user,
/// wrapped under the master key. Only who has that key can use it.
///
/// ```
/// use grainstore::journal::{Journal, KEYRING_SLOT_BYTES, KeyringSlot, MemoryJournal, ShardId};
///
/// let slot = KeyringSlot::new(1, [0; KEYRING_SLOT_BYTES]);
/// assert!(slot.is_destroyed());
/// let (_, keyring) = MemoryJournal::default().keyring(ShardId(1), 0..10)?;
/// assert!(keyring.is_empty());
/// # Ok::<(), grainstore::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyringSlot {
    /// Its number: 0 is the store's, and each user's is one higher than the one before.
    pub number: u32,
    /// Its bytes; zeros once its secret was destroyed.
    pub bytes: [u8; KEYRING_SLOT_BYTES],
}

impl KeyringSlot {
    /// A slot, for implementors of [`Journal`](super::Journal).
    #[must_use]
    pub const fn new(number: u32, bytes: [u8; KEYRING_SLOT_BYTES]) -> Self {
        Self { number, bytes }
    }

    /// Returns `true` if its secret was destroyed.
    #[must_use]
    pub fn is_destroyed(&self) -> bool {
        self.bytes.iter().all(|byte| *byte == 0)
    }

    /// The SHA-256 of its bytes.
    pub(crate) fn hash(&self) -> [u8; 32] {
        Sha256::digest(self.bytes).into()
    }
}

impl fmt::Debug for KeyringSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyringSlot({})", self.number)
    }
}
