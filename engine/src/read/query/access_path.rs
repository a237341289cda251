//! Access-path selection: the smallest posting lists that the conditions of a query name.
//!
//! Every list here has all grains that match, and most have others too; the scan rechecks each grain. Must
//! know only conditions and statistics, and read no grain.

use grainstore_cal::{self as cal, Lookup, Query, Reach};
use grainstore_format::is_domain_field;
use grainstore_index::{
    self as index, Field, IndexLookup, IndexReader, Object, PostingEstimate, Scope,
    ScopeNamespaces, TimeRange, object_hash,
};

use crate::base::error::Result;
use crate::handle::session::Session;

/// Length up to which a list is scanned alone: seeking in a second one costs more than a few grains.
const SHORT_LIST_ROWS: u64 = 48;
/// Ratio to the driving list up to which another list is worth intersecting.
const MAX_INTERSECTION_RATIO: u64 = 16;
/// Most combinations of subjects, relations and objects that are looked up one by one.
const MAX_COMBINATIONS: usize = 100;

/// Most index ranges of a query, one a lookup and namespace: about 0.1 s. A query that needs more scans all
/// grains instead, which can be cancelled.
const MAX_QUERY_RANGES: usize = 100_000;

/// The access path of a query: the postings its candidates come from.
#[derive(Debug)]
pub(crate) struct AccessPath<'q> {
    pub(crate) namespaces: ScopeNamespaces<'q>,
    pub(crate) times: TimeRange,
    pub(crate) order: index::TimeOrder,
    /// Lists that each have every match; the first one drives, and several are intersected.
    pub(crate) lists: Vec<PostingUnion<'q>>,
}

/// The union of the postings of one or more lookups.
#[derive(Debug)]
pub(crate) struct PostingUnion<'q> {
    pub(crate) lookups: Vec<IndexLookup<'q>>,
    /// Its estimated length, if it was measured.
    pub(crate) estimate: Option<PostingEstimate>,
}

impl PostingUnion<'_> {
    /// Estimates its length.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub(crate) fn estimate_rows(
        &self,
        reader: &IndexReader<'_>,
        (spaces, times): (&ScopeNamespaces<'_>, TimeRange),
    ) -> Result<PostingEstimate> {
        let mut size = PostingEstimate { postings: 0, exact: true };
        for shape in &self.lookups {
            let one = reader.estimate_postings(spaces, shape, times)?;
            size.postings = size.postings.saturating_add(one.postings);
            size.exact &= one.exact;
        }
        Ok(size)
    }

    fn rows(&self) -> u64 {
        self.estimate.map_or(u64::MAX, |size| size.postings)
    }

    /// Returns `true` if it is so unselective that intersecting it is not worth the seeks.
    fn is_broad(&self) -> bool {
        self.lookups.len() > 1
            || matches!(self.lookups.first(), Some(IndexLookup::All | IndexLookup::Type(_)))
    }

    /// The name of its index.
    pub(crate) fn index_name(&self) -> String {
        self.lookups
            .first()
            .map_or_else(|| "none".to_owned(), |shape| shape.index_name().to_owned())
    }
}

impl<'q> AccessPath<'q> {
    /// Chooses the lists for a query of a session.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub(crate) fn choose(
        reader: &IndexReader<'_>,
        session: &'q Session,
        query: &'q Query,
    ) -> Result<Self> {
        let (mut spaces, times) = (ScopeNamespaces::of(scope(session, query)), time_bounds(query));
        let order = match query.order() {
            cal::Order::Newest => index::TimeOrder::Newest,
            cal::Order::Oldest => index::TimeOrder::Oldest,
        };
        let mut choices = Vec::new();
        for lookups in lookup_lists(query) {
            if reader.range_count(&spaces, &lookups)? <= MAX_QUERY_RANGES {
                choices.push(lookups);
            }
        }
        if choices.is_empty() {
            choices.push(vec![IndexLookup::All]);
            if reader.range_count(&spaces, &[IndexLookup::All])? > MAX_QUERY_RANGES {
                spaces = ScopeNamespaces::of(Scope::All);
            }
        }
        let lists = match (choices.len(), choices.pop()) {
            // A single candidate needs no measuring.
            (1, Some(shapes)) => vec![PostingUnion { lookups: shapes, estimate: None }],
            (_, last) => {
                choices.extend(last);
                select_lists(measure_lists(reader, (&spaces, times), choices)?)
            }
        };
        Ok(Self { namespaces: spaces, times, order, lists })
    }
}

/// Measures the lists, until one is so short that no other can do better.
fn measure_lists<'q>(
    reader: &IndexReader<'_>,
    bounds: (&ScopeNamespaces<'_>, TimeRange),
    choices: Vec<Vec<IndexLookup<'q>>>,
) -> Result<Vec<PostingUnion<'q>>> {
    let mut lists = Vec::new();
    for shapes in choices {
        let mut list = PostingUnion { lookups: shapes, estimate: None };
        list.estimate = Some(list.estimate_rows(reader, bounds)?);
        let short = list.rows() <= SHORT_LIST_ROWS;
        lists.push(list);
        if short {
            break;
        }
    }
    Ok(lists)
}

/// Sorts the shortest list first, and keeps those worth intersecting with it.
fn select_lists(mut lists: Vec<PostingUnion<'_>>) -> Vec<PostingUnion<'_>> {
    lists.sort_by_key(PostingUnion::rows);
    let shortest = lists.first().map_or(0, PostingUnion::rows);
    let worth = if shortest <= SHORT_LIST_ROWS {
        0
    } else {
        shortest.saturating_mul(MAX_INTERSECTION_RATIO)
    };
    let mut place = 0;
    lists.retain(|list| {
        place += 1;
        place == 1 || (list.rows() <= worth && !list.is_broad())
    });
    lists
}

/// The namespaces to search: the query's, which its author keeps within the session's.
pub(super) fn scope<'q>(session: &'q Session, query: &'q Query) -> Scope<'q> {
    match query.reach() {
        Reach::Session => session.viewer().index_scope(),
        Reach::Exact(namespace) => Scope::Exact(namespace.as_str().into()),
        Reach::Subtree(namespace) => Scope::Subtree(namespace),
    }
}

/// The query's time range as bounds of the index.
fn time_bounds(query: &Query) -> TimeRange {
    let range = query.time_range();
    let open = |bound: grainstore_format::EpochMs, end| (bound.get() != end).then_some(bound);
    TimeRange { from: open(range.from, i64::MIN), to: open(range.to, i64::MAX) }
}

/// The lists a query's conditions can be looked up by, the most selective kinds first: each entry is a list
/// that has every match, as a union of lookups.
fn lookup_lists(query: &Query) -> Vec<Vec<IndexLookup<'_>>> {
    let mut lists = TripleConditions::from_query(query).lookups();
    for predicate in query.predicates() {
        match predicate.lookup() {
            Some(Lookup::Text { field, value }) => lists.extend(field_lookups(field, [value])),
            Some(Lookup::OneOf { field, values: texts }) => {
                lists.extend(field_lookups(field, texts.iter().map(String::as_str)));
            }
            Some(Lookup::Address { field, digits }) => {
                lists.extend(field_lookups(field, digits.iter().map(String::as_str)));
            }
            Some(Lookup::Tags(tags)) => {
                lists.extend(tags.iter().map(|tag| vec![field_lookup(Field::Tag, tag)]));
            }
            Some(Lookup::Domain { name, values: texts }) if is_domain_field(name) => {
                lists.push(
                    texts.iter().map(|text| field_lookup(Field::Domain(name), text)).collect(),
                );
            }
            Some(
                Lookup::Status(_)
                | Lookup::Namespace(_)
                | Lookup::ObjectMap(_)
                | Lookup::Domain { .. },
            )
            | None => {}
        }
    }
    if ![cal::TypeSet::ALL, cal::TypeSet::EVERYTHING].contains(&query.types()) {
        lists.push(query.types().iter().map(IndexLookup::Type).collect());
    }
    lists
}

fn field_lookup<'q>(field: Field<'q>, text: &'q str) -> IndexLookup<'q> {
    IndexLookup::Value(field, text.into())
}

/// The lookups of a field's values; `None` if the field is not indexed.
fn field_lookups<'q>(
    name: &str,
    texts: impl IntoIterator<Item = &'q str>,
) -> Option<Vec<IndexLookup<'q>>> {
    let field = Field::from_payload_name(name)?;
    Some(texts.into_iter().map(|text| field_lookup(field, text)).collect())
}

/// Values required of subject, relation and object; `None` for a part without a condition.
#[derive(Default)]
struct TripleConditions<'q> {
    subjects: Option<Vec<&'q str>>,
    relations: Option<Vec<&'q str>>,
    objects: Option<Vec<Object<'q>>>,
}

impl<'q> TripleConditions<'q> {
    /// Takes the first condition on each part: further ones are rechecked on the grain.
    fn from_query(query: &'q Query) -> Self {
        let mut found = Self::default();
        for predicate in query.predicates() {
            let (field, texts) = match predicate.lookup() {
                Some(Lookup::Text { field, value }) => (field, vec![value]),
                Some(Lookup::OneOf { field, values }) => {
                    (field, values.iter().map(String::as_str).collect())
                }
                Some(Lookup::ObjectMap(map)) => {
                    if found.objects.is_none() {
                        found.objects = Some(vec![Object::Map(object_hash(map))]);
                    }
                    continue;
                }
                _ => continue,
            };
            match field {
                "subject" if found.subjects.is_none() => found.subjects = Some(texts),
                "relation" if found.relations.is_none() => found.relations = Some(texts),
                "object" if found.objects.is_none() => {
                    let objects = texts.into_iter().map(|text| Object::Text(text.into()));
                    found.objects = Some(objects.collect());
                }
                _ => {}
            }
        }
        found
    }

    /// One list if the combinations are few, else one a part.
    fn lookups(self) -> Vec<Vec<IndexLookup<'q>>> {
        let Self { subjects, relations, objects } = self;
        let count = |length: Option<usize>| length.unwrap_or(1);
        let combinations = count(subjects.as_ref().map(Vec::len))
            .saturating_mul(count(relations.as_ref().map(Vec::len)))
            .saturating_mul(count(objects.as_ref().map(Vec::len)));
        if subjects.is_none() && relations.is_none() && objects.is_none() {
            return Vec::new();
        }
        if combinations <= MAX_COMBINATIONS {
            return vec![combine(subjects.as_deref(), relations.as_deref(), objects.as_deref())];
        }
        let alone = [
            subjects.map(|subjects| combine(Some(&subjects), None, None)),
            relations.map(|relations| combine(None, Some(&relations), None)),
            objects.map(|objects| combine(None, None, Some(&objects))),
        ];
        alone.into_iter().flatten().collect()
    }
}

/// Every combination of the parts, as lookups.
fn combine<'q>(
    subjects: Option<&[&'q str]>,
    relations: Option<&[&'q str]>,
    objects: Option<&[Object<'q>]>,
) -> Vec<IndexLookup<'q>> {
    let mut shapes = Vec::new();
    for subject in bound_or_any(subjects) {
        for relation in bound_or_any(relations) {
            for object in bound_or_any(objects) {
                let (subject, relation) = (subject.map(Into::into), relation.map(Into::into));
                shapes.push(IndexLookup::Triple { subject, relation, object });
            }
        }
    }
    shapes
}

/// The values as options, or a single `None` that binds nothing.
fn bound_or_any<T: Copy>(values: Option<&[T]>) -> Vec<Option<T>> {
    values.map_or_else(|| vec![None], |values| values.iter().copied().map(Some).collect())
}
