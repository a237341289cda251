//! Tests of quantisation: its bounds always hold.

use proptest::prelude::*;

use super::*;
use crate::vectors::test_kit::{space, vector};

fn exact(metric: Metric, a: &[f32], b: &[f32]) -> f64 {
    let (one, other) = (vector(a), vector(b));
    match metric {
        Metric::Cosine => product(a, b) / (one.length() * other.length()),
        Metric::Dot => product(a, b),
        Metric::L2 => -0.5 * distance_square(a, b),
    }
}

fn pairs() -> impl Strategy<Value = (Vec<f32>, Vec<f32>)> {
    let number = prop_oneof![
        4 => -1.0_f32..1.0,
        1 => -1e17_f32..1e17,
        1 => -1e-30_f32..1e-30,
        1 => Just(0.0),
    ];
    (1_usize..80).prop_flat_map(move |dimension| {
        let values = prop::collection::vec(number.clone(), dimension);
        (values.clone(), values)
    })
}

proptest! {
    #[test]
    fn no_row_is_nearer_than_its_codes_allow((a, b) in pairs()) {
        for metric in Metric::ALL {
            let (query, row) = (vector(&a), vector(&b));
            let space = space(a.len(), metric);
            if space.admit(&query).is_err() || space.admit(&row).is_err() {
                continue;
            }
            let mut codes = Vec::new();
            let head = encode(metric, &row, &mut codes);
            let probe = Probe::query(&space, &query);
            let (most, rank) = (probe.upper_bound(&codes, &head), exact(metric, &a, &b));
            prop_assert!(rank <= most, "{metric:?}: {rank} > {most}");
            prop_assert!(probe.estimate(&codes, &head, 0.0).is_finite());
        }
    }
}

#[test]
fn the_greatest_codes_of_the_longest_vector_fit_their_sum() {
    let dimension = crate::vectors::MAX_DIMENSION;
    for sign in [1.0_f32, -1.0] {
        let row = vector(&vec![sign; dimension]);
        let query = vector(&vec![1.0; dimension]);
        let mut codes = Vec::new();
        let head = encode(Metric::Dot, &row, &mut codes);
        let probe = Probe::query(&space(dimension, Metric::Dot), &query);
        let about = probe.estimate(&codes, &head, 0.0);
        assert!((about - sign * 4096.0).abs() < 1.0, "{about}");
    }
}

#[test]
fn codes_are_close_enough_to_tell_directions_apart() {
    let mut random = crate::vectors::test_kit::Random(9);
    for metric in Metric::ALL {
        let (a, b) = (random.vector(384), random.vector(384));
        let mut codes = Vec::new();
        let head = encode(metric, &vector(&b), &mut codes);
        let probe = Probe::query(&space(384, metric), &vector(&a));
        let (about, rank) = (f64::from(probe.estimate(&codes, &head, 0.0)), exact(metric, &a, &b));
        let scale = if metric == Metric::Cosine { 1.0 } else { vector(&a).length().powi(2) };
        assert!((about - rank).abs() < 0.005 * scale, "{metric:?}: {about} {rank}");
    }
}
