//! Identifiers of signers: W3C DIDs, and the public key inside a `did:key` (OMS 12.2, 22.4).
//!
//! Signatures are not verified here.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use super::keys::{Algorithm, VerifyingKey};
use crate::error::{Error, ErrorKind, Result};
use crate::text::excerpt;

/// A decentralised identifier: `did:`, a method, and a name under that method, without a fragment.
///
/// ```
/// use grainstore_format::{Did, SigningKey};
///
/// let did = SigningKey::ed25519_from_seed(&[7; 32]).did();
/// assert!(did.holds_key() && did.as_str().starts_with("did:key:z6Mk"));
/// let other = Did::of_url("did:web:alice.example#key-1")?;
/// assert_eq!((other.as_str(), other.method()), ("did:web:alice.example", "web"));
/// # Ok::<(), grainstore_format::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Did(String);

/// The multicodec number of each kind of key. It precedes the key as a varint.
const MULTICODECS: [(u64, Algorithm); 2] = [(0xed, Algorithm::EdDsa), (0x1200, Algorithm::Es256)];

/// The length in characters of the longest base58 key accepted. Bounded because decoding takes
/// quadratic time.
const MAX_BASE58_CHARS: usize = 128;

/// The key of a DID, as far as its text gives it.
pub(super) enum KeyInDid {
    /// The key itself.
    Key(VerifyingKey),
    /// A key of a kind this version cannot verify with, by its multicodec number.
    UnsupportedKind(u64),
    /// A `did:key` that contains no valid key, with the reason.
    Malformed(&'static str),
    /// A DID of another method: its key must be resolved.
    NotInDid,
}

impl Did {
    /// The length in bytes of the longest DID.
    pub const MAX_BYTES: usize = 2048;

    /// Parses the DID of a DID URL: the part before the fragment.
    ///
    /// # Errors
    /// `ERR_SCHEMA` if that part is not a DID.
    pub fn of_url(url: &str) -> Result<Self> {
        url.split('#').next().unwrap_or_default().parse()
    }

    /// Returns the `did:key` of a public key.
    #[must_use]
    pub fn of_key(key: &VerifyingKey) -> Self {
        let code = MULTICODECS.iter().find(|(_, algorithm)| *algorithm == key.algorithm());
        let mut bytes = Vec::with_capacity(35);
        write_varint(&mut bytes, code.map_or(0, |(code, _)| *code));
        bytes.extend_from_slice(&key.to_bytes());
        Self(format!("did:key:z{}", bs58::encode(bytes).into_string()))
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the method, such as `key` or `web`.
    #[must_use]
    pub fn method(&self) -> &str {
        self.0.split(':').nth(1).unwrap_or_default()
    }

    /// Whether the key lies in the name, so that nobody has to be asked for it.
    #[must_use]
    pub fn holds_key(&self) -> bool {
        matches!(self.key(), KeyInDid::Key(_))
    }

    /// Returns the key that lies in the name of a `did:key`; `None` for other methods, and for a name without
    /// a key of a known kind.
    ///
    /// ```
    /// use grainstore_format::{Did, SigningKey};
    ///
    /// let key = SigningKey::ed25519_from_seed(&[7; 32]);
    /// assert_eq!(key.did().verifying_key(), Some(key.verifying_key()));
    /// assert_eq!("did:web:alice.example".parse::<Did>()?.verifying_key(), None);
    /// # Ok::<(), grainstore_format::Error>(())
    /// ```
    #[must_use]
    pub fn verifying_key(&self) -> Option<VerifyingKey> {
        match self.key() {
            KeyInDid::Key(key) => Some(key),
            _ => None,
        }
    }

    pub(super) fn key(&self) -> KeyInDid {
        let Some(name) = self.0.strip_prefix("did:key:") else { return KeyInDid::NotInDid };
        let Some(base58) = name.strip_prefix('z').filter(|text| text.len() <= MAX_BASE58_CHARS)
        else {
            return KeyInDid::Malformed("a did:key is z and a key in base58");
        };
        let Ok(bytes) = bs58::decode(base58).into_vec() else {
            return KeyInDid::Malformed("a did:key is z and a key in base58");
        };
        let Some((code, key)) = read_varint(&bytes) else {
            return KeyInDid::Malformed("the kind of key in a did:key is no varint");
        };
        let Some((_, algorithm)) = MULTICODECS.iter().find(|(known, _)| *known == code) else {
            return KeyInDid::UnsupportedKind(code);
        };
        match VerifyingKey::from_bytes(*algorithm, key) {
            Ok(key) => KeyInDid::Key(key),
            Err(_) => KeyInDid::Malformed("the key in the did:key is no key of its kind"),
        }
    }
}

impl FromStr for Did {
    type Err = Error;

    /// # Errors
    /// `ERR_SCHEMA` for anything but `did:method:name` in the characters of W3C DIDs.
    fn from_str(text: &str) -> Result<Self> {
        let refused = || {
            let message = format!("{:?} is no DID, such as did:key:z6Mk...", excerpt(text));
            Error::new(ErrorKind::Schema, message)
        };
        let (method, name) =
            text.strip_prefix("did:").and_then(|rest| rest.split_once(':')).ok_or_else(refused)?;
        let method_fits = !method.is_empty()
            && method.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        if text.len() > Self::MAX_BYTES || !method_fits || !is_method_specific_id(name) {
            return Err(refused());
        }
        Ok(Self(text.to_owned()))
    }
}

/// Returns `true` for letters, digits, `.`, `-`, `_`, `:` and percent-encoded bytes, if the last part
/// is not empty.
fn is_method_specific_id(name: &str) -> bool {
    let mut bytes = name.bytes();
    while let Some(byte) = bytes.next() {
        let fits = match byte {
            b'%' => (0..2).all(|_| bytes.next().is_some_and(|digit| digit.is_ascii_hexdigit())),
            b'.' | b'-' | b'_' | b':' => true,
            _ => byte.is_ascii_alphanumeric(),
        };
        if !fits {
            return false;
        }
    }
    !name.is_empty() && !name.ends_with(':')
}

/// Reads an unsigned varint in its shortest form, and returns it with the bytes that follow.
fn read_varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0;
    for (at, byte) in bytes.iter().enumerate().take(9) {
        number |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            let shortest = at == 0 || *byte != 0;
            return shortest.then(|| (number, bytes.get(at + 1..).unwrap_or_default()));
        }
    }
    None
}

fn write_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(0x80 | u8::try_from(number & 0x7f).unwrap_or_default());
        number >>= 7;
    }
    out.push(u8::try_from(number).unwrap_or_default());
}

impl fmt::Display for Did {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Did {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Did({self})")
    }
}

impl Serialize for Did {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dids_are_told_from_other_text() {
        for good in ["did:web:example.com:agents:bot", "did:x1:a%2Fb", "did:key:z6Mk", "did:a:b::c"]
        {
            assert_eq!(good.parse::<Did>().map(|did| did.to_string()), Ok(good.to_owned()));
        }
        let long = format!("did:a:{}", "b".repeat(Did::MAX_BYTES));
        for bad in [
            "",
            "did",
            "did:",
            "did:key",
            "did:key:",
            "did::x",
            "did:Key:x",
            "did:a:b:",
            "did:a:b c",
            "did:a:b#c",
            "did:a:b/c",
            "did:a:b?c",
            "did:a:%4",
            "did:a:%zz",
            "did:a:ä",
            "DID:a:b",
            &long,
        ] {
            assert_eq!(bad.parse::<Did>().map_err(|e| e.code()), Err("ERR_SCHEMA"), "{bad:?}");
        }
        assert_eq!(Did::of_url("did:a:b#key-1#2").map(|did| did.to_string()), Ok("did:a:b".into()));
    }

    #[test]
    fn varints_have_one_form() {
        for (bytes, expected) in [
            (&[0xed, 0x01, 7][..], Some((0xed, &[7][..]))),
            (&[0x80, 0x24, 7], Some((0x1200, &[7]))),
            (&[0x05], Some((5, &[]))),
            (&[0x00], Some((0, &[]))),
            (&[0xed, 0x81, 0x00], None),
            (&[0x80], None),
            (&[], None),
            (&[0xff; 12], None),
        ] {
            assert_eq!(read_varint(bytes), expected, "{bytes:?}");
            if let Some((number, rest)) = expected {
                let mut again = Vec::new();
                write_varint(&mut again, number);
                assert_eq!([&again[..], rest].concat(), bytes);
            }
        }
    }

    #[test]
    fn what_a_did_key_holds() {
        let of = |bytes: &[u8]| format!("did:key:z{}", bs58::encode(bytes).into_string());
        let kind = |text: &str| match text.parse::<Did>().unwrap().key() {
            KeyInDid::Key(_) => "key",
            KeyInDid::UnsupportedKind(_) => "other",
            KeyInDid::Malformed(_) => "malformed",
            KeyInDid::NotInDid => "elsewhere",
        };
        let with = |prefix: &[u8], key: &[u8]| of(&[prefix, key].concat());
        // The base point of Ed25519 (RFC 8032 5.1): y = 4/5.
        let point = [&[0x58][..], &[0x66; 31]].concat();
        for (did, expected) in [
            ("did:web:example.com".to_owned(), "elsewhere"),
            ("did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK".to_owned(), "key"),
            (with(&[0xed, 1], &point), "key"),
            (with(&[0xed, 1], &point[..31]), "malformed"),
            (with(&[0xed, 1], &[&point[..], &[0]].concat()), "malformed"),
            // Not minimal: the same key would have two names.
            (with(&[0xed, 0x81, 0], &point), "malformed"),
            // A point of small order, for which forged signatures verify.
            (with(&[0xed, 1], &[&[1][..], &[0; 31]].concat()), "malformed"),
            // y = 2^255 - 19, a non-canonical encoding of 0.
            (with(&[0xed, 1], &[&[0xed][..], &[0xff; 30], &[0x7f]].concat()), "malformed"),
            // secp256k1, X25519, P-384.
            (with(&[0xe7, 1], &[2; 33]), "other"),
            (with(&[0xec, 1], &point), "other"),
            (with(&[0x81, 0x24], &[2; 49]), "other"),
            // An uncompressed point would be a second name as well.
            (with(&[0x80, 0x24], &[4; 65]), "malformed"),
            (with(&[0x80, 0x24], &[&[2][..], &[0xff; 32]].concat()), "malformed"),
            (with(&[0x80, 0x24], &[2; 33]), "key"),
            ("did:key:z".to_owned(), "malformed"),
            ("did:key:f00".to_owned(), "malformed"),
            ("did:key:z0OIl".to_owned(), "malformed"),
            (format!("did:key:z{}", "1".repeat(2000)), "malformed"),
        ] {
            assert_eq!(kind(&did), expected, "{did}");
        }
    }
}
