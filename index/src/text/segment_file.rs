//! The byte layout of a segment: the sections, a tag for each page of them, and a footer. Knows nothing of the
//! contents of a section.
//!
//! | bytes | content |
//! |---|---|
//! | ... | the sections |
//! | 16 each | the tags of the pages: of every 4 KiB of the sections, and of the rest |
//! | 8 | `GRNTEXT` and the layout version |
//! | 4 | number of documents |
//! | 4 | bytes of an ordinal |
//! | 8 | sum of the lengths of the documents |
//! | 8, 8 | the first and the last sequence |
//! | 8 each | lengths of the sections |
//! | 16 | the tag of all bytes from the tags of the pages on |
//!
//! Numbers are big-endian. A page is compared with its tag when it is read, so that a segment can be opened by its
//! end.

use std::io::{self, Write};

use super::page_tag::{MAX_PAGE_BYTES, PageTag, TAG_BYTES};

/// The first bytes of a footer; the last one is the layout version.
const MAGIC: [u8; 8] = *b"GRNTEXT\x02";
/// The number of sections of a segment.
pub(super) const SECTIONS: usize = 9;
/// Bytes of a footer with its tag.
pub(super) const FOOTER_BYTES: usize = 40 + 8 * SECTIONS + TAG_BYTES;
/// The number under which the footer has its tag.
pub(super) const FOOTER_PAGE: u64 = u64::MAX;

/// What a footer tells of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Footer {
    /// The number of documents, deleted ones included.
    pub(super) documents: u32,
    /// Bytes of an ordinal.
    pub(super) width: usize,
    /// The sum of the lengths of the documents.
    pub(super) length: u64,
    /// The first and the last sequence.
    pub(super) range: (u64, u64),
    /// The lengths of the sections.
    pub(super) sections: [u64; SECTIONS],
}

impl Footer {
    /// Parses the bytes of a footer without its tag; `None` if they are of another layout.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        (take::<8>(&mut rest)? == MAGIC).then_some(())?;
        let documents = u32::from_be_bytes(take(&mut rest)?);
        let width = usize::try_from(u32::from_be_bytes(take(&mut rest)?)).ok()?;
        let mut number = || Some(u64::from_be_bytes(take(&mut rest)?));
        let (length, range) = (number()?, (number()?, number()?));
        let mut sections = [0; SECTIONS];
        for section in &mut sections {
            *section = number()?;
        }
        let sound = (2..=4).contains(&width) && rest.is_empty();
        sound.then_some(Self { documents, width, length, range, sections })
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(self.documents.to_be_bytes());
        bytes.extend(u32::try_from(self.width).unwrap_or(u32::MAX).to_be_bytes());
        let numbers = [self.length, self.range.0, self.range.1];
        for number in numbers.iter().chain(&self.sections) {
            bytes.extend(number.to_be_bytes());
        }
        bytes
    }

    /// The bytes of all sections; `None` if there cannot be so many.
    pub(super) fn body(&self) -> Option<u64> {
        self.sections.iter().try_fold(0, |sum: u64, size| sum.checked_add(*size))
    }
}

/// Writes a segment from its start to its end, holding one page of it.
pub(super) struct SegmentWriter<'w> {
    out: &'w mut dyn Write,
    tag: PageTag<'w>,
    page: Vec<u8>,
    tags: Vec<u8>,
    sections: [u64; SECTIONS],
    /// The section that is written.
    at: usize,
}

impl<'w> SegmentWriter<'w> {
    /// A writer at the start of the first section.
    pub(super) fn new(out: &'w mut dyn Write, tag: PageTag<'w>) -> Self {
        let page = Vec::with_capacity(MAX_PAGE_BYTES);
        Self { out, tag, page, tags: Vec::new(), sections: [0; SECTIONS], at: 0 }
    }

    /// Appends to the current section.
    ///
    /// # Errors
    /// Those of the output.
    pub(super) fn append(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        if let Some(size) = self.sections.get_mut(self.at) {
            *size = size.saturating_add(bytes.len() as u64);
        }
        while !bytes.is_empty() {
            let room = MAX_PAGE_BYTES.saturating_sub(self.page.len()).min(bytes.len());
            let (now, later) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
            self.page.extend_from_slice(now);
            bytes = later;
            if self.page.len() >= MAX_PAGE_BYTES {
                self.end_page()?;
            }
        }
        Ok(())
    }

    /// Ends the current section.
    pub(super) fn end_section(&mut self) {
        self.at = self.at.saturating_add(1);
    }

    /// Writes what follows the sections.
    ///
    /// # Errors
    /// Those of the output.
    pub(super) fn finish(
        mut self,
        documents: u32,
        (width, length): (usize, u64),
        range: (u64, u64),
    ) -> io::Result<()> {
        if !self.page.is_empty() {
            self.end_page()?;
        }
        let footer = Footer { documents, width, length, range, sections: self.sections };
        let mut end = self.tags;
        end.extend(footer.encode());
        let tag = (self.tag)(FOOTER_PAGE, &end);
        end.extend(tag);
        self.out.write_all(&end)
    }

    fn end_page(&mut self) -> io::Result<()> {
        let number = (self.tags.len() / TAG_BYTES) as u64;
        self.tags.extend((self.tag)(number, &self.page));
        self.out.write_all(&self.page)?;
        self.page.clear();
        Ok(())
    }
}

/// Takes `N` bytes from the front.
pub(super) fn take<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    let (front, rest) = from.split_first_chunk::<N>()?;
    *from = rest;
    Some(*front)
}

#[cfg(test)]
mod tests {
    use super::super::page_tag::checksum;
    use super::*;

    #[test]
    fn the_bytes_of_a_segment_are_as_documented() {
        let mut packed = Vec::new();
        let mut writer = SegmentWriter::new(&mut packed, &checksum);
        writer.append(b"postings").unwrap();
        for _ in 0..8 {
            writer.end_section();
        }
        writer.append(b"words").unwrap();
        writer.finish(2, (3, 258), (5, 9)).unwrap();
        let mut golden = b"postingswords".to_vec();
        let mut end = 0xeda4_1705_adea_c770_u64.to_be_bytes().to_vec();
        end.extend([0; 8]);
        end.extend(b"GRNTEXT\x02");
        end.extend([0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 1, 2]);
        end.extend([0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 9]);
        end.extend([0, 0, 0, 0, 0, 0, 0, 8]);
        end.extend([0; 8 * 7]);
        end.extend([0, 0, 0, 0, 0, 0, 0, 5]);
        end.extend(checksum(FOOTER_PAGE, &end));
        golden.extend(end);
        assert_eq!(packed, golden);
        let footer = Footer::parse(&packed[13 + 16..packed.len() - 16]).unwrap();
        assert_eq!((footer.documents, footer.width, footer.length), (2, 3, 258));
        assert_eq!((footer.range, footer.body()), ((5, 9), Some(13)));
    }
}
