//! The sources of a merge: segments with their deleted documents, and the tail. All are read alike: documents
//! by sequence, terms in order. Knows nothing of the output.

use std::iter::Peekable;
use std::sync::Arc;
use std::vec::IntoIter;

use tantivy::termdict::TermStreamer;

use super::deleted::DeletedDocs;
use super::forward::{ForwardRecord, encode_positions};
use super::score::length_code;
use super::segment::Segment;
use super::tail::{TailPosting, TextTail};
use crate::error::{Error, Result};
use crate::posting::Sequence;

/// A source of a merge.
#[derive(Debug, Clone)]
pub(super) enum MergeSource {
    /// Documents that are in no segment yet.
    Tail(TextTail),
    /// A segment and its deleted documents.
    Segment(Arc<Segment>, DeletedDocs),
}

/// The data of a document beside its term ordinals.
#[derive(Debug)]
pub(super) struct DocumentData {
    /// The weights of its terms, in their order.
    pub(super) weights: Vec<u8>,
    /// The positions of its terms, encoded as in a record.
    pub(super) position_bytes: Vec<u8>,
    /// The code of its length.
    pub(super) code: u8,
}

impl MergeSource {
    /// The upper bound of its doc ids, exclusive.
    pub(super) fn end(&self) -> u32 {
        match self {
            Self::Tail(tail) => tail.end(),
            Self::Segment(segment, _) => segment.documents(),
        }
    }

    /// The number of terms, deleted ones included.
    pub(super) fn terms(&self) -> usize {
        match self {
            Self::Tail(tail) => tail.term_count(),
            Self::Segment(segment, _) => segment.inverted_index().terms().num_terms(),
        }
    }

    /// The live documents with their sequences.
    pub(super) fn live(&self) -> Result<Vec<(Sequence, u32)>> {
        match self {
            Self::Tail(tail) => {
                Ok(tail.entries().map(|(slot, entry)| (entry.sequence, slot)).collect())
            }
            Self::Segment(segment, gone) => (0..segment.documents())
                .filter(|document| !gone.contains(*document))
                .map(|document| {
                    let sequence = segment.sequence(document);
                    Ok((sequence.ok_or_else(unreadable)?, document))
                })
                .collect(),
        }
    }

    /// The data of a document beside its term ordinals.
    pub(super) fn kept(&self, document: u32) -> Result<DocumentData> {
        match self {
            Self::Tail(tail) => {
                let joined = &tail.entry(document).ok_or_else(unreadable)?.joined;
                Ok(DocumentData {
                    weights: joined.terms().iter().map(|share| share.weight).collect(),
                    position_bytes: encode_positions(joined.terms()),
                    code: length_code(joined.length()),
                })
            }
            Self::Segment(segment, _) => {
                let record: ForwardRecord<'_> = segment.record(document)?;
                Ok(DocumentData {
                    weights: record.weights().to_vec(),
                    position_bytes: record.position_bytes().to_vec(),
                    code: segment.length_code(document),
                })
            }
        }
    }

    /// A cursor over the terms, at the first.
    pub(super) fn head(&self) -> Result<TermCursor<'_>> {
        match self {
            Self::Tail(tail) => {
                let mut terms: Vec<_> = tail.terms().collect();
                terms.sort_unstable_by_key(|(term, _)| *term);
                Ok(TermCursor::Tail(terms.into_iter().peekable()))
            }
            Self::Segment(segment, _) => {
                let mut stream = segment.inverted_index().terms().stream().map_err(Error::text)?;
                let more = stream.advance();
                Ok(TermCursor::Segment { segment, stream: Box::new(stream), more })
            }
        }
    }
}

/// The terms of a tail, sorted, with their documents.
type TailTerms<'a> = IntoIter<(&'a Arc<str>, &'a Arc<Vec<TailPosting>>)>;

/// A cursor over the terms of one source.
pub(super) enum TermCursor<'a> {
    /// Over a tail.
    Tail(Peekable<TailTerms<'a>>),
    /// Over a segment.
    Segment {
        /// The segment.
        segment: &'a Segment,
        /// Its dictionary.
        stream: Box<TermStreamer<'a>>,
        /// True if the stream is at a term.
        more: bool,
    },
}

impl TermCursor<'_> {
    /// The current term; `None` after the last.
    pub(super) fn term(&mut self) -> Option<&[u8]> {
        match self {
            Self::Tail(terms) => terms.peek().map(|(term, _)| term.as_bytes()),
            Self::Segment { stream, more, .. } => more.then(|| stream.key()),
        }
    }

    /// Moves to the next term.
    pub(super) fn advance(&mut self) {
        match self {
            Self::Tail(terms) => {
                terms.next();
            }
            Self::Segment { stream, more, .. } => *more = stream.advance(),
        }
    }

    /// Visits the documents of the current term, with weights.
    pub(super) fn documents(&mut self, visit: &mut dyn FnMut(u32, u8)) -> Result<()> {
        match self {
            Self::Tail(terms) => {
                let postings = terms.peek().map(|(_, postings)| postings.as_slice());
                for posting in postings.unwrap_or_default() {
                    visit(posting.slot, posting.weight);
                }
            }
            Self::Segment { segment, stream, .. } => {
                let mut blocks = segment.blocks(stream.value())?;
                while blocks.block_len() > 0 {
                    for (document, weight) in blocks.docs().iter().zip(blocks.freqs()) {
                        visit(*document, u8::try_from(*weight).unwrap_or(u8::MAX));
                    }
                    blocks.advance();
                }
            }
        }
        Ok(())
    }
}

fn unreadable() -> Error {
    Error::integrity("a document of the full text cannot be read")
}
