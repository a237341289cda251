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
    /// Where the search for the next common posting was interrupted.
    paused_at: Option<Posting>,
}

/// How far a search for the next posting came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The next posting.
    Found(Posting),
    /// There is none.
    End,
    /// Nothing yet; ask again to go on.
    Paused,
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
        Self { legs, order, scanned: 0, paused_at: None }
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
        self.paused_at = None;
        self.legs.iter_mut().try_for_each(|leg| leg.scan.seek(posting))
    }

    /// The next posting, or a pause after reading about so many: lists that share nothing can be
    /// long.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`; the intersection is then at its end.
    pub fn step(&mut self, postings: u64) -> Result<Step> {
        let step = self.advance(self.scanned.saturating_add(postings));
        if matches!(step, Err(_) | Ok(Step::End)) {
            self.legs.clear();
        }
        step
    }

    /// Takes every list to one posting, reading until so many were read in all.
    fn advance(&mut self, most: u64) -> Result<Step> {
        let order = self.order;
        let Some((first, others)) = self.legs.split_first_mut() else { return Ok(Step::End) };
        let start = match self.paused_at.take() {
            Some(paused) => Some(paused),
            None => first.step(&mut self.scanned)?,
        };
        let Some(mut target) = start else { return Ok(Step::End) };
        loop {
            let mut reached = target;
            for leg in &mut *others {
                match leg.reach(reached, order, &mut self.scanned)? {
                    Some(at) => reached = at,
                    None => return Ok(Step::End),
                }
            }
            match first.reach(reached, order, &mut self.scanned)? {
                Some(at) if at == target => return Ok(Step::Found(at)),
                Some(at) => target = at,
                None => return Ok(Step::End),
            }
            if self.scanned >= most {
                self.paused_at = Some(target);
                return Ok(Step::Paused);
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
        match self.step(u64::MAX) {
            Ok(Step::Found(posting)) => Some(Ok(posting)),
            Ok(Step::End | Step::Paused) => None,
            Err(error) => Some(Err(error)),
        }
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
