//! The byte layout of a segment: a header, the sections, and a checksum. Knows nothing of the contents of a
//! section.
//!
//! | bytes | content |
//! |---|---|
//! | 8 | `GRNTEXT` and the layout version |
//! | 4 | number of documents |
//! | 4 | bytes of an ordinal |
//! | 8 | sum of the lengths of the documents |
//! | 8 each | lengths of the sections |
//! | ... | the sections |
//! | 4 | CRC-32 of all bytes before |
//!
//! Numbers are big-endian.

use tantivy::directory::OwnedBytes;

use crate::error::{Error, Result};

/// The first bytes of a segment; the last one is the layout version.
const MAGIC: [u8; 8] = *b"GRNTEXT\x01";
/// The number of sections of a segment.
pub(super) const SECTIONS: usize = 9;
const HEADER_BYTES: usize = 24 + 8 * SECTIONS;
const CHECKSUM_BYTES: usize = 4;

/// The parts of a segment.
#[derive(Debug, Clone)]
pub(super) struct SegmentParts {
    /// The number of documents, deleted ones included.
    pub(super) documents: u32,
    /// Bytes of an ordinal.
    pub(super) width: usize,
    /// The sum of the lengths of the documents.
    pub(super) length: u64,
    /// The sections, in their order.
    pub(super) sections: [OwnedBytes; SECTIONS],
}

/// Assembles a segment.
pub(super) fn pack(
    documents: u32,
    width: usize,
    length: u64,
    sections: &[&[u8]; SECTIONS],
) -> Vec<u8> {
    let size = sections.iter().map(|section| section.len()).sum::<usize>();
    let mut bytes =
        Vec::with_capacity(HEADER_BYTES.saturating_add(size).saturating_add(CHECKSUM_BYTES));
    bytes.extend(MAGIC);
    bytes.extend(documents.to_be_bytes());
    bytes.extend(u32::try_from(width).unwrap_or(u32::MAX).to_be_bytes());
    bytes.extend(length.to_be_bytes());
    for section in sections {
        bytes.extend((section.len() as u64).to_be_bytes());
    }
    for section in sections {
        bytes.extend_from_slice(section);
    }
    bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
    bytes
}

/// Splits a segment into its parts. The sections are slices of `bytes`; no data is copied.
///
/// # Errors
/// `ERR_INTEGRITY` if the bytes were not made by [`pack`].
pub(super) fn unpack(bytes: &OwnedBytes) -> Result<SegmentParts> {
    parse(bytes).ok_or_else(|| Error::integrity("a segment of the full text is damaged"))
}

fn parse(bytes: &OwnedBytes) -> Option<SegmentParts> {
    let end = bytes.len().checked_sub(CHECKSUM_BYTES)?;
    let (body, checksum) = bytes.as_slice().split_at_checked(end)?;
    if crc32fast::hash(body).to_be_bytes() != checksum {
        return None;
    }
    let mut rest = body;
    (take::<8>(&mut rest)? == MAGIC).then_some(())?;
    let documents = u32::from_be_bytes(take(&mut rest)?);
    let width = usize::try_from(u32::from_be_bytes(take(&mut rest)?)).ok()?;
    let length = u64::from_be_bytes(take(&mut rest)?);
    let mut at = HEADER_BYTES;
    let mut sections = [const { None }; SECTIONS];
    for section in &mut sections {
        let size = usize::try_from(u64::from_be_bytes(take(&mut rest)?)).ok()?;
        let next = at.checked_add(size).filter(|next| *next <= end)?;
        *section = Some(bytes.slice(at..next));
        at = next;
    }
    let sections = sections.map(|section| section.unwrap_or_else(OwnedBytes::empty));
    ((2..=4).contains(&width) && at == end).then_some(SegmentParts {
        documents,
        width,
        length,
        sections,
    })
}

/// Takes `N` bytes from the front.
pub(super) fn take<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    let (front, rest) = from.split_first_chunk::<N>()?;
    *from = rest;
    Some(*front)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_a_segment_are_as_documented() {
        let mut sections = [[].as_slice(); SECTIONS];
        sections[0] = b"postings";
        sections[8] = b"words";
        let packed = pack(2, 3, 258, &sections);
        let mut golden = b"GRNTEXT\x01".to_vec();
        golden.extend([0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 1, 2]);
        golden.extend([0, 0, 0, 0, 0, 0, 0, 8]);
        golden.extend([0; 8 * 7]);
        golden.extend([0, 0, 0, 0, 0, 0, 0, 5]);
        golden.extend(b"postingswords");
        golden.extend(crc32fast::hash(&golden).to_be_bytes());
        assert_eq!(packed, golden);
        let unpacked = unpack(&OwnedBytes::new(packed)).unwrap();
        assert_eq!((unpacked.documents, unpacked.width, unpacked.length), (2, 3, 258));
        assert_eq!(unpacked.sections[0].as_slice(), b"postings");
        assert_eq!(unpacked.sections[8].as_slice(), b"words");
    }
}
