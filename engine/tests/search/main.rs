//! Searching: queries, words, vectors, links, and what a session does not see.

mod attached;
#[path = "../kit/locomo.rs"]
#[expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests, which the allowance for tests does not reach"
)]
mod conversations;
mod embedder;
mod expand;
mod foreign_index;
#[path = "../kit/former.rs"]
#[expect(
    clippy::unwrap_used,
    reason = "helpers of tests, which the allowance for tests does not reach"
)]
mod former;
mod graph;
mod hostile_store;
mod isolation;
mod locomo;
mod moving;
mod query;
#[path = "../kit/random.rs"]
#[expect(
    clippy::indexing_slicing,
    reason = "helpers of tests, which the allowance for tests does not reach"
)]
mod random;
mod search;
mod vectors;
