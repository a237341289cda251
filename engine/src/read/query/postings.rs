//! The postings of an access path, in the order of the answer.

use grainstore_cal::CancelHandle;
use grainstore_format::EpochMs;
use grainstore_index::{
    self as index, Intersection, IntersectionStep, Posting, Sequence, TimeRange,
};

use super::access_path::AccessPath;
use super::cursor::TimePosition;
use super::scan::ScanError;
use crate::disk::vault::Vault;

/// Postings read between checks for cancellation, while none is found.
const POSTINGS_PER_CHECK: u64 = 1024;

/// Opens the postings of the lists of a query.
pub(super) struct PostingsSource<'w> {
    pub(super) reader: index::IndexReader<'w>,
    pub(super) access: &'w AccessPath<'w>,
    pub(super) cancel: &'w CancelHandle,
    pub(super) vault: &'w Vault,
}

impl<'w> PostingsSource<'w> {
    /// The postings of a time range; newest first, they start after `place`.
    pub(super) fn open(
        &self,
        times: TimeRange,
        order: index::TimeOrder,
        place: Option<TimePosition>,
    ) -> Result<CancellablePostings<'w>, ScanError> {
        let lists = &self.access.lists;
        let shapes: Vec<&[index::IndexLookup<'_>]> =
            lists.iter().map(|list| list.lookups.as_slice()).collect();
        let mut postings =
            self.reader.intersect_unions(&self.access.namespaces, &shapes, times, order)?;
        if let (index::TimeOrder::Newest, Some(place)) = (order, place) {
            let (tie, sequence) = (self.vault.tie_breaker(&place.address), Sequence::MAX);
            postings.seek(Posting { time: place.time, tie, sequence })?;
        }
        Ok(CancellablePostings { postings, cancel: self.cancel })
    }
}

/// Postings whose search can be cancelled: lists with little in common are read for long without a result.
pub(super) struct CancellablePostings<'w> {
    postings: Intersection<'w>,
    cancel: &'w CancelHandle,
}

impl Iterator for CancellablePostings<'_> {
    type Item = Result<Posting, ScanError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.postings.step(POSTINGS_PER_CHECK) {
                Ok(IntersectionStep::Found(posting)) => return Some(Ok(posting)),
                Ok(IntersectionStep::End) => return None,
                Ok(IntersectionStep::Paused) => match self.cancel.check() {
                    Ok(()) => {}
                    Err(stop) => return Some(Err(ScanError::Stopped(stop))),
                },
                Err(error) => return Some(Err(error.into())),
            }
        }
    }
}

/// Most postings of one instant that are reversed in memory; for a longer one the list is read again.
const MAX_REVERSED_POSTINGS: usize = 64;

/// Postings from oldest to newest, each instant by ascending address: an index read backwards is backwards
/// within an instant too.
pub(super) struct OldestFirstPostings<'w> {
    source: PostingsSource<'w>,
    times: TimeRange,
    place: Option<TimePosition>,
    postings: CancellablePostings<'w>,
    /// The posting after the current instant.
    next: Option<Result<Posting, ScanError>>,
    /// The current instant, its last posting first.
    instant: Vec<Posting>,
    /// The current instant, read forward if it is long.
    forward: Option<CancellablePostings<'w>>,
}

impl<'w> OldestFirstPostings<'w> {
    pub(super) fn new(
        found: PostingsSource<'w>,
        times: TimeRange,
        place: Option<TimePosition>,
    ) -> Result<Self, ScanError> {
        let mut postings = found.open(times, index::TimeOrder::Oldest, None)?;
        let next = postings.next();
        Ok(Self { source: found, times, place, postings, next, instant: Vec::new(), forward: None })
    }

    /// Collects the instant that starts with this posting, or opens it to be read forward.
    fn collect_instant(&mut self, first: Posting) -> Result<(), ScanError> {
        self.instant.push(first);
        loop {
            match self.postings.next() {
                Some(Ok(next)) if next.time == first.time => self.instant.push(next),
                other => {
                    self.next = other;
                    return Ok(());
                }
            }
            if self.instant.len() > MAX_REVERSED_POSTINGS {
                self.instant.clear();
                return self.read_forward(first.time);
            }
        }
    }

    fn read_forward(&mut self, time: EpochMs) -> Result<(), ScanError> {
        let instant = TimeRange { from: Some(time), to: Some(time) };
        let place = self.place.filter(|place| place.time == time);
        self.forward = Some(self.source.open(instant, index::TimeOrder::Newest, place)?);
        let Some(later) = time.get().checked_add(1) else {
            // No later time exists, so the rest of the list is this instant.
            self.next = None;
            return Ok(());
        };
        let rest = TimeRange { from: Some(EpochMs::new(later)), ..self.times };
        self.postings = self.source.open(rest, index::TimeOrder::Oldest, None)?;
        self.next = self.postings.next();
        Ok(())
    }
}

impl Iterator for OldestFirstPostings<'_> {
    type Item = Result<Posting, ScanError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(forward) = &mut self.forward {
                match forward.next() {
                    Some(posting) => return Some(posting),
                    None => self.forward = None,
                }
            }
            if let Some(posting) = self.instant.pop() {
                return Some(Ok(posting));
            }
            let gathered = match self.next.take()? {
                Ok(first) => self.collect_instant(first),
                Err(error) => Err(error),
            };
            if let Err(error) = gathered {
                return Some(Err(error));
            }
        }
    }
}
