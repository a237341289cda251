//! Queries against a naive reading of the rules: random grains, random questions, and every answer
//! compared with what looking at each grain gives.
//!
//! The full run: `GRAINSTORE_QUERIES=50000 cargo test --release -p grainstore --test search query:: --
//! --nocapture`. A failure names its seed and question; `GRAINSTORE_QUERIES_SEED` runs it again.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test stops at a surprise"
)]

mod asker;
mod cal;
mod damage;
mod grains;
mod hostile;
mod language;
mod meaning;
#[path = "../../kit/naive.rs"]
mod naive;
mod pages;
mod planned;
#[path = "../../kit/question.rs"]
mod question;
mod statements;
mod world;

use crate::random;

use grainstore as engine;
