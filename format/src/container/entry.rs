//! One grain as it lies in a container: a bare blob, or a COSE_Sign1 around one (rulings 14, 15).
//!
//! Says where an entry ends and what is in it. Signatures are another module's business: here an
//! envelope is an opaque item with a payload.

use std::ops::Range;

use crate::address::ContentAddress;
use crate::error::{Error, ErrorKind, Result, corrupt};
use crate::grain::{DecodeOptions, Grain};
use crate::header::{Flags, Header};
use crate::profile::Profile;
use crate::time::EpochMs;
use crate::wire::Reader;

/// Bytes an envelope may take beside its blob: two signatures' worth of algorithm and DID would do
/// with one KiB, a chain of certificates in the unprotected header with eight.
pub const MAX_WRAPPER_BYTES: usize = 16 << 10;

/// Bytes of one entry at most: a blob of the profile in an envelope.
#[must_use]
pub const fn max_entry_bytes(profile: &Profile) -> usize {
    profile.max_blob_bytes.saturating_add(MAX_WRAPPER_BYTES)
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
        if extent(&bytes)?.is_some_and(|end| end != bytes.len()) {
            return Err(corrupt("bytes after the grain"));
        }
        let blob = inner_range(&bytes)?;
        let inner = bytes.get(blob.clone()).unwrap_or_default();
        let grain = match is_envelope(&bytes) {
            true => decode_wrapped(inner, options)?,
            false => Grain::decode_with(inner, options)?,
        };
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
        let mut items = Items { rest: bytes };
        items.skip()?;
        return Ok(Some(bytes.len() - items.rest.len()));
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
    let mut items = Items { rest: entry };
    items.rest = items.rest.strip_prefix(&[TAG_SIGN1]).unwrap_or(items.rest);
    if items.head()? != (Items::ARRAY, 4) {
        return Err(corrupt("a COSE_Sign1 is an array of four"));
    }
    items.bytes()?;
    items.skip()?;
    let payload = items.bytes()?;
    let end = entry.len() - items.rest.len();
    items.bytes()?;
    if !payload.get(1).is_some_and(|flags| Flags::from_byte(*flags).contains(Flags::SIGNED)) {
        let message = "a COSE_Sign1 wraps a blob whose signed flag is not set";
        return Err(Error::new(ErrorKind::SignedMismatch, message).at("flags"));
    }
    Ok(end - payload.len()..end)
}

/// Decodes the blob of an envelope, which [`Grain::decode`] refuses as it would be bare.
fn decode_wrapped(blob: &[u8], options: &DecodeOptions<'_>) -> Result<Grain> {
    options.profile.check_size(blob.len())?;
    let mut bare = blob.to_vec();
    if let Some(flags) = bare.get_mut(1) {
        *flags = Flags::from_byte(*flags).without(Flags::SIGNED).byte();
    }
    Grain::decode_with(&bare, options)
}

/// Steps over CBOR items of any kind, as far as an envelope needs it: definite lengths only, since
/// an item without one has no bound, and no recursion, since nobody bounds its depth.
struct Items<'a> {
    rest: &'a [u8],
}

impl<'a> Items<'a> {
    const BYTES: u8 = 2;
    const ARRAY: u8 = 4;

    /// Major type and argument of the next head.
    fn head(&mut self) -> Result<(u8, u64)> {
        let [first] = *self.take(1)? else { return Err(cut()) };
        let more = match first & 0x1f {
            info @ 0..=23 => return Ok((first >> 5, u64::from(info))),
            info @ 24..=27 => 1_usize << (info - 24),
            _ => return Err(corrupt("an envelope has an item of indefinite length")),
        };
        let argument = self.take(more)?.iter().fold(0, |n, byte| n << 8 | u64::from(*byte));
        Ok((first >> 5, argument))
    }

    /// The next item, which must be a byte string.
    fn bytes(&mut self) -> Result<&'a [u8]> {
        match self.head()? {
            (Self::BYTES, len) => self.take_long(len),
            _ => Err(corrupt("a part of an envelope is no byte string")),
        }
    }

    /// Steps over one item with all that is in it.
    fn skip(&mut self) -> Result<()> {
        let mut pending = 1_u64;
        while pending > 0 {
            let inside = match self.head()? {
                (2 | 3, len) => {
                    self.take_long(len)?;
                    0
                }
                (Self::ARRAY, items) => items,
                (5, entries) => entries.saturating_mul(2),
                (6, _) => 1,
                _ => 0,
            };
            pending = (pending - 1).saturating_add(inside);
            // Every item takes a byte at least.
            if pending > self.rest.len() as u64 {
                return Err(corrupt("an envelope declares more items than there are bytes"));
            }
        }
        Ok(())
    }

    fn take_long(&mut self, len: u64) -> Result<&'a [u8]> {
        self.take(usize::try_from(len).map_err(|_| cut())?)
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or_else(cut)?;
        self.rest = rest;
        Ok(taken)
    }
}

fn cut() -> Error {
    corrupt("an envelope ends too early")
}
