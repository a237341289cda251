//! The tail: grains that are in the log and not yet in the tables, as an immutable snapshot.
//!
//! A tail is cheap to clone and never changes under a reader. It writes nothing: `fold` does.

use std::sync::Arc;

use imbl::{OrdMap, OrdSet};

use crate::dictionary::DictionaryRead;
use crate::error::{Error, Result};
use crate::facts::Facts;
use crate::keys::{self, Bound, PostingKey, Prefix, Rank};
use crate::posting::{Posting, Sequence};
use crate::stamp::{self, Watermark};
use crate::tables::Tables;
use crate::term::{Term, TermId, TermKind, Word};

/// A term that is not in the tables yet: its id, and the row its id will lead to.
#[derive(Debug, Clone)]
pub(crate) struct NewTerm {
    pub(crate) id: TermId,
    pub(crate) row: Arc<[u8]>,
}

/// Postings and terms of the grains after the tables' watermark, with the ids folding will write.
///
/// What a reader sees is a snapshot of the tables and a tail that continues them; publish both
/// at once. Tails and tables may overlap (a tail kept over its own fold): entries count once.
#[derive(Debug, Clone)]
pub struct Tail {
    postings: OrdSet<PostingKey>,
    terms: OrdMap<Arc<[u8]>, NewTerm>,
    next_id: TermId,
    base: Option<Watermark>,
    watermark: Option<Watermark>,
    grains: usize,
    bytes: usize,
}

impl Tail {
    /// Grains after which a tail is to be folded.
    pub const MAX_GRAINS: usize = 4_096;
    /// Bytes of memory after which a tail is to be folded.
    pub const MAX_BYTES: usize = 8 << 20;

    /// What a posting takes in memory, its share of the tree included.
    const POSTING_BYTES: usize = 2 * size_of::<PostingKey>();
    /// What a new term takes beside its bytes: two counted pointers and its share of the tree.
    const TERM_BYTES: usize = 128;

    /// An empty tail that continues these tables.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub fn after(tables: &Tables) -> Result<Self> {
        Ok(Self::empty(tables.next_id()?, stamp::watermark(&tables.meta)?))
    }

    /// An empty tail that continues this one, for when this one has been folded and committed.
    #[must_use]
    pub fn folded(&self) -> Self {
        Self::empty(self.next_id, self.watermark)
    }

    /// Adds the next grain of the log. `dictionary` is that of the tables this tail continues,
    /// `address` is what the log has at `sequence` (see [`Watermark::address`]).
    ///
    /// After a failure the tail holds no posting of the grain, but may know new terms of it.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` for a sequence that is not after the watermark; `ERR_IO`.
    pub fn push(
        &mut self,
        dictionary: &impl DictionaryRead,
        sequence: Sequence,
        address: [u8; 32],
        facts: &Facts<'_>,
    ) -> Result<()> {
        if self.watermark.is_some_and(|mark| mark.sequence >= sequence) {
            return Err(Error::integrity("the log was replayed to the index out of order"));
        }
        let rank = Rank::of(Posting { time: facts.time, sequence });
        for prefix in self.prefixes_of(dictionary, facts)? {
            if self.postings.insert(PostingKey { prefix, rank }).is_none() {
                self.bytes = self.bytes.saturating_add(Self::POSTING_BYTES);
            }
        }
        self.grains = self.grains.saturating_add(1);
        self.watermark = Some(Watermark { sequence, address });
        Ok(())
    }

    /// Grains in the tail.
    #[must_use]
    pub fn grains(&self) -> usize {
        self.grains
    }

    /// Roughly the memory it takes.
    #[must_use]
    pub fn approx_bytes(&self) -> usize {
        self.bytes
    }

    /// Whether it is time to fold.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.grains >= Self::MAX_GRAINS || self.bytes >= Self::MAX_BYTES
    }

    /// The last grain pushed, or folded before: the state of log this tail is complete for.
    #[must_use]
    pub fn watermark(&self) -> Option<Watermark> {
        self.watermark
    }

    /// How far the tables are folded that this tail continues.
    pub(crate) fn base(&self) -> Option<Watermark> {
        self.base
    }

    pub(crate) fn postings(&self) -> &OrdSet<PostingKey> {
        &self.postings
    }

    /// New terms by their keys.
    pub(crate) fn terms(&self) -> &OrdMap<Arc<[u8]>, NewTerm> {
        &self.terms
    }

    fn empty(next_id: TermId, base: Option<Watermark>) -> Self {
        let (postings, terms) = (OrdSet::new(), OrdMap::new());
        Self { postings, terms, next_id, base, watermark: base, grains: 0, bytes: 0 }
    }

    /// Everything a grain is to be found by. All ids are known before the first posting goes in.
    fn prefixes_of(
        &mut self,
        dictionary: &impl DictionaryRead,
        facts: &Facts<'_>,
    ) -> Result<Vec<Prefix>> {
        let mut id = |kind, word: Word<'_>| self.id_of(dictionary, &Term::new(kind, word));
        let namespace = id(TermKind::Namespace, facts.namespace)?;
        let mut bounds = vec![Bound::Nothing, Bound::Type(facts.grain_type.byte())];
        if let Some(subject) = facts.subject {
            let subject = id(TermKind::Subject, subject)?;
            bounds.push(Bound::Subject(subject));
            if let Some(relation) = facts.relation {
                let relation = id(TermKind::Relation, relation)?;
                bounds.push(Bound::SubjectRelation(subject, relation));
            }
        }
        if let Some(session) = facts.session {
            bounds.push(Bound::Session(id(TermKind::Session, session)?));
        }
        for tag in &facts.tags {
            bounds.push(Bound::Tag(id(TermKind::Tag, *tag)?));
        }
        Ok(bounds.into_iter().map(|bound| Prefix { namespace, bound }).collect())
    }

    /// The id of a term: from the tail, from the tables, or the next one.
    fn id_of(&mut self, dictionary: &impl DictionaryRead, term: &Term<'_>) -> Result<TermId> {
        let key = keys::term_key(term);
        if let Some(new) = self.terms.get(key.as_slice()) {
            return Ok(new.id);
        }
        if let Some(id) = dictionary.id(term)? {
            return Ok(id);
        }
        let id = self.next_id;
        let after = id.next().ok_or_else(|| Error::integrity("the dictionary has no ids left"))?;
        let row: Arc<[u8]> = keys::term_row_of(term).into();
        let taken = key.len().saturating_add(row.len()).saturating_add(Self::TERM_BYTES);
        self.terms.insert(key.into(), NewTerm { id, row });
        self.bytes = self.bytes.saturating_add(taken);
        self.next_id = after;
        Ok(id)
    }
}

#[cfg(test)]
#[path = "tail_tests.rs"]
mod tests;
