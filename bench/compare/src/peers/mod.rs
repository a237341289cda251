//! The stores, one file each, with what is said to them beside it. Everything that is special about one stays in its file.

mod grainstore_peer;
mod redb_peer;
mod redb_tables;
mod sqlite_peer;
mod sqlite_words;

pub(crate) use grainstore_peer::Grainstore;
pub(crate) use redb_peer::{RawRedb, Tables};
pub(crate) use sqlite_peer::{Indexes, Sqlite};
pub(crate) use sqlite_words::connection as sqlite_connection;
