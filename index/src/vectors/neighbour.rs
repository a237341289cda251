//! Results of a vector search: grains and their scores. Knows nothing of the search.

use crate::posting::Sequence;

use super::space::Metric;

/// A grain near the query to a [`VectorIndex`](super::VectorIndex).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Neighbour {
    /// The position of the grain in the log.
    pub sequence: Sequence,
    /// The part of the grain that is nearest.
    pub chunk: u32,
    /// The score; greater is nearer: the cosine in \[-1, 1\], the inner product, or minus the Euclidean
    /// distance. Computed in `f64`, rounded once.
    pub score: f32,
}

/// The method of a search in a [`VectorIndex`](super::VectorIndex).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchMethod {
    /// A scan of this many rows, none skipped.
    Exact {
        /// The number of rows.
        rows: usize,
    },
    /// A search by the graph.
    Graph {
        /// The ef of the search: rows kept in mind.
        width: usize,
        /// The number of rows compared one by one, because the graph does not have them yet.
        beside: usize,
    },
}

impl Neighbour {
    /// The score mapped to \[0, 1\], preserving the order: `(1 + cosine) / 2`; `(1 + dot / (1 + |dot|)) / 2`;
    /// `1 / (1 + distance)`.
    ///
    /// ```
    /// use grainstore_index::Sequence;
    /// use grainstore_index::vectors::{Metric, Neighbour};
    ///
    /// let near = Neighbour { sequence: Sequence::new(0), chunk: 0, score: 0.5 };
    /// assert_eq!(near.closeness(Metric::Cosine), 0.75);
    /// ```
    #[must_use]
    pub fn closeness(&self, metric: Metric) -> f32 {
        closeness(metric, self.score)
    }
}

/// Maps a score to \[0, 1\].
pub(crate) fn closeness(metric: Metric, score: f32) -> f32 {
    match metric {
        Metric::Cosine => f32::midpoint(1.0, score),
        Metric::Dot => f32::midpoint(1.0, score / (1.0 + score.abs())),
        Metric::L2 => (1.0 - score).recip(),
    }
}

/// The score of a similarity (see `query::between`). Preserves the order.
pub(crate) fn score(metric: Metric, rank: f64) -> f32 {
    let score = match metric {
        Metric::Cosine => rank.clamp(-1.0, 1.0),
        Metric::Dot => rank,
        Metric::L2 => -(-2.0 * rank).max(0.0).sqrt(),
    };
    #[expect(clippy::cast_possible_truncation, reason = "rounded, and within f32 by MAX_NUMBER")]
    let score = score as f32;
    // Turns -0.0 into 0.0, so that equal scores are equal in every order.
    score + 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closeness_lies_between_nought_and_one_and_keeps_the_order() {
        let cases: [(Metric, &[f32]); 3] = [
            (Metric::Cosine, &[-1.0, -0.3, 0.0, 0.7, 1.0]),
            (Metric::Dot, &[-1e30, -2.0, 0.0, 0.1, 5.0, 1e30]),
            (Metric::L2, &[-1e30, -3.0, -0.5, 0.0]),
        ];
        for (metric, scores) in cases {
            let of = |score: &f32| {
                Neighbour { sequence: Sequence::new(1), chunk: 0, score: *score }.closeness(metric)
            };
            let close: Vec<f32> = scores.iter().map(of).collect();
            assert!(close.is_sorted(), "{metric:?}: {close:?}");
            assert!(close.iter().all(|close| (0.0..=1.0).contains(close)), "{metric:?}: {close:?}");
        }
    }
}
