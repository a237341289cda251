//! Erasure: what it takes, what it leaves, what refuses it, and that nothing of it comes back.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a test stops at a surprise"
)]

mod consents;
mod kill;
mod kit;
mod reads;
mod refusals;
mod report;
mod returns;
mod scan;
mod sweep;

use crate::kill::child;
use crate::random;
