//! Merging of segments and a tail into one segment: the live documents of each, in the order of their
//! sequences.
//!
//! Terms are merged from all sources in order, so postings are written as they are read and no document is
//! analysed again. Deleted documents leave no trace: a term without live documents is not written. Knows
//! nothing of the merge policy.

use tantivy::Directory;
use tantivy::columnar::ColumnarWriter;
use tantivy::directory::{OwnedBytes, RamDirectory, TerminatingWrite};
use tantivy::fieldnorm::{FieldNormReaders, FieldNormsSerializer};
use tantivy::index::{Segment as Inner, SegmentComponent};
use tantivy::postings::{FieldSerializer, InvertedIndexSerializer};

use super::forward::{ordinal_width, start_record};
use super::segment::{FILES, field, library_segment};
use super::segment_file::pack;
use super::sources::{MergeSource, TermCursor};
use crate::error::{Error, Result};
use crate::posting::Sequence;

/// A doc id no document of the new segment has; marks deleted documents.
const NO_DOCUMENT: u32 = u32::MAX;

/// Writes a segment of all live documents of the sources, no two of which may have the same grain. `None` if
/// there are no documents.
///
/// # Errors
/// `ERR_INTEGRITY` if a source cannot be read, or there are more documents than a segment can hold.
pub(super) fn merge(sources: &[MergeSource]) -> Result<Option<Vec<u8>>> {
    let (mut columns, targets) = SegmentColumns::lay_out(sources)?;
    let documents = u32::try_from(columns.codes.len()).map_err(|_| Error::full())?;
    if documents == 0 {
        return Ok(None);
    }
    let directory = RamDirectory::default();
    let segment = library_segment(directory.clone(), documents)?;
    write_lengths(&segment, &columns.codes)?;
    write_stubs(&segment, documents)?;
    write_terms(&segment, sources, &targets, &mut columns)?;
    let mut files = Vec::with_capacity(FILES.len());
    for extension in FILES {
        let component = SegmentComponent::try_from(extension).map_err(Error::integrity)?;
        let path = segment.relative_path(component);
        let file = directory.open_read(&path).map_err(Error::text)?;
        files.push(file.read_bytes().map_err(Error::text)?);
    }
    let mut sections = [[].as_slice(); FILES.len() + 3];
    let own = [&columns.sequences, &columns.offsets, &columns.forward];
    let all = files.iter().map(OwnedBytes::as_slice).chain(own.map(Vec::as_slice));
    for (section, bytes) in sections.iter_mut().zip(all) {
        *section = bytes;
    }
    Ok(Some(pack(documents, columns.width, columns.length, &sections)))
}

/// The columns of the new segment, while it is written.
struct SegmentColumns {
    /// Bytes of an ordinal.
    width: usize,
    /// The sum of all lengths.
    length: u64,
    /// The length codes (fieldnorms).
    codes: Vec<u8>,
    sequences: Vec<u8>,
    offsets: Vec<u8>,
    forward: Vec<u8>,
    /// The offset in `forward` of each document's next ordinal.
    next: Vec<usize>,
}

impl SegmentColumns {
    /// Lays out everything but the ordinals, which are known only when the terms are written. Also returns,
    /// for each source, the new doc id of each of its documents.
    fn lay_out(sources: &[MergeSource]) -> Result<(Self, Vec<Vec<u32>>)> {
        let terms = sources.iter().map(MergeSource::terms).sum();
        let mut columns = Self {
            width: ordinal_width(terms),
            length: 0,
            codes: Vec::new(),
            sequences: Vec::new(),
            offsets: vec![0; 8],
            forward: Vec::new(),
            next: Vec::new(),
        };
        let mut targets = Vec::new();
        let mut origins: Vec<(Sequence, usize, u32)> = Vec::new();
        for (at, source) in sources.iter().enumerate() {
            targets.push(vec![NO_DOCUMENT; usize::try_from(source.end()).unwrap_or_default()]);
            origins.extend(source.live()?.into_iter().map(|(grain, here)| (grain, at, here)));
        }
        origins.sort_unstable();
        for (number, (sequence, at, here)) in (0_u32..).zip(origins) {
            let Some(source) = sources.get(at) else { continue };
            columns.add(sequence, source, here)?;
            let here = usize::try_from(here).unwrap_or(usize::MAX);
            if let Some(target) = targets.get_mut(at).and_then(|to| to.get_mut(here)) {
                *target = number;
            }
        }
        Ok((columns, targets))
    }

    /// Adds a document.
    fn add(&mut self, sequence: Sequence, source: &MergeSource, document: u32) -> Result<()> {
        let kept = source.kept(document)?;
        self.length = kept
            .weights
            .iter()
            .fold(self.length, |sum, weight| sum.saturating_add(u64::from(*weight)));
        self.codes.push(kept.code);
        self.sequences.extend(sequence.get().to_be_bytes());
        self.next.push(start_record(
            &mut self.forward,
            self.width,
            &kept.weights,
            &kept.position_bytes,
        ));
        self.offsets.extend((self.forward.len() as u64).to_be_bytes());
        Ok(())
    }

    /// Writes the next ordinal of a document.
    fn write_ordinal(&mut self, document: u32, ordinal: u32) {
        let at = usize::try_from(document).unwrap_or(usize::MAX);
        let Some(next) = self.next.get_mut(at) else { return };
        let end = next.saturating_add(self.width);
        if let Some(place) = self.forward.get_mut(*next..end) {
            let low = place.iter_mut().rev().zip(ordinal.to_le_bytes());
            low.for_each(|(to, byte)| *to = byte);
        }
        *next = end;
    }
}

/// Writes the length codes.
fn write_lengths(segment: &Inner, codes: &[u8]) -> Result<()> {
    let file = segment.open_write(SegmentComponent::FieldNorms).map_err(Error::text)?;
    let mut lengths = FieldNormsSerializer::from_write(file).map_err(Error::text)?;
    lengths.serialize_field(field(), codes).map_err(Error::text)?;
    lengths.close().map_err(Error::text)
}

/// Writes the files the library requires and that are empty here.
fn write_stubs(segment: &Inner, documents: u32) -> Result<()> {
    let mut fast = segment.open_write(SegmentComponent::FastFields).map_err(Error::text)?;
    ColumnarWriter::default().serialize(documents, None, &mut fast).map_err(Error::text)?;
    fast.terminate().map_err(Error::text)?;
    let store = segment.open_write(SegmentComponent::Store).map_err(Error::text)?;
    store.terminate().map_err(Error::text)
}

/// Writes the dictionary and the postings, and the ordinals into the columns.
fn write_terms(
    segment: &Inner,
    sources: &[MergeSource],
    targets: &[Vec<u32>],
    columns: &mut SegmentColumns,
) -> Result<()> {
    let file = segment.open_read(SegmentComponent::FieldNorms).map_err(Error::text)?;
    let lengths = FieldNormReaders::open(file)?.get_field(field())?;
    let mut files = InvertedIndexSerializer::open(segment)?;
    let mut out = files.new_field(field(), columns.length, lengths).map_err(Error::text)?;
    let mut heads = sources.iter().map(MergeSource::head).collect::<Result<Vec<_>>>()?;
    let (mut term, mut found) = (Vec::new(), Vec::new());
    let mut ordinal = 0;
    while next_term(&mut heads, &mut term) {
        found.clear();
        for (head, targets) in heads.iter_mut().zip(targets) {
            if head.term() == Some(&term) {
                collect_postings(head, targets, &mut found)?;
            }
        }
        if found.is_empty() {
            continue;
        }
        found.sort_unstable();
        write_term(&mut out, &term, &found).map_err(Error::text)?;
        found.iter().for_each(|(document, _)| columns.write_ordinal(*document, ordinal));
        ordinal = u32::checked_add(ordinal, 1).ok_or_else(Error::full)?;
    }
    out.close().map_err(Error::text)?;
    files.close().map_err(Error::text)
}

/// Sets `term` to the least current term of the sources; returns `false` at the end of all.
fn next_term(heads: &mut [TermCursor<'_>], term: &mut Vec<u8>) -> bool {
    let least = heads.iter_mut().filter_map(TermCursor::term).min();
    term.clear();
    term.extend_from_slice(least.unwrap_or_default());
    least.is_some()
}

/// Collects the documents of the current term of a source, and advances it.
fn collect_postings(
    head: &mut TermCursor<'_>,
    targets: &[u32],
    found: &mut Vec<(u32, u8)>,
) -> Result<()> {
    head.documents(&mut |document, weight| {
        let target = usize::try_from(document).ok().and_then(|at| targets.get(at));
        match target {
            Some(&target) if target != NO_DOCUMENT => found.push((target, weight)),
            _ => {}
        }
    })?;
    head.advance();
    Ok(())
}

fn write_term(
    out: &mut FieldSerializer<'_>,
    term: &[u8],
    found: &[(u32, u8)],
) -> std::io::Result<()> {
    out.new_term(term, u32::try_from(found.len()).unwrap_or(u32::MAX), true)?;
    for (document, weight) in found {
        out.write_doc(*document, u32::from(*weight), &[]);
    }
    out.close_term()
}
