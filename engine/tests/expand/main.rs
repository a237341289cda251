//! What is linked to the best answers: which grains, with which scores, page by page, and how much of it.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a test stops at a surprise"
)]

mod bounds;
#[path = "../search/kit.rs"]
#[expect(dead_code, reason = "shared with the tests of searches")]
mod kit;
mod model;
mod pages;
#[path = "../kit/random.rs"]
mod random;
mod ways;
mod world;
