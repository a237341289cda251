//! Lookups over a whole view: which postings a scope and a shape have, in which order.
//!
//! Knows ranges, not bytes. What it gives are candidates: the grain behind a posting may be
//! superseded, erased or of another session, and the engine rechecks each.

use crate::error::{Error, Result};
use crate::keys::{self, Bound, PostingKey, Prefix, Rank};
use crate::merge::{Scan, Source, Turn};
use crate::names::Names;
use crate::posting::{Order, TimeRange};
use crate::shape::{Scope, Shape};
use crate::tables::{PostingRows, Tables};
use crate::tail::Tail;
use crate::term::{TermId, TermKind};

/// A view of the index: the tables of a read snapshot and the tail that continues them.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'v> {
    names: Names<'v>,
}

impl<'v> Reader<'v> {
    /// A reader of this view.
    #[must_use]
    pub fn new(tables: &'v Tables, tail: &'v Tail) -> Self {
        Self { names: Names { tables, tail } }
    }

    /// The postings of a shape within a scope and a time range, each once, read lazily: seeks to
    /// the range of each namespace in the scope, then one entry an item.
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
        let mut sources = Vec::new();
        for prefix in self.prefixes(scope, shape)? {
            sources.extend(self.sources(prefix, times, order)?);
        }
        Scan::of(sources)
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
        for prefix in self.prefixes(scope, shape)? {
            let left = cap.saturating_sub(count);
            if left == 0 {
                break;
            }
            count = count.saturating_add(self.count(prefix, times, left)?);
        }
        Ok(count)
    }

    /// At most `limit` subjects that start so and have a posting in scope, in the order of their
    /// bytes; for completion. Blinded subjects and those beyond 256 bytes are left out.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub fn subjects(&self, scope: &Scope<'_>, start: &str, limit: usize) -> Result<Vec<String>> {
        let namespaces = self.names.namespaces(scope)?;
        let mut found = Vec::new();
        if limit == 0 {
            return Ok(found);
        }
        for named in self.names.starting_with(TermKind::Subject, start)? {
            let (key, id) = named?;
            if self.is_subject_of(&namespaces, id)? {
                let text = keys::plain_text(&key);
                let text = text.ok_or_else(|| Error::integrity("a term key is not text"))?;
                found.push(text.to_owned());
            }
            if found.len() >= limit {
                break;
            }
        }
        Ok(found)
    }

    fn is_subject_of(&self, namespaces: &[TermId], subject: TermId) -> Result<bool> {
        for namespace in namespaces {
            let prefix = Prefix { namespace: *namespace, bound: Bound::Subject(subject) };
            if self.count(prefix, TimeRange::default(), 1)? > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn count(&self, prefix: Prefix, times: TimeRange, cap: usize) -> Result<usize> {
        let postings = Scan::of(self.sources(prefix, times, Order::Newest)?)?;
        postings.take(cap).try_fold(0_usize, |n, posting| posting.map(|_| n.saturating_add(1)))
    }

    /// One prefix a namespace in scope; none where the shape names a term nobody ever used.
    fn prefixes(&self, scope: &Scope<'_>, shape: &Shape<'_>) -> Result<Vec<Prefix>> {
        let Some(bound) = self.bound(shape)? else {
            return Ok(Vec::new());
        };
        let namespaces = self.names.namespaces(scope)?;
        Ok(namespaces.into_iter().map(|namespace| Prefix { namespace, bound }).collect())
    }

    fn bound(&self, shape: &Shape<'_>) -> Result<Option<Bound>> {
        let id = |kind, word| self.names.id(kind, word);
        Ok(match *shape {
            Shape::All => Some(Bound::Nothing),
            Shape::Type(grain_type) => Some(Bound::Type(grain_type.byte())),
            Shape::Subject(subject) => id(TermKind::Subject, subject)?.map(Bound::Subject),
            Shape::SubjectRelation(subject, relation) => {
                let subject = id(TermKind::Subject, subject)?;
                let relation = id(TermKind::Relation, relation)?;
                subject.zip(relation).map(|(s, r)| Bound::SubjectRelation(s, r))
            }
            Shape::Session(session) => id(TermKind::Session, session)?.map(Bound::Session),
            Shape::Tag(tag) => id(TermKind::Tag, tag)?.map(Bound::Tag),
        })
    }

    /// What tables and tail have below a prefix, in this order.
    fn sources(
        &self,
        prefix: Prefix,
        times: TimeRange,
        order: Order,
    ) -> Result<Vec<Source<'v, Turn>>> {
        let Some(ranks) = Rank::bounds(times) else {
            return Ok(Vec::new());
        };
        let Names { tables, tail } = self.names;
        let ns = prefix.namespace;
        let term = |id| move |rank| keys::term_row(ns, id, rank);
        let folded = match prefix.bound {
            Bound::Nothing => {
                let row = |rank| keys::namespace_row(ns, rank);
                folded(&tables.by_namespace, row, ranks, order)
            }
            Bound::Type(byte) => {
                let row = |rank| keys::byte_row(ns, byte, rank);
                folded(&tables.by_type, row, ranks, order)
            }
            Bound::Subject(id) => folded(&tables.by_subject, term(id), ranks, order),
            Bound::SubjectRelation(s, r) => {
                let row = |rank| keys::pair_row(ns, (s, r), rank);
                folded(&tables.by_relation, row, ranks, order)
            }
            Bound::Session(id) => folded(&tables.by_session, term(id), ranks, order),
            Bound::Tag(id) => folded(&tables.by_tag, term(id), ranks, order),
        }?;
        Ok(vec![folded, unfolded(tail, prefix, ranks, order)])
    }
}

/// The part of a range that is in a table.
fn folded<const N: usize>(
    rows: &PostingRows<N>,
    row: impl Fn(Rank) -> [u8; N],
    (first, last): (Rank, Rank),
    order: Order,
) -> Result<Source<'static, Turn>> {
    let turns = rows.range::<&[u8; N]>(&row(first)..=&row(last))?.map(move |entry| {
        let (key, _) = entry?;
        let rank = Rank::of_row(key.value());
        let rank = rank.ok_or_else(|| Error::integrity("a posting row is too short"))?;
        Ok(Turn::of(rank, order))
    });
    Ok(match order {
        Order::Newest => Box::new(turns),
        Order::Oldest => Box::new(turns.rev()),
    })
}

/// The part of a range that is in the tail.
fn unfolded<'v>(
    tail: &'v Tail,
    prefix: Prefix,
    (first, last): (Rank, Rank),
    order: Order,
) -> Source<'v, Turn> {
    let at = |rank| PostingKey { prefix, rank };
    let keys = tail.postings().range(at(first)..=at(last));
    let turns = keys.map(move |key| Ok(Turn::of(key.rank, order)));
    match order {
        Order::Newest => Box::new(turns),
        Order::Oldest => Box::new(turns.rev()),
    }
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
