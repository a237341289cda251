//! Secrets in memory and keys derived from them. Wiped when dropped, and never shown by `Debug`.
//!
//! Knows no files and no users.

use std::fmt;

use aes_gcm::aead::{Aead, Payload};
use aes_gcm::{Aes256Gcm, KeyInit as _, Nonce};
use hkdf::Hkdf;
use hmac::{Hmac, Mac as _};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::base::error::{Error, ErrorKind, Result};

/// Bytes of an AES-256-GCM nonce.
pub(crate) const NONCE_BYTES: usize = 12;
/// Bytes of an AES-256-GCM tag.
pub(crate) const TAG_BYTES: usize = 16;

/// 32 secret bytes.
#[derive(Clone)]
pub(crate) struct Secret(Zeroizing<[u8; 32]>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl Secret {
    pub(crate) fn new(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// Returns new random bytes.
    ///
    /// # Errors
    /// `ERR_IO` if the system has none.
    pub(crate) fn random() -> Result<Self> {
        let mut bytes = Zeroizing::new([0; 32]);
        fill_random(bytes.as_mut_slice())?;
        Ok(Self(bytes))
    }

    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Derives the key for a purpose: HKDF-SHA256 with this secret as input, a salt, and as info the purpose
    /// with its version (OMS 20.3).
    pub(crate) fn derive(&self, salt: &[u8], purpose: &str) -> Self {
        let mut key = Zeroizing::new([0; 32]);
        let from = Hkdf::<Sha256>::new(Some(salt), self.0.as_slice());
        // 32 bytes are one block of SHA-256, which HKDF always yields.
        let _ = from.expand(purpose.as_bytes(), key.as_mut_slice());
        Self(key)
    }

    /// Returns a cipher with this key.
    pub(crate) fn cipher(&self) -> Cipher {
        Cipher(Box::new(Aes256Gcm::new((&*self.0).into())))
    }

    /// Returns a keyed hash with this key.
    pub(crate) fn token_key(&self) -> TokenKey {
        // HMAC takes a key of any length, so this cannot fail.
        let mac = Hmac::<Sha256>::new_from_slice(self.0.as_slice());
        TokenKey(mac.unwrap_or_else(|_| Hmac::<Sha256>::new(&Default::default())))
    }
}

/// AES-256-GCM under one key.
#[derive(Clone)]
pub(crate) struct Cipher(Box<Aes256Gcm>);

impl Cipher {
    /// Encrypts `body` with `bound` as associated data. Returns a random nonce, the ciphertext and the tag.
    ///
    /// # Errors
    /// `ERR_IO` if the system has no random bytes.
    pub(crate) fn seal(&self, bound: &[u8], body: &[u8]) -> Result<Vec<u8>> {
        let mut nonce = [0; NONCE_BYTES];
        fill_random(&mut nonce)?;
        let payload = Payload { msg: body, aad: bound };
        let sealed = self.0.encrypt(&Nonce::from(nonce), payload);
        let sealed = sealed.map_err(|_| Error::integrity("a row is too long to be encrypted"))?;
        let mut bytes = Vec::with_capacity(NONCE_BYTES + sealed.len());
        bytes.extend_from_slice(&nonce);
        bytes.extend_from_slice(&sealed);
        Ok(bytes)
    }

    /// Decrypts what [`Cipher::seal`] returned. `None` if a bit of it, or of the associated data, has
    /// changed.
    pub(crate) fn open(&self, bound: &[u8], bytes: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE_BYTES>()?;
        self.0.decrypt(&Nonce::from(*nonce), Payload { msg: sealed, aad: bound }).ok()
    }
}

/// HMAC-SHA256 under one key: tokens that cannot be tested without it.
#[derive(Clone)]
pub(crate) struct TokenKey(Hmac<Sha256>);

impl TokenKey {
    /// Returns the token of these parts. Each part but the last is preceded by its length, so that the
    /// boundaries are unambiguous.
    pub(crate) fn token(&self, kind: u8, parts: &[&[u8]]) -> [u8; 32] {
        self.mac(kind, parts).finalize().into_bytes().into()
    }

    /// Returns `true` if this is the token of these parts, in a time that says nothing of it.
    pub(crate) fn is_token(&self, kind: u8, parts: &[&[u8]], token: &[u8; 32]) -> bool {
        self.mac(kind, parts).verify_slice(token).is_ok()
    }

    fn mac(&self, kind: u8, parts: &[&[u8]]) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        mac.update(&[kind]);
        for (at, part) in parts.iter().enumerate() {
            if at + 1 < parts.len() {
                mac.update(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            }
            mac.update(part);
        }
        mac
    }
}

/// Fills a buffer with random bytes of the system.
///
/// # Errors
/// `ERR_IO` if it has none.
pub(crate) fn fill_random(bytes: &mut [u8]) -> Result<()> {
    getrandom::fill(bytes)
        .map_err(|error| Error::new(ErrorKind::Io, format!("no random bytes: {error}")))
}

#[cfg(test)]
mod tests {
    use data_encoding::HEXLOWER;

    use super::*;

    #[test]
    fn derived_keys_and_tokens_have_these_bytes() {
        let secret = Secret::new([7; 32]);
        let derived = secret.derive(&[9; 32], "grainstore data v1");
        assert_eq!(
            HEXLOWER.encode(derived.bytes()),
            "abb77d02b56bae3ed1cd075398f6c862ddecd0bb20fac993c8476df55e0746de"
        );
        let token = secret.token_key().token(3, &[b"ab", b"c"]);
        assert_eq!(
            HEXLOWER.encode(&token),
            "f9b32934bdde9087df0d52312906e65b7f1483f2f19d0c0970d7ab0bc64c01f9"
        );
        assert_ne!(secret.derive(&[9; 32], "grainstore data v2").bytes(), derived.bytes());
        assert_ne!(secret.derive(&[8; 32], "grainstore data v1").bytes(), derived.bytes());
        assert_ne!(secret.token_key().token(3, &[b"a", b"bc"]), token, "a part runs into the next");
        assert_ne!(secret.token_key().token(4, &[b"ab", b"c"]), token);
    }

    #[test]
    fn what_is_sealed_opens_where_it_was_sealed_alone() {
        let cipher = Secret::new([1; 32]).cipher();
        let sealed = cipher.seal(b"row 5", b"body").unwrap();
        assert_eq!(sealed.len(), NONCE_BYTES + 4 + TAG_BYTES);
        assert_eq!(cipher.open(b"row 5", &sealed).unwrap(), b"body");
        assert_eq!(cipher.open(b"row 6", &sealed), None);
        assert_eq!(Secret::new([2; 32]).cipher().open(b"row 5", &sealed), None);
        assert_ne!(cipher.seal(b"row 5", b"body").unwrap(), sealed, "every nonce is a new one");
        for bit in 0..8 * sealed.len() {
            let mut flipped = sealed.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(cipher.open(b"row 5", &flipped), None, "bit {bit}");
        }
    }

    #[test]
    fn a_secret_is_not_shown() {
        assert_eq!(format!("{:?}", Secret::new([0x41; 32])), "Secret(..)");
    }
}
