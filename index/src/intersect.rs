//! The postings several lists have in common, by leaping from list to list. Knows only scans.

use std::fmt;

use crate::error::Result;
use crate::posting::{Order, Posting};
use crate::scan::Scan;

/// The postings that all of several scans have, in their order, read lazily.
///
/// The lists take turns: each skips to where the others stand, so the work is of the order of the
/// shortest list, not of the longest.
pub struct Intersection<'v> {
    legs: Vec<Leg<'v>>,
    order: Order,
    scanned: u64,
}

/// A scan and the posting it stands at.
struct Leg<'v> {
    scan: Scan<'v>,
    at: Option<Posting>,
}

impl<'v> Intersection<'v> {
    /// The intersection of scans that run in this order; of none, nothing.
    pub(crate) fn of(scans: Vec<Scan<'v>>, order: Order) -> Self {
        let legs = scans.into_iter().map(|scan| Leg { scan, at: None }).collect();
        Self { legs, order, scanned: 0 }
    }

    /// Postings read from the lists so far: the work that was done.
    #[must_use]
    pub fn scanned(&self) -> u64 {
        self.scanned
    }

    /// Skips forward to the first common posting at or after this one.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub fn seek(&mut self, posting: Posting) -> Result<()> {
        self.legs.iter_mut().try_for_each(|leg| leg.scan.seek(posting))
    }

    /// Takes every list to one posting; nothing where a list ends before that.
    fn advance(&mut self) -> Result<Option<Posting>> {
        let order = self.order;
        let Some((first, others)) = self.legs.split_first_mut() else { return Ok(None) };
        let Some(mut target) = first.step(&mut self.scanned)? else { return Ok(None) };
        loop {
            let mut reached = target;
            for leg in &mut *others {
                match leg.reach(reached, order, &mut self.scanned)? {
                    Some(at) => reached = at,
                    None => return Ok(None),
                }
            }
            match first.reach(reached, order, &mut self.scanned)? {
                Some(at) if at == target => return Ok(Some(at)),
                Some(at) => target = at,
                None => return Ok(None),
            }
        }
    }
}

impl Leg<'_> {
    fn step(&mut self, scanned: &mut u64) -> Result<Option<Posting>> {
        self.at = self.scan.next().transpose()?;
        *scanned = scanned.saturating_add(self.at.iter().len() as u64);
        Ok(self.at)
    }

    /// The first posting at or after this one.
    fn reach(
        &mut self,
        target: Posting,
        order: Order,
        scanned: &mut u64,
    ) -> Result<Option<Posting>> {
        let is_there = self.at.is_some_and(|at| match order {
            Order::Newest => at <= target,
            Order::Oldest => at >= target,
        });
        if is_there {
            return Ok(self.at);
        }
        self.scan.seek(target)?;
        self.step(scanned)
    }
}

impl Iterator for Intersection<'_> {
    type Item = Result<Posting>;

    fn next(&mut self) -> Option<Result<Posting>> {
        let found = self.advance();
        if !matches!(found, Ok(Some(_))) {
            self.legs.clear();
        }
        found.transpose()
    }
}

impl fmt::Debug for Intersection<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Intersection")
            .field("lists", &self.legs.len())
            .field("scanned", &self.scanned)
            .finish_non_exhaustive()
    }
}
