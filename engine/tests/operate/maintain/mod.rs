//! Maintenance as an operator uses it: verify, reindex, compact, back up, examine, and what each
//! finds or leaves when files are damaged or work is cut short.
//!
//! The full run flips more bits: `GRAINSTORE_SWEEP=full cargo test --release -p grainstore --test
//! maintain`.
#![expect(clippy::unwrap_used, reason = "a test stops at a surprise")]

mod backup;
mod compact;
mod damage;
mod doctor;
mod kit;
#[cfg(unix)]
mod moved;
mod reindex;
mod verify;
