//! Neighbouring formats of a Grainstore: memory arrives from other systems and leaves for them, and the decisions of a
//! store go to auditors.
//!
//! | module | what it is about |
//! |---|---|
//! | [`json`] | JSON as these formats need it: strict to read, with one form to write |
//! | [`archive`] | ZIP archives: safe to read, the same bytes each time they are written |
//! | [`alf`] | the Agent Life Format: archives of agents, deltas, purges |
//!
//! Everything works on a [`Session`](grainstore::Session), with the rights that it has, through the public API of the
//! store.

pub mod alf;
pub mod archive;
mod error;
pub mod json;
mod kept;
mod monitor;

pub use error::{Error, Result};
pub use monitor::Monitor;
