//! Invalidation policy held against cases, and against an executable specification of OMS 23.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test stops at a surprise"
)]

mod case;
mod consent;
mod derivation;
mod explained;
mod goals;
mod mutations;
mod refusals;
mod spec;
mod store;
mod vectors;

pub(crate) use grainstore::format;
