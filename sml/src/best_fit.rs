//! Finds as many of several items as fit together, earlier ones first.
//!
//! It knows neither the items nor the limit: the caller's function tries a subset.

use crate::error::Error;

/// Tries for each binary digit of the number of items. One try per digit finds the longest prefix that
/// fits; the others are for smaller items after one that is too large.
const TRIES_PER_BINARY_DIGIT: u32 = 4;

/// Returns as many of `all` as fit, in their order, with the result of trying them; `none` is the
/// result for no items. `fitting` returns the result of a subset, or `None` if it does not fit.
///
/// An item that does not fit together with those before it is left out alone. All items are tried at
/// once, then halves of those that did not fit. After four tries for each binary digit of their number,
/// the undecided ones are left out. The result always contains the longest prefix that fits.
///
/// # Errors
/// The errors of `fitting`.
pub(crate) fn best_fit<T: Copy, X>(
    all: &[T],
    none: X,
    fitting: impl FnMut(&[T]) -> Result<Option<X>, Error>,
) -> Result<(Vec<T>, X), Error> {
    let digits = usize::BITS - all.len().leading_zeros();
    let mut search =
        FitSearch { kept: Vec::new(), best: none, tries: TRIES_PER_BINARY_DIGIT * digits, fitting };
    search.add_fitting(all, false)?;
    Ok((search.kept, search.best))
}

struct FitSearch<T, X, F> {
    kept: Vec<T>,
    /// The result of trying those.
    best: X,
    /// The number of tries left.
    tries: u32,
    fitting: F,
}

impl<T: Copy, X, F: FnMut(&[T]) -> Result<Option<X>, Error>> FitSearch<T, X, F> {
    /// Adds the items of `more` that fit, and returns `true` if all did. `too_many` is set if they are
    /// known not to fit together.
    fn add_fitting(&mut self, more: &[T], too_many: bool) -> Result<bool, Error> {
        if more.is_empty() {
            return Ok(true);
        }
        if !too_many && self.try_add(more)? {
            return Ok(true);
        }
        if more.len() > 1 && self.tries > 0 {
            let (first, second) = more.split_at(more.len() / 2);
            // If all of the first half fits, the second half is known not to fit as a whole.
            let whole = self.add_fitting(first, false)?;
            self.add_fitting(second, whole)?;
        }
        Ok(false)
    }

    /// Adds all of `more` if they fit.
    fn try_add(&mut self, more: &[T]) -> Result<bool, Error> {
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

    /// Returns the numbers kept under a bounded sum, that sum, and the number of tries.
    fn kept(all: &[usize], bound: usize) -> (Vec<usize>, usize, usize) {
        let mut tries = 0;
        let sum = |some: &[usize]| {
            tries += 1;
            Ok(Some(some.iter().sum()).filter(|sum| *sum <= bound))
        };
        let (kept, sum) = best_fit(all, 0, sum).unwrap();
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
        let stopped = best_fit(&[1, 2], 0, |_: &[usize]| Err(Error::stopped()));
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
