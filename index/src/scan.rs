//! Scans of a view: rows of the tables and runs of the tail as one sequence in the requested order, without
//! duplicates.
//!
//! Reads an entry only after the one before it was taken. Knows prefixes, not their meaning.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::sync::Arc;

use crate::error::Result;
use crate::keys::{KeyPrefix, OrderKey, PostingKey};
use crate::posting::{Posting, TimeOrder, TimeRange};
use crate::run::cursor::{OrderKeys, RunCursor, row_of};
use crate::run::lists::RunList;
use crate::run::spaces;
use crate::run::table::Run;
use crate::tables::Tables;
use crate::tail::Tail;
use crate::term::TermId;

/// Postings in the requested order, without duplicates, read lazily.
///
/// Borrows the view it reads. After an error it is at its end.
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
/// use grainstore_index::{IndexLookup, IndexReader, Scope, TimeOrder, TimeRange};
///
/// // `tables` and `tail` hold three beliefs, one a millisecond.
/// let reader = IndexReader::new(&tables, &tail);
/// let (every, always) = (IndexLookup::All, TimeRange::default());
/// let scan = || reader.scan(&Scope::All, &every, always, TimeOrder::Oldest);
/// let Some(last) = scan()?.last().transpose()? else { return Err("no grain".into()) };
/// let mut rest = scan()?;
/// rest.seek(last)?;
/// assert_eq!((rest.count(), scan()?.count()), (1, 3));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Scan<'v> {
    sources: Vec<ScanSource<'v>>,
    /// The next position of each source that has one, and the index of the source; the first on top.
    heads: BinaryHeap<Reverse<(u128, usize)>>,
    last_position: Option<u128>,
    order: TimeOrder,
}

/// A range of postings with one prefix, in a table or in a run.
struct ScanSource<'v> {
    prefix: KeyPrefix,
    from: SourceCursor<'v>,
}

enum SourceCursor<'v> {
    /// The rest of a run.
    Run(&'v [PostingKey]),
    /// The rest of a range of rows of a run on disk, and its last order key in scan order.
    Rows { run: &'v Arc<Run>, ranks: Box<OrderKeys>, last: OrderKey },
}

/// The postings with one prefix, in several namespaces.
#[derive(Debug, Clone)]
pub(crate) struct PostingRange {
    /// The prefix, in any namespace.
    pub(crate) prefix: KeyPrefix,
    /// The namespaces, ascending.
    pub(crate) namespaces: Arc<[TermId]>,
}

impl<'v> Scan<'v> {
    /// Rows to step over before a seek reads a new range: a step costs a fraction of a B-tree descent.
    const MAX_SEEK_STEPS: usize = 4;

    /// The postings of any of these ranges within a time range.
    pub(crate) fn new(
        view: (&'v Tables, &'v Tail),
        ranges: impl IntoIterator<Item = PostingRange>,
        times: TimeRange,
        order: TimeOrder,
    ) -> Result<Self> {
        let (sources, heads) = (Vec::new(), BinaryHeap::new());
        let mut scan = Self { sources, heads, last_position: None, order };
        if let Some(ranks) = OrderKey::bounds(times) {
            for range in ranges {
                scan.add_range(view, &range, ranks)?;
            }
        }
        Ok(scan)
    }

    /// Skips forward to the first posting at or after this one in scan order. A new range is read; the
    /// postings in between are not. A scan that is past the posting stays where it is.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`; the scan is then at its end.
    pub fn seek(&mut self, posting: Posting) -> Result<()> {
        let rank = OrderKey::clamped(posting);
        let position = self.position_of(rank);
        while let Some(Reverse((head, at))) = self.heads.peek().copied() {
            if head >= position {
                break;
            }
            let order = self.order;
            let next = self.sources.get_mut(at).map(|source| source.seek(rank, order));
            self.replace_head(at, next.unwrap_or(Ok(None)))?;
        }
        Ok(())
    }

    fn add_range(
        &mut self,
        (tables, tail): (&'v Tables, &'v Tail),
        range: &PostingRange,
        ranks: (OrderKey, OrderKey),
    ) -> Result<()> {
        let order = self.order;
        let last = match order {
            TimeOrder::Newest => ranks.1,
            TimeOrder::Oldest => ranks.0,
        };
        for run in tables.runs()? {
            for (prefix, found) in range.rows_in((run, tables), ranks, order)? {
                let from = SourceCursor::Rows { run, ranks: Box::new(found), last };
                self.add(ScanSource { prefix, from })?;
            }
        }
        for run in tail.parts().flat_map(|part| part.postings.iter()) {
            for (prefix, run) in range.run_slices(run, ranks) {
                self.add(ScanSource { prefix, from: SourceCursor::Run(run) })?;
            }
        }
        Ok(())
    }

    /// Adds a source, unless it is empty.
    fn add(&mut self, mut source: ScanSource<'v>) -> Result<()> {
        if let Some(rank) = source.next(self.order)? {
            self.heads.push(Reverse((self.position_of(rank), self.sources.len())));
            self.sources.push(source);
        }
        Ok(())
    }

    /// The next position, skipping duplicates of the last one.
    fn next_position(&mut self) -> Result<Option<u128>> {
        while let Some(Reverse((turn, at))) = self.heads.peek().copied() {
            let order = self.order;
            let next = self.sources.get_mut(at).map(|source| source.next(order));
            self.replace_head(at, next.unwrap_or(Ok(None)))?;
            if self.last_position != Some(turn) {
                self.last_position = Some(turn);
                return Ok(Some(turn));
            }
        }
        Ok(None)
    }

    /// Replaces the first head by the next position of its source. An error ends the scan.
    fn replace_head(&mut self, at: usize, next: Result<Option<OrderKey>>) -> Result<()> {
        match next {
            Ok(Some(rank)) => {
                let head = Reverse((self.position_of(rank), at));
                if let Some(mut first) = self.heads.peek_mut() {
                    *first = head;
                }
            }
            Ok(None) => drop(self.heads.pop()),
            Err(error) => {
                self.heads.clear();
                return Err(error);
            }
        }
        Ok(())
    }

    /// The position of a order key in the scan; positions ascend in scan order.
    fn position_of(&self, rank: OrderKey) -> u128 {
        match self.order {
            TimeOrder::Newest => rank.number(),
            TimeOrder::Oldest => !rank.number(),
        }
    }

    fn posting(&self, turn: u128) -> Posting {
        match self.order {
            TimeOrder::Newest => OrderKey::from_number(turn).posting(),
            TimeOrder::Oldest => OrderKey::from_number(!turn).posting(),
        }
    }
}

impl Iterator for Scan<'_> {
    type Item = Result<Posting>;

    fn next(&mut self) -> Option<Result<Posting>> {
        let turn = self.next_position().transpose()?;
        Some(turn.map(|turn| self.posting(turn)))
    }
}

impl fmt::Debug for Scan<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scan").field("sources", &self.heads.len()).finish_non_exhaustive()
    }
}

impl ScanSource<'_> {
    fn next(&mut self, order: TimeOrder) -> Result<Option<OrderKey>> {
        match &mut self.from {
            SourceCursor::Rows { ranks, .. } => ranks.next_key(),
            SourceCursor::Run(run) => {
                let split = match order {
                    TimeOrder::Newest => run.split_first(),
                    TimeOrder::Oldest => run.split_last(),
                };
                let Some((key, rest)) = split else { return Ok(None) };
                *run = rest;
                Ok(self.prefix.order_key(key))
            }
        }
    }

    /// Skips to the first order key at or after this one, and returns it.
    fn seek(&mut self, rank: OrderKey, order: TimeOrder) -> Result<Option<OrderKey>> {
        let key = self.prefix.key(rank);
        match &mut self.from {
            SourceCursor::Run(run) => {
                *run = match order {
                    TimeOrder::Newest => run.split_at(run.partition_point(|at| *at < key)).1,
                    TimeOrder::Oldest => run.split_at(run.partition_point(|at| *at <= key)).0,
                };
            }
            SourceCursor::Rows { run, ranks, last } => {
                for _ in 0..Scan::MAX_SEEK_STEPS {
                    let Some(next) = ranks.next_key()? else { return Ok(None) };
                    let reached = match order {
                        TimeOrder::Newest => next >= rank,
                        TimeOrder::Oldest => next <= rank,
                    };
                    if reached {
                        return Ok(Some(next));
                    }
                }
                let (list, last) = (self.prefix.list(), self.prefix.key(*last));
                **ranks = match order {
                    TimeOrder::Newest => OrderKeys::between(run, list, (&key, &last), order)?,
                    TimeOrder::Oldest => OrderKeys::between(run, list, (&last, &key), order)?,
                };
            }
        }
        self.next(order)
    }
}

impl PostingRange {
    /// One prefix for each namespace.
    pub(crate) fn prefixes(&self) -> impl ExactSizeIterator<Item = KeyPrefix> {
        self.namespaces.iter().map(|namespace| self.prefix.with_namespace(*namespace))
    }

    /// The rows of a run on disk in this range, by namespace.
    fn rows_in(
        &self,
        (run, tables): (&Arc<Run>, &Tables),
        (first, last): (OrderKey, OrderKey),
        order: TimeOrder,
    ) -> Result<Vec<(KeyPrefix, OrderKeys)>> {
        let list = self.prefix.list();
        let namespaces = self.namespaces_in(run, tables)?;
        if let [namespace] = *namespaces {
            let prefix = self.prefix.with_namespace(namespace);
            let keys = (prefix.key(first), prefix.key(last));
            let rows = OrderKeys::between(run, list, (&keys.0, &keys.1), order)?;
            return Ok(vec![(prefix, rows)]);
        }
        let width = list.def().width;
        let new_cursor = || RunCursor::new(run, RunList::from(list));
        let (mut found, mut cursor) = (Vec::with_capacity(namespaces.len().min(16)), new_cursor());
        for namespace in namespaces {
            let prefix = self.prefix.with_namespace(namespace);
            let (first, last) = (prefix.key(first), prefix.key(last));
            if !cursor.seek(row_of(&first, width))? {
                break;
            }
            if cursor.key() > row_of(&last, width) {
                continue;
            }
            let rows = match order {
                // The cursor is at the first row already; otherwise it looks into further namespaces.
                TimeOrder::Newest => {
                    OrderKeys::from_here(std::mem::replace(&mut cursor, new_cursor()), width, last)
                }
                TimeOrder::Oldest => OrderKeys::between(run, list, (&first, &last), order)?,
            };
            found.push((prefix, rows));
        }
        Ok(found)
    }

    /// The namespaces of this range that a run on disk may have rows of. The namespace 0 stands for the only one of a run
    /// that has no rows under 0.
    fn namespaces_in(&self, run: &Arc<Run>, tables: &Tables) -> Result<Vec<TermId>> {
        if let [namespace] = *self.namespaces {
            return Ok(vec![run.local_namespace(namespace)]);
        }
        if let Some(only) = run.info.namespace {
            let found = self.namespaces.binary_search(&only).ok();
            return Ok(found.map(|_| only).into_iter().collect());
        }
        let all = || Ok(tables.next_ids()?.namespace.get());
        spaces::those_in(run, self.prefix.list(), &self.namespaces, all)
    }

    /// The slices of a run that are in this range, by namespace. Skips the namespaces the run does not have
    /// in this list.
    fn run_slices<'r>(
        &self,
        mut run: &'r [PostingKey],
        (first, last): (OrderKey, OrderKey),
    ) -> Vec<(KeyPrefix, &'r [PostingKey])> {
        let mut found = Vec::new();
        let mut namespaces = &*self.namespaces;
        while let Some((namespace, others)) = namespaces.split_first() {
            let prefix = self.prefix.with_namespace(*namespace);
            let (start, end) = (prefix.key(first), prefix.key(last));
            run = run.split_at(run.partition_point(|key| *key < start)).1;
            let Some(next) = run.first().and_then(|key| prefix.namespace_of(key)) else { break };
            if next > *namespace {
                namespaces = namespaces.split_at(namespaces.partition_point(|at| *at < next)).1;
                continue;
            }
            let stretch = run.split_at(run.partition_point(|key| *key <= end)).0;
            if !stretch.is_empty() {
                found.push((prefix, stretch));
            }
            namespaces = others;
        }
        found
    }
}

/// The keys of a run from `first` to `last`, both included.
pub(crate) fn keys_between<'v>(
    run: &'v [PostingKey],
    first: &PostingKey,
    last: &PostingKey,
) -> &'v [PostingKey] {
    let (_, from) = run.split_at(run.partition_point(|key| key < first));
    from.split_at(from.partition_point(|key| key <= last)).0
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
