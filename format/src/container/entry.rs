//! One grain in a container: a bare blob, or a COSE_Sign1 around one (rulings 14, 15).
//!
//! Finds the end of an entry and its blob, and decodes it. The only module of `container` that looks into
//! envelopes. Signatures are not verified here.

use std::ops::Range;

use crate::address::ContentAddress;
use crate::cose::Envelope;
use crate::error::{Error, ErrorKind, Result, corrupt};
use crate::grain::{DecodeOptions, Grain};
use crate::header::{Flags, Header};
use crate::profile::DeviceProfile;
use crate::time::EpochMs;
use crate::wire::TokenReader;

/// Returns the length in bytes of the largest [`ContainerEntry`]: a blob of the profile in an envelope.
#[must_use]
pub const fn max_entry_bytes(profile: &DeviceProfile) -> usize {
    profile.max_blob_bytes.saturating_add(Envelope::MAX_WRAPPER_BYTES)
}

/// A grain read from a container, with canonical form, schema and limits checked (OMS 4, 8).
///
/// ```
/// use grainstore_format::container::ContainerEntry;
/// use grainstore_format::{DecodeOptions, Encoding, EpochMs, EventBuilder, SigningKey, sign};
///
/// let grain = EventBuilder::new(EpochMs::new(1_768_471_200_000), "alice said hello").build()?;
/// let blob = grain.encode(Encoding::MessagePack)?;
/// let envelope = sign(blob.bytes(), &SigningKey::ed25519_from_seed(&[7; 32]), None)?;
/// let address = envelope.address();
/// let entry = ContainerEntry::read(envelope.into_bytes(), &DecodeOptions::default())?;
/// assert_eq!((entry.address(), entry.grain().fields()), (address, grain.fields()));
/// assert!(entry.envelope().is_some() && entry.blob().len() < entry.bytes().len());
/// # Ok::<(), grainstore_format::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerEntry {
    bytes: Vec<u8>,
    blob: Range<usize>,
    address: ContentAddress,
    grain: Grain,
}

impl ContainerEntry {
    /// Reads the bytes of one entry or frame: exactly one blob or envelope.
    ///
    /// # Errors
    /// As [`Grain::decode_with`]; `ERR_CORRUPT` for bytes after it, or for a malformed envelope;
    /// `ERR_SIGNED_MISMATCH`; `ERR_TOO_LARGE`.
    pub fn read(bytes: Vec<u8>, options: &DecodeOptions<'_>) -> Result<Self> {
        check_size(bytes.len(), &options.profile)?;
        if !is_envelope(&bytes) {
            options.profile.check_size(bytes.len())?;
        }
        if entry_len(&bytes)?.is_some_and(|end| end != bytes.len()) {
            return Err(corrupt("bytes after the grain"));
        }
        let blob = blob_range(&bytes)?;
        let inner = bytes.get(blob.clone()).unwrap_or_default();
        let options = DecodeOptions { enveloped: is_envelope(&bytes), ..*options };
        let grain = Grain::decode_with(inner, &options)?;
        let address = ContentAddress::of(inner);
        Ok(Self { address, grain, blob, bytes })
    }

    /// Returns the bytes as stored in the file.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the blob: the bytes, or the payload of their envelope.
    #[must_use]
    pub fn blob(&self) -> &[u8] {
        self.bytes.get(self.blob.clone()).unwrap_or_default()
    }

    /// Returns the COSE_Sign1 around the blob, or `None` for a bare blob. Its signature is not
    /// verified.
    #[must_use]
    pub fn envelope(&self) -> Option<&[u8]> {
        is_envelope(&self.bytes).then_some(self.bytes.as_slice())
    }

    /// Returns the bytes of the envelope before and after the blob, or `None` for a bare blob.
    #[must_use]
    pub fn wrapper_parts(&self) -> Option<(&[u8], &[u8])> {
        let (before, behind) = (self.bytes.get(..self.blob.start), self.bytes.get(self.blob.end..));
        before.zip(behind).filter(|_| is_envelope(&self.bytes))
    }

    /// Returns the address of the blob.
    #[must_use]
    pub fn address(&self) -> ContentAddress {
        self.address
    }

    /// Returns the grain.
    #[must_use]
    pub fn grain(&self) -> &Grain {
        &self.grain
    }

    /// Returns the grain, and the bytes it was read from.
    #[must_use]
    pub fn into_parts(self) -> (Grain, Vec<u8>) {
        (self.grain, self.bytes)
    }

    /// Returns the creation time: `created_at`, or the second of the header for a grain of an opaque
    /// type without it. Containers are sorted by it, ties by address.
    #[must_use]
    pub fn created_at(&self) -> EpochMs {
        let second = self.grain.decoded_header().map_or(0, |header| header.created_at_sec);
        EpochMs::new(self.grain.int("created_at").unwrap_or(i64::from(second) * 1000))
    }
}

/// Returns the blob in an entry: the entry itself, or the payload of its envelope.
///
/// # Errors
/// `ERR_CORRUPT` for a malformed envelope; `ERR_SIGNED_MISMATCH` if the signed flag of an enveloped
/// blob is clear.
pub(super) fn inner_blob(entry: &[u8]) -> Result<&[u8]> {
    Ok(entry.get(blob_range(entry)?).unwrap_or_default())
}

/// Returns the length of the entry at the start of these bytes, or `None` for a blob with an encrypted
/// payload, whose end is known only from the offset of the next entry.
///
/// # Errors
/// `ERR_CORRUPT` and the codes of [`Header::split`] if no entry begins here.
pub(super) fn entry_len(bytes: &[u8]) -> Result<Option<usize>> {
    if is_envelope(bytes) {
        return Ok(Some(Envelope::extent(bytes)?.0));
    }
    let (header, payload) = Header::split(bytes)?;
    if header.flags.contains(Flags::ENCRYPTED) {
        return Ok(None);
    }
    if header.flags.contains(Flags::COMPRESSED) {
        let frame = zstd::zstd_safe::find_frame_compressed_size(payload);
        let frame = frame.map_err(|_| corrupt("the payload is no single zstd frame"))?;
        return Ok(Some(Header::LEN + frame));
    }
    let mut reader = TokenReader::new(payload, header.encoding());
    if !reader.at_map() {
        return Err(Error::new(ErrorKind::NotMap, "the payload must be a map"));
    }
    reader.skip()?;
    Ok(Some(bytes.len() - reader.rest().len()))
}

/// Rejects an entry that is too long, before any of it is read.
///
/// # Errors
/// `ERR_TOO_LARGE`.
pub(super) fn check_size(bytes: usize, profile: &DeviceProfile) -> Result<()> {
    let most = max_entry_bytes(profile);
    if bytes <= most {
        return Ok(());
    }
    let message = format!("a grain of {bytes} bytes is over the {most} that one may take here");
    Err(Error::new(ErrorKind::TooLarge, message))
}

/// Returns `true` if an envelope begins here: a CBOR array of four, with or without the COSE_Sign1 tag.
/// A blob begins with its version byte instead.
fn is_envelope(bytes: &[u8]) -> bool {
    matches!(bytes.first(), Some(&(ARRAY_OF_FOUR | TAG_SIGN1)))
}

const ARRAY_OF_FOUR: u8 = 0x84;
const TAG_SIGN1: u8 = 0xd2;

/// Returns the range of the blob in an entry.
fn blob_range(entry: &[u8]) -> Result<Range<usize>> {
    if !is_envelope(entry) {
        return Ok(0..entry.len());
    }
    let (_, payload) = Envelope::extent(entry)?;
    let flags = entry.get(payload.clone()).and_then(|blob| blob.get(1));
    if !flags.is_some_and(|flags| Flags::from_byte(*flags).contains(Flags::SIGNED)) {
        let message = "a COSE_Sign1 wraps a blob whose signed flag is not set";
        return Err(Error::new(ErrorKind::SignedMismatch, message).at("flags"));
    }
    Ok(payload)
}
