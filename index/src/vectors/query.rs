//! What is looked for: its codes for a first look, its numbers for the last word. Knows nothing of
//! where rows are looked for.

use super::code::{self, Probe};
use super::near;
use super::rows::Rows;
use super::space::{Metric, Space, Vector};
use crate::error::Result;

/// A vector that is looked for in a space.
#[derive(Debug)]
pub(crate) struct Query<'q> {
    vector: &'q Vector,
    metric: Metric,
    pub(crate) probe: Probe,
}

impl<'q> Query<'q> {
    /// # Errors
    /// `ERR_DIMENSION`, `ERR_SCHEMA`: not of this space.
    pub(crate) fn new(space: &Space, vector: &'q Vector) -> Result<Self> {
        space.admit(vector)?;
        Ok(Self { vector, metric: space.metric(), probe: Probe::query(space, vector) })
    }

    /// The score of a row, from its numbers.
    pub(crate) fn score(&self, rows: &Rows, row: u32) -> Option<f32> {
        let own = (self.vector.values(), self.vector.length());
        Some(near::score(self.metric, rank(self.metric, own, rows.values(row)?)))
    }

    /// No row with these codes has a greater score.
    pub(crate) fn most(&self, rows: &Rows, row: u32) -> f32 {
        let (codes, head) = rows.codes(row);
        near::score(self.metric, self.probe.most(codes, head))
    }
}

/// Cosine, inner product, or half the negative square of the distance, of two vectors with their
/// lengths.
pub(crate) fn rank(
    metric: Metric,
    (a, a_length): (&[f32], f64),
    (b, b_length): (&[f32], f64),
) -> f64 {
    match metric {
        Metric::Cosine => code::product(a, b) / (a_length * b_length),
        Metric::Dot => code::product(a, b),
        Metric::L2 => -0.5 * code::distance_square(a, b),
    }
}
