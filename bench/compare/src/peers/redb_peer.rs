//! Raw redb behind the seam, in two shapes: the log alone, which is what a durable write costs at
//! least, and the few tables somebody would write by hand to find rows by address and subject.

use std::path::Path;

use grainstore::format::GrainRef;
use grainstore::{ContentAddress, Grain};
use redb::{
    Database, ReadTransaction, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction,
};

use crate::Result;
use crate::ask::{Ask, Hit, Line};
use crate::data::Item;
use crate::peer::{CACHE_BYTES, Peer};

/// Sequence -> address, blob. The address stands there so that no read has to hash for it.
const LOG: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("log");
/// Address -> sequence.
const ADDRESSES: TableDefinition<'_, &[u8; 32], u64> = TableDefinition::new("addresses");
/// Subject, zero, !sequence.
const SUBJECTS: TableDefinition<'_, &[u8], ()> = TableDefinition::new("subjects");
/// Subject, zero, relation, zero, !sequence.
const FACTS: TableDefinition<'_, &[u8], ()> = TableDefinition::new("facts");

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

/// A row of the log in its two parts.
fn split(row: &[u8]) -> Result<(ContentAddress, &[u8])> {
    let (address, blob) = row.split_first_chunk::<32>().ok_or("a row without an address")?;
    Ok((ContentAddress::from_bytes(*address), blob))
}

/// Adds the rows from `first` on to the other tables.
fn index(txn: &WriteTransaction, first: u64, items: &[Item]) -> Result<()> {
    let mut addresses = txn.open_table(ADDRESSES)?;
    let mut subjects = txn.open_table(SUBJECTS)?;
    let mut facts = txn.open_table(FACTS)?;
    for (sequence, Item { row, blob, .. }) in (first..).zip(items) {
        addresses.insert(blob.address().as_bytes(), sequence)?;
        let newest_first = (!sequence).to_be_bytes();
        let mut key = prefix(&row.subject, None);
        key.extend_from_slice(&newest_first);
        subjects.insert(key.as_slice(), ())?;
        let mut key = prefix(&row.subject, Some(&row.relation));
        key.extend_from_slice(&newest_first);
        facts.insert(key.as_slice(), ())?;
    }
    Ok(())
}

/// The newest rows of a subject, or of a subject with a relation.
fn sequences(
    txn: &ReadTransaction,
    subject: &str,
    relation: Option<&str>,
    limit: usize,
) -> Result<Vec<u64>> {
    let table = txn.open_table(if relation.is_some() { FACTS } else { SUBJECTS })?;
    let from = prefix(subject, relation);
    let mut to = from.clone();
    to.extend_from_slice(&[u8::MAX; 8]);
    let mut found = Vec::with_capacity(limit);
    for key in table.range(from.as_slice()..=to.as_slice())?.take(limit) {
        let (key, _) = key?;
        let tail = key.value().last_chunk::<8>().copied().ok_or("a posting without a sequence")?;
        found.push(!u64::from_be_bytes(tail));
    }
    Ok(found)
}

/// What the keys of a subject, or of a subject with a relation, begin with.
fn prefix(subject: &str, relation: Option<&str>) -> Vec<u8> {
    let mut key = Vec::with_capacity(subject.len() + relation.map_or(0, str::len) + 10);
    key.extend_from_slice(subject.as_bytes());
    key.push(0);
    if let Some(relation) = relation {
        key.extend_from_slice(relation.as_bytes());
        key.push(0);
    }
    key
}
