//! Searches of a recall, their scores, and the order of answers (CAL 6.3, 9.4).
//!
//! The memory interprets the words: language, index and score are its own.

use std::sync::Arc;

/// A text search. A match must satisfy all of its text queries.
///
/// ```
/// use grainstore_cal::{Query, Search};
///
/// let search = Search::of("travel plans");
/// assert_eq!(search.asks().len(), 1);
/// assert_eq!(Query::default().searching("travel plans").search(), Some(&search));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Search {
    /// Never empty.
    asks: Vec<Ask>,
}

/// One text of a [`Search`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// The words, as given.
    pub text: String,
    /// The payload field to search; `None` searches all fields that carry language, and for a turn of a
    /// conversation the turns around it.
    pub field: Option<&'static str>,
}

/// A vector for nearest-neighbour search.
///
/// ```
/// use grainstore_cal::{Near, Query};
///
/// let near = Near { model: None, values: [0.6, 0.8].into() };
/// let query = Query::default().searching("travel plans").nearing(near.clone());
/// assert_eq!(query.near(), Some(&near));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Near {
    /// The model that made the vector; `None` for the model in use: that of the memory's embedder, or the
    /// only one there is.
    pub model: Option<String>,
    /// The components of the vector.
    pub values: Arc<[f32]>,
}

/// The scores of a grain for a search, each from 0 to 1.
///
/// ```
/// use grainstore_cal::Score;
///
/// assert_eq!(Score::STRUCTURAL.value, 1.0);
/// let linked = Score { value: 0.25, graph: Some(0.25), ..Score::STRUCTURAL };
/// assert!(linked.is_linked_only() && !Score::STRUCTURAL.is_linked_only());
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    /// The value grains are ranked by: 1 for all grains of a recall without a search.
    pub value: f64,
    /// The text score, if words were searched for.
    pub text: Option<f64>,
    /// The vector similarity, if vectors were searched for.
    pub vector: Option<f64>,
    /// The score received along a link from a better answer, if that raised the value.
    pub graph: Option<f64>,
}

/// Options for reordering the best answers. At most [`Rerank::POOL`] answers are considered, and
/// only those are returned.
///
/// ```
/// use grainstore_cal::{Diversity, Query, Rerank};
///
/// let diversity = Some(Diversity::Mmr { lambda: 0.7 });
/// let rerank = Rerank { diversity, recency_ms: Some(86_400_000), access: false };
/// let query = Query::default().searching("travel plans").reranked(rerank);
/// assert_eq!(query.rerank(), Some(rerank));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Rerank {
    /// Diversity of the answers.
    pub diversity: Option<Diversity>,
    /// Half-life in milliseconds of the half of a score that decays with age; the other half stays. Consent
    /// grains do not decay (OMS 8.10).
    pub recency_ms: Option<i64>,
    /// True if access counts: grains read often and recently keep their score, one that was never read
    /// loses up to half of it.
    pub access: bool,
}

/// A method that keeps answers from repeating each other: a part of [`Rerank`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Diversity {
    /// Maximal marginal relevance: the next answer has the best value of `lambda` times its score, less 1 -
    /// `lambda` times its similarity to the most similar answer before it.
    Mmr {
        /// From 0 (diversity only) to 1 (score only).
        lambda: f64,
    },
    /// Leaves out answers whose similarity to an earlier one is above this.
    Threshold(f64),
}

impl Rerank {
    /// Maximum answers considered.
    pub const POOL: usize = 512;
}

/// A minimum score: `score >= 0.3` or `score > 0.3`.
///
/// ```
/// use grainstore_cal::Floor;
///
/// assert!(Floor { least: 0.3, above: false }.admits(0.3));
/// assert!(!Floor { least: 0.3, above: true }.admits(0.3));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Floor {
    /// The bound.
    pub least: f64,
    /// True if the bound itself is excluded.
    pub above: bool,
}

impl Search {
    /// Returns a search for one text in all fields.
    #[must_use]
    pub fn of(text: impl Into<String>) -> Self {
        Self { asks: vec![Ask { text: text.into(), field: None }] }
    }

    /// Returns the text queries, in the order they were added.
    #[must_use]
    pub fn asks(&self) -> &[Ask] {
        &self.asks
    }
}

impl Score {
    /// The score of a grain that meets conditions without a search.
    pub const STRUCTURAL: Self = Self { value: 1.0, text: None, vector: None, graph: None };

    /// Returns `true` if a link alone made the grain an answer: it meets no condition and has no other
    /// score.
    #[must_use]
    pub fn is_linked_only(&self) -> bool {
        self.graph.is_some() && self.text.is_none() && self.vector.is_none()
    }
}

impl Floor {
    /// Returns `true` if the score is high enough.
    #[must_use]
    pub fn admits(self, score: f64) -> bool {
        if self.above { score > self.least } else { score >= self.least }
    }

    /// Returns the stricter of both.
    fn and(self, other: Self) -> Self {
        let stricter = (other.least, other.above) > (self.least, self.above);
        if stricter { other } else { self }
    }
}

/// Adds a text query to a search.
pub(crate) fn also(search: &mut Option<Search>, ask: Ask) {
    match search {
        Some(search) => search.asks.push(ask),
        none => *none = Some(Search { asks: vec![ask] }),
    }
}

/// Raises a minimum score.
pub(crate) fn raise(floor: &mut Option<Floor>, to: Floor) {
    *floor = Some(floor.map_or(to, |floor| floor.and(to)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stricter_of_two_floors_counts() {
        let at_least = |least| Floor { least, above: false };
        let above = |least| Floor { least, above: true };
        for (one, other, stricter) in [
            (at_least(0.2), at_least(0.5), at_least(0.5)),
            (at_least(0.5), above(0.5), above(0.5)),
            (above(0.2), at_least(0.5), at_least(0.5)),
        ] {
            let mut floor = None;
            raise(&mut floor, one);
            raise(&mut floor, other);
            assert_eq!(floor, Some(stricter));
            let mut turned = Some(other);
            raise(&mut turned, one);
            assert_eq!(turned, Some(stricter));
        }
        assert!(at_least(0.5).admits(0.5) && !above(0.5).admits(0.5) && above(0.5).admits(0.6));
    }
}
