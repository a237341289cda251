//! A segment: an immutable set of documents, in one run of bytes.
//!
//! Postings, dictionary and lengths are in the formats of the search library, so that its pruning can be
//! used; beside them are the sequence and the terms of each document. Deleted documents are not its concern,
//! see `gone`.

use std::cmp::Ordering;
use std::sync::Arc;

use tantivy::directory::OwnedBytes;
use tantivy::fieldnorm::FieldNormReader;
use tantivy::index::{Index, IndexSettings, InvertedIndexReader, Segment as Inner, SegmentId};
use tantivy::postings::{BlockSegmentPostings, SegmentPostings, TermInfo};
use tantivy::schema::{Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::{Directory, SegmentReader};

use super::directory::SegmentDirectory;
use super::forward::ForwardRecord;
use super::segment_file::{SECTIONS, unpack};
use crate::error::{Error, Result};
use crate::posting::Sequence;

/// The files of the library in the order of the sections; sequences, offsets and the forward index follow.
pub(super) const FILES: [&str; SECTIONS - 3] = ["idx", "pos", "term", "fieldnorm", "fast", "store"];

/// A segment in memory.
pub(super) struct Segment {
    bytes: OwnedBytes,
    documents: u32,
    length: u64,
    width: usize,
    reader: SegmentReader,
    inverted_index: Arc<InvertedIndexReader>,
    lengths: FieldNormReader,
    sequences: OwnedBytes,
    offsets: OwnedBytes,
    forward: OwnedBytes,
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
    /// Opens a segment. Checks every byte against the checksum, and the columns against each other.
    /// Allocations do not grow with lengths claimed in the bytes.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if the bytes are not a segment of this layout.
    pub(super) fn open(bytes: Vec<u8>) -> Result<Self> {
        let bytes = OwnedBytes::new(bytes);
        let packed = unpack(&bytes)?;
        let [.., sequences, offsets, forward] = &packed.sections;
        let files = FILES.into_iter().zip(packed.sections.iter().cloned()).collect();
        let reader =
            SegmentReader::open(&library_segment(SegmentDirectory::new(files), packed.documents)?)?;
        let words = reader.inverted_index(field())?;
        let lengths = reader.get_fieldnorms_reader(field())?;
        let segment = Self {
            documents: packed.documents,
            length: packed.length,
            width: packed.width,
            inverted_index: words,
            lengths,
            reader,
            sequences: sequences.clone(),
            offsets: offsets.clone(),
            forward: forward.clone(),
            bytes,
        };
        if segment.is_sound() { Ok(segment) } else { Err(unsound()) }
    }

    /// Returns `true` if the columns have a row for each document, in order.
    fn is_sound(&self) -> bool {
        let documents = usize::try_from(self.documents).unwrap_or(usize::MAX);
        let rows = |column: &OwnedBytes| column.len() / 8;
        self.lengths.num_docs() == self.documents
            && rows(&self.sequences) == documents
            && rows(&self.offsets) == documents.saturating_add(1)
            && column_values(&self.sequences).is_sorted_by(|a, b| a < b)
            && column_values(&self.offsets).is_sorted()
            && column_values(&self.offsets).last() == Some(self.forward.len() as u64)
    }

    /// The bytes of the segment.
    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.as_slice()
    }

    /// The number of documents, deleted ones included.
    pub(super) fn documents(&self) -> u32 {
        self.documents
    }

    /// The sum of the lengths of its documents.
    pub(super) fn length(&self) -> u64 {
        self.length
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
    pub(super) fn doc_id(&self, sequence: Sequence) -> Option<u32> {
        self.doc_id_from(sequence, &mut 0)
    }

    /// The doc id of a grain at or after `from`, by galloping search. `from` is advanced to the first doc id
    /// for later grains, so that ascending look-ups share the work.
    pub(super) fn doc_id_from(&self, sequence: Sequence, from: &mut u32) -> Option<u32> {
        let (mut low, mut high, mut step) = (*from, self.documents, 1_u32);
        while let Some(ahead) = low.checked_add(step).filter(|ahead| *ahead < high) {
            if self.sequence(ahead)? > sequence {
                high = ahead;
                break;
            }
            (low, step) = (ahead, step.saturating_mul(2));
        }
        while low < high {
            let middle = low.midpoint(high);
            match self.sequence(middle)?.cmp(&sequence) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => (low, high) = (middle, middle),
                Ordering::Greater => high = middle,
            }
        }
        *from = low;
        (self.sequence(low)? == sequence).then_some(low)
    }

    /// The sequence of a document.
    pub(super) fn sequence(&self, document: u32) -> Option<Sequence> {
        column_value(&self.sequences, document).map(Sequence::new)
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
    pub(super) fn record(&self, document: u32) -> Result<ForwardRecord<'_>> {
        let read = || {
            let start = usize::try_from(column_value(&self.offsets, document)?).ok()?;
            let end =
                usize::try_from(column_value(&self.offsets, document.checked_add(1)?)?).ok()?;
            ForwardRecord::read(self.forward.as_slice().get(start..end)?, self.width)
        };
        read().ok_or_else(unsound)
    }

    /// Looks up a term, which may have deleted documents only.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if the dictionary cannot be read.
    pub(super) fn find_term(&self, term: &str) -> Result<Option<SegmentTerm>> {
        let terms = self.inverted_index.terms();
        let Some(info) = terms.get(term).map_err(Error::text)? else { return Ok(None) };
        let ordinal = terms.term_ord(term).map_err(Error::text)?;
        let ordinal = ordinal.and_then(|ordinal| u32::try_from(ordinal).ok());
        Ok(ordinal.map(|ordinal| SegmentTerm { ordinal, info }))
    }

    /// The postings of a term, with weights.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if they cannot be read.
    pub(super) fn postings(&self, info: &TermInfo) -> Result<SegmentPostings> {
        let option = IndexRecordOption::WithFreqs;
        self.inverted_index.read_postings_from_terminfo(info, option).map_err(Error::text)
    }

    /// The postings of a term, with weights, in blocks.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if they cannot be read.
    pub(super) fn blocks(&self, info: &TermInfo) -> Result<BlockSegmentPostings> {
        let option = IndexRecordOption::WithFreqs;
        self.inverted_index.read_block_postings_from_terminfo(info, option).map_err(Error::text)
    }
}

impl std::fmt::Debug for Segment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Segment").field("documents", &self.documents).finish_non_exhaustive()
    }
}

fn unsound() -> Error {
    Error::integrity("a segment of the full text contradicts itself")
}

/// A row of a column of 8-byte numbers.
fn column_value(column: &OwnedBytes, row: u32) -> Option<u64> {
    let at = usize::try_from(row).ok()?.checked_mul(8)?;
    let bytes = column.as_slice().get(at..)?.first_chunk::<8>()?;
    Some(u64::from_be_bytes(*bytes))
}

fn column_values(column: &OwnedBytes) -> impl Iterator<Item = u64> {
    let (rows, _) = column.as_slice().as_chunks::<8>();
    rows.iter().map(|row| u64::from_be_bytes(*row))
}
