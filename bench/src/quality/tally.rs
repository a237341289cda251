//! Ranks, counted: how often an answer was among the first rows, and how far up. Knows nothing of
//! questions.

use serde::Serialize;

/// The first so many rows that hits are counted in.
pub const RANKS: [usize; 4] = [1, 5, 10, 20];
/// Rows beyond which a rank earns nothing.
const RECIPROCAL: usize = 10;

/// How often an answer was found.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Figures {
    /// Questions that were asked.
    pub questions: u32,
    /// Percent of them with an answer in the first row, the first 5, 10, 20 ([`RANKS`]).
    pub hit_at_1: f64,
    /// The same in the first 5.
    pub hit_at_5: f64,
    /// The same in the first 10.
    pub hit_at_10: f64,
    /// The same in the first 20.
    pub hit_at_20: f64,
    /// The mean of 1 / rank of the first answer among the first 10 rows, 0 where there is none.
    pub mrr_at_10: f64,
}

impl Figures {
    /// Counts ranks from 1; none is a question without an answer among the rows.
    #[must_use]
    pub fn of(ranks: &[Option<usize>]) -> Self {
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let questions = count(ranks.len());
        let all = f64::from(questions.max(1));
        let found = || ranks.iter().flatten().copied();
        let [hit_at_1, hit_at_5, hit_at_10, hit_at_20] = RANKS.map(|first| {
            100.0 * f64::from(count(found().filter(|rank| *rank <= first).count())) / all
        });
        let near = found().filter(|rank| *rank <= RECIPROCAL);
        let mrr_at_10 = near.map(|rank| f64::from(count(rank)).recip()).sum::<f64>() / all;
        Self { questions, hit_at_1, hit_at_5, hit_at_10, hit_at_20, mrr_at_10 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_counts_where_it_is_among_the_first() {
        let figures =
            Figures::of(&[Some(1), Some(4), Some(10), Some(11), Some(20), None, None, None]);
        let expected = Figures {
            questions: 8,
            hit_at_1: 12.5,
            hit_at_5: 25.0,
            hit_at_10: 37.5,
            hit_at_20: 62.5,
            mrr_at_10: (1.0 + 0.25 + 0.1) / 8.0,
        };
        assert_eq!(figures, expected);
        assert_eq!(Figures::of(&[]), Figures::default());
    }
}
