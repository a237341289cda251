//! The most of several things that fit together, earlier ones before later ones.
//!
//! Knows neither what the things are nor what they have to fit: trying some of them tells.

use crate::error::Error;

/// Tries for each binary digit of the number of things. One finds the longest beginning that fits; the
/// others are for smaller things behind one that is too large.
const TRIES_A_DIGIT: u32 = 4;

/// As many of `all` as fit, in their order, and what they come to; `none` is what nothing comes to.
/// `fitting` answers what some of them come to, or nothing where they do not fit.
///
/// A thing that does not fit with those before it is left out alone. All are tried at once, then halves of
/// what did not fit; after four tries for each binary digit of their number, those not yet decided are left
/// out too. That is never less than the longest beginning that fits.
///
/// # Errors
/// Those of `fitting`.
pub(crate) fn most<T: Copy, X>(
    all: &[T],
    none: X,
    fitting: impl FnMut(&[T]) -> Result<Option<X>, Error>,
) -> Result<(Vec<T>, X), Error> {
    let digits = usize::BITS - all.len().leading_zeros();
    let mut search =
        Search { kept: Vec::new(), best: none, tries: TRIES_A_DIGIT * digits, fitting };
    search.add(all, false)?;
    Ok((search.kept, search.best))
}

struct Search<T, X, F> {
    kept: Vec<T>,
    /// What those come to.
    best: X,
    /// How many are left.
    tries: u32,
    fitting: F,
}

impl<T: Copy, X, F: FnMut(&[T]) -> Result<Option<X>, Error>> Search<T, X, F> {
    /// Adds what fits of `more`, and says whether all of it did; `too_many` where it is known not to.
    fn add(&mut self, more: &[T], too_many: bool) -> Result<bool, Error> {
        if more.is_empty() {
            return Ok(true);
        }
        if !too_many && self.added(more)? {
            return Ok(true);
        }
        if more.len() > 1 && self.tries > 0 {
            let (first, second) = more.split_at(more.len() / 2);
            // Where all of the first half fits, the second is what was too much.
            let whole = self.add(first, false)?;
            self.add(second, whole)?;
        }
        Ok(false)
    }

    /// Adds all of `more` if that fits.
    fn added(&mut self, more: &[T]) -> Result<bool, Error> {
        let Some(tries) = self.tries.checked_sub(1) else {
            return Ok(false);
        };
        self.tries = tries;
        let together = [self.kept.as_slice(), more].concat();
        let found = (self.fitting)(&together)?;
        let fits = found.is_some();
        if let Some(found) = found {
            (self.kept, self.best) = (together, found);
        }
        Ok(fits)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What is kept of numbers whose sum is bounded, that sum, and how often it was asked for.
    fn kept(all: &[usize], bound: usize) -> (Vec<usize>, usize, usize) {
        let mut tries = 0;
        let sum = |some: &[usize]| {
            tries += 1;
            Ok(Some(some.iter().sum()).filter(|sum| *sum <= bound))
        };
        let (kept, sum) = most(all, 0, sum).unwrap();
        (kept, sum, tries)
    }

    #[test]
    fn one_too_large_leaves_room_for_those_after_it() {
        for (all, bound, expected) in [
            (&[][..], 5, &[][..]),
            (&[6], 5, &[]),
            (&[1, 1, 1], 5, &[1, 1, 1]),
            (&[9, 1, 1, 1, 1, 1, 1], 6, &[1, 1, 1, 1, 1, 1]),
            (&[1, 9, 2, 9, 3], 6, &[1, 2, 3]),
            (&[2, 2, 2, 2, 1], 5, &[2, 2, 1]),
            (&[9, 9, 9, 9], 5, &[]),
        ] {
            let (found, sum, _) = kept(all, bound);
            assert_eq!((found.as_slice(), sum), (expected, expected.iter().sum()), "{all:?}");
        }
    }

    #[test]
    fn a_stop_is_passed_on() {
        let stopped = most(&[1, 2], 0, |_: &[usize]| Err(Error::stopped()));
        assert_eq!(stopped.unwrap_err().code(), "CAL-E082");
    }

    proptest! {
        #[test]
        fn the_work_is_bounded_and_no_beginning_that_fits_is_longer(
            all in prop::collection::vec(0_usize..50, 0..300),
            bound in 0_usize..4_000,
        ) {
            let (found, sum, tries) = kept(&all, bound);
            prop_assert!(sum <= bound);
            prop_assert_eq!(sum, found.iter().sum::<usize>());
            prop_assert!(tries <= 4 * 9, "{tries}");
            let sums = all.iter().scan(0, |sum, one| {
                *sum += one;
                Some(*sum)
            });
            let beginning = sums.take_while(|sum| *sum <= bound).count();
            prop_assert!(found.starts_with(&all[..beginning]), "{found:?}");
        }
    }
}
