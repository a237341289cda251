//! One part of the tail: the postings, addresses and terms of consecutive grains of the log.
//!
//! It writes nothing, and does not merge with the tables.

use std::sync::Arc;

use imbl::OrdMap;

use crate::error::{Error, Result};
use crate::indexed_fields::IndexedFields;
use crate::keys::{KeyPrefix, OrderKey, PostingKey};
use crate::layout;
use crate::posting::Watermark;
use crate::posting::{Posting, Sequence, TieBreaker};
use crate::runs::Runs;
use crate::term::{NextIds, Term, TermId, TermKind};

/// An address of the log and its sequence.
pub(crate) type AddressEntry = ([u8; 32], u64);

/// A term in a part: its id, and for a new term the row that folding will write.
#[derive(Debug, Clone)]
pub(crate) struct PartTerm {
    pub(crate) id: TermId,
    /// `None` for a term that is in the tables already and only cached here.
    pub(crate) row: Option<Arc<[u8]>>,
}

/// Terms by their keys.
pub(crate) type PartTerms = OrdMap<Arc<[u8]>, PartTerm>;

/// The grains between two watermarks. Immutable once it is shared.
#[derive(Debug, Clone)]
pub(crate) struct TailPart {
    pub(crate) postings: Runs<PostingKey>,
    pub(crate) addresses: Runs<AddressEntry>,
    pub(crate) terms: PartTerms,
    /// The term keys of new relations, by id.
    pub(crate) relations: OrdMap<TermId, Arc<[u8]>>,
    pub(crate) next_ids: NextIds,
    /// The end of the part or tables it continues.
    pub(crate) base: Option<Watermark>,
    pub(crate) watermark: Option<Watermark>,
    pub(crate) grains: usize,
    pub(crate) bytes: usize,
}

/// The term ids of one grain.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GrainTermIds {
    pub(crate) namespace: TermId,
    pub(crate) subject: Option<TermId>,
    pub(crate) relation: Option<TermId>,
}

impl TailPart {
    /// Memory a new term takes beside its bytes: two counted pointers and its share of the tree.
    const TERM_OVERHEAD_BYTES: usize = 128;

    /// An empty part that continues `base`.
    pub(crate) fn after(next_ids: NextIds, base: Option<Watermark>) -> Self {
        Self {
            postings: Runs::new(),
            addresses: Runs::new(),
            terms: OrdMap::new(),
            relations: OrdMap::new(),
            next_ids,
            base,
            watermark: base,
            grains: 0,
            bytes: 0,
        }
    }

    /// Adds a new term with the next id.
    pub(crate) fn add_term(&mut self, key: Vec<u8>, term: &Term<'_>) -> Result<TermId> {
        let next = self.next_ids.of(term.kind);
        let id = *next;
        if id > term.kind.last() {
            return Err(Error::full());
        }
        *next = id.next();
        let key: Arc<[u8]> = key.into();
        if term.kind == TermKind::Relation {
            self.relations.insert(id, Arc::clone(&key));
        }
        self.insert_term(key, id, Some(layout::term_row(id, term).into()));
        Ok(id)
    }

    /// Caches a term that is in the tables.
    pub(crate) fn cache_term(&mut self, key: Vec<u8>, id: TermId) {
        self.insert_term(key.into(), id, None);
    }

    /// Adds the postings of a grain.
    pub(crate) fn add_grain(
        &mut self,
        mark: Watermark,
        terms: GrainTermIds,
        facts: &IndexedFields<'_>,
    ) -> Result<()> {
        let tie =
            if facts.blinded { TieBreaker::FIRST } else { TieBreaker::from_address(&mark.address) };
        let rank =
            OrderKey::from_posting(Posting { time: facts.time, tie, sequence: mark.sequence })?;
        let keys = posting_keys(terms, facts, rank);
        self.bytes = self.bytes.saturating_add(size_of_val(keys.as_slice()));
        self.postings.add(keys);
        self.add_address(mark);
        Ok(())
    }

    /// Adds a position of the log with its address alone.
    pub(crate) fn add_address(&mut self, mark: Watermark) {
        self.bytes = self.bytes.saturating_add(size_of::<AddressEntry>());
        self.addresses.add(vec![(mark.address, mark.sequence.get())]);
        self.grains = self.grains.saturating_add(1);
        self.watermark = Some(mark);
    }

    /// The sequence of an address; `None` if it is not in this part.
    pub(crate) fn sequence_of(&self, address: &[u8; 32]) -> Option<Sequence> {
        self.addresses.iter().find_map(|run| {
            let at = run.binary_search_by(|(known, _)| known.cmp(address)).ok()?;
            run.get(at).map(|(_, sequence)| Sequence::new(*sequence))
        })
    }

    fn insert_term(&mut self, key: Arc<[u8]>, id: TermId, row: Option<Arc<[u8]>>) {
        let row_bytes = row.as_ref().map_or(0, |row| row.len());
        let taken = key.len().saturating_add(row_bytes).saturating_add(Self::TERM_OVERHEAD_BYTES);
        self.terms.insert(key, PartTerm { id, row });
        self.bytes = self.bytes.saturating_add(taken);
    }
}

/// All posting keys of a grain. Lists that serve the whole store get two.
fn posting_keys(terms: GrainTermIds, facts: &IndexedFields<'_>, rank: OrderKey) -> Vec<PostingKey> {
    let GrainTermIds { namespace: ns, subject, relation } = terms;
    let object = facts.object;
    let mut keys = Vec::with_capacity(facts.values.len().saturating_add(12));
    let mut add = |prefix: KeyPrefix| keys.push(prefix.key(rank));
    for ns in [TermId::NONE, ns] {
        add(KeyPrefix::all(ns));
        if let Some(s) = subject {
            add(KeyPrefix::subject(ns, s));
        }
        if let (Some(s), Some(p)) = (subject, relation) {
            add(KeyPrefix::subject_relation(ns, s, p));
        }
    }
    add(KeyPrefix::grain_type(ns, facts.grain_type));
    if let Some(p) = relation {
        add(KeyPrefix::relation(ns, p));
    }
    if let Some(o) = object {
        add(KeyPrefix::object(ns, o));
        if let Some(s) = subject {
            add(KeyPrefix::subject_object(ns, s, o));
        }
        if let Some(p) = relation {
            add(KeyPrefix::relation_object(ns, p, o));
        }
        if let (Some(s), Some(p)) = (subject, relation) {
            add(KeyPrefix::triple(ns, s, p, o));
        }
    }
    for value in &facts.values {
        add(KeyPrefix::value(ns, value));
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::term::TermValue;
    use crate::test_kit::code;

    #[test]
    fn a_kind_that_has_used_up_its_ids_takes_no_more_terms() {
        for (kind, last) in [
            (TermKind::Namespace, (1 << 32) - 1),
            (TermKind::Subject, (1 << 40) - 1),
            (TermKind::Relation, (1 << 40) - 1),
        ] {
            let mut next_ids = NextIds::FIRST;
            *next_ids.of(kind) = TermId::new(last);
            let mut part = TailPart::after(next_ids, None);
            let mut add = |text| {
                let term = Term { kind, value: TermValue::Plain(text) };
                part.add_term(layout::term_key(&term), &term)
            };
            assert_eq!(add("last").unwrap(), TermId::new(last), "{kind:?}");
            assert_eq!(code(add("one more")), "ERR_INTEGRITY", "{kind:?}");
        }
    }
}
