//! The layout of a container, computed before its first byte is written: header and offsets precede the
//! grains, and the output is written once from front to back.

use super::entry;
use super::layout::{Compression, ContainerHeader, HEADER_LEN, MAX_REGION_BYTES, OFFSET_LEN};
use crate::address::ContentAddress;
use crate::error::{Error, ErrorKind, Result, corrupt};
use crate::header::Flags;
use crate::profile::DeviceProfile;
use crate::time::EpochMs;

/// A grain that a [`ContainerWriter`](super::ContainerWriter) will write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlannedEntry {
    /// The creation time.
    pub created_at: EpochMs,
    /// The address of its blob.
    pub address: ContentAddress,
    /// The length of its entry in bytes, envelope included.
    pub length: u32,
    /// `true` if its payload is encrypted inside a bare blob, so that its end is known only from the
    /// next offset.
    pub open_ended: bool,
}

impl PlannedEntry {
    /// Plans an entry. `created_at` is that of its blob, as computed by
    /// [`super::ContainerEntry::created_at`].
    ///
    /// # Errors
    /// `ERR_TOO_LARGE`; `ERR_CORRUPT` and `ERR_SIGNED_MISMATCH` for bytes that are not an entry.
    pub fn of(entry: &[u8], created_at: EpochMs) -> Result<Self> {
        entry::check_size(entry.len(), &DeviceProfile::EXTENDED)?;
        let blob = entry::inner_blob(entry)?;
        let flags = blob.get(1).map_or(0, |flags| *flags);
        let wrapped = blob.len() != entry.len();
        Ok(Self {
            created_at,
            address: ContentAddress::of(blob),
            length: u32::try_from(entry.len()).unwrap_or(u32::MAX),
            open_ended: !wrapped && Flags::from_byte(flags).contains(Flags::ENCRYPTED),
        })
    }
}

/// Sorts entries into the order of a container: by time, ties by address, duplicates removed. If the
/// end of the last one cannot be determined, the last entry with a known end is moved behind it (ruling 36).
///
/// ```
/// use grainstore_format::container::{PlannedEntry, sort_entries};
/// use grainstore_format::{ContentAddress, EpochMs};
///
/// let planned = |ms, name: &str| PlannedEntry {
///     created_at: EpochMs::new(ms),
///     address: ContentAddress::of(name.as_bytes()),
///     length: 40,
///     open_ended: false,
/// };
/// let mut entries = vec![planned(2, "b"), planned(1, "a"), planned(2, "b")];
/// sort_entries(&mut entries)?;
/// assert_eq!(entries, [planned(1, "a"), planned(2, "b")]);
/// # Ok::<(), grainstore_format::Error>(())
/// ```
///
/// # Errors
/// `ERR_CORRUPT` if the payload of every entry is encrypted.
pub fn sort_entries(entries: &mut Vec<PlannedEntry>) -> Result<()> {
    entries.sort_unstable();
    entries.dedup_by_key(|entry| entry.address);
    let Some(ended) = entries.iter().rposition(|entry| !entry.open_ended) else {
        return if entries.is_empty() { Ok(()) } else { Err(no_visible_end()) };
    };
    let last = entries.remove(ended);
    entries.push(last);
    Ok(())
}

/// The layout of one container: the entries in the order a [`ContainerWriter`](super::ContainerWriter)
/// will write them. Takes four bytes per grain.
#[derive(Debug, Clone)]
pub struct ContainerPlan {
    compression: Compression,
    /// The offset of each entry within the region.
    pub(super) offsets: Vec<u32>,
    region_bytes: u64,
    limit: u64,
    sorted: bool,
    /// `true` if two adjacent entries have the same address.
    has_adjacent_duplicates: bool,
    /// `true` if the caller guarantees distinct addresses.
    assume_distinct: bool,
    last: Option<PlannedEntry>,
    manifest_entries: u32,
}

impl ContainerPlan {
    /// Creates an empty plan with this compression.
    #[must_use]
    pub fn new(compression: Compression) -> Self {
        Self {
            compression,
            offsets: Vec::new(),
            region_bytes: 0,
            limit: MAX_REGION_BYTES,
            sorted: true,
            has_adjacent_duplicates: false,
            assume_distinct: false,
            last: None,
            manifest_entries: 0,
        }
    }

    /// Limits header, offsets and inflated grains to this many bytes, at most [`MAX_REGION_BYTES`].
    #[must_use]
    pub fn with_limit(mut self, bytes: u64) -> Self {
        self.limit = bytes.min(MAX_REGION_BYTES);
        self
    }

    /// Declares that no two entries have the same address. Not needed for entries in sorted order,
    /// where duplicates are adjacent.
    #[must_use]
    pub fn assume_distinct(mut self) -> Self {
        self.assume_distinct = true;
        self
    }

    /// Announces a manifest with entries for this many grains; 0 for no manifest.
    #[must_use]
    pub fn with_manifest(mut self, grains: u32) -> Self {
        self.manifest_entries = grains;
        self
    }

    /// Appends an entry. Returns `false` if it does not fit; it then begins the next file.
    ///
    /// # Errors
    /// `ERR_TOO_LARGE` for an entry that does not fit an empty file.
    pub fn add(&mut self, entry: &PlannedEntry) -> Result<bool> {
        let offset = u32::try_from(self.region_bytes).ok();
        let bytes = self.region_bytes + u64::from(entry.length);
        let front = HEADER_LEN as u64 + OFFSET_LEN * (self.offsets.len() as u64 + 1);
        let (Some(offset), true) = (offset, front + bytes <= self.limit) else {
            if self.offsets.is_empty() {
                let message = format!("{} bytes fit into no container", entry.length);
                return Err(Error::new(ErrorKind::TooLarge, message));
            }
            return Ok(false);
        };
        if let Some(last) = &self.last {
            let before = (last.created_at, last.address);
            self.sorted &= before <= (entry.created_at, entry.address);
            self.has_adjacent_duplicates |= last.address == entry.address;
        }
        self.last = Some(*entry);
        self.offsets.push(offset);
        self.region_bytes = bytes;
        Ok(true)
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Returns `true` if there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    /// Returns the header of the planned container.
    ///
    /// # Errors
    /// `ERR_CORRUPT` if the end of the last entry cannot be determined, or if the manifest has more
    /// entries than there are grains.
    pub(super) fn head(&self) -> Result<ContainerHeader> {
        if self.last.is_some_and(|last| last.open_ended) {
            return Err(no_visible_end());
        }
        let count = u32::try_from(self.offsets.len()).unwrap_or(u32::MAX);
        if self.manifest_entries > count {
            return Err(corrupt("a manifest is about the grains of its container alone"));
        }
        Ok(ContainerHeader {
            count,
            compression: self.compression,
            sorted: self.sorted,
            // In sorted order, equal entries are adjacent.
            deduplicated: !self.has_adjacent_duplicates && (self.sorted || self.assume_distinct),
            manifest: self.manifest_entries > 0,
        })
    }

    /// Returns the number of entries in the manifest.
    pub(super) fn manifest_entries(&self) -> u32 {
        self.manifest_entries
    }

    /// Returns the length of all entries in bytes.
    pub(super) fn region_bytes(&self) -> u64 {
        self.region_bytes
    }
}

fn no_visible_end() -> Error {
    corrupt("a blob with an encrypted payload has no visible end and cannot be the last of a file")
        .with_hint("put a grain whose payload is not encrypted behind it")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(created_at: i64, name: u8, open_ended: bool) -> PlannedEntry {
        let address = ContentAddress::from_bytes([name; 32]);
        PlannedEntry { created_at: EpochMs::new(created_at), address, length: 100, open_ended }
    }

    fn head(entries: &[PlannedEntry]) -> Result<ContainerHeader> {
        let mut plan = ContainerPlan::new(Compression::None);
        for entry in entries {
            assert!(plan.add(entry)?);
        }
        plan.head()
    }

    #[test]
    fn flags_say_what_is_true_of_the_entries() {
        for (entries, sorted, deduplicated) in [
            (vec![], true, true),
            (vec![planned(1, 1, false), planned(1, 2, false), planned(2, 1, false)], true, true),
            (vec![planned(1, 1, false), planned(1, 1, false)], true, false),
            (vec![planned(1, 2, false), planned(1, 1, false)], false, false),
        ] {
            let head = head(&entries).unwrap();
            assert_eq!((head.sorted, head.deduplicated), (sorted, deduplicated), "{entries:?}");
        }
        let mut plan = ContainerPlan::new(Compression::None).assume_distinct();
        for entry in [planned(2, 2, false), planned(1, 1, false)] {
            plan.add(&entry).unwrap();
        }
        assert_eq!(plan.head().map(|head| (head.sorted, head.deduplicated)), Ok((false, true)));
    }

    #[test]
    fn no_entry_without_a_visible_end_comes_last() {
        let (open, plain) = (planned(2, 2, true), planned(1, 1, false));
        assert_eq!(head(&[plain, open]).map_err(|error| error.code()), Err("ERR_CORRUPT"));
        let mut entries = vec![open, plain, open];
        sort_entries(&mut entries).unwrap();
        assert_eq!(entries, [open, plain]);
        assert_eq!(head(&entries).map(|head| (head.count, head.sorted)), Ok((2, false)));
        assert_eq!(sort_entries(&mut vec![open]).map_err(|error| error.code()), Err("ERR_CORRUPT"));
        assert_eq!(sort_entries(&mut Vec::new()), Ok(()));
    }

    #[test]
    fn an_entry_that_does_not_fit_begins_the_next_file() {
        let entry = planned(1, 1, false);
        // Header, two offsets, two entries.
        let mut plan = ContainerPlan::new(Compression::None).with_limit(16 + 8 + 200);
        let fits: Vec<_> = (0..3).map(|_| plan.add(&entry).unwrap()).collect();
        assert_eq!((fits, plan.len()), (vec![true, true, false], 2));
        let tiny = ContainerPlan::new(Compression::None).with_limit(16 + 4 + 99).add(&entry);
        assert_eq!(tiny.map_err(|error| error.code()), Err("ERR_TOO_LARGE"));
    }

    #[test]
    fn offsets_never_leave_32_bits() {
        let whole = PlannedEntry { length: u32::MAX - 20, ..planned(1, 1, false) };
        let mut plan = ContainerPlan::new(Compression::Zstd);
        assert_eq!(plan.add(&whole), Ok(true));
        assert_eq!(plan.add(&PlannedEntry { length: 1, ..whole }), Ok(false));
    }
}
