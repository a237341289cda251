//! What a recall searches for, and how well a grain answers it (spec sections 4 and 5).
//!
//! What the words of a search mean is the memory's business: its language, its index, its score.

use std::sync::Arc;

/// What a recall searches for. Every ask must be answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Search {
    /// Not empty.
    asks: Vec<Ask>,
}

/// One text that is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// The words, as they were given.
    pub text: String,
    /// The payload field they are looked for in; none looks in all that carry language, and in the
    /// turns around a turn of a conversation.
    pub field: Option<&'static str>,
}

/// A vector whose neighbours are looked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Near {
    /// The model it was made by; none for the one that serves: that of the memory's embedder, or the only
    /// one there is.
    pub model: Option<String>,
    /// Its numbers.
    pub values: Arc<[f32]>,
}

/// How well a grain answers what was asked, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    /// What grains are ranked by: 1 for all of a recall that searches for nothing.
    pub value: f64,
    /// How well its words fit, if words were asked for.
    pub text: Option<f64>,
    /// How near its meaning is, if vectors were asked for.
    pub vector: Option<f64>,
    /// What the score of a better answer is worth that it is linked to, if that raised its own.
    pub graph: Option<f64>,
}

/// How the best answers are put in another order before they are given. The best
/// [`Rerank::POOL`] at most are looked at, and no others are given.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Rerank {
    /// How answers are kept from saying the same.
    pub diversity: Option<Diversity>,
    /// Milliseconds of age after which an answer counts for half of what it would count for new:
    /// its score goes down to a half, and no further.
    pub recency_ms: Option<i64>,
    /// Whether answers that were given often, and lately, count more: one that never was goes down to
    /// a half.
    pub access: bool,
}

/// How answers are kept from saying the same.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Diversity {
    /// Maximal marginal relevance: what is given next has the best of `lambda` times its score, less
    /// 1 - `lambda` times its likeness to what is most like it among those before it.
    Mmr {
        /// From 0 (only unlike) to 1 (only good).
        lambda: f64,
    },
    /// What is more like one before it than this is left out.
    Threshold(f64),
}

impl Rerank {
    /// Answers that are looked at, at most.
    pub const POOL: usize = 512;
}

/// The least score an answer has: `score >= 0.3` and `score > 0.3`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Floor {
    /// The bound.
    pub least: f64,
    /// Whether the bound itself is too little.
    pub above: bool,
}

impl Search {
    /// One text, looked for everywhere.
    #[must_use]
    pub fn of(text: impl Into<String>) -> Self {
        Self { asks: vec![Ask { text: text.into(), field: None }] }
    }

    /// What is looked for, in the order it was asked.
    #[must_use]
    pub fn asks(&self) -> &[Ask] {
        &self.asks
    }
}

impl Score {
    /// Of a grain that meets conditions where nothing was searched for.
    pub const STRUCTURAL: Self = Self { value: 1.0, text: None, vector: None, graph: None };

    /// Whether a link is all that made it an answer: it meets no condition and was judged by nothing
    /// else.
    #[must_use]
    pub fn is_linked_only(&self) -> bool {
        self.graph.is_some() && self.text.is_none() && self.vector.is_none()
    }
}

impl Floor {
    /// Whether a score is enough.
    #[must_use]
    pub fn admits(self, score: f64) -> bool {
        if self.above { score > self.least } else { score >= self.least }
    }

    /// The stricter of both.
    fn and(self, other: Self) -> Self {
        let stricter = (other.least, other.above) > (self.least, self.above);
        if stricter { other } else { self }
    }
}

/// Adds one more ask.
pub(crate) fn also(search: &mut Option<Search>, ask: Ask) {
    match search {
        Some(search) => search.asks.push(ask),
        none => *none = Some(Search { asks: vec![ask] }),
    }
}

/// Narrows a floor.
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
