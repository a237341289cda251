//! Content addresses: the SHA-256 of a whole blob, 64 lowercase hex digits in text (OMS section 5).

use std::fmt;
use std::str::FromStr;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::error::{Error, ErrorKind, Result};

/// The identity of a grain: the SHA-256 of its complete blob.
///
/// Equality is constant-time (OMS 20.4). Ordering is by bytes; it is for sorting, not for checking
/// secrets.
///
/// ```
/// use grainstore_format::ContentAddress;
///
/// let address = ContentAddress::of(b"abc");
/// assert!(address.verify(b"abc").is_ok());
/// assert!(address.verify(b"abd").is_err_and(|error| error.code() == "ERR_INTEGRITY"));
/// assert_eq!(address.to_string().parse::<ContentAddress>()?, address);
/// # Ok::<(), grainstore_format::Error>(())
/// ```
#[derive(Clone, Copy, Eq, PartialOrd, Ord)]
pub struct ContentAddress([u8; 32]);

impl ContentAddress {
    /// The length of an address in bytes.
    pub const LEN: usize = 32;

    /// Computes the address of a blob.
    #[must_use]
    pub fn of(blob: &[u8]) -> Self {
        Self(Sha256::digest(blob).into())
    }

    /// Builds an address from its raw bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the raw bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Checks that `blob` hashes to this address.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if it does not.
    pub fn verify(&self, blob: &[u8]) -> Result<()> {
        if Self::of(blob) == *self {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Integrity, format!("the stored bytes do not hash to {self}")))
    }
}

impl PartialEq for ContentAddress {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl std::hash::Hash for ContentAddress {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl ContentAddress {
    /// Returns the digits of a text that may have the label `sha256:`, as addresses in fields and in CAL do.
    ///
    /// ```
    /// use grainstore_format::ContentAddress;
    ///
    /// assert_eq!(ContentAddress::digits("sha256:0a1b"), "0a1b");
    /// assert_eq!(ContentAddress::digits("0a1b"), "0a1b");
    /// ```
    #[must_use]
    pub fn digits(text: &str) -> &str {
        text.strip_prefix("sha256:").unwrap_or(text)
    }
}

impl FromStr for ContentAddress {
    type Err = Error;

    /// # Errors
    /// `ERR_HASH_LENGTH` unless 64 bytes long, `ERR_HASH_FORMAT` unless lowercase hex.
    fn from_str(text: &str) -> Result<Self> {
        if text.len() != 2 * Self::LEN {
            let message = format!("an address has 64 hex digits, this has {} bytes", text.len());
            return Err(Error::new(ErrorKind::HashLength, message));
        }
        let mut bytes = [0; 32];
        match HEXLOWER.decode_mut(text.as_bytes(), &mut bytes) {
            Ok(_) => Ok(Self(bytes)),
            Err(_) => {
                Err(Error::new(ErrorKind::HashFormat, "an address is lowercase hex (0-9, a-f)"))
            }
        }
    }
}

impl fmt::Display for ContentAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&HEXLOWER.encode(&self.0))
    }
}

impl fmt::Debug for ContentAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ContentAddress({self})")
    }
}

impl<'de> Deserialize<'de> for ContentAddress {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        let digits = std::borrow::Cow::<'de, str>::deserialize(source)?;
        digits.parse().map_err(serde::de::Error::custom)
    }
}

impl Serialize for ContentAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
