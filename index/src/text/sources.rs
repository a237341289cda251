//! The sources of a merge: segments with their deleted documents, and the tail. All are read alike: documents
//! by sequence, terms in order. Knows nothing of the output.

use std::collections::HashMap;
use std::sync::Arc;

use tantivy::termdict::TermStreamer;

use super::deleted::DeletedDocs;
use super::forward::encode_positions;
use super::score::length_code;
use super::segment::{ForwardBlock, Segment};
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

/// The terms of a document.
#[derive(Debug)]
pub(super) struct DocumentData {
    /// The numbers of its terms among those of the source, ascending.
    pub(super) ordinals: Vec<u32>,
    /// Their weights.
    pub(super) weights: Vec<u8>,
    /// The positions of its terms, encoded as in a record.
    pub(super) position_bytes: Vec<u8>,
}

/// The numbers of the terms of a tail among all its terms in order.
pub(super) type TailOrdinals<'a> = HashMap<&'a str, u32>;

impl MergeSource {
    /// Takes note that it is merged: a segment that goes away is not worth the cache.
    pub(super) fn begin_merge(&self) {
        if let Self::Segment(segment, _) = self {
            segment.begin_merge();
        }
    }

    /// The upper bound of its doc ids, exclusive.
    pub(super) fn end(&self) -> u32 {
        match self {
            Self::Tail(tail) => tail.end(),
            Self::Segment(segment, _) => segment.documents(),
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
                .map(|document| Ok((segment.sequence(document)?, document)))
                .collect(),
        }
    }

    /// The sum of the lengths of the live documents.
    pub(super) fn length(&self) -> u64 {
        match self {
            Self::Tail(tail) => tail.collection_stats().total_length,
            Self::Segment(segment, gone) => segment.length().saturating_sub(gone.length()),
        }
    }

    /// The length code of a document.
    pub(super) fn code(&self, document: u32) -> u8 {
        match self {
            Self::Tail(tail) => {
                tail.entry(document).map_or(0, |entry| length_code(entry.joined.length()))
            }
            Self::Segment(segment, _) => segment.length_code(document),
        }
    }

    /// The terms of a document, each after those before it. `numbers` are those of the terms of a tail.
    pub(super) fn kept(
        &self,
        document: u32,
        numbers: &TailOrdinals<'_>,
        block: &mut ForwardBlock,
    ) -> Result<DocumentData> {
        match self {
            Self::Tail(tail) => {
                let terms = tail.entry(document).ok_or_else(unreadable)?.joined.terms();
                let ordinals = terms.iter().map(|share| numbers.get(&*share.term).copied());
                Ok(DocumentData {
                    ordinals: ordinals.collect::<Option<_>>().ok_or_else(unreadable)?,
                    weights: terms.iter().map(|share| share.weight).collect(),
                    position_bytes: encode_positions(terms),
                })
            }
            Self::Segment(segment, _) => {
                let stored = segment.next_record(document, block)?;
                let record = stored.record();
                Ok(DocumentData {
                    ordinals: record.ordinals().collect(),
                    weights: record.weights().to_vec(),
                    position_bytes: record.position_bytes().to_vec(),
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
                Ok(TermCursor::Tail(terms, 0))
            }
            Self::Segment(segment, _) => {
                let mut stream = segment.inverted_index().terms().stream().map_err(Error::input)?;
                let more = stream.advance();
                Ok(TermCursor::Segment { segment, stream: Box::new(stream), more })
            }
        }
    }
}

/// The terms of a tail, sorted, with their documents.
type TailTerms<'a> = Vec<(&'a Arc<str>, &'a Arc<Vec<TailPosting>>)>;

/// A cursor over the terms of one source.
pub(super) enum TermCursor<'a> {
    /// Over a tail: the terms, and how many are behind the cursor.
    Tail(TailTerms<'a>, usize),
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

impl<'a> TermCursor<'a> {
    /// The current term; `None` after the last.
    pub(super) fn term(&self) -> Option<&[u8]> {
        match self {
            Self::Tail(terms, at) => terms.get(*at).map(|(term, _)| term.as_bytes()),
            Self::Segment { stream, more, .. } => more.then(|| stream.key()),
        }
    }

    /// Moves to the next term.
    pub(super) fn advance(&mut self) {
        match self {
            Self::Tail(_, at) => *at = at.saturating_add(1),
            Self::Segment { stream, more, .. } => *more = stream.advance(),
        }
    }

    /// The numbers of the terms of a tail.
    pub(super) fn numbers(&self) -> TailOrdinals<'a> {
        match self {
            Self::Tail(terms, _) => terms.iter().map(|(term, _)| &***term).zip(0..).collect(),
            Self::Segment { .. } => HashMap::new(),
        }
    }

    /// Visits the documents of the current term, with weights.
    pub(super) fn documents(&mut self, visit: &mut dyn FnMut(u32, u8)) -> Result<()> {
        match self {
            Self::Tail(terms, at) => {
                let postings = terms.get(*at).map(|(_, postings)| postings.as_slice());
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
