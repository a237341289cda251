//! The tail: grains that are in the log and not yet in the tables, in two parts.
//!
//! New grains go into the active part. To fold, it is frozen: another thread writes it into the tables while
//! a new active part continues it. A tail is cheap to clone and never changes under a reader. It writes
//! nothing; `fold` does.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::indexed_fields::IndexedFields;
use crate::layout;
use crate::part::{GrainTermIds, TailPart};
use crate::posting::Sequence;
use crate::posting::Watermark;
use crate::tables::Tables;
use crate::term::{Term, TermId, TermKind};

/// Postings, addresses and terms of the grains after the tables' watermark, with the ids folding will write.
///
/// A reader's state is a snapshot of the tables and the tail that continues it; both must be published
/// together. Tables and tail may overlap (a frozen part that is folded and not yet dropped): duplicate
/// entries count once.
///
/// ```
/// # use grainstore_index::{Tables, Tail, reset};
/// # use redb::{Database, ReadableDatabase, backends::InMemoryBackend};
/// # let db = Database::builder().create_with_backend(InMemoryBackend::new())?;
/// # let txn = db.begin_write()?;
/// # reset(&txn, None, [0; 16])?;
/// # txn.commit()?;
/// # let tables = Tables::open(db.begin_read()?, None);
/// # let mut tail = Tail::after(&tables)?;
/// # use grainstore_format::{BeliefBuilder, EpochMs, Encoding, GrainRef};
/// # let time = EpochMs::new(1_768_471_200_000);
/// # let blob = BeliefBuilder::new(time, "alice", "mg:prefers", "tea", 0.9)
/// #     .build()?.encode(Encoding::MessagePack)?;
/// use grainstore_index::{IndexedFields, Sequence};
///
/// // `tail` continues `tables`, which are empty, and `blob` is the first grain of the log.
/// let (grain, address) = (GrainRef::new(blob.bytes())?, *blob.address().as_bytes());
/// tail.push(&tables, Sequence::new(0), address, &IndexedFields::from_grain(&grain))?;
/// assert_eq!((tail.grains(), tail.is_full()), (1, false));
/// assert_eq!(tail.watermark().map(|last| last.address), Some(address));
/// tail.freeze()?;
/// assert_eq!(tail.frozen().map(|frozen| frozen.grains()), Some(1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Tail {
    frozen: Option<FrozenTail>,
    active: Arc<TailPart>,
}

/// The part of a [`Tail`] that is being folded. Cheap to clone, shared between threads.
#[derive(Debug, Clone)]
pub struct FrozenTail(pub(crate) Arc<TailPart>);

impl FrozenTail {
    /// The number of grains in it.
    #[must_use]
    pub fn grains(&self) -> usize {
        self.0.grains
    }

    /// The last grain in it, which is the watermark of the tables once it is folded.
    #[must_use]
    pub fn watermark(&self) -> Option<Watermark> {
        self.0.watermark
    }
}

impl Tail {
    /// The number of grains at which the active part is to be frozen and folded.
    pub const MAX_GRAINS: usize = 4_096;
    /// The bytes of memory at which the active part is to be frozen and folded.
    pub const MAX_BYTES: usize = 8 << 20;

    /// An empty tail that continues these tables.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub fn after(tables: &Tables) -> Result<Self> {
        let active = TailPart::after(tables.next_ids()?, tables.watermark()?);
        Ok(Self { frozen: None, active: Arc::new(active) })
    }

    /// Adds the next grain of the log. `tables` are those this tail continues; `address` is what the log
    /// stores at `sequence` (see [`Watermark::address`]).
    ///
    /// After an error the tail has no posting of the grain, but may have its new terms.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` for a sequence not after the watermark, and if the index is full: 2^32 sequences, 2^32
    /// namespaces, 2^40 subjects or relations. `ERR_IO`.
    pub fn push(
        &mut self,
        tables: &Tables,
        sequence: Sequence,
        address: [u8; 32],
        facts: &IndexedFields<'_>,
    ) -> Result<()> {
        self.check_next(sequence)?;
        let mut id = |kind, word| self.term_id(tables, Term { kind, value: word });
        let terms = GrainTermIds {
            namespace: id(TermKind::Namespace, facts.namespace)?,
            subject: facts.subject.map(|word| id(TermKind::Subject, word)).transpose()?,
            relation: facts.relation.map(|word| id(TermKind::Relation, word)).transpose()?,
        };
        Arc::make_mut(&mut self.active).add_grain(Watermark { sequence, address }, terms, facts)
    }

    /// Adds the next position of the log for a grain of which only the address is left (a stub of an erased
    /// grain). It is found by the address alone.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` for a sequence that is not after the watermark, or is 2^32 or more.
    pub fn push_address(&mut self, sequence: Sequence, address: [u8; 32]) -> Result<()> {
        self.check_next(sequence)?;
        Arc::make_mut(&mut self.active).add_address(Watermark { sequence, address });
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

    /// Freezes the active part, to be folded; does nothing if it is empty.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if there is a frozen part already.
    pub fn freeze(&mut self) -> Result<()> {
        if self.active.grains == 0 {
            return Ok(());
        }
        if self.frozen.is_some() {
            return Err(Error::integrity("a part of the tail is being folded already"));
        }
        let after = TailPart::after(self.active.next_ids, self.active.watermark);
        self.frozen = Some(FrozenTail(std::mem::replace(&mut self.active, Arc::new(after))));
        Ok(())
    }

    /// The frozen part, if there is one.
    #[must_use]
    pub fn frozen(&self) -> Option<FrozenTail> {
        self.frozen.clone()
    }

    /// Drops the frozen part, once it is folded and readers get the tables that contain it.
    pub fn drop_frozen(&mut self) {
        self.frozen = None;
    }

    /// The number of grains in both parts.
    #[must_use]
    pub fn grains(&self) -> usize {
        self.parts().map(|part| part.grains).sum()
    }

    /// The approximate memory of both parts, in bytes.
    #[must_use]
    pub fn approx_bytes(&self) -> usize {
        self.parts().map(|part| part.bytes).sum()
    }

    /// Returns `true` if the active part should be frozen.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.active.grains >= Self::MAX_GRAINS || self.active.bytes >= Self::MAX_BYTES
    }

    /// The last grain pushed, or folded before: the log is indexed up to here.
    #[must_use]
    pub fn watermark(&self) -> Option<Watermark> {
        self.active.watermark
    }

    /// Both parts, the newer first.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &TailPart> + Clone {
        let frozen = self.frozen.iter().map(|frozen| &*frozen.0);
        std::iter::once(&*self.active).chain(frozen)
    }

    /// The next namespace id; all namespaces have smaller ones.
    pub(crate) fn next_namespace(&self) -> TermId {
        self.active.next_ids.namespace
    }

    /// The id of a term: from the tail, from the tables, or a new one.
    fn term_id(&mut self, tables: &Tables, term: Term<'_>) -> Result<TermId> {
        let key = layout::term_key(&term);
        let known = self.parts().find_map(|part| part.terms.get(key.as_slice()));
        if let Some(known) = known {
            return Ok(known.id);
        }
        let folded = tables.term_id(&key)?;
        let active = Arc::make_mut(&mut self.active);
        match folded {
            Some(id) => {
                active.cache_term(key, id);
                Ok(id)
            }
            None => active.add_term(key, &term),
        }
    }
}

#[cfg(test)]
#[path = "tail_tests.rs"]
mod tests;
