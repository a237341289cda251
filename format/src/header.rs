//! The 9-byte fixed header of a blob (OMS 3.1): version, flags, type, namespace hash, creation second.

use sha2::{Digest, Sha256};

use crate::error::{Error, ErrorKind, Result};
use crate::grain_type::GrainType;
use crate::wire::Encoding;

/// The only format version so far.
pub(crate) const VERSION: u8 = 0x01;

/// The flag byte (OMS 3.1.1).
///
/// ```
/// use grainstore_format::{Flags, Sensitivity};
///
/// let flags = Flags::SIGNED.with(Flags::CBOR).with_sensitivity(Sensitivity::Pii);
/// assert_eq!(flags.byte(), 0b1010_0001);
/// assert!(!flags.without(Flags::SIGNED).contains(Flags::SIGNED));
/// assert_eq!(flags.sensitivity(), Sensitivity::Pii);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(u8);

impl Flags {
    /// Bit 0: a COSE_Sign1 envelope wraps the grain.
    pub const SIGNED: Self = Self(1);
    /// Bit 1: the payload is AES-256-GCM ciphertext.
    pub const ENCRYPTED: Self = Self(1 << 1);
    /// Bit 2: the payload is zstd-compressed (before encryption).
    pub const COMPRESSED: Self = Self(1 << 2);
    /// Bit 3: the grain has content references.
    pub const CONTENT_REFS: Self = Self(1 << 3);
    /// Bit 4: the grain has embedding references.
    pub const EMBEDDING_REFS: Self = Self(1 << 4);
    /// Bit 5: the payload is CBOR.
    pub const CBOR: Self = Self(1 << 5);

    /// Builds flags from their byte.
    #[must_use]
    pub const fn from_byte(byte: u8) -> Self {
        Self(byte)
    }

    /// Returns the byte.
    #[must_use]
    pub const fn byte(self) -> u8 {
        self.0
    }

    /// Returns `true` if all bits of `other` are set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns these flags with the bits of `other` set.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns these flags with the bits of `other` cleared.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns the sensitivity in bits 6-7.
    #[must_use]
    pub const fn sensitivity(self) -> Sensitivity {
        match self.0 >> 6 {
            0 => Sensitivity::Public,
            1 => Sensitivity::Internal,
            2 => Sensitivity::Pii,
            _ => Sensitivity::Phi,
        }
    }

    /// Returns these flags with another sensitivity.
    #[must_use]
    pub const fn with_sensitivity(self, sensitivity: Sensitivity) -> Self {
        Self((self.0 & 0x3f) | ((sensitivity as u8) << 6))
    }
}

/// The sensitivity classification in the header, a routing hint (OMS 13.1, 13.3).
///
/// ```
/// use grainstore_format::Sensitivity;
///
/// assert_eq!(Sensitivity::of_tag("phi:diagnosis"), Sensitivity::Phi);
/// assert!(Sensitivity::of_tag("reg:gdpr") > Sensitivity::of_tag("food"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sensitivity {
    /// Bits 00.
    Public = 0,
    /// Bits 01.
    Internal = 1,
    /// Bits 10: personally identifiable information.
    Pii = 2,
    /// Bits 11: protected health information.
    Phi = 3,
}

impl Sensitivity {
    /// Returns the least sensitivity a tag requires, by its prefix, case-sensitively (OMS 13.4).
    #[must_use]
    pub fn of_tag(tag: &str) -> Self {
        const PREFIXES: [(&str, Sensitivity); 5] = [
            ("phi:", Sensitivity::Phi),
            ("pii:", Sensitivity::Pii),
            ("sec:", Sensitivity::Pii),
            ("legal:", Sensitivity::Pii),
            ("reg:", Sensitivity::Internal),
        ];
        let found = PREFIXES.iter().find(|(prefix, _)| tag.starts_with(prefix));
        found.map_or(Self::Public, |(_, sensitivity)| *sensitivity)
    }
}

/// The decoded fixed header.
///
/// ```
/// use grainstore_format::{Encoding, EpochMs, EventBuilder, GrainType};
/// use grainstore_format::{Flags, Header, namespace_hash};
///
/// let created_at = EpochMs::new(1_768_471_200_000);
/// let grain = EventBuilder::new(created_at, "alice said hello").namespace("work").build()?;
/// let blob = grain.encode(Encoding::Cbor)?;
/// let (header, payload) = Header::split(blob.bytes())?;
/// assert_eq!((header.grain_type, header.created_at_sec), (GrainType::Event, 1_768_471_200));
/// assert_eq!(header.ns_hash, namespace_hash(Some("work")));
/// assert!(header.flags.contains(Flags::CBOR));
/// assert_eq!(Header::LEN + payload.len(), blob.bytes().len());
/// # Ok::<(), grainstore_format::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The flag byte.
    pub flags: Flags,
    /// The type byte, never 0.
    pub grain_type: GrainType,
    /// The first two bytes of SHA-256(namespace), or 0 without a namespace. A routing hint.
    pub ns_hash: u16,
    /// The creation time in seconds since the epoch. A routing hint.
    pub created_at_sec: u32,
}

impl Header {
    /// The length of the header in bytes.
    pub const LEN: usize = 9;
    /// The length in bytes of the shortest blob: a header and an empty map.
    pub const MIN_BLOB: usize = Self::LEN + 1;

    /// Splits a bare blob into its header and its payload as stored.
    ///
    /// # Errors
    /// `ERR_TOO_SHORT`, `ERR_VERSION`, `ERR_SIGNED_MISMATCH` (bit 0 without a wrapper),
    /// `ERR_UNKNOWN_TYPE` (byte 0), in that order (OMS 19.1).
    pub fn split(blob: &[u8]) -> Result<(Self, &[u8])> {
        Self::split_enveloped(blob, false)
    }

    /// Like [`Header::split`], for a blob that was taken from an envelope (`enveloped`) or was not.
    pub(crate) fn split_enveloped(blob: &[u8], enveloped: bool) -> Result<(Self, &[u8])> {
        let (flags, ..) = split_fields(blob)?;
        check_signed_flag(flags, enveloped)?;
        Self::read(blob)
    }

    /// Splits a blob, bare or taken from an envelope. The signed flag is not checked.
    ///
    /// # Errors
    /// `ERR_TOO_SHORT`, `ERR_VERSION`, `ERR_UNKNOWN_TYPE` (byte 0).
    pub fn read(blob: &[u8]) -> Result<(Self, &[u8])> {
        let (flags, [type_byte, n0, n1, s0, s1, s2, s3], payload) = split_fields(blob)?;
        let Some(grain_type) = GrainType::from_byte(*type_byte) else {
            return Err(Error::new(ErrorKind::UnknownType, "type byte 0 is no type").at("byte 2"));
        };
        let header = Self {
            flags,
            grain_type,
            ns_hash: u16::from_be_bytes([*n0, *n1]),
            created_at_sec: u32::from_be_bytes([*s0, *s1, *s2, *s3]),
        };
        Ok((header, payload))
    }

    /// Returns the encoding, from flag bit 5.
    #[must_use]
    pub fn encoding(&self) -> Encoding {
        if self.flags.contains(Flags::CBOR) { Encoding::Cbor } else { Encoding::MessagePack }
    }

    /// Returns the nine bytes of the header.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let [n0, n1] = self.ns_hash.to_be_bytes();
        let [s0, s1, s2, s3] = self.created_at_sec.to_be_bytes();
        [VERSION, self.flags.byte(), self.grain_type.byte(), n0, n1, s0, s1, s2, s3]
    }
}

/// Returns the namespace hash of the [`Header`]: 0 for an absent or empty namespace.
#[must_use]
pub fn namespace_hash(namespace: Option<&str>) -> u16 {
    match namespace {
        None | Some("") => 0,
        Some(namespace) => {
            let [hi, lo, ..]: [u8; 32] = Sha256::digest(namespace).into();
            u16::from_be_bytes([hi, lo])
        }
    }
}

/// Splits a blob of the known version into its flag byte, the other seven header bytes and the payload.
fn split_fields(blob: &[u8]) -> Result<(Flags, &[u8; 7], &[u8])> {
    let too_short = || too_short(blob.len());
    let ([version, flags], rest) = blob.split_first_chunk().ok_or_else(too_short)?;
    let (others, payload) = rest.split_first_chunk().ok_or_else(too_short)?;
    if payload.is_empty() {
        return Err(too_short());
    }
    if *version != VERSION {
        let message = format!("unsupported format version: {version}");
        let error = Error::new(ErrorKind::Version, message).at("byte 0");
        return Err(match first_byte_hint(*version) {
            Some(hint) => error.with_hint(hint),
            None => error,
        });
    }
    Ok((Flags::from_byte(*flags), others, payload))
}

/// Returns a hint for bytes that look like another format, judged by the first byte.
fn first_byte_hint(first: u8) -> Option<&'static str> {
    match first {
        b'{' | b'[' | b'"' | b' ' | b'\n' | b'\r' | b'\t' => {
            Some("this looks like JSON and not like a blob: give it as JSON (--format json)")
        }
        0xd2 | 0x84 => Some(
            "this looks like a COSE_Sign1 around a blob: put it as a signed grain (--format cose), or give \
             it to verify-signature",
        ),
        b'M' => Some("this looks like a portable .mg file of many grains: import it"),
        _ => None,
    }
}

/// Checks that the signed flag is set exactly if a COSE_Sign1 wraps the blob (OMS 9.2).
fn check_signed_flag(flags: Flags, enveloped: bool) -> Result<()> {
    let message = match (flags.contains(Flags::SIGNED), enveloped) {
        (true, false) => "the signed flag is set, but no COSE_Sign1 wraps the blob",
        (false, true) => "a COSE_Sign1 wraps the blob, but its signed flag is clear",
        _ => return Ok(()),
    };
    Err(Error::new(ErrorKind::SignedMismatch, message).at("flags"))
}

fn too_short(len: usize) -> Error {
    let message = format!("a blob has at least {} bytes, this has {len}", Header::MIN_BLOB);
    Error::new(ErrorKind::TooShort, message)
}
