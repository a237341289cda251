//! The tables of raw redb, and their keys.

use grainstore::ContentAddress;
use redb::{ReadTransaction, TableDefinition, WriteTransaction};

use crate::Result;
use crate::data::Item;

/// Sequence -> address, blob. The address stands there so that no read has to hash for it.
pub(super) const LOG: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("log");
/// Address -> sequence.
pub(super) const ADDRESSES: TableDefinition<'_, &[u8; 32], u64> = TableDefinition::new("addresses");
/// Subject, zero, !sequence.
pub(super) const SUBJECTS: TableDefinition<'_, &[u8], ()> = TableDefinition::new("subjects");
/// Subject, zero, relation, zero, !sequence.
pub(super) const FACTS: TableDefinition<'_, &[u8], ()> = TableDefinition::new("facts");

/// A row of the log in its two parts.
pub(super) fn split(row: &[u8]) -> Result<(ContentAddress, &[u8])> {
    let (address, blob) = row.split_first_chunk::<32>().ok_or("a row without an address")?;
    Ok((ContentAddress::from_bytes(*address), blob))
}

/// Adds the rows from `first` on to the other tables.
pub(super) fn index(txn: &WriteTransaction, first: u64, items: &[Item]) -> Result<()> {
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
pub(super) fn sequences(
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
pub(super) fn prefix(subject: &str, relation: Option<&str>) -> Vec<u8> {
    let mut key = Vec::with_capacity(subject.len() + relation.map_or(0, str::len) + 10);
    key.extend_from_slice(subject.as_bytes());
    key.push(0);
    if let Some(relation) = relation {
        key.extend_from_slice(relation.as_bytes());
        key.push(0);
    }
    key
}
