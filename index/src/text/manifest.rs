//! The manifest of a text index: its segments and their deleted documents, the analysis they were made with,
//! and the log position up to which they go.
//!
//! | bytes | content |
//! |---|---|
//! | 8 | `GRNTMAN` and the layout version |
//! | 8 | the analysis |
//! | 4 | the number of the next segment |
//! | 1, ... | the length of the log position, the log position |
//! | 4 | number of segments |
//! | 4 + 8 + 16 + 1 each | number, length and tag of the file, 1 if an erased document is in it |
//! | 4, ... each | number of deleted documents, the deltas between their doc ids (varints) |
//! | 4 | CRC-32 of all bytes before |
//!
//! Numbers are big-endian. Does no I/O.

use std::sync::Arc;

use super::deleted::DeletedDocs;
use super::fold::file_name;
use super::inverted_index::{InvertedIndex, SegmentEntry};
use super::page_tag::{TAG_BYTES, checksum};
use super::segment::Segment;
use super::segment_file::take;
use super::segment_store::SegmentStore;
use crate::error::{Error, Result};
use crate::varint::{put_varint, take_varint};

/// The first bytes of a manifest; the last one is the layout version.
const MAGIC: [u8; 8] = *b"GRNTMAN\x02";
/// The most bytes of a log position in a [`Manifest`].
pub const MAX_LOG_POSITION_BYTES: usize = 128;

/// A decoded manifest.
///
/// ```
/// use grainstore_index::text::{InvertedIndex, Manifest};
///
/// let index = InvertedIndex::new(7)?;
/// let manifest = Manifest::decode(&index.manifest())?;
/// assert_eq!((manifest.analysis(), manifest.file_names().len()), (7, 0));
/// assert!(Manifest::decode(b"no manifest").is_err());
/// # Ok::<(), grainstore_index::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    analysis: u64,
    next: u32,
    log_position: Vec<u8>,
    segments: Vec<ManifestSegment>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct ManifestSegment {
    number: u32,
    length: u64,
    tag: [u8; TAG_BYTES],
    erased: bool,
    deleted: Vec<u32>,
}

impl Manifest {
    /// Decodes a manifest.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if the bytes are not a manifest of this layout.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        parse(bytes).ok_or_else(|| Error::integrity("the manifest of the full text is damaged"))
    }

    /// Encodes the manifest.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(self.analysis.to_be_bytes());
        bytes.extend(self.next.to_be_bytes());
        bytes.push(u8::try_from(self.log_position.len()).unwrap_or(u8::MAX));
        bytes.extend(&self.log_position);
        bytes.extend(count(self.segments.len()));
        for segment in &self.segments {
            bytes.extend(segment.number.to_be_bytes());
            bytes.extend(segment.length.to_be_bytes());
            bytes.extend(segment.tag);
            bytes.push(u8::from(segment.erased));
            bytes.extend(count(segment.deleted.len()));
            let mut before = 0;
            for document in &segment.deleted {
                put_varint(&mut bytes, document.saturating_sub(before));
                before = *document;
            }
        }
        bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
        bytes
    }

    /// The analysis the documents were made with.
    #[must_use]
    pub fn analysis(&self) -> u64 {
        self.analysis
    }

    /// The log position the segments go up to.
    #[must_use]
    pub fn log_position(&self) -> &[u8] {
        &self.log_position
    }

    /// The names of the files it lists. All other files are unused.
    #[must_use]
    pub fn file_names(&self) -> Vec<String> {
        self.segments.iter().map(|segment| file_name(segment.number)).collect()
    }
}

impl InvertedIndex {
    /// Opens the text index of a manifest in memory. `read` returns the bytes of a file by its name. The tail is
    /// empty: the log after the log position is to be indexed again.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if a file is not the listed one, or is damaged; those of `read`. The text index must
    /// then be rebuilt.
    pub fn open(
        manifest: &Manifest,
        read: &mut dyn FnMut(&str) -> Result<Vec<u8>>,
    ) -> Result<Self> {
        let store = SegmentStore::default();
        Self::open_segments(manifest, &store, &mut |name| {
            Segment::open_memory(read(name)?, &checksum)
        })
    }

    /// Like [`InvertedIndex::open`], for files that are read when they are needed: of each only the end, the
    /// dictionary and the lengths of documents are read here. Damage in the rest is found by who reads there.
    ///
    /// # Errors
    /// As [`InvertedIndex::open`].
    pub fn open_files(manifest: &Manifest, store: &SegmentStore) -> Result<Self> {
        Self::open_segments(manifest, store, &mut |name| Segment::open_file(store, name))
    }

    fn open_segments(
        manifest: &Manifest,
        store: &SegmentStore,
        open: &mut dyn FnMut(&str) -> Result<Segment>,
    ) -> Result<Self> {
        let mut texts = Self::with_store(manifest.analysis, store.clone())?;
        texts.next_segment = manifest.next;
        texts.log_position = manifest.log_position.as_slice().into();
        for listed in &manifest.segments {
            let segment = Arc::new(open(&file_name(listed.number))?);
            if (segment.size(), segment.tag()) != (listed.length, listed.tag) {
                return Err(Error::integrity("a file of the full text is not the one listed"));
            }
            let mut gone = DeletedDocs::default();
            for document in &listed.deleted {
                gone.remove(&segment, *document)?;
            }
            if listed.erased {
                gone.mark_erased();
            }
            texts.segments.push(SegmentEntry { number: listed.number, segment, gone });
        }
        Ok(texts)
    }

    /// The manifest of the current state, encoded. The tail is not part of it.
    #[must_use]
    pub fn manifest(&self) -> Vec<u8> {
        let listed = |kept: &SegmentEntry| ManifestSegment {
            number: kept.number,
            length: kept.segment.size(),
            tag: kept.segment.tag(),
            erased: kept.gone.is_erased(),
            deleted: kept.gone.iter().collect(),
        };
        let manifest = Manifest {
            analysis: self.analysis,
            next: self.next_segment,
            log_position: self.log_position.to_vec(),
            segments: self.segments.iter().map(listed).collect(),
        };
        manifest.encode()
    }

    /// The names of its files, as listed in the manifest.
    #[must_use]
    pub fn file_names(&self) -> Vec<String> {
        self.segments.iter().map(SegmentEntry::name).collect()
    }

    /// The bytes of one of its segments that lies in memory; `None` for another name, and for one in a file.
    #[must_use]
    pub fn file(&self, name: &str) -> Option<&[u8]> {
        let kept = self.segments.iter().find(|kept| kept.name() == name)?;
        kept.segment.memory()
    }

    /// The log position the segments go up to.
    #[must_use]
    pub fn log_position(&self) -> &[u8] {
        &self.log_position
    }
}

fn count(count: usize) -> [u8; 4] {
    u32::try_from(count).unwrap_or(u32::MAX).to_be_bytes()
}

fn parse(bytes: &[u8]) -> Option<Manifest> {
    let (body, checksum) = bytes.split_last_chunk::<4>()?;
    if crc32fast::hash(body).to_be_bytes() != *checksum {
        return None;
    }
    let mut rest = body;
    (take::<8>(&mut rest)? == MAGIC).then_some(())?;
    let analysis = u64::from_be_bytes(take(&mut rest)?);
    let next = u32::from_be_bytes(take(&mut rest)?);
    let [length] = take::<1>(&mut rest)?;
    let (stamp, mut rest) = rest.split_at_checked(usize::from(length))?;
    let mut segments = Vec::new();
    for _ in 0..u32::from_be_bytes(take(&mut rest)?) {
        segments.push(parse_segment(&mut rest)?);
    }
    let sound = rest.is_empty() && stamp.len() <= MAX_LOG_POSITION_BYTES;
    sound.then_some(Manifest { analysis, next, log_position: stamp.to_vec(), segments })
}

fn parse_segment(rest: &mut &[u8]) -> Option<ManifestSegment> {
    let number = u32::from_be_bytes(take(rest)?);
    let length = u64::from_be_bytes(take(rest)?);
    let tag = take(rest)?;
    let [erased] = take::<1>(rest)?;
    let mut gone = Vec::new();
    let mut document = 0_u32;
    for _ in 0..u32::from_be_bytes(take(rest)?) {
        document = document.checked_add(take_varint(rest)?)?;
        gone.push(document);
    }
    Some(ManifestSegment { number, length, tag, erased: erased != 0, deleted: gone })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_a_manifest_are_as_documented() {
        let listed = ManifestSegment {
            number: 3,
            length: 258,
            tag: [1; 16],
            erased: true,
            deleted: vec![5, 133],
        };
        let manifest = Manifest {
            analysis: 7,
            next: 4,
            log_position: b"log".to_vec(),
            segments: vec![listed],
        };
        let mut golden = b"GRNTMAN\x02".to_vec();
        golden.extend([0, 0, 0, 0, 0, 0, 0, 7]);
        golden.extend([0, 0, 0, 4]);
        golden.extend(b"\x03log");
        golden.extend([0, 0, 0, 1]);
        golden.extend([0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 1, 2]);
        golden.extend([1; 16]);
        golden.push(1);
        golden.extend([0, 0, 0, 2, 5, 0x80, 1]);
        golden.extend(crc32fast::hash(&golden).to_be_bytes());
        assert_eq!(manifest.encode(), golden);
        assert_eq!(Manifest::decode(&golden).unwrap(), manifest);
        assert_eq!(manifest.file_names(), ["00000003.seg"]);
    }
}
