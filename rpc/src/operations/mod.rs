//! The operations, by what they are about. Each is a function of its arguments and a session, or of what else it
//! works on, and has one answer.
//!
//! Arguments come from JSON, or are made from flags by the command. `vectors` and `embedder` are arguments.

#![expect(clippy::needless_pass_by_value, reason = "arguments are read for one operation")]

pub(crate) mod agents;
pub(crate) mod ages;
pub(crate) mod alf;
pub(crate) mod calls;
pub(crate) mod codec;
mod embedder;
pub(crate) mod erasure;
mod followed;
pub(crate) mod frames;
pub(crate) mod graph;
pub(crate) mod maintain;
pub(crate) mod marks;
pub(crate) mod migrate;
pub(crate) mod policy;
pub(crate) mod portable;
pub(crate) mod position;
pub(crate) mod query;
pub(crate) mod reads;
pub(crate) mod rotation;
pub(crate) mod saga;
pub(crate) mod saga_consent;
pub(crate) mod saga_vault;
pub(crate) mod signed;
pub(crate) mod store;
pub(crate) mod stream;
mod vectors;
pub(crate) mod views;
pub(crate) mod write;
