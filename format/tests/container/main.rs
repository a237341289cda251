//! Containers from outside: what is written is read, and what is damaged anywhere is refused.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at a surprise"
)]

mod damage;
mod hostile;
mod kit;
mod manifest;
mod round_trips;
mod signed;
