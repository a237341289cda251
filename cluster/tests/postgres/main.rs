//! The journal in PostgreSQL, and nodes on it, with servers that the tests start.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test stops at a surprise, and says what it skips"
)]

mod failovers;
#[cfg(test)]
mod histories;
#[cfg(test)]
mod journal;
mod kills;
mod nodes;
#[cfg(test)]
mod positions;
mod server;
