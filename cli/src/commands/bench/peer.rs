//! The seam to what is measured: what a store must be able to do. Knows no store but by its constructor.

use std::path::Path;

use grainstore::ContentAddress;

use super::data::{Fact, Item};
use super::grainstore_peer;
#[cfg(feature = "sqlite")]
use super::sqlite_peer;
use crate::error::Result;

/// Memory that each may use for pages, in bytes: what a store has if nothing is said.
pub(super) const CACHE_BYTES: usize = 128 << 20;

/// A store that is measured, open.
pub(super) trait Peer {
    /// Stores one fact, which survives a power cut when this returns.
    fn put(&mut self, item: Item) -> Result<()>;

    /// Stores all of these in one durable transaction.
    fn put_batch(&mut self, items: Vec<Item>) -> Result<()>;

    /// Brings the work behind the writes to its end: folds, checkpoints.
    fn flush(&mut self) -> Result<()>;

    /// What the store advises after a large load. Not timed.
    fn settle(&mut self) -> Result<()>;

    /// The fact of an address.
    fn get(&mut self, address: &ContentAddress) -> Result<Option<Fact>>;

    /// The newest facts of a subject.
    fn latest(&mut self, subject: &str, limit: u32) -> Result<Vec<Fact>>;

    /// The facts that have one of these words, the best first.
    fn search(&mut self, words: &[&str], limit: u32) -> Result<Vec<Fact>>;

    /// The context that a statement assembles; `None` from a store that assembles none.
    fn assemble(&mut self, statement: &str) -> Result<Option<String>>;

    /// Gives unused space back to the disk.
    fn compact(&mut self) -> Result<()>;

    /// Closes it in order.
    fn close(self: Box<Self>) -> Result<()>;
}

/// A store that is measured.
#[derive(Debug)]
pub(super) struct Contender {
    /// Its name, for errors and as the directory it is in.
    pub(super) name: &'static str,
    /// Opens it in a directory, or creates it there.
    pub(super) open: fn(&Path) -> Result<Box<dyn Peer>>,
}

/// Those that are measured: Grainstore, and what stands beside it.
pub(super) const CONTENDERS: &[Contender] = &[
    Contender { name: "Grainstore", open: grainstore_peer::open },
    #[cfg(feature = "sqlite")]
    Contender { name: "SQLite", open: sqlite_peer::open },
];
