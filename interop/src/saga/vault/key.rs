//! The key that a vault is opened with, and the one derived from it.

use std::fmt;

use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::saga::aes::SecretBytes;

/// Opens and changes the vault of its owner: the private key of their wallet. Wiped when dropped, never printed, never
/// stored.
///
/// ```
/// use grainstore_interop::saga::VaultKey;
///
/// let key = VaultKey::from_wallet_key([0x11; 32]);
/// assert_eq!(format!("{key:?}"), "VaultKey(..)");
/// ```
#[derive(Clone)]
pub struct VaultKey(Zeroizing<[u8; 32]>);

impl VaultKey {
    /// Takes the private key of a wallet.
    #[must_use]
    pub fn from_wallet_key(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// Derives the master key of a vault: HKDF-SHA256 with its salt and its `info`.
    pub(crate) fn master(&self, salt: &[u8], info: &str) -> SecretBytes {
        let mut key = Zeroizing::new([0; 32]);
        // 32 bytes are one block of SHA-256, which HKDF always yields.
        let _ = Hkdf::<Sha256>::new(Some(salt), self.0.as_slice())
            .expand(info.as_bytes(), key.as_mut_slice());
        key
    }
}

impl fmt::Debug for VaultKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("VaultKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::VaultKey;

    #[test]
    fn the_master_key_is_that_of_the_vector() {
        let key = VaultKey::from_wallet_key([0x11; 32]).master(&[0x22; 32], "saga-vault-v1");
        let hex = data_encoding::HEXLOWER.encode(key.as_slice());
        assert_eq!(hex, "b54364ce2229f8a2a4c491a1d58ad268e65f04b9ee6325c0ab3bdfa00e1c9101");
    }
}
