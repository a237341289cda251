//! The tail: grains that are in the log and not yet in the tables, in two parts.
//!
//! New grains go into the active part. To fold, it is frozen: it can be written into the tables
//! on another thread while a new active part goes on after it. A tail is cheap to clone and never
//! changes under a reader. It writes nothing: `fold` does.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::facts::Facts;
use crate::part::{GrainTerms, Part};
use crate::posting::Sequence;
use crate::stamp::Watermark;
use crate::tables::Tables;
use crate::term::{Term, TermId, TermKind};
use crate::words;

/// Postings, addresses and terms of the grains after the tables' watermark, with the ids folding
/// will write.
///
/// What a reader sees is a snapshot of the tables and a tail that continues them; publish both
/// at once. Tails and tables may overlap (a frozen part that is folded and not yet forgotten):
/// entries count once.
#[derive(Debug, Clone)]
pub struct Tail {
    frozen: Option<Frozen>,
    active: Arc<Part>,
}

/// The part of a tail that is being folded. Cheap to clone and shared between threads.
#[derive(Debug, Clone)]
pub struct Frozen(pub(crate) Arc<Part>);

impl Frozen {
    /// Grains in it.
    #[must_use]
    pub fn grains(&self) -> usize {
        self.0.grains
    }

    /// The last grain in it: where the tables stand once it is folded.
    #[must_use]
    pub fn watermark(&self) -> Option<Watermark> {
        self.0.watermark
    }
}

impl Tail {
    /// Grains after which the active part is to be frozen and folded.
    pub const MAX_GRAINS: usize = 4_096;
    /// Bytes of memory after which the active part is to be frozen and folded.
    pub const MAX_BYTES: usize = 8 << 20;

    /// An empty tail that continues these tables.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub fn after(tables: &Tables) -> Result<Self> {
        let active = Part::after(tables.next_ids()?, tables.watermark()?);
        Ok(Self { frozen: None, active: Arc::new(active) })
    }

    /// Adds the next grain of the log. `tables` are those this tail continues, `address` is what
    /// the log has at `sequence` (see [`Watermark::address`]).
    ///
    /// After a failure the tail holds no posting of the grain, but may know new terms of it.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` for a sequence that is not after the watermark, and where the index is
    /// full: of sequences at 2^32, of namespaces at 2^32, of subjects or relations at 2^40.
    /// `ERR_IO`.
    pub fn push(
        &mut self,
        tables: &Tables,
        sequence: Sequence,
        address: [u8; 32],
        facts: &Facts<'_>,
    ) -> Result<()> {
        self.check_next(sequence)?;
        let mut id = |kind, word| self.id_of(tables, Term { kind, word });
        let terms = GrainTerms {
            namespace: id(TermKind::Namespace, facts.namespace)?,
            subject: facts.subject.map(|word| id(TermKind::Subject, word)).transpose()?,
            relation: facts.relation.map(|word| id(TermKind::Relation, word)).transpose()?,
        };
        Arc::make_mut(&mut self.active).add_grain(Watermark { sequence, address }, terms, facts)
    }

    /// Adds the next place of the log where nothing is left of its grain but the address: it is found by
    /// that alone.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` for a sequence that is not after the watermark, or is 2^32 or more.
    pub fn push_place(&mut self, sequence: Sequence, address: [u8; 32]) -> Result<()> {
        self.check_next(sequence)?;
        Arc::make_mut(&mut self.active).add_place(Watermark { sequence, address });
        Ok(())
    }

    fn check_next(&self, sequence: Sequence) -> Result<()> {
        if self.watermark().is_some_and(|mark| mark.sequence >= sequence) {
            return Err(Error::integrity("the log was replayed to the index out of order"));
        }
        if sequence > Sequence::MAX {
            return Err(Error::full());
        }
        Ok(())
    }

    /// Freezes what the active part holds, to be folded; nothing happens where it holds nothing.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` while there is a frozen part already.
    pub fn freeze(&mut self) -> Result<()> {
        if self.active.grains == 0 {
            return Ok(());
        }
        if self.frozen.is_some() {
            return Err(Error::integrity("a part of the tail is being folded already"));
        }
        let after = Part::after(self.active.next_ids, self.active.watermark);
        self.frozen = Some(Frozen(std::mem::replace(&mut self.active, Arc::new(after))));
        Ok(())
    }

    /// The frozen part, to be folded.
    #[must_use]
    pub fn frozen(&self) -> Option<Frozen> {
        self.frozen.clone()
    }

    /// Forgets the frozen part: it is folded, and readers get the tables it is in.
    pub fn thaw(&mut self) {
        self.frozen = None;
    }

    /// Grains in both parts.
    #[must_use]
    pub fn grains(&self) -> usize {
        self.parts().map(|part| part.grains).sum()
    }

    /// Roughly the memory both parts take.
    #[must_use]
    pub fn approx_bytes(&self) -> usize {
        self.parts().map(|part| part.bytes).sum()
    }

    /// Whether it is time to freeze the active part.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.active.grains >= Self::MAX_GRAINS || self.active.bytes >= Self::MAX_BYTES
    }

    /// The last grain pushed, or folded before: the state of log this tail is complete for.
    #[must_use]
    pub fn watermark(&self) -> Option<Watermark> {
        self.active.watermark
    }

    /// Both parts, the newer first.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &Part> + Clone {
        let frozen = self.frozen.iter().map(|frozen| &*frozen.0);
        std::iter::once(&*self.active).chain(frozen)
    }

    /// The next namespace id: all namespaces there are have smaller ones.
    pub(crate) fn next_namespace(&self) -> TermId {
        self.active.next_ids.namespace
    }

    /// The id of a term: from the tail, from the tables, or the next one.
    fn id_of(&mut self, tables: &Tables, term: Term<'_>) -> Result<TermId> {
        let key = words::term_key(&term);
        let known = self.parts().find_map(|part| part.terms.get(key.as_slice()));
        if let Some(known) = known {
            return Ok(known.id);
        }
        let folded = tables.id(&key)?;
        let active = Arc::make_mut(&mut self.active);
        match folded {
            Some(id) => {
                active.remember(key, id);
                Ok(id)
            }
            None => active.add_term(key, &term),
        }
    }
}

#[cfg(test)]
#[path = "tail_tests.rs"]
mod tests;
