//! The leaves every module may use: errors, clock, waiting threads, pending answers.

pub(crate) mod clock;
pub(crate) mod error;
pub(crate) mod memory;
pub(crate) mod pending;
pub(crate) mod sync;
