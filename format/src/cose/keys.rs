//! Keys for signing and verifying, and the trait through which a host supplies the keys of other DIDs.
//!
//! Ed25519 is verified strictly: points of small order and non-canonical encodings of points or scalars
//! are rejected. ES256 accepts both values of `s` that verify, as RFC 9053 does, so signature bytes
//! must not be used as an identifier. Secret keys are zeroized on drop and never printed.

use std::fmt;

use ed25519_dalek as ed25519;
use p256::ecdsa;
use p256::ecdsa::signature::{Signer as _, Verifier as _};

use super::did::Did;
use crate::error::{Error, ErrorKind, Result};

/// A signature algorithm of OMS 9.1, that of a [`SigningKey`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Deserialize)]
pub enum Algorithm {
    /// Ed25519: -8 or -19 in COSE.
    #[default]
    #[serde(rename = "ed25519")]
    EdDsa,
    /// ECDSA on P-256 with SHA-256: -7 in COSE.
    #[serde(rename = "p256")]
    Es256,
}

/// Resolves the keys of DIDs that do not contain their own.
///
/// ```
/// use grainstore_format::{Did, DidResolver, OfflineResolver, SigningKey, VerifyingKey};
///
/// struct Team(VerifyingKey);
///
/// impl DidResolver for Team {
///     fn resolve(&self, did: &Did) -> Option<VerifyingKey> {
///         (did.as_str() == "did:web:alice.example").then(|| self.0.clone())
///     }
/// }
///
/// let team = Team(SigningKey::ed25519_from_seed(&[7; 32]).verifying_key());
/// let did: Did = "did:web:alice.example".parse()?;
/// assert!(team.resolve(&did).is_some() && OfflineResolver.resolve(&did).is_none());
/// # Ok::<(), grainstore_format::Error>(())
/// ```
pub trait DidResolver {
    /// Returns the current verification key of a DID, or `None` if it cannot be found. Never called for
    /// `did:key`, which contains its key.
    fn resolve(&self, did: &Did) -> Option<VerifyingKey>;

    /// Returns why [`resolve`](Self::resolve) found no key of a DID, in a few words for a person, if that is known. It
    /// is asked right after, becomes part of the reason of a verdict, and looks nothing up itself.
    fn why_not(&self, did: &Did) -> Option<String> {
        let _ = did;
        None
    }
}

/// A [`DidResolver`] that finds no key, for use without a network. Signatures by a `did:key` can still
/// be verified.
#[derive(Debug, Clone, Copy, Default)]
pub struct OfflineResolver;

impl DidResolver for OfflineResolver {
    fn resolve(&self, _: &Did) -> Option<VerifyingKey> {
        None
    }
}

/// A public key, the other half of a [`SigningKey`].
#[derive(Clone, PartialEq, Eq)]
pub struct VerifyingKey(PublicKey);

#[derive(Clone, PartialEq, Eq)]
enum PublicKey {
    Ed25519(ed25519::VerifyingKey),
    P256(ecdsa::VerifyingKey),
}

impl VerifyingKey {
    /// Builds an Ed25519 key from its 32 bytes (RFC 8032 5.1.5).
    ///
    /// # Errors
    /// `ERR_KEY` for bytes that are not a point, a point of small order, or a non-canonical encoding.
    pub fn ed25519(bytes: &[u8; 32]) -> Result<Self> {
        let key = ed25519::VerifyingKey::from_bytes(bytes).map_err(|_| invalid_key())?;
        let [low, middle @ .., high] = bytes;
        let beyond_prime =
            *low >= 0xed && high & 0x7f == 0x7f && middle.iter().all(|byte| *byte == 0xff);
        if key.is_weak() || beyond_prime {
            return Err(invalid_key());
        }
        Ok(Self(PublicKey::Ed25519(key)))
    }

    /// Builds a P-256 key from its compressed point of 33 bytes (SEC 1, 2.3.3).
    ///
    /// # Errors
    /// `ERR_KEY` for anything else.
    pub fn p256(point: &[u8; 33]) -> Result<Self> {
        let key = ecdsa::VerifyingKey::from_sec1_bytes(point).map_err(|_| invalid_key())?;
        Ok(Self(PublicKey::P256(key)))
    }

    pub(super) fn from_bytes(algorithm: Algorithm, bytes: &[u8]) -> Result<Self> {
        match algorithm {
            Algorithm::EdDsa => Self::ed25519(bytes.try_into().map_err(|_| invalid_key())?),
            Algorithm::Es256 => Self::p256(bytes.try_into().map_err(|_| invalid_key())?),
        }
    }

    /// Returns the algorithm it verifies.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        match self.0 {
            PublicKey::Ed25519(_) => Algorithm::EdDsa,
            PublicKey::P256(_) => Algorithm::Es256,
        }
    }

    /// Returns the bytes it can be rebuilt from: 32 for Ed25519, 33 for P-256.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        match &self.0 {
            PublicKey::Ed25519(key) => key.to_bytes().to_vec(),
            PublicKey::P256(key) => key.to_sec1_point(true).as_bytes().to_vec(),
        }
    }

    pub(super) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        match &self.0 {
            PublicKey::Ed25519(key) => ed25519::Signature::from_slice(signature)
                .is_ok_and(|signature| key.verify_strict(message, &signature).is_ok()),
            PublicKey::P256(key) => ecdsa::Signature::from_slice(signature)
                .is_ok_and(|signature| key.verify(message, &signature).is_ok()),
        }
    }
}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VerifyingKey({})", Did::of_key(self))
    }
}

/// A secret key, zeroized on drop.
///
/// ```
/// use grainstore_format::{Algorithm, SigningKey, VerifyingKey};
///
/// let key = SigningKey::ed25519_from_seed(&[7; 32]);
/// assert_eq!(key.algorithm(), Algorithm::EdDsa);
/// assert_eq!(key.verifying_key().to_bytes().len(), 32);
/// assert_eq!(VerifyingKey::ed25519(&[0; 32]).map_err(|error| error.code()), Err("ERR_KEY"));
/// # Ok::<(), grainstore_format::Error>(())
/// ```
pub struct SigningKey(SecretKey);

enum SecretKey {
    Ed25519(ed25519::SigningKey),
    P256(ecdsa::SigningKey),
}

impl SigningKey {
    /// Builds an Ed25519 key from its seed (RFC 8032 5.1.5).
    #[must_use]
    pub fn ed25519_from_seed(seed: &[u8; 32]) -> Self {
        Self(SecretKey::Ed25519(ed25519::SigningKey::from_bytes(seed)))
    }

    /// Builds a P-256 key from a big-endian scalar.
    ///
    /// # Errors
    /// `ERR_KEY` for zero, and for a scalar that is not below the order of the group.
    pub fn p256_from_bytes(scalar: &[u8; 32]) -> Result<Self> {
        let key = ecdsa::SigningKey::from_slice(scalar).map_err(|_| {
            let message = "these bytes are no secret key of P-256";
            Error::new(ErrorKind::Key, message).with_hint(
                "such a key is a number from 1 to below the order of the group; make one at random",
            )
        })?;
        Ok(Self(SecretKey::P256(key)))
    }

    /// Returns the algorithm it signs with.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        match self.0 {
            SecretKey::Ed25519(_) => Algorithm::EdDsa,
            SecretKey::P256(_) => Algorithm::Es256,
        }
    }

    /// Returns the public key.
    #[must_use]
    pub fn verifying_key(&self) -> VerifyingKey {
        VerifyingKey(match &self.0 {
            SecretKey::Ed25519(key) => PublicKey::Ed25519(key.verifying_key()),
            SecretKey::P256(key) => PublicKey::P256(*key.verifying_key()),
        })
    }

    /// Returns the `did:key` of the public key.
    #[must_use]
    pub fn did(&self) -> Did {
        Did::of_key(&self.verifying_key())
    }

    /// Signs a message and returns the 64 bytes of the signature. Both algorithms are deterministic
    /// (RFC 8032, RFC 6979).
    pub(super) fn sign(&self, message: &[u8]) -> Vec<u8> {
        match &self.0 {
            SecretKey::Ed25519(key) => key.sign(message).to_bytes().to_vec(),
            SecretKey::P256(key) => {
                let signature: ecdsa::Signature = key.sign(message);
                signature.to_bytes().to_vec()
            }
        }
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey(of {})", self.did())
    }
}

fn invalid_key() -> Error {
    Error::new(ErrorKind::Key, "these bytes are no key of their kind")
        .with_hint("give 32 bytes for Ed25519, and a compressed point of 33 for P-256")
}

#[cfg(test)]
mod tests {
    use data_encoding::HEXLOWER;

    use super::*;

    fn bytes<const N: usize>(hex: &str) -> [u8; N] {
        HEXLOWER.decode(hex.as_bytes()).unwrap().try_into().unwrap()
    }

    #[test]
    fn ed25519_is_that_of_rfc_8032() {
        // Section 7.1, test 2.
        let key = SigningKey::ed25519_from_seed(&bytes(
            "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        ));
        let public = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";
        assert_eq!(HEXLOWER.encode(&key.verifying_key().to_bytes()), public);
        let signature = "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da\
                         085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00";
        assert_eq!(HEXLOWER.encode(&key.sign(&[0x72])), signature);
        assert!(key.verifying_key().verifies(&[0x72], &bytes::<64>(signature)));
    }

    #[test]
    fn p256_is_that_of_rfc_6979() {
        // Appendix A.2.5, SHA-256 of "sample".
        let key = SigningKey::p256_from_bytes(&bytes(
            "c9afa9d845ba75166b5c215767b1d6934e50c3db36e89b127b8a622b120f6721",
        ))
        .unwrap();
        let signature = "efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716\
                         f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8";
        assert_eq!(HEXLOWER.encode(&key.sign(b"sample")), signature);
        assert!(key.verifying_key().verifies(b"sample", &bytes::<64>(signature)));
    }

    #[test]
    fn either_s_of_p256_verifies_and_a_second_scalar_of_ed25519_does_not() {
        let order = "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551";
        let key = SigningKey::p256_from_bytes(&[7; 32]).unwrap();
        let signature = key.sign(b"m");
        let (r, s) = signature.split_at(32);
        let other = minus(&bytes(order), s.try_into().unwrap());
        assert!(key.verifying_key().verifies(b"m", &[r, &other].concat()));
        // s + L, a second encoding of the same scalar modulo L.
        let l = "edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010";
        let key = SigningKey::ed25519_from_seed(&[7; 32]);
        let mut signature = key.sign(b"m");
        let mut carry = 0;
        for (byte, add) in signature[32..].iter_mut().zip(bytes::<32>(l)) {
            let sum = u16::from(*byte) + u16::from(add) + carry;
            (*byte, carry) = (u8::try_from(sum & 0xff).unwrap(), sum >> 8);
        }
        assert!(!key.verifying_key().verifies(b"m", &signature));
    }

    /// Returns the difference of two big-endian numbers.
    fn minus(a: &[u8; 32], b: [u8; 32]) -> [u8; 32] {
        let mut out = *a;
        let mut borrow = 0;
        for (byte, take) in out.iter_mut().zip(b).rev() {
            let difference = i16::from(*byte) - i16::from(take) - borrow;
            borrow = i16::from(difference < 0);
            *byte = u8::try_from(difference.rem_euclid(256)).unwrap();
        }
        out
    }

    #[test]
    fn secrets_are_not_printed_and_bad_scalars_are_refused() {
        let key = SigningKey::ed25519_from_seed(&[0x41; 32]);
        assert_eq!(format!("{key:?}"), format!("SigningKey(of {})", key.did()));
        for bad in [[0; 32], [0xff; 32]] {
            assert_eq!(
                SigningKey::p256_from_bytes(&bad).map_err(|e| e.code()).err(),
                Some("ERR_KEY")
            );
        }
    }
}
