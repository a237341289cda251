//! What will be in a container, known before the first of its bytes: header and offsets stand in front
//! of the grains, and neither must be written twice.

use super::entry;
use super::layout::{Compression, HEADER_LEN, Head, MAX_REGION_BYTES, OFFSET_LEN};
use crate::address::ContentAddress;
use crate::error::{Error, ErrorKind, Result, corrupt};
use crate::header::Flags;
use crate::profile::Profile;
use crate::time::EpochMs;

/// A grain that is to go into a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Planned {
    /// When it was created, in milliseconds.
    pub created_at: EpochMs,
    /// The address of its blob.
    pub address: ContentAddress,
    /// Bytes of its entry, the envelope included.
    pub length: u32,
    /// Whether its payload is encrypted inside a bare blob, so that only its neighbour ends it.
    pub open_ended: bool,
}

impl Planned {
    /// What has to be known of an entry whose blob was created at this time, as
    /// [`super::Entry::created_at`] has it.
    ///
    /// # Errors
    /// `ERR_TOO_LARGE`; `ERR_CORRUPT` and `ERR_SIGNED_MISMATCH` for what is no entry.
    pub fn of(entry: &[u8], created_at: EpochMs) -> Result<Self> {
        entry::check_size(entry.len(), &Profile::EXTENDED)?;
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

/// Brings entries into the order of a container: by time, ties by address, each once, and none last
/// whose end cannot be seen (ruling 36).
///
/// # Errors
/// `ERR_CORRUPT` where the payload of every one is encrypted.
pub fn arrange(entries: &mut Vec<Planned>) -> Result<()> {
    entries.sort_unstable();
    entries.dedup_by_key(|entry| entry.address);
    let Some(ended) = entries.iter().rposition(|entry| !entry.open_ended) else {
        return if entries.is_empty() { Ok(()) } else { Err(endless()) };
    };
    let last = entries.remove(ended);
    entries.push(last);
    Ok(())
}

/// The entries of one container, in the order they are going to be written. Takes four bytes a grain.
#[derive(Debug, Clone)]
pub struct Plan {
    compression: Compression,
    /// Offset of each entry within the region.
    pub(super) offsets: Vec<u32>,
    region_bytes: u64,
    limit: u64,
    sorted: bool,
    /// Whether two neighbours are the same.
    repeats: bool,
    /// Whether the caller says that no two are the same.
    distinct: bool,
    last: Option<Planned>,
    manifest: u32,
}

impl Plan {
    /// An empty container of this compression.
    #[must_use]
    pub fn new(compression: Compression) -> Self {
        Self {
            compression,
            offsets: Vec::new(),
            region_bytes: 0,
            limit: MAX_REGION_BYTES,
            sorted: true,
            repeats: false,
            distinct: false,
            last: None,
            manifest: 0,
        }
    }

    /// The same, full at so many bytes of header, offsets and inflated grains already.
    #[must_use]
    pub fn limited_to(mut self, bytes: u64) -> Self {
        self.limit = bytes.min(MAX_REGION_BYTES);
        self
    }

    /// The same for entries of which the caller knows that no two have one address. Entries that
    /// come sorted show it by themselves.
    #[must_use]
    pub fn distinct(mut self) -> Self {
        self.distinct = true;
        self
    }

    /// The same with a manifest about so many of the grains; 0 for none.
    #[must_use]
    pub fn with_manifest(mut self, grains: u32) -> Self {
        self.manifest = grains;
        self
    }

    /// Adds an entry behind the others. `false` where it does not fit: it begins the next file.
    ///
    /// # Errors
    /// `ERR_TOO_LARGE` for an entry that fits no file.
    pub fn add(&mut self, entry: &Planned) -> Result<bool> {
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
            self.repeats |= last.address == entry.address;
        }
        self.last = Some(*entry);
        self.offsets.push(offset);
        self.region_bytes = bytes;
        Ok(true)
    }

    /// How many entries it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    /// The header it comes to.
    ///
    /// # Errors
    /// `ERR_CORRUPT` where the last entry has no visible end, or the manifest is about more grains
    /// than there are.
    pub(super) fn head(&self) -> Result<Head> {
        if self.last.is_some_and(|last| last.open_ended) {
            return Err(endless());
        }
        let count = u32::try_from(self.offsets.len()).unwrap_or(u32::MAX);
        if self.manifest > count {
            return Err(corrupt("a manifest is about the grains of its container alone"));
        }
        Ok(Head {
            count,
            compression: self.compression,
            sorted: self.sorted,
            // Of sorted entries, equal ones are neighbours.
            deduplicated: !self.repeats && (self.sorted || self.distinct),
            manifest: self.manifest > 0,
        })
    }

    /// How many grains the manifest is about.
    pub(super) fn manifest(&self) -> u32 {
        self.manifest
    }

    /// Bytes of all entries.
    pub(super) fn region_bytes(&self) -> u64 {
        self.region_bytes
    }
}

fn endless() -> Error {
    corrupt("a blob with an encrypted payload has no visible end and cannot be the last of a file")
        .with_hint("put a grain whose payload is not encrypted behind it")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(created_at: i64, name: u8, open_ended: bool) -> Planned {
        let address = ContentAddress::from_bytes([name; 32]);
        Planned { created_at: EpochMs::new(created_at), address, length: 100, open_ended }
    }

    fn head(entries: &[Planned]) -> Result<Head> {
        let mut plan = Plan::new(Compression::None);
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
        let mut plan = Plan::new(Compression::None).distinct();
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
        arrange(&mut entries).unwrap();
        assert_eq!(entries, [open, plain]);
        assert_eq!(head(&entries).map(|head| (head.count, head.sorted)), Ok((2, false)));
        assert_eq!(arrange(&mut vec![open]).map_err(|error| error.code()), Err("ERR_CORRUPT"));
        assert_eq!(arrange(&mut Vec::new()), Ok(()));
    }

    #[test]
    fn an_entry_that_does_not_fit_begins_the_next_file() {
        let entry = planned(1, 1, false);
        // Header, two offsets, two entries.
        let mut plan = Plan::new(Compression::None).limited_to(16 + 8 + 200);
        let fits: Vec<_> = (0..3).map(|_| plan.add(&entry).unwrap()).collect();
        assert_eq!((fits, plan.len()), (vec![true, true, false], 2));
        let tiny = Plan::new(Compression::None).limited_to(16 + 4 + 99).add(&entry);
        assert_eq!(tiny.map_err(|error| error.code()), Err("ERR_TOO_LARGE"));
    }

    #[test]
    fn offsets_never_leave_32_bits() {
        let whole = Planned { length: u32::MAX - 20, ..planned(1, 1, false) };
        let mut plan = Plan::new(Compression::Zstd);
        assert_eq!(plan.add(&whole), Ok(true));
        assert_eq!(plan.add(&Planned { length: 1, ..whole }), Ok(false));
    }
}
