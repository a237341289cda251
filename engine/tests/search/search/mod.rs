//! The full text of a store: right after the write, after reopening, whatever happens to its files,
//! and as nothing but what the grains say.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test stops at a surprise"
)]

mod bounds;
mod crowd;
mod elsewhere;
mod files;
mod hostile;
pub(crate) mod kit;
mod meddled;
mod naive;
mod pages;
mod rerank;
mod turns;
mod words;

use crate::random;
