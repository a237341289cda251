//! Grainstore past one machine (docs/cluster.md): the commits of a shard are ordered records in a journal, in anything
//! that speaks the PostgreSQL wire. A [`Node`] keeps a copy of the shard in its own directory, answers reads from it,
//! and leads or follows.
//!
//! Durability, consensus and exclusion are the database's. What is here is a conditional append with a fencing epoch,
//! and the change of roles.

mod node;
mod postgres;

pub use self::postgres::{PostgresJournal, PostgresOptions, Replication};
pub use node::{Attendant, Node, NodeOptions, NodeRole};
