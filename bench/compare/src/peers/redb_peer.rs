//! Raw redb behind the seam, in two shapes: the log alone, which is what a durable write costs at
//! least, and the few tables somebody would write by hand to find rows by address and subject.

use std::path::Path;

use grainstore::format::GrainRef;
use grainstore::{ContentAddress, Grain};
use redb::{Database, ReadableDatabase, ReadableTable, WriteTransaction};

use crate::Result;
use crate::ask::{Ask, Hit, Line};
use crate::data::Item;
use crate::peer::{CACHE_BYTES, Peer};
use crate::peers::redb_tables::{ADDRESSES, FACTS, LOG, SUBJECTS, index, prefix, sequences, split};

/// Which tables a database has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tables {
    /// The log.
    Log,
    /// The log, and what finds rows by address, subject, and subject with relation.
    ByHand,
}

/// A database.
#[derive(Debug)]
pub(crate) struct RawRedb {
    db: Database,
    tables: Tables,
}

impl RawRedb {
    /// Opens or creates the database in a directory.
    ///
    /// # Errors
    /// redb's.
    pub(crate) fn open(path: &Path, tables: Tables) -> Result<Self> {
        let path = path.join("raw.redb");
        let new = !path.exists();
        let db = Database::builder().set_cache_size(CACHE_BYTES).create(path)?;
        if new {
            let txn = db.begin_write()?;
            txn.open_table(LOG)?;
            if tables == Tables::ByHand {
                txn.open_table(ADDRESSES)?;
                txn.open_table(SUBJECTS)?;
                txn.open_table(FACTS)?;
            }
            txn.commit()?;
        }
        Ok(Self { db, tables })
    }

    /// Puts a grain in the place of another, which is found by its address alone from then on.
    ///
    /// # Errors
    /// redb's; for a grain that is not there, or has no subject and relation.
    pub(crate) fn supersede(&self, old: &ContentAddress, new: Item) -> Result<()> {
        let txn = self.db.begin_write()?;
        {
            let addresses = txn.open_table(ADDRESSES)?;
            let sequence = addresses.get(old.as_bytes())?.ok_or("nothing to supersede")?.value();
            let log = txn.open_table(LOG)?;
            let row = log.get(sequence)?.ok_or("an address without a row")?;
            let grain = GrainRef::new(split(row.value())?.1)?;
            let (subject, relation) = (grain.text("subject"), grain.text("relation"));
            let subject = subject.ok_or("a grain without a subject")?;
            let postings = [(SUBJECTS, None), (FACTS, relation)];
            for (table, relation) in postings {
                let mut key = prefix(subject, relation);
                key.extend_from_slice(&(!sequence).to_be_bytes());
                txn.open_table(table)?.remove(key.as_slice())?;
            }
        }
        self.write(&txn, &[new])?;
        txn.commit()?;
        Ok(())
    }

    fn write(&self, txn: &WriteTransaction, items: &[Item]) -> Result<()> {
        let first = {
            let mut log = txn.open_table(LOG)?;
            let first = log.last()?.map_or(1, |(last, _)| last.value() + 1);
            for (sequence, item) in (first..).zip(items) {
                let address = item.blob.address();
                let row = [address.as_bytes().as_slice(), item.blob.bytes()].concat();
                log.insert(sequence, row.as_slice())?;
            }
            first
        };
        if self.tables == Tables::ByHand {
            index(txn, first, items)?;
        }
        Ok(())
    }

    /// Shows the blobs of the newest matches to `take`.
    fn each(
        &self,
        ask: &Ask,
        mut take: impl FnMut(ContentAddress, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let txn = self.db.begin_read()?;
        let log = txn.open_table(LOG)?;
        let Some(subject) = ask.subject.as_deref() else {
            for row in log.iter()?.rev().take(ask.limit) {
                let row = row?.1;
                let (address, blob) = split(row.value())?;
                take(address, blob)?;
            }
            return Ok(());
        };
        for sequence in sequences(&txn, subject, ask.relation.as_deref(), ask.limit)? {
            let row = log.get(sequence)?.ok_or("a posting without a row")?;
            let (address, blob) = split(row.value())?;
            take(address, blob)?;
        }
        Ok(())
    }
}

impl Peer for RawRedb {
    fn put(&self, items: Vec<Item>) -> Result<()> {
        let txn = self.db.begin_write()?;
        self.write(&txn, &items)?;
        txn.commit()?;
        Ok(())
    }

    fn flush(&self) -> Result<bool> {
        Ok(false)
    }

    fn settle(&self) -> Result<()> {
        Ok(())
    }

    fn compact(&mut self) -> Result<bool> {
        self.db.compact()?;
        Ok(true)
    }

    fn answers(&self, ask: &Ask) -> bool {
        let everything = Ask { limit: ask.limit, ..Ask::default() };
        let indexed = Ask { subject: None, relation: None, ..ask.clone() } == everything;
        *ask == everything || (self.tables == Tables::ByHand && indexed && ask.subject.is_some())
    }

    fn lines(&self, ask: &Ask) -> Result<Vec<Line>> {
        let mut lines = Vec::with_capacity(ask.limit);
        self.each(ask, |address, blob| {
            let object = GrainRef::new(blob)?.text("object").map(str::to_owned);
            lines.push(Line { address, object });
            Ok(())
        })?;
        Ok(lines)
    }

    fn hits(&self, ask: &Ask) -> Result<Vec<Hit>> {
        let mut hits = Vec::with_capacity(ask.limit);
        self.each(ask, |address, blob| {
            hits.push(Hit { address, grain: Grain::decode(blob)? });
            Ok(())
        })?;
        Ok(hits)
    }

    fn has_addresses(&self) -> bool {
        self.tables == Tables::ByHand
    }

    fn get(&self, address: &ContentAddress) -> Result<Option<Vec<u8>>> {
        let txn = self.db.begin_read()?;
        let Some(sequence) = txn.open_table(ADDRESSES)?.get(address.as_bytes())? else {
            return Ok(None);
        };
        let row = txn.open_table(LOG)?.get(sequence.value())?.ok_or("an address without a row")?;
        Ok(Some(split(row.value())?.1.to_vec()))
    }
}
