//! ALF: archives into stores and out again, archives that lie, and what a store does to them.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at a surprise"
)]

mod delta;
mod hostile;
mod kit;
mod round_trip;
mod scale;
mod schemas;
