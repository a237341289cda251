//! The embedder in the process: models small enough to compute by hand, written here, and a real one
//! where the host has it.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "helpers of tests, which the allowance for tests does not reach"
)]

mod answers;
mod by_hand;
mod minilm;
mod refusals;
mod stores;
mod tiny;
mod weights;

use std::path::Path;

use grainstore::Error;
use grainstore::embed::{Embedder, LocalEmbedder, LocalOptions};

/// The embedder of a directory.
fn load(dir: &Path) -> Result<LocalEmbedder, Error> {
    LocalEmbedder::new(LocalOptions::new(dir))
}

/// The vector of one text.
fn vector(embedder: &LocalEmbedder, text: &str) -> Vec<f32> {
    embedder.embed(&[text]).unwrap()[0].values().to_vec()
}

/// How far two vectors are from each other where they are furthest.
fn apart(left: &[f32], right: &[f32]) -> f32 {
    assert_eq!(left.len(), right.len());
    left.iter().zip(right).map(|(left, right)| (left - right).abs()).fold(0.0, f32::max)
}
