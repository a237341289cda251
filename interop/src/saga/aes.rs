//! AES-256-GCM as the vault uses it: a nonce of 12 bytes, the tag apart, no associated data.

use aes_gcm::aead::Aead as _;
use aes_gcm::{Aes256Gcm, KeyInit as _, Nonce};
use zeroize::Zeroizing;

use super::sign::fill_random;
use crate::error::{Error, Result};

/// Bytes of a nonce.
pub(super) const NONCE_BYTES: usize = 12;
/// Bytes of a tag.
pub(super) const TAG_BYTES: usize = 16;

/// A secret key of 32 bytes.
pub(super) type SecretBytes = Zeroizing<[u8; 32]>;

/// What was encrypted.
#[derive(Debug, Clone)]
pub(super) struct Encrypted {
    pub(super) nonce: [u8; NONCE_BYTES],
    pub(super) ciphertext: Vec<u8>,
    pub(super) tag: [u8; TAG_BYTES],
}

/// Encrypts bytes with a fresh nonce.
///
/// # Errors
/// `ERR_IO` if the system has no random bytes; `ERR_LIMIT` for too many.
pub(super) fn encrypt(key: &SecretBytes, plain: &[u8]) -> Result<Encrypted> {
    let mut nonce = [0; NONCE_BYTES];
    fill_random(&mut nonce)?;
    let too_long = || Error::limit("too long to be encrypted");
    let mut ciphertext = Aes256Gcm::new((&**key).into())
        .encrypt(&Nonce::from(nonce), plain)
        .map_err(|_| too_long())?;
    let at = ciphertext.len().saturating_sub(TAG_BYTES);
    let tag = ciphertext.split_off(at).try_into().map_err(|_| too_long())?;
    Ok(Encrypted { nonce, ciphertext, tag })
}

/// Decrypts; `None` if the key is another, or a bit has changed.
pub(super) fn decrypt(key: &SecretBytes, from: &Encrypted) -> Option<Zeroizing<Vec<u8>>> {
    let sealed = [from.ciphertext.as_slice(), &from.tag].concat();
    let nonce = Nonce::from(from.nonce);
    Aes256Gcm::new((&**key).into()).decrypt(&nonce, sealed.as_slice()).ok().map(Zeroizing::new)
}
