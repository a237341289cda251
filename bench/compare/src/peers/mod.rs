//! The stores, one file each. Everything that is special about one stays in its file.

mod grainstore_peer;
mod redb_peer;
mod sqlite_peer;

pub(crate) use grainstore_peer::Grainstore;
pub(crate) use redb_peer::{RawRedb, Tables};
pub(crate) use sqlite_peer::{Indexes, Sqlite, connection as sqlite_connection};
