//! TODO base.

pub(crate) mod clock;
pub(crate) mod error;
pub(crate) mod pending;
pub(crate) mod sync;
