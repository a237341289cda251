//! A query vector: its codes for the first pass, its numbers for the final score. Knows nothing of the
//! search.

use super::neighbour;
use super::quantise::{self, Probe};
use super::rows::VectorRows;
use super::space::{Metric, Space, Vector};
use crate::error::Result;

/// A query vector in a space.
#[derive(Debug)]
pub(crate) struct QueryVector<'q> {
    vector: &'q Vector,
    metric: Metric,
    pub(crate) probe: Probe,
}

impl<'q> QueryVector<'q> {
    /// # Errors
    /// `ERR_DIMENSION`, `ERR_SCHEMA`: not of this space.
    pub(crate) fn new(space: &Space, vector: &'q Vector) -> Result<Self> {
        space.admit(vector)?;
        Ok(Self { vector, metric: space.metric(), probe: Probe::query(space, vector) })
    }

    /// The score of a row, from its full numbers.
    pub(crate) fn score(&self, rows: &VectorRows, row: u32) -> Option<f32> {
        let own = (self.vector.values(), self.vector.length());
        Some(neighbour::score(self.metric, similarity(self.metric, own, rows.values(row)?)))
    }

    /// An upper bound on the score of a row, from its codes.
    pub(crate) fn upper_bound(&self, rows: &VectorRows, row: u32) -> f32 {
        let (codes, head) = rows.codes(row);
        neighbour::score(self.metric, self.probe.upper_bound(codes, head))
    }
}

/// The similarity of two vectors with their lengths: cosine, inner product, or minus half the squared
/// distance.
pub(crate) fn similarity(
    metric: Metric,
    (a, a_length): (&[f32], f64),
    (b, b_length): (&[f32], f64),
) -> f64 {
    match metric {
        Metric::Cosine => quantise::product(a, b) / (a_length * b_length),
        Metric::Dot => quantise::product(a, b),
        Metric::L2 => -0.5 * quantise::distance_square(a, b),
    }
}
