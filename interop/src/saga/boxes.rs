//! Boxes for X25519 keys (x25519-xsalsa20-poly1305): sealed to a public key, opened with the secret one.
//!
//! Each box has a fresh key of its sender and a fresh nonce. A wallet key of an EVM chain is none of X25519: the caller
//! gives keys. Knows no layer and no vault.

use std::fmt;

use crypto_box::aead::Aead as _;
use crypto_box::{Nonce, PublicKey, SalsaBox, SecretKey};
use data_encoding::BASE64;
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

use super::sign::{bad_key, fill_random, random_secret};
use crate::error::{Error, Result};

/// Bytes of a nonce.
const NONCE_BYTES: usize = 24;

/// An X25519 public key: to whom something is encrypted.
///
/// ```
/// use grainstore_interop::saga::{BoxKey, BoxPublicKey};
///
/// let key = BoxKey::new([7; 32]);
/// let public = key.public_key();
/// assert_eq!(public.to_base64().parse::<BoxPublicKey>()?, public);
/// # Ok::<(), grainstore_interop::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct BoxPublicKey([u8; 32]);

impl BoxPublicKey {
    /// Takes the bytes of a key.
    ///
    /// # Errors
    /// `ERR_KEY` for a key that would make every box open to anyone: zero, or another point of small order.
    pub fn new(bytes: [u8; 32]) -> Result<Self> {
        // The product with any scalar is zero for the points of small order, and for no other.
        let probe = PublicKey::from_bytes(bytes);
        let product = SalsaBox::new(&probe, &SecretKey::from_bytes([1; 32]));
        let zero = SalsaBox::new(&PublicKey::from_bytes([0; 32]), &SecretKey::from_bytes([1; 32]));
        let nonce = Nonce::default();
        let of = |cipher: &SalsaBox| cipher.encrypt(&nonce, &[0_u8; 32][..]).unwrap_or_default();
        if bool::from(of(&product).ct_eq(&of(&zero))) {
            return Err(bad_key("an X25519 public key of small order"));
        }
        Ok(Self(bytes))
    }

    /// The key in base64, as documents have it.
    #[must_use]
    pub fn to_base64(&self) -> String {
        BASE64.encode(&self.0)
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl std::str::FromStr for BoxPublicKey {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let bytes = BASE64.decode(text.as_bytes()).ok().and_then(|bytes| bytes.try_into().ok());
        Self::new(bytes.ok_or_else(|| bad_key("no X25519 public key: 32 bytes in base64"))?)
    }
}

impl fmt::Debug for BoxPublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BoxPublicKey({})", self.to_base64())
    }
}

/// An X25519 secret key: opens what was encrypted to its [`BoxPublicKey`]. Wiped when dropped, never printed.
#[derive(Clone)]
pub struct BoxKey(SecretKey);

impl BoxKey {
    /// Takes the bytes of a key.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Self {
        let bytes = Zeroizing::new(bytes);
        Self(SecretKey::from_bytes(*bytes))
    }

    /// The public key of it.
    #[must_use]
    pub fn public_key(&self) -> BoxPublicKey {
        BoxPublicKey(self.0.public_key().to_bytes())
    }
}

impl fmt::Debug for BoxKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BoxKey(..)")
    }
}

/// A box: what is needed to open it, but the secret key.
#[derive(Debug, Clone)]
pub(super) struct Sealed {
    pub(super) nonce: [u8; NONCE_BYTES],
    pub(super) ephemeral: [u8; 32],
    /// The tag, and the ciphertext.
    pub(super) ciphertext: Vec<u8>,
}

impl Sealed {
    /// Seals bytes to a key.
    ///
    /// # Errors
    /// `ERR_IO` if the system has no random bytes.
    pub(super) fn seal(plain: &[u8], to: &BoxPublicKey) -> Result<Self> {
        let secret = SecretKey::from_bytes(*random_secret()?);
        let mut nonce = [0; NONCE_BYTES];
        fill_random(&mut nonce)?;
        let cipher = SalsaBox::new(&PublicKey::from_bytes(to.0), &secret);
        let ciphertext = cipher
            .encrypt(&Nonce::from(nonce), plain)
            .map_err(|_| Error::limit("too long to be encrypted"))?;
        Ok(Self { nonce, ephemeral: secret.public_key().to_bytes(), ciphertext })
    }

    /// Takes the parts of a box in base64, as documents have them.
    ///
    /// # Errors
    /// `ERR_SCHEMA` if they are none.
    pub(super) fn from_parts(nonce: &str, ephemeral: &str, ciphertext: &str) -> Result<Self> {
        let decoded = |text: &str| BASE64.decode(text.as_bytes()).ok();
        let parts = || {
            Some(Self {
                nonce: decoded(nonce)?.try_into().ok()?,
                ephemeral: decoded(ephemeral)?.try_into().ok()?,
                ciphertext: decoded(ciphertext)?,
            })
        };
        parts().ok_or_else(|| {
            Error::schema("a box has a nonce of 24 bytes, a key of 32 and a ciphertext, in base64")
        })
    }

    /// Opens the box.
    ///
    /// # Errors
    /// `ERR_KEY` if it was sealed to another key, or changed.
    pub(super) fn open(&self, key: &BoxKey) -> Result<Zeroizing<Vec<u8>>> {
        let cipher = SalsaBox::new(&PublicKey::from_bytes(self.ephemeral), &key.0);
        cipher
            .decrypt(&Nonce::from(self.nonce), self.ciphertext.as_slice())
            .map(Zeroizing::new)
            .map_err(|_| bad_key("it was encrypted to another key, or changed since"))
    }
}
