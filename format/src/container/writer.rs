//! Writes a container from front to back, as laid out by its plan.

use std::io::{self, Write};

use lz4_flex::frame::{FrameEncoder, FrameInfo};
use sha2::{Digest, Sha256};

use super::layout::{Compression, ContainerHeader};
use super::manifest::{ManifestEntry, ManifestWriter};
use super::plan::ContainerPlan;
use super::{entry, io as failed};
use crate::address::ContentAddress;
use crate::error::{Error, Result, corrupt};
use crate::header::Flags;
use crate::wire::Encoding;

/// The zstd level of compressed regions (OMS 11.3).
const ZSTD_LEVEL: i32 = 3;

/// A container being written. It is not valid before [`ContainerWriter::finish`] has appended the
/// checksum.
///
/// ```
/// use grainstore_format::container::{Compression, ContainerPlan, ContainerWriter, PlannedEntry};
/// use grainstore_format::{Encoding, EpochMs, Error, EventBuilder};
/// # use grainstore_format::{DecodeOptions, container::Container};
///
/// let created_at = EpochMs::new(1_768_471_200_000);
/// let blob = EventBuilder::new(created_at, "alice said hello").build()?.encode(Encoding::Cbor)?;
/// let mut plan = ContainerPlan::new(Compression::Zstd);
/// assert!(plan.add(&PlannedEntry::of(blob.bytes(), created_at)?)?);
/// let mut writer = ContainerWriter::new(Vec::new(), plan)?;
/// writer.push(blob.bytes())?;
/// let (file, report) = writer.finish::<Error>([])?;
/// assert_eq!((report.grains, report.bytes), (1, file.len() as u64));
/// # Container::open(file, &DecodeOptions::default())?.verify()?;
/// # Ok::<(), Error>(())
/// ```
pub struct ContainerWriter<W: Write> {
    region: RegionWriter<W>,
    plan: ContainerPlan,
    written: usize,
    region_bytes: u64,
    /// `true` if every grain so far is CBOR; the manifest is then CBOR too (OMS 11.7).
    all_cbor: bool,
}

/// A summary of the file that a [`ContainerWriter`] wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContainerReport {
    /// The number of grains.
    pub grains: u32,
    /// The length of the file in bytes.
    pub bytes: u64,
    /// The last 32 bytes of the file: the SHA-256 of all others.
    pub checksum: [u8; 32],
}

impl<W: Write> std::fmt::Debug for ContainerWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Writer({} of {} grains)", self.written, self.plan.len())
    }
}

impl<W: Write> ContainerWriter<W> {
    /// Writes the header and the offsets of the plan.
    ///
    /// # Errors
    /// `ERR_CORRUPT` for a plan that no container can follow, `ERR_IO`.
    pub fn new(out: W, plan: ContainerPlan) -> Result<Self> {
        let head = plan.head()?;
        let mut out = HashingWriter { out, hash: Sha256::new(), bytes: 0 };
        out.write_all(&head.to_bytes()).map_err(|error| failed(&error))?;
        let first = u32::try_from(head.first_offset()).unwrap_or(u32::MAX);
        for offset in &plan.offsets {
            // The plan keeps the sum within 32 bits.
            let offset = offset.saturating_add(first);
            out.write_all(&offset.to_be_bytes()).map_err(|error| failed(&error))?;
        }
        let region =
            RegionWriter::new(out, &head, plan.region_bytes()).map_err(|error| failed(&error))?;
        Ok(Self { region, plan, written: 0, region_bytes: 0, all_cbor: true })
    }

    /// Writes the next entry of the plan: a blob, or the envelope around one.
    ///
    /// # Errors
    /// `ERR_CORRUPT` for an entry that differs from the plan or has bytes after its grain;
    /// `ERR_SIGNED_MISMATCH`; `ERR_IO`.
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        let expected = self.plan.offsets.get(self.written).map(|offset| u64::from(*offset));
        let next = self.plan.offsets.get(self.written + 1);
        let end = next.map_or(self.plan.region_bytes(), |offset| u64::from(*offset));
        let after = self.region_bytes + bytes.len() as u64;
        if expected != Some(self.region_bytes) || end != after {
            let message = format!("grain {} of the container is not the planned one", self.written);
            return Err(corrupt(message));
        }
        if entry::entry_len(bytes)?.is_some_and(|end| end != bytes.len()) {
            return Err(corrupt("bytes after the grain"));
        }
        let flags = entry::inner_blob(bytes)?.get(1).map_or(0, |flags| *flags);
        self.all_cbor &= Flags::from_byte(flags).contains(Flags::CBOR);
        self.region.write_all(bytes).map_err(|error| failed(&error))?;
        self.region_bytes = after;
        self.written += 1;
        Ok(())
    }

    /// Writes the manifest, whose entries must come by ascending address, and the checksum.
    ///
    /// # Errors
    /// `ERR_CORRUPT` for missing grains, and for manifest entries that are missing, too many or out of
    /// order; the errors of `manifest`; `ERR_IO`.
    pub fn finish<E: From<Error>>(
        self,
        manifest: impl IntoIterator<Item = Result<(ContentAddress, ManifestEntry), E>>,
    ) -> Result<(W, ContainerReport), E> {
        if self.written != self.plan.len() {
            let message = format!("{} of {} grains were written", self.written, self.plan.len());
            return Err(corrupt(message).into());
        }
        let mut out = self.region.finish().map_err(|error| failed(&error))?;
        let encoding = match self.all_cbor {
            true => Encoding::Cbor,
            false => Encoding::MessagePack,
        };
        let mut writer = ManifestWriter::new(encoding, self.plan.manifest_entries());
        for entry in manifest {
            let (address, carried) = entry?;
            out.write_all(writer.entry(&address, &carried)?).map_err(|error| failed(&error))?;
        }
        writer.finish()?;
        let checksum: [u8; 32] = out.hash.finalize_reset().into();
        out.write_all(&checksum).map_err(|error| failed(&error))?;
        out.flush().map_err(|error| failed(&error))?;
        let grains = u32::try_from(self.written).unwrap_or(u32::MAX);
        Ok((out.out, ContainerReport { grains, bytes: out.bytes, checksum }))
    }
}

/// A writer that hashes and counts the bytes it passes on.
struct HashingWriter<W> {
    out: W,
    hash: Sha256,
    bytes: u64,
}

impl<W: Write> Write for HashingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hash.update(bytes.get(..written).unwrap_or_default());
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The region of grains as it is written, compressed or not.
enum RegionWriter<W: Write> {
    Plain(HashingWriter<W>),
    Zstd(zstd::Encoder<'static, HashingWriter<W>>),
    Lz4(Box<FrameEncoder<HashingWriter<W>>>),
}

impl<W: Write> RegionWriter<W> {
    fn new(out: HashingWriter<W>, head: &ContainerHeader, bytes: u64) -> io::Result<Self> {
        Ok(match head.compression {
            Compression::None => Self::Plain(out),
            Compression::Zstd => {
                let mut encoder = zstd::Encoder::new(out, ZSTD_LEVEL)?;
                encoder.set_pledged_src_size(Some(bytes))?;
                Self::Zstd(encoder)
            }
            Compression::Lz4 => {
                let info = FrameInfo::new().content_size(Some(bytes));
                Self::Lz4(Box::new(FrameEncoder::with_frame_info(info, out)))
            }
        })
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(out) => out.write_all(bytes),
            Self::Zstd(out) => out.write_all(bytes),
            Self::Lz4(out) => out.write_all(bytes),
        }
    }

    fn finish(self) -> io::Result<HashingWriter<W>> {
        match self {
            Self::Plain(out) => Ok(out),
            Self::Zstd(out) => out.finish(),
            Self::Lz4(out) => Ok(out.finish()?),
        }
    }
}
