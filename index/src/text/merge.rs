//! Merging of segments and a tail into one segment: the live documents of each, in the order of their
//! sequences.
//!
//! Terms are merged from all sources in order, so postings are written as they are read and no document is
//! analysed again. Deleted documents leave no trace: a term without live documents is not written. Knows
//! nothing of the merge policy.

use std::io::Write;
use std::mem::take;

use tantivy::columnar::ColumnarWriter;
use tantivy::directory::TerminatingWrite;
use tantivy::fieldnorm::{FieldNormReaders, FieldNormsSerializer};
use tantivy::index::{Segment as Inner, SegmentComponent};
use tantivy::postings::{FieldSerializer, InvertedIndexSerializer};

use super::forward::{encode_record, ordinal_width};
use super::output_files::OutputFiles;
use super::page_tag::PageTag;
use super::segment::{FILES, ForwardBlock, field, library_segment};
use super::segment_file::SegmentWriter;
use super::sources::{MergeSource, TailOrdinals, TermCursor};
use crate::error::{Error, Result};
use crate::posting::Sequence;

/// A doc id no document of the new segment has; marks deleted documents.
const NO_DOCUMENT: u32 = u32::MAX;

/// Writes a segment of all live documents of the sources, no two of which may have the same grain. Returns `false`,
/// and writes nothing, if there are no documents.
///
/// Holds the postings and the dictionary of the new segment, and a few bytes for each document and each term; the
/// terms of documents are written as they are read.
///
/// # Errors
/// `ERR_INTEGRITY` if a source cannot be read, or there are more documents than a segment can hold; `ERR_IO` if the
/// output cannot be written.
pub(super) fn merge(
    sources: &[MergeSource],
    out: &mut dyn Write,
    tag: PageTag<'_>,
) -> Result<bool> {
    sources.iter().for_each(MergeSource::begin_merge);
    let mut layout = DocumentLayout::of(sources)?;
    let documents = u32::try_from(layout.origins.len()).map_err(|_| Error::full())?;
    let (Some(first), Some(last)) = (layout.origins.first(), layout.origins.last()) else {
        return Ok(false);
    };
    let range = (first.0.get(), last.0.get());
    let length = sources.iter().map(MergeSource::length).fold(0, u64::saturating_add);
    let directory = OutputFiles::default();
    let segment = library_segment(directory.clone(), documents)?;
    write_lengths(&segment, &take(&mut layout.codes))?;
    write_stubs(&segment, documents)?;
    let targets = take(&mut layout.targets);
    let numbers = write_terms(&segment, sources, &targets, length)?;
    drop(targets);
    let mut writer = SegmentWriter::new(out, tag);
    for extension in FILES {
        let component = SegmentComponent::try_from(extension).map_err(Error::integrity)?;
        let path = segment.relative_path(component);
        let pieces = directory.take(&path).unwrap_or_default();
        pieces.into_iter().try_for_each(|piece| writer.append(&piece)).map_err(Error::output)?;
        writer.end_section();
    }
    write_columns(&mut writer, sources, &layout, &numbers)?;
    writer.finish(documents, (numbers.width, length), range).map_err(Error::output)?;
    Ok(true)
}

/// The documents of the new segment.
struct DocumentLayout {
    /// The grain, the source and the doc id there of each document, in their order.
    origins: Vec<(Sequence, u32, u32)>,
    /// For each source, the new doc id of each of its documents.
    targets: Vec<Vec<u32>>,
    /// The length codes (fieldnorms).
    codes: Vec<u8>,
}

impl DocumentLayout {
    fn of(sources: &[MergeSource]) -> Result<Self> {
        let mut targets = Vec::new();
        let mut origins: Vec<(Sequence, u32, u32)> = Vec::new();
        for (at, source) in (0_u32..).zip(sources) {
            targets.push(vec![NO_DOCUMENT; index(source.end())]);
            let live = source.live()?;
            origins.reserve_exact(live.len());
            origins.extend(live.into_iter().map(|(grain, here)| (grain, at, here)));
        }
        origins.sort_unstable();
        let mut codes = Vec::with_capacity(origins.len());
        for (number, (_, at, here)) in (0_u32..).zip(&origins) {
            codes.push(sources.get(index(*at)).map_or(0, |source| source.code(*here)));
            let targets = targets.get_mut(index(*at));
            if let Some(target) = targets.and_then(|to| to.get_mut(index(*here))) {
                *target = number;
            }
        }
        Ok(Self { origins, targets, codes })
    }
}

/// The numbers of terms.
struct TermNumbers<'a> {
    /// For each source, the new number of each of its terms; any for one that no document has any more.
    new: Vec<Vec<u32>>,
    /// For each source that is a tail, the numbers of its terms there.
    tails: Vec<TailOrdinals<'a>>,
    /// Bytes of a number.
    width: usize,
}

/// Writes the sequences, the terms of each document, and where these begin.
fn write_columns(
    writer: &mut SegmentWriter<'_>,
    sources: &[MergeSource],
    layout: &DocumentLayout,
    numbers: &TermNumbers<'_>,
) -> Result<()> {
    for (sequence, _, _) in &layout.origins {
        writer.append(&sequence.get().to_be_bytes()).map_err(Error::output)?;
    }
    writer.end_section();
    let mut offsets = Vec::with_capacity(layout.origins.len().saturating_add(1));
    let (mut end, mut record) = (0_u64, Vec::new());
    offsets.push(end);
    let mut blocks: Vec<ForwardBlock> = sources.iter().map(|_| ForwardBlock::default()).collect();
    for (_, at, here) in &layout.origins {
        let at = index(*at);
        let (Some(source), Some(new), Some(tail), Some(block)) =
            (sources.get(at), numbers.new.get(at), numbers.tails.get(at), blocks.get_mut(at))
        else {
            continue;
        };
        let kept = source.kept(*here, tail, block)?;
        let number = |old: &u32| new.get(usize::try_from(*old).ok()?).copied();
        let ordinals: Option<Vec<u32>> = kept.ordinals.iter().map(number).collect();
        let ordinals = ordinals.ok_or_else(Error::full)?;
        record.clear();
        encode_record(&mut record, (&ordinals, numbers.width), &kept.weights, &kept.position_bytes);
        writer.append(&record).map_err(Error::output)?;
        end = end.saturating_add(record.len() as u64);
        offsets.push(end);
    }
    writer.end_section();
    for offset in offsets {
        writer.append(&offset.to_be_bytes()).map_err(Error::output)?;
    }
    Ok(())
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

/// Writes the dictionary and the postings, and returns the numbers of the terms.
fn write_terms<'a>(
    segment: &Inner,
    sources: &'a [MergeSource],
    targets: &[Vec<u32>],
    length: u64,
) -> Result<TermNumbers<'a>> {
    let file = segment.open_read(SegmentComponent::FieldNorms).map_err(Error::text)?;
    let lengths = FieldNormReaders::open(file)?.get_field(field())?;
    let mut files = InvertedIndexSerializer::open(segment)?;
    let mut out = files.new_field(field(), length, lengths).map_err(Error::text)?;
    let mut heads = sources.iter().map(MergeSource::head).collect::<Result<Vec<_>>>()?;
    let mut new = vec![Vec::new(); heads.len()];
    let (mut term, mut found) = (Vec::new(), Vec::new());
    let mut ordinal = 0_u32;
    while next_term(&heads, &mut term) {
        found.clear();
        for ((head, targets), new) in heads.iter_mut().zip(targets).zip(&mut new) {
            if head.term() == Some(&term) {
                collect_postings(head, targets, &mut found)?;
                new.push(ordinal);
            }
        }
        if found.is_empty() {
            continue;
        }
        found.sort_unstable();
        write_term(&mut out, &term, &found).map_err(Error::text)?;
        ordinal = ordinal.checked_add(1).ok_or_else(Error::full)?;
    }
    out.close().map_err(Error::text)?;
    files.close().map_err(Error::text)?;
    let width = ordinal_width(usize::try_from(ordinal).unwrap_or(usize::MAX));
    Ok(TermNumbers { new, tails: heads.iter().map(TermCursor::numbers).collect(), width })
}

/// Sets `term` to the least current term of the sources; returns `false` at the end of all.
fn next_term(heads: &[TermCursor<'_>], term: &mut Vec<u8>) -> bool {
    let least = heads.iter().filter_map(TermCursor::term).min();
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
    head.documents(&mut |document, weight| match targets.get(index(document)) {
        Some(&target) if target != NO_DOCUMENT => found.push((target, weight)),
        _ => {}
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

/// A number of a source or a document as a place in a list.
fn index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
