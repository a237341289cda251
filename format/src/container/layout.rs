//! The header of a container (OMS 11.2, 11.3) and the offsets of its sections.

use super::structure_error;
use crate::error::{Error, ErrorKind, Result};

/// Maximum number of bytes of grains in one [`Container`](super::Container), inflated: offsets have 32
/// bits (ruling 14).
pub const MAX_REGION_BYTES: u64 = u32::MAX as u64;

/// The length of the header in bytes.
pub(super) const HEADER_LEN: usize = 16;
/// The length of one offset in bytes.
pub(super) const OFFSET_LEN: u64 = 4;
/// The length of the checksum at the end, in bytes.
pub(super) const FOOTER_LEN: u64 = 32;

const MAGIC: [u8; 2] = *b"MG";
const VERSION: u8 = 1;
const FIELD_MAP_VERSION: u8 = 1;

/// The compression of the region of grains (OMS 11.3).
///
/// ```
/// use grainstore_format::container::Compression;
///
/// assert_eq!(Compression::default(), Compression::Zstd);
/// assert_eq!(Compression::from_name("lz4"), Some(Compression::Lz4));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// Uncompressed: each grain can be read alone.
    None,
    /// One zstd frame, written at level 3. The default of the standard.
    #[default]
    Zstd,
    /// One lz4 frame.
    Lz4,
}

impl Compression {
    /// Every compression, in the order of their bytes.
    pub const ALL: [Self; 3] = [Self::None, Self::Zstd, Self::Lz4];

    /// Returns `none`, `zstd` or `lz4`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Zstd => "zstd",
            Self::Lz4 => "lz4",
        }
    }

    /// Returns the compression of a word, or `None` for any other word.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|way| way.name() == name)
    }

    const fn byte(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Zstd => 1,
            Self::Lz4 => 2,
        }
    }
}

/// The header of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ContainerHeader {
    pub(super) count: u32,
    pub(super) compression: Compression,
    /// `true` if entries are sorted by `created_at`, ties by address.
    pub(super) sorted: bool,
    /// `true` if no address occurs twice.
    pub(super) deduplicated: bool,
    pub(super) manifest: bool,
}

impl ContainerHeader {
    const SORTED: u8 = 1;
    const DEDUPLICATED: u8 = 1 << 1;
    const COMPRESSED: u8 = 1 << 2;
    const FIELD_MAP: u8 = 1 << 3;
    const MANIFEST: u8 = 1 << 4;
    const RESERVED: u8 = 0b1110_0000;

    /// Returns the sixteen bytes.
    pub(super) fn to_bytes(self) -> [u8; HEADER_LEN] {
        let bits = [
            (self.sorted, Self::SORTED),
            (self.deduplicated, Self::DEDUPLICATED),
            (self.compression != Compression::None, Self::COMPRESSED),
            (self.manifest, Self::MANIFEST),
        ];
        let flags = bits.iter().fold(0, |flags, (set, bit)| if *set { flags | bit } else { flags });
        let [m, g] = MAGIC;
        let [c0, c1, c2, c3] = self.count.to_be_bytes();
        let compression = self.compression.byte();
        [m, g, VERSION, flags, c0, c1, c2, c3, FIELD_MAP_VERSION, compression, 0, 0, 0, 0, 0, 0]
    }

    /// Checks that these bytes begin a container of a known version.
    ///
    /// # Errors
    /// `ERR_CORRUPT` for bytes that are not a container, `ERR_VERSION`.
    pub(super) fn check_magic(bytes: &[u8; HEADER_LEN]) -> Result<()> {
        let [m, g, version, ..] = bytes;
        if [*m, *g] != MAGIC {
            return Err(structure_error(
                "this is no .mg container: it does not begin with MG",
                "byte 0",
            )
            .with_hint("a single blob is no container; put reads those"));
        }
        if *version != VERSION {
            let message = format!("unsupported container version: {version}");
            return Err(Error::new(ErrorKind::Version, message).at("header, byte 2"));
        }
        Ok(())
    }

    /// Parses a header. The checksum of the container is verified before.
    ///
    /// # Errors
    /// `ERR_CORRUPT` for reserved bits and bytes that are not zero, for flags that contradict the
    /// compression byte, and for a custom field map, whose location the standard does not define;
    /// `ERR_VERSION`.
    pub(super) fn parse(bytes: &[u8; HEADER_LEN]) -> Result<Self> {
        Self::check_magic(bytes)?;
        let [_, _, _, flags, c0, c1, c2, c3, map_version, codec, reserved @ ..] = *bytes;
        if flags & Self::RESERVED != 0 || reserved != [0; 6] {
            return Err(structure_error(
                "a reserved bit or byte of the header is not zero",
                "header",
            ));
        }
        if flags & Self::FIELD_MAP != 0 {
            let message = "custom field maps (flag bit 3) are not supported";
            return Err(structure_error(message, "header, byte 3")
                .with_hint("export it again with the field map of the standard"));
        }
        if map_version != FIELD_MAP_VERSION {
            let message = format!("unsupported field map version: {map_version}");
            return Err(Error::new(ErrorKind::Version, message).at("header, byte 8"));
        }
        let Some(compression) = Compression::ALL.into_iter().find(|way| way.byte() == codec) else {
            let message = format!("compression {codec} is reserved");
            return Err(structure_error(message, "header, byte 9"));
        };
        if (flags & Self::COMPRESSED != 0) != (compression != Compression::None) {
            let message = "the compressed flag and the compression byte disagree";
            return Err(structure_error(message, "header, byte 3"));
        }
        Ok(Self {
            count: u32::from_be_bytes([c0, c1, c2, c3]),
            compression,
            sorted: flags & Self::SORTED != 0,
            deduplicated: flags & Self::DEDUPLICATED != 0,
            manifest: flags & Self::MANIFEST != 0,
        })
    }

    /// Returns the offset of the region of grains in the file.
    pub(super) fn region_start(&self) -> u64 {
        HEADER_LEN as u64 + OFFSET_LEN * u64::from(self.count)
    }

    /// Returns the offset of the first grain: absolute if uncompressed, else within the inflated
    /// region.
    pub(super) fn first_offset(&self) -> u64 {
        match self.compression {
            Compression::None => self.region_start(),
            Compression::Zstd | Compression::Lz4 => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: ContainerHeader = ContainerHeader {
        count: 0x0102_0304,
        compression: Compression::Zstd,
        sorted: true,
        deduplicated: true,
        manifest: true,
    };

    #[test]
    fn a_header_is_sixteen_bytes_and_reads_back() {
        let bytes = [0x4d, 0x47, 1, 0b1_0111, 1, 2, 3, 4, 1, 1, 0, 0, 0, 0, 0, 0];
        assert_eq!(HEAD.to_bytes(), bytes);
        assert_eq!(ContainerHeader::parse(&bytes), Ok(HEAD));
    }

    #[test]
    fn a_header_with_anything_unknown_is_refused_at_its_byte() {
        #[rustfmt::skip]
        let table = [
            (0, 0x4e, "ERR_CORRUPT", "byte 0"), (1, 0x48, "ERR_CORRUPT", "byte 0"),
            (2, 2, "ERR_VERSION", "header, byte 2"), (2, 0, "ERR_VERSION", "header, byte 2"),
            (3, 0b0011_0111, "ERR_CORRUPT", "header"), (3, 0b1001_0111, "ERR_CORRUPT", "header"),
            (3, 0b0001_1111, "ERR_CORRUPT", "header, byte 3"), (3, 0b0001_0011, "ERR_CORRUPT", "header, byte 3"),
            (8, 0, "ERR_VERSION", "header, byte 8"), (8, 2, "ERR_VERSION", "header, byte 8"),
            (9, 0, "ERR_CORRUPT", "header, byte 3"), (9, 3, "ERR_CORRUPT", "header, byte 9"),
            (10, 1, "ERR_CORRUPT", "header"), (15, 1, "ERR_CORRUPT", "header"),
        ];
        for (at, byte, code, place) in table {
            let mut bytes = HEAD.to_bytes();
            bytes[at] = byte;
            let error = ContainerHeader::parse(&bytes).unwrap_err();
            assert_eq!((error.code(), error.place()), (code, place), "byte {at} = {byte}");
        }
    }
}
