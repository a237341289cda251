//! Import: files come in whole or not at all, with the state they state, and past no policy.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests, which the allowance for tests does not reach"
)]

mod arrivals;
mod claims;
mod dead;
mod disguises;
mod ends;
mod hostile;
mod kit;
mod round_trip;
mod withdrawals;
