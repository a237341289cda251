//! Reads a container: all of it is checked, with at most one grain in memory.

use std::io::{BufReader, Read};

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::entry::{self, ContainerEntry, max_entry_bytes};
use super::layout::{
    Compression, ContainerHeader, FOOTER_LEN, HEADER_LEN, MAX_REGION_BYTES, OFFSET_LEN,
};
use super::manifest::ManifestIter;
use super::region::{RegionExtent, RegionReader};
use super::source::RangeReader;
use super::{ReadAt, io as failed, structure_error};
use crate::address::ContentAddress;
use crate::error::{Error, ErrorKind, Result};
use crate::grain::DecodeOptions;
use crate::time::EpochMs;

/// Bytes per read.
const BLOCK_BYTES: usize = 64 << 10;
/// Maximum number of grains of an unsorted container that are checked for duplicates. Each takes 16 bytes of
/// memory.
const MAX_UNSORTED_GRAINS: u32 = 1 << 22;

/// A container whose checksum, header and offsets are valid.
///
/// Grains and manifest are checked while they are read; [`Container::verify`] reads all of both.
/// [`Container::recheck`] detects a source that changed in the meantime.
///
/// ```
/// # use grainstore_format::container::{Compression, ContainerPlan, ContainerWriter, PlannedEntry};
/// # use grainstore_format::{Encoding, Error, EpochMs, EventBuilder};
/// # let created_at = EpochMs::new(1_768_471_200_000);
/// # let blob = EventBuilder::new(created_at, "alice said hello").build()?.encode(Encoding::Cbor)?;
/// # let mut plan = ContainerPlan::new(Compression::None);
/// # plan.add(&PlannedEntry::of(blob.bytes(), created_at)?)?;
/// # let mut writer = ContainerWriter::new(Vec::new(), plan)?;
/// # writer.push(blob.bytes())?;
/// # let (file, _) = writer.finish::<Error>([])?;
/// use grainstore_format::DecodeOptions;
/// use grainstore_format::container::Container;
///
/// // `file` holds the bytes of a container with one event.
/// let container = Container::open(file, &DecodeOptions::default())?;
/// container.verify()?;
/// assert_eq!(container.len(), 1);
/// for entry in container.entries()? {
///     assert_eq!(entry?.grain().text("content"), Some("alice said hello"));
/// }
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct Container<'o, S> {
    source: S,
    options: DecodeOptions<'o>,
    head: ContainerHeader,
    size: u64,
    checksum: [u8; 32],
    /// The end of the region of grains: its inflated length, and its offset in the file.
    region: RegionExtent,
}

impl<'o, S: ReadAt> Container<'o, S> {
    /// Opens a container. The options give the profile of its grains. Reads the source once for the
    /// checksum, and compressed grains once more.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` for a wrong checksum; `ERR_CORRUPT` and `ERR_VERSION` for an invalid structure,
    /// with its place; `ERR_TOO_LARGE` beyond the limits; `ERR_IO`.
    pub fn open(source: S, options: &DecodeOptions<'o>) -> Result<Self> {
        let size = source.size().map_err(|error| failed(&error))?;
        if size < HEADER_LEN as u64 + FOOTER_LEN {
            return Err(structure_error(
                format!("{size} bytes are too few for a container"),
                "header",
            ));
        }
        let mut header = [0; HEADER_LEN];
        source.read_exact_at(0, &mut header).map_err(|error| failed(&error))?;
        ContainerHeader::check_magic(&header)?;
        let checksum = verify_checksum(&source, size)?;
        let head = ContainerHeader::parse(&header)?;
        let region = RegionExtent { inflated: 0, end: 0 };
        let mut container = Self { source, options: *options, head, size, checksum, region };
        container.check_layout()?;
        Ok(container)
    }

    /// Returns the number of grains.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.head.count
    }

    /// Returns `true` if it holds no grains.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.head.count == 0
    }

    /// Returns the compression of the grains.
    #[must_use]
    pub fn compression(&self) -> Compression {
        self.head.compression
    }

    /// Returns `true` if the header says that grains are sorted by `created_at`, ties by address.
    #[must_use]
    pub fn is_sorted(&self) -> bool {
        self.head.sorted
    }

    /// Returns `true` if the header says that no address occurs twice.
    #[must_use]
    pub fn is_deduplicated(&self) -> bool {
        self.head.deduplicated
    }

    /// Returns the last 32 bytes, the SHA-256 of all others.
    #[must_use]
    pub fn checksum(&self) -> [u8; 32] {
        self.checksum
    }

    /// Reads one grain by its number. In a compressed container all grains before it are inflated too
    /// (OMS 11.4).
    ///
    /// # Errors
    /// As [`ContainerEntry::read`], `ERR_CORRUPT` for a number out of range, `ERR_IO`.
    pub fn entry(&self, number: u32) -> Result<ContainerEntry> {
        if number >= self.head.count {
            let message = format!("no grain {number} among {}", self.head.count);
            return Err(structure_error(message, "offsets"));
        }
        let (from, to) = (self.offset(number)?, self.offset(number + 1)?);
        let read = || {
            let mut bytes = entry_buffer(from, to, &self.options)?;
            if self.head.compression == Compression::None {
                let read = self.source.read_exact_at(from, &mut bytes);
                read.map_err(|error| failed(&error))?;
            } else {
                let mut region = RegionReader::open(&self.source, &self.head, self.region.end)?;
                let skipped = std::io::copy(&mut (&mut region).take(from), &mut std::io::sink());
                let read = skipped.and_then(|_| region.read_exact(&mut bytes));
                read.map_err(|error| region.classify_error(&error))?;
            }
            ContainerEntry::read(bytes, &self.options)
        };
        read().map_err(|error| error.in_context(&self.place(number, from)))
    }

    /// Iterates over all grains in order. Each grain is checked, and so are the sorted and deduplicated
    /// flags.
    ///
    /// # Errors
    /// `ERR_CORRUPT`, `ERR_IO` if reading cannot begin.
    pub fn entries(&self) -> Result<EntryIter<'_, 'o, S>> {
        let table = HEADER_LEN as u64;
        let offsets = RangeReader::new(&self.source, table, self.head.region_start());
        let mut offsets = BufReader::with_capacity(BLOCK_BYTES, offsets);
        let next = if self.is_empty() { self.region.inflated } else { next_offset(&mut offsets)? };
        Ok(EntryIter {
            container: self,
            region: RegionReader::open(&self.source, &self.head, self.region.end)?,
            offsets,
            number: 0,
            next,
            last: None,
            address_prefixes: Vec::new(),
            ended: false,
        })
    }

    /// Iterates over the manifest by ascending address. `None` if there is no manifest. Entries about
    /// grains that are not in the container are allowed and have no meaning.
    #[must_use]
    pub fn manifest(&self) -> Option<ManifestIter<'_, S>> {
        let end = self.size - FOOTER_LEN;
        self.head.manifest.then(|| ManifestIter::new(&self.source, self.region.end, end))
    }

    /// Reads and checks every grain and every entry of the manifest.
    ///
    /// # Errors
    /// As [`Container::open`] and [`ContainerEntry::read`].
    pub fn verify(&self) -> Result<()> {
        self.entries()?.try_for_each(|entry| entry.map(drop))?;
        match self.manifest() {
            Some(mut entries) => entries.try_for_each(|entry| entry.map(drop)),
            None => Ok(()),
        }
    }

    /// Checks that the bytes are unchanged since the container was opened.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub fn recheck(&self) -> Result<()> {
        let size = self.source.size().map_err(|error| failed(&error))?;
        if size == self.size && verify_checksum(&self.source, size)? == self.checksum {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Integrity, "the container changed while it was read")
            .with_hint("read it again once nobody writes to it"))
    }

    /// Checks count and offsets against the size of the source, and determines where the grains end.
    fn check_layout(&mut self) -> Result<()> {
        let end = self.size - FOOTER_LEN;
        let ContainerHeader { count, compression, .. } = self.head;
        if self.head.region_start() > end {
            let message = format!("{count} offsets do not fit into {} bytes", self.size);
            return Err(structure_error(message, "header, byte 4"));
        }
        if compression == Compression::None {
            self.region = RegionExtent { inflated: end, end };
            let last = self.check_offsets()?;
            let region_end = match count {
                0 => last,
                _ => last + self.last_length(last, end)?,
            };
            self.region = RegionExtent { inflated: region_end, end: region_end };
        } else {
            let limit = max_entry_bytes(&self.options.profile) as u64;
            let most = limit.saturating_mul(u64::from(count)).min(MAX_REGION_BYTES);
            self.region =
                RegionReader::open(&self.source, &self.head, end)?.measure(&self.head, most)?;
            self.check_offsets()?;
        }
        match (self.head.manifest, end - self.region.end) {
            (true, 0) => {
                Err(structure_error("the manifest that was announced is not there", "manifest"))
            }
            (false, more) if more > 0 => {
                let place = format!("byte {}", self.region.end);
                Err(structure_error(format!("{more} bytes between grains and checksum"), place))
            }
            _ => Ok(()),
        }
    }

    /// Checks all offsets: the first is the start of the region, each is greater than the one before
    /// and within the region. Returns the last offset, or the start of the region if there is none.
    fn check_offsets(&self) -> Result<u64> {
        let first = self.head.first_offset();
        let table = HEADER_LEN as u64;
        let offsets = RangeReader::new(&self.source, table, self.head.region_start());
        let mut offsets = BufReader::with_capacity(BLOCK_BYTES, offsets);
        let mut last = None;
        for number in 0..self.head.count {
            let offset = next_offset(&mut offsets)?;
            let fits = match last {
                None => offset == first,
                Some(last) => offset > last,
            };
            if !fits || offset >= self.region.inflated {
                let message = match last {
                    None => format!("the first offset is {offset}, not {first}"),
                    Some(last) if offset <= last => format!("offset {offset} follows {last}"),
                    Some(_) => format!("offset {offset} lies outside the grains"),
                };
                let byte = table + OFFSET_LEN * u64::from(number);
                return Err(structure_error(message, format!("offsets, byte {byte}")));
            }
            last = Some(offset);
        }
        if last.is_none()
            && self.region.inflated > first
            && self.head.compression != Compression::None
        {
            return Err(structure_error("grains that no offset leads to", "grains"));
        }
        Ok(last.unwrap_or(first))
    }

    /// Returns the length of the last grain, which has no offset after it.
    fn last_length(&self, from: u64, end: u64) -> Result<u64> {
        let most = max_entry_bytes(&self.options.profile) as u64;
        let most = usize::try_from(most.min(end - from)).unwrap_or(usize::MAX);
        let mut bytes = vec![0; most];
        self.source.read_exact_at(from, &mut bytes).map_err(|error| failed(&error))?;
        let length = entry::entry_len(&bytes).and_then(|length| {
            let message = "a blob with an encrypted payload is the last and has no visible end";
            length.ok_or_else(|| structure_error(message, ""))
        });
        let length =
            length.map_err(|error| error.in_context(&self.place(self.head.count - 1, from)))?;
        Ok(length as u64)
    }

    /// Returns the offset of a grain, or the end of the region for the number after the last.
    fn offset(&self, number: u32) -> Result<u64> {
        if number >= self.head.count {
            return Ok(self.region.inflated);
        }
        let mut bytes = [0; 4];
        let at = HEADER_LEN as u64 + OFFSET_LEN * u64::from(number);
        self.source.read_exact_at(at, &mut bytes).map_err(|error| failed(&error))?;
        Ok(u64::from(u32::from_be_bytes(bytes)))
    }

    fn place(&self, number: u32, from: u64) -> String {
        match self.head.compression {
            Compression::None => format!("grain {number} at byte {from}"),
            _ => format!("grain {number} at inflated byte {from}"),
        }
    }
}

/// Iterates over the grains of a [`Container`] in order. After the first error the iterator ends.
#[derive(Debug)]
pub struct EntryIter<'c, 'o, S: ReadAt> {
    container: &'c Container<'o, S>,
    region: RegionReader<'c, S>,
    offsets: BufReader<RangeReader<'c, S>>,
    number: u32,
    /// The offset of the next grain.
    next: u64,
    last: Option<(EpochMs, ContentAddress)>,
    /// The first 16 bytes of each address seen. Filled only for a container that says deduplicated but
    /// not sorted.
    address_prefixes: Vec<[u8; 16]>,
    ended: bool,
}

impl<S: ReadAt> EntryIter<'_, '_, S> {
    fn read(&mut self) -> Result<Option<ContainerEntry>> {
        let (count, from) = (self.container.head.count, self.next);
        if self.number == count {
            return self.check_distinct().map(|()| None);
        }
        let to = match self.number + 1 == count {
            true => self.container.region.inflated,
            false => next_offset(&mut self.offsets)?,
        };
        let entry = self.read_between(from, to);
        let entry =
            entry.map_err(|error| error.in_context(&self.container.place(self.number, from)))?;
        self.number += 1;
        self.next = to;
        Ok(Some(entry))
    }

    fn read_between(&mut self, from: u64, to: u64) -> Result<ContainerEntry> {
        let mut bytes = entry_buffer(from, to, &self.container.options)?;
        if let Err(error) = self.region.read_exact(&mut bytes) {
            return Err(self.region.classify_error(&error));
        }
        let entry = ContainerEntry::read(bytes, &self.container.options)?;
        self.check_order(&entry)?;
        Ok(entry)
    }

    /// Checks a grain against the sorted and deduplicated flags of the header.
    fn check_order(&mut self, entry: &ContainerEntry) -> Result<()> {
        let ContainerHeader { sorted, deduplicated, count, .. } = self.container.head;
        let place = (entry.created_at(), entry.address());
        let lie =
            |what| structure_error(format!("the header says {what}, and this grain is not"), "");
        if sorted && self.last.is_some_and(|last| last > place) {
            return Err(lie("sorted"));
        }
        if deduplicated && self.last.is_some_and(|(_, last)| last == place.1) {
            return Err(lie("deduplicated"));
        }
        self.last = Some(place);
        if deduplicated && !sorted {
            if count > MAX_UNSORTED_GRAINS {
                let message = format!(
                    "an unsorted container of more than {MAX_UNSORTED_GRAINS} grains cannot be checked \
                     for repeated ones"
                );
                return Err(Error::new(ErrorKind::TooLarge, message));
            }
            self.address_prefixes.extend(place.1.as_bytes().first_chunk().copied());
        }
        Ok(())
    }

    /// Checks that the collected addresses are distinct. In sorted order duplicates are adjacent, and
    /// nothing was collected.
    fn check_distinct(&mut self) -> Result<()> {
        self.address_prefixes.sort_unstable();
        match self.address_prefixes.windows(2).any(|pair| pair.first() == pair.last()) {
            true => Err(structure_error(
                "the header says deduplicated, and a grain occurs twice",
                "grains",
            )),
            false => Ok(()),
        }
    }
}

impl<S: ReadAt> Iterator for EntryIter<'_, '_, S> {
    type Item = Result<ContainerEntry>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let entry = self.read();
        self.ended = !matches!(entry, Ok(Some(_)));
        entry.transpose()
    }
}

/// Allocates the buffer of a grain between two offsets, after checking its length against the limit.
fn entry_buffer(from: u64, to: u64, options: &DecodeOptions<'_>) -> Result<Vec<u8>> {
    let length = to.checked_sub(from).and_then(|length| usize::try_from(length).ok());
    let length = length.unwrap_or(usize::MAX);
    entry::check_size(length, &options.profile)?;
    Ok(vec![0; length])
}

fn next_offset(offsets: &mut impl Read) -> Result<u64> {
    let mut bytes = [0; 4];
    offsets.read_exact(&mut bytes).map_err(|error| failed(&error))?;
    Ok(u64::from(u32::from_be_bytes(bytes)))
}

/// Returns the checksum at the end, after comparing it with that of everything before it.
fn verify_checksum(source: &impl ReadAt, size: u64) -> Result<[u8; 32]> {
    let end = size - FOOTER_LEN;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; BLOCK_BYTES];
    let mut rest = RangeReader::new(source, 0, end);
    loop {
        match rest.read(&mut buffer).map_err(|error| failed(&error))? {
            0 => break,
            read => hash.update(buffer.get(..read).unwrap_or_default()),
        }
    }
    let mut footer = [0; 32];
    source.read_exact_at(end, &mut footer).map_err(|error| failed(&error))?;
    let computed: [u8; 32] = hash.finalize().into();
    if bool::from(computed.ct_eq(&footer)) {
        return Ok(footer);
    }
    let message = "the checksum of the container is not that of its bytes";
    Err(Error::new(ErrorKind::Integrity, message)
        .at(format!("footer, byte {end}"))
        .with_hint("it was cut or changed on its way; get it again"))
}
