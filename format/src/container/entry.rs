//! One grain as it lies in a container: a bare blob, or a COSE_Sign1 around one (rulings 14, 15).
//!
//! Says where an entry ends and what is in it. What the signature around it is worth is not asked.

use std::ops::Range;

use crate::address::ContentAddress;
use crate::cose::Envelope;
use crate::error::{Error, ErrorKind, Result, corrupt};
use crate::grain::{DecodeOptions, Grain};
use crate::header::{Flags, Header};
use crate::profile::Profile;
use crate::time::EpochMs;
use crate::wire::Reader;

/// Bytes of one entry at most: a blob of the profile in an envelope.
#[must_use]
pub const fn max_entry_bytes(profile: &Profile) -> usize {
    profile.max_blob_bytes.saturating_add(Envelope::MAX_WRAPPER)
}

/// A grain out of a container, checked by itself: canonical form, schema, limits (OMS 4, 8).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    bytes: Vec<u8>,
    blob: Range<usize>,
    address: ContentAddress,
    grain: Grain,
}

impl Entry {
    /// Reads what one entry or one frame holds: a blob or an envelope, and nothing beside it.
    ///
    /// # Errors
    /// As [`Grain::decode_with`]; `ERR_CORRUPT` for bytes after it or a malformed envelope;
    /// `ERR_SIGNED_MISMATCH`; `ERR_TOO_LARGE`.
    pub fn read(bytes: Vec<u8>, options: &DecodeOptions<'_>) -> Result<Self> {
        check_size(bytes.len(), &options.profile)?;
        if !is_envelope(&bytes) {
            options.profile.check_size(bytes.len())?;
        }
        if extent(&bytes)?.is_some_and(|end| end != bytes.len()) {
            return Err(corrupt("bytes after the grain"));
        }
        let blob = inner_range(&bytes)?;
        let inner = bytes.get(blob.clone()).unwrap_or_default();
        let options = DecodeOptions { enveloped: is_envelope(&bytes), ..*options };
        let grain = Grain::decode_with(inner, &options)?;
        let address = ContentAddress::of(inner);
        Ok(Self { address, grain, blob, bytes })
    }

    /// The bytes as they lie in the file.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The blob: the bytes, or what their envelope holds.
    #[must_use]
    pub fn blob(&self) -> &[u8] {
        self.bytes.get(self.blob.clone()).unwrap_or_default()
    }

    /// The COSE_Sign1 around the blob, if there is one. Its signature is not checked here.
    #[must_use]
    pub fn envelope(&self) -> Option<&[u8]> {
        is_envelope(&self.bytes).then_some(self.bytes.as_slice())
    }

    /// What stands before the blob and behind it in its envelope.
    #[must_use]
    pub fn around_blob(&self) -> Option<(&[u8], &[u8])> {
        let (before, behind) = (self.bytes.get(..self.blob.start), self.bytes.get(self.blob.end..));
        before.zip(behind).filter(|_| is_envelope(&self.bytes))
    }

    /// The address of the blob.
    #[must_use]
    pub fn address(&self) -> ContentAddress {
        self.address
    }

    /// The grain.
    #[must_use]
    pub fn grain(&self) -> &Grain {
        &self.grain
    }

    /// The grain, and the bytes it was read from.
    #[must_use]
    pub fn into_parts(self) -> (Grain, Vec<u8>) {
        (self.grain, self.bytes)
    }

    /// When it was created: the field, or the second of the header where a grain of an unknown type
    /// has none. What containers are sorted by, ties by address.
    #[must_use]
    pub fn created_at(&self) -> EpochMs {
        let second = self.grain.decoded_header().map_or(0, |header| header.created_at_sec);
        EpochMs::new(self.grain.int("created_at").unwrap_or(i64::from(second) * 1000))
    }
}

/// The blob in an entry: the entry itself, or the payload of its envelope. The one place where
/// containers look into envelopes.
///
/// # Errors
/// `ERR_CORRUPT` for a malformed envelope; `ERR_SIGNED_MISMATCH` where the signed flag of the blob
/// says that there is none.
pub(super) fn inner_blob(entry: &[u8]) -> Result<&[u8]> {
    Ok(entry.get(inner_range(entry)?).unwrap_or_default())
}

/// How many of these bytes the entry they begin with takes; nothing for a blob whose payload is
/// encrypted, which only its neighbour ends.
///
/// # Errors
/// `ERR_CORRUPT` and the codes of [`Header::split`] where no entry begins here.
pub(super) fn extent(bytes: &[u8]) -> Result<Option<usize>> {
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
    let mut reader = Reader::new(payload, header.encoding());
    if !reader.at_map() {
        return Err(Error::new(ErrorKind::NotMap, "the payload must be a map"));
    }
    reader.skip()?;
    Ok(Some(bytes.len() - reader.rest().len()))
}

/// Refuses an entry that is too long before anything is read of it.
///
/// # Errors
/// `ERR_TOO_LARGE`.
pub(super) fn check_size(bytes: usize, profile: &Profile) -> Result<()> {
    let most = max_entry_bytes(profile);
    if bytes <= most {
        return Ok(());
    }
    let message = format!("a grain of {bytes} bytes is over the {most} that one may take here");
    Err(Error::new(ErrorKind::TooLarge, message))
}

/// Whether an envelope begins here: an array of four, with or without the tag of COSE_Sign1. A blob
/// begins with its version instead.
fn is_envelope(bytes: &[u8]) -> bool {
    matches!(bytes.first(), Some(&(ARRAY_OF_FOUR | TAG_SIGN1)))
}

const ARRAY_OF_FOUR: u8 = 0x84;
const TAG_SIGN1: u8 = 0xd2;

/// Where the blob lies within an entry.
fn inner_range(entry: &[u8]) -> Result<Range<usize>> {
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
