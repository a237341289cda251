//! The seam to the stores: what each must be able to do to be compared. Trials know this trait only.

use std::path::Path;

use grainstore::ContentAddress;

use crate::Result;
use crate::ask::{Ask, Hit, Line};
use crate::data::Item;
use crate::peers::{Grainstore, Indexes, RawRedb, Sqlite, Tables};

/// Memory every peer may use for pages, in bytes.
pub(crate) const CACHE_BYTES: usize = 128 << 20;

/// A store under comparison, open.
pub(crate) trait Peer: Sync {
    /// Stores these in one durable commit: when it returns they survive a power cut.
    ///
    /// # Errors
    /// The store's.
    fn put(&self, items: Vec<Item>) -> Result<()>;

    /// Brings background work to its end: folds, checkpoints. False where there is none.
    ///
    /// # Errors
    /// The store's.
    fn flush(&self) -> Result<bool>;

    /// What the store advises after a large load, such as statistics for its planner. Not timed.
    ///
    /// # Errors
    /// The store's.
    fn settle(&self) -> Result<()>;

    /// Gives unused space back to the disk. False where the store cannot.
    ///
    /// # Errors
    /// The store's.
    fn compact(&mut self) -> Result<bool>;

    /// Whether it has an index for a question; what it has not is not asked.
    fn answers(&self, ask: &Ask) -> bool;

    /// The matching rows, newest first, with one field each.
    ///
    /// # Errors
    /// The store's.
    fn lines(&self, ask: &Ask) -> Result<Vec<Line>>;

    /// The matching rows, newest first, decoded.
    ///
    /// # Errors
    /// The store's.
    fn hits(&self, ask: &Ask) -> Result<Vec<Hit>>;

    /// Whether it finds rows by address.
    fn has_addresses(&self) -> bool;

    /// The bytes of one grain; nothing where it is not stored.
    ///
    /// # Errors
    /// The store's.
    fn get(&self, address: &ContentAddress) -> Result<Option<Vec<u8>>>;
}

/// Opens, or creates, a store in a directory.
type Open = fn(&Path) -> Result<Box<dyn Peer>>;

/// A peer of the table.
#[derive(Clone, Copy)]
pub(crate) struct Contender {
    /// Its name in reports and on the command line.
    pub(crate) name: &'static str,
    /// The side it is on: ratios are Grainstore to the best of a side.
    pub(crate) side: Side,
    /// What it stores and how it commits, for the report.
    pub(crate) terms: &'static str,
    /// Opens it.
    pub(crate) open: Open,
}

/// Whose figures stand together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// The store this is about.
    Grainstore,
    /// The storage engine below it, used by hand.
    Redb,
    /// The usual alternative.
    Sqlite,
}

/// Everyone who is compared, in the order of the report's columns.
pub(crate) const CONTENDERS: [Contender; 5] = [
    Contender {
        name: "grainstore",
        side: Side::Grainstore,
        terms: "everything the engine does: validation, hashing, state, audit entry, all postings; \
                redb with Durability::Immediate; reads check hashes",
        open: |path| Ok(Box::new(Grainstore::open(path)?)),
    },
    Contender {
        name: "redb-log",
        side: Side::Redb,
        terms: "one table, sequence -> address and blob; Durability::Immediate",
        open: |path| Ok(Box::new(RawRedb::open(path, Tables::Log)?)),
    },
    Contender {
        name: "redb-hand",
        side: Side::Redb,
        terms: "the log, address -> sequence, (subject, !sequence), (subject, relation, \
                !sequence), all in the same commit; Durability::Immediate; a read transaction a \
                question",
        open: |path| Ok(Box::new(RawRedb::open(path, Tables::ByHand)?)),
    },
    Contender {
        name: "sqlite-triples",
        side: Side::Sqlite,
        terms: "the grain and its fields in one row; indexes (s, p, o, time), (p, o, s, time), (o, \
                s, p, time), time, (type, time), (user, time), (session, time), tags; WAL, \
                synchronous=FULL, checkpoints every 1,000 pages; ANALYZE after the load",
        open: |path| Ok(Box::new(Sqlite::open(path, Indexes::Triples)?)),
    },
    Contender {
        name: "sqlite-latest",
        side: Side::Sqlite,
        terms: "as sqlite-triples, and (s, time), (p, time), (o, time), (s, p, time), (namespace, \
                s, time), so that the latest of a term needs no sort",
        open: |path| Ok(Box::new(Sqlite::open(path, Indexes::Latest)?)),
    },
];

impl Contender {
    /// The contender of this name.
    #[must_use]
    pub(crate) fn named(name: &str) -> Option<Self> {
        CONTENDERS.into_iter().find(|contender| contender.name == name)
    }
}
