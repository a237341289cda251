//! What the full text is made of, in bytes: the list of segments and what is gone from them, who
//! analysed the documents, and where in the log they stand.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `GRNTMAN` and the layout version |
//! | 8 | the analysis |
//! | 4 | the number of the next segment |
//! | 1, ... | the length of the stamp, the stamp |
//! | 4 | segments |
//! | 4 + 8 + 4 + 1 each | number, length and CRC-32 of the file, 1 if something erased is in it |
//! | 4, ... each | documents that are gone, the steps between them (varints) |
//! | 4 | CRC-32 of all bytes before |
//!
//! Numbers are big-endian. Knows nothing of how files are read and written.

use std::sync::Arc;

use super::fold::file_name;
use super::forward::{put_varint, take_varint};
use super::gone::Gone;
use super::packed::take;
use super::segment::Segment;
use super::texts::{Kept, Texts};
use crate::error::{Error, Result};

/// What a manifest begins with; the last byte is the version of the layout.
const MAGIC: [u8; 8] = *b"GRNTMAN\x01";
/// The most bytes of a stamp.
pub const MOST_STAMP: usize = 128;

/// A manifest that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    analysis: u64,
    next: u32,
    stamp: Vec<u8>,
    segments: Vec<Listed>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Listed {
    number: u32,
    length: u64,
    checksum: [u8; 4],
    erased: bool,
    gone: Vec<u32>,
}

impl Manifest {
    /// Reads a manifest.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if the bytes are not a manifest of this layout.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        parse(bytes).ok_or_else(|| Error::integrity("the manifest of the full text is damaged"))
    }

    /// The bytes of it.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(self.analysis.to_be_bytes());
        bytes.extend(self.next.to_be_bytes());
        bytes.push(u8::try_from(self.stamp.len()).unwrap_or(u8::MAX));
        bytes.extend(&self.stamp);
        bytes.extend(count(self.segments.len()));
        for segment in &self.segments {
            bytes.extend(segment.number.to_be_bytes());
            bytes.extend(segment.length.to_be_bytes());
            bytes.extend(segment.checksum);
            bytes.push(u8::from(segment.erased));
            bytes.extend(count(segment.gone.len()));
            let mut before = 0;
            for document in &segment.gone {
                put_varint(&mut bytes, document.saturating_sub(before));
                before = *document;
            }
        }
        bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
        bytes
    }

    /// What analysed the documents.
    #[must_use]
    pub fn analysis(&self) -> u64 {
        self.analysis
    }

    /// Where in the log the segments stand.
    #[must_use]
    pub fn stamp(&self) -> &[u8] {
        &self.stamp
    }

    /// The names of the files it lists. All others are of no use.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.segments.iter().map(|segment| file_name(segment.number)).collect()
    }
}

impl Texts {
    /// The full text of a manifest. `read` gives the bytes of a file by its name. The tail is
    /// empty: what comes after the stamp in the log is to be set again.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if a file is not the one that is listed, or is damaged; those of `read`.
    /// The full text is then to be built anew.
    pub fn open(
        manifest: &Manifest,
        read: &mut dyn FnMut(&str) -> Result<Vec<u8>>,
    ) -> Result<Self> {
        let mut texts = Self::new(manifest.analysis)?;
        texts.next = manifest.next;
        texts.stamp = manifest.stamp.as_slice().into();
        for listed in &manifest.segments {
            let bytes = read(&file_name(listed.number))?;
            if !listed.is(&bytes) {
                return Err(Error::integrity("a file of the full text is not the one listed"));
            }
            let segment = Arc::new(Segment::open(bytes)?);
            let mut gone = Gone::default();
            for document in &listed.gone {
                gone.remove(&segment, *document)?;
            }
            if listed.erased {
                gone.mark_erased();
            }
            texts.segments.push(Kept { number: listed.number, segment, gone });
        }
        Ok(texts)
    }

    /// The bytes of the manifest as things stand. What is in the tail is not in it.
    #[must_use]
    pub fn manifest(&self) -> Vec<u8> {
        let listed = |kept: &Kept| Listed {
            number: kept.number,
            length: kept.segment.bytes().len() as u64,
            checksum: checksum(kept.segment.bytes()).unwrap_or_default(),
            erased: kept.gone.is_erased(),
            gone: kept.gone.iter().collect(),
        };
        let manifest = Manifest {
            analysis: self.analysis,
            next: self.next,
            stamp: self.stamp.to_vec(),
            segments: self.segments.iter().map(listed).collect(),
        };
        manifest.encode()
    }

    /// The names of the files it is made of, as the manifest lists them.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.segments.iter().map(Kept::name).collect()
    }

    /// The bytes of a file, if it is one of them.
    #[must_use]
    pub fn file(&self, name: &str) -> Option<&[u8]> {
        let kept = self.segments.iter().find(|kept| kept.name() == name)?;
        Some(kept.segment.bytes())
    }

    /// Where in the log the segments stand.
    #[must_use]
    pub fn stamp(&self) -> &[u8] {
        &self.stamp
    }
}

impl Listed {
    /// Whether a file may be the one listed.
    fn is(&self, bytes: &[u8]) -> bool {
        bytes.len() as u64 == self.length && checksum(bytes) == Some(self.checksum)
    }
}

/// The checksum a segment ends with.
fn checksum(bytes: &[u8]) -> Option<[u8; 4]> {
    bytes.last_chunk::<4>().copied()
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
    let sound = rest.is_empty() && stamp.len() <= MOST_STAMP;
    sound.then_some(Manifest { analysis, next, stamp: stamp.to_vec(), segments })
}

fn parse_segment(rest: &mut &[u8]) -> Option<Listed> {
    let number = u32::from_be_bytes(take(rest)?);
    let length = u64::from_be_bytes(take(rest)?);
    let checksum = take(rest)?;
    let [erased] = take::<1>(rest)?;
    let mut gone = Vec::new();
    let mut document = 0_u32;
    for _ in 0..u32::from_be_bytes(take(rest)?) {
        document = document.checked_add(take_varint(rest)?)?;
        gone.push(document);
    }
    Some(Listed { number, length, checksum, erased: erased != 0, gone })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_a_manifest_are_as_documented() {
        let listed = Listed {
            number: 3,
            length: 258,
            checksum: [1, 2, 3, 4],
            erased: true,
            gone: vec![5, 133],
        };
        let manifest =
            Manifest { analysis: 7, next: 4, stamp: b"log".to_vec(), segments: vec![listed] };
        let mut golden = b"GRNTMAN\x01".to_vec();
        golden.extend([0, 0, 0, 0, 0, 0, 0, 7]);
        golden.extend([0, 0, 0, 4]);
        golden.extend(b"\x03log");
        golden.extend([0, 0, 0, 1]);
        golden.extend([0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 1, 2, 1, 2, 3, 4, 1]);
        golden.extend([0, 0, 0, 2, 5, 0x80, 1]);
        golden.extend(crc32fast::hash(&golden).to_be_bytes());
        assert_eq!(manifest.encode(), golden);
        assert_eq!(Manifest::decode(&golden).unwrap(), manifest);
        assert_eq!(manifest.names(), ["00000003.seg"]);
    }
}
