//! Stores that were filled to hurt: one word everywhere, thousands of versions, texts as large as a grain may be. Every
//! question is answered, or refused with a code; nothing panics, and the other grains are found as ever.
//!
//! `GRAINSTORE_HOSTILE=full` makes each store larger; `-- --nocapture` tells what took long.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test stops at a surprise, and tells what took long"
)]

mod cases;
mod fields;
mod world;
