//! Lookups over a whole view: which postings a scope and a shape have, in which order.
//!
//! Knows prefixes, not bytes. What it gives are candidates: the grain behind a posting may be
//! superseded, erased or of another session, or share a digest with what was asked for, and the
//! engine rechecks each.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::blind::Eyes;
use crate::error::{Error, Result};
use crate::field::FieldValue;
use crate::intersect::Intersection;
use crate::keys::{self, Key, Prefix, Rank};
use crate::names::Names;
use crate::posting::{Order, Posting, Sequence, TimeRange};
use crate::scan::{Range, Scan, between};
use crate::shape::{Scope, Shape};
use crate::spaces::Spaces;
use crate::tables::Tables;
use crate::tail::Tail;
use crate::term::{Name, TermId, TermKind, Word};

/// A view of the index: the tables of a read snapshot and the tail that continues them.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'v> {
    pub(crate) names: Names<'v>,
    pub(crate) eyes: Eyes<'v>,
}

/// A relation a subject has, and its newest posting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relation {
    /// What the relation is called.
    pub name: Name,
    /// The newest grain about the subject in this relation.
    pub newest: Posting,
}

impl<'v> Reader<'v> {
    /// A reader of this view.
    #[must_use]
    pub fn new(tables: &'v Tables, tail: &'v Tail) -> Self {
        Self { names: Names { tables, tail }, eyes: Eyes::Plain }
    }

    /// The same, looking for tokens of these keyholders.
    #[must_use]
    pub fn with_eyes(self, eyes: Eyes<'v>) -> Self {
        Self { eyes, ..self }
    }

    /// The postings of a shape within a scope and a time range, each once, read lazily: seeks to
    /// the range of each namespace in the scope, then one entry an item. Lists that keep rows for
    /// the whole store have one range for [`Scope::All`].
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`; so do the items.
    pub fn scan(
        &self,
        scope: &Scope<'_>,
        shape: &Shape<'_>,
        times: TimeRange,
        order: Order,
    ) -> Result<Scan<'v>> {
        self.scan_any(&Spaces::of(*scope), std::slice::from_ref(shape), times, order)
    }

    /// The postings that all of these shapes have; without shapes, those of the scope. Put the
    /// shape with the fewest postings first.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`; so do the items.
    pub fn intersect(
        &self,
        scope: &Scope<'_>,
        shapes: &[Shape<'_>],
        times: TimeRange,
        order: Order,
    ) -> Result<Intersection<'v>> {
        let shapes = if shapes.is_empty() { &[Shape::All] } else { shapes };
        let lists: Vec<&[Shape<'_>]> = shapes.iter().map(std::slice::from_ref).collect();
        self.find(&Spaces::of(*scope), &lists, times, order)
    }

    /// The postings that every one of these lists has, each list being the union of its shapes. Put
    /// the shortest list first.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`; so do the items.
    pub fn find(
        &self,
        spaces: &Spaces<'_>,
        lists: &[&[Shape<'_>]],
        times: TimeRange,
        order: Order,
    ) -> Result<Intersection<'v>> {
        let scans = lists.iter().map(|shapes| self.scan_any(spaces, shapes, times, order));
        Ok(Intersection::of(scans.collect::<Result<_>>()?, order))
    }

    /// The postings that any of these shapes has.
    fn scan_any(
        &self,
        spaces: &Spaces<'_>,
        shapes: &[Shape<'_>],
        times: TimeRange,
        order: Order,
    ) -> Result<Scan<'v>> {
        let mut ranges = Vec::with_capacity(shapes.len());
        for shape in shapes {
            ranges.extend(self.ranges_of(spaces, shape)?);
        }
        Scan::over(self.names.view(), ranges, times, order)
    }

    /// How many postings [`scan`](Self::scan) would give, counted no further than `cap`.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub fn estimate(
        &self,
        scope: &Scope<'_>,
        shape: &Shape<'_>,
        times: TimeRange,
        cap: usize,
    ) -> Result<usize> {
        let mut count = 0_usize;
        for Range { prefix, namespaces } in self.ranges_of(&Spaces::of(*scope), shape)? {
            for namespace in namespaces.iter().copied() {
                let left = cap.saturating_sub(count);
                if left == 0 {
                    break;
                }
                let one = Range { prefix, namespaces: Arc::new([namespace]) };
                let mut scan =
                    Scan::over(self.names.view(), [one], times, Order::Newest)?.take(left);
                count = scan.try_fold(count, |n, posting| posting.map(|_| n.saturating_add(1)))?;
            }
        }
        Ok(count)
    }

    /// At most `limit` subjects that start so and have a posting in scope, in the order of their
    /// bytes; for completion. Blinded subjects and those beyond 256 bytes are left out.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub fn subjects(&self, scope: &Scope<'_>, start: &str, limit: usize) -> Result<Vec<String>> {
        let namespaces = self.everywhere(scope)?;
        let mut found = Vec::new();
        if limit == 0 {
            return Ok(found);
        }
        for named in self.names.starting_with(TermKind::Subject, start)? {
            let named = named?;
            let prefix = Prefix::subject(TermId::NONE, named.id()?);
            let range = Range { prefix, namespaces: Arc::clone(&namespaces) };
            let (view, times) = (self.names.view(), TimeRange::default());
            let mut scan = Scan::over(view, [range], times, Order::Newest)?;
            if let Name::Plain(text) = named.name()?
                && scan.next().transpose()?.is_some()
            {
                found.push(text);
            }
            if found.len() >= limit {
                break;
            }
        }
        Ok(found)
    }

    /// At most `limit` namespaces of a scope, short names first, in the order of their bytes.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub fn namespaces(&self, scope: &Scope<'_>, limit: usize) -> Result<Vec<Name>> {
        self.names.named_namespaces(scope)?.take(limit).map(|named| named?.name()).collect()
    }

    /// At most `limit` relations that a subject has in a scope, in the order in which the store
    /// first met them. Skips from relation to relation, however many grains each has.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub fn relations_of(
        &self,
        scope: &Scope<'_>,
        subject: Word<'_>,
        limit: usize,
    ) -> Result<Vec<Relation>> {
        let mut newest = BTreeMap::new();
        for subject in self.eyes.subjects(subject)? {
            let Some(subject) = self.names.id(TermKind::Subject, subject)? else { continue };
            for namespace in self.everywhere(scope)?.iter().copied() {
                self.gather_relations((namespace, subject), limit, &mut newest)?;
                while newest.len() > limit {
                    newest.pop_last();
                }
            }
        }
        let relations = newest.into_iter().map(|(id, rank): (TermId, Rank)| {
            Ok(Relation { name: self.names.relation(id)?, newest: rank.posting() })
        });
        relations.collect()
    }

    /// The first `limit` relations of a subject in a namespace, by id, with their newest ranks.
    fn gather_relations(
        &self,
        (namespace, subject): (TermId, TermId),
        limit: usize,
        newest: &mut BTreeMap<TermId, Rank>,
    ) -> Result<()> {
        let Some((first, last)) = Rank::bounds(TimeRange::default()) else { return Ok(()) };
        let end = Prefix::subject_relation(namespace, subject, TermKind::Relation.last());
        let end = end.key(last);
        let mut next = TermId::FIRST;
        for _ in 0..limit {
            let from = Prefix::subject_relation(namespace, subject, next).key(first);
            let Some(key) = self.first(&from, &end)? else { break };
            let (relation, rank) = keys::relation_of(&key)
                .zip(keys::rank_of(&key))
                .ok_or_else(|| Error::integrity("a posting key cannot be read"))?;
            newest.entry(relation).and_modify(|known| *known = rank.min(*known)).or_insert(rank);
            next = relation.next();
        }
        Ok(())
    }

    /// The first key of the view from a key to another in the list of subjects and relations.
    fn first(&self, from: &Key, end: &Key) -> Result<Option<Key>> {
        let Names { tables, tail } = self.names;
        let folded = tables.list(crate::lists::List::SubjectRelation)?.first(from, end)?;
        let runs = tail.parts().flat_map(|part| part.postings.iter());
        let new = runs.filter_map(|run| between(run, from, end).first().copied());
        Ok(new.chain(folded).min())
    }

    /// How many ranges it takes to read these shapes in a scope: one a shape and namespace, but one
    /// alone where the list keeps rows for the whole store and all of it is asked for.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub fn ranges(&self, spaces: &Spaces<'_>, shapes: &[Shape<'_>]) -> Result<usize> {
        shapes.iter().try_fold(0_usize, |count, shape| {
            let namespaces = spaces.ids(&self.names, shape.list().def().everywhere)?;
            let eyes = self.eyes.shapes(shape)?.len();
            Ok(count.saturating_add(namespaces.len().saturating_mul(eyes)))
        })
    }

    /// The ranges of a shape in a scope, one for everyone who is looked for; none where the shape names
    /// a term nobody ever used.
    pub(crate) fn ranges_of(&self, spaces: &Spaces<'_>, shape: &Shape<'_>) -> Result<Vec<Range>> {
        let mut ranges = Vec::new();
        for shape in self.eyes.shapes(shape)? {
            let Some(prefix) = self.bound(&shape)? else { continue };
            let namespaces = spaces.ids(&self.names, prefix.list().def().everywhere)?;
            ranges.push(Range { prefix, namespaces });
        }
        Ok(ranges)
    }

    /// The namespaces to read of a list that keeps rows for the whole store.
    fn everywhere(&self, scope: &Scope<'_>) -> Result<Arc<[TermId]>> {
        Spaces::of(*scope).ids(&self.names, true)
    }

    /// What a shape binds, as yet in no namespace.
    fn bound(&self, shape: &Shape<'_>) -> Result<Option<Prefix>> {
        let none = TermId::NONE;
        let (subject, relation, object) = match *shape {
            Shape::All => (None, None, None),
            Shape::Type(grain_type) => return Ok(Some(Prefix::grain_type(none, grain_type))),
            Shape::Value(field, word) => {
                return Ok(Some(Prefix::value(none, &FieldValue::of(field, word))));
            }
            Shape::Triple { subject, relation, object } => (subject, relation, object),
        };
        let id = |kind, word: Option<Word<'_>>| match word {
            None => Ok(Some(None)),
            Some(word) => Ok::<_, Error>(self.names.id(kind, word)?.map(Some)),
        };
        let Some(subject) = id(TermKind::Subject, subject)? else { return Ok(None) };
        let Some(relation) = id(TermKind::Relation, relation)? else { return Ok(None) };
        let object = object.map(|object| object.digest());
        Ok(Some(match (subject, relation, object) {
            (None, None, None) => Prefix::all(none),
            (Some(s), None, None) => Prefix::subject(none, s),
            (None, Some(p), None) => Prefix::relation(none, p),
            (None, None, Some(o)) => Prefix::object(none, o),
            (Some(s), Some(p), None) => Prefix::subject_relation(none, s, p),
            (Some(s), None, Some(o)) => Prefix::subject_object(none, s, o),
            (None, Some(p), Some(o)) => Prefix::relation_object(none, p, o),
            (Some(s), Some(p), Some(o)) => Prefix::triple(none, s, p, o),
        }))
    }

    /// Where an address lies in the log.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub fn sequence_of(&self, address: &[u8; 32]) -> Result<Option<Sequence>> {
        let new = self.names.tail.parts().find_map(|part| part.sequence_of(address));
        match new {
            Some(sequence) => Ok(Some(sequence)),
            None => self.names.tables.sequence_of(address),
        }
    }
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
