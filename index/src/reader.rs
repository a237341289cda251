//! Index lookups on a view: the postings of a scope and a condition, in the requested order.
//!
//! Knows prefixes, not bytes. The results are candidates: the grain of a posting may be superseded, erased,
//! or of another session, or share a digest with the value looked up. The engine rechecks each.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::blind::TokenScope;
use crate::dictionary::TermDictionary;
use crate::error::{Error, Result};
use crate::field::FieldValue;
use crate::intersect::Intersection;
use crate::keys::{self, KeyPrefix, OrderKey, PostingKey};
use crate::lookup::{IndexLookup, Scope};
use crate::namespaces::ScopeNamespaces;
use crate::posting::{Posting, Sequence, TimeOrder, TimeRange};
use crate::posting_lists::PostingList;
use crate::run::cursor::{RunCursor, row_of};
use crate::run::table::Run;
use crate::scan::{PostingRange, Scan, keys_between};
use crate::tables::Tables;
use crate::tail::Tail;
use crate::term::{OwnedTermValue, TermId, TermKind, TermValue};

/// A view of the index: the tables of a read snapshot and the tail that continues them.
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
/// # use grainstore_format::{BeliefBuilder, Encoding, EpochMs, GrainRef};
/// # use grainstore_index::{IndexedFields, Sequence};
/// # for (sequence, subject) in [(0, "alice"), (1, "ann"), (2, "alice")] {
/// #     let time = EpochMs::new(1_768_471_200_000 + sequence);
/// #     let grain = BeliefBuilder::new(time, subject, "mg:prefers", "tea", 0.9).build()?;
/// #     let blob = grain.encode(Encoding::MessagePack)?;
/// #     let (address, fields) = (*blob.address().as_bytes(), GrainRef::new(blob.bytes())?);
/// #     let fields = IndexedFields::from_grain(&fields);
/// #     tail.push(&tables, Sequence::new(sequence as u64), address, &fields)?;
/// # }
/// use grainstore_index::{IndexLookup, IndexReader, Scope, TermValue, TimeOrder, TimeRange};
///
/// // `tables` and `tail` hold three beliefs: about alice, about ann, and about alice again.
/// let reader = IndexReader::new(&tables, &tail);
/// let about_alice = IndexLookup::subject(TermValue::Plain("alice"));
/// let newest_first =
///     reader.scan(&Scope::All, &about_alice, TimeRange::default(), TimeOrder::Newest)?;
/// let found: Vec<u64> =
///     newest_first.map(|posting| posting.map(|at| at.sequence.get())).collect::<Result<_, _>>()?;
/// assert_eq!(found, [2, 0]);
/// assert_eq!(reader.subjects(&Scope::All, "a", 10)?, ["alice", "ann"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct IndexReader<'v> {
    pub(crate) dictionary: TermDictionary<'v>,
    pub(crate) token_scope: TokenScope<'v>,
}

/// A relation a subject has, with its newest posting, found by an [`IndexReader`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelationSummary {
    /// The relation.
    pub relation: OwnedTermValue,
    /// The newest grain with this subject and relation.
    pub newest: Posting,
}

impl<'v> IndexReader<'v> {
    /// A reader of a plaintext index.
    #[must_use]
    pub fn new(tables: &'v Tables, tail: &'v Tail) -> Self {
        Self { dictionary: TermDictionary { tables, tail }, token_scope: TokenScope::Plain }
    }

    /// Makes the reader look up the blind tokens of these key holders.
    #[must_use]
    pub fn with_token_scope(self, eyes: TokenScope<'v>) -> Self {
        Self { token_scope: eyes, ..self }
    }

    /// The postings of a lookup within a scope and a time range, without duplicates, read lazily: one seek
    /// for each namespace in the scope, then one entry for each item. Lists with rows for the whole store
    /// need one seek for [`Scope::All`].
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`, also for each item.
    pub fn scan(
        &self,
        scope: &Scope<'_>,
        shape: &IndexLookup<'_>,
        times: TimeRange,
        order: TimeOrder,
    ) -> Result<Scan<'v>> {
        self.scan_union(&ScopeNamespaces::of(*scope), std::slice::from_ref(shape), times, order)
    }

    /// The postings that all of these lookups have; without lookups, all of the scope. The lookup with the
    /// fewest postings should come first.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`, also for each item.
    pub fn intersect(
        &self,
        scope: &Scope<'_>,
        shapes: &[IndexLookup<'_>],
        times: TimeRange,
        order: TimeOrder,
    ) -> Result<Intersection<'v>> {
        let shapes = if shapes.is_empty() { &[IndexLookup::All] } else { shapes };
        let lists: Vec<&[IndexLookup<'_>]> = shapes.iter().map(std::slice::from_ref).collect();
        self.intersect_unions(&ScopeNamespaces::of(*scope), &lists, times, order)
    }

    /// The intersection of lists, each of which is the union of its lookups. The shortest list should come
    /// first.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`, also for each item.
    pub fn intersect_unions(
        &self,
        spaces: &ScopeNamespaces<'_>,
        lists: &[&[IndexLookup<'_>]],
        times: TimeRange,
        order: TimeOrder,
    ) -> Result<Intersection<'v>> {
        let scans = lists.iter().map(|shapes| self.scan_union(spaces, shapes, times, order));
        Ok(Intersection::of(scans.collect::<Result<_>>()?, order))
    }

    /// The union of the postings of these lookups.
    fn scan_union(
        &self,
        spaces: &ScopeNamespaces<'_>,
        shapes: &[IndexLookup<'_>],
        times: TimeRange,
        order: TimeOrder,
    ) -> Result<Scan<'v>> {
        let mut ranges = Vec::with_capacity(shapes.len());
        for shape in shapes {
            ranges.extend(self.ranges_of(spaces, shape)?);
        }
        Scan::new(self.dictionary.view(), ranges, times, order)
    }

    /// Counts the postings [`scan`](Self::scan) would return, up to `cap`.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub fn count_up_to(
        &self,
        scope: &Scope<'_>,
        shape: &IndexLookup<'_>,
        times: TimeRange,
        cap: usize,
    ) -> Result<usize> {
        let mut count = 0_usize;
        for PostingRange { prefix, namespaces } in
            self.ranges_of(&ScopeNamespaces::of(*scope), shape)?
        {
            for namespace in namespaces.iter().copied() {
                let left = cap.saturating_sub(count);
                if left == 0 {
                    break;
                }
                let one = PostingRange { prefix, namespaces: Arc::new([namespace]) };
                let mut scan =
                    Scan::new(self.dictionary.view(), [one], times, TimeOrder::Newest)?.take(left);
                count = scan.try_fold(count, |n, posting| posting.map(|_| n.saturating_add(1)))?;
            }
        }
        Ok(count)
    }

    /// Returns at most `limit` subjects that begin with `start` and have a posting in scope, in byte order;
    /// for completion. Blinded subjects and those longer than 256 bytes are left out.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub fn subjects(&self, scope: &Scope<'_>, start: &str, limit: usize) -> Result<Vec<String>> {
        let namespaces = self.global_namespaces(scope)?;
        let mut found = Vec::new();
        if limit == 0 {
            return Ok(found);
        }
        for named in self.dictionary.terms_with_prefix(TermKind::Subject, start)? {
            let named = named?;
            let prefix = KeyPrefix::subject(TermId::NONE, named.id()?);
            let range = PostingRange { prefix, namespaces: Arc::clone(&namespaces) };
            let (view, times) = (self.dictionary.view(), TimeRange::default());
            let mut scan = Scan::new(view, [range], times, TimeOrder::Newest)?;
            if let OwnedTermValue::Plain(text) = named.value()?
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

    /// Returns at most `limit` namespaces of a scope in byte order, names above 256 bytes last.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub fn namespaces(&self, scope: &Scope<'_>, limit: usize) -> Result<Vec<OwnedTermValue>> {
        self.dictionary.namespace_entries(scope)?.take(limit).map(|named| named?.value()).collect()
    }

    /// Returns at most `limit` relations a subject has in a scope, in the order the store first saw them.
    /// Skips from relation to relation, whatever the number of grains of each.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub fn relations_of(
        &self,
        scope: &Scope<'_>,
        subject: TermValue<'_>,
        limit: usize,
    ) -> Result<Vec<RelationSummary>> {
        let mut newest = BTreeMap::new();
        for subject in self.token_scope.subjects(subject)? {
            let Some(subject) = self.dictionary.id(TermKind::Subject, subject)? else { continue };
            for namespace in self.global_namespaces(scope)?.iter().copied() {
                self.collect_relations((namespace, subject), limit, &mut newest)?;
                while newest.len() > limit {
                    newest.pop_last();
                }
            }
        }
        let relations = newest.into_iter().map(|(id, rank): (TermId, OrderKey)| {
            Ok(RelationSummary {
                relation: self.dictionary.relation_value(id)?,
                newest: rank.posting(),
            })
        });
        relations.collect()
    }

    /// Collects the first `limit` relations of a subject in a namespace, by id, with their newest order keys.
    fn collect_relations(
        &self,
        (namespace, subject): (TermId, TermId),
        limit: usize,
        newest: &mut BTreeMap<TermId, OrderKey>,
    ) -> Result<()> {
        let Some((first, last)) = OrderKey::bounds(TimeRange::default()) else { return Ok(()) };
        let end = KeyPrefix::subject_relation(namespace, subject, TermKind::Relation.last());
        let end = end.key(last);
        let mut next = TermId::FIRST;
        for _ in 0..limit {
            let from = KeyPrefix::subject_relation(namespace, subject, next).key(first);
            let Some(key) = self.first_subject_relation(&from, &end)? else { break };
            let (relation, rank) = keys::relation_of(&key)
                .zip(keys::order_key_of(&key))
                .ok_or_else(|| Error::integrity("a posting key cannot be read"))?;
            newest.entry(relation).and_modify(|known| *known = rank.min(*known)).or_insert(rank);
            next = relation.next();
        }
        Ok(())
    }

    /// The first key of the view from `from` to `end` in the list of subjects and relations.
    fn first_subject_relation(
        &self,
        from: &PostingKey,
        end: &PostingKey,
    ) -> Result<Option<PostingKey>> {
        let TermDictionary { tables, tail } = self.dictionary;
        let mut folded = Vec::new();
        for run in tables.runs()? {
            folded.extend(first_key(run, from, end)?);
        }
        let runs = tail.parts().flat_map(|part| part.postings.iter());
        let new = runs.filter_map(|run| keys_between(run, from, end).first().copied());
        Ok(new.chain(folded).min())
    }

    /// The number of ranges needed to read these lookups in a scope: one for each lookup, namespace and key
    /// holder, but a single one if the list has rows for the whole store and the scope is all of it.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub fn range_count(
        &self,
        spaces: &ScopeNamespaces<'_>,
        shapes: &[IndexLookup<'_>],
    ) -> Result<usize> {
        shapes.iter().try_fold(0_usize, |count, shape| {
            let namespaces =
                spaces.ids(&self.dictionary, shape.posting_list().def().has_global_rows)?;
            let eyes = self.token_scope.lookups(shape)?.len();
            Ok(count.saturating_add(namespaces.len().saturating_mul(eyes)))
        })
    }

    /// The ranges of a lookup in a scope, one for each key holder; none if the lookup has a term the store
    /// never saw.
    pub(crate) fn ranges_of(
        &self,
        spaces: &ScopeNamespaces<'_>,
        shape: &IndexLookup<'_>,
    ) -> Result<Vec<PostingRange>> {
        let mut ranges = Vec::new();
        for shape in self.token_scope.lookups(shape)? {
            let Some(prefix) = self.prefix_of(&shape)? else { continue };
            let namespaces = spaces.ids(&self.dictionary, prefix.list().def().has_global_rows)?;
            ranges.push(PostingRange { prefix, namespaces });
        }
        Ok(ranges)
    }

    /// The namespaces to read of a list that has rows for the whole store.
    fn global_namespaces(&self, scope: &Scope<'_>) -> Result<Arc<[TermId]>> {
        ScopeNamespaces::of(*scope).ids(&self.dictionary, true)
    }

    /// The prefix of a lookup, under the namespace 0; `None` if it has a term the store never saw.
    fn prefix_of(&self, shape: &IndexLookup<'_>) -> Result<Option<KeyPrefix>> {
        let none = TermId::NONE;
        let (subject, relation, object) = match *shape {
            IndexLookup::All => (None, None, None),
            IndexLookup::Type(grain_type) => {
                return Ok(Some(KeyPrefix::grain_type(none, grain_type)));
            }
            IndexLookup::Value(field, word) => {
                return Ok(Some(KeyPrefix::value(none, &FieldValue::of(field, word))));
            }
            IndexLookup::Triple { subject, relation, object } => (subject, relation, object),
        };
        let id = |kind, word: Option<TermValue<'_>>| match word {
            None => Ok(Some(None)),
            Some(word) => Ok::<_, Error>(self.dictionary.id(kind, word)?.map(Some)),
        };
        let Some(subject) = id(TermKind::Subject, subject)? else { return Ok(None) };
        let Some(relation) = id(TermKind::Relation, relation)? else { return Ok(None) };
        let object = object.map(|object| object.digest());
        Ok(Some(match (subject, relation, object) {
            (None, None, None) => KeyPrefix::all(none),
            (Some(s), None, None) => KeyPrefix::subject(none, s),
            (None, Some(p), None) => KeyPrefix::relation(none, p),
            (None, None, Some(o)) => KeyPrefix::object(none, o),
            (Some(s), Some(p), None) => KeyPrefix::subject_relation(none, s, p),
            (Some(s), None, Some(o)) => KeyPrefix::subject_object(none, s, o),
            (None, Some(p), Some(o)) => KeyPrefix::relation_object(none, p, o),
            (Some(s), Some(p), Some(o)) => KeyPrefix::triple(none, s, p, o),
        }))
    }

    /// The sequence of an address.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub fn sequence_of(&self, address: &[u8; 32]) -> Result<Option<Sequence>> {
        let new = self.dictionary.tail.parts().find_map(|part| part.sequence_of(address));
        match new {
            Some(sequence) => Ok(Some(sequence)),
            None => self.dictionary.tables.sequence_of(address),
        }
    }
}

/// The first key of a run from `from` to `end` in the list of subjects and relations, under the namespace of `from`.
fn first_key(run: &Arc<Run>, from: &PostingKey, end: &PostingKey) -> Result<Option<PostingKey>> {
    let list = PostingList::SubjectRelation;
    let Some(namespace) = keys::namespace_of(from) else { return Ok(None) };
    let local = run.local_namespace(namespace);
    let key_in = |key: &PostingKey, namespace| keys::with_namespace(key, namespace);
    let (from, end) = (key_in(from, local), key_in(end, local));
    let mut cursor = RunCursor::new(run, list.into());
    if !cursor.seek(row_of(&from, list.def().width))? {
        return Ok(None);
    }
    let found = keys::key_of(list, cursor.key());
    Ok((found <= end).then(|| key_in(&found, namespace)))
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
