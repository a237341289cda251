//! What a model is, written down once more: loops over numbers, one text at a time, nothing filled up.

use super::tiny::{HEADS, HIDDEN, LAYERS, Tiny, WORDS};

type Rows = Vec<Vec<f64>>;

/// The vector of a text of known words, cut so that it and its two marks are no more than `most` tokens.
pub(crate) fn vector(tiny: &Tiny, text: &str, most: usize, by_first: bool) -> Vec<f64> {
    let id = |word: &str| WORDS.iter().position(|known| *known == word).unwrap_or(1);
    let words = text.split_whitespace().map(id).take(most - 2);
    let ids: Vec<usize> = [2].into_iter().chain(words).chain([3]).collect();
    let states = states(tiny, &ids);
    if by_first {
        return states[0].clone();
    }
    let count = f64::from(u16::try_from(states.len()).unwrap());
    (0..HIDDEN).map(|at| states.iter().map(|row| row[at]).sum::<f64>() / count).collect()
}

/// A vector at length one.
pub(crate) fn normalised(vector: &[f64]) -> Vec<f64> {
    let length = vector.iter().map(|value| value * value).sum::<f64>().sqrt();
    vector.iter().map(|value| value / length).collect()
}

fn states(tiny: &Tiny, ids: &[usize]) -> Rows {
    let row = |name: &str, at: usize| {
        let all = tiny.tensor(&format!("embeddings.{name}_embeddings.weight"));
        all[at * HIDDEN..(at + 1) * HIDDEN].to_vec()
    };
    let sum = |(at, id): (usize, &usize)| {
        let parts = [row("word", *id), row("position", at), row("token_type", 0)];
        (0..HIDDEN).map(|at| parts.iter().map(|part| f64::from(part[at])).sum()).collect()
    };
    let mut states: Rows = ids.iter().enumerate().map(sum).collect();
    states = normed(tiny, "embeddings", &states);
    for layer in (0..LAYERS).map(|at| format!("encoder.layer.{at}")) {
        let seen = attention(tiny, &layer, &states);
        let seen = dense(tiny, &format!("{layer}.attention.output.dense"), &seen);
        states = normed(tiny, &format!("{layer}.attention.output"), &added(&states, &seen));
        let mut inner = dense(tiny, &format!("{layer}.intermediate.dense"), &states);
        inner.iter_mut().flatten().for_each(|value| *value = gelu(*value));
        let outer = dense(tiny, &format!("{layer}.output.dense"), &inner);
        states = normed(tiny, &format!("{layer}.output"), &added(&states, &outer));
    }
    states
}

fn attention(tiny: &Tiny, layer: &str, states: &Rows) -> Rows {
    let part = |name: &str| dense(tiny, &format!("{layer}.attention.self.{name}"), states);
    let (queries, keys, values) = (part("query"), part("key"), part("value"));
    let size = HIDDEN / HEADS;
    let root = f64::from(u8::try_from(size).unwrap()).sqrt();
    let mut seen = vec![vec![0.0; HIDDEN]; states.len()];
    for head in (0..HEADS).map(|head| head * size..(head + 1) * size) {
        for (query, seen) in queries.iter().zip(&mut seen) {
            let weights: Vec<f64> = keys
                .iter()
                .map(|key| head.clone().map(|at| query[at] * key[at]).sum::<f64>() / root)
                .map(f64::exp)
                .collect();
            let whole: f64 = weights.iter().sum();
            for (weight, value) in weights.iter().zip(&values) {
                head.clone().for_each(|at| seen[at] += weight / whole * value[at]);
            }
        }
    }
    seen
}

fn dense(tiny: &Tiny, name: &str, rows: &Rows) -> Rows {
    let weights = tiny.tensor(&format!("{name}.weight"));
    let bias = tiny.tensor(&format!("{name}.bias"));
    let one = |row: &Vec<f64>| {
        let outputs = weights.chunks(row.len()).zip(bias).map(|(weights, bias)| {
            let products =
                weights.iter().zip(row).map(|(weight, value)| f64::from(*weight) * value);
            products.sum::<f64>() + f64::from(*bias)
        });
        outputs.collect()
    };
    rows.iter().map(one).collect()
}

fn normed(tiny: &Tiny, name: &str, rows: &Rows) -> Rows {
    let weights = tiny.tensor(&format!("{name}.LayerNorm.weight"));
    let bias = tiny.tensor(&format!("{name}.LayerNorm.bias"));
    let one = |row: &Vec<f64>| {
        let count = f64::from(u8::try_from(HIDDEN).unwrap());
        let mean = row.iter().sum::<f64>() / count;
        let spread = row.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
        let scaled = row.iter().map(|value| (value - mean) / (spread + 1e-12).sqrt());
        let scaled = scaled.zip(weights).map(|(value, weight)| value * f64::from(*weight));
        scaled.zip(bias).map(|(value, bias)| value + f64::from(*bias)).collect()
    };
    rows.iter().map(one).collect()
}

fn added(left: &Rows, right: &Rows) -> Rows {
    let row = |(left, right): (&Vec<f64>, &Vec<f64>)| {
        left.iter().zip(right).map(|(left, right)| left + right).collect()
    };
    left.iter().zip(right).map(row).collect()
}

/// `x` times the share of a normal distribution below it; the series converges fast for what occurs here.
fn gelu(x: f64) -> f64 {
    let scaled = x / std::f64::consts::SQRT_2;
    assert!(scaled.abs() < 5.0, "the series is not for {scaled}");
    let (mut term, mut sum) = (scaled, scaled);
    for n in 1..120 {
        let n = f64::from(n);
        term *= -scaled * scaled / n;
        sum += term / (2.0 * n + 1.0);
    }
    let erf = sum * std::f64::consts::FRAC_2_SQRT_PI;
    x * (1.0 + erf) / 2.0
}
