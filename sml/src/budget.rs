//! Splits a budget over sources by priority, and redistributes the shares that are not needed (CAL
//! 8.2).
//!
//! It works on amounts in the unit of the budget, and knows neither grains nor tokens.

/// The limit of a text that [`assemble`](crate::assemble()) writes (CAL 8.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Budget {
    /// A number of tokens for the whole text, envelope included, by the counter in use.
    Tokens(usize),
    /// A number of grains, of any length.
    Grains(usize),
}

/// Weights in thousandths for one to four sources, highest priority first (CAL 8.2).
const WEIGHTS: [&[u64]; 4] = [&[1000], &[650, 350], &[500, 300, 200], &[400, 280, 200, 120]];

/// Divides `total` among sources, given the demand of each. `demands` and the result are in priority
/// order.
///
/// No source gets more than its demand, and together they get at most `total`. The unused part of a
/// share, the whole share of a failed source included, goes to the other sources, highest priority
/// first.
pub(crate) fn allocate(total: usize, demands: &[usize]) -> Vec<usize> {
    let shares = weighted_shares(total, demands.len());
    let mut given: Vec<usize> = shares.zip(demands).map(|(share, want)| share.min(*want)).collect();
    let mut spare = total.saturating_sub(given.iter().sum());
    for (given, want) in given.iter_mut().zip(demands) {
        let more = spare.min(want - *given);
        *given += more;
        spare -= more;
    }
    given
}

/// Returns the share of each source by weight, rounded down.
pub(crate) fn weighted_shares(total: usize, sources: usize) -> impl Iterator<Item = usize> {
    let weights = weights(sources);
    let sum: u128 = weights.iter().copied().map(u128::from).sum();
    weights.into_iter().map(move |weight| {
        let share = total as u128 * u128::from(weight) / sum.max(1);
        usize::try_from(share).unwrap_or(total)
    })
}

/// Returns the weights of so many sources. From five on, each weight is 0.7 times the previous one,
/// rounded down to 0 in the end.
fn weights(sources: usize) -> Vec<u64> {
    let fixed = WEIGHTS.iter().find(|weights| weights.len() == sources);
    fixed.map_or_else(
        || {
            let decay = std::iter::successors(Some(1_000_000_000), |weight| Some(weight * 7 / 10));
            decay.take(sources).collect()
        },
        |weights| weights.to_vec(),
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn shares_follow_the_weights() {
        for (total, sources, expected) in [
            (1000, 1, vec![1000]),
            (1000, 2, vec![650, 350]),
            (1000, 3, vec![500, 300, 200]),
            (1000, 4, vec![400, 280, 200, 120]),
            (1000, 5, vec![360, 252, 176, 123, 86]),
            (99, 2, vec![64, 34]),
            (0, 3, vec![0, 0, 0]),
            (7, 0, vec![]),
        ] {
            assert_eq!(
                weighted_shares(total, sources).collect::<Vec<_>>(),
                expected,
                "{total}/{sources}"
            );
        }
    }

    #[test]
    fn what_one_leaves_flows_on_in_priority_order() {
        for (demands, expected) in [
            ([2000, 2000, 2000], [500, 300, 200]),
            ([2000, 2000, 0], [700, 300, 0]),
            ([600, 2000, 0], [600, 400, 0]),
            ([0, 0, 2000], [0, 0, 1000]),
            ([100, 350, 2000], [100, 350, 550]),
            ([1, 2, 3], [1, 2, 3]),
        ] {
            assert_eq!(allocate(1000, &demands), expected, "{demands:?}");
        }
    }

    #[test]
    fn rounding_loses_nothing() {
        assert_eq!(allocate(99, &[100, 100]), [65, 34]);
        assert_eq!(allocate(usize::MAX, &[usize::MAX]), [usize::MAX]);
    }

    proptest! {
        #[test]
        fn everything_is_spent_where_it_is_wanted(
            total in 0_usize..20_000,
            demands in prop::collection::vec(0_usize..5_000, 0..50),
        ) {
            let given = allocate(total, &demands);
            prop_assert_eq!(given.len(), demands.len());
            prop_assert!(given.iter().zip(&demands).all(|(given, want)| given <= want));
            let wanted: usize = demands.iter().sum();
            prop_assert_eq!(given.iter().sum::<usize>(), total.min(wanted));
        }
    }
}
