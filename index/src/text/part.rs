//! A segment or the tail behind one interface: documents by doc id, each with terms and positions.
//! Computations on a part are the same for both. Knows nothing of queries.

use std::borrow::Cow;
use std::sync::Arc;

use tantivy::DocSet;
use tantivy::postings::{Postings as _, SegmentPostings};

use super::deleted::DeletedDocs;
use super::indexed_document::IndexedDocument;
use super::segment::{Segment, SegmentTerm, StoredRecord};
use super::tail::{TailPosting, TextTail};
use crate::error::{Error, Result};
use crate::posting::Sequence;

/// A part of the index that is searched.
#[derive(Debug, Clone, Copy)]
pub(super) enum TextPart<'a> {
    /// The tail.
    Tail(&'a TextTail),
    /// A segment and its deleted documents.
    Segment(&'a Segment, &'a DeletedDocs),
}

/// A term found in a part.
#[derive(Debug, Clone)]
pub(super) enum TermRef {
    /// In the tail.
    Tail(Arc<str>, Arc<Vec<TailPosting>>),
    /// In a segment.
    Segment(SegmentTerm),
}

/// The terms of one document.
#[derive(Debug, Clone)]
pub(super) enum DocumentTerms<'a> {
    /// In the tail.
    Tail(&'a IndexedDocument),
    /// In a segment.
    Segment(StoredRecord),
}

/// A cursor over the documents of a term, in ascending doc id.
pub(super) enum PostingsCursor {
    /// In the tail: the postings, and how many are behind the cursor.
    Tail(Arc<Vec<TailPosting>>, usize),
    /// In a segment.
    Segment(Box<SegmentPostings>),
}

impl<'a> TextPart<'a> {
    /// The upper bound of its doc ids, exclusive.
    pub(super) fn end(self) -> u32 {
        match self {
            Self::Tail(tail) => tail.end(),
            Self::Segment(segment, _) => segment.documents(),
        }
    }

    /// Returns `true` if a document is not deleted. A tail has postings of live documents only.
    #[inline]
    pub(super) fn is_live(self, document: u32) -> bool {
        match self {
            Self::Tail(_) => true,
            Self::Segment(_, gone) => !gone.contains(document),
        }
    }

    /// The sequence of a document.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if there is no such document.
    pub(super) fn sequence(self, document: u32) -> Result<Sequence> {
        match self {
            Self::Tail(tail) => {
                tail.entry(document).map(|entry| entry.sequence).ok_or_else(missing)
            }
            Self::Segment(segment, _) => segment.sequence(document),
        }
    }

    /// The live document of a grain.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if the sequences cannot be read.
    pub(super) fn document(self, sequence: Sequence) -> Result<Option<u32>> {
        self.document_behind(sequence, &mut 0)
    }

    /// Like [`document`](Self::document), for calls in ascending order of sequences: `from` starts at 0 and
    /// carries the position from call to call.
    ///
    /// # Errors
    /// As [`document`](Self::document).
    pub(super) fn document_behind(self, sequence: Sequence, from: &mut u32) -> Result<Option<u32>> {
        match self {
            Self::Tail(tail) => Ok(tail.get(sequence).map(|(slot, _)| slot)),
            Self::Segment(segment, gone) => {
                let found = segment.doc_id_from(sequence, from)?;
                Ok(found.filter(|document| !gone.contains(*document)))
            }
        }
    }

    /// The length code of a document.
    #[inline]
    pub(super) fn length_code(self, document: u32) -> u8 {
        match self {
            Self::Tail(tail) => {
                let at = usize::try_from(document).unwrap_or(usize::MAX);
                tail.lengths().get(at).copied().unwrap_or_default()
            }
            Self::Segment(segment, _) => segment.length_code(document),
        }
    }

    /// Looks up a term.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if the dictionary cannot be read.
    pub(super) fn find(self, term: &str) -> Result<Option<TermRef>> {
        Ok(match self {
            Self::Tail(tail) => {
                let found = tail.term(term);
                found.map(|(term, postings)| TermRef::Tail(Arc::clone(term), Arc::clone(postings)))
            }
            Self::Segment(segment, _) => segment.find_term(term)?.map(TermRef::Segment),
        })
    }

    /// The number of live documents with a term.
    pub(super) fn frequency(self, found: &TermRef) -> u64 {
        match (self, found) {
            (Self::Segment(_, gone), TermRef::Segment(entry)) => {
                u64::from(entry.info.doc_freq.saturating_sub(gone.frequency(entry.ordinal)))
            }
            (_, TermRef::Tail(_, postings)) => postings.len() as u64,
            _ => 0,
        }
    }

    /// A cursor over the documents of a term.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if they cannot be read.
    pub(super) fn cursor(self, found: &TermRef) -> Result<PostingsCursor> {
        match (self, found) {
            (_, TermRef::Tail(_, postings)) => Ok(PostingsCursor::Tail(Arc::clone(postings), 0)),
            (Self::Segment(segment, _), TermRef::Segment(entry)) => {
                Ok(PostingsCursor::Segment(Box::new(segment.postings(&entry.info)?)))
            }
            _ => Err(missing()),
        }
    }

    /// The terms of a document.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if there is no such document.
    pub(super) fn words(self, document: u32) -> Result<DocumentTerms<'a>> {
        match self {
            Self::Tail(tail) => {
                Ok(DocumentTerms::Tail(&tail.entry(document).ok_or_else(missing)?.joined))
            }
            Self::Segment(segment, _) => Ok(DocumentTerms::Segment(segment.record(document)?)),
        }
    }
}

impl TermRef {
    /// Returns `true` if it is the same term of the same part.
    pub(super) fn is_same_term(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Tail(own, _), Self::Tail(other, _)) => own == other,
            (Self::Segment(own), Self::Segment(other)) => own.ordinal == other.ordinal,
            _ => false,
        }
    }

    /// The number of documents with the term, deleted ones included.
    pub(super) fn postings(&self) -> u64 {
        match self {
            Self::Tail(_, postings) => postings.len() as u64,
            Self::Segment(entry) => u64::from(entry.info.doc_freq),
        }
    }
}

impl DocumentTerms<'_> {
    /// The weight of a term, 0 if the document does not have it.
    pub(super) fn weight(&self, found: &TermRef) -> u8 {
        match (self, found) {
            (Self::Tail(joined), TermRef::Tail(term, _)) => {
                joined.term(term).map_or(0, |share| share.weight)
            }
            (Self::Segment(stored), TermRef::Segment(entry)) => {
                stored.record().weight(entry.ordinal)
            }
            _ => 0,
        }
    }

    /// The positions of a term, ascending.
    pub(super) fn positions(&self, found: &TermRef) -> Cow<'_, [u32]> {
        match (self, found) {
            (Self::Tail(joined), TermRef::Tail(term, _)) => {
                Cow::Borrowed(joined.term(term).map_or(&[], |share| &share.positions))
            }
            (Self::Segment(stored), TermRef::Segment(entry)) => {
                Cow::Owned(stored.record().positions(entry.ordinal))
            }
            _ => Cow::Borrowed(&[]),
        }
    }
}

impl PostingsCursor {
    /// Returns `true` if the term has a document; must be called in ascending order.
    #[inline]
    pub(super) fn has(&mut self, document: u32) -> bool {
        match self {
            Self::Tail(postings, behind) => {
                let ahead = postings.get(*behind..).unwrap_or_default();
                *behind += ahead.partition_point(|posting| posting.slot < document);
                postings.get(*behind).is_some_and(|posting| posting.slot == document)
            }
            Self::Segment(postings) => {
                if postings.doc() < document {
                    postings.seek(document);
                }
                postings.doc() == document
            }
        }
    }

    /// Visits the remaining documents below `end`, with their weights.
    #[inline]
    pub(super) fn visit_until(&mut self, end: u32, mut visit: impl FnMut(u32, u8)) {
        match self {
            Self::Tail(postings, behind) => {
                for posting in postings.get(*behind..).unwrap_or_default() {
                    if posting.slot >= end {
                        break;
                    }
                    visit(posting.slot, posting.weight);
                    *behind += 1;
                }
            }
            Self::Segment(postings) => {
                let mut document = postings.doc();
                while document < end {
                    visit(document, u8::try_from(postings.term_freq()).unwrap_or(u8::MAX));
                    document = postings.advance();
                }
            }
        }
    }
}

fn missing() -> Error {
    Error::integrity("a document of the full text is missing")
}
