//! Scalar quantisation: vectors as eight bits a number, with a known error. Knows nothing of rows or graphs.
//!
//! A vector `x` is stored as `scale * code`, each code in -127..=127, with the length of `x - scale * code`
//! beside it. Queries are coded in 13 bits. The inner product of the codes is exact in `i32` (4,095 * 127 *
//! 4,096 < 2^31), so the true one is known within a bound: see [`Probe::upper_bound`].

use super::space::{Metric, Space, Vector};

/// Codes are padded with zeros to a multiple of this: one block of the inner loop.
const LANES: usize = 32;
const MAX_ROW_CODE: f64 = 127.0;
const MAX_PROBE_CODE: f64 = 4095.0;
/// An upper bound on what rounding to `f32` changes in a header, relative to the lengths.
const ROUNDING_BOUND: f64 = 1e-6;

/// The values stored beside the codes of a row.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CodeHeader {
    pub(crate) scale: f32,
    /// The length of the difference between the vector and its codes, rounded up.
    pub(crate) lost: f32,
    /// The squared length of the coded vector: 1 for cosine.
    pub(crate) square: f32,
}

/// The number of codes in a row of this dimension.
pub(crate) fn stride(dimension: usize) -> usize {
    dimension.next_multiple_of(LANES)
}

/// Appends the codes of a vector.
pub(crate) fn encode(metric: Metric, vector: &Vector, codes: &mut Vec<i8>) -> CodeHeader {
    let unit = unit_factor(metric, vector);
    let (scale, lost) = quantise(vector, unit, MAX_ROW_CODE, |code| {
        #[expect(clippy::cast_possible_truncation, reason = "within ROW_LIMIT")]
        codes.push(code as i8);
    });
    let padding = stride(vector.dimension()).saturating_sub(vector.dimension());
    codes.extend(std::iter::repeat_n(0, padding));
    let length = vector.length() * unit;
    #[expect(clippy::cast_possible_truncation, reason = "rounding is within SLACK")]
    let square = (length * length) as f32;
    CodeHeader { scale, lost: round_up(lost), square }
}

/// The vector rows are compared with: a query, or a row that searches for its neighbours.
#[derive(Debug)]
pub(crate) struct Probe {
    codes: Box<[i16]>,
    metric: Metric,
    scale: f64,
    error_norm: f64,
    length: f64,
    kind: ProbeKind,
}

/// The kind of a probe.
#[derive(Debug, Clone, Copy)]
enum ProbeKind {
    Query,
    /// A row, with its coordinate in the extra dimension (see [`extra_dimension`]).
    Row(f32),
}

impl Probe {
    /// The probe of a query.
    pub(crate) fn query(space: &Space, vector: &Vector) -> Self {
        let metric = space.metric();
        let unit = unit_factor(metric, vector);
        let mut codes = Vec::with_capacity(stride(vector.dimension()));
        let (scale, lost) = quantise(vector, unit, MAX_PROBE_CODE, |code| {
            #[expect(clippy::cast_possible_truncation, reason = "within PROBE_LIMIT")]
            codes.push(code as i16);
        });
        codes.resize(stride(vector.dimension()), 0);
        let (scale, length) = (f64::from(scale), vector.length() * unit);
        Self {
            codes: codes.into(),
            metric,
            scale,
            error_norm: lost,
            length,
            kind: ProbeKind::Query,
        }
    }

    /// The probe of a row. `reach` is the greatest squared length, used for inner products only.
    pub(crate) fn row(metric: Metric, codes: &[i8], head: &CodeHeader, reach: f32) -> Self {
        let codes = codes.iter().map(|code| i16::from(*code)).collect();
        let (scale, lost) = (f64::from(head.scale), f64::from(head.lost));
        let length = f64::from(head.square).sqrt();
        Self {
            codes,
            metric,
            scale,
            error_norm: lost,
            length,
            kind: ProbeKind::Row(extra_dimension(head, reach)),
        }
    }

    /// Estimates the similarity of a row; greater is nearer. For L2 it is minus half the squared distance.
    /// For inner products between rows, vectors are extended by one dimension that gives all the same length,
    /// so that the nearest by angle has the greatest product.
    pub(crate) fn estimate(&self, codes: &[i8], head: &CodeHeader, reach: f32) -> f32 {
        #[expect(clippy::cast_possible_truncation, reason = "an estimate")]
        let product =
            (self.scale * f64::from(head.scale) * f64::from(dot(&self.codes, codes))) as f32;
        match (self.metric, self.kind) {
            (Metric::L2, _) => {
                #[expect(clippy::cast_possible_truncation, reason = "an estimate")]
                let own = (self.length * self.length) as f32;
                product - f32::midpoint(own, head.square)
            }
            (Metric::Dot, ProbeKind::Row(own)) => {
                own.mul_add(extra_dimension(head, reach), product)
            }
            _ => product,
        }
    }

    /// An upper bound on the true similarity of a row.
    ///
    /// With `q = a + e` and `x = b + d`, where a and b are what the codes say:
    /// `q.x = a.b + e.b + q.d`, so `|q.x - a.b| <= |e| |b| + |q| |d|`, and `|b| <= |x| + |d|`.
    pub(crate) fn upper_bound(&self, codes: &[i8], head: &CodeHeader) -> f64 {
        let product = self.scale * f64::from(head.scale) * f64::from(dot(&self.codes, codes));
        let (square, lost) = (f64::from(head.square), f64::from(head.lost));
        let length = square.sqrt();
        let own = self.length * self.length;
        let doubt = self.error_norm * (length + lost) + self.length * lost;
        let rounding = ROUNDING_BOUND * (own + square + self.length * length);
        let most = product + doubt + rounding;
        match self.metric {
            Metric::L2 => most - f64::midpoint(own, square),
            _ => most,
        }
    }
}

/// Estimates the similarity of two rows, on the scale of [`Probe::estimate`].
pub(crate) fn similarity(
    metric: Metric,
    a: (&[i8], &CodeHeader),
    b: (&[i8], &CodeHeader),
    reach: f32,
) -> f32 {
    let ((a, a_head), (b, b_head)) = (a, b);
    let mut sum = 0_i32;
    for (a, b) in a.as_chunks::<LANES>().0.iter().zip(b.as_chunks::<LANES>().0) {
        let products = a.iter().zip(b).map(|(a, b)| i32::from(*a) * i32::from(*b));
        sum = sum.wrapping_add(products.sum::<i32>());
    }
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let product = a_head.scale * b_head.scale * sum as f32;
    match metric {
        Metric::Cosine => product,
        Metric::L2 => product - f32::midpoint(a_head.square, b_head.square),
        Metric::Dot => {
            extra_dimension(a_head, reach).mul_add(extra_dimension(b_head, reach), product)
        }
    }
}

/// The inner product in `f64`, always summed in the same order.
pub(crate) fn product(a: &[f32], b: &[f32]) -> f64 {
    sum_of_terms(a, b, |a, b| a * b)
}

/// The squared distance in `f64`, always summed in the same order.
pub(crate) fn distance_square(a: &[f32], b: &[f32]) -> f64 {
    sum_of_terms(a, b, |a, b| (a - b) * (a - b))
}

fn sum_of_terms(a: &[f32], b: &[f32], term: impl Fn(f64, f64) -> f64) -> f64 {
    const WIDTH: usize = 8;
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<WIDTH>(), b.as_chunks::<WIDTH>());
    let mut sums = [0.0_f64; WIDTH];
    for (a, b) in a.iter().zip(b) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += term(f64::from(*a), f64::from(*b));
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| term((*a).into(), (*b).into())).sum();
    sums.iter().sum::<f64>() + rest
}

/// The factor applied to a vector before coding: for cosine it gives unit length.
fn unit_factor(metric: Metric, vector: &Vector) -> f64 {
    match metric {
        Metric::Cosine => vector.length().recip(),
        _ => 1.0,
    }
}

/// Quantises a vector. Returns the scale, and the length of the error.
fn quantise(vector: &Vector, unit: f64, limit: f64, mut push: impl FnMut(f64)) -> (f32, f64) {
    let greatest = vector.values().iter().fold(0.0_f32, |most, value| most.max(value.abs()));
    #[expect(clippy::cast_possible_truncation, reason = "what rounding changes is counted below")]
    let scale = (f64::from(greatest) * unit / limit) as f32;
    let step = f64::from(scale);
    let mut lost = 0.0;
    for value in vector.values() {
        let value = f64::from(*value) * unit;
        let code = if step > 0.0 { rounded(value / step).clamp(-limit, limit) } else { 0.0 };
        let missing = value - step * code;
        lost += missing * missing;
        push(code);
    }
    (scale, lost.sqrt())
}

/// Rounds to about the nearest integer; the error is measured anyway. `f64::round` would be a function call.
fn rounded(value: f64) -> f64 {
    #[expect(clippy::cast_possible_truncation, reason = "cut off on purpose; codes are small")]
    let whole = (value + 0.5_f64.copysign(value)) as i32;
    f64::from(whole)
}

/// The inner loop: blocks of a fixed length, which compilers turn into pairwise multiply-add.
fn dot(probe: &[i16], row: &[i8]) -> i32 {
    let mut sum = 0_i32;
    for (a, b) in probe.as_chunks::<LANES>().0.iter().zip(row.as_chunks::<LANES>().0) {
        let products = a.iter().zip(b).map(|(a, b)| i32::from(*a) * i32::from(*b));
        sum = sum.wrapping_add(products.sum::<i32>());
    }
    sum
}

/// The coordinate of a row in the extra dimension that makes all rows equally long.
fn extra_dimension(head: &CodeHeader, reach: f32) -> f32 {
    (reach - head.square).max(0.0).sqrt()
}

#[expect(clippy::cast_possible_truncation, reason = "rounded, then made more than it was")]
fn round_up(value: f64) -> f32 {
    let rounded = value as f32;
    if f64::from(rounded) < value { rounded.next_up() } else { rounded }
}

#[cfg(test)]
#[path = "quantise_tests.rs"]
mod tests;
