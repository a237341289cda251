//! Estimates the number of postings of a lookup, in time that does not grow with it.
//!
//! For the choice between indexes: short ranges are counted, long ones are estimated from the sample.

use crate::error::Result;
use crate::keys::{self, KeyPrefix, OrderKey, PostingKey};
use crate::lookup::IndexLookup;
use crate::namespaces::ScopeNamespaces;
use crate::posting::{TimeOrder, TimeRange};
use crate::reader::IndexReader;
use crate::run::cursor::OrderKeys;
use crate::run::table::Run;
use crate::sample::{self, LEVELS};
use crate::scan::{PostingRange, keys_between};
use crate::term::TermId;

/// The number of postings of a lookup.
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
/// use grainstore_index::{IndexLookup, IndexReader, Scope, ScopeNamespaces, TimeRange};
///
/// // `tables` and `tail` hold three beliefs, two of them about alice.
/// let reader = IndexReader::new(&tables, &tail);
/// let namespaces = ScopeNamespaces::of(Scope::All);
/// let about_alice = IndexLookup::subject("alice".into());
/// let estimate = reader.estimate_postings(&namespaces, &about_alice, TimeRange::default())?;
/// assert_eq!((estimate.postings, estimate.exact), (2, true));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PostingEstimate {
    /// The number, counted or estimated.
    pub postings: u64,
    /// True if they were counted; else they were estimated from the sample.
    pub exact: bool,
}

/// Rows up to which a range is counted.
const MAX_COUNTED_ROWS: usize = 32;
/// Sampled rows that are enough for an estimate.
const MIN_SAMPLED_ROWS: u64 = 16;
/// Namespaces that are probed; the others are assumed to be like them.
const MAX_PROBED_NAMESPACES: usize = 32;

impl IndexReader<'_> {
    /// Estimates the number of postings [`scan`](Self::scan) would return, for a planner: exact below some
    /// dozens, else within about a quarter, for the cost of about a look-up.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub fn estimate_postings(
        &self,
        spaces: &ScopeNamespaces<'_>,
        shape: &IndexLookup<'_>,
        times: TimeRange,
    ) -> Result<PostingEstimate> {
        let mut size = PostingEstimate { postings: 0, exact: true };
        let Some(ranks) = OrderKey::bounds(times) else { return Ok(size) };
        for range in self.ranges_of(spaces, shape)? {
            let one = self.estimate_range(&range, ranks)?;
            size.postings = size.postings.saturating_add(one.postings);
            size.exact &= one.exact;
        }
        Ok(size)
    }

    fn estimate_range(
        &self,
        range: &PostingRange,
        ranks: (OrderKey, OrderKey),
    ) -> Result<PostingEstimate> {
        let mut size = PostingEstimate { postings: 0, exact: true };
        let prefixes = range.prefixes();
        let all = u64::try_from(prefixes.len()).unwrap_or(u64::MAX);
        let stride = prefixes.len().div_ceil(MAX_PROBED_NAMESPACES).max(1);
        let mut looked_at = 0_u64;
        for prefix in prefixes.step_by(stride) {
            let one = self.estimate_prefix(&prefix, ranks)?;
            size.postings = size.postings.saturating_add(one.postings);
            size.exact &= one.exact;
            looked_at = looked_at.saturating_add(1);
        }
        if stride > 1 {
            let scaled = u128::from(size.postings) * u128::from(all) / u128::from(looked_at.max(1));
            size = PostingEstimate {
                postings: u64::try_from(scaled).unwrap_or(u64::MAX),
                exact: false,
            };
        }
        Ok(size)
    }

    fn estimate_prefix(
        &self,
        prefix: &KeyPrefix,
        (first, last): (OrderKey, OrderKey),
    ) -> Result<PostingEstimate> {
        let (first, last) = (prefix.key(first), prefix.key(last));
        let tables = self.dictionary.tables;
        let new = self.dictionary.tail.parts().flat_map(|part| part.postings.iter());
        let new = new.fold(0_u64, |count, run| {
            count.saturating_add(keys_between(run, &first, &last).len() as u64)
        });
        let runs = tables.runs()?;
        let local = |run: &Run, key: &PostingKey| {
            let namespace = keys::namespace_of(key).unwrap_or(TermId::NONE);
            keys::with_namespace(key, run.local_namespace(namespace))
        };
        let mut counted = 0_usize;
        for run in runs {
            let (first, last) = (local(run, &first), local(run, &last));
            let (list, order) = (prefix.list(), TimeOrder::Newest);
            let mut rows = OrderKeys::between(run, list, (&first, &last), order)?;
            while counted < MAX_COUNTED_ROWS && rows.next_key()?.is_some() {
                counted = counted.saturating_add(1);
            }
        }
        let counted = counted as u64;
        if counted < MAX_COUNTED_ROWS as u64 {
            return Ok(PostingEstimate { postings: counted.saturating_add(new), exact: true });
        }
        let mut folded = counted;
        // The sparsest level with enough rows: denser ones would take much longer to read.
        for level in LEVELS.into_iter().rev() {
            let mut drawn = 0_u64;
            for run in runs {
                let (first, last) = (local(run, &first), local(run, &last));
                drawn = drawn.saturating_add(sample::count(run, level, (&first, &last))?);
            }
            folded = counted.max(level.rate().saturating_mul(drawn));
            if drawn >= MIN_SAMPLED_ROWS {
                break;
            }
        }
        Ok(PostingEstimate { postings: folded.saturating_add(new), exact: false })
    }
}

#[cfg(test)]
#[path = "estimate_tests.rs"]
mod tests;
