//! A segment: an immutable set of documents, in one run of bytes, which lie in a file and are read by pages.
//!
//! Postings, dictionary and lengths are in the formats of the search library, so that its pruning can be
//! used; beside them are the sequence and the terms of each document. Deleted documents are not its concern,
//! see `gone`.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use tantivy::directory::OwnedBytes;
use tantivy::fieldnorm::FieldNormReader;
use tantivy::index::{Index, IndexSettings, InvertedIndexReader, Segment as Inner, SegmentId};
use tantivy::postings::{BlockSegmentPostings, SegmentPostings, TermInfo};
use tantivy::schema::{Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::{Directory, SegmentReader};

use super::directory::{Section, SegmentDirectory};
use super::forward::ForwardRecord;
use super::page_tag::{MAX_PAGE_BYTES, PageTag, TAG_BYTES};
use super::pages::{self, SegmentBytes};
use super::segment_file::{FOOTER_BYTES, Footer, SECTIONS};
use super::segment_store::SegmentStore;
use crate::error::{Error, Result};
use crate::posting::Sequence;

/// The files of the library in the order of the sections; sequences, the forward index and its offsets follow.
pub(super) const FILES: [&str; SECTIONS - 3] = ["idx", "pos", "term", "fieldnorm", "fast", "store"];
/// About the bytes that a merge holds for a document, beside its postings and terms.
pub(super) const MERGE_BYTES_OF_A_DOCUMENT: usize = 40;
/// Bytes of terms that a merge reads at once.
const FORWARD_BLOCK_BYTES: usize = 256 << 10;
/// Those that the library keeps in memory while a segment is open.
const KEPT: [&str; 2] = ["term", "fieldnorm"];

/// A segment that was opened.
pub(super) struct Segment {
    bytes: SegmentBytes,
    footer: Footer,
    /// The tag at its end.
    tag: [u8; TAG_BYTES],
    size: u64,
    reader: SegmentReader,
    inverted_index: Arc<InvertedIndexReader>,
    lengths: FieldNormReader,
    sequences: Section,
    offsets: Section,
    forward: Section,
}

/// The terms of a document, as they were read.
#[derive(Debug, Clone)]
pub(super) struct StoredRecord {
    bytes: OwnedBytes,
    width: usize,
}

/// The terms of documents one after another, as a merge reads them.
#[derive(Debug)]
pub(super) struct ForwardBlock {
    start: usize,
    bytes: OwnedBytes,
}

impl Default for ForwardBlock {
    fn default() -> Self {
        Self { start: 0, bytes: OwnedBytes::empty() }
    }
}

impl ForwardBlock {
    fn has(&self, place: &Range<usize>) -> bool {
        place.start >= self.start && place.end <= self.start.saturating_add(self.bytes.len())
    }
}

impl StoredRecord {
    /// The record.
    #[inline]
    pub(super) fn record(&self) -> ForwardRecord<'_> {
        ForwardRecord::read(self.bytes.as_slice(), self.width).unwrap_or_default()
    }
}

/// A term of one segment.
#[derive(Debug, Clone)]
pub(super) struct SegmentTerm {
    /// Its ordinal in the dictionary of the segment.
    pub(super) ordinal: u32,
    /// Its postings and document frequency.
    pub(super) info: TermInfo,
}

/// The only field of the schema.
pub(super) fn field() -> Field {
    Field::from_field_id(0)
}

/// The schema: terms with frequencies. Positions are stored in the forward index instead.
pub(super) fn schema() -> Schema {
    let indexing = TextFieldIndexing::default()
        .set_tokenizer("raw")
        .set_index_option(IndexRecordOption::WithFreqs)
        .set_fieldnorms(true);
    let mut schema = Schema::builder();
    schema.add_text_field("words", TextOptions::default().set_indexing_options(indexing));
    schema.build()
}

/// Opens the segment in a directory.
pub(super) fn library_segment(
    directory: impl Into<Box<dyn Directory>>,
    documents: u32,
) -> Result<Inner> {
    let index = Index::create(directory, schema(), IndexSettings::default())?;
    let id =
        SegmentId::from_uuid_string("00000000000000000000000000000001").map_err(Error::text)?;
    Ok(index.segment(index.new_segment_meta(id, documents)))
}

impl Segment {
    /// Opens a segment in memory. Checks every byte.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if the bytes are not a segment of this layout.
    pub(super) fn open_memory(bytes: Vec<u8>, tag: PageTag<'_>) -> Result<Self> {
        Self::open(pages::open_memory(bytes, tag)?)
    }

    /// Opens a segment in a file: reads its end, its dictionary and the lengths of its documents.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if it is not a segment of this layout, or cannot be read.
    pub(super) fn open_file(store: &SegmentStore, name: &str) -> Result<Self> {
        Self::open(pages::open_file(store, name)?)
    }

    fn open((bytes, footer, tag): pages::Opened) -> Result<Self> {
        let mut at = 0_usize;
        let mut sections = Vec::with_capacity(SECTIONS);
        for (number, size) in footer.sections.into_iter().enumerate() {
            let size = usize::try_from(size).map_err(|_| unsound())?;
            let is_kept = FILES.get(number).is_some_and(|name| KEPT.contains(name));
            sections.push(Section::new(&bytes, at, size, is_kept));
            at = at.saturating_add(size);
        }
        let own = sections.split_off(FILES.len());
        let Ok([sequences, forward, offsets]) = <[Section; 3]>::try_from(own) else {
            return Err(unsound());
        };
        let files = FILES.into_iter().zip(sections).collect();
        let directory = SegmentDirectory::new(files);
        let reader = SegmentReader::open(&library_segment(directory, footer.documents)?)?;
        let inverted_index = reader.inverted_index(field())?;
        let lengths = reader.get_fieldnorms_reader(field())?;
        let pages = at.div_ceil(MAX_PAGE_BYTES).saturating_mul(TAG_BYTES);
        let size = at.saturating_add(pages).saturating_add(FOOTER_BYTES) as u64;
        let segment = Self {
            bytes,
            footer,
            tag,
            size,
            reader,
            inverted_index,
            lengths,
            sequences,
            offsets,
            forward,
        };
        if segment.is_sound() { Ok(segment) } else { Err(unsound()) }
    }

    /// Returns `true` if the columns have a row for each document.
    fn is_sound(&self) -> bool {
        let documents = usize::try_from(self.footer.documents).unwrap_or(usize::MAX);
        let last = self.footer.documents.checked_sub(1);
        let read = |row: Option<u32>| row.and_then(|row| self.sequences.number(row).ok());
        let (first, last) = (read(last.map(|_| 0)), read(last));
        self.lengths.num_docs() == self.footer.documents
            && self.sequences.size() == documents.saturating_mul(8)
            && self.offsets.size() == documents.saturating_add(1).saturating_mul(8)
            && first.zip(last) == Some(self.footer.range)
            && self.offsets.number(self.footer.documents).ok() == Some(self.forward.size() as u64)
    }

    /// Takes note that a merge reads it and takes its place.
    pub(super) fn begin_merge(&self) {
        self.bytes.begin_merge();
    }

    /// The bytes of the segment, if it lies in memory.
    pub(super) fn memory(&self) -> Option<&[u8]> {
        match &self.bytes {
            SegmentBytes::Memory(bytes) => Some(bytes.as_slice()),
            SegmentBytes::File(_) => None,
        }
    }

    /// Where the terms of documents begin.
    #[cfg(test)]
    pub(super) fn forward_start(&self) -> usize {
        let before = self.footer.sections.iter().take(FILES.len() + 1);
        usize::try_from(before.sum::<u64>()).unwrap()
    }

    /// The bytes of its file.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// The bytes it takes in memory, beside pages in the cache.
    pub(super) fn resident(&self) -> u64 {
        let kept = FILES.iter().zip(self.footer.sections);
        let kept = kept.filter(|(name, _)| KEPT.contains(name)).map(|(_, size)| size);
        let in_file = self.memory().is_none();
        let kept: u64 = kept.filter(|_| in_file).sum();
        kept.saturating_add(self.bytes.resident() as u64)
    }

    /// About the bytes that a merge of it holds: its postings and dictionary once more, and columns.
    pub(super) fn merge_bytes(&self) -> usize {
        let [postings, _, terms, ..] = self.footer.sections;
        let files = usize::try_from(postings.saturating_add(terms)).unwrap_or(usize::MAX);
        let documents = usize::try_from(self.footer.documents).unwrap_or(usize::MAX);
        files.saturating_add(documents.saturating_mul(MERGE_BYTES_OF_A_DOCUMENT))
    }

    /// The tag at the end of its file.
    pub(super) fn tag(&self) -> [u8; TAG_BYTES] {
        self.tag
    }

    /// The number of documents, deleted ones included.
    pub(super) fn documents(&self) -> u32 {
        self.footer.documents
    }

    /// The sum of the lengths of its documents.
    pub(super) fn length(&self) -> u64 {
        self.footer.length
    }

    /// The segment reader of the library.
    pub(super) fn reader(&self) -> &SegmentReader {
        &self.reader
    }

    /// The dictionary and the postings.
    pub(super) fn inverted_index(&self) -> &InvertedIndexReader {
        &self.inverted_index
    }

    /// The doc id of a grain.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if the sequences cannot be read.
    pub(super) fn doc_id(&self, sequence: Sequence) -> Result<Option<u32>> {
        self.doc_id_from(sequence, &mut 0)
    }

    /// The doc id of a grain at or after `from`, by galloping search. `from` is advanced to the first doc id
    /// for later grains, so that ascending look-ups share the work.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if the sequences cannot be read.
    pub(super) fn doc_id_from(&self, sequence: Sequence, from: &mut u32) -> Result<Option<u32>> {
        let (first, last) = self.footer.range;
        let Some(ahead) = sequence.get().checked_sub(first).filter(|_| sequence.get() <= last)
        else {
            return Ok(None);
        };
        if self.is_dense() {
            *from = u32::try_from(ahead).map_err(|_| unsound())?;
            return Ok(Some(*from));
        }
        let (mut low, mut high, mut step) = (*from, self.footer.documents, 1_u32);
        while let Some(ahead) = low.checked_add(step).filter(|ahead| *ahead < high) {
            if self.sequence(ahead)? > sequence {
                high = ahead;
                break;
            }
            (low, step) = (ahead, step.saturating_mul(2));
        }
        let mut found = None;
        while low < high {
            let middle = low.midpoint(high);
            match self.sequence(middle)?.cmp(&sequence) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => {
                    found = Some(middle);
                    (low, high) = (middle, middle);
                }
                Ordering::Greater => high = middle,
            }
        }
        *from = low;
        Ok(found)
    }

    /// The sequence of a document.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if there is no such document, or it cannot be read.
    pub(super) fn sequence(&self, document: u32) -> Result<Sequence> {
        if self.is_dense() && document < self.footer.documents {
            return Ok(Sequence::new(self.footer.range.0.saturating_add(document.into())));
        }
        self.sequences.number(document).map(Sequence::new)
    }

    /// Returns `true` if no sequence between the first and the last is missing.
    fn is_dense(&self) -> bool {
        let (first, last) = self.footer.range;
        last.saturating_sub(first) == u64::from(self.footer.documents).saturating_sub(1)
    }

    /// The length code of a document.
    #[inline]
    pub(super) fn length_code(&self, document: u32) -> u8 {
        self.lengths.fieldnorm_id(document)
    }

    /// The terms of a document.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if there is no such document, or its record is malformed.
    pub(super) fn record(&self, document: u32) -> Result<StoredRecord> {
        let bytes = self.forward.read(self.place(document)?)?;
        self.stored(bytes)
    }

    /// The same, for who reads one document after another: blocks of many are read around the cache.
    ///
    /// # Errors
    /// As [`Segment::record`].
    pub(super) fn next_record(
        &self,
        document: u32,
        block: &mut ForwardBlock,
    ) -> Result<StoredRecord> {
        let place = self.place(document)?;
        if !block.has(&place) {
            let end = place.end.max(place.start.saturating_add(FORWARD_BLOCK_BYTES));
            let end = end.min(self.forward.size()).max(place.end);
            block.bytes = self.forward.read_around(place.start..end)?;
            block.start = place.start;
        }
        let at = |place: usize| place.saturating_sub(block.start);
        let range = at(place.start)..at(place.end);
        if range.end > block.bytes.len() {
            return Err(unsound());
        }
        self.stored(block.bytes.slice(range))
    }

    /// Where the terms of a document lie.
    fn place(&self, document: u32) -> Result<Range<usize>> {
        let [start, end] = self.offsets.numbers(document)?;
        let place = |at: u64| usize::try_from(at).ok();
        let range = place(start).zip(place(end)).filter(|(start, end)| start <= end);
        range.map(|(start, end)| start..end).ok_or_else(unsound)
    }

    fn stored(&self, bytes: OwnedBytes) -> Result<StoredRecord> {
        let width = self.footer.width;
        ForwardRecord::read(bytes.as_slice(), width).ok_or_else(unsound)?;
        Ok(StoredRecord { bytes, width })
    }

    /// Looks up a term, which may have deleted documents only.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if the dictionary cannot be read.
    pub(super) fn find_term(&self, term: &str) -> Result<Option<SegmentTerm>> {
        let terms = self.inverted_index.terms();
        let Some(info) = terms.get(term).map_err(Error::input)? else { return Ok(None) };
        let ordinal = terms.term_ord(term).map_err(Error::input)?;
        let ordinal = ordinal.and_then(|ordinal| u32::try_from(ordinal).ok());
        Ok(ordinal.map(|ordinal| SegmentTerm { ordinal, info }))
    }

    /// The postings of a term, with weights.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if they cannot be read.
    pub(super) fn postings(&self, info: &TermInfo) -> Result<SegmentPostings> {
        let option = IndexRecordOption::WithFreqs;
        self.inverted_index.read_postings_from_terminfo(info, option).map_err(Error::input)
    }

    /// The postings of a term, with weights, in blocks.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if they cannot be read.
    pub(super) fn blocks(&self, info: &TermInfo) -> Result<BlockSegmentPostings> {
        let option = IndexRecordOption::WithFreqs;
        self.inverted_index.read_block_postings_from_terminfo(info, option).map_err(Error::input)
    }
}

impl std::fmt::Debug for Segment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Segment").field("documents", &self.footer.documents).finish_non_exhaustive()
    }
}

fn unsound() -> Error {
    Error::integrity("a segment of the full text contradicts itself")
}
