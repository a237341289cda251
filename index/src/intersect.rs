//! The intersection of scans, by leapfrogging from list to list. Knows only scans.

use std::fmt;

use crate::error::Result;
use crate::posting::{Posting, TimeOrder};
use crate::scan::Scan;

/// The postings common to several scans, in their order, read lazily.
///
/// Each list in turn skips to the position of the others, so the work is proportional to the shortest list.
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
/// use grainstore_format::GrainType;
/// use grainstore_index::{IndexLookup, IndexReader, IntersectionStep, Scope, TimeOrder, TimeRange};
///
/// // `tables` and `tail` hold three beliefs, two of them about alice.
/// let reader = IndexReader::new(&tables, &tail);
/// let lookups = [IndexLookup::subject("alice".into()), IndexLookup::Type(GrainType::Belief)];
/// let mut common =
///     reader.intersect(&Scope::All, &lookups, TimeRange::default(), TimeOrder::Newest)?;
/// assert!(matches!(common.step(100)?, IntersectionStep::Found(at) if at.sequence.get() == 2));
/// assert_eq!(common.count(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Intersection<'v> {
    cursors: Vec<ScanCursor<'v>>,
    order: TimeOrder,
    scanned: u64,
    /// The candidate at which the search for the next common posting was paused.
    paused_at: Option<Posting>,
}

/// The result of one search for the next posting of an [`Intersection`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntersectionStep {
    /// The next posting.
    Found(Posting),
    /// There are no more postings.
    End,
    /// Not found yet; call again to continue.
    Paused,
}

/// A scan and the posting it stands at.
struct ScanCursor<'v> {
    scan: Scan<'v>,
    at: Option<Posting>,
}

impl<'v> Intersection<'v> {
    /// The intersection of scans, all in this order; of no scans, the empty set.
    pub(crate) fn of(scans: Vec<Scan<'v>>, order: TimeOrder) -> Self {
        let legs = scans.into_iter().map(|scan| ScanCursor { scan, at: None }).collect();
        Self { cursors: legs, order, scanned: 0, paused_at: None }
    }

    /// The number of postings read from the lists so far, which measures the work done.
    #[must_use]
    pub fn scanned(&self) -> u64 {
        self.scanned
    }

    /// Skips forward to the first common posting at or after this one.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub fn seek(&mut self, posting: Posting) -> Result<()> {
        self.paused_at = None;
        self.cursors.iter_mut().try_for_each(|leg| leg.scan.seek(posting))
    }

    /// Searches for the next common posting, and pauses after reading about `postings` of them: lists that
    /// share nothing can be long.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`; the intersection is then at its end.
    pub fn step(&mut self, postings: u64) -> Result<IntersectionStep> {
        let step = self.advance(self.scanned.saturating_add(postings));
        if matches!(step, Err(_) | Ok(IntersectionStep::End)) {
            self.cursors.clear();
        }
        step
    }

    /// Advances all lists to a common posting, until `most` postings were read in all.
    fn advance(&mut self, most: u64) -> Result<IntersectionStep> {
        let order = self.order;
        let Some((first, others)) = self.cursors.split_first_mut() else {
            return Ok(IntersectionStep::End);
        };
        let start = match self.paused_at.take() {
            Some(paused) => Some(paused),
            None => first.advance(&mut self.scanned)?,
        };
        let Some(mut target) = start else { return Ok(IntersectionStep::End) };
        loop {
            let mut reached = target;
            for leg in &mut *others {
                match leg.advance_to(reached, order, &mut self.scanned)? {
                    Some(at) => reached = at,
                    None => return Ok(IntersectionStep::End),
                }
            }
            match first.advance_to(reached, order, &mut self.scanned)? {
                Some(at) if at == target => return Ok(IntersectionStep::Found(at)),
                Some(at) => target = at,
                None => return Ok(IntersectionStep::End),
            }
            if self.scanned >= most {
                self.paused_at = Some(target);
                return Ok(IntersectionStep::Paused);
            }
        }
    }
}

impl ScanCursor<'_> {
    fn advance(&mut self, scanned: &mut u64) -> Result<Option<Posting>> {
        self.at = self.scan.next().transpose()?;
        *scanned = scanned.saturating_add(self.at.iter().len() as u64);
        Ok(self.at)
    }

    /// Advances to the first posting at or after this one.
    fn advance_to(
        &mut self,
        target: Posting,
        order: TimeOrder,
        scanned: &mut u64,
    ) -> Result<Option<Posting>> {
        let is_there = self.at.is_some_and(|at| match order {
            TimeOrder::Newest => at <= target,
            TimeOrder::Oldest => at >= target,
        });
        if is_there {
            return Ok(self.at);
        }
        self.scan.seek(target)?;
        self.advance(scanned)
    }
}

impl Iterator for Intersection<'_> {
    type Item = Result<Posting>;

    fn next(&mut self) -> Option<Result<Posting>> {
        match self.step(u64::MAX) {
            Ok(IntersectionStep::Found(posting)) => Some(Ok(posting)),
            Ok(IntersectionStep::End | IntersectionStep::Paused) => None,
            Err(error) => Some(Err(error)),
        }
    }
}

impl fmt::Debug for Intersection<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Intersection")
            .field("lists", &self.cursors.len())
            .field("scanned", &self.scanned)
            .finish_non_exhaustive()
    }
}
