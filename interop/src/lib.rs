//! Neighbouring formats of a Grainstore: memory arrives from other systems and leaves for them, and the decisions of a
//! store go to auditors.
//!
//! | module | what it is about |
//! |---|---|
//! | [`json`] | JSON as these formats need it: strict to read, with one form to write |
//! | [`ages`] | evidence of the decisions of a store: packs of steps, and their verifier (AGES v1) |
//! | [`archive`] | ZIP archives: safe to read, the same bytes each time they are written |
//! | [`alf`] | the Agent Life Format: archives of agents, deltas, purges |
//! | [`migrate`] | memory from other tools: mem0, Letta, LangGraph, accounts of chats, notes |
//! | [`saga`] | SAGA 1.0: signed documents and containers that carry an agent |
//!
//! Everything works on a [`Session`](grainstore::Session), with the rights that it has, through the public API of the
//! store.

pub mod ages;
pub mod alf;
pub mod archive;
mod error;
pub mod json;
mod kept;
pub mod migrate;
mod monitor;
mod other;
pub mod saga;
mod scratch;
mod transfer;
mod uuid;
mod vouch;

pub use error::{Error, Result};
pub use monitor::Monitor;
