//! TODO handle.

pub(crate) mod options;
pub(crate) mod session;
pub(crate) mod store;
