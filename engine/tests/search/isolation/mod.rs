//! What a session sees, and what it never does: grains of other namespaces and users, and what rests on
//! a consent that does not hold.
//!
//! `reads` is a table of every way to read; whoever adds one adds it there, or a test fails. `property`
//! asks all of them on random stores, `users` and `consent` pin the rules one by one.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test stops at a surprise"
)]

mod between;
mod consent;
mod hidden;
mod kit;
mod model;
mod property;
mod reads;
mod scores;
mod steps;
mod told;
mod users;
mod whole;
