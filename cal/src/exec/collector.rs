//! The collector of a scan: it sorts, removes duplicates and cuts while scanning, in bounded memory.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

use grainstore_format::ContentAddress;

use super::value::{self, DedupKey, HitRef, SortValue};
use super::{count, size};
use crate::check::plan::{PipelineStep, SortKey};
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::fields::FieldRef;
use crate::limits;
use crate::memory::{Candidate, Hit};

/// The part of a pipeline that is applied during the scan: one sort, dedup, and one cut.
pub(super) struct Window {
    /// The sort key; `None` keeps the order of the memory.
    pub(super) key: Option<SortKey>,
    pub(super) dedup: Option<FieldRef>,
    pub(super) skip: usize,
    pub(super) take: Option<usize>,
}

impl Window {
    /// Splits the steps into a window and the rest.
    pub(super) fn split(steps: &[PipelineStep]) -> (Self, &[PipelineStep]) {
        let mut window = Self { key: None, dedup: None, skip: 0, take: None };
        let mut rest = steps;
        while let [step, after @ ..] = rest {
            match step {
                PipelineStep::Sort(key) if window.key.is_none() && rest.len() == steps.len() => {
                    window.key = Some(*key);
                }
                PipelineStep::Sort(_) => break,
                PipelineStep::Dedup(field) => window.dedup = Some(*field),
                PipelineStep::Skip(skipped) => {
                    let skipped = usize::try_from(*skipped).unwrap_or(usize::MAX);
                    window.skip = window.skip.saturating_add(skipped);
                    window.take = window.take.map(|take| take.saturating_sub(skipped));
                }
                PipelineStep::Take(taken) => {
                    let taken = usize::try_from(*taken).unwrap_or(usize::MAX);
                    window.take = Some(window.take.map_or(taken, |take| take.min(taken)));
                }
            }
            rest = after;
        }
        (window, rest)
    }

    /// Returns the number of matches needed from the start.
    pub(super) fn needed(&self) -> Option<usize> {
        self.take.map(|take| take.saturating_add(self.skip))
    }

    /// Returns the number of matches after which the scan may stop; `None` if it must run to the end.
    pub(super) fn scan_limit(&self) -> Option<usize> {
        if self.key.is_none() && self.dedup.is_none() { self.needed() } else { None }
    }

    /// Compares two matches: by the key, then by ascending address.
    fn order(&self, a: &Rank, b: &Rank) -> Ordering {
        let by_key =
            self.key.map_or(Ordering::Equal, |key| value::compare(&key, &a.value, &b.value));
        by_key.then_with(|| a.address.cmp(&b.address))
    }
}

/// The sort position of a match.
#[derive(Clone)]
struct Rank {
    value: SortValue,
    address: ContentAddress,
}

/// A match that may be in the answer.
struct RankedHit {
    rank: Rank,
    /// Bytes the grain takes.
    size: usize,
    hit: Hit,
}

/// The dedup keys seen so far, with their size in bytes and the most they may take.
struct DedupSet {
    values: BTreeSet<DedupKey>,
    bytes: usize,
    max_bytes: usize,
}

impl DedupSet {
    /// Adds a key and returns `true` if it is new; grains without a key are never duplicates.
    ///
    /// # Errors
    /// E030 if there are too many keys.
    fn is_new(&mut self, key: Option<DedupKey>) -> Result<bool> {
        let Some(key) = key else { return Ok(true) };
        let size = key.size();
        if !self.values.insert(key) {
            return Ok(false);
        }
        self.bytes = self.bytes.saturating_add(size);
        if self.values.len() > limits::MAX_BUFFERED_GRAINS || self.bytes > self.max_bytes {
            return Err(memory_exceeded());
        }
        Ok(true)
    }
}

/// The matches collected so far: at most twice as many as the window needs.
pub(super) struct HitCollector<'w> {
    window: &'w Window,
    rows: Vec<RankedHit>,
    dedup: DedupSet,
    /// The last rank that is still within the window; grains that rank after it are not even decoded.
    cutoff: Option<Rank>,
    matches: u64,
    /// Bytes that the grains in `rows` take, and the most they may take.
    bytes: usize,
    max_bytes: usize,
    stopped: bool,
}

/// The outcome of a scan.
pub(super) struct ScanOutcome {
    pub(super) hits: Vec<Hit>,
    /// Bytes the grains take.
    pub(super) bytes: usize,
    /// The number of all matches, if the scan ran to its end.
    pub(super) total: Option<u64>,
}

impl<'w> HitCollector<'w> {
    /// Creates an empty collector. Grains may take `most_bytes` at once, dedup keys `most_met` bytes.
    pub(super) fn new(window: &'w Window, most_bytes: usize, most_met: usize) -> Self {
        let rows = Vec::new();
        let met = DedupSet { values: BTreeSet::new(), bytes: 0, max_bytes: most_met };
        Self {
            window,
            rows,
            dedup: met,
            cutoff: None,
            matches: 0,
            bytes: 0,
            max_bytes: most_bytes,
            stopped: false,
        }
    }

    pub(super) fn take(&mut self, candidate: &Candidate<'_>) -> Result<ControlFlow<()>> {
        if self.window.take == Some(0) {
            self.stopped = true;
            return Ok(ControlFlow::Break(()));
        }
        match self.window.key {
            None => self.take_in_order(candidate),
            Some(key) => self.take_ranked(&key, candidate),
        }
    }

    /// Takes a match in the order of the memory, which is that of the answer: skip, then take.
    fn take_in_order(&mut self, candidate: &Candidate<'_>) -> Result<ControlFlow<()>> {
        if let Some(field) = self.window.dedup
            && !self.dedup.is_new(HitRef::from(candidate).dedup_key(field))?
        {
            return Ok(ControlFlow::Continue(()));
        }
        self.matches = self.matches.saturating_add(1);
        if self.matches <= count(self.window.skip) {
            return Ok(ControlFlow::Continue(()));
        }
        let rank = Rank { value: SortValue::Missing, address: candidate.address };
        self.keep(rank, candidate)?;
        self.check()?;
        if self.window.take.is_some_and(|take| self.rows.len() >= take) {
            self.stopped = true;
            return Ok(ControlFlow::Break(()));
        }
        Ok(ControlFlow::Continue(()))
    }

    fn keep(&mut self, rank: Rank, candidate: &Candidate<'_>) -> Result<()> {
        let hit = decode_hit(candidate)?;
        let size = size::grain_bytes(&hit.grain);
        self.bytes = self.bytes.saturating_add(size);
        self.rows.push(RankedHit { rank, size, hit });
        Ok(())
    }

    /// Returns E030 if the collected rows exceed the limits.
    fn check(&self) -> Result<()> {
        let fits = self.rows.len() <= self.max_rows() && self.bytes <= self.max_bytes;
        if fits { Ok(()) } else { Err(memory_exceeded()) }
    }

    /// Returns the most rows held. A top-k sort without dedup holds twice the limit between two calls of
    /// `shrink`.
    fn max_rows(&self) -> usize {
        let shrinks = self.window.dedup.is_none() && self.window.needed().is_some();
        if shrinks { 2 * limits::MAX_BUFFERED_GRAINS } else { limits::MAX_BUFFERED_GRAINS }
    }

    /// Takes a match of a sorted scan, which must see every match and keeps the best. With dedup all are
    /// kept, since the best of each group of duplicates is known only at the end.
    fn take_ranked(&mut self, key: &SortKey, candidate: &Candidate<'_>) -> Result<ControlFlow<()>> {
        self.matches = self.matches.saturating_add(1);
        let value = HitRef::from(candidate).sort_value(key.field);
        let rank = Rank { value, address: candidate.address };
        if self.cutoff.as_ref().is_some_and(|bar| self.window.order(&rank, bar).is_gt()) {
            return Ok(ControlFlow::Continue(()));
        }
        self.keep(rank, candidate)?;
        let most = match self.window.dedup {
            None => self.window.needed().unwrap_or(usize::MAX),
            Some(_) => usize::MAX,
        };
        let full =
            self.rows.len() >= most.saturating_mul(2).clamp(64, 2 * limits::MAX_BUFFERED_GRAINS);
        if full || self.bytes > self.max_bytes {
            self.shrink(most)?;
        }
        self.check()?;
        Ok(ControlFlow::Continue(()))
    }

    /// Keeps the best `most` rows, the most that the window can still return.
    fn shrink(&mut self, most: usize) -> Result<()> {
        if most > limits::MAX_BUFFERED_GRAINS {
            return Err(memory_exceeded());
        }
        self.sort();
        self.rows.truncate(most);
        self.bytes = self.rows.iter().map(|row| row.size).sum();
        self.cutoff = self.rows.last().map(|row| row.rank.clone());
        Ok(())
    }

    fn sort(&mut self) {
        let window = self.window;
        self.rows.sort_unstable_by(|a, b| window.order(&a.rank, &b.rank));
    }

    pub(super) fn finish(mut self) -> Result<ScanOutcome> {
        let mut skip = 0;
        if self.window.key.is_some() {
            self.sort();
            skip = self.window.skip;
            if let Some(field) = self.window.dedup {
                self.drop_duplicates(field)?;
            }
        }
        let total = (!self.stopped).then_some(self.matches);
        let take = self.window.take.unwrap_or(usize::MAX);
        let mut bytes = 0_usize;
        let kept = self.rows.into_iter().skip(skip).take(take);
        let hits = kept.inspect(|row| bytes = bytes.saturating_add(row.size)).map(|row| row.hit);
        Ok(ScanOutcome { hits: hits.collect(), bytes, total })
    }

    fn drop_duplicates(&mut self, field: FieldRef) -> Result<()> {
        let mut rows = Vec::with_capacity(self.rows.len());
        for row in self.rows.drain(..) {
            if self.dedup.is_new(HitRef::from(&row.hit).dedup_key(field))? {
                rows.push(row);
            }
        }
        self.rows = rows;
        self.matches = count(self.rows.len());
        Ok(())
    }
}

fn decode_hit(candidate: &Candidate<'_>) -> Result<Hit> {
    let grain = candidate.grain.to_grain()?;
    let Candidate { address, state, score, .. } = *candidate;
    Ok(Hit { address, grain, state: *state, score })
}

/// Returns E030: more than a statement may hold in memory.
pub(super) fn memory_exceeded() -> Error {
    let message = format!(
        "more than {} grains, or grains that take more than {} MiB of memory, would have to be held \
         at once",
        limits::MAX_BUFFERED_GRAINS,
        limits::MAX_BUFFERED_BYTES >> 20
    );
    Error::new(ErrorKind::BudgetExceeded, message).suggest("narrow the query, or LIMIT it first")
}

/// Applies a step after the window, to the few grains that are left.
pub(super) fn apply_step(step: PipelineStep, hits: &mut Vec<Hit>) {
    match step {
        PipelineStep::Sort(key) => {
            let value = |hit: &Hit| HitRef::from(hit).sort_value(key.field);
            hits.sort_by(|a, b| {
                value::compare(&key, &value(a), &value(b)).then_with(|| a.address.cmp(&b.address))
            });
        }
        PipelineStep::Skip(skipped) => {
            let skipped = usize::try_from(skipped).unwrap_or(usize::MAX).min(hits.len());
            hits.drain(..skipped);
        }
        PipelineStep::Take(taken) => hits.truncate(usize::try_from(taken).unwrap_or(usize::MAX)),
        // A pipeline removes duplicates once, before its first cut, so the window did it.
        PipelineStep::Dedup(_) => {}
    }
}
