//! A signed grain: the COSE_Sign1 envelope around its blob (OMS 9.1, 9.2).
//!
//! The address is that of the blob inside, whose signed flag is set. Signing a blob whose flag is clear
//! sets the flag and so changes the address.

use std::ops::Range;

use super::keys::{DidResolver, SigningKey};
use super::sign1::{self, Sign1, kid_of};
use super::verdict::{SignatureVerdict, verify_sign1};
use crate::address::ContentAddress;
use crate::error::{Error, ErrorKind, Result, corrupt};
use crate::grain::{Blob, DecodeOptions, Grain};
use crate::header::{Flags, Header};
use crate::profile::DeviceProfile;
use crate::wire::Encoding;

/// A COSE_Sign1 with a blob as its payload. The bytes are kept exactly as received.
///
/// ```
/// use grainstore_format::{Encoding, Envelope, EpochMs, EventBuilder};
/// use grainstore_format::{OfflineResolver, SigningKey, sign};
///
/// let grain = EventBuilder::new(EpochMs::new(1_768_471_200_000), "alice said hello").build()?;
/// let blob = grain.encode(Encoding::MessagePack)?;
/// let key = SigningKey::ed25519_from_seed(&[7; 32]);
/// let bytes = sign(blob.bytes(), &key, None)?.into_bytes();
///
/// let envelope = Envelope::parse(bytes)?;
/// assert_eq!(envelope.verify(&OfflineResolver).did(), Some(&key.did()));
/// assert_eq!(envelope.grain()?.fields(), grain.fields());
/// # Ok::<(), grainstore_format::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    bytes: Vec<u8>,
    /// The payload, which is not checked to be a blob.
    payload: Blob,
    /// The offset of the payload in the bytes, or `None` if it is not contiguous there.
    payload_at: Option<usize>,
}

/// Signs a blob and wraps it in an [`Envelope`]. If its signed flag is clear, the flag is set first,
/// which changes the address.
///
/// `iat` is the time of signing in epoch seconds. It is not signed and is no evidence.
///
/// # Errors
/// The errors of [`Grain::decode`] for the blob; `ERR_KEY` for an encrypted payload while the flag is
/// clear, since the header is authenticated with the ciphertext and cannot be changed.
pub fn sign(blob: &[u8], key: &SigningKey, iat: Option<i64>) -> Result<Envelope> {
    let (header, _) = Header::read(blob)?;
    let mut blob = blob.to_vec();
    if !header.flags.contains(Flags::SIGNED) {
        if header.flags.contains(Flags::ENCRYPTED) {
            let message = "the payload was encrypted together with a header that says unsigned";
            return Err(Error::new(ErrorKind::Key, message).at("flags"));
        }
        if let Some(flags) = blob.get_mut(1) {
            *flags = header.flags.with(Flags::SIGNED).byte();
        }
    }
    match Grain::decode_with(&blob, &ENVELOPED) {
        // An encrypted payload may be signed without the key that decrypts it.
        Err(error) if error.kind() != ErrorKind::Key => return Err(error),
        _ => {}
    }
    Envelope::parse(sign1::write(&blob, key, Some(content_type(&header)), iat)?)
}

const ENVELOPED: DecodeOptions<'static> =
    DecodeOptions { profile: DeviceProfile::EXTENDED, key: None, enveloped: true };

impl Envelope {
    /// Bytes an envelope may add to a blob.
    pub const MAX_WRAPPER_BYTES: usize = 64 << 10;
    /// The length in bytes of the largest envelope.
    pub const MAX_BYTES: usize = DeviceProfile::EXTENDED.max_blob_bytes + Self::MAX_WRAPPER_BYTES;

    /// Parses a COSE_Sign1, tagged or not, with its payload inside. Deviations in form are accepted
    /// here, and the signature is not checked; [`Envelope::verify`] checks both.
    ///
    /// # Errors
    /// `ERR_TOO_LARGE`; `ERR_CORRUPT` for bytes that are not a COSE_Sign1, or for one without a
    /// payload.
    pub fn parse(bytes: Vec<u8>) -> Result<Self> {
        if bytes.len() > Self::MAX_BYTES {
            let message = format!("an envelope has at most {} bytes", Self::MAX_BYTES);
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        let sign1 = Sign1::read(&bytes)?;
        let payload = sign1.payload.ok_or_else(|| {
            corrupt("the COSE_Sign1 has no payload").with_hint(
                "this is a proof, not a signed grain: it goes beside the call it is for (--cose), \
                 and holds for what that call does to that grain alone",
            )
        })?;
        if bytes.len().saturating_sub(payload.len()) > Self::MAX_WRAPPER_BYTES {
            let message = format!("at most {} bytes stand around a blob", Self::MAX_WRAPPER_BYTES);
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        let payload = Blob::from_bytes(payload.into_owned());
        let payload_at = sign1.payload_at.map(|at| at.start);
        Ok(Self { bytes, payload, payload_at })
    }

    /// Returns the length of the envelope at the start of these bytes, and the range of the payload in
    /// it.
    ///
    /// # Errors
    /// `ERR_CORRUPT` if no envelope with a contiguous payload begins here.
    pub(crate) fn extent(bytes: &[u8]) -> Result<(usize, Range<usize>)> {
        let (sign1, taken) = Sign1::read_first(bytes)?;
        let payload = sign1.payload_at.ok_or_else(|| corrupt("the COSE_Sign1 has no payload"))?;
        Ok((taken, payload))
    }

    /// Rebuilds an envelope from the bytes before its blob, the blob, and the bytes after it.
    ///
    /// # Errors
    /// As [`Envelope::parse`]; `ERR_CORRUPT` if the payload of the result is not this blob.
    pub fn from_parts(prefix: &[u8], blob: &[u8], suffix: &[u8]) -> Result<Self> {
        let envelope = Self::parse([prefix, blob, suffix].concat())?;
        match envelope.wrapper_parts() {
            Some((before, _)) if before == prefix && envelope.payload.bytes() == blob => {
                Ok(envelope)
            }
            _ => Err(corrupt("these bytes do not stand around this blob in a COSE_Sign1")),
        }
    }

    /// Returns the bytes of the COSE_Sign1.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the bytes of the COSE_Sign1, owned.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Returns the blob inside.
    ///
    /// # Errors
    /// `ERR_TOO_LARGE`, `ERR_TOO_SHORT`, `ERR_VERSION`, `ERR_UNKNOWN_TYPE`; `ERR_SIGNED_MISMATCH` if
    /// its signed flag is clear.
    pub fn blob(&self) -> Result<&[u8]> {
        DeviceProfile::EXTENDED.check_size(self.payload.bytes().len())?;
        Header::split_enveloped(self.payload.bytes(), true)?;
        Ok(self.payload.bytes())
    }

    /// Decodes and validates the grain inside.
    ///
    /// # Errors
    /// As [`Grain::decode`].
    pub fn grain(&self) -> Result<Grain> {
        Grain::decode_with(self.payload.bytes(), &ENVELOPED)
    }

    /// Returns the SHA-256 of the blob inside.
    #[must_use]
    pub fn address(&self) -> ContentAddress {
        self.payload.address()
    }

    /// Returns the claimed signer: the text of `kid`, with its fragment. Not verified.
    #[must_use]
    pub fn kid(&self) -> Option<String> {
        kid_of(&Sign1::read(&self.bytes).ok()?)
    }

    /// Returns the bytes before and after the blob, or `None` if the payload is not contiguous, which
    /// is never the case in a valid envelope.
    #[must_use]
    pub fn wrapper_parts(&self) -> Option<(&[u8], &[u8])> {
        let (before, rest) = self.bytes.split_at_checked(self.payload_at?)?;
        Some((before, rest.get(self.payload.bytes().len()..)?))
    }

    /// Verifies form and signature. `resolver` finds the keys of DIDs that do not contain their own.
    #[must_use]
    pub fn verify(&self, resolver: &dyn DidResolver) -> SignatureVerdict {
        let read = self
            .blob()
            .and_then(Header::read)
            .and_then(|(header, _)| Ok((header, Sign1::read(&self.bytes)?)));
        match read {
            Ok((header, sign1)) => {
                verify_sign1(&sign1, self.payload.bytes(), Some(content_type(&header)), resolver)
            }
            Err(error) => SignatureVerdict::Invalid(error.to_string()),
        }
    }
}

/// Returns the content type that the header of an envelope gives its payload.
fn content_type(header: &Header) -> &'static str {
    match header.encoding() {
        Encoding::MessagePack => "application/vnd.mg+msgpack",
        Encoding::Cbor => "application/vnd.mg+cbor",
    }
}
