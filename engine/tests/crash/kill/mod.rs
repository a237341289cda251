//! Processes that are killed at any moment: those that write, and those that do what only the operator may.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests, which the allowance for tests does not reach"
)]

pub(crate) mod child;
mod operator;
mod writes;

use crate::random;
